//! Comparison of two runs.
//!
//! Compared are the cells that both runs have: the same experiment, point, figure and device.
//! Positive figures are compared by ratio, others by difference. With a hundred cells, one is
//! significant at 99 % by chance; therefore a change counts only if it is significant after Holm's
//! correction for multiple comparisons.

mod markdown;

use record::{Better, Results};
use serde::Serialize;
use stats::{CONFIDENCE, Contrast, Margin, Verdict, contrast, holm, paired_contrast, verdict};

use crate::figures::{Cell, CellKey, cells};

pub use markdown::markdown;

/// Method of a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Method {
    /// Greatest change, as a share, that counts as equal.
    pub margin: f64,
    /// True if runs of the same number were measured in turns, so that common effects cancel.
    pub paired: bool,
}

impl Default for Method {
    fn default() -> Self {
        Self {
            margin: 0.02,
            paired: false,
        }
    }
}

/// Parses a margin in per cent, as `2%`.
///
/// # Errors
/// The text is not a percentage.
pub fn read_margin(text: &str) -> Result<f64, String> {
    crate::format::read_percent(text)
        .ok_or_else(|| "expected a percentage from 0 to 1000, as 2%".to_owned())
}

/// Result of the comparison of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeFinding {
    /// Significantly worse.
    Worse,
    /// Significantly better.
    Better,
    /// Significantly different, where neither direction is better.
    Different,
    /// Neither different nor equal: more runs are needed.
    Inconclusive,
    /// Equal within the margin.
    Same,
}

impl ChangeFinding {
    /// All findings, in the order of reports.
    pub const ALL: [Self; 5] = [
        Self::Worse,
        Self::Better,
        Self::Different,
        Self::Inconclusive,
        Self::Same,
    ];

    /// Returns the finding in words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Worse => "worse",
            Self::Better => "better",
            Self::Different => "different",
            Self::Inconclusive => "?",
            Self::Same => "~",
        }
    }
}

/// Figure in both runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparisonRow {
    /// Cell.
    #[serde(skip)]
    pub key: CellKey,
    /// Experiment.
    pub scenario: String,
    /// Device.
    pub device: String,
    /// Values of the parameters.
    pub point: String,
    /// Figure.
    pub figure: String,
    /// Unit.
    pub unit: &'static str,
    /// Mean of the first run.
    pub before: f64,
    /// Mean of the second run.
    pub after: f64,
    /// Numbers of runs in the first and in the second.
    pub runs: [usize; 2],
    /// Change; `None` for too few runs.
    pub change: Option<FigureChange>,
    /// Finding.
    pub finding: ChangeFinding,
    /// True if the interval does not exclude a regression above the margin.
    pub may_be_worse: bool,
    /// True if the whole interval is a regression above the margin, without the correction.
    pub surely_worse: bool,
}

/// Change with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FigureChange {
    /// True if the numbers are shares of the first run's figure; otherwise they are in its unit.
    pub relative: bool,
    /// Mean change.
    pub mean: f64,
    /// Lower end of the 99 % interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Probability of such a change if the runs were equal, after Holm's correction.
    pub p: f64,
}

/// Comparison of two runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Greatest change, as a share, that counts as equal.
    pub margin: f64,
    /// True if runs were compared in pairs.
    pub paired: bool,
    /// Rows, the significant and greatest changes first.
    pub rows: Vec<ComparisonRow>,
    /// Number of cells of the first run only.
    pub only_before: usize,
    /// Number of cells of the second run only.
    pub only_after: usize,
}

impl Comparison {
    /// Returns the comparison as JSON.
    #[must_use]
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("numbers and words can be serialized")
    }

    /// Returns the number of rows with a finding.
    #[must_use]
    pub fn count(&self, finding: ChangeFinding) -> usize {
        let rows = self.rows.iter();
        rows.filter(|row| row.finding == finding).count()
    }

    /// Returns true if a figure is worse, false if none is by more than the margin, and `None` if
    /// the runs do not suffice, or have no cells in common.
    #[must_use]
    pub fn regression(&self) -> Option<bool> {
        if self.count(ChangeFinding::Worse) > 0 {
            return Some(true);
        }
        let is_open = self.rows.is_empty() || self.rows.iter().any(|row| row.may_be_worse);
        (!is_open).then_some(false)
    }
}

