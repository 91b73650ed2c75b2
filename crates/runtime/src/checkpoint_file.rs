//! The file of the checkpoint: read once at the start, replaced as a whole while the switch runs,
//! and removed at an orderly end, so that only a crash leaves one.
//!
//! A file is read only once. It gets another name first, so that a checkpoint that itself crashes the
//! switch does not do so again after the restart.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use openflow::{Checkpoint, CheckpointError};

/// The limit of a file that is read: ten million rules.
const LEN_MAX: u64 = 1 << 30;

/// The mode of the file, as for logs: its group may read it, others may not.
const MODE: u32 = 0o640;

/// The suffixes of the files beside the checkpoint: the next one while it is written, the one that
/// was read last, and one that could not be read.
const NEXT: &str = "next";
const LAST: &str = "last";
const DAMAGED: &str = "damaged";

/// The reason why there is no checkpoint to restore.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    /// The file cannot be read or renamed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file is no valid checkpoint.
    #[error("{error}; kept as {}", .kept.display())]
    Invalid {
        /// The reason.
        error: CheckpointError,
        /// The new name of the file.
        kept: PathBuf,
    },
}

/// The file, shared by the control thread and the thread that writes.
#[derive(Debug)]
pub(crate) struct CheckpointFile {
    path: PathBuf,
    /// True after the orderly end: nothing is written any more. Locked while a file gets a name.
    is_closed: Mutex<bool>,
    /// True while a thread writes.
    pub(crate) is_busy: AtomicBool,
    /// The time that the last checkpoint took, in nanoseconds.
    took_ns: AtomicU64,
    /// The number of entries that the last checkpoint does not have as they are.
    incomplete: AtomicU64,
    written: AtomicU64,
    failed: AtomicU64,
}

impl CheckpointFile {
    /// Returns the file at `path`, which need not exist.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            // The working directory may change later.
            path: std::path::absolute(&path).unwrap_or(path),
            is_closed: Mutex::new(false),
            is_busy: AtomicBool::new(false),
            took_ns: AtomicU64::new(0),
            incomplete: AtomicU64::new(0),
            written: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        }
    }

    /// Returns the checkpoint of a process that crashed, if there is one.
    ///
    /// # Errors
    /// The file cannot be read, or is invalid.
    pub(crate) fn load(&self) -> Result<Option<Checkpoint>, LoadError> {
        let last = self.beside(LAST);
        match fs::rename(&self.path, &last) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        match Checkpoint::parse(&read(&last)?) {
            Ok(checkpoint) => Ok(Some(checkpoint)),
            Err(error) => {
                let kept = self.beside(DAMAGED);
                fs::rename(&last, &kept)?;
                Err(LoadError::Invalid { error, kept })
            }
        }
    }

    /// Replaces the file: after a crash at any time, the whole old or the whole new one is there.
    ///
    /// # Errors
    /// The file cannot be written; the old one remains.
    pub(crate) fn replace(&self, bytes: &[u8]) -> io::Result<()> {
        let next = self.beside(NEXT);
        let written = self.write_next(&next, bytes);
        let replaced = written.and_then(|()| self.rename_unless_closed(&next));
        match &replaced {
            Ok(()) => drop(self.written.fetch_add(1, Ordering::Relaxed)),
            Err(_) => {
                self.failed.fetch_add(1, Ordering::Relaxed);
                // A partial file takes space on a disk that may be full.
                drop(fs::remove_file(&next));
            }
        }
        replaced
    }

    /// Records the time that the last checkpoint took.
    pub(crate) fn set_took(&self, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.took_ns.store(nanos, Ordering::Relaxed);
    }

    /// Returns the time that the last checkpoint took.
    pub(crate) fn took(&self) -> Duration {
        Duration::from_nanos(self.took_ns.load(Ordering::Relaxed))
    }

    /// Records the number of entries that a checkpoint does not have as they are. Returns true if it
    /// differs from that of the last one.
    pub(crate) fn note_incomplete(&self, entries: usize) -> bool {
        let entries = entries as u64;
        self.incomplete.swap(entries, Ordering::Relaxed) != entries
    }

    /// Returns the numbers of checkpoints that were written, and that could not be.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (count(&self.written), count(&self.failed))
    }

    fn is_closed(&self) -> MutexGuard<'_, bool> {
        self.is_closed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn write_next(&self, next: &Path, bytes: &[u8]) -> io::Result<()> {
        let is_closed = self.is_closed();
        if *is_closed {
            return Ok(());
        }
        let mut file = create_new(next)?;
        // The end of the switch does not wait for the disk.
        drop(is_closed);
        file.write_all(bytes)?;
        file.sync_all()
    }

    fn rename_unless_closed(&self, next: &Path) -> io::Result<()> {
        let is_closed = self.is_closed();
        if *is_closed {
            return Ok(());
        }
        fs::rename(next, &self.path)?;
        drop(is_closed);
        let directory = self.path.parent().unwrap_or_else(|| Path::new("/"));
        File::open(directory)?.sync_all()
    }

    /// Removes the files at the orderly end of the switch, also one that a thread is writing.
    pub(crate) fn close(&self) {
        *self.is_closed() = true;
        for path in [self.path.clone(), self.beside(LAST), self.beside(NEXT)] {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    tracing::warn!(path = %path.display(), %error, "cannot remove the checkpoint");
                }
                _ => {}
            }
        }
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(".");
        path.push(suffix);
        path.into()
    }
}

