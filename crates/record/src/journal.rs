//! The file of records, to which a run appends.
//!
//! Each line is on the disk before the next trial begins. A line that a crash truncated is ignored
//! and overwritten, so that an interrupted run keeps its completed trials.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;

use serde_json::Value as Json;

use crate::legacy::{self, Converter};
use crate::{Entry, SCHEMA};

/// Name of the file in the directory of a run.
pub const RECORDS: &str = "records.jsonl";

/// Unusable file of records.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The system failed.
    #[error("cannot use {path}: {source}")]
    System {
        /// File.
        path: String,
        /// Cause.
        source: io::Error,
    },
    /// The disk is full.
    #[error(
        "cannot write {path}: {source}; completed trials are kept: free some space, and continue with --resume"
    )]
    Full {
        /// File.
        path: String,
        /// Cause.
        source: io::Error,
    },
    /// A line is not a record.
    #[error("{path}, line {line}: {reason}")]
    Unreadable {
        /// File.
        path: String,
        /// Line number, from 1.
        line: usize,
        /// Reason.
        reason: String,
    },
}

/// Open file of records.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: String,
}

impl Journal {
    /// Creates a new file in `directory`.
    ///
    /// # Errors
    /// The file exists, or cannot be created.
    pub fn create(directory: &Path) -> Result<Self, JournalError> {
        let path = directory.join(RECORDS);
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        let path = path.display().to_string();
        match file {
            Ok(file) => Ok(Self { file, path }),
            Err(source) => Err(JournalError::System { path, source }),
        }
    }

    /// Opens the file in `directory` to continue it, and reads its entries.
    ///
    /// # Errors
    /// The file does not exist, or is not a file of records.
    pub fn resume(directory: &Path) -> Result<(Self, Vec<Entry>), JournalError> {
        let file = directory.join(RECORDS);
        let path = file.display().to_string();
        let open = || {
            let mut file = OpenOptions::new().read(true).write(true).open(&file)?;
            let mut text = String::new();
            file.read_to_string(&mut text)?;
            let whole = whole_lines(&text).len();
            file.set_len(u64::try_from(whole).unwrap_or(u64::MAX))?;
            file.seek(SeekFrom::End(0))?;
            Ok((file, text))
        };
        match open() {
            Ok((file, text)) => {
                let entries = parse(&text, &path)?;
                Ok((Self { file, path }, entries))
            }
            Err(source) => Err(JournalError::System { path, source }),
        }
    }

    /// Appends `entry` and waits until it is on the disk.
    ///
    /// # Errors
    /// The entry cannot be written.
    pub fn append(&mut self, entry: &Entry) -> Result<(), JournalError> {
        let mut write = || {
            let mut line = serde_json::to_vec(entry)?;
            line.push(b'\n');
            self.file.write_all(&line)?;
            self.file.sync_data()
        };
        write().map_err(|source: io::Error| {
            let path = self.path.clone();
            match source.kind() {
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                    JournalError::Full { path, source }
                }
                _ => JournalError::System { path, source },
            }
        })
    }
}

/// Reads the records in `directory`. Those of earlier versions are converted.
///
/// # Errors
/// The file does not exist, or cannot be read.
pub fn read(directory: &Path) -> Result<Vec<Entry>, JournalError> {
    let file = directory.join(RECORDS);
    let path = file.display().to_string();
    match std::fs::read_to_string(&file) {
        Ok(text) => parse(&text, &path),
        Err(source) => Err(JournalError::System { path, source }),
    }
}

/// Returns the text up to the last line feed: a crash truncated the rest.
fn whole_lines(text: &str) -> &str {
    text.rfind('\n').map_or("", |end| &text[..=end])
}

/// Parses records; `path` is their file, for errors. A last line without an end is ignored.
///
/// # Errors
/// A line is no record of a known schema.
pub fn parse(text: &str, path: &str) -> Result<Vec<Entry>, JournalError> {
    let mut converter = Converter::default();
    let lines = whole_lines(text).lines().enumerate();
    let entries = lines.map(|(index, line)| {
        parse_line(line, &mut converter).map_err(|reason| JournalError::Unreadable {
            path: path.to_owned(),
            line: index + 1,
            reason,
        })
    });
    let mut entries: Vec<Entry> = entries.collect::<Result<_, _>>()?;
    legacy::complete(&mut entries);
    Ok(entries)
}

fn parse_line(line: &str, converter: &mut Converter) -> Result<Entry, String> {
    let value: Json = serde_json::from_str(line).map_err(|error| error.to_string())?;
    // A newer schema may not parse: the error names the schema rather than the difference.
    if let Some(schema) = value.get("schema").and_then(Json::as_u64)
        && schema != u64::from(SCHEMA)
    {
        return Err(format!(
            "schema {schema}, but this lab knows only schema {SCHEMA}"
        ));
    }
    converter.entry(value).map_err(|error| error.to_string())
}

/// Parses records from text, for tests.
#[cfg(any(test, feature = "fixture"))]
#[must_use]
pub fn entries(text: &str) -> Vec<Entry> {
    parse(text, "text").unwrap_or_else(|error| panic!("{error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use std::path::PathBuf;

    fn scratch(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("journal-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        directory
    }

    #[test]
    fn journal_reads_and_continues_its_entries() {
        let directory = scratch("append");
        let entries = fixture::entries();
        let mut journal = Journal::create(&directory).unwrap();
        for entry in &entries {
            journal.append(entry).unwrap();
        }
        assert!(read(&directory).unwrap() == entries);
        assert!(Journal::create(&directory).is_err(), "never overwritten");
        let (mut journal, found) = Journal::resume(&directory).unwrap();
        assert!(found == entries);
        journal.append(&entries[0]).unwrap();
        assert_eq!(read(&directory).unwrap().len(), entries.len() + 1);
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn full_disk_error_names_the_remedy() {
        let file = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let path = "out/records.jsonl".to_owned();
        let mut journal = Journal { file, path };
        let error = journal.append(&fixture::entries()[0]).unwrap_err();
        assert!(matches!(error, JournalError::Full { .. }), "{error:?}");
        assert!(error.to_string().ends_with("continue with --resume"));
    }

    #[test]
    fn truncated_line_is_overwritten() {
        let directory = scratch("crash");
        let entries = fixture::entries();
        let mut journal = Journal::create(&directory).unwrap();
        journal.append(&entries[0]).unwrap();
        journal.file.write_all(br#"{"kind":"tri"#).unwrap();
        assert!(read(&directory).unwrap() == entries[..1]);
        let (mut journal, found) = Journal::resume(&directory).unwrap();
        assert!(found == entries[..1]);
        journal.append(&entries[1]).unwrap();
        assert!(read(&directory).unwrap() == entries[..2]);
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn newer_schema_is_refused_by_name() {
        let parsed = |line| parse_line(line, &mut Converter::default());
        assert_eq!(
            parsed(r#"{"kind":"session","schema":2,"new":true}"#).unwrap_err(),
            "schema 2, but this lab knows only schema 1"
        );
        assert!(parsed("nonsense").is_err());
    }
}
