//! Published results of the same experiments on other hardware, for comparison. They are data, in
//! `data/published.json`.

mod range;

use std::collections::BTreeMap;

use serde::Deserialize;

pub use range::Range;

/// Published results of the experiments that the lab reproduces.
#[derive(Clone, Debug, Deserialize)]
pub struct PublishedData {
    /// Rows below tables of experiments, by the key in a view.
    pub tables: BTreeMap<String, PublishedTable>,
    /// Curves in drawings of an experiment, by its name.
    pub curves: BTreeMap<String, PublishedCurves>,
    /// Single results below an experiment, by its name.
    pub results: BTreeMap<String, PublishedResults>,
    /// Devices that were measured.
    pub devices: Vec<PublishedDevice>,
}

/// Published curves of an experiment.
#[derive(Clone, Debug, Deserialize)]
pub struct PublishedCurves {
    /// Source, with the method.
    pub source: String,
    /// Differences from the measurements of this lab.
    pub note: String,
    /// Curves.
    pub curves: Vec<PublishedCurve>,
}

/// Curve, as read from a published figure.
#[derive(Clone, Debug, Deserialize)]
pub struct PublishedCurve {
    /// Device.
    pub device: String,
    /// Figures of the experiment that it is comparable with.
    pub figures: Vec<String>,
    /// Parameter on the horizontal axis.
    pub along: String,
    /// Values.
    pub spans: Vec<PublishedSpan>,
    /// Values of the parameter from which on the curve changes.
    #[serde(default)]
    pub breaks: Vec<f64>,
}

/// Value between two values of a parameter.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct PublishedSpan {
    /// Both ends, in the parameter's unit.
    pub at: [f64; 2],
    /// Value between them, in the figure's unit.
    pub is: Range,
}

/// Single results of an experiment.
#[derive(Clone, Debug, Deserialize)]
pub struct PublishedResults {
    /// Source, with the method.
    pub source: String,
    /// Differences from the measurements of this lab.
    pub note: String,
    /// Results.
    pub rows: Vec<PublishedResult>,
}

/// Result as a number or in words.
#[derive(Clone, Debug, Deserialize)]
pub struct PublishedResult {
    /// Device.
    pub device: String,
    /// Quantity.
    pub what: String,
    /// Number; `None` if the publication has words only.
    pub range: Option<Range>,
    /// Unit as printed.
    #[serde(default)]
    pub unit: String,
    /// Words, in place of a number.
    pub words: Option<String>,
}

/// Device of a publication.
#[derive(Clone, Debug, Deserialize)]
pub struct PublishedDevice {
    /// Device.
    pub device: String,
    /// Publication.
    pub source: String,
    /// Software that ran on it.
    pub software: String,
    /// `hardware` or `software`: how it forwards.
    pub form: String,
    /// Number of ports.
    pub ports: Option<u32>,
    /// Capacity of all ports together in Gbit/s, per direction.
    pub gbit: Option<f64>,
    /// Processor.
    pub processor: Option<String>,
    /// Price in US dollars.
    pub usd: Option<f64>,
}

impl PublishedDevice {
    /// Returns the price in US dollars per Gbit/s of its ports; `None` without a price.
    #[must_use]
    pub fn usd_per_gbit(&self) -> Option<f64> {
        Some(self.usd? / self.gbit?)
    }
}

/// Table of one figure, with a column for each value of a parameter.
#[derive(Clone, Debug, Deserialize)]
pub struct PublishedTable {
    /// Source, with the method.
    pub source: String,
    /// Differences from the measurements of this lab.
    pub note: String,
    /// Values of other parameters, as text; the table applies to no other values.
    #[serde(default)]
    pub at: BTreeMap<String, String>,
    /// Values of the parameter, by the names in this lab.
    pub columns: Vec<String>,
    /// Rows.
    pub rows: Vec<PublishedRow>,
}

/// Device in a [`PublishedTable`].
#[derive(Clone, Debug, Deserialize)]
pub struct PublishedRow {
    /// Device.
    pub device: String,
    /// `hardware` or `software`: how it forwards.
    pub form: String,
    /// Value in each column, in the figure's unit; `None` if the device does not support it.
    pub values: Vec<Option<Range>>,
}

/// Returns the table of a key; `None` for the empty key.
///
/// # Panics
/// There is no such table. A test of the catalogue checks the keys.
pub(crate) fn table(key: &str) -> Option<PublishedTable> {
    let table = published().tables.remove(key);
    assert!(table.is_some() || key.is_empty(), "no table '{key}'");
    table
}

/// Returns the published results.
///
/// # Panics
/// Never: the data is part of the program, and a test parses it.
#[must_use]
pub fn published() -> PublishedData {
    serde_json::from_str(include_str!("../data/published.json")).expect("a test parses the data")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_a_value_for_each_column() {
        for (key, table) in published().tables {
            for row in &table.rows {
                assert_eq!(
                    row.values.len(),
                    table.columns.len(),
                    "{key}: {}",
                    row.device
                );
            }
        }
    }

    #[test]
    fn results_are_a_number_or_words() {
        for (name, results) in published().results {
            for row in &results.rows {
                let ways = usize::from(row.range.is_some()) + usize::from(row.words.is_some());
                assert_eq!(ways, 1, "{name}: {} {}", row.device, row.what);
            }
        }
    }

    #[test]
    fn price_per_gigabit_needs_price_and_ports() {
        let devices = published().devices;
        let price = |name: &str| {
            let device = devices.iter().find(|one| one.device == name);
            device.and_then(PublishedDevice::usd_per_gbit)
        };
        let rounded = |name: &str| price(name).map(|price| (price * 100.0).round() / 100.0);
        assert_eq!(rounded("vSDNBox, generation 1"), Some(92.0));
        assert_eq!(rounded("vSDNBox, generation 2"), Some(29.28));
        assert_eq!(rounded("Pica8 P-3297"), Some(117.9));
        assert_eq!(rounded("NetFPGA 1G"), None);
    }
}
