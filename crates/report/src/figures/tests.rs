//! Figures of made-up records, and what the cells of a run come to.

use record::MatchSet;
use record::Value;
use record::fixture;
use record::{Entry, Flaw, Reading};

use super::*;

fn value(seen: &Observation<'_>, name: &str) -> f64 {
    let found = seen.measures.iter().find(|measure| measure.name == name);
    found.unwrap_or_else(|| panic!("no {name}")).value
}

#[test]
fn every_figure_of_every_trial_is_declared_and_has_a_value_or_a_reason() {
    let results = fixture::results(fixture::entries());
    for trial in results
        .trials()
        .iter()
        .filter(|trial| trial.outcome.is_some())
    {
        let seen = observe(trial, fixture::CATALOGUE);
        for figure in declared(results.description(trial).unwrap()) {
            let measured = seen.measures.iter().any(|one| one.name == figure.name);
            let absent = seen.absent.contains_key(figure.name);
            assert!(measured != absent, "{} of {}", figure.name, trial.id);
        }
        let names: Vec<&str> = seen.point.iter().map(|(name, _)| name).collect();
        let mut wanted = parameters(results.description(trial).unwrap());
        wanted.sort_unstable();
        assert_eq!(names, wanted, "{}", trial.id);
    }
}

#[test]
fn an_echo_comes_to_what_its_round_trips_say() {
    let mut trial = fixture::echo_trial("ovs", 1, MatchSet::Ip, 64);
    let Some(Outcome::Echo(echo)) = &mut trial.outcome else {
        panic!("an echo")
    };
    // 1 to 2100 microseconds, and four that did not come back.
    echo.round_trip_ns = (1..=2_100).map(|us| Some(us * 1_000)).collect();
    echo.round_trip_ns.extend([None; 4]);
    let seen = observe(&trial, fixture::CATALOGUE);
    for (name, wanted) in [
        ("mean_us", 1_050.5),
        ("p50_us", 1_050.0),
        ("p99_us", 2_079.0),
        ("max_us", 2_100.0),
        ("ipdv_p99_us", 1.0),
        ("pdv_p99_us", 2_078.0),
        ("loss", 4.0 / 2_104.0),
    ] {
        assert!((value(&seen, name) - wanted).abs() < 1e-9, "{name}");
    }
    // 2,100 echoes say nothing of one in a thousand.
    assert!(seen.absent["p999_us"].starts_with("too few"));
    assert_eq!(seen.point.get("match_set"), Some(&Value::word("ip")));
}

#[test]
fn a_reading_of_the_catalogue_is_taken_over_as_it_is() {
    const FIGURE: Figure = Figure {
        name: "rate_kpps",
        title: "Rate",
        unit: "kpps",
        better: Better::Higher,
    };
    const EXPERIMENT: Description = Description {
        name: "some",
        figures: &[FIGURE],
        ..record::own::DESCRIPTIONS[0]
    };
    let mut reading = Reading::at(&Point::default().with("frame_bytes", Value::Number(64)));
    reading.put(FIGURE.name, 12.5);
    reading.put("of_another_time", 3.0);
    reading.lack("something", "the device refused");
    let mut trial = fixture::echo_trial("ovs", 1, MatchSet::Ip, 64);
    trial.experiment = "some".into();
    trial.outcome = Some(Outcome::Reading(reading));
    let seen = observe(&trial, Catalogue::new(&[&EXPERIMENT]));
    assert!((value(&seen, FIGURE.name) - 12.5).abs() < 1e-12);
    let known = seen
        .measures
        .iter()
        .find(|one| one.name == FIGURE.name)
        .unwrap();
    assert_eq!((known.unit, known.better), (FIGURE.unit, FIGURE.better));
    let forgotten = seen
        .measures
        .iter()
        .find(|one| one.name == "of_another_time");
    assert_eq!(forgotten.unwrap().better, Better::Neither);
    assert_eq!(seen.absent["something"], "the device refused");
}

#[test]
fn cells_have_the_valid_runs_alone() {
    let mut trials: Vec<Trial> = (1..=4)
        .map(|run| fixture::echo_trial("ovs", run, MatchSet::Ip, 64))
        .collect();
    trials[1].flaws.push(Flaw {
        void: true,
        reason: "why".to_owned(),
    });
    let entries = trials
        .into_iter()
        .map(|trial| Entry::Trial(Box::new(trial)));
    let cells = cells(&fixture::results(entries.collect()));
    let mean = cells
        .values()
        .find(|cell| cell.key.figure == "mean_us")
        .unwrap();
    assert_eq!(mean.runs.keys().copied().collect::<Vec<_>>(), [1, 3, 4]);
    assert!(mean.interval().is_some());
    let mut other = mean.clone();
    other.runs.remove(&1);
    assert_eq!(mean.paired(&other).len(), 2);
    assert_eq!(other.interval(), None, "two runs make no interval");
    assert_eq!(
        mean.key.point_text(),
        "frame_bytes=64 match_set=ip prober=solo"
    );
}

#[test]
fn no_loss_in_any_run_is_not_proven_to_be_none() {
    let results = fixture::results(fixture::entries());
    let cell = |values: [f64; 3]| Cell {
        key: CellKey {
            experiment: results.key(&results.trials()[0]),
            point: Point::default(),
            figure: "loss".to_owned(),
            device: "ovs".to_owned(),
        },
        unit: "",
        better: Better::Lower,
        runs: (1..).zip(values).collect(),
        of: Some(30_000),
    };
    let none = cell([0.0; 3]).interval().unwrap();
    assert!(
        none.low <= 0.0 && (none.high - 4.605 / 30_000.0).abs() < 1e-7,
        "{none:?}"
    );
    let some = cell([0.0, 0.1, 0.2]).interval().unwrap();
    assert!(some.high > 0.2 && some.low >= 0.0, "{some:?}");
    let both = cell([-0.1, 0.1, 0.2]).interval().unwrap();
    assert!(both.low < -0.1, "{both:?}");
}
