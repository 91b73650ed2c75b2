//! How it was measured, what the words mean, and on which machine: what somebody
//! else needs to do it again, or to doubt it.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use record::Results;
use record::{Outcome, Session};

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
            "All devices are up during the whole run. Tests come in blocks: a block does the same test once on every device, "
            "in an order that the seed determines, so that whatever drifts falls on all alike, and a calibration over a bare cable "
            "stands beside every result. The lab’s controller installs fresh rules before each test, waits for the barrier, and is silent during it."
        }
        p {
            "The unit of inference is the run. Packets of one run are correlated, and intervals over packets are narrower than the "
            "difference between two runs of one device (the published tables show it: the same cell measured twice gives intervals that do not touch). "
            "So each run gives one number, and the interval is Student’s t over the runs, at 99\u{a0}%; with fewer than three runs none is shown. "
            "Comparisons are ratios within a run, averaged geometrically."
        }
        p {
            "Echoes are a closed loop, one under way at a time, as in the publication: a stall costs one sample, "
            "however many packets an open stream would have sent meanwhile. Means are shown because the publication has them; "
            "a single stall of the machine moves them, and not the median."
        }
    }
}

fn definitions() -> Markup {
    let rows: [(&str, &str); 9] = [
        (
            "Frame size",
            "Ethernet header to checksum (FCS), both included: 64 bytes carry 18 bytes of UDP payload.",
        ),
        (
            "Round trip",
            "From before the client’s send call to after its receive call, by CLOCK_MONOTONIC_RAW, both hosts’ stacks included.",
        ),
        ("Lost", "Not back within 100 ms."),
        (
            "Jitter (IPDV)",
            "The absolute difference of the round trips of two consecutive echoes (RFC 3393; RFC 5481, 4.1).",
        ),
        (
            "Variation (PDV)",
            "The difference of a round trip to the least of its run (RFC 5481, 4.2); its 99th percentile is shown.",
        ),
        (
            "Above the cable",
            "The device’s median less the cable’s in the same block.",
        ),
        (
            "Effective",
            "Independent echoes that would say as much as the run’s: n / (1 + 2 Σρ), over the lags of significant correlation.",
        ),
        (
            "Exact match",
            "All twelve fields of OpenFlow 1.0. The frames bear no VLAN tag, which is matched as “none” and leaves no priority to match.",
        ),
        (
            "Percentile",
            "The least measured value that the given share of values does not exceed; nothing is interpolated.",
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
    let shared = session
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
                @if shared { ": shared, so the devices had to wait for the lab" }
            }
            dt { "Order" } dd { "seed " (session.seed) ", " (session.runs) " runs" }
            dt { "Programs" } dd {
                "comporta lab " (session.lab_version)
                @if let Some(version) = &session.iperf3 { ", " (version) }
            }
        }
    }
}

/// By which ways frames were sent and stamped, where records say so.
fn instrument(results: &Results) -> Markup {
    let readings = results.trials().iter().filter_map(|trial| {
        let Some(Outcome::Reading(reading)) = &trial.outcome else {
            return None;
        };
        Some((reading.instrument.as_deref()?, trial.experiment.as_str()))
    });
    let mut means: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (how, scenario) in readings {
        means.entry(how).or_default().insert(scenario);
    }
    html! {
        @if !means.is_empty() {
            h3 { "Instrument" }
            dl {
                @for (how, scenarios) in means {
                    dt { "Frames " (how) }
                    dd { (scenarios.into_iter().collect::<Vec<_>>().join(", ")) }
                }
            }
        }
    }
}

fn data() -> Markup {
    html! {
        h3 { "Raw data" }
        p {
            "Every test is a line of " code { (record::journal::RECORDS) }
            " beside this file, with each echo’s round trip in nanoseconds, in order. For example, the round trips of one test:"
        }
        pre { "jq -c 'select(.id == \"echo/exact/64/direct/1\") | .outcome.echo.round_trip_ns' " (record::journal::RECORDS) }
        p { "The logs of the devices are in the directory " code { "devices" } " beside it." }
    }
}
