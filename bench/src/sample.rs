//! The output: one value of one column of one row.

use serde::Serialize;

/// A value.
#[derive(Serialize)]
pub(crate) struct Sample<'a> {
    /// The name of the row.
    pub(crate) row: &'a str,
    /// The name of the column.
    pub(crate) column: &'a str,
    /// The value in the row's unit.
    pub(crate) value: f64,
}

impl Sample<'_> {
    /// Prints the sample as a line of JSON.
    pub(crate) fn print(&self) {
        println!(
            "{}",
            serde_json::to_string(self).expect("names and a number are JSON")
        );
    }
}
