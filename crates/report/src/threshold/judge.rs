//! Thresholds held against what was measured.

use std::collections::BTreeMap;

use record::Results;
use record::journal::{self, JournalError};
use record::{Better, Point};
use stats::{CONFIDENCE, Interval, mean_interval, ratio_interval};

use super::{Judgement, Limit, Threshold, Verdict};
use crate::analysis::RUNS_MIN;
use crate::compare::{Method, compare};
use crate::figures::{Cell, CellKey, cells, observe};
use crate::format::figure;

/// Holds each of `thresholds` against each figure of `results` that it is for.
///
/// # Errors
/// The run that a threshold takes for its baseline cannot be read.
pub fn judge(thresholds: &[Threshold], results: &Results) -> Result<Vec<Judgement>, JournalError> {
    let cells = cells(results);
    let mut judgements = Vec::new();
    for threshold in thresholds {
        let scope = Scope {
            threshold,
            results,
            cells: &cells,
        };
        let before = judgements.len();
        match &threshold.limit {
            Limit::Baseline {
                directory,
                regression,
            } => {
                let entries = journal::read(directory)?;
                scope.against_run(
                    &Results::new(entries, results.catalogue()),
                    *regression,
                    &mut judgements,
                );
            }
            _ => judgements.extend(scope.cells().map(|cell| scope.judge(cell))),
        }
        if judgements.len() == before {
            judgements.push(scope.nothing());
        }
    }
    Ok(judgements)
}

/// A threshold and what there is.
struct Scope<'a> {
    threshold: &'a Threshold,
    results: &'a Results,
    cells: &'a BTreeMap<CellKey, Cell>,
}

