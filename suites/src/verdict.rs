//! What came of a case.

use std::path::Path;
use std::{fs, io};

use serde::Deserialize;

/// A line that the judge writes.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct Verdict {
    /// The file of cases, with its whole path.
    pub(crate) file: String,
    /// The case's number in there, from 1.
    pub(crate) number: usize,
    /// Why it failed; none if it passed.
    pub(crate) reason: Option<String>,
    /// How long it took, in seconds.
    pub(crate) seconds: f64,
}

/// Reads the verdicts that are there by now. A line that is still being written is left out.
pub(crate) fn read(path: &Path) -> io::Result<Vec<Verdict>> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text?,
    };
    let lines = text.split_inclusive('\n');
    let whole = lines.filter(|line| line.ends_with('\n'));
    whole.map(|line| Ok(serde_json::from_str(line)?)).collect()
}
