//! Figures of trials, and their cells over runs: the form on which comparisons, thresholds and
//! exports work. It is the same for all experiments.

mod device;

use std::borrow::Cow;
use std::collections::BTreeMap;

use record::{Better, Catalogue, Description, ExperimentKey, Figure, Point, Results, Trial};
use stats::{CONFIDENCE, Interval, mean_interval, zero_events_bound};

use crate::analysis::RUNS_MIN;

/// Value of a figure in a trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    /// Name of the figure, unique in its experiment.
    pub name: Cow<'static, str>,
    /// Unit as printed; empty for a count or a share.
    pub unit: &'static str,
    /// Direction in which the figure is better.
    pub better: Better,
    /// Value.
    pub value: f64,
    /// Number of packets that a share is relative to.
    pub of: Option<u64>,
}

/// Figures of a trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation<'a> {
    /// Trial.
    pub trial: &'a Trial,
    /// Values of the experiment's parameters; empty if the trial has no reading.
    pub point: Point,
    /// Figures with a value.
    pub measures: Vec<Measure>,
    /// Figures without a value, each with the reason.
    pub absent: BTreeMap<String, String>,
}

/// Returns the figures that trials of an experiment can have: its own, and those of the device's
/// processes.
#[must_use]
pub fn declared(experiment: &Description) -> Vec<Figure> {
    let own = experiment.figures.iter().copied();
    own.chain(device::declared()).collect()
}

/// Returns the names of an experiment's parameters.
#[must_use]
pub fn parameters(experiment: &Description) -> Vec<&'static str> {
    let parameters = experiment.parameters.iter();
    parameters.map(|parameter| parameter.name).collect()
}

/// Returns the figures of `trial`, valid or not.
#[must_use]
pub fn observe(trial: &Trial, catalogue: Catalogue) -> Observation<'_> {
    let mut observation = Observation {
        trial,
        point: Point::default(),
        measures: Vec::new(),
        absent: BTreeMap::new(),
    };
    let Some(reading) = &trial.reading else {
        return observation;
    };
    let experiment = catalogue.find(trial.experiment.as_str());
    observation.point = reading.point.clone();
    observation.absent.clone_from(&reading.absent);
    let values = reading.figures.iter();
    observation.measures = values
        .map(|(name, value)| {
            let of = reading.of.get(name).copied();
            measure(experiment, name, *value, of)
        })
        .collect();
    device::observe(trial, &mut observation);
    observation
}

/// A figure that the experiment does not declare has neither unit nor direction.
fn measure(
    experiment: Option<&'static Description>,
    name: &str,
    value: f64,
    of: Option<u64>,
) -> Measure {
    let figure = experiment.and_then(|one| one.figure(name));
    Measure {
        name: Cow::Owned(name.to_owned()),
        unit: figure.map_or("", |figure| figure.unit),
        better: figure.map_or(Better::Neither, |figure| figure.better),
        value,
        of,
    }
}

/// Identity of a cell.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CellKey {
    /// Experiment.
    pub experiment: ExperimentKey,
    /// Values of its parameters.
    pub point: Point,
    /// Figure.
    pub figure: String,
    /// Device.
    pub device: String,
}

impl CellKey {
    /// Returns the values of the axes in one line.
    #[must_use]
    pub fn point_text(&self) -> String {
        match self.experiment.description() {
            Some(experiment) => self.point.label(experiment).replace('/', " "),
            None => {
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
    /// Identity.
    pub key: CellKey,
    /// Unit of the figure.
    pub unit: &'static str,
    /// Direction in which the figure is better.
    pub better: Better,
    /// Value of each run, by its number.
    pub runs: BTreeMap<u32, f64>,
    /// Number of packets that a share is relative to, in all runs together.
    pub of: Option<u64>,
}

impl Cell {
    /// Returns the values in the order of runs.
    #[must_use]
    pub fn values(&self) -> Vec<f64> {
        self.runs.values().copied().collect()
    }

    /// Returns the mean.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.runs.values().sum::<f64>() / self.runs.len() as f64
    }

    /// Returns the mean and its interval over runs; `None` for fewer than three runs. The interval
    /// is not negative if no run is. A share that is zero in all runs has an upper end above zero
    /// ([`zero_events_bound`]).
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

    /// Returns the values of `self` and of `other` in the runs that both have.
    #[must_use]
    pub fn paired(&self, other: &Self) -> Vec<(f64, f64)> {
        let own = self.runs.iter();
        own.filter_map(|(run, value)| Some((*value, *other.runs.get(run)?)))
            .collect()
    }
}

/// Returns the cells of all valid trials.
#[must_use]
pub fn cells(results: &Results) -> BTreeMap<CellKey, Cell> {
    let mut cells: BTreeMap<CellKey, Cell> = BTreeMap::new();
    for trial in results.trials().iter().filter(|trial| trial.is_valid()) {
        let observation = observe(trial, results.catalogue());
        for measure in observation.measures {
            let key = CellKey {
                experiment: results.key(trial),
                point: observation.point.clone(),
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
