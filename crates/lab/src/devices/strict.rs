//! Strict parser of TOML files: it rejects unknown keys, and suggests the nearest known one.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::de::DeserializeOwned;
use testbed::near;
use toml::{Table, Value};

/// Greatest size of a description file in bytes, hundreds of times the usual one.
const BYTES_MAX: u64 = 64 << 10;

/// The file does not describe a device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {problem}")]
pub struct BadDescription {
    file: String,
    problem: String,
}

impl BadDescription {
    pub(super) fn new(file: &Path, problem: impl Into<String>) -> Self {
        Self {
            file: file.display().to_string(),
            problem: problem.into(),
        }
    }
}

/// Valid keys of a table, and those of its subtables.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownKeys {
    pub(super) keys: &'static [&'static str],
    pub(super) tables: &'static [(&'static str, Self)],
}

/// Reads a whole file, unless it is too large.
pub(super) fn read(path: &Path) -> Result<String, BadDescription> {
    let bad = |problem: String| BadDescription::new(path, problem);
    let mut text = String::new();
    let file = File::open(path).map_err(|error| bad(format!("cannot be read: {error}")))?;
    file.take(BYTES_MAX + 1)
        .read_to_string(&mut text)
        .map_err(|error| bad(format!("cannot be read: {error}")))?;
    match text.len() as u64 > BYTES_MAX {
        true => Err(bad(format!("is larger than {BYTES_MAX} bytes"))),
        false => Ok(text),
    }
}

/// Parses a text with known keys only.
pub(super) fn parse<T: DeserializeOwned>(
    text: &str,
    file: &Path,
    known: KnownKeys,
) -> Result<T, BadDescription> {
    let bad = |problem: String| BadDescription::new(file, problem);
    let table: Table = toml::from_str(text).map_err(|error| bad(message_of(&error, text)))?;
    check(&table, "", known).map_err(bad)?;
    toml::from_str(text).map_err(|error| bad(message_of(&error, text)))
}

/// Rejects the first unknown key.
fn check(table: &Table, within: &str, known: KnownKeys) -> Result<(), String> {
    for (key, value) in table {
        let inner = known.tables.iter().find(|(name, _)| name == key);
        match (inner, value) {
            (Some((name, inner)), Value::Table(table)) => {
                check(table, &format!("{name}."), *inner)?;
            }
            (Some((name, _)), _) => return Err(format!("[{name}] must be a table")),
            (None, _) if known.keys.contains(&key.as_str()) => {}
            (None, _) => {
                let tables = known.tables.iter().map(|(name, _)| *name);
                let all = known.keys.iter().copied().chain(tables);
                let hint = match near(key, all.clone()) {
                    Some(name) => format!("did you mean {within}{name}?"),
                    None => format!("valid keys are {}", all.collect::<Vec<_>>().join(", ")),
                };
                return Err(format!("unknown key '{within}{key}': {hint}"));
            }
        }
    }
    Ok(())
}

/// Returns the message of the TOML parser in one line, with the line number.
fn message_of(error: &toml::de::Error, text: &str) -> String {
    let line = error.span().map(|span| {
        let before = text.get(..span.start).unwrap_or_default();
        1 + before.matches('\n').count()
    });
    let words = error.message().lines().collect::<Vec<_>>().join(" ");
    match line {
        Some(line) => format!("line {line}: {words}"),
        None => words,
    }
}
