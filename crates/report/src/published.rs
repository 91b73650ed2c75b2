//! What others have published, to stand beside what is measured here: other
//! hardware, other years, the same experiment. The figures are data, in
//! `data/published.json`.

mod range;

use std::collections::BTreeMap;

use serde::Deserialize;

pub use range::Range;

/// The published results that this lab reproduces.
#[derive(Clone, Debug, Deserialize)]
pub struct Published {
    /// Round trip by match type.
    pub match_types: MatchTypes,
    /// TCP throughput.
    pub tcp_throughput: TcpThroughput,
    /// Tables to stand under those of the catalogue's experiments, by the key that a view names.
    pub tables: BTreeMap<String, PublishedTable>,
    /// Curves to stand in the drawings of an experiment, by its name.
    pub curves: BTreeMap<String, PublishedCurves>,
    /// Single results to stand under an experiment, by its name.
    pub results: BTreeMap<String, PublishedResults>,
    /// The devices that were measured.
    pub devices: Vec<PublishedDevice>,
}

/// What was drawn against a parameter of an experiment.
#[derive(Clone, Debug, Deserialize)]
pub struct PublishedCurves {
    /// Who measured, and how.
    pub source: String,
    /// What to know before comparing.
    pub note: String,
    /// The curves.
    pub curves: Vec<PublishedCurve>,
}

/// A curve as far as it could be read off.
#[derive(Clone, Debug, Deserialize)]
pub struct PublishedCurve {
    /// The device.
    pub device: String,
    /// The experiment's figures that it may stand beside.
    pub figures: Vec<String>,
    /// The parameter that it goes along.
    pub along: String,
    /// Where it is.
    pub spans: Vec<PublishedSpan>,
    /// Values of the parameter from which on it is another than before.
    #[serde(default)]
    pub breaks: Vec<f64>,
}

/// What a figure is between two values of a parameter.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct PublishedSpan {
    /// From where to where, in the parameter's unit.
    pub at: [f64; 2],
    /// What it is there, in the figure's unit.
    pub is: Range,
}

/// Single results of an experiment.
#[derive(Clone, Debug, Deserialize)]
pub struct PublishedResults {
    /// Who measured, and how.
    pub source: String,
    /// What to know before comparing.
    pub note: String,
    /// The results.
    pub rows: Vec<PublishedResult>,
}

/// A result as a number or in words.
#[derive(Clone, Debug, Deserialize)]
pub struct PublishedResult {
    /// The device.
    pub device: String,
    /// What it is of.
    pub what: String,
    /// The number; none if it was told in words alone.
    pub range: Option<Range>,
    /// Its unit as printed.
    #[serde(default)]
    pub unit: String,
    /// The words.
    pub told: Option<String>,
}

/// A device that others measured.
#[derive(Clone, Debug, Deserialize)]
pub struct PublishedDevice {
    /// The device.
    pub device: String,
    /// Where it is described.
    pub source: String,
    /// What ran on it.
    pub software: String,
    /// Whether it forwards in hardware or in software.
    pub form: String,
    /// How many ports it has.
    pub ports: Option<u32>,
    /// What all ports carry together in Gbit/s, each way.
    pub gbit: Option<f64>,
    /// Its processor.
    pub processor: Option<String>,
    /// What it cost, in US dollars.
    pub usd: Option<f64>,
}

impl PublishedDevice {
    /// US dollars for each Gbit/s of its ports; none without a price.
    #[must_use]
    pub fn usd_per_gbit(&self) -> Option<f64> {
        Some(self.usd? / self.gbit?)
    }
}

/// A table of one figure, a column for each value of a parameter.
#[derive(Clone, Debug, Deserialize)]
pub struct PublishedTable {
    /// Who measured, and how.
    pub source: String,
    /// What to know before comparing.
    pub note: String,
    /// The values of the parameter, by the names that this lab gives them.
    pub columns: Vec<String>,
    /// The devices.
    pub rows: Vec<PublishedRow>,
}

/// One device of [`PublishedTable`].
#[derive(Clone, Debug, Deserialize)]
pub struct PublishedRow {
    /// The device.
    pub device: String,
    /// What kind of device it is.
    pub form: String,
    /// For each column what was published, in the figure's unit; none if the device could not
    /// do it.
    pub values: Vec<Option<Range>>,
}

/// The table of that key; none for the empty key.
///
/// # Panics
/// There is no such table: the catalogue's test looks after that.
pub(crate) fn table(key: &str) -> Option<PublishedTable> {
    let table = published().tables.remove(key);
    assert!(table.is_some() || key.is_empty(), "no table '{key}'");
    table
}

/// A table of mean round trips, a column for each match type.
#[derive(Clone, Debug, Deserialize)]
pub struct MatchTypes {
    /// Who measured, and how.
    pub source: String,
    /// What to know before comparing.
    pub note: String,
    /// The frames it was measured with.
    pub frame_bytes: u16,
    /// The match types, by the names that this lab gives them.
    pub columns: Vec<String>,
    /// The devices.
    pub rows: Vec<MatchTypesRow>,
}

/// One device of [`MatchTypes`].
#[derive(Clone, Debug, Deserialize)]
pub struct MatchTypesRow {
    /// The device.
    pub device: String,
    /// Whether it forwards in hardware or in software.
    pub form: String,
    /// For each column, both ends of the interval of the mean, in milliseconds.
    pub intervals_ms: Vec<[f64; 2]>,
}

/// A table of TCP throughputs.
#[derive(Clone, Debug, Deserialize)]
pub struct TcpThroughput {
    /// Who measured, and how.
    pub source: String,
    /// What to know before comparing.
    pub note: String,
    /// The data paths.
    pub rows: Vec<TcpThroughputRow>,
}

/// One data path of [`TcpThroughput`].
#[derive(Clone, Debug, Deserialize)]
pub struct TcpThroughputRow {
    /// The data path.
    pub device: String,
    /// Throughput in Mbit/s.
    pub mbit_per_s: f64,
    /// Per cent of one core that the switch's process used; none if not told.
    pub cpu_percent: Option<f64>,
}

/// The published results.
///
/// # Panics
/// Never: the data is part of the program and read by a test.
#[must_use]
pub fn published() -> Published {
    serde_json::from_str(include_str!("../data/published.json"))
        .expect("the data is part of the program")
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::MatchSet;

    #[test]
    fn every_row_has_an_interval_for_every_match_type() {
        let table = published().match_types;
        assert_eq!(table.columns, MatchSet::ALL.map(MatchSet::name));
        for row in &table.rows {
            assert_eq!(
                row.intervals_ms.len(),
                table.columns.len(),
                "{}",
                row.device
            );
            assert!(row.intervals_ms.iter().all(|[low, high]| low <= high));
        }
    }

    #[test]
    fn every_row_of_a_table_has_as_many_values_as_columns() {
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
    fn every_result_is_told_once() {
        for (name, results) in published().results {
            for row in &results.rows {
                let ways = usize::from(row.range.is_some()) + usize::from(row.told.is_some());
                assert_eq!(ways, 1, "{name}: {} {}", row.device, row.what);
            }
        }
    }

    #[test]
    fn a_gigabit_has_a_price_where_device_and_ports_are_told() {
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
