//! Results in forms that other programs read: tables of comma-separated values, one for each
//! scenario, and a page of Markdown. Both are functions of the records alone.

mod csv;
mod summary;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use record::Results;

pub use csv::csv;
pub use summary::{SUMMARY_LINES_MAX, summary};

/// A file of a report that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the report {path}: {source}")]
pub struct WriteError {
    /// The file.
    pub path: String,
    /// The reason.
    pub source: io::Error,
}

/// Writes a table for each scenario of `results` into `directory`, which is made if it is
/// not there, and tells their names.
///
/// # Errors
/// One cannot be written.
pub fn write_csv(results: &Results, directory: &Path) -> Result<Vec<PathBuf>, WriteError> {
    let tables = csv(results).into_iter();
    let files = tables.map(|(scenario, text)| {
        let path = directory.join(format!("{scenario}.csv"));
        write(&path, &text)
    });
    files.collect()
}

/// Writes the page of Markdown into `directory`, and tells its name.
///
/// # Errors
/// It cannot be written.
pub fn write_markdown(results: &Results, directory: &Path) -> Result<PathBuf, WriteError> {
    write(&directory.join("report.md"), &summary(results))
}

fn write(path: &Path, text: &str) -> Result<PathBuf, WriteError> {
    let write = || -> io::Result<()> {
        fs::create_dir_all(path.parent().unwrap_or_else(|| Path::new(".")))?;
        fs::write(path, text)
    };
    write().map_err(|source| WriteError {
        path: path.display().to_string(),
        source,
    })?;
    Ok(path.to_owned())
}

#[cfg(test)]
mod tests;
