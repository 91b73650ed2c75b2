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
pub use summary::{AgentRecord, InterfaceRecord, ManagementRecord};

/// How often processes and machine are looked at, unless it is said otherwise.
const INTERVAL: Duration = Duration::from_millis(100);

/// How often a switch is asked by SNMP: those that answer slowly have a slow processor, which
/// should have better things to do.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// How long a switch may take to answer.
const ANSWER: Duration = Duration::from_millis(500);

/// How much less than others these threads are to run (nice(2)).
const NICE: i32 = 10;

/// What the controller's owner tells of a device's ports: frames in and out of each, by its
/// OpenFlow statistics.
pub type PortCounts = Vec<(u64, u64)>;

/// Where port counters come from: an error is the reason why there are none.
pub type Ports = Box<dyn FnMut() -> Result<PortCounts, String> + Send>;

/// What is watched, and how often.
pub struct Plan {
    /// How long from one look to the next.
    pub interval: Duration,
    /// How long from one question to the agent to the next.
    pub poll_interval: Duration,
    /// How long the agent may take to answer.
    pub answer: Duration,
    /// The device's processes.
    pub processes: Vec<u32>,
    /// The core for all this; any, if none is said.
    pub core: Option<usize>,
    /// The switch to ask by SNMP.
    pub agent: Option<Agent>,
    /// Where the device's port counters come from.
    pub ports: Option<Ports>,
}

impl Plan {
    /// These processes, ten times a second.
    #[must_use]
    pub const fn of(processes: Vec<u32>) -> Self {
        Self {
            interval: INTERVAL,
            poll_interval: POLL_INTERVAL,
            answer: ANSWER,
            processes,
            core: None,
            agent: None,
            ports: None,
        }
    }
}

/// Threads that watch. Dropping it ends them.
pub struct Sampler {
    // Nothing is ever sent: they end when it is dropped.
    stops: Vec<Sender<()>>,
    sampling: Option<JoinHandle<Samples>>,
    polling: Option<JoinHandle<Polls>>,
}

/// What was seen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Watched {
    /// Of processes and machine.
    pub samples: Samples,
    /// Of the switch and its ports; none if nobody was to be asked.
    pub polls: Option<Polls>,
}

impl Sampler {
    /// Begins. The first look has been taken when this returns.
    ///
    /// # Errors
    /// There is no such core, or the system has no room for a thread.
    pub fn start(plan: Plan, clock: &Clock) -> Result<Self, Failure> {
        let failure = || Failure::to("start a thread");
        let (clock, core) = (*clock, plan.core);
        let mut stops = Vec::new();
        let mut stop = || {
            let (sender, receiver) = mpsc::channel();
            stops.push(sender);
            receiver
        };
        let (processes, interval) = (plan.processes, plan.interval);
        let told = stop();
        let (begun, first) = mpsc::channel();
        let sampling = thread::Builder::new()
            .name("sampler".to_owned())
            .spawn(move || {
                step_back(core);
                let mut samples = Samples::new(interval);
                samples.take(&processes, &clock);
                // Nobody waits for it who is gone.
                let _ = begun.send(());
                let mut ticks = Ticks::new(&clock, interval, &told);
                while let Some(missed) = ticks.next(samples.interval()) {
                    samples.missed += missed;
                    samples.take(&processes, &clock);
                }
                samples
            })
            .map_err(failure())?;
        let polling = if plan.agent.is_some() || plan.ports.is_some() {
            let told = stop();
            let (agent, ports) = (plan.agent, plan.ports);
            let (interval, answer) = (plan.poll_interval, plan.answer);
            let thread = thread::Builder::new()
                .name("snmp".to_owned())
                .spawn(move || {
                    step_back(core);
                    let mut polled = Polled::new(agent, ports, answer);
                    let mut ticks = Ticks::new(&clock, Duration::ZERO, &told);
                    while ticks.next(interval).is_some() {
                        polled.poll(&clock);
                    }
                    polled.into_polls()
                })
                .map_err(failure())?;
            Some(thread)
        } else {
            None
        };
        // A thread that has died has nothing to show, and `stop` will find that.
        let _ = first.recv();
        Ok(Self {
            stops,
            sampling: Some(sampling),
            polling,
        })
    }

    /// Ends with a last look, and hands over what was seen. It waits for an agent that is to
    /// answer for as long as that may take.
    #[must_use]
    pub fn stop(mut self) -> Watched {
        self.stops.clear();
        let samples = self.sampling.take().and_then(|thread| thread.join().ok());
        let polls = self.polling.take().and_then(|thread| thread.join().ok());
        Watched {
            samples: samples.unwrap_or_default(),
            polls,
        }
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
