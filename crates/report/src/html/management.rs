//! What devices spent while load was offered, and between which places frames were lost.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use record::ExperimentKey;
use record::ManagementRecord;
use record::Results;
use record::{DeviceRecord, PassageRecord, Trial};

use super::parts;
use crate::format::{count, decimal, decimals, percent};

/// Whether there is anything to tell: old records say nothing of it.
pub(super) fn is_told(results: &Results) -> bool {
    results.trials().iter().any(|trial| seen(trial).is_some())
}

pub(super) fn section(results: &Results) -> Markup {
    html! {
        @if is_told(results) {
            section #spent {
                h2 { "What the device spent" }
                p {
                    "Beside each test it is looked at what the device’s processes use, and what hosts, cables "
                    "and the device’s own OpenFlow ports count. Where the kernel itself forwards there is no process: what it "
                    "spends is among the soft interrupts, on whichever core they come."
                }
                (spent(results))
                (agents(results))
                (losses(results))
            }
        }
    }
}

fn seen(trial: &Trial) -> Option<&ManagementRecord> {
    trial.conditions.as_ref()?.management.as_deref()
}

fn passage(trial: &Trial) -> Option<&PassageRecord> {
    trial.conditions.as_ref()?.passage.as_deref()
}

/// Names of the experiments, in the order in which they first occur.
fn experiments(results: &Results) -> Vec<&str> {
    let mut met = BTreeSet::new();
    let all = results.trials().iter();
    let all = all.map(|trial| trial.experiment.as_str());
    all.filter(|name| met.insert(*name)).collect()
}

/// A row for each device and experiment.
fn spent(results: &Results) -> Markup {
    let caption = html! {
        b { "Processor, memory, context switches. " }
        "Means over all valid tests of an experiment, and their least and greatest. Processor time is that of all of the "
        "device’s processes, in per cent of one core and for each frame that hosts sent meanwhile; waiting is how long "
        "its threads were ready and had no core."
    };
    let head = html! {
        tr {
            th scope="col" { "Experiment" }
            th scope="col" { "Device" }
            th scope="col" { "Processor" span.unit { "%" } }
            th scope="col" { "A frame" span.unit { "ns" } }
            th scope="col" { "Waiting" span.unit { "%" } }
            th scope="col" { "Memory" span.unit { "MiB" } }
            th scope="col" { "Context switches" span.unit { "1/s" } }
            th scope="col" { "Soft interrupts, busiest core" span.unit { "%" } }
        }
    };
    let body = html! {
        @for name in experiments(results) {
            tbody {
                @for device in results.devices_in(name) { (row(results, name, device)) }
            }
        }
    };
    parts::table(&caption, &head, &body)
}

fn row(results: &Results, experiment: &str, device: &DeviceRecord) -> Markup {
    let trials = || {
        let all = results.trials().iter();
        let all = all.filter(|trial| trial.experiment == experiment && trial.device == device.name);
        all.filter(|trial| trial.is_valid()).filter_map(seen)
    };
    let of = |number: fn(&ManagementRecord) -> Option<f64>| -> Vec<f64> {
        trials().filter_map(number).collect()
    };
    html! {
        @if trials().next().is_some() {
            tr {
                th scope="row" { (experiment) }
                td { (parts::device_name(device)) }
                (spread(&of(|one| Some(one.cores()? * 100.0))))
                (spread(&of(ManagementRecord::ns_per_frame)))
                (spread(&of(waiting_percent)))
                (spread(&of(|one| one.cores().map(|_| one.resident_bytes_max as f64 / f64::from(1 << 20)))))
                (spread(&of(ManagementRecord::switches_a_second)))
                (spread(&of(|one| one.softirq.iter().copied().reduce(f64::max).map(|share| share * 100.0))))
            }
        }
    }
}

fn waiting_percent(seen: &ManagementRecord) -> Option<f64> {
    seen.cores()?;
    let waited = seen.wait_seconds?;
    (seen.seconds > 0.0).then(|| waited / seen.seconds * 100.0)
}

