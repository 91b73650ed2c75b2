//! Overview of a report: a verdict, one comparison for each experiment, and the main figures of
//! all devices.

mod certainty;
mod comparison;
mod forest;
mod overview;

use maud::{Markup, html};
use record::{DeviceRecord, Results, Trial};

use super::catalogue::{self, MainFigure};
use crate::format::{decimal, decimals};
use comparison::{Comparison, Verdict};

/// Greatest number of comparisons with a card. The drawing below has all of them.
const CARDS_MAX: usize = 6;

pub(super) fn section(results: &Results) -> Markup {
    let comparisons = comparisons(results);
    html! {
        section #glance {
            h2 { "Overview" }
            (verdict(results, &comparisons))
            @if !comparisons.is_empty() {
                div.cards { @for one in comparisons.iter().take(CARDS_MAX) { (one.card()) } }
            }
            @if comparisons.len() > 2 {
                (forest::figure(&comparisons))
                (certainty::table(&comparisons))
            }
            @for device in devices_without_results(results) {
                p.warning {
                    "No trial of " (device) " is valid: " a href="#validity" { "reasons" } "."
                }
            }
            @for name in experiments_without_results(results) {
                p.warning {
                    "No trial of the experiment " code { (name) } " is valid: "
                    a href="#validity" { "reasons" } "."
                }
            }
            (catalogue::rates_and_delays(results))
            (overview::table(results))
        }
    }
}

/// Greatest number of comparisons in a sentence of the verdict.
const NAMED_MAX: usize = 3;

/// Returns the greatest differences, one sentence for each direction.
fn extremes(comparisons: &[Comparison]) -> Markup {
    let of = |verdict: Verdict| {
        let mut found: Vec<&Comparison> = comparisons.iter().collect();
        found.retain(|one| one.verdict() == verdict && one.ratio.0 > 0.0);
        let distance = |one: &Comparison| one.ratio.0.ln().abs();
        found.sort_by(|a, b| distance(b).total_cmp(&distance(a)));
        let texts = found.iter().take(NAMED_MAX).map(|one| {
            let ratio = one.ratio.0;
            format!(
                "{} ({}×)",
                one.name(),
                decimal(ratio, decimals(ratio).max(1))
            )
        });
        texts.collect::<Vec<_>>().join("; ")
    };
    let (better, worse) = (of(Verdict::Better), of(Verdict::Worse));
    html! {
        @if !better.is_empty() { p { "Greatest advantages: " (better) "." } }
        @if !worse.is_empty() { p { "Greatest disadvantages: " (worse) "." } }
    }
}

/// Returns the comparisons in one line each, for the terminal.
pub(super) fn lines(results: &Results) -> Vec<String> {
    comparisons(results).iter().map(Comparison::line).collect()
}

/// Returns the numbers of comparisons by verdict, in a sentence.
fn verdict(results: &Results, comparisons: &[Comparison]) -> Markup {
    let Some((subject, baseline)) = compared_devices(results) else {
        return html! {};
    };
    let count = |verdict: Verdict| {
        let same = comparisons.iter().filter(|one| one.verdict() == verdict);
        same.count()
    };
    let (better, worse) = (count(Verdict::Better), count(Verdict::Worse));
    let unproven = comparisons.len() - better - worse;
    html! {
        @if !comparisons.is_empty() {
            p.verdict {
                (subject.name) " compared with " (baseline.name) " in " (comparisons.len()) " experiments: better in "
                (better) ", worse in " (worse) ", no significant difference in " (unproven) "."
            }
            (extremes(comparisons))
            @if comparisons.len() > 2 {
                p.fine {
                    "Each is judged by its 99\u{a0}% interval over runs. With Holm’s correction for multiple comparisons, "
                    (certainty::significant_together(comparisons)) " differences are significant."
                }
            }
        }
    }
}

/// Returns the devices of which no trial is valid.
fn devices_without_results(results: &Results) -> Vec<&str> {
    let names = results
        .devices()
        .into_iter()
        .map(|device| device.name.as_str());
    let failed = |name: &&str| all_void(results, |trial| trial.device == *name);
    names.filter(failed).collect()
}

/// Returns the experiments of which no trial is valid on any device.
fn experiments_without_results(results: &Results) -> Vec<&'static str> {
    let all = results.catalogue().iter().map(|one| one.name);
    all.filter(|name| all_void(results, |trial| trial.experiment == *name))
        .collect()
}

/// Returns true if there are such trials and none of them is valid.
fn all_void(results: &Results, is_one: impl Fn(&Trial) -> bool) -> bool {
    let mut of_kind = results.trials().iter().filter(|trial| is_one(trial));
    of_kind.clone().next().is_some() && !of_kind.any(Trial::is_valid)
}

/// Returns the devices of the comparisons: the first that is not the bare link, and Open vSwitch,
/// or the next device if that was not measured.
fn compared_devices(results: &Results) -> Option<(&DeviceRecord, &DeviceRecord)> {
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
    let Some((subject, baseline)) = compared_devices(results) else {
        return Vec::new();
    };
    let (a, b) = (subject.name.as_str(), baseline.name.as_str());
    let readings = catalogue::all_readings(results);
    let mains = catalogue::main_figures(&readings);
    mains
        .iter()
        .filter_map(|main| compare(main, a, b))
        .collect()
}

/// Compares the main figure of an experiment over all points of both devices.
fn compare(main: &MainFigure<'_, '_>, a: &str, b: &str) -> Option<Comparison> {
    let (ours, theirs, points) = main.paired(a, b)?;
    let show = |name: &str| {
        let (low, high) = main.range(name)?;
        Some(format!(
            "{name} {}",
            overview::span(low, high, main.figure.shown_unit())
        ))
    };
    Comparison::over_points(main, [show(a)?, show(b)?], (b, &ours, &theirs), points)
}
