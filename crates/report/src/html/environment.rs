//! Method, definitions and machine.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use record::{Results, Session};

use crate::format::decimal;

pub(super) fn section(results: &Results) -> Markup {
    html! {
        section #method {
            h2 { "Method and machine" }
            (method())
            (definitions())
            @for session in results.sessions() { (machine(session)) }
            (instrument(results))
            (data())
        }
    }
}

fn method() -> Markup {
    html! {
        h3 { "Method" }
        p {
            "All devices run during the whole measurement. Trials are in blocks: a block has the same trial once on every device, "
            "in an order that the seed determines, so that drift affects all devices equally, and a calibration over a bare link "
            "accompanies every result. The controller of the lab installs new rules before each trial, waits for the barrier reply, and sends nothing during the trial, "
            "except in experiments of the control plane."
        }
        p {
            "The unit of inference is the run. Packets of one run are correlated, and intervals over packets are narrower than the "
            "difference between two runs of one device: in the published tables, the same cell measured twice has intervals that do not overlap. "
            "Therefore each run yields one number, and the interval is that of Student’s t over runs, at 99\u{a0}%; for fewer than three runs there is none. "
            "Comparisons are ratios within a run, with the geometric mean over runs."
        }
        p {
            "Echoes are a closed loop with one packet outstanding, as published: a stall costs one sample, "
            "independent of the number of packets that an open loop would have sent meanwhile. Means are shown because the publication has them; "
            "a single stall of the machine changes a mean, and not the median."
        }
    }
}

fn definitions() -> Markup {
    let rows: [(&str, &str); 9] = [
        (
            "Frame size",
            "From the Ethernet header to the checksum (FCS), both included: 64 bytes carry 18 bytes of UDP payload.",
        ),
        (
            "Round trip",
            "From before the client’s send call to after its receive call, by CLOCK_MONOTONIC_RAW, the stacks of both hosts included.",
        ),
        (
            "Loss",
            "Packets that did not arrive; for round trips, within 100 ms.",
        ),
        (
            "Jitter (IPDV)",
            "The absolute difference of the delays of two consecutive packets (RFC 3393; RFC 5481, 4.1).",
        ),
        (
            "Variation (PDV)",
            "The difference between a delay and the least delay of its run (RFC 5481, 4.2).",
        ),
        (
            "Above the bare link",
            "The figure of the device minus that of the bare link in the same block.",
        ),
        (
            "Effective samples",
            "The number of independent packets with the same information as the run’s: n / (1 + 2 Σρ), over the lags with significant correlation, as a share.",
        ),
        (
            "Exact match",
            "All twelve fields of OpenFlow 1.0. The frames have no VLAN tag, which a rule matches as “none”; there is no priority to match.",
        ),
        (
            "Percentile",
            "The least measured value that the given share of values does not exceed, without interpolation.",
        ),
    ];
    html! {
        h3 { "Definitions" }
        dl { @for (word, meaning) in rows { dt { (word) } dd { (meaning) } } }
    }
}

fn machine(session: &Session) -> Markup {
    let list = |cores: &[usize]| {
        let numbers: Vec<String> = cores.iter().map(usize::to_string).collect();
        numbers.join(", ")
    };
    let is_shared = session
        .tester_cores
        .iter()
        .any(|core| session.device_cores.contains(core));
    html! {
        h3 { "Session of " (super::date(session)) }
        dl {
            dt { "Command" } dd { code { (session.command_line) } }
            dt { "Machine" } dd {
                (session.machine.processor) ", " (session.machine.cores) " cores, "
                (decimal(session.machine.memory_bytes as f64 / f64::from(1 << 30), 0)) " GiB"
                @if session.machine.virtual_machine { ", a virtual machine" }
            }
            dt { "Kernel" } dd { "Linux " (session.machine.kernel) ", clock source " (session.machine.clock_source) }
            dt { "Cores" } dd {
                "lab, hosts and their programs on " (list(&session.tester_cores))
                "; devices on " (list(&session.device_cores))
                @if is_shared { "; shared, so that the devices wait for the lab" }
            }
            dt { "Order" } dd { "seed " (session.seed) ", " (session.runs) " runs" }
            dt { "Programs" } dd {
                "comporta lab " (session.lab_version)
                @if let Some(version) = &session.iperf3 { ", " (version) }
            }
        }
    }
}

/// Returns the socket types and timestamp sources of the tester, with their experiments.
fn instrument(results: &Results) -> Markup {
    let readings = results.trials().iter().filter_map(|trial| {
        let instrument = trial.reading.as_ref()?.instrument.as_deref()?;
        Some((instrument, trial.experiment.as_str()))
    });
    let mut experiments: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (instrument, experiment) in readings {
        experiments
            .entry(instrument)
            .or_default()
            .insert(experiment);
    }
    html! {
        @if !experiments.is_empty() {
            h3 { "Instrument" }
            dl {
                @for (instrument, names) in experiments {
                    dt { "Frames " (instrument) }
                    dd { (names.into_iter().collect::<Vec<_>>().join(", ")) }
                }
            }
        }
    }
}

fn data() -> Markup {
    html! {
        h3 { "Raw data" }
        p {
            "Every trial is a line of " code { (record::journal::RECORDS) }
            " in the directory of this file, with its samples in nanoseconds in the order of transmission. For example, the round trips of one trial:"
        }
        pre { "jq -c 'select(.id == \"echo/match_set=exact/frame_bytes=64/direct/1\") | .outcome.reading.samples.round_trip_ns' " (record::journal::RECORDS) }
        p { "The directory " code { "devices" } " next to it has the logs of the devices." }
    }
}
