//! A log file that supports rotation.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::fchown;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use rustix::fs::{Mode, OFlags};

use crate::error::DaemonError;
use crate::private_file::open_private;

/// The mode of a new log file, as in Open vSwitch: its group may read it, others may not.
const MODE: u32 = 0o640;

/// A log file, opened for appending.
#[derive(Clone, Debug)]
pub struct LogFile {
    path: PathBuf,
    /// None while it is closed.
    file: Arc<Mutex<Option<File>>>,
}

impl LogFile {
    /// Opens or creates the file.
    ///
    /// # Errors
    /// Neither is possible.
    pub fn open(path: &Path) -> Result<Self, DaemonError> {
        let file = append(path).map_err(|error| DaemonError::LogFile {
            path: path.to_owned(),
            error,
        })?;
        Ok(Self {
            // The working directory may change later.
            path: std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
            file: Arc::new(Mutex::new(Some(file))),
        })
    }

    /// Reopens the file at its path.
    pub(super) fn reopen(&self) -> io::Result<()> {
        let file = append(&self.path)?;
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = Some(file);
        Ok(())
    }

    /// Writes a line without waiting for the file's lock, which the thread may hold: a file that is
    /// in use is opened a second time. A line that cannot be written is lost.
    pub(super) fn write_emergency(&self, text: &str) {
        let line = format!("{text}\n");
        let written = match self.file.try_lock() {
            Ok(mut file) => write_if_open(file.as_mut(), &line),
            Err(TryLockError::Poisoned(file)) => write_if_open(file.into_inner().as_mut(), &line),
            Err(TryLockError::WouldBlock) => {
                append(&self.path).and_then(|mut file| file.write_all(line.as_bytes()))
            }
        };
        drop(written);
    }

    /// Changes the owner of the open file; a name that leads elsewhere by now does not matter.
    pub(crate) fn change_owner(&self, uid: u32, gid: u32) -> io::Result<()> {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.as_ref()
            .map_or(Ok(()), |file| fchown(file, Some(uid), Some(gid)))
    }

    /// Closes the file until it is opened again.
    pub(super) fn close(&self) {
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

fn write_if_open(file: Option<&mut File>, line: &str) -> io::Result<()> {
    file.map_or(Ok(()), |file| file.write_all(line.as_bytes()))
}

fn append(path: &Path) -> io::Result<File> {
    let mode = Mode::from_raw_mode(MODE);
    open_private(path, OFlags::WRONLY | OFlags::APPEND, mode)
}

impl Write for LogFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // Lines are dropped while the file is closed, as requested.
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

    #[test]
    fn emergency_is_written_while_the_file_is_locked() {
        let name = format!("comporta-emergency-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let log = LogFile::open(&path).expect("a writable directory");
        log.write_emergency("free");
        let guard = log.file.lock().expect("no panic");
        log.write_emergency("locked");
        drop(guard);
        let text = std::fs::read_to_string(&path).expect("it exists");
        assert_eq!(text, "free\nlocked\n");
        std::fs::remove_file(path).expect("it exists");
    }

    #[test]
    fn log_file_is_reopened_after_rotation() {
        let name = format!("comporta-log-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let moved = path.with_extension("old");
        let mut log = LogFile::open(&path).expect("a place to write");
        log.write_all(b"one").expect("room");
        std::fs::rename(&path, &moved).expect("it is there");
        log.write_all(b"two").expect("room");
        log.reopen().expect("a place to write");
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
