//! What the management channel saw, as a record keeps it.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use testbed::RunTimes;

use super::polled::Polls;
use super::sampled::{ProcessSample, Sample, Samples};

/// Frames from which on it is told what each costs.
const FRAMES_MIN: u64 = 1_000;

/// What was seen while a test was under way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ManagementRecord {
    /// Seconds from the first look to the last.
    pub seconds: f64,
    /// Looks.
    pub samples: usize,
    /// Looks that were not taken in time.
    pub missed: u64,
    /// Things that could not be read.
    pub unreadable: u64,
    /// Seconds of one core that the device's processes spent in user code.
    pub user_seconds: f64,
    /// Seconds of one core that the kernel spent on their behalf.
    pub system_seconds: f64,
    /// Seconds that their threads ran, as the scheduler counts, in nanoseconds; none if it does
    /// not, or if threads ended meanwhile.
    #[serde(default)]
    pub run_seconds: Option<f64>,
    /// Seconds that they were ready to run and waited for a core, all of them together.
    #[serde(default)]
    pub wait_seconds: Option<f64>,
    /// Frames that all hosts sent meanwhile, as their interfaces counted; none if those were
    /// segments larger than a frame of theirs may be, or could not be read.
    #[serde(default)]
    pub host_frames: Option<u64>,
    /// The most memory that they held at a look, in bytes.
    pub resident_bytes_max: u64,
    /// How often their threads gave up a core since they had nothing to do.
    pub voluntary_switches: u64,
    /// How often they were made to.
    pub involuntary_switches: u64,
    /// Of each core's time, the share in soft interrupts, from 0 to 1.
    pub softirq: Vec<f64>,
    /// Of each core's time, the share that the hypervisor gave to others, from 0 to 1.
    pub steal: Vec<f64>,
    /// Share of the time in which something that was ready had to wait for a core, from 0 to
    /// 1 (PSI, some); none if the kernel does not tell.
    pub pressure: Option<f64>,
    /// From look to look: seconds since the first, and cores that the device's processes used.
    pub cores_used: Vec<(f64, f64)>,
    /// What the switch told by SNMP; none if it was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentRecord>,
}

/// What a switch told by SNMP.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentRecord {
    /// What it says that it is; none if it never answered.
    pub description: Option<String>,
    /// Answers.
    pub answers: usize,
    /// Questions that were not answered.
    pub unanswered: u64,
    /// Answers that made no sense.
    pub senseless: u64,
    /// The last reason why something could not be had.
    pub reason: Option<String>,
    /// What each interface counted from the first answer to the last; none if there are no
    /// two, or if the switch has started again in between.
    pub interfaces: Option<Vec<InterfaceRecord>>,
    /// The highest load that each of its processors told, in per cent.
    pub load_max: Vec<u8>,
}

/// What an interface counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceRecord {
    /// Frames in.
    pub in_frames: u64,
    /// Bytes in.
    pub in_octets: u64,
    /// Frames out.
    pub out_frames: u64,
    /// Bytes out.
    pub out_octets: u64,
}

impl ManagementRecord {
    /// What `samples` come to.
    #[must_use]
    pub fn of(samples: &Samples) -> Self {
        let mut record = Self {
            samples: samples.kept().len(),
            missed: samples.missed,
            unreadable: samples.unreadable,
            ..Self::default()
        };
        let [first, .., last] = samples.kept() else {
            return record;
        };
        let seconds = last.at.since(first.at).as_secs_f64();
        record.seconds = seconds;
        let (earlier, later) = (total(first), total(last));
        let passed = |now: Duration, then: Duration| now.saturating_sub(then).as_secs_f64();
        record.user_seconds = passed(later.usage.user, earlier.usage.user);
        record.system_seconds = passed(later.usage.system, earlier.usage.system);
        if let (Some(now), Some(then)) = (later.times, earlier.times) {
            let grew = |now: Duration, then| Some(now.checked_sub(then)?.as_secs_f64());
            record.run_seconds = grew(now.ran, then.ran);
            record.wait_seconds = grew(now.waited, then.waited);
        }
        let switched = |now: u64, then: u64| now.saturating_sub(then);
        let (now, then) = (later.switches, earlier.switches);
        record.voluntary_switches = switched(now.voluntary, then.voluntary);
        record.involuntary_switches = switched(now.involuntary, then.involuntary);
        let held = samples.kept().iter().map(|one| total(one).usage);
        record.resident_bytes_max = held.map(|usage| usage.resident_bytes).max().unwrap_or(0);
        let cores = || first.cores.iter().zip(&last.cores);
        let share = |now, then| (passed(now, then) / seconds).clamp(0.0, 1.0);
        record.softirq = cores().map(|(a, b)| share(b.softirq, a.softirq)).collect();
        record.steal = cores().map(|(a, b)| share(b.steal, a.steal)).collect();
        record.pressure = match (first.pressure, last.pressure) {
            (Some(then), Some(now)) => Some(share(now, then)),
            _ => None,
        };
        record.cores_used = steps(samples.kept());
        record
    }
}