impl<'a> Scope<'a> {
    fn cells(&self) -> impl Iterator<Item = &'a Cell> {
        let fits = |cell: &&Cell| {
            let figure = self.threshold.figure.as_ref();
            self.takes(&cell.key.device, &cell.key.point)
                && self
                    .threshold
                    .experiment
                    .is_none_or(|one| one.name == cell.key.experiment.name())
                && figure.is_none_or(|figure| *figure == cell.key.figure)
        };
        self.cells.values().filter(fits)
    }

    /// A bare cable is judged only where it is named, and no device by itself.
    fn takes(&self, device: &str, point: &Point) -> bool {
        let devices = self.results.devices();
        let cable = devices
            .iter()
            .any(|one| one.calibration && one.name == device);
        let other = match &self.threshold.limit {
            Limit::Device { device, .. } => Some(device.as_str()),
            Limit::Number { .. } | Limit::Baseline { .. } => None,
        };
        let wanted = match &self.threshold.device {
            Some(wanted) => wanted == device,
            None => !cable && other != Some(device),
        };
        let value = |name: &str| point.get(name).map(ToString::to_string);
        let mut values = self.threshold.point.iter();
        wanted && values.all(|(name, wanted)| value(name).as_ref() == Some(wanted))
    }

    fn judge(&self, cell: &Cell) -> Judgement {
        match &self.threshold.limit {
            Limit::Number { side, number } => match cell.interval() {
                Some(interval) => {
                    let verdict = side.judge(&interval, *number);
                    self.told(&cell.key, verdict, interval, cell.unit.to_owned())
                }
                None => self.unknown(&cell.key, too_few(cell.runs.len())),
            },
            Limit::Device {
                side,
                factor,
                device,
            } => {
                let key = CellKey {
                    device: device.clone(),
                    ..cell.key.clone()
                };
                let Some(other) = self.cells.get(&key) else {
                    let known = self.results.devices();
                    let names = known.iter().map(|device| device.name.as_str());
                    let hint = record::nearest(device, names);
                    let reason = format!("{device} has no such figure at this point{hint}");
                    return self.unknown(&cell.key, reason);
                };
                let pairs = cell.paired(other);
                if pairs.len() < RUNS_MIN {
                    return self.unknown(&cell.key, too_few(pairs.len()));
                }
                if let Some(ratio) = ratio_interval(&pairs, CONFIDENCE) {
                    let verdict = side.judge(&ratio, *factor);
                    return self.told(&cell.key, verdict, ratio, format!("times {device}"));
                }
                // Where one is zero there is no ratio, but which is more can be told.
                let above: Vec<f64> = pairs
                    .iter()
                    .map(|(own, other)| own - factor * other)
                    .collect();
                let above = mean_interval(&above, CONFIDENCE).expect("there are three or more");
                let unit = format!("{} more than {factor} times {device}", cell.unit);
                self.told(&cell.key, side.judge(&above, 0.0), above, unit)
            }
            Limit::Baseline { .. } => unreachable!("runs are compared as a whole"),
        }
    }

    fn against_run(&self, before: &Results, regression: f64, judgements: &mut Vec<Judgement>) {
        let method = Method {
            margin: regression,
            paired: false,
        };
        let comparison = compare(before, self.results, method);
        for cell in self.cells().filter(|cell| cell.better != Better::Neither) {
            let row = comparison.rows.iter().find(|row| row.key == cell.key);
            let judgement = match row.map(|row| (row, row.change)) {
                None => self.unknown(&cell.key, "the baseline does not have it".to_owned()),
                Some((row, None)) => self.unknown(&cell.key, too_few(row.runs[0].min(row.runs[1]))),
                Some((row, Some(change))) => {
                    let interval = Interval {
                        mean: change.mean,
                        low: change.low,
                        high: change.high,
                        runs: row.runs[0].min(row.runs[1]),
                    };
                    let certain = change.p <= 1.0 - CONFIDENCE;
                    let verdict = match (row.may_be_worse, row.surely_worse && certain) {
                        (_, true) => Verdict::NotMet,
                        (false, _) => Verdict::Met,
                        (true, false) => Verdict::Inconclusive,
                    };
                    let unit = if change.relative {
                        "of the baseline more"
                    } else {
                        "more"
                    };
                    self.told(&cell.key, verdict, interval, unit.to_owned())
                }
            };
            judgements.push(judgement);
        }
    }

    fn told(&self, key: &CellKey, verdict: Verdict, interval: Interval, unit: String) -> Judgement {
        let [mean, low, high] = [interval.mean, interval.low, interval.high].map(figure);
        let said = format!("{mean} ({low} … {high}) {unit}, {} runs", interval.runs);
        Judgement {
            threshold: self.threshold.to_string(),
            cell: Some(key.clone()),
            verdict,
            interval: Some(interval),
            said: said.replace(" ,", ","),
        }
    }

    fn unknown(&self, key: &CellKey, reason: String) -> Judgement {
        Judgement {
            cell: Some(key.clone()),
            ..self.not_measured(reason)
        }
    }

    /// Why there is nothing: a trial's own words, if one fits.
    fn nothing(&self) -> Judgement {
        let experiment = self.threshold.experiment;
        let device = self.threshold.device.as_ref();
        let trials = self.results.trials().iter().filter(|trial| {
            experiment.is_none_or(|one| trial.experiment == one.name)
                && device.is_none_or(|one| *one == trial.device)
        });
        let reason = trials.map(|trial| {
            let flaw = trial.flaws.iter().find(|flaw| flaw.void);
            let absent = self.threshold.figure.as_ref().and_then(|name| {
                let seen = observe(trial, self.results.catalogue());
                self.takes(&trial.device, &seen.point)
                    .then(|| seen.absent.get(name).cloned())?
            });
            let reason = flaw.map(|flaw| flaw.reason.clone()).or(absent)?;
            Some(format!("{}: {reason}", trial.id))
        });
        let reason = reason.flatten().next();
        self.not_measured(reason.unwrap_or_else(|| "nothing of the kind was measured".to_owned()))
    }

    fn not_measured(&self, reason: String) -> Judgement {
        Judgement {
            threshold: self.threshold.to_string(),
            cell: None,
            verdict: Verdict::Inconclusive,
            interval: None,
            said: reason,
        }
    }
}

fn too_few(runs: usize) -> String {
    format!("{runs} runs, where {RUNS_MIN} at least make an interval")
}