/// Creates a file that does not exist, or replaces one; does not follow a link.
fn create_new(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(MODE).open(path)
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?
        .take(LEN_MAX + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LEN_MAX {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "the checkpoint is longer than 1 GB",
        ));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a checkpoint file in an empty directory.
    fn file(name: &str) -> (PathBuf, CheckpointFile) {
        let name = format!("comporta-checkpoint-{name}-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        drop(fs::remove_dir_all(&directory));
        fs::create_dir(&directory).expect("a writable directory");
        let file = CheckpointFile::new(directory.join("checkpoint"));
        (directory, file)
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).expect("a directory").flatten();
        let mut names: Vec<_> = entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn checkpoint_is_read_once_and_removed_at_an_orderly_end() {
        let (directory, file) = file("once");
        assert!(file.load().expect("no file").is_none());
        let (bytes, _) = Checkpoint::default().encode();
        file.replace(&bytes).expect("writable");
        file.replace(&bytes).expect("writable");
        assert_eq!(names(&directory), ["checkpoint"]);
        assert_eq!(file.load().expect("valid"), Some(Checkpoint::default()));
        assert!(file.load().expect("no file").is_none());
        assert_eq!(names(&directory), ["checkpoint.last"]);
        // The end does not wait for a thread that writes.
        fs::write(directory.join("checkpoint.next"), "partial").expect("writable");
        file.close();
        file.replace(&bytes).expect("ignored after the end");
        assert_eq!(names(&directory), [""; 0]);
        fs::remove_dir_all(directory).expect("removable");
    }

    #[test]
    fn invalid_checkpoint_is_kept_under_another_name() {
        let (directory, file) = file("invalid");
        let (mut bytes, _) = Checkpoint::default().encode();
        bytes.pop();
        file.replace(&bytes).expect("writable");
        let error = file.load().expect_err("truncated").to_string();
        assert!(error.contains("checkpoint.damaged"), "{error}");
        assert_eq!(names(&directory), ["checkpoint.damaged"]);
        assert!(file.load().expect("no file").is_none());
        fs::remove_dir_all(directory).expect("removable");
    }

    #[test]
    fn vanished_directory_is_reported_and_counted() {
        let (directory, file) = file("vanished");
        fs::remove_dir_all(&directory).expect("removable");
        file.replace(b"").expect_err("no directory");
        assert_eq!(file.counts(), (0, 1));
        fs::create_dir(&directory).expect("writable");
        file.replace(b"").expect("the directory is back");
        assert_eq!(file.counts(), (1, 1));
        fs::remove_dir_all(directory).expect("removable");
    }

    #[test]
    fn failed_checkpoint_leaves_the_old_one() {
        let (directory, file) = file("failed");
        file.replace(b"old").expect("writable");
        // A directory in the place of the next file is one of the failures before the rename.
        fs::create_dir(directory.join("checkpoint.next")).expect("writable");
        file.replace(b"new").expect_err("not replaceable");
        let text = fs::read(directory.join("checkpoint")).expect("still there");
        assert_eq!(text, b"old");
        fs::remove_dir_all(directory).expect("removable");
    }
}