/// What all processes of a look have used together.
fn total(sample: &Sample) -> ProcessSample {
    let known = || sample.processes.iter().flatten();
    let times: Option<Vec<RunTimes>> = known().map(|one| one.times).collect();
    let times = times.filter(|all| !all.is_empty());
    let none = ProcessSample {
        times: times.map(|all| RunTimes {
            ran: all.iter().map(|one| one.ran).sum(),
            waited: all.iter().map(|one| one.waited).sum(),
        }),
        ..ProcessSample::default()
    };
    known().fold(none, |mut all, one| {
        all.usage.user += one.usage.user;
        all.usage.system += one.usage.system;
        all.usage.resident_bytes += one.usage.resident_bytes;
        all.switches.voluntary += one.switches.voluntary;
        all.switches.involuntary += one.switches.involuntary;
        all
    })
}

/// From each look to the next: seconds since the first, and cores used.
fn steps(samples: &[Sample]) -> Vec<(f64, f64)> {
    let used = |sample: &Sample| total(sample).usage.user + total(sample).usage.system;
    let pairs = samples.windows(2);
    pairs
        .map(|pair| {
            let (then, now) = (&pair[0], &pair[1]);
            let took = now.at.since(then.at).as_secs_f64();
            let spent = used(now).saturating_sub(used(then)).as_secs_f64();
            let share = if took > 0.0 { spent / took } else { 0.0 };
            (now.at.since(samples[0].at).as_secs_f64(), share)
        })
        .collect()
}

impl ManagementRecord {
    /// Cores that the device's processes used, on average; none if it has none, or if nothing
    /// was seen.
    #[must_use]
    pub fn cores(&self) -> Option<f64> {
        let spent = self.processor_seconds()?;
        (self.seconds > 0.0).then(|| spent / self.seconds)
    }

    /// Nanoseconds of a core for each frame that hosts sent; none if there were too few to tell.
    #[must_use]
    pub fn ns_per_frame(&self) -> Option<f64> {
        let frames = self.host_frames.filter(|frames| *frames >= FRAMES_MIN)?;
        Some(self.processor_seconds()? * 1e9 / frames as f64)
    }

    /// How often a second its threads gave up a core; none if it has no processes.
    #[must_use]
    pub fn switches_a_second(&self) -> Option<f64> {
        self.processor_seconds()?;
        let all = self.voluntary_switches + self.involuntary_switches;
        (self.seconds > 0.0).then(|| all as f64 / self.seconds)
    }

    /// By the scheduler, or in ticks where it does not count.
    fn processor_seconds(&self) -> Option<f64> {
        if self.resident_bytes_max == 0 {
            // There was no process, or it is gone.
            return None;
        }
        let ticks = self.user_seconds + self.system_seconds;
        Some(self.run_seconds.unwrap_or(ticks))
    }
}

impl AgentRecord {
    /// What `polls` come to.
    #[must_use]
    pub fn of(polls: &Polls) -> Self {
        let loads = polls.switch.iter().map(|(_, sample)| &sample.loads);
        let load_max = loads.fold(Vec::new(), |highest: Vec<u8>, loads| {
            let longest = highest.len().max(loads.len());
            let at = |all: &[u8], place: usize| all.get(place).copied().unwrap_or(0);
            let higher = |place| at(&highest, place).max(at(loads, place));
            (0..longest).map(higher).collect()
        });
        Self {
            description: polls.description.clone(),
            answers: polls.switch.len(),
            unanswered: polls.unanswered,
            senseless: polls.senseless,
            reason: polls.reason.clone(),
            interfaces: interfaces(polls),
            load_max,
        }
    }
}

/// What each interface counted, answer by answer, so that counters may begin again between
/// any two.
fn interfaces(polls: &Polls) -> Option<Vec<InterfaceRecord>> {
    let (_, first) = polls.switch.first()?;
    let none = InterfaceRecord {
        in_frames: 0,
        in_octets: 0,
        out_frames: 0,
        out_octets: 0,
    };
    let mut sums = vec![none; first.interfaces.len()];
    if polls.switch.len() < 2 {
        return None;
    }
    for pair in polls.switch.windows(2) {
        let ((_, then), (_, now)) = (&pair[0], &pair[1]);
        if now.up_time < then.up_time || now.interfaces.len() != sums.len() {
            return None;
        }
        let both = now.interfaces.iter().zip(&then.interfaces);
        for (sum, (now, then)) in sums.iter_mut().zip(both) {
            let (in_frames, out_frames) = now.frames_since(then)?;
            sum.in_frames += in_frames;
            sum.out_frames += out_frames;
            sum.in_octets += now.in_octets.since(then.in_octets)?;
            sum.out_octets += now.out_octets.since(then.out_octets)?;
        }
    }
    Some(sums)
}

#[cfg(test)]
mod tests;
