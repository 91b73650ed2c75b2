//! Figures of fixture trials, and their cells.

use record::{Entry, Flaw, Reading, Value, fixture};

use super::*;

fn value(observation: &Observation<'_>, name: &str) -> f64 {
    let mut measures = observation.measures.iter();
    let found = measures.find(|measure| measure.name == name);
    found.unwrap_or_else(|| panic!("no {name}")).value
}

#[test]
fn figures_of_a_reading_have_declared_units_and_directions() {
    const FIGURE: Figure = Figure::new("rate_kpps", "Rate", "kpps", Better::Higher);
    const EXPERIMENT: Description = Description {
        name: "some",
        figures: &[FIGURE],
        ..Description::EMPTY
    };
    let mut reading = Reading::at(&Point::default().with("frame_bytes", Value::Number(64)));
    reading.put(FIGURE.name, 12.5);
    reading.put("of_a_later_lab", 3.0);
    reading.put_share("loss", 3, 30);
    reading.lack("something", "the device refused");
    let mut trial = fixture::echo_trial("ovs", 1, "ip", 64);
    trial.experiment = "some".into();
    trial.reading = Some(reading);
    let observation = observe(&trial, Catalogue::new(&[&EXPERIMENT]));
    assert!((value(&observation, FIGURE.name) - 12.5).abs() < 1e-12);
    let measure = |name: &str| {
        let mut measures = observation.measures.iter();
        measures.find(|one| one.name == name).unwrap()
    };
    let known = measure(FIGURE.name);
    assert_eq!((known.unit, known.better), (FIGURE.unit, FIGURE.better));
    assert_eq!(measure("of_a_later_lab").better, Better::Neither);
    assert_eq!(measure("loss").of, Some(30));
    assert_eq!(observation.absent["something"], "the device refused");
}

#[test]
fn device_figures_have_value_or_reason() {
    let results = fixture::results(fixture::entries());
    for trial in results.trials().iter().filter(|one| one.reading.is_some()) {
        let observation = observe(trial, fixture::CATALOGUE);
        for figure in device::declared() {
            let mut measures = observation.measures.iter();
            let is_measured = measures.any(|one| one.name == figure.name);
            let is_absent = observation.absent.contains_key(figure.name);
            assert!(is_measured != is_absent, "{} of {}", figure.name, trial.id);
        }
    }
}

#[test]
fn cells_have_valid_runs_only() {
    let mut trials: Vec<Trial> = (1..=4)
        .map(|run| fixture::echo_trial("ovs", run, "ip", 64))
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
    assert_eq!(other.interval(), None, "two runs have no interval");
    assert_eq!(mean.key.point_text(), "match_set=ip frame_bytes=64");
}

#[test]
fn share_of_zero_in_all_runs_has_an_upper_bound() {
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
