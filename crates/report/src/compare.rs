//! Two runs held against each other: what changed, and how sure that is.
//!
//! Cells are compared that both runs have: the same scenario, point, figure and
//! device. Figures are compared by ratio, where all are positive, else by difference.
//! Many cells are looked at together, and of a hundred one is "certain at 99 %" by
//! chance: so a change is told only if it is certain among as many (Holm).

mod markdown;

use record::Better;
use record::Results;
use serde::Serialize;
use stats::{CONFIDENCE, Contrast, Margin, Verdict, contrast, holm, paired_contrast, verdict};

use crate::figures::{Cell, CellKey, cells};

pub use markdown::markdown;

/// How two runs are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Method {
    /// The change, as a share, that nobody cares for.
    pub margin: f64,
    /// Whether runs of the same number were done in turns, so that what both had in common
    /// falls out. Of two runs on different days they were not.
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

/// Reads a margin that is written as per cent, as `2%`.
///
/// # Errors
/// What is wanted.
pub fn read_margin(text: &str) -> Result<f64, String> {
    crate::format::read_percent(text)
        .ok_or_else(|| "per cent from 0 to 1000 are wanted, as 2%".to_owned())
}

/// What became of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// It is worse, for certain.
    Worse,
    /// It is better, for certain.
    Better,
    /// It is another, for certain, and neither is better.
    Different,
    /// It cannot be told: more runs, or quieter ones, would.
    Inconclusive,
    /// It is the same within the margin.
    Same,
}

impl Finding {
    /// Every finding, in the order of reports.
    pub const ALL: [Self; 5] = [
        Self::Worse,
        Self::Better,
        Self::Different,
        Self::Inconclusive,
        Self::Same,
    ];

    /// A word for it.
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

/// A figure in both runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// What it is of.
    #[serde(skip)]
    pub key: CellKey,
    /// The experiment.
    pub scenario: String,
    /// The device.
    pub device: String,
    /// The values of its parameters.
    pub point: String,
    /// The figure.
    pub figure: String,
    /// Its unit.
    pub unit: &'static str,
    /// The mean of the first run's.
    pub before: f64,
    /// The mean of the second run's.
    pub after: f64,
    /// How many runs it has in the first and in the second.
    pub runs: [usize; 2],
    /// The change.
    pub change: Option<Change>,
    /// What that says.
    pub finding: Finding,
    /// Whether it may still be worse by more than the margin, for all that is known.
    pub may_be_worse: bool,
    /// Whether it is worse by more than the margin, as far as this row alone tells.
    pub surely_worse: bool,
}

/// A change and what it may be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Whether the numbers are shares of what was before; else they are in the figure's unit.
    pub relative: bool,
    /// The change.
    pub mean: f64,
    /// The least that it may be, at 99 %.
    pub low: f64,
    /// The most.
    pub high: f64,
    /// The probability of one as great by chance, corrected for the number of rows.
    pub p: f64,
}

/// Two runs held against each other.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The share that nobody cares for.
    pub margin: f64,
    /// Whether runs were taken in pairs.
    pub paired: bool,
    /// The certain ones first, of those the greatest.
    pub rows: Vec<Row>,
    /// What only the first run has.
    pub only_before: usize,
    /// What only the second has.
    pub only_after: usize,
}

impl Comparison {
    /// All of it as JSON.
    #[must_use]
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("it is made of numbers and words")
    }

    /// How many rows have this finding.
    #[must_use]
    pub fn count(&self, finding: Finding) -> usize {
        let rows = self.rows.iter();
        rows.filter(|row| row.finding == finding).count()
    }

    /// Whether something is worse (yes), nothing is by more than the margin (no), or that
    /// cannot be told (none). Nothing in common tells nothing.
    #[must_use]
    pub fn regression(&self) -> Option<bool> {
        if self.count(Finding::Worse) > 0 {
            return Some(true);
        }
        let open = self.rows.is_empty() || self.rows.iter().any(|row| row.may_be_worse);
        (!open).then_some(false)
    }
}

/// What changed from `before` to `after`.
#[must_use]
pub fn compare(before: &Results, after: &Results, method: Method) -> Comparison {
    let (first, second) = (cells(before), cells(after));
    let both: Vec<(&Cell, &Cell)> = first
        .values()
        .filter_map(|cell| Some((cell, second.get(&cell.key)?)))
        .collect();
    let contrasts: Vec<Option<Measured>> = both
        .iter()
        .map(|(before, after)| Measured::of(before, after, method))
        .collect();
    let probability = |one: &Option<Measured>| one.as_ref().map_or(1.0, |one| one.contrast.p);
    let corrected = holm(&contrasts.iter().map(probability).collect::<Vec<_>>());
    let found = both.iter().zip(contrasts).zip(corrected);
    let mut rows: Vec<Row> = found
        .map(|((cells, measured), p)| row(*cells, measured, p))
        .collect();
    rows.sort_by(|a, b| {
        let size = |row: &Row| row.change.map_or(0.0, |change| change.mean.abs());
        let certainty = |row: &Row| row.change.map_or(1.0, |change| change.p);
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

/// A contrast and how it is to be read.
struct Measured {
    contrast: Contrast,
    margin: Margin,
    relative: bool,
}

impl Measured {
    /// None for too few runs.
    fn of(before: &Cell, after: &Cell, method: Method) -> Option<Self> {
        let positive = |cell: &Cell| cell.runs.values().all(|value| *value > 0.0);
        let relative = positive(before) && positive(after);
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

    fn finding(&self, better: Better, p: f64) -> Finding {
        let verdict = verdict(&self.contrast.interval, self.margin);
        let certain = p <= 1.0 - CONFIDENCE;
        match (verdict, better) {
            (Verdict::Equivalent, _) => Finding::Same,
            (Verdict::Inconclusive, _) => Finding::Inconclusive,
            (Verdict::Less | Verdict::More, _) if !certain => Finding::Inconclusive,
            (_, Better::Neither) => Finding::Different,
            (Verdict::Less, Better::Lower) | (Verdict::More, Better::Higher) => Finding::Better,
            (Verdict::More, Better::Lower) | (Verdict::Less, Better::Higher) => Finding::Worse,
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

    fn change(&self, p: f64) -> Change {
        let interval = self.contrast.interval;
        let told = |value: f64| if self.relative { value.exp_m1() } else { value };
        Change {
            relative: self.relative,
            mean: told(interval.mean),
            low: told(interval.low),
            high: told(interval.high),
            p,
        }
    }
}

fn row((before, after): (&Cell, &Cell), measured: Option<Measured>, p: f64) -> Row {
    let key = &before.key;
    let better = after.better;
    let finding = measured.as_ref().map(|one| one.finding(better, p));
    let may_be_worse = measured.as_ref().map(|one| one.may_be_worse(better));
    let surely_worse = measured
        .as_ref()
        .is_some_and(|one| one.surely_worse(better));
    Row {
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
        finding: finding.unwrap_or(Finding::Inconclusive),
        may_be_worse: may_be_worse.unwrap_or(better != Better::Neither),
        surely_worse,
    }
}

#[cfg(test)]
mod tests;
