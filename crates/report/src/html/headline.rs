//! What a reader in a hurry should take away: a verdict, one comparison for each experiment
//! with how sure it is, and the main figures of every device.

mod certainty;
mod comparison;
mod forest;
mod overview;

use maud::{Markup, html};
use record::Better;
use record::Results;
use record::{DeviceRecord, Trial};

use super::catalogue::MainFigure;
use super::{echo, flow_table, forwarding, tcp};
use crate::format::{decimal, decimals, rate, throughput};
use comparison::{Comparison, Side, Verdict};

/// So many comparisons have a card; the drawing below has all of them.
const CARDS_MAX: usize = 6;

pub(super) fn section(results: &Results) -> Markup {
    let comparisons = comparisons(results);
    html! {
        section #glance {
            h2 { "At a glance" }
            (verdict(results, &comparisons))
            @if !comparisons.is_empty() {
                div.cards { @for one in comparisons.iter().take(CARDS_MAX) { (one.card()) } }
            }
            @if comparisons.len() > 2 {
                (forest::figure(&comparisons))
                (certainty::table(&comparisons))
            }
            @for device in without_results(results) {
                p.warning {
                    "No test of " (device) " counts: " a href="#validity" { "see why" } "."
                }
            }
            @for name in in_vain(results) {
                p.warning {
                    "No test of the experiment " code { (name) } " counts: "
                    a href="#validity" { "see why" } "."
                }
            }
            (super::catalogue::rates_and_delays(results))
            (overview::table(results))
        }
    }
}

/// So many comparisons are named in the verdict.
const NAMED: usize = 3;

/// Which differences are the greatest, in a sentence each way.
fn extremes(comparisons: &[Comparison]) -> Markup {
    let of = |verdict: Verdict| {
        let mut found: Vec<&Comparison> = comparisons.iter().collect();
        found.retain(|one| one.verdict() == verdict && one.ratio.0 > 0.0);
        let distance = |one: &Comparison| one.ratio.0.ln().abs();
        found.sort_by(|a, b| distance(b).total_cmp(&distance(a)));
        let told = found.iter().take(NAMED).map(|one| {
            let ratio = one.ratio.0;
            format!(
                "{} ({}×)",
                one.name(),
                decimal(ratio, decimals(ratio).max(1))
            )
        });
        told.collect::<Vec<_>>().join("; ")
    };
    let (ahead, behind) = (of(Verdict::Better), of(Verdict::Worse));
    html! {
        @if !ahead.is_empty() { p { "Farthest ahead: " (ahead) "." } }
        @if !behind.is_empty() { p { "Farthest behind: " (behind) "." } }
    }
}

/// The comparisons, a line each, for a terminal.
pub(super) fn lines(results: &Results) -> Vec<String> {
    comparisons(results).iter().map(Comparison::line).collect()
}

/// How the comparisons went, in a sentence.
fn verdict(results: &Results, comparisons: &[Comparison]) -> Markup {
    let Some((subject, baseline)) = contest(results) else {
        return html! {};
    };
    let count = |verdict: Verdict| {
        let same = comparisons.iter().filter(|one| one.verdict() == verdict);
        same.count()
    };
    let (better, worse) = (count(Verdict::Better), count(Verdict::Worse));
    let unsure = comparisons.len() - better - worse;
    html! {
        @if !comparisons.is_empty() {
            p.verdict {
                (subject.name) " beside " (baseline.name) ", " (comparisons.len()) " comparisons: better in "
                (better) ", worse in " (worse) ", no difference proven in " (unsure) "."
            }
            (extremes(comparisons))
            @if comparisons.len() > 2 {
                p.fine {
                    "Each is judged by a 99\u{a0}% interval over runs; asked all at once (Holm’s correction), "
                    (certainty::proven_together(comparisons)) " differences stay proven."
                }
            }
        }
    }
}

/// Devices that were tested in vain.
fn without_results(results: &Results) -> Vec<&str> {
    let names = results
        .devices()
        .into_iter()
        .map(|device| device.name.as_str());
    let failed = |name: &&str| all_void(results, |trial| trial.device == *name);
    names.filter(failed).collect()
}

