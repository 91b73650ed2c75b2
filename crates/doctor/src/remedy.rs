//! Mends what can be undone, and undoes it. What stood there before is kept in a file
//! before anything is written, so that even who is stopped in between can be undone.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::finding::{Finding, Mend};
use crate::host::Host;

/// A word that was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remedied {
    /// Where, from the root.
    pub file: PathBuf,
    /// What stood there.
    pub before: String,
    /// What stands there now.
    pub after: String,
}

/// A word that was written, or the file that does not take it, and why.
pub type Attempt = Result<Remedied, (PathBuf, io::Error)>;

/// It could not be mended, or not be undone.
#[derive(Debug, thiserror::Error)]
pub enum RemedyError {
    /// What was there before could not be kept, so nothing was written.
    #[error("cannot keep in {} what was there before: {source}", journal.display())]
    Journal {
        /// Where it is kept.
        journal: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file that says what to undo is none of ours.
    #[error("{} does not say what to undo: {source}", journal.display())]
    Unreadable {
        /// Which.
        journal: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// There is nothing to undo.
    #[error("there is nothing to undo: {} is not there", .0.display())]
    Nothing(PathBuf),
}

/// The word of a file among several, one of which is in brackets, or the file's only word.
fn chosen(text: &str) -> &str {
    let in_brackets = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    in_brackets.map_or(text, |(word, _)| word)
}

/// Mends what of `findings` a word in a file mends; what was there is kept in `journal`.
/// Answers what was written, and what could not be.
///
/// # Errors
/// What was there before could not be kept: then nothing is written.
pub fn mend(
    host: &Host,
    findings: &[Finding],
    journal: &Path,
) -> Result<Vec<Attempt>, RemedyError> {
    let mut kept = match read(journal) {
        Ok(kept) => kept,
        Err(RemedyError::Nothing(_)) => Vec::new(),
        Err(error) => return Err(error),
    };
    let mut done = Vec::new();
    for finding in findings {
        let Mend::Write { file, word } = &finding.mend else {
            continue;
        };
        let before = host.read(file).unwrap_or_default();
        let remedied = Remedied {
            file: file.clone(),
            before: chosen(&before).to_owned(),
            after: word.clone(),
        };
        // What was there first is what is to come back.
        let is_known = kept.iter().any(|known: &Remedied| known.file == *file);
        if !is_known {
            kept.push(remedied.clone());
            keep(&kept, journal)?;
        }
        match host.write(file, word) {
            Ok(()) => done.push(Ok(remedied)),
            Err(error) => {
                if !is_known {
                    kept.pop();
                    keep(&kept, journal)?;
                }
                done.push(Err((file.clone(), error)));
            }
        }
    }
    Ok(done)
}

/// Puts back what was there before, the last first, and forgets it. Answers what was put
/// back, and what could not be.
///
/// # Errors
/// There is nothing to undo, or it cannot be read what.
pub fn undo(host: &Host, journal: &Path) -> Result<Vec<Attempt>, RemedyError> {
    let kept = read(journal)?;
    let mut done = Vec::new();
    for Remedied {
        file,
        before,
        after,
    } in kept.into_iter().rev()
    {
        done.push(match host.write(&file, &before) {
            Ok(()) => Ok(Remedied {
                file,
                before: after,
                after: before,
            }),
            Err(error) => Err((file, error)),
        });
    }
    let forgotten = fs::remove_file(journal);
    forgotten.map_err(|source| of_journal(journal, source))?;
    Ok(done)
}

fn read(journal: &Path) -> Result<Vec<Remedied>, RemedyError> {
    let text = match fs::read_to_string(journal) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(RemedyError::Nothing(journal.to_owned()));
        }
        Err(source) => return Err(of_journal(journal, source)),
    };
    serde_json::from_str(&text).map_err(|source| RemedyError::Unreadable {
        journal: journal.to_owned(),
        source,
    })
}

/// Writes the journal as a whole, or leaves it as it is.
fn keep(kept: &[Remedied], journal: &Path) -> Result<(), RemedyError> {
    let put = || {
        if let Some(directory) = journal.parent() {
            fs::create_dir_all(directory)?;
        }
        let draft = journal.with_extension("draft");
        fs::write(&draft, serde_json::to_string_pretty(kept)?)?;
        fs::rename(draft, journal)
    };
    put().map_err(|source| of_journal(journal, source))
}

fn of_journal(journal: &Path, source: io::Error) -> RemedyError {
    RemedyError::Journal {
        journal: journal.to_owned(),
        source,
    }
}
