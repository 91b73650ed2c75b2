//! Exports of results: a CSV table for each experiment, and a page of Markdown.

mod csv;
mod summary;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use record::Results;

pub use csv::csv;
pub use summary::{SUMMARY_LINES_MAX, summary};

/// Error in writing a file of a report.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the report {path}: {source}")]
pub struct WriteError {
    /// File.
    pub path: String,
    /// Reason.
    pub source: io::Error,
}

/// Writes a table for each experiment of `results` into `directory`, which is created if missing,
/// and returns the paths.
///
/// # Errors
/// A file cannot be written.
pub fn write_csv(results: &Results, directory: &Path) -> Result<Vec<PathBuf>, WriteError> {
    let tables = csv(results).into_iter();
    let files = tables.map(|(experiment, text)| {
        let path = directory.join(format!("{experiment}.csv"));
        write(&path, &text)
    });
    files.collect()
}

/// Writes the page of Markdown into `directory`, and returns its path.
///
/// # Errors
/// The file cannot be written.
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
