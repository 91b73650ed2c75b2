//! Remedies that can be undone. The old values are saved to a journal before anything is written,
//! so that an interrupted run can also be undone.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::finding::{Finding, Remedy};
use crate::host::Host;

/// A value that was written to a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemedyRecord {
    /// The absolute path of the file.
    pub file: PathBuf,
    /// The old value.
    pub before: String,
    /// The new value.
    pub after: String,
}

/// A written value, or the file that could not be written with the error.
pub type Attempt = Result<RemedyRecord, (PathBuf, io::Error)>;

/// A failure to apply or undo remedies.
#[derive(Debug, thiserror::Error)]
pub enum RemedyError {
    /// The journal cannot be written, so nothing was changed.
    #[error("cannot write the journal {}: {source}", journal.display())]
    Journal {
        /// The journal.
        journal: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The journal is malformed.
    #[error("malformed journal {}: {source}", journal.display())]
    Unreadable {
        /// The journal.
        journal: PathBuf,
        /// The parse error.
        source: serde_json::Error,
    },
    /// The journal does not exist: there is nothing to undo.
    #[error("nothing to undo: {} does not exist", .0.display())]
    Nothing(PathBuf),
}

/// Returns the value in brackets in a list of alternatives, or the whole text.
fn selected_value(text: &str) -> &str {
    let in_brackets = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    in_brackets.map_or(text, |(word, _)| word)
}

/// Applies the remedies of `findings` that write to files, and saves the old values in `journal`.
/// Returns the outcome of each write.
///
/// # Errors
/// The journal cannot be written; nothing is changed then.
pub fn apply_remedies(
    host: &Host,
    findings: &[Finding],
    journal: &Path,
) -> Result<Vec<Attempt>, RemedyError> {
    let mut records = match read(journal) {
        Ok(records) => records,
        Err(RemedyError::Nothing(_)) => Vec::new(),
        Err(error) => return Err(error),
    };
    let mut done = Vec::new();
    for finding in findings {
        let Remedy::Write { file, word } = &finding.remedy else {
            continue;
        };
        let before = host.read(file).unwrap_or_default();
        let record = RemedyRecord {
            file: file.clone(),
            before: selected_value(&before).to_owned(),
            after: word.clone(),
        };
        // The first saved value is the one to restore.
        let is_known = records
            .iter()
            .any(|known: &RemedyRecord| known.file == *file);
        if !is_known {
            records.push(record.clone());
            save_journal(&records, journal)?;
        }
        match host.write(file, word) {
            Ok(()) => done.push(Ok(record)),
            Err(error) => {
                if !is_known {
                    records.pop();
                    save_journal(&records, journal)?;
                }
                done.push(Err((file.clone(), error)));
            }
        }
    }
    Ok(done)
}

/// Restores the old values in reverse order, and deletes the journal. Returns the outcome of each
/// write.
///
/// # Errors
/// There is no journal, or it cannot be read.
pub fn undo(host: &Host, journal: &Path) -> Result<Vec<Attempt>, RemedyError> {
    let records = read(journal)?;
    let mut done = Vec::new();
    for RemedyRecord {
        file,
        before,
        after,
    } in records.into_iter().rev()
    {
        done.push(match host.write(&file, &before) {
            Ok(()) => Ok(RemedyRecord {
                file,
                before: after,
                after: before,
            }),
            Err(error) => Err((file, error)),
        });
    }
    let forgotten = fs::remove_file(journal);
    forgotten.map_err(|source| journal_error(journal, source))?;
    Ok(done)
}

fn read(journal: &Path) -> Result<Vec<RemedyRecord>, RemedyError> {
    let text = match fs::read_to_string(journal) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(RemedyError::Nothing(journal.to_owned()));
        }
        Err(source) => return Err(journal_error(journal, source)),
    };
    serde_json::from_str(&text).map_err(|source| RemedyError::Unreadable {
        journal: journal.to_owned(),
        source,
    })
}

/// Writes the journal atomically.
fn save_journal(records: &[RemedyRecord], journal: &Path) -> Result<(), RemedyError> {
    let put = || {
        if let Some(directory) = journal.parent() {
            fs::create_dir_all(directory)?;
        }
        let draft = journal.with_extension("draft");
        fs::write(&draft, serde_json::to_string_pretty(records)?)?;
        fs::rename(draft, journal)
    };
    put().map_err(|source| journal_error(journal, source))
}

fn journal_error(journal: &Path, source: io::Error) -> RemedyError {
    RemedyError::Journal {
        journal: journal.to_owned(),
        source,
    }
}
