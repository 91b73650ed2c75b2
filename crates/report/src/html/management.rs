//! Resources of the devices during the trials, and the location of losses.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use record::{DeviceRecord, ExperimentKey, ManagementRecord, PathCounters, Results, Trial};

use super::parts;
use crate::format::{count, decimal, decimals, percent};

/// Returns true if any trial has a management record; old ones have none.
pub(super) fn is_recorded(results: &Results) -> bool {
    results
        .trials()
        .iter()
        .any(|trial| management(trial).is_some())
}

pub(super) fn section(results: &Results) -> Markup {
    html! {
        @if is_recorded(results) {
            section #resources {
                h2 { "Resources of the devices" }
                p {
                    "During each trial, monitors record the resource usage of the device’s processes and the counters of hosts, links "
                    "and OpenFlow ports. A device in the kernel has no process: its processor time is part of the "
                    "soft interrupts of any core."
                }
                (resources(results))
                (agents(results))
                (losses(results))
            }
        }
    }
}

fn management(trial: &Trial) -> Option<&ManagementRecord> {
    trial.conditions.as_ref()?.management.as_deref()
}

fn path_counters(trial: &Trial) -> Option<&PathCounters> {
    trial.conditions.as_ref()?.path_counters.as_deref()
}

/// Returns the names of the experiments in the order of their first trials.
fn experiments(results: &Results) -> Vec<&str> {
    let mut known = BTreeSet::new();
    let all = results.trials().iter();
    let all = all.map(|trial| trial.experiment.as_str());
    all.filter(|name| known.insert(*name)).collect()
}

/// Returns a table with a row for each device and experiment.
fn resources(results: &Results) -> Markup {
    let caption = html! {
        b { "Processor, memory, context switches. " }
        "Mean, least and greatest of all valid trials of an experiment. Processor time is that of all processes of the "
        "device, in per cent of one core and per frame that the hosts sent; waiting is the time in which "
        "its threads were runnable without a core."
    };
    let head = html! {
        tr {
            th scope="col" { "Experiment" }
            th scope="col" { "Device" }
            th scope="col" { "Processor" span.unit { "%" } }
            th scope="col" { "Per frame" span.unit { "ns" } }
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
        all.filter(|trial| trial.is_valid()).filter_map(management)
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
                (spread(&of(ManagementRecord::switches_per_second)))
                (spread(&of(|one| one.softirq.iter().copied().reduce(f64::max).map(|share| share * 100.0))))
            }
        }
    }
}

fn waiting_percent(record: &ManagementRecord) -> Option<f64> {
    record.cores()?;
    let waited = record.wait_seconds?;
    (record.seconds > 0.0).then(|| waited / record.seconds * 100.0)
}

/// Returns the cell of a mean, with the least and the greatest value below.
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

/// Returns a line for each switch with an SNMP agent.
fn agents(results: &Results) -> Markup {
    let mut agents: BTreeMap<&str, (u64, u64, u8, Option<&str>)> = BTreeMap::new();
    for trial in results.trials() {
        let Some(agent) = management(trial).and_then(|record| record.agent.as_ref()) else {
            continue;
        };
        let sum = agents.entry(trial.device.as_str()).or_default();
        sum.0 += agent.answers as u64;
        sum.1 += agent.unanswered + agent.malformed;
        sum.2 = sum.2.max(agent.load_max.iter().copied().max().unwrap_or(0));
        sum.3 = agent.reason.as_deref().or(sum.3);
    }
    html! {
        @for (device, (answers, failed, load, reason)) in agents {
            p {
                (device) ", by SNMP: " (count(answers)) " responses, with a processor load of at most "
                (load) " %; " (count(failed)) " requests without a valid response"
                @if let Some(reason) = reason { " (" (reason) ")" }
                "."
            }
        }
    }
}

/// Frames lost between two points of the path, over all trials of an experiment.
#[derive(Default)]
struct Lost {
    frames: u64,
    of: u64,
    trials: u64,
}

/// Identity of a row: experiment, device, and points of the path.
type PathStep<'a> = (ExperimentKey, &'a str, String);

fn losses(results: &Results) -> Markup {
    let mut steps: BTreeMap<PathStep<'_>, Lost> = BTreeMap::new();
    for trial in results.trials().iter().filter(|trial| trial.is_valid()) {
        let Some(counters) = path_counters(trial) else {
            continue;
        };
        for (step, frames) in counters.losses() {
            let key = (results.key(trial), trial.device.as_str(), step);
            let lost = steps.entry(key).or_default();
            lost.frames += frames;
            lost.of += counters.sent();
            lost.trials += 1;
        }
    }
    let caption = html! {
        b { "Location of losses. " }
        "By the counters along the path, in all valid trials with losses, intended drops included. "
        "Frames that are copied between two counters hide as many lost ones."
    };
    let head = html! {
        tr {
            th scope="col" { "Experiment" }
            th scope="col" { "Device" }
            th scope="col" { "Frames" }
            th scope="col" { "Lost" }
            th scope="col" { "Of the sent frames" }
            th scope="col" { "Trials" }
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
                    td { (count(lost.trials)) }
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
    use record::{Entry, fixture};

    #[test]
    fn resources_and_losses_are_those_of_the_records() {
        let results = fixture::results(fixture::entries());
        let text = section(&results).into_string();
        // 0.9271 s of a core in a second, over 200,000 frames.
        assert!(text.contains("92.7"), "{text}");
        assert!(text.contains(&decimal(4_635.5, 0)), "{text}");
        assert!(text.contains("not counted in by the device"), "{text}");
        // Five of a thousand.
        assert!(text.contains(&percent(0.005)), "{text}");
    }

    #[test]
    fn old_records_have_no_such_section() {
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
