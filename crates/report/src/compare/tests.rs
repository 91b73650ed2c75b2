//! Comparisons of runs with a known difference.

use base::SplitMix64;
use record::{Entry, RoundTrips, Trial, fixture};

use super::*;

/// Returns echo trials of `device` in eight runs, with round trips that are multiplied by `factor`
/// and by a level of each run.
fn runs(device: &str, seed: u64, factor: f64) -> Vec<Entry> {
    let mut random = SplitMix64::new(seed);
    let run = |run| {
        let mut trial = fixture::echo_trial(device, run, "ip", 64);
        let level = factor * (1.0 + 0.004 * random.normal());
        scale(&mut trial, |index, _| {
            40_000.0 * level * (1.0 + index as f64 / 1_000.0)
        });
        trial.conditions = None;
        Entry::Trial(Box::new(trial))
    };
    (1..=8).map(run).collect()
}

/// Replaces each round trip by a function of its index and of itself.
fn scale(trial: &mut Trial, by: impl Fn(usize, f64) -> f64) {
    let reading = trial.reading.as_mut().unwrap();
    let samples = reading.samples.remove("round_trip_ns").unwrap();
    let scaled = samples.iter().enumerate().map(|(index, trip)| {
        let ns = by(index, f64::from(trip.unwrap_or(0)));
        u32::try_from(fixture::whole(ns)).ok()
    });
    RoundTrips::new(scaled.collect()).put_into(reading);
}

fn changed(before: Vec<Entry>, after: Vec<Entry>) -> Comparison {
    compare(
        &fixture::results(before),
        &fixture::results(after),
        Method::default(),
    )
}

fn of<'a>(comparison: &'a Comparison, figure: &str) -> &'a ComparisonRow {
    let row = comparison.rows.iter().find(|row| row.figure == figure);
    row.unwrap_or_else(|| panic!("no {figure}"))
}

#[test]
fn slower_run_is_worse_and_comes_first() {
    let found = changed(runs("ovs", 1, 1.0), runs("ovs", 2, 1.1));
    let mean = of(&found, "mean_us");
    assert_eq!(mean.finding, ChangeFinding::Worse);
    let change = mean.change.unwrap();
    assert!(
        change.relative && change.low < 0.1 && 0.1 < change.high,
        "{change:?}"
    );
    assert_eq!(found.regression(), Some(true));
    assert_eq!(found.rows[0].finding, ChangeFinding::Worse);
    // Neither run has losses.
    assert_eq!(of(&found, "loss").finding, ChangeFinding::Same);
    let back = changed(runs("ovs", 2, 1.1), runs("ovs", 1, 1.0));
    assert_eq!(of(&back, "mean_us").finding, ChangeFinding::Better);
    assert_eq!(back.regression(), Some(false));
}

#[test]
fn equal_runs_are_the_same() {
    let found = changed(runs("ovs", 1, 1.0), runs("ovs", 2, 1.0));
    assert_eq!(of(&found, "mean_us").finding, ChangeFinding::Same);
    assert_eq!(found.regression(), Some(false));
}

#[test]
fn equal_runs_seldom_differ_significantly() {
    // A hundred comparisons of several figures each; one in a hundred may be wrong.
    let wrong = (0..100).filter(|seed| {
        let found = changed(runs("ovs", 2 * seed, 1.0), runs("ovs", 2 * seed + 1, 1.0));
        found.count(ChangeFinding::Worse) + found.count(ChangeFinding::Better) > 0
    });
    let wrong = wrong.count();
    assert!(wrong <= 3, "{wrong} of 100");
}

#[test]
fn comparison_of_few_runs_is_inconclusive() {
    let two = |seed| {
        runs("ovs", seed, 1.0)
            .into_iter()
            .take(2)
            .collect::<Vec<_>>()
    };
    let found = changed(two(1), two(2));
    let mean = of(&found, "mean_us");
    assert_eq!(
        (mean.finding, mean.change),
        (ChangeFinding::Inconclusive, None)
    );
    assert_eq!(found.regression(), None);
    assert!(markdown(&found).contains("too few runs: 2 and 2"));
}

#[test]
fn runs_without_common_cells_are_not_equal() {
    let found = changed(runs("ovs", 1, 1.0), runs("comporta", 2, 1.0));
    assert!(found.rows.is_empty());
    assert!(found.only_before > 0 && found.only_before == found.only_after);
    assert_eq!(found.regression(), None);
    assert!(markdown(&found).contains("in the first run only"));
}

#[test]
fn paired_comparison_finds_changes_below_the_spread_of_runs() {
    // Runs of the same number have the same level: three per cent within a spread of ten.
    let scattered = |factor: f64| {
        let mut entries = runs("ovs", 1, factor);
        for entry in &mut entries {
            let Entry::Trial(trial) = entry else { continue };
            let level = 1.0 + 0.1 * f64::from(trial.run % 4);
            scale(trial, |_, ns| ns * level);
        }
        fixture::results(entries)
    };
    let (before, after) = (scattered(1.0), scattered(1.03));
    let method = Method::default();
    let unpaired = compare(&before, &after, method);
    assert_eq!(
        of(&unpaired, "mean_us").finding,
        ChangeFinding::Inconclusive
    );
    assert_eq!(unpaired.regression(), None);
    let method = Method {
        paired: true,
        ..method
    };
    let paired = compare(&before, &after, method);
    assert_eq!(of(&paired, "mean_us").finding, ChangeFinding::Worse);
}

#[test]
fn markdown_and_json_agree() {
    let found = changed(runs("ovs", 1, 1.0), runs("ovs", 2, 1.1));
    let page = markdown(&found);
    let rows = page.lines().filter(|line| line.starts_with("| worse"));
    assert_eq!(rows.count(), found.count(ChangeFinding::Worse));
    assert!(
        page.lines().count() < 60 && page.contains("| ~ | echo | ovs |"),
        "{page}"
    );
    let json: serde_json::Value = serde_json::from_str(&found.json()).unwrap();
    assert_eq!(json["rows"][0]["finding"], "worse");
    assert_eq!(json["margin"], 0.02);
}
