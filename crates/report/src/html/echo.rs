//! Round trips: the table of the published evaluation with its rows beside ours,
//! the distributions behind it, and their tails.

mod certainty;
mod figures;

use maud::{Markup, html};
use record::Results;
use record::{DeviceRecord, Outcome, Session};
use record::{MatchSet, Prober};

use super::parts;
use crate::analysis::{ByRun, EchoRun, by_run, echo_runs};
use crate::format::{count, decimal};
use crate::published::{MatchTypes, published};

pub(super) use certainty::in_order;

/// The tests that there are: match sets and frame sizes, in order.
pub(super) struct Tests {
    sets: Vec<MatchSet>,
    sizes: Vec<u16>,
}

impl Tests {
    fn of(results: &Results) -> Self {
        let outcomes = results
            .trials()
            .iter()
            .filter_map(|trial| match &trial.outcome {
                Some(Outcome::Echo(echo)) => Some((echo.match_set, echo.frame_bytes)),
                _ => None,
            });
        let (mut sets, mut sizes): (Vec<_>, Vec<_>) = outcomes.unzip();
        sets.sort_unstable();
        sets.dedup();
        sizes.sort_unstable();
        sizes.dedup();
        Self { sets, sizes }
    }
}

/// The test that stands for all where there is room for one: exact match and the
/// smallest frames, if they were tested.
pub(super) fn focus(results: &Results) -> Option<(MatchSet, u16)> {
    let tests = Tests::of(results);
    Some((*tests.sets.last()?, *tests.sizes.first()?))
}

/// Every place where echoes were counted: device, match set and frame size.
pub(super) fn places(results: &Results) -> Vec<(&str, MatchSet, u16)> {
    let tests = Tests::of(results);
    let devices = results.devices_in("echo").into_iter();
    let names = devices.map(|device| device.name.as_str());
    let mut places = Vec::new();
    for name in names {
        for &set in &tests.sets {
            places.extend(tests.sizes.iter().map(|&size| (name, set, size)));
        }
    }
    places
}

/// Each run's median round trip in nanoseconds.
pub(super) fn medians(results: &Results, device: &str, set: MatchSet, frame_bytes: u16) -> ByRun {
    quantiles(results, device, set, frame_bytes, 500)
}

/// Each run's 99th percentile in nanoseconds.
pub(super) fn tails(results: &Results, device: &str, set: MatchSet, frame_bytes: u16) -> ByRun {
    quantiles(results, device, set, frame_bytes, 990)
}

fn quantiles(
    results: &Results,
    device: &str,
    set: MatchSet,
    frame_bytes: u16,
    thousandths: u16,
) -> ByRun {
    let runs = echo_runs(results, device, set, frame_bytes);
    by_run(&runs, |run| run.delays.quantile(thousandths).into())
}

pub(super) fn section(results: &Results) -> Markup {
    let tests = Tests::of(results);
    html! {
        section #echo {
            h2 { "Round trip" }
            (introduction(results))
            @for &frame_bytes in &tests.sizes { (match_table(results, &tests, frame_bytes)) }
            (figures::all(results, &tests))
            @if let Some(&set) = tests.sets.last() {
                (tail_table(results, set, &tests))
                (certainty::table(results, set, &tests))
            }
        }
    }
}

fn introduction(results: &Results) -> Markup {
    let session: Option<&Session> = results.sessions().last();
    html! {
        @if let Some(session) = session {
            @let echo = &session.parameters.echo;
            p {
                "Scenario 1 of the published evaluation: a client sends UDP packets, a server returns them, "
                (count(echo.packets.into())) " a test after " (count(echo.warm_up.into()))
                " of warm-up, one under way at a time. One rule each way; its match is the column. "
                @match echo.prober {
                    Prober::Solo => "One thread owns both ends and polls without sleeping, so that what is measured is the path and not the waking of processes.",
                    Prober::Pair => "Client and server block in their sockets, as in the publication: each round trip holds two wake-ups.",
                }
                " Frame sizes include the checksum (FCS)."
            }
        }
    }
}

/// The layout of the published table: devices down, match types across.
fn match_table(results: &Results, tests: &Tests, frame_bytes: u16) -> Markup {
    let reference = published().match_types;
    let compared = reference.frame_bytes == frame_bytes;
    let caption = html! {
        b { "Mean round trip, " (frame_bytes) "-byte frames, in µs. " }
        "Under each mean its 99\u{a0}% interval over runs, and the median. A device without rules is tested beside every match type."
        @if compared { " ○ Published intervals: " (reference.source) "; " (reference.note) "." }
    };
    let head = html! {
        tr {
            th scope="col" { "Device" }
            @for set in &tests.sets { th scope="col" { (heading(*set)) } }
        }
    };
    let body = html! {
        tbody {
            @for device in results.devices_in("echo") {
                tr.calibration[device.calibration] {
                    th scope="row" { (parts::device_name(device)) }
                    @for &set in &tests.sets {
                        @let runs = echo_runs(results, &device.name, set, frame_bytes);
                        @let means = by_run(&runs, |run| run.delays.mean());
                        @let medians = by_run(&runs, |run| run.delays.quantile(500).into());
                        (parts::cell_with(&means, "median", &medians, 1e3))
                    }
                }
            }
        }
        @if compared { (published_rows(&reference, tests)) }
    };
    parts::table(&caption, &head, &body)
}

