//! How much is said where, as ovs-vswitchd's `-v` and `vlog/set` have it, while the process
//! runs; and a log file that can be moved away. The words themselves are `tracing`'s.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tracing::Level;
use tracing::level_filters::LevelFilter;

use crate::error::SwitchError;

/// Levels, by Open vSwitch's names for them. What it calls emergencies is never said here.
#[rustfmt::skip]
const LEVELS: [(&str, LevelFilter); 6] = [
    ("OFF",  LevelFilter::OFF),
    ("EMER", LevelFilter::OFF),
    ("ERR",  LevelFilter::ERROR),
    ("WARN", LevelFilter::WARN),
    ("INFO", LevelFilter::INFO),
    ("DBG",  LevelFilter::DEBUG),
];

/// The level without a word about it, and that of `-v` without one.
const USUAL: usize = 4;
const MOST: usize = 5;

/// How a line looks, in the words of ovs-appctl(8): time, level and what is said.
const LINE: &str = "%D{%Y-%m-%dT%H:%M:%S.######Z} %5p %m";

/// Where something is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On standard error.
    Console,
    /// In the log file.
    File,
}

/// How much is said where.
#[derive(Debug)]
pub struct Logging {
    /// Places in [`LEVELS`].
    console: AtomicUsize,
    file: AtomicUsize,
    log: Option<LogFile>,
}

impl Logging {
    /// What the words behind `-v` say, in their order. What they say of one module, or of
    /// syslog, changes nothing: there are none.
    #[must_use]
    pub fn new(specs: &[String], log: Option<LogFile>) -> Self {
        let logging = Self {
            console: AtomicUsize::new(USUAL),
            file: AtomicUsize::new(USUAL),
            log,
        };
        for spec in specs {
            let _ = logging.set(spec);
        }
        logging
    }

    /// Whether this is said there.
    #[must_use]
    pub fn says(&self, place: Place, level: Level) -> bool {
        let said = self.place(place).load(Ordering::Relaxed);
        LEVELS.get(said).is_some_and(|(_, said)| level <= *said)
    }

    /// Takes a word behind `-v` or `vlog/set`: a level and perhaps a place, in any order.
    ///
    /// # Errors
    /// It is of a module.
    pub(crate) fn set(&self, spec: &str) -> Result<(), String> {
        let words = spec.split([':', ' ', ',']).filter(|word| !word.is_empty());
        let (mut level, mut places) = (MOST, Vec::new());
        for word in words {
            let named = |(name, _): &(&str, LevelFilter)| name.eq_ignore_ascii_case(word);
            match (
                word.to_ascii_lowercase().as_str(),
                LEVELS.iter().position(named),
            ) {
                (_, Some(read)) => level = read,
                ("console", None) => places.push(Some(Place::Console)),
                ("file", None) => places.push(Some(Place::File)),
                ("syslog", None) => places.push(None),
                ("any", None) => {}
                (_, None) => return Err(format!("no destination, level, or module \"{word}\"")),
            }
        }
        if places.is_empty() {
            places.extend([Some(Place::Console), Some(Place::File)]);
        }
        for place in places.into_iter().flatten() {
            self.place(place).store(level, Ordering::Relaxed);
        }
        Ok(())
    }

    /// What is said where, as `vlog/list` tells it.
    pub(crate) fn table(&self) -> String {
        let name = |place| {
            let said = self.place(place).load(Ordering::Relaxed);
            LEVELS.get(said).map_or("", |(name, _)| *name)
        };
        format!(
            "                 console    syslog    file\n                 -------    ------    ------\n\
             ANY              {:<11}{:<10}{}\n",
            name(Place::Console),
            "OFF",
            name(Place::File)
        )
    }

