//! Comparisons of runs whose difference is known.

use base::SplitMix64;
use record::MatchSet;
use record::fixture;
use record::{Entry, Outcome};

use super::*;

/// Echoes of `device` in eight runs, each round trip `factor` times what it would be, with a
/// level of each run's own.
fn runs(device: &str, seed: u64, factor: f64) -> Vec<Entry> {
    let mut random = SplitMix64::new(seed);
    let run = |run| {
        let mut trial = fixture::echo_trial(device, run, MatchSet::Ip, 64);
        let level = factor * (1.0 + 0.004 * random.normal());
        let Some(Outcome::Echo(echo)) = &mut trial.outcome else {
            panic!("an echo")
        };
        for (index, trip) in echo.round_trip_ns.iter_mut().enumerate() {
            let ns = 40_000.0 * level * (1.0 + index as f64 / 1_000.0);
            *trip = u32::try_from(fixture::whole(ns)).ok();
        }
        trial.conditions = None;
        Entry::Trial(Box::new(trial))
    };
    (1..=8).map(run).collect()
}

fn changed(before: Vec<Entry>, after: Vec<Entry>) -> Comparison {
    compare(
        &fixture::results(before),
        &fixture::results(after),
        Method::default(),
    )
}

fn of<'a>(comparison: &'a Comparison, figure: &str) -> &'a Row {
    let row = comparison.rows.iter().find(|row| row.figure == figure);
    row.unwrap_or_else(|| panic!("no {figure}"))
}

#[test]
fn what_got_slower_is_worse_and_comes_first() {
    let found = changed(runs("ovs", 1, 1.0), runs("ovs", 2, 1.1));
    let mean = of(&found, "mean_us");
    assert_eq!(mean.finding, Finding::Worse);
    let change = mean.change.unwrap();
    assert!(
        change.relative && change.low < 0.1 && 0.1 < change.high,
        "{change:?}"
    );
    assert_eq!(found.regression(), Some(true));
    assert_eq!(found.rows[0].finding, Finding::Worse);
    // Nothing was lost in either: that is the same, with no doubt.
    assert_eq!(of(&found, "loss").finding, Finding::Same);
    let back = changed(runs("ovs", 2, 1.1), runs("ovs", 1, 1.0));
    assert_eq!(of(&back, "mean_us").finding, Finding::Better);
    assert_eq!(back.regression(), Some(false));
}

#[test]
fn what_is_the_same_is_said_to_be() {
    let found = changed(runs("ovs", 1, 1.0), runs("ovs", 2, 1.0));
    assert_eq!(of(&found, "mean_us").finding, Finding::Same);
    assert_eq!(found.regression(), Some(false));
}

#[test]
fn equal_runs_are_seldom_told_apart_however_many_cells_there_are() {
    // A hundred comparisons of some six figures each; one in a hundred may be wrong.
    let wrong = (0..100).filter(|seed| {
        let found = changed(runs("ovs", 2 * seed, 1.0), runs("ovs", 2 * seed + 1, 1.0));
        found.count(Finding::Worse) + found.count(Finding::Better) > 0
    });
    let wrong = wrong.count();
    assert!(wrong <= 3, "{wrong} of 100");
}

#[test]
fn few_runs_tell_nothing_and_say_so() {
    let two = |seed| {
        runs("ovs", seed, 1.0)
            .into_iter()
            .take(2)
            .collect::<Vec<_>>()
    };
    let found = changed(two(1), two(2));
    let mean = of(&found, "mean_us");
    assert_eq!((mean.finding, mean.change), (Finding::Inconclusive, None));
    assert_eq!(found.regression(), None);
    assert!(markdown(&found).contains("2 and 2 runs: too few"));
}

#[test]
fn runs_with_nothing_in_common_are_not_taken_for_equal() {
    let found = changed(runs("ovs", 1, 1.0), runs("comporta", 2, 1.0));
    assert!(found.rows.is_empty());
    assert!(found.only_before > 0 && found.only_before == found.only_after);
    assert_eq!(found.regression(), None);
    assert!(markdown(&found).contains("in the first run only"));
}

#[test]
fn pairs_see_what_is_less_than_the_difference_of_runs() {
    // The same level in the same run: three per cent stand out of a scatter of ten.
    let scattered = |factor: f64| {
        let mut entries = runs("ovs", 1, factor);
        for entry in &mut entries {
            let Entry::Trial(trial) = entry else { continue };
            let mood = 1.0 + 0.1 * f64::from(trial.run % 4);
            let Some(Outcome::Echo(echo)) = &mut trial.outcome else {
                continue;
            };
            for trip in echo.round_trip_ns.iter_mut().flatten() {
                *trip = u32::try_from(fixture::whole(f64::from(*trip) * mood)).unwrap();
            }
        }
        fixture::results(entries)
    };
    let (before, after) = (scattered(1.0), scattered(1.03));
    let method = Method::default();
    let apart = compare(&before, &after, method);
    assert_eq!(of(&apart, "mean_us").finding, Finding::Inconclusive);
    assert_eq!(apart.regression(), None);
    let method = Method {
        paired: true,
        ..method
    };
    let paired = compare(&before, &after, method);
    assert_eq!(of(&paired, "mean_us").finding, Finding::Worse);
}

#[test]
fn the_page_and_the_json_say_the_same() {
    let found = changed(runs("ovs", 1, 1.0), runs("ovs", 2, 1.1));
    let page = markdown(&found);
    let rows = page.lines().filter(|line| line.starts_with("| worse"));
    assert_eq!(rows.count(), found.count(Finding::Worse));
    assert!(
        page.lines().count() < 60 && page.contains("| ~ | echo | ovs |"),
        "{page}"
    );
    let json: serde_json::Value = serde_json::from_str(&found.json()).unwrap();
    assert_eq!(json["rows"][0]["finding"], "worse");
    assert_eq!(json["margin"], 0.02);
}