fn heading(set: MatchSet) -> &'static str {
    match set {
        MatchSet::Port => "Port",
        MatchSet::Mac => "MAC",
        MatchSet::Ip => "IP",
        MatchSet::Udp => "UDP port",
        MatchSet::Exact => "Exact",
    }
}

fn published_rows(reference: &MatchTypes, tests: &Tests) -> Markup {
    html! {
        tbody.published {
            @for row in &reference.rows {
                tr {
                    th scope="row" { "○ " (row.device) span.remark { (row.form) } }
                    @for set in &tests.sets {
                        @let column = reference.columns.iter().position(|name| name == set.name());
                        @match column.and_then(|index| row.intervals_ms.get(index)) {
                            Some([low, high]) => td { (decimal(low * 1e3, 0)) " – " (decimal(high * 1e3, 0)) },
                            None => td.none { "–" },
                        }
                    }
                }
            }
        }
    }
}

/// Medians, tails, jitter and losses of one match type, for every frame size.
fn tail_table(results: &Results, set: MatchSet, tests: &Tests) -> Markup {
    let caption = html! {
        b { "The distribution behind the mean: " (set) " match, in µs. " }
        "Means over runs of each run’s value. A percentile that fewer than twenty echoes of a run lie beyond is left out."
        (parts::NOT_EXCLUDED)
    };
    let head = html! {
        tr {
            th scope="col" { "Device" }
            th scope="col" { "Median" }
            th scope="col" { "99\u{a0}%" }
            th scope="col" { "99.9\u{a0}%" }
            th scope="col" { "Mean jitter" span.unit { "IPDV" } }
            th scope="col" { "Variation" span.unit { "PDV, 99\u{a0}%" } }
            th scope="col" { "Above the cable" span.unit { "median" } }
            th scope="col" { "Lost" }
            th scope="col" { "Effective" span.unit { "of the echoes" } }
        }
    };
    let body = html! {
        @for &frame_bytes in &tests.sizes {
            tbody {
                tr.group { th scope="rowgroup" colspan="9" { (frame_bytes) "-byte frames" } }
                @for device in results.devices_in("echo") { (tail_row(results, device, set, frame_bytes)) }
            }
        }
    };
    parts::table(&caption, &head, &body)
}

fn tail_row(results: &Results, device: &DeviceRecord, set: MatchSet, frame_bytes: u16) -> Markup {
    let runs = echo_runs(results, &device.name, set, frame_bytes);
    let medians = by_run(&runs, |run| run.delays.quantile(500).into());
    let supported: Vec<&EchoRun<'_>> = runs.iter().filter(|run| run.delays.supports(999)).collect();
    let extreme = supported
        .iter()
        .map(|run| (run.run, f64::from(run.delays.quantile(999))));
    let jitter = runs
        .iter()
        .filter_map(|run| Some((run.run, run.jitter.as_ref()?.mean())));
    let cable = results
        .devices_in("echo")
        .into_iter()
        .find(|device| device.calibration);
    let above = cable
        .filter(|cable| cable.name != device.name)
        .map(|cable| medians.above(&self::medians(results, &cable.name, set, frame_bytes)))
        .unwrap_or_default();
    let lost: usize = runs.iter().map(EchoRun::lost).sum();
    let sent: usize = runs.iter().map(|run| run.outcome.round_trip_ns.len()).sum();
    html! {
        tr.calibration[device.calibration] {
            th scope="row" { span.device.{ (parts::class(&device.name)) } { (device.name) } }
            (parts::plain(&medians, 1e3))
            (parts::plain(&by_run(&runs, |run| run.delays.quantile(990).into()), 1e3))
            (parts::plain(&ByRun::new(extreme), 1e3))
            (parts::plain(&ByRun::new(jitter), 1e3))
            (parts::plain(&by_run(&runs, EchoRun::variation_p99), 1e3))
            (parts::plain(&above, 1e3))
            @if sent == 0 {
                td.none { "–" } td.none { "–" }
            } @else {
                (parts::lost_cell(lost as u64, sent as u64))
                @match by_run(&runs, EchoRun::effective_share).mean() {
                    Some(share) => td { (decimal(share * 100.0, 0)) " %" },
                    None => td.none { "–" },
                }
            }
        }
    }
}
