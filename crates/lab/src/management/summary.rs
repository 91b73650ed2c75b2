//! Summaries of the management channel's samples, for a record.

use std::time::Duration;

use record::{AgentRecord, InterfaceRecord, ManagementRecord};
use testbed::RunTimes;

use super::polled::Polls;
use super::sampled::{ProcessSample, Sample, Samples};

/// Returns the summary of `samples`.
#[must_use]
pub fn management_record(samples: &Samples) -> ManagementRecord {
    let mut record = ManagementRecord {
        samples: samples.kept().len(),
        missed: samples.missed,
        unreadable: samples.unreadable,
        ..ManagementRecord::default()
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
    let usages = samples.kept().iter().map(|one| total(one).usage);
    record.resident_bytes_max = usages.map(|usage| usage.resident_bytes).max().unwrap_or(0);
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

/// Returns the sum of all processes of a sample.
fn total(sample: &Sample) -> ProcessSample {
    let present = || sample.processes.iter().flatten();
    let times: Option<Vec<RunTimes>> = present().map(|one| one.times).collect();
    let times = times.filter(|all| !all.is_empty());
    let none = ProcessSample {
        times: times.map(|all| RunTimes {
            ran: all.iter().map(|one| one.ran).sum(),
            waited: all.iter().map(|one| one.waited).sum(),
        }),
        ..ProcessSample::default()
    };
    present().fold(none, |mut all, one| {
        all.usage.user += one.usage.user;
        all.usage.system += one.usage.system;
        all.usage.resident_bytes += one.usage.resident_bytes;
        all.switches.voluntary += one.switches.voluntary;
        all.switches.involuntary += one.switches.involuntary;
        all
    })
}

/// Returns, for each sample but the first, the seconds since the first and the cores in use since
/// the previous one.
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

/// Returns the summary of `polls`.
#[must_use]
pub fn agent_record(polls: &Polls) -> AgentRecord {
    let loads = polls.switch.iter().map(|(_, sample)| &sample.loads);
    let load_max = loads.fold(Vec::new(), |highest: Vec<u8>, loads| {
        let longest = highest.len().max(loads.len());
        let at = |all: &[u8], place: usize| all.get(place).copied().unwrap_or(0);
        let higher = |place| at(&highest, place).max(at(loads, place));
        (0..longest).map(higher).collect()
    });
    AgentRecord {
        description: polls.description.clone(),
        answers: polls.switch.len(),
        unanswered: polls.unanswered,
        malformed: polls.senseless,
        reason: polls.reason.clone(),
        interfaces: interfaces(polls),
        load_max,
    }
}

/// Returns the counts of each interface, summed from reply to reply, so that counters may wrap
/// between any two.
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
