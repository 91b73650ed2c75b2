//! Which cores the lab and which the devices use. The lab's threads poll without
//! sleeping, so a device on the same core would starve.

use std::time::Duration;

use record::BadOption;
use record::{Conditions, FrameCounts, ProcessUse};
use testbed::{Bench, Clock, CoreTimes, Failure, Relation, Usage, core_pressure, core_times};

use crate::Options;
use crate::management::{Plan, Sampler, management_record};
use crate::station::passage;

/// The cores of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cores {
    /// For the lab's threads and for hosts' programs.
    pub(crate) tester: Vec<usize>,
    /// For the devices.
    pub(crate) device: Vec<usize>,
}

impl Cores {
    /// What `options` ask for, and for the rest: the first half of the cores, two
    /// at most, for the lab, and the next one for the devices. With one core only,
    /// all share it.
    pub(crate) fn choose(options: &Options, present: usize) -> Result<Self, BadOption> {
        let asked = options.tester_cores.iter().chain(&options.device_cores);
        if let Some(core) = asked.copied().find(|&core| core >= present) {
            let last = present - 1;
            return Err(BadOption(format!(
                "there is no core {core}: this machine has the cores 0 to {last}"
            )));
        }
        let testers = (present / 2).clamp(1, 2);
        let chosen = |asked: &[usize], otherwise: Vec<usize>| match asked {
            [] => otherwise,
            _ => asked.to_vec(),
        };
        Ok(Self {
            tester: chosen(&options.tester_cores, (0..testers).collect()),
            device: chosen(&options.device_cores, vec![testers.min(present - 1)]),
        })
    }

    /// For what goes on beside a test: the last of the tester's, where the second thread of a
    /// pair is. With one only, who sends lets go of it for a moment.
    pub(crate) fn beside(&self) -> Option<usize> {
        self.tester.last().copied()
    }
}

/// Watches the machine and a device's process while load is offered.
pub(crate) struct Watch<'a> {
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

impl<'a> Watch<'a> {
    /// Begins.
    pub(crate) fn begin(
        bench: &Bench,
        cores: &'a Cores,
        clock: &'a Clock,
    ) -> Result<Self, Failure> {
        let watched = Plan {
            core: cores.beside(),
            ..Plan::of(bench.device().processes())
        };
        let sampler = Sampler::start(watched, clock)?;
        Ok(Self {
            cores,
            clock,
            hosts: passage::hosts(bench)?,
            relation: clock.relate(),
            sampler,
            began: clock.now(),
            times: times()?,
            pressure: core_pressure(),
            usage: bench.device().usage()?,
        })
    }

    /// Ends, and says what there was to see.
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
            passage: None,
            realtime_moved_ns: Some(drift.moved_ns()),
            realtime_step_ns: Some(drift.step_ns()),
            steal: share(&all, |times| times.steal.as_secs_f64()),
            tester_busy: share(&self.cores.tester, |times| times.busy.as_secs_f64()),
            device_busy: share(&self.cores.device, |times| times.busy.as_secs_f64()),
            process,
        })
    }
}

/// Frames that the hosts of `bench` have sent since they had counted `before`; none if those
/// were segments, or if a host is another one now.
fn frames_sent(before: &[FrameCounts], bench: &Bench) -> Option<u64> {
    let hosts = passage::between(before, &passage::hosts(bench).ok()?)?;
    let is_plain = !passage::are_segments(&hosts, bench.topology().mtu());
    is_plain.then(|| hosts.iter().map(|host| host.sent).sum())
}

fn times() -> Result<Vec<CoreTimes>, Failure> {
    core_times().map_err(Failure::to("read /proc/stat"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(present: usize) -> (Vec<usize>, Vec<usize>) {
        let cores = Cores::choose(&Options::default(), present).unwrap();
        (cores.tester, cores.device)
    }

    #[test]
    fn the_lab_and_the_devices_get_cores_of_their_own() {
        assert_eq!(chosen(1), (vec![0], vec![0]));
        assert_eq!(chosen(2), (vec![0], vec![1]));
        assert_eq!(chosen(4), (vec![0, 1], vec![2]));
        assert_eq!(chosen(64), (vec![0, 1], vec![2]));
    }

    #[test]
    fn what_is_asked_for_is_taken_if_it_is_there() {
        let mut options = Options {
            tester_cores: vec![3],
            device_cores: vec![1, 2],
            ..Options::default()
        };
        let cores = Cores::choose(&options, 4).unwrap();
        assert_eq!((cores.tester, cores.device), (vec![3], vec![1, 2]));
        options.device_cores.push(4);
        assert_eq!(
            Cores::choose(&options, 4).unwrap_err().to_string(),
            "there is no core 4: this machine has the cores 0 to 3"
        );
    }
}