/// The mean, and under it the least and the greatest.
fn spread(values: &[f64]) -> Markup {
    if values.is_empty() {
        return html! { td.none { "–" } };
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = values.iter().copied().fold(0.0, f64::max);
    let digits = decimals(mean);
    html! {
        td {
            span.value { (decimal(mean, digits)) }
            @if values.len() > 1 {
                span.interval { (decimal(least, digits)) " – " (decimal(greatest, digits)) }
            }
        }
    }
}

/// What switches told by SNMP: a line for each.
fn agents(results: &Results) -> Markup {
    let mut told: BTreeMap<&str, (u64, u64, u8, Option<&str>)> = BTreeMap::new();
    for trial in results.trials() {
        let Some(agent) = seen(trial).and_then(|seen| seen.agent.as_ref()) else {
            continue;
        };
        let sum = told.entry(trial.device.as_str()).or_default();
        sum.0 += agent.answers as u64;
        sum.1 += agent.unanswered + agent.senseless;
        sum.2 = sum.2.max(agent.load_max.iter().copied().max().unwrap_or(0));
        sum.3 = agent.reason.as_deref().or(sum.3);
    }
    html! {
        @for (device, (answers, failed, load, reason)) in told {
            p {
                (device) " was asked by SNMP: " (count(answers)) " answers, of which the busiest processor told "
                (load) " %; " (count(failed)) " questions were not answered as they should be"
                @if let Some(reason) = reason { " (" (reason) ")" }
                "."
            }
        }
    }
}

/// Frames lost between two places, over all tests of an experiment.
#[derive(Default)]
struct Lost {
    frames: u64,
    of: u64,
    tests: u64,
}

/// What tells one row from another: experiment, device, and between which places.
type Step<'a> = (ExperimentKey, &'a str, String);

fn losses(results: &Results) -> Markup {
    let mut steps: BTreeMap<Step<'_>, Lost> = BTreeMap::new();
    for trial in results.trials().iter().filter(|trial| trial.is_valid()) {
        let Some(passage) = passage(trial) else {
            continue;
        };
        for (step, frames) in passage.losses() {
            let key = (results.key(trial), trial.device.as_str(), step);
            let lost = steps.entry(key).or_default();
            lost.frames += frames;
            lost.of += passage.sent();
            lost.tests += 1;
        }
    }
    let caption = html! {
        b { "Where frames were lost. " }
        "By the counters at each place, of all valid tests in which some were; what was refused or dropped "
        "on purpose is among it. Who copies frames meanwhile hides as many."
    };
    let head = html! {
        tr {
            th scope="col" { "Experiment" }
            th scope="col" { "Device" }
            th scope="col" { "Frames" }
            th scope="col" { "Lost" }
            th scope="col" { "Of those sent" }
            th scope="col" { "Tests" }
        }
    };
    let body = html! {
        tbody {
            @for ((experiment, device, step), lost) in &steps {
                tr {
                    th scope="row" { (experiment.name()) }
                    td { span.device.{ (parts::class(device)) } { (device) } }
                    td { (step) }
                    td { (count(lost.frames)) }
                    td { (percent(lost.frames as f64 / (lost.of as f64).max(1.0))) }
                    td { (count(lost.tests)) }
                }
            }
        }
    };
    html! {
        @if !steps.is_empty() { (parts::table(&caption, &head, &body)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::Entry;
    use record::fixture;

    #[test]
    fn what_was_spent_and_where_frames_were_lost_is_told_in_numbers() {
        let results = fixture::results(fixture::entries());
        let text = section(&results).into_string();
        // 0.9271 s of a core in a second, over 200,000 frames.
        assert!(text.contains("92.7"), "{text}");
        assert!(text.contains(&decimal(4_635.5, 0)), "{text}");
        assert!(text.contains("before they were counted in by it"), "{text}");
        // Five of a thousand.
        assert!(text.contains(&percent(0.005)), "{text}");
    }

    #[test]
    fn records_that_say_nothing_of_it_have_no_such_section() {
        let entries = fixture::entries().into_iter().map(|entry| match entry {
            Entry::Trial(mut trial) => {
                if let Some(conditions) = &mut trial.conditions {
                    conditions.management = None;
                }
                Entry::Trial(trial)
            }
            session => session,
        });
        let results = fixture::results(entries.collect());
        assert!(section(&results).into_string().is_empty());
    }
}
