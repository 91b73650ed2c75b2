//! Observation of the machine and of a device's process while load is offered.

use std::time::Duration;

use record::{Conditions, FrameCounts, ProcessUse};
use testbed::{Bench, Clock, CoreTimes, Failure, Relation, Usage, core_pressure, core_times};

use super::path_counters;
use crate::cores::Cores;
use crate::management::{Sampler, SamplingPlan, management_record};

/// Observation of the machine and of a device's process.
pub(crate) struct ConditionMonitor<'a> {
    cores: &'a Cores,
    clock: &'a Clock,
    began: base::Instant,
    times: Vec<CoreTimes>,
    pressure: Option<Duration>,
    usage: Option<Usage>,
    hosts: Vec<FrameCounts>,
    relation: Relation,
    sampler: Sampler,
}

impl<'a> ConditionMonitor<'a> {
    /// Starts the observation.
    pub(crate) fn begin(
        bench: &Bench,
        cores: &'a Cores,
        clock: &'a Clock,
    ) -> Result<Self, Failure> {
        let watched = SamplingPlan {
            core: cores.monitors(),
            ..SamplingPlan::of(bench.device().processes())
        };
        let sampler = Sampler::start(watched, clock)?;
        Ok(Self {
            cores,
            clock,
            hosts: path_counters::hosts(bench)?,
            relation: clock.relate(),
            sampler,
            began: clock.now(),
            times: times()?,
            pressure: core_pressure(),
            usage: bench.device().usage()?,
        })
    }

    /// Ends the observation and returns the conditions.
    pub(crate) fn end(self, bench: &Bench) -> Result<Conditions, Failure> {
        let seconds = self.clock.now().since(self.began).as_secs_f64();
        let drift = self.clock.drift_since(self.relation);
        let times = times()?;
        let all: Vec<usize> = (0..times.len()).collect();
        let share = |cores: &[usize], of: fn(&CoreTimes) -> f64| {
            let passed = |core: &usize| of(&times[*core]) - of(&self.times[*core]);
            let known = cores.iter().filter(|core| **core < times.len());
            let sum: f64 = known.map(passed).sum();
            (sum / seconds / cores.len() as f64).clamp(0.0, 1.0)
        };
        let pressure = match (self.pressure, core_pressure()) {
            (Some(before), Some(after)) => {
                let waited = after.saturating_sub(before).as_secs_f64();
                Some((waited / seconds).clamp(0.0, 1.0))
            }
            _ => None,
        };
        let process = match (self.usage, bench.device().usage()?) {
            (Some(before), Some(after)) => Some(ProcessUse {
                user_seconds: after.user.saturating_sub(before.user).as_secs_f64(),
                system_seconds: after.system.saturating_sub(before.system).as_secs_f64(),
                resident_bytes: after.resident_bytes,
            }),
            _ => None,
        };
        let mut management = management_record(&self.sampler.stop());
        management.host_frames = frames_sent(&self.hosts, bench);
        Ok(Conditions {
            seconds,
            pressure,
            management: Some(Box::new(management)),
            path_counters: None,
            realtime_moved_ns: Some(drift.moved_ns()),
            realtime_step_ns: Some(drift.step_ns()),
            steal: share(&all, |times| times.steal.as_secs_f64()),
            tester_busy: share(&self.cores.tester, |times| times.busy.as_secs_f64()),
            device_busy: share(&self.cores.device, |times| times.busy.as_secs_f64()),
            process,
        })
    }
}

/// Returns the frames that the hosts of `bench` sent since the counts `before`; `None` for
/// segments, or if the hosts changed.
fn frames_sent(before: &[FrameCounts], bench: &Bench) -> Option<u64> {
    let hosts = path_counters::difference(before, &path_counters::hosts(bench).ok()?)?;
    let is_plain = !path_counters::are_segments(&hosts, bench.topology().mtu());
    is_plain.then(|| hosts.iter().map(|host| host.sent).sum())
}

fn times() -> Result<Vec<CoreTimes>, Failure> {
    core_times().map_err(Failure::to("read /proc/stat"))
}
