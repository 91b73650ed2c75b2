//! What processes and the machine have used so far, looked at again and again.

use std::time::Duration;

use base::Instant;
use testbed::{
    Clock, CoreTimes, RunTimes, Switches, Usage, core_pressure, core_times, run_times, switches,
    usage,
};

/// Looks that are kept: ten hours, once a second. Of a longer time each second look is
/// kept, and so on.
const KEPT_MAX: usize = 36_000;

/// What a process has used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessSample {
    /// Processor time and memory.
    pub usage: Usage,
    /// How often it gave up a core.
    pub switches: Switches,
    /// How long it ran and waited; none if the kernel does not count that.
    pub times: Option<RunTimes>,
}

/// One look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When.
    pub at: Instant,
    /// The device's processes, in the order they were named; none of one that is gone.
    pub processes: Vec<Option<ProcessSample>>,
    /// How each core has spent its time; nothing if the kernel did not tell.
    pub cores: Vec<CoreTimes>,
    /// For how long something that was ready had to wait for a core, since the machine
    /// started; none if the kernel does not tell.
    pub pressure: Option<Duration>,
}

/// All looks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    interval: Duration,
    kept: Vec<Sample>,
    /// Looks that were not taken since the one before took too long, or the thread had no core.
    pub missed: u64,
    /// Things that could not be read.
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

    /// How long from one look that is kept to the next.
    #[must_use]
    pub const fn interval(&self) -> Duration {
        self.interval
    }

    /// The looks, in their order.
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
        let gone = sample.processes.iter().filter(|one| one.is_none()).count();
        let untold = gone + usize::from(sample.cores.is_empty());
        self.unreadable += untold as u64;
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
    fn a_long_time_is_kept_in_larger_steps() {
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
