//! What records come to, as named numbers: one form for every experiment, upon which
//! comparisons, thresholds and exports work. They know of no experiment.

mod device;
mod own;

use std::borrow::Cow;
use std::collections::BTreeMap;

use record::{
    Better, Catalogue, Description, ExperimentKey, Figure, Outcome, Point, Results, Trial,
};
use stats::{CONFIDENCE, Interval, mean_interval, zero_events_bound};

use crate::analysis::RUNS_MIN;

/// A number that a trial came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    /// Its name, unique in its scenario.
    pub name: Cow<'static, str>,
    /// Its unit as printed; empty for a plain number or a share.
    pub unit: &'static str,
    /// Which way is better.
    pub better: Better,
    /// The number.
    pub value: f64,
    /// For a share, of how many.
    pub of: Option<u64>,
}

/// A trial as numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation<'a> {
    /// The trial.
    pub trial: &'a Trial,
    /// The values of the scenario's parameters; empty if nothing came of it.
    pub point: Point,
    /// What it came to.
    pub measures: Vec<Measure>,
    /// What has no value, and why.
    pub absent: BTreeMap<String, String>,
}

/// Figures that an experiment can have: its own, and what the device spent.
#[must_use]
pub fn declared(experiment: &Description) -> Vec<Figure> {
    let own = match experiment.figures {
        [] => own::declared(experiment.name),
        figures => figures,
    };
    own.iter().copied().chain(device::declared()).collect()
}

/// Names of the parameters that tell an experiment's points apart.
#[must_use]
pub fn parameters(experiment: &Description) -> Vec<&'static str> {
    match experiment.parameters {
        [] => own::parameters(experiment.name).to_vec(),
        parameters => parameters.iter().map(|parameter| parameter.name).collect(),
    }
}

/// The figures of `trial`, valid or not.
#[must_use]
pub fn observe(trial: &Trial, catalogue: Catalogue) -> Observation<'_> {
    let mut seen = Observation {
        trial,
        point: Point::default(),
        measures: Vec::new(),
        absent: BTreeMap::new(),
    };
    match &trial.outcome {
        None => return seen,
        Some(Outcome::Reading(reading)) => {
            let experiment = catalogue.find(trial.experiment.as_str());
            seen.point = reading.point.clone();
            seen.absent.clone_from(&reading.absent);
            let measures = reading.figures.iter();
            seen.measures = measures
                .map(|(name, value)| measure(experiment, name, *value))
                .collect();
        }
        Some(outcome) => own::observe(trial.experiment.as_str(), outcome, &mut seen),
    }
    device::observe(trial, &mut seen);
    seen
}

/// A figure that the experiment does not declare has a value and nothing else.
fn measure(experiment: Option<&'static Description>, name: &str, value: f64) -> Measure {
    let figure = experiment.and_then(|one| one.figure(name));
    Measure {
        name: Cow::Owned(name.to_owned()),
        unit: figure.map_or("", |figure| figure.unit),
        better: figure.map_or(Better::Neither, |figure| figure.better),
        value,
        of: None,
    }
}

/// What tells a cell from the others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CellKey {
    /// The experiment.
    pub experiment: ExperimentKey,
    /// The values of its parameters.
    pub point: Point,
    /// The figure.
    pub figure: String,
    /// The device.
    pub device: String,
}

impl CellKey {
    /// The values of the parameters that vary, in a line.
    #[must_use]
    pub fn point_text(&self) -> String {
        match self.experiment.description() {
            Some(experiment) if !experiment.parameters.is_empty() => {
                self.point.label(experiment).replace('/', " ")
            }
            _ => {
                let values = self.point.iter();
                let values = values.map(|(name, value)| format!("{name}={value}"));
                values.collect::<Vec<_>>().join(" ")
            }
        }
    }
}

/// One figure of one device at one point, over all valid runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Which.
    pub key: CellKey,
    /// Its unit.
    pub unit: &'static str,
    /// Which way is better.
    pub better: Better,
    /// For each run its value, by run.
    pub runs: BTreeMap<u32, f64>,
    /// For a share, of how many in all runs together.
    pub of: Option<u64>,
}

impl Cell {
    /// The values, by run.
    #[must_use]
    pub fn values(&self) -> Vec<f64> {
        self.runs.values().copied().collect()
    }

    /// The mean.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.runs.values().sum::<f64>() / self.runs.len() as f64
    }

    /// The mean and its interval over runs; none for fewer than three. It does not reach below
    /// zero where no run did; a share that was zero in every run may still be what
    /// [`zero_events_bound`] says.
    #[must_use]
    pub fn interval(&self) -> Option<Interval> {
        let interval = mean_interval(&self.values(), CONFIDENCE)?;
        let bound = match self.of {
            Some(of) if self.runs.values().all(|value| *value <= 0.0) => {
                zero_events_bound(of, CONFIDENCE)
            }
            _ => interval.high,
        };
        let floor = if self.runs.values().all(|value| *value >= 0.0) {
            0.0
        } else {
            f64::NEG_INFINITY
        };
        (interval.runs >= RUNS_MIN).then_some(Interval {
            low: interval.low.max(floor),
            high: bound,
            ..interval
        })
    }

    /// Its value and that of `other` in the runs that both have.
    #[must_use]
    pub fn paired(&self, other: &Self) -> Vec<(f64, f64)> {
        let own = self.runs.iter();
        own.filter_map(|(run, value)| Some((*value, *other.runs.get(run)?)))
            .collect()
    }
}

/// Every cell of the valid trials.
#[must_use]
pub fn cells(results: &Results) -> BTreeMap<CellKey, Cell> {
    let mut cells: BTreeMap<CellKey, Cell> = BTreeMap::new();
    for trial in results.trials().iter().filter(|trial| trial.is_valid()) {
        let seen = observe(trial, results.catalogue());
        for measure in seen.measures {
            let key = CellKey {
                experiment: results.key(trial),
                point: seen.point.clone(),
                figure: measure.name.into_owned(),
                device: trial.device.clone(),
            };
            let cell = cells.entry(key).or_insert_with_key(|key| Cell {
                key: key.clone(),
                unit: measure.unit,
                better: measure.better,
                runs: BTreeMap::new(),
                of: None,
            });
            cell.runs.insert(trial.run, measure.value);
            if let Some(of) = measure.of {
                cell.of = Some(cell.of.unwrap_or(0) + of);
            }
        }
    }
    cells
}

#[cfg(test)]
mod tests;
