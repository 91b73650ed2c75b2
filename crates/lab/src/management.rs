//! The management channel: what a device's processes and the machine do while a test is
//! under way, sampled again and again; and what a switch tells of itself by SNMP.
//!
//! It is none of the channels that measure: it runs at low priority, on a core of the
//! tester's if it is told so, and what it cannot read is counted.

mod counter;
mod polled;
mod sampled;
mod snmp;
mod summary;

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use testbed::{Clock, Failure};

use crate::devices::Agent;

pub use counter::{Counter, Width};
pub use polled::{Polled, Polls};
pub use sampled::{ProcessSample, Sample, Samples};
pub use snmp::{InterfaceCounts, Snmp, SnmpError, SwitchSample};
pub use summary::{agent_record, management_record};

/// How often processes and machine are looked at: each look takes a core away for a moment, and
/// most tests take less than this, so that nobody looks between their beginning and their end.
const INTERVAL: Duration = Duration::from_secs(1);

/// How often a switch is asked by SNMP: those that answer slowly have a slow processor, which
/// should have better things to do.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// How long a switch may take to answer.
const ANSWER: Duration = Duration::from_millis(500);

/// How much less than others these threads are to run (nice(2)).
const NICE: i32 = 10;

/// What is watched, and how often.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How long from one look to the next.
    pub interval: Duration,
    /// The device's processes.
    pub processes: Vec<u32>,
    /// The core for it; any, if none is said.
    pub core: Option<usize>,
}

impl Plan {
    /// These processes, once a second.
    #[must_use]
    pub const fn of(processes: Vec<u32>) -> Self {
        Self {
            interval: INTERVAL,
            processes,
            core: None,
        }
    }
}

/// A thread that watches processes and machine. Dropping it ends it.
pub struct Sampler(Watcher<Samples>);

impl Sampler {
    /// Begins. The first look has been taken when this returns.
    ///
    /// # Errors
    /// The system has no room for a thread.
    pub fn start(plan: Plan, clock: &Clock) -> Result<Self, Failure> {
        let clock = *clock;
        let (begun, first) = mpsc::channel();
        let watcher = Watcher::start("sampler", plan.core, move |told| {
            let mut samples = Samples::new(plan.interval);
            samples.take(&plan.processes, &clock);
            // Nobody waits for it who is gone.
            let _ = begun.send(());
            let mut ticks = Ticks::new(&clock, plan.interval, told);
            while let Some(missed) = ticks.next(samples.interval()) {
                samples.missed += missed;
                samples.take(&plan.processes, &clock);
            }
            samples
        })?;
        // A thread that has died has nothing to show, and `stop` will find that.
        let _ = first.recv();
        Ok(Self(watcher))
    }

    /// Ends with a last look, and hands over what was seen.
    #[must_use]
    pub fn stop(self) -> Samples {
        self.0.stop()
    }
}

/// A thread that asks a switch by SNMP. Dropping it ends it.
pub struct Poller(Watcher<Polls>);

impl Poller {
    /// Begins to ask `agent`, once a second.
    ///
    /// # Errors
    /// The system has no room for a thread.
    pub fn start(agent: Agent, core: Option<usize>, clock: &Clock) -> Result<Self, Failure> {
        Self::start_as(agent, core, [POLL_INTERVAL, ANSWER], clock)
    }

    /// The same with other times: from one question to the next, and how long it may take to answer.
    fn start_as(
        agent: Agent,
        core: Option<usize>,
        [interval, answer]: [Duration; 2],
        clock: &Clock,
    ) -> Result<Self, Failure> {
        let clock = *clock;
        let watcher = Watcher::start("snmp", core, move |told| {
            let mut polled = Polled::new(agent, answer);
            let mut ticks = Ticks::new(&clock, Duration::ZERO, told);
            while ticks.next(interval).is_some() {
                polled.poll(&clock);
            }
            polled.into_polls()
        })?;
        Ok(Self(watcher))
    }

    /// Ends with a last question, and hands over what was answered. It waits for an agent that
    /// is to answer for as long as that may take.
    #[must_use]
    pub fn stop(self) -> Polls {
        self.0.stop()
    }
}

/// A thread that goes on until it is told to end.
struct Watcher<T> {
    // Nothing is ever sent: it ends when this is dropped.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<T>>,
}

impl<T: Default + Send + 'static> Watcher<T> {
    fn start(
        name: &str,
        core: Option<usize>,
        watch: impl FnOnce(&Receiver<()>) -> T + Send + 'static,
    ) -> Result<Self, Failure> {
        let (stop, told) = mpsc::channel();
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                step_back(core);
                watch(&told)
            })
            .map_err(Failure::to("start a thread"))?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    fn stop(mut self) -> T {
        self.stop = None;
        let seen = self.thread.take().and_then(|thread| thread.join().ok());
        seen.unwrap_or_default()
    }
}

/// Lets others run first. A core that cannot be had is not worth failing for: what is seen
/// is as true from another.
fn step_back(core: Option<usize>) {
    let _ = rustix::process::setpriority_process(None, NICE);
    let cores: Vec<usize> = core.into_iter().collect();
    let _ = testbed::pin_current_thread(&cores);
}

/// Moments at even distances, until somebody drops the other end, and one more then.
struct Ticks<'a> {
    clock: &'a Clock,
    next: base::Instant,
    stop: &'a Receiver<()>,
    ended: bool,
}

impl<'a> Ticks<'a> {
    /// The first is so long from now.
    fn new(clock: &'a Clock, first: Duration, stop: &'a Receiver<()>) -> Self {
        Self {
            clock,
            next: clock.now() + first,
            stop,
            ended: false,
        }
    }

    /// Waits for the next moment, and says how many were missed before it; none in the end.
    fn next(&mut self, interval: Duration) -> Option<u64> {
        if self.ended {
            return None;
        }
        let rest = self.next.since(self.clock.now());
        match self.stop.recv_timeout(rest) {
            Err(RecvTimeoutError::Timeout) | Ok(()) => {}
            Err(RecvTimeoutError::Disconnected) => self.ended = true,
        }
        self.next += interval;
        if self.ended || interval.is_zero() {
            return Some(0);
        }
        let behind = self.clock.now().since(self.next);
        let missed = behind.as_nanos().div_ceil(interval.as_nanos());
        let missed = u32::try_from(missed).unwrap_or(u32::MAX);
        self.next += interval * missed;
        Some(missed.into())
    }
}

#[cfg(test)]
mod tests;
