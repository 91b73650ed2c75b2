//! What a run has taken of the machine, written down before it does, so that what is left
//! after a run that could not clean up is found and put back.
//!
//! Namespaces, cables and processes are not here: the kernel takes them away with the run.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};
use testbed::{Failure, NicName, NicRecovery, NicState, process_start};

/// Where runs write down what they take; nothing else is in it.
pub const STATE: &str = "/run/comporta-lab";

/// The most bytes of what one device takes: sixteen cards and a directory.
const BYTES_MAX: u64 = 64 << 10;

/// What one device of a run has taken, as it is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    /// The run's process.
    pid: u32,
    /// When that was started, in ticks since the machine was: numbers come again.
    started: u64,
    /// The device's directory, with its sockets.
    directory: PathBuf,
    /// Network cards.
    nics: Vec<NicRow>,
}

/// A network card as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct NicRow {
    namespace: Option<PathBuf>,
    interface: String,
    mac: [u8; 6],
    mtu: u32,
    up: bool,
    sums: bool,
}

impl NicRow {
    fn of(state: NicState) -> Self {
        Self {
            namespace: state.name.namespace,
            interface: state.name.interface,
            mac: state.mac,
            mtu: state.mtu,
            up: state.up,
            sums: state.sums,
        }
    }

    fn state(self) -> NicState {
        NicState {
            name: NicName {
                namespace: self.namespace,
                interface: self.interface,
            },
            mac: self.mac,
            mtu: self.mtu,
            up: self.up,
            sums: self.sums,
        }
    }
}

/// What a device has taken. Dropping it strikes it out: drop the device before.
#[derive(Debug)]
pub struct Ledger {
    file: PathBuf,
}

impl Ledger {
    /// Writes down, in `state`, that the device `name` takes `directory` and these cards,
    /// which are still where they belong.
    ///
    /// # Errors
    /// A card is missing, or the file cannot be written.
    pub fn write(
        state: &Path,
        name: &str,
        directory: &Path,
        nics: &[NicName],
    ) -> Result<Self, Failure> {
        let nics = nics.iter().map(NicState::of);
        let nics = nics.map(|state| state.map(NicRow::of));
        let pid = std::process::id();
        let failure = || Failure::to(format!("write down in {} what is taken", state.display()));
        let entry = Entry {
            pid,
            started: process_start(pid).map_err(failure())?,
            directory: directory.to_owned(),
            nics: nics.collect::<Result<_, _>>()?,
        };
        let file = state.join(format!("{pid}-{name}.json"));
        put(&file, &entry).map_err(failure())?;
        Ok(Self { file })
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        // What cannot be struck out is found to be in order by `clean`.
        let _ = fs::remove_file(&self.file);
    }
}

/// Drafts so far. Each has a name of its own: two may be written at once.
static DRAFTS: AtomicU32 = AtomicU32::new(0);

/// Writes the whole of `entry` or nothing, and waits for the disk.
fn put(file: &Path, entry: &Entry) -> io::Result<()> {
    let folder = file.parent().unwrap_or_else(|| Path::new("/"));
    fs::create_dir_all(folder)?;
    let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
    let draft = file.with_extension(format!("{number}.draft"));
    let mut open = File::create(&draft)?;
    open.write_all(&serde_json::to_vec(entry)?)?;
    open.sync_all()?;
    fs::rename(&draft, file)
}

/// Something that a run left, or might have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Left {
    /// What.
    pub what: String,
    /// What came of it, in words.
    pub outcome: String,
    /// Whether it could not be put in order, and is still written down.
    pub failed: bool,
}

impl Left {
    fn new(what: impl Into<String>, outcome: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            outcome: outcome.into(),
            failed: false,
        }
    }

    fn failed(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            failed: true,
            ..Self::new(what, why)
        }
    }
}

/// Puts in order what runs that have ended left behind, by what they wrote down in `state`;
/// what runs under way have taken stays theirs. Nothing else is touched.
///
/// # Errors
/// `state` cannot be read.
pub fn clean(state: &Path) -> Result<Vec<Left>, Failure> {
    let failure = || Failure::to(format!("look into {}", state.display()));
    let folder = match fs::read_dir(state) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        folder => folder.map_err(failure())?,
    };
    let mut files = Vec::new();
    for entry in folder {
        files.push(entry.map_err(failure())?.path());
    }
    files.sort();
    let all = files.iter();
    Ok(all.flat_map(|file| clean_after(file)).collect())
}

fn clean_after(file: &Path) -> Vec<Left> {
    let shown = file.display().to_string();
    let is = |extension: &str| file.extension().is_some_and(|of_it| of_it == extension);
    if is("draft") {
        // Whoever wrote it had taken nothing yet.
        return drafts(file);
    }
    if !is("json") {
        return vec![Left::failed(shown, "is not the lab's: left alone")];
    }
    let entry = match read(file) {
        Ok(entry) => entry,
        Err(error) => return vec![Left::failed(shown, format!("cannot be read: {error}"))],
    };
    if process_start(entry.pid).is_ok_and(|started| started == entry.started) {
        let outcome = format!("is in use by process {}", entry.pid);
        return vec![Left::new(shown, outcome)];
    }
    let nics = entry.nics.into_iter().map(NicRow::state);
    let mut all: Vec<Left> = nics.map(|nic| put_back(&nic)).collect();
    all.extend(remove_sockets(&entry.directory));
    if all.iter().any(|left| left.failed) {
        return all;
    }
    if let Err(error) = fs::remove_file(file) {
        all.push(Left::failed(shown, format!("cannot be removed: {error}")));
    }
    all
}

/// A draft belongs to the process that its name begins with, while that lives.
fn drafts(file: &Path) -> Vec<Left> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let pid = name.split('-').next().and_then(|pid| pid.parse().ok());
    if pid.is_none_or(|pid: u32| process_start(pid).is_ok()) {
        return Vec::new();
    }
    let shown = file.display().to_string();
    match fs::remove_file(file) {
        Ok(()) => vec![Left::new(shown, "removed")],
        Err(error) => vec![Left::failed(shown, format!("cannot be removed: {error}"))],
    }
}

fn read(file: &Path) -> io::Result<Entry> {
    let mut text = String::new();
    File::open(file)?
        .take(BYTES_MAX)
        .read_to_string(&mut text)?;
    Ok(serde_json::from_str(&text)?)
}

fn put_back(nic: &NicState) -> Left {
    let what = format!("the card {}", nic.name);
    match nic.recover() {
        Ok(NicRecovery::Untouched) => Left::new(what, "is as it was"),
        Ok(NicRecovery::Restored) => Left::new(what, "put back as it was"),
        Ok(NicRecovery::Missing) => {
            Left::new(what, "is gone: a virtual one ends with its namespace")
        }
        Err(failure) => Left::failed(what, failure.to_string()),
    }
}

/// Removes the sockets that devices made in their directory; logs stay.
fn remove_sockets(directory: &Path) -> Vec<Left> {
    let Ok(folder) = fs::read_dir(directory) else {
        // Its user has taken it away.
        return Vec::new();
    };
    let sockets = folder.flatten().filter(|entry| {
        let kind = entry.file_type();
        kind.is_ok_and(|kind| kind.is_socket())
    });
    sockets
        .map(|entry| {
            let shown = entry.path().display().to_string();
            match fs::remove_file(entry.path()) {
                Ok(()) => Left::new(shown, "removed"),
                Err(error) => Left::failed(shown, format!("cannot be removed: {error}")),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests;