    /// How lines look there, as `vlog/list-pattern` tells it. They look one way.
    pub(crate) fn patterns(&self) -> String {
        let lines = [("SYSLOG", "none"), ("CONSOLE", LINE), ("FILE", LINE)];
        let lines = lines.map(|(place, line)| format!("{place:<8} {:<33} {line}\n", "none"));
        let title = "         prefix                            format\n         ------                            ------\n";
        format!("{title}{}", lines.concat())
    }

    /// Whether there is a module of this name, whose words could be told apart.
    pub(crate) const fn knows(&self, _module: &str) -> bool {
        false
    }

    /// Closes the log file, until it is opened again.
    pub(crate) fn close(&self) {
        if let Some(log) = &self.log {
            log.close();
        }
    }

    /// Opens the log file again: somebody has moved it away.
    pub(crate) fn reopen(&self) -> Result<(), String> {
        let log = self.log.as_ref().ok_or("there is no log file")?;
        log.reopen().map_err(|error| error.to_string())
    }

    const fn place(&self, place: Place) -> &AtomicUsize {
        match place {
            Place::Console => &self.console,
            Place::File => &self.file,
        }
    }
}

/// A log file. What is written goes to its end.
#[derive(Clone, Debug)]
pub struct LogFile {
    path: PathBuf,
    /// None while it is closed.
    file: Arc<Mutex<Option<File>>>,
}

impl LogFile {
    /// Opens the file, or makes it.
    ///
    /// # Errors
    /// It can be neither.
    pub fn open(path: &Path) -> Result<Self, SwitchError> {
        let file = append(path).map_err(|error| SwitchError::LogFile {
            path: path.to_owned(),
            error,
        })?;
        Ok(Self {
            // The directory may be another one later.
            path: std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
            file: Arc::new(Mutex::new(Some(file))),
        })
    }

    fn reopen(&self) -> io::Result<()> {
        let file = append(&self.path)?;
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = Some(file);
        Ok(())
    }

    fn close(&self) {
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

impl Write for LogFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // What is said while it is closed is said in vain, as was asked for.
        file.as_mut()
            .map_or(Ok(bytes.len()), |file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.as_mut().map_or(Ok(()), File::flush)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(specs: &[&str]) -> String {
        let specs: Vec<_> = specs.iter().map(|spec| (*spec).to_owned()).collect();
        let table = Logging::new(&specs, None).table();
        let last = table.lines().last().expect("a row");
        last.split_whitespace()
            .skip(1)
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn levels_are_read_as_open_vswitch_has_them() {
        assert_eq!(said(&[]), "INFO OFF INFO");
        assert_eq!(
            said(&["console:emer", "syslog:err", "file:info"]),
            "EMER OFF INFO"
        );
        assert_eq!(said(&["dbg"]), "DBG OFF DBG");
        assert_eq!(said(&["ANY:file:dbg"]), "INFO OFF DBG");
        assert_eq!(said(&["bridge:console:dbg"]), "INFO OFF INFO");
        let logging = Logging::new(&["console:warn".to_owned()], None);
        assert!(
            logging.says(Place::Console, Level::WARN) && !logging.says(Place::Console, Level::INFO)
        );
        assert!(logging.set("bridge:dbg").is_err());
        assert!(logging.set("off").is_ok() && !logging.says(Place::Console, Level::ERROR));
    }

    #[test]
    fn a_log_that_was_moved_away_is_opened_again() {
        let name = format!("comporta-log-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let moved = path.with_extension("old");
        let mut log = LogFile::open(&path).expect("a place to write");
        let logging = Logging::new(&[], Some(log.clone()));
        log.write_all(b"one").expect("room");
        std::fs::rename(&path, &moved).expect("it is there");
        log.write_all(b"two").expect("room");
        logging.reopen().expect("a place to write");
        log.write_all(b"three").expect("room");
        let read = |path| std::fs::read_to_string(path).expect("it is there");
        assert_eq!(
            (read(&moved), read(&path)),
            ("onetwo".to_owned(), "three".to_owned())
        );
        for path in [path, moved] {
            std::fs::remove_file(path).expect("it is there");
        }
    }
}
