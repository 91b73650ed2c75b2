//! Verdicts on cases.

use std::path::Path;
use std::{fs, io};

use serde::Deserialize;

/// Line of the judge's output.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct Verdict {
    /// Path of the file of cases.
    pub(crate) file: String,
    /// Number of the case in the file, from 1.
    pub(crate) number: usize,
    /// Reason for the failure; `None` if the case passed.
    pub(crate) reason: Option<String>,
    /// Duration in seconds.
    pub(crate) seconds: f64,
}

/// Reads the verdicts so far, without an incomplete last line.
pub(crate) fn read(path: &Path) -> io::Result<Vec<Verdict>> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text?,
    };
    let lines = text.split_inclusive('\n');
    let whole = lines.filter(|line| line.ends_with('\n'));
    whole.map(|line| Ok(serde_json::from_str(line)?)).collect()
}
