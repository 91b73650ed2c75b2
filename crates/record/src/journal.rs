//! The file of records: append, and know what is there.
//!
//! Each line is on the disk before the next test begins, and a line that a crash
//! cut short is left out and overwritten, so a run that was interrupted, however,
//! keeps what it had measured.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;

use crate::{Entry, SCHEMA};

/// The name of the file in the directory of a run.
pub const RECORDS: &str = "records.jsonl";

/// A file of records that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The system refused.
    #[error("cannot use {path}: {source}")]
    System {
        /// The file.
        path: String,
        /// The reason.
        source: io::Error,
    },
    /// There is no room for more.
    #[error(
        "cannot write {path}: {source}; what was measured before is kept: make room, and go on with --resume"
    )]
    Full {
        /// The file.
        path: String,
        /// The reason.
        source: io::Error,
    },
    /// It holds something else.
    #[error("{path}, line {line}: {reason}")]
    Unreadable {
        /// The file.
        path: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
}

/// An open file of records.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: String,
}

impl Journal {
    /// Makes a new file; `directory` must not hold one.
    ///
    /// # Errors
    /// There is one, or none can be made.
    pub fn create(directory: &Path) -> Result<Self, JournalError> {
        let path = directory.join(RECORDS);
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        let path = path.display().to_string();
        match file {
            Ok(file) => Ok(Self { file, path }),
            Err(source) => Err(JournalError::System { path, source }),
        }
    }

    /// Opens the file in `directory` to go on with it, and reads what it has.
    ///
    /// # Errors
    /// There is none, or it is not one of records.
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
    /// It cannot be written.
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

/// Reads the records in `directory`.
///
/// # Errors
/// There are none, or they cannot be read.
pub fn read(directory: &Path) -> Result<Vec<Entry>, JournalError> {
    let file = directory.join(RECORDS);
    let path = file.display().to_string();
    match std::fs::read_to_string(&file) {
        Ok(text) => parse(&text, &path),
        Err(source) => Err(JournalError::System { path, source }),
    }
}

/// All but what follows the last line feed: a crash cut that off.
fn whole_lines(text: &str) -> &str {
    text.rfind('\n').map_or("", |end| &text[..=end])
}

fn parse(text: &str, path: &str) -> Result<Vec<Entry>, JournalError> {
    let lines = whole_lines(text).lines().enumerate();
    lines
        .map(|(index, line)| {
            parse_line(line).map_err(|reason| JournalError::Unreadable {
                path: path.to_owned(),
                line: index + 1,
                reason,
            })
        })
        .collect()
}

fn parse_line(line: &str) -> Result<Entry, String> {
    let entry = serde_json::from_str(line);
    // A newer schema may well not parse: say that, rather than where it differs.
    if let Ok(value) = serde_json::from_str::<serde_json::Value>(line)
        && let Some(schema) = value.get("schema").and_then(serde_json::Value::as_u64)
        && schema != u64::from(SCHEMA)
    {
        return Err(format!(
            "schema {schema}, but this lab knows only schema {SCHEMA}"
        ));
    }
    entry.map_err(|error| error.to_string())
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
    fn what_was_appended_is_read_and_gone_on_with() {
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
    fn a_full_disk_is_told_with_what_to_do() {
        let file = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let path = "out/records.jsonl".to_owned();
        let mut journal = Journal { file, path };
        let error = journal.append(&fixture::entries()[0]).unwrap_err();
        assert!(matches!(error, JournalError::Full { .. }), "{error:?}");
        assert!(error.to_string().ends_with("go on with --resume"));
    }

    #[test]
    fn a_line_that_a_crash_cut_short_is_overwritten() {
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
    fn a_newer_schema_is_refused_by_name() {
        assert_eq!(
            parse_line(r#"{"kind":"session","schema":2,"new":true}"#).unwrap_err(),
            "schema 2, but this lab knows only schema 1"
        );
        assert!(parse_line("nonsense").is_err());
    }
}