/// Experiments that came to nothing on any device.
fn in_vain(results: &Results) -> Vec<&'static str> {
    let all = results.catalogue().iter().map(|one| one.name);
    all.filter(|name| all_void(results, |trial| trial.experiment == *name))
        .collect()
}

/// Whether there are such trials and none of them counts.
fn all_void(results: &Results, is_one: impl Fn(&Trial) -> bool) -> bool {
    let mut of_kind = results.trials().iter().filter(|trial| is_one(trial));
    of_kind.clone().next().is_some() && !of_kind.any(Trial::is_valid)
}

/// Which device is compared with which: the first that is no calibration, with
/// Open vSwitch if that is there, or else with the next.
fn contest(results: &Results) -> Option<(&DeviceRecord, &DeviceRecord)> {
    let devices = results.devices();
    let real: Vec<&DeviceRecord> = devices
        .into_iter()
        .filter(|device| !device.calibration)
        .collect();
    let baseline = real
        .iter()
        .copied()
        .find(|device| device.name == "ovs")
        .or_else(|| real.get(1).copied())?;
    let subject = real
        .into_iter()
        .find(|device| device.name != baseline.name)?;
    Some((subject, baseline))
}

fn comparisons(results: &Results) -> Vec<Comparison> {
    let Some((subject, baseline)) = contest(results) else {
        return Vec::new();
    };
    let (a, b) = (subject.name.as_str(), baseline.name.as_str());
    let mut all = of_scenarios(results, a, b);
    let mains = super::catalogue::mains(results);
    all.extend(mains.iter().filter_map(|main| of_catalogue(main, a, b)));
    all
}

/// Of the experiments that have sections of their own.
fn of_scenarios(results: &Results, a: &str, b: &str) -> Vec<Comparison> {
    let mut all = Vec::new();
    if let Some((set, frame_bytes)) = echo::focus(results) {
        let side = |name| {
            let medians = echo::medians(results, name, set, frame_bytes);
            Side::of(name, medians, |nanos| {
                format!("{} µs", decimal(nanos / 1e3, decimals(nanos / 1e3)))
            })
        };
        let test = format!("UDP echo, {frame_bytes}-byte frames, {set} match");
        let what = ("echo", "the median round trip");
        all.extend(Comparison::of(what, side(a), side(b), test, Better::Lower));
    }
    let side = |name| Side::of(name, tcp::throughputs(results, name), throughput);
    let test = "one iperf3 stream".to_owned();
    let what = ("tcp", "the TCP throughput");
    all.extend(Comparison::of(what, side(a), side(b), test, Better::Higher));
    let side = |name| Side::of(name, forwarding::flat_out(results, name), rate);
    let test = forwarding::frame_bytes(results).map_or_else(String::new, |bytes| {
        format!("{bytes}-byte frames, offered flat out")
    });
    let what = ("forwarding", "the forwarding rate");
    all.extend(Comparison::of(what, side(a), side(b), test, Better::Higher));
    let side = |name| {
        Side::of(name, flow_table::added(results, name), |flows| {
            format!("{} thousand/s", decimal(flows / 1e3, 0))
        })
    };
    let test = "twelve exact fields, one connection".to_owned();
    let what = ("flow-table", "the rate of adding flows");
    all.extend(Comparison::of(what, side(a), side(b), test, Better::Higher));
    all
}

/// Of an experiment of the catalogue: by its main figure, over all tests that both devices did.
fn of_catalogue(main: &MainFigure<'_>, a: &str, b: &str) -> Option<Comparison> {
    let (ours, theirs, tests) = main.paired(a, b)?;
    let show = |name: &str| {
        let (low, high) = main.range(name)?;
        Some(format!(
            "{name} {}",
            overview::span(low, high, main.figure.unit)
        ))
    };
    Comparison::over_tests(main, [show(a)?, show(b)?], (b, &ours, &theirs), tests)
}