/// Compares the run `after` with the run `before`.
#[must_use]
pub fn compare(before: &Results, after: &Results, method: Method) -> Comparison {
    let (first, second) = (cells(before), cells(after));
    let both: Vec<(&Cell, &Cell)> = first
        .values()
        .filter_map(|cell| Some((cell, second.get(&cell.key)?)))
        .collect();
    let contrasts: Vec<Option<CellContrast>> = both
        .iter()
        .map(|(before, after)| CellContrast::of(before, after, method))
        .collect();
    let probability = |one: &Option<CellContrast>| one.as_ref().map_or(1.0, |one| one.contrast.p);
    let corrected = holm(&contrasts.iter().map(probability).collect::<Vec<_>>());
    let found = both.iter().zip(contrasts).zip(corrected);
    let mut rows: Vec<ComparisonRow> = found
        .map(|((cells, measured), p)| row(*cells, measured, p))
        .collect();
    rows.sort_by(|a, b| {
        let size = |row: &ComparisonRow| row.change.map_or(0.0, |change| change.mean.abs());
        let certainty = |row: &ComparisonRow| row.change.map_or(1.0, |change| change.p);
        a.finding
            .cmp(&b.finding)
            .then(certainty(a).total_cmp(&certainty(b)))
            .then(size(b).total_cmp(&size(a)))
    });
    let missing = |keys: &[&CellKey], other: &dyn Fn(&CellKey) -> bool| {
        keys.iter().filter(|key| !other(key)).count()
    };
    Comparison {
        margin: method.margin,
        paired: method.paired,
        only_before: missing(&first.keys().collect::<Vec<_>>(), &|key| {
            second.contains_key(key)
        }),
        only_after: missing(&second.keys().collect::<Vec<_>>(), &|key| {
            first.contains_key(key)
        }),
        rows,
    }
}

/// Contrast with its margin.
struct CellContrast {
    contrast: Contrast,
    margin: Margin,
    relative: bool,
}

impl CellContrast {
    /// Returns the contrast; `None` for too few runs.
    fn of(before: &Cell, after: &Cell, method: Method) -> Option<Self> {
        let is_positive = |cell: &Cell| cell.runs.values().all(|value| *value > 0.0);
        let relative = is_positive(before) && is_positive(after);
        let scaled = |value: f64| if relative { value.ln() } else { value };
        let contrast = if method.paired {
            let pairs = before.paired(after).into_iter();
            let pairs: Vec<(f64, f64)> = pairs.map(|(a, b)| (scaled(a), scaled(b))).collect();
            paired_contrast(&pairs, CONFIDENCE)
        } else {
            let values = |cell: &Cell| cell.values().into_iter().map(scaled).collect::<Vec<_>>();
            contrast(&values(before), &values(after), CONFIDENCE)
        };
        let margin = if relative {
            Margin::of_ratio(method.margin)
        } else {
            Margin::of_difference(method.margin * before.mean().abs())
        };
        contrast
            .filter(|found| found.interval.runs >= crate::analysis::RUNS_MIN)
            .map(|contrast| Self {
                contrast,
                margin,
                relative,
            })
    }

    fn finding(&self, better: Better, p: f64) -> ChangeFinding {
        let verdict = verdict(&self.contrast.interval, self.margin);
        let is_certain = p <= 1.0 - CONFIDENCE;
        match (verdict, better) {
            (Verdict::Equivalent, _) => ChangeFinding::Same,
            (Verdict::Inconclusive, _) => ChangeFinding::Inconclusive,
            (Verdict::Less | Verdict::More, _) if !is_certain => ChangeFinding::Inconclusive,
            (_, Better::Neither) => ChangeFinding::Different,
            (Verdict::Less, Better::Lower) | (Verdict::More, Better::Higher) => {
                ChangeFinding::Better
            }
            (Verdict::More, Better::Lower) | (Verdict::Less, Better::Higher) => {
                ChangeFinding::Worse
            }
        }
    }

    fn may_be_worse(&self, better: Better) -> bool {
        match better {
            Better::Lower => self.contrast.interval.high > self.margin.high,
            Better::Higher => self.contrast.interval.low < self.margin.low,
            Better::Neither => false,
        }
    }

    fn surely_worse(&self, better: Better) -> bool {
        match better {
            Better::Lower => self.contrast.interval.low > self.margin.high,
            Better::Higher => self.contrast.interval.high < self.margin.low,
            Better::Neither => false,
        }
    }

    fn change(&self, p: f64) -> FigureChange {
        let interval = self.contrast.interval;
        let shown = |value: f64| if self.relative { value.exp_m1() } else { value };
        FigureChange {
            relative: self.relative,
            mean: shown(interval.mean),
            low: shown(interval.low),
            high: shown(interval.high),
            p,
        }
    }
}

fn row((before, after): (&Cell, &Cell), measured: Option<CellContrast>, p: f64) -> ComparisonRow {
    let key = &before.key;
    let better = after.better;
    let finding = measured.as_ref().map(|one| one.finding(better, p));
    let may_be_worse = measured.as_ref().map(|one| one.may_be_worse(better));
    let surely_worse = measured
        .as_ref()
        .is_some_and(|one| one.surely_worse(better));
    ComparisonRow {
        key: key.clone(),
        scenario: key.experiment.name().to_owned(),
        device: key.device.clone(),
        point: key.point_text(),
        figure: key.figure.clone(),
        unit: after.unit,
        before: before.mean(),
        after: after.mean(),
        runs: [before.runs.len(), after.runs.len()],
        change: measured.map(|one| one.change(p)),
        finding: finding.unwrap_or(ChangeFinding::Inconclusive),
        may_be_worse: may_be_worse.unwrap_or(better != Better::Neither),
        surely_worse,
    }
}

#[cfg(test)]
mod tests;
