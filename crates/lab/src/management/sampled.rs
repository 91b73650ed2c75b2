//! Periodic samples of the resource usage of processes and the machine.

use std::time::Duration;

use base::Instant;
use testbed::{
    Clock, CoreTimes, RunTimes, Switches, Usage, core_pressure, core_times, run_times, switches,
    usage,
};

/// Greatest number of samples kept: ten hours at one per second. After that every second sample is
/// removed and the interval doubles.
const KEPT_MAX: usize = 36_000;

/// Resource usage of a process since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessSample {
    /// Processor time and memory.
    pub usage: Usage,
    /// Context switches.
    pub switches: Switches,
    /// Time on a core and in the run queue; `None` if the kernel does not count it.
    pub times: Option<RunTimes>,
}

/// One sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Time of the sample.
    pub at: Instant,
    /// Device's processes in the order of the plan; `None` for one that has ended.
    pub processes: Vec<Option<ProcessSample>>,
    /// Times of each core; empty if the kernel does not report them.
    pub cores: Vec<CoreTimes>,
    /// CPU pressure (`some`) since the machine started: time in which a runnable task waited for a
    /// core; `None` if the kernel does not report it.
    pub pressure: Option<Duration>,
}

/// Series of samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    interval: Duration,
    kept: Vec<Sample>,
    /// Samples missed because the previous one took too long, or the thread had no core.
    pub missed: u64,
    /// Values that could not be read.
    pub unreadable: u64,
}

impl Samples {
    pub(super) const fn new(interval: Duration) -> Self {
        Self {
            interval,
            kept: Vec::new(),
            missed: 0,
            unreadable: 0,
        }
    }

    /// Returns the interval between kept samples.
    #[must_use]
    pub const fn interval(&self) -> Duration {
        self.interval
    }

    /// Returns the samples in their order.
    #[must_use]
    pub fn kept(&self) -> &[Sample] {
        &self.kept
    }

    pub(super) fn take(&mut self, processes: &[u32], clock: &Clock) {
        let at = clock.now();
        let process = |pid: &u32| {
            let (usage, switches) = (usage(*pid).ok()?, switches(*pid).ok()?);
            Some(ProcessSample {
                usage,
                switches,
                times: run_times(*pid).ok(),
            })
        };
        let sample = Sample {
            at,
            processes: processes.iter().map(process).collect(),
            cores: core_times().unwrap_or_default(),
            pressure: core_pressure(),
        };
        let ended = sample.processes.iter().filter(|one| one.is_none()).count();
        let unreadable = ended + usize::from(sample.cores.is_empty());
        self.unreadable += unreadable as u64;
        self.keep(sample);
    }

    pub(super) fn keep(&mut self, sample: Sample) {
        if self.kept.len() >= KEPT_MAX {
            let mut place = 0;
            self.kept.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.interval *= 2;
        }
        self.kept.push(sample);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sampling_interval_grows_with_the_duration() {
        let mut samples = Samples::new(Duration::from_millis(100));
        for second in 0..KEPT_MAX as u64 + 1 {
            samples.keep(Sample {
                at: Instant::from_secs(second),
                processes: Vec::new(),
                cores: Vec::new(),
                pressure: None,
            });
        }
        assert_eq!(samples.kept().len(), KEPT_MAX / 2 + 1);
        assert_eq!(samples.kept()[0].at, Instant::START);
        assert_eq!(samples.kept()[1].at, Instant::from_secs(2));
        assert_eq!(samples.interval(), Duration::from_millis(200));
    }
}
