//! The management channel: periodic samples of the device's processes and of the machine during a
//! trial, and of a switch's SNMP counters.
//!
//! It is separate from the channels that measure: its threads run at low priority, on one of the
//! tester's cores if the caller selects one, and values that they cannot read are counted.

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
pub use polled::{PollState, Polls};
pub use sampled::{ProcessSample, Sample, Samples};
pub use snmp::{InterfaceCounts, Snmp, SnmpError, SwitchSample};
pub use summary::{agent_record, management_record};

/// Interval between samples. Each sample takes a core for a moment. Most trials are shorter, so
/// they have samples at their beginning and end only.
const INTERVAL: Duration = Duration::from_secs(1);

/// Interval between SNMP polls. A switch that replies slowly has a slow processor, which polls
/// should not load.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Time limit for an SNMP reply.
const ANSWER: Duration = Duration::from_millis(500);

/// Nice value of these threads (nice(2)).
const NICE: i32 = 10;

/// Processes to sample, and the interval.
#[derive(Clone, Debug)]
pub struct SamplingPlan {
    /// Interval between samples.
    pub interval: Duration,
    /// Process identifiers of the device.
    pub processes: Vec<u32>,
    /// Core of the thread; any if `None`.
    pub core: Option<usize>,
}

impl SamplingPlan {
    /// Returns a plan that samples `processes` once a second.
    #[must_use]
    pub const fn of(processes: Vec<u32>) -> Self {
        Self {
            interval: INTERVAL,
            processes,
            core: None,
        }
    }
}

/// Thread that samples processes and the machine. Dropping it ends the thread.
pub struct Sampler(Watcher<Samples>);

impl Sampler {
    /// Starts the thread. The first sample exists when this returns.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn start(plan: SamplingPlan, clock: &Clock) -> Result<Self, Failure> {
        let clock = *clock;
        let (begun, first) = mpsc::channel();
        let watcher = Watcher::start("sampler", plan.core, move |stopped| {
            let mut samples = Samples::new(plan.interval);
            samples.take(&plan.processes, &clock);
            // Fails if the caller no longer waits.
            let _ = begun.send(());
            let mut ticks = Ticks::new(&clock, plan.interval, stopped);
            while let Some(missed) = ticks.next(samples.interval()) {
                samples.missed += missed;
                samples.take(&plan.processes, &clock);
            }
            samples
        })?;
        // Fails if the thread has panicked; `stop` reports that.
        let _ = first.recv();
        Ok(Self(watcher))
    }

    /// Takes a last sample, ends the thread, and returns all samples.
    #[must_use]
    pub fn stop(self) -> Samples {
        self.0.stop()
    }
}

/// Thread that polls a switch by SNMP. Dropping it ends the thread.
pub struct Poller(Watcher<Polls>);

impl Poller {
    /// Starts to poll `agent` once a second.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn start(agent: Agent, core: Option<usize>, clock: &Clock) -> Result<Self, Failure> {
        Self::start_as(agent, core, [POLL_INTERVAL, ANSWER], clock)
    }

    /// Starts to poll with this interval and this time limit for a reply.
    fn start_as(
        agent: Agent,
        core: Option<usize>,
        [interval, answer]: [Duration; 2],
        clock: &Clock,
    ) -> Result<Self, Failure> {
        let clock = *clock;
        let watcher = Watcher::start("snmp", core, move |stopped| {
            let mut polled = PollState::new(agent, answer);
            let mut ticks = Ticks::new(&clock, Duration::ZERO, stopped);
            while ticks.next(interval).is_some() {
                polled.poll(&clock);
            }
            polled.into_polls()
        })?;
        Ok(Self(watcher))
    }

    /// Polls a last time, ends the thread, and returns all replies. Waits for an outstanding reply
    /// up to its time limit.
    #[must_use]
    pub fn stop(self) -> Polls {
        self.0.stop()
    }
}

/// Thread that runs until it is stopped.
struct Watcher<T> {
    // Carries no messages: the thread ends when the sender is dropped.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<T>>,
}

impl<T: Default + Send + 'static> Watcher<T> {
    fn start(
        name: &str,
        core: Option<usize>,
        watch: impl FnOnce(&Receiver<()>) -> T + Send + 'static,
    ) -> Result<Self, Failure> {
        let (stop, stopped) = mpsc::channel();
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                lower_priority(core);
                watch(&stopped)
            })
            .map_err(Failure::to("start a thread"))?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    fn stop(mut self) -> T {
        self.stop = None;
        let results = self.thread.take().and_then(|thread| thread.join().ok());
        results.unwrap_or_default()
    }
}

/// Lowers the priority of the thread and pins it. Errors are ignored, since the samples are equally
/// valid on another core.
fn lower_priority(core: Option<usize>) {
    let _ = rustix::process::setpriority_process(None, NICE);
    let cores: Vec<usize> = core.into_iter().collect();
    let _ = testbed::pin_current_thread(&cores);
}

/// Periodic ticks until the sender of `stop` is dropped, and one more after that.
struct Ticks<'a> {
    clock: &'a Clock,
    next: base::Instant,
    stop: &'a Receiver<()>,
    ended: bool,
}

impl<'a> Ticks<'a> {
    /// Returns ticks of which the first is due after `first`.
    fn new(clock: &'a Clock, first: Duration, stop: &'a Receiver<()>) -> Self {
        Self {
            clock,
            next: clock.now() + first,
            stop,
            ended: false,
        }
    }

    /// Waits for the next tick, and returns the number of ticks that were missed before it; `None`
    /// after the last.
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
