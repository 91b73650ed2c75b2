//! What others have published, to stand beside what is measured here: other
//! hardware, other years, the same experiment. The figures are data, in
//! `data/published.json`.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The published results that this lab reproduces.
#[derive(Clone, Debug, Deserialize)]
pub struct Published {
    /// Round trip by match type.
    pub match_types: MatchTypes,
    /// TCP throughput.
    pub tcp_throughput: TcpThroughput,
    /// Tables to stand under those of the catalogue's experiments, by the key that a view names.
    pub tables: BTreeMap<String, PublishedTable>,
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
    /// For each column, both ends of what was published, in the figure's unit; none if the
    /// device could not do it.
    pub values: Vec<Option<[f64; 2]>>,
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
    use crate::MatchSet;

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
                let mut values = row.values.iter().flatten();
                assert!(
                    values.all(|[low, high]| low <= high),
                    "{key}: {}",
                    row.device
                );
            }
        }
    }
}
