//! What is printed: one value of one column of one row.

use serde::Serialize;

/// A value.
#[derive(Serialize)]
pub(crate) struct Sample<'a> {
    /// The row, by the name that it was asked for.
    pub(crate) row: &'a str,
    /// The column.
    pub(crate) column: &'a str,
    /// In the row's unit.
    pub(crate) value: f64,
}

impl Sample<'_> {
    /// Prints it, as a line of JSON.
    pub(crate) fn print(&self) {
        println!(
            "{}",
            serde_json::to_string(self).expect("names and a number are JSON")
        );
    }
}
