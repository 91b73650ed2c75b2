//! What came of a test of the catalogue: numbers by name, histograms, series.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Figure, Point};

/// What came of a test, in a form that all experiments of the catalogue share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// The values of the experiment's parameters.
    pub point: Point,
    /// Figures by name, in the unit that the name ends with.
    pub figures: BTreeMap<String, f64>,
    /// Figures that have no value, each with the reason in words.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub absent: BTreeMap<String, String>,
    /// Distributions by name, in nanoseconds if not said otherwise: HdrHistogram's form V2,
    /// deflated, in base64.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub histograms: BTreeMap<String, String>,
    /// By which ways the instrument sent frames, and by which clock it stamped those that came, in
    /// words; none where it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instrument: Option<String>,
    /// Pairs by name, in the order of time as a rule.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub series: BTreeMap<String, Vec<[f64; 2]>>,
}

impl Reading {
    /// Nothing yet, of a test at `point`.
    #[must_use]
    pub fn at(point: &Point) -> Self {
        Self {
            point: point.clone(),
            ..Self::default()
        }
    }

    /// Adds a figure. One that is no number is absent, and says so.
    pub fn put(&mut self, name: &str, value: f64) {
        if value.is_finite() {
            self.figures.insert(name.to_owned(), value);
        } else {
            self.lack(name, "it came to no number");
        }
    }

    /// Says why a figure has no value.
    pub fn lack(&mut self, name: &str, reason: impl Into<String>) {
        self.absent.insert(name.to_owned(), reason.into());
    }

    /// Says why none of these figures has a value.
    pub fn lack_each<'a>(&mut self, names: impl IntoIterator<Item = &'a str>, reason: &str) {
        for name in names {
            self.lack(name, reason);
        }
    }

    /// A test at `point` that came to none of its figures, for one reason.
    #[must_use]
    pub fn lacking(point: &Point, figures: &[Figure], reason: &str) -> Self {
        let mut reading = Self::at(point);
        reading.lack_each(figures.iter().map(|figure| figure.name), reason);
        reading
    }
}
