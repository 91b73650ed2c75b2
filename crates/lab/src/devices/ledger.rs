//! Ledger of the system state that a run changes, written before the change, so that the state can
//! be restored after a run that could not clean up.
//!
//! Namespaces, links and processes are not in it: the kernel removes them with the run.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};
use testbed::{Failure, NicName, NicRecovery, NicState, process_start};

/// Directory of the ledgers, which contains nothing else.
pub const STATE: &str = "/run/comporta-lab";

/// Greatest size of a ledger in bytes: sixteen network cards and a directory.
const BYTES_MAX: u64 = 64 << 10;

/// Ledger of one device, as it is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct LedgerEntry {
    /// Process of the run.
    pid: u32,
    /// Start of the process in ticks since the machine's, because identifiers are reused.
    started: u64,
    /// Directory of the device, with its sockets.
    directory: PathBuf,
    /// Network cards.
    nics: Vec<NicRow>,
}

/// State of a network card before the run.
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

/// Ledger of a device. Drop it after the device: that removes the file.
#[derive(Debug)]
pub struct Ledger {
    file: PathBuf,
}

impl Ledger {
    /// Writes the ledger of the device `name` to `state`, with `directory` and the present state of
    /// these network cards.
    ///
    /// # Errors
    /// A network card is missing, or the file cannot be written.
    pub fn write(
        state: &Path,
        name: &str,
        directory: &Path,
        nics: &[NicName],
    ) -> Result<Self, Failure> {
        let nics = nics.iter().map(NicState::of);
        let nics = nics.map(|state| state.map(NicRow::of));
        let pid = std::process::id();
        let failure = || Failure::to(format!("write the ledger in {}", state.display()));
        let entry = LedgerEntry {
            pid,
            started: process_start(pid).map_err(failure())?,
            directory: directory.to_owned(),
            nics: nics.collect::<Result<_, _>>()?,
        };
        let file = state.join(format!("{pid}-{name}.json"));
        write_atomically(&file, &entry).map_err(failure())?;
        Ok(Self { file })
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        // If the file remains, `clean` finds nothing to restore and removes it.
        let _ = fs::remove_file(&self.file);
    }
}

/// Number of drafts so far. Each has its own name, since two may be written at the same time.
static DRAFTS: AtomicU32 = AtomicU32::new(0);

/// Writes `entry` atomically, and waits for the disk.
fn write_atomically(file: &Path, entry: &LedgerEntry) -> io::Result<()> {
    let folder = file.parent().unwrap_or_else(|| Path::new("/"));
    fs::create_dir_all(folder)?;
    let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
    let draft = file.with_extension(format!("{number}.draft"));
    let mut open = File::create(&draft)?;
    open.write_all(&serde_json::to_vec(entry)?)?;
    open.sync_all()?;
    fs::rename(&draft, file)
}

/// Remainder of a run, and the result of its cleanup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CleanupResult {
    /// The object.
    pub what: String,
    /// Result of the cleanup, in words.
    pub outcome: String,
    /// True if the cleanup failed, and the ledger remains.
    pub failed: bool,
}

impl CleanupResult {
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

/// Restores the system state after ended runs, from the ledgers in `state`. The state of active
/// runs and everything else remain.
///
/// # Errors
/// `state` cannot be read.
pub fn clean(state: &Path) -> Result<Vec<CleanupResult>, Failure> {
    let failure = || Failure::to(format!("read {}", state.display()));
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

fn clean_after(file: &Path) -> Vec<CleanupResult> {
    let shown = file.display().to_string();
    let is = |extension: &str| file.extension().is_some_and(|of_it| of_it == extension);
    if is("draft") {
        // The run had changed nothing yet.
        return drafts(file);
    }
    if !is("json") {
        return vec![CleanupResult::failed(shown, "is not the lab's: left alone")];
    }
    let entry = match read(file) {
        Ok(entry) => entry,
        Err(error) => {
            return vec![CleanupResult::failed(
                shown,
                format!("cannot be read: {error}"),
            )];
        }
    };
    if process_start(entry.pid).is_ok_and(|started| started == entry.started) {
        let outcome = format!("is in use by process {}", entry.pid);
        return vec![CleanupResult::new(shown, outcome)];
    }
    let nics = entry.nics.into_iter().map(NicRow::state);
    let mut all: Vec<CleanupResult> = nics.map(|nic| put_back(&nic)).collect();
    all.extend(remove_sockets(&entry.directory));
    if all.iter().any(|left| left.failed) {
        return all;
    }
    if let Err(error) = fs::remove_file(file) {
        all.push(CleanupResult::failed(
            shown,
            format!("cannot be removed: {error}"),
        ));
    }
    all
}

/// Removes a draft if the process in its name has ended.
fn drafts(file: &Path) -> Vec<CleanupResult> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let pid = name.split('-').next().and_then(|pid| pid.parse().ok());
    if pid.is_none_or(|pid: u32| process_start(pid).is_ok()) {
        return Vec::new();
    }
    let shown = file.display().to_string();
    match fs::remove_file(file) {
        Ok(()) => vec![CleanupResult::new(shown, "removed")],
        Err(error) => vec![CleanupResult::failed(
            shown,
            format!("cannot be removed: {error}"),
        )],
    }
}

fn read(file: &Path) -> io::Result<LedgerEntry> {
    let mut text = String::new();
    File::open(file)?
        .take(BYTES_MAX)
        .read_to_string(&mut text)?;
    Ok(serde_json::from_str(&text)?)
}

fn put_back(nic: &NicState) -> CleanupResult {
    let what = format!("the network card {}", nic.name);
    match nic.recover() {
        Ok(NicRecovery::Untouched) => CleanupResult::new(what, "is as it was"),
        Ok(NicRecovery::Restored) => CleanupResult::new(what, "put back as it was"),
        Ok(NicRecovery::Missing) => CleanupResult::new(
            what,
            "no longer exists: a virtual one ends with its namespace",
        ),
        Err(failure) => CleanupResult::failed(what, failure.to_string()),
    }
}

/// Removes the sockets of devices from their directory; logs remain.
fn remove_sockets(directory: &Path) -> Vec<CleanupResult> {
    let Ok(folder) = fs::read_dir(directory) else {
        // The user has removed the directory.
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
                Ok(()) => CleanupResult::new(shown, "removed"),
                Err(error) => CleanupResult::failed(shown, format!("cannot be removed: {error}")),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests;
