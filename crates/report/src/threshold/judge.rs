//! Verdicts on thresholds.

use std::collections::BTreeMap;

use record::journal::{self, JournalError};
use record::{Better, Point, Results};
use stats::{CONFIDENCE, Interval, mean_interval, ratio_interval};

use super::{Judgement, Limit, Threshold, Verdict};
use crate::analysis::RUNS_MIN;
use crate::compare::{Method, compare};
use crate::figures::{Cell, CellKey, cells, observe};
use crate::format::figure;

/// Judges each of `thresholds` on each figure of `results` that it applies to.
///
/// # Errors
/// The baseline of a threshold cannot be read.
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
                scope.judge_against(
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

/// Threshold and results.
struct Scope<'a> {
    threshold: &'a Threshold,
    results: &'a Results,
    cells: &'a BTreeMap<CellKey, Cell>,
}

impl<'a> Scope<'a> {
    fn cells(&self) -> impl Iterator<Item = &'a Cell> {
        let fits = |cell: &&Cell| {
            let figure = self.threshold.figure.as_ref();
            self.applies_to(&cell.key.device, &cell.key.point)
                && self
                    .threshold
                    .experiment
                    .is_none_or(|one| one.name == cell.key.experiment.name())
                && figure.is_none_or(|figure| *figure == cell.key.figure)
        };
        self.cells.values().filter(fits)
    }

    /// Returns true if the threshold applies to a device at a point: to the bare link only if it is
    /// named, and never to the device of the limit.
    fn applies_to(&self, device: &str, point: &Point) -> bool {
        let devices = self.results.devices();
        let is_link = devices
            .iter()
            .any(|one| one.calibration && one.name == device);
        let other = match &self.threshold.limit {
            Limit::Device { device, .. } => Some(device.as_str()),
            Limit::Number { .. } | Limit::Baseline { .. } => None,
        };
        let is_device = match &self.threshold.device {
            Some(named) => named == device,
            None => !is_link && other != Some(device),
        };
        let value = |name: &str| point.get(name).map(ToString::to_string);
        let mut values = self.threshold.point.iter();
        is_device && values.all(|(name, required)| value(name).as_ref() == Some(required))
    }

    fn judge(&self, cell: &Cell) -> Judgement {
        match &self.threshold.limit {
            Limit::Number { side, number } => match cell.interval() {
                Some(interval) => {
                    let verdict = side.judge(&interval, *number);
                    self.judged(&cell.key, verdict, interval, cell.unit.to_owned())
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
                    return self.judged(&cell.key, verdict, ratio, format!("× {device}"));
                }
                // There is no ratio to zero, but a difference.
                let above: Vec<f64> = pairs
                    .iter()
                    .map(|(own, other)| own - factor * other)
                    .collect();
                let above =
                    mean_interval(&above, CONFIDENCE).expect("there are at least three runs");
                let unit = format!("{} above {factor} × {device}", cell.unit);
                self.judged(&cell.key, side.judge(&above, 0.0), above, unit)
            }
            Limit::Baseline { .. } => unreachable!("runs are compared as a whole"),
        }
    }

    fn judge_against(&self, before: &Results, regression: f64, judgements: &mut Vec<Judgement>) {
        let method = Method {
            margin: regression,
            paired: false,
        };
        let comparison = compare(before, self.results, method);
        for cell in self.cells().filter(|cell| cell.better != Better::Neither) {
            let row = comparison.rows.iter().find(|row| row.key == cell.key);
            let judgement = match row.map(|row| (row, row.change)) {
                None => self.unknown(&cell.key, "the baseline has no such figure".to_owned()),
                Some((row, None)) => self.unknown(&cell.key, too_few(row.runs[0].min(row.runs[1]))),
                Some((row, Some(change))) => {
                    let interval = Interval {
                        mean: change.mean,
                        low: change.low,
                        high: change.high,
                        runs: row.runs[0].min(row.runs[1]),
                    };
                    let is_certain = change.p <= 1.0 - CONFIDENCE;
                    let verdict = match (row.may_be_worse, row.surely_worse && is_certain) {
                        (_, true) => Verdict::NotMet,
                        (false, _) => Verdict::Met,
                        (true, false) => Verdict::Inconclusive,
                    };
                    let unit = if change.relative {
                        "of the baseline, as a change"
                    } else {
                        "as a change"
                    };
                    self.judged(&cell.key, verdict, interval, unit.to_owned())
                }
            };
            judgements.push(judgement);
        }
    }

    fn judged(
        &self,
        key: &CellKey,
        verdict: Verdict,
        interval: Interval,
        unit: String,
    ) -> Judgement {
        let [mean, low, high] = [interval.mean, interval.low, interval.high].map(figure);
        let measured = format!("{mean} ({low} … {high}) {unit}, {} runs", interval.runs);
        Judgement {
            threshold: self.threshold.to_string(),
            cell: Some(key.clone()),
            verdict,
            interval: Some(interval),
            measured: measured.replace(" ,", ","),
        }
    }

    fn unknown(&self, key: &CellKey, reason: String) -> Judgement {
        Judgement {
            cell: Some(key.clone()),
            ..self.not_measured(reason)
        }
    }

    /// Returns the judgement without a cell, with the recorded reason if there is one.
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
                let observation = observe(trial, self.results.catalogue());
                self.applies_to(&trial.device, &observation.point)
                    .then(|| observation.absent.get(name).cloned())?
            });
            let reason = flaw.map(|flaw| flaw.reason.clone()).or(absent)?;
            Some(format!("{}: {reason}", trial.id))
        });
        let reason = reason.flatten().next();
        self.not_measured(reason.unwrap_or_else(|| "not measured".to_owned()))
    }

    fn not_measured(&self, reason: String) -> Judgement {
        Judgement {
            threshold: self.threshold.to_string(),
            cell: None,
            verdict: Verdict::Inconclusive,
            interval: None,
            measured: reason,
        }
    }
}

fn too_few(runs: usize) -> String {
    format!("{runs} runs; an interval needs {RUNS_MIN}")
}
