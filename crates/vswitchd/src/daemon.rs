//! What makes a process a daemon: a file that says which process it is, and a life of its
//! own, apart from the terminal.
//!
//! A process that has threads cannot be split in two, so the one in the background is
//! the same program started again, which says by a pipe when it is ready.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::{env, process};

use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::setsid;
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

use crate::error::DaemonError;

/// Tells the program that it is the one in the background.
const IN_BACKGROUND: &str = "COMPORTA_IN_BACKGROUND";

/// The same of the one that another watches.
pub(super) const MONITORED: &str = "COMPORTA_MONITORED";

/// What the one in the background says when it is ready.
const READY: &[u8] = b"ready";

/// A file with the number of this process, locked as long as it lives: so tools know
/// whom to ask (ovs-appctl(8)), and that it still runs.
#[derive(Debug)]
pub struct Pidfile {
    path: PathBuf,
    _file: File,
}

impl Pidfile {
    /// Writes the file.
    ///
    /// # Errors
    /// It cannot be written, or another process that runs has it locked.
    pub fn create(path: &Path, overwrite: bool) -> Result<Self, DaemonError> {
        let failed = |error| DaemonError::Pidfile {
            path: path.to_owned(),
            error,
        };
        if overwrite {
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
                _ => {}
            }
        }
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(path).map_err(failed)?;
        fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            let taken = "another process that runs has it";
            failed(io::Error::new(io::ErrorKind::AlreadyExists, taken))
        })?;
        let written = file
            .set_len(0)
            .and_then(|()| writeln!(file, "{}", process::id()));
        written.map_err(failed)?;
        Ok(Self {
            path: path.to_owned(),
            _file: file,
        })
    }
}

impl Drop for Pidfile {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::debug!(path = %self.path.display(), %error, "the file was gone already");
        }
    }
}

/// Where a process stands after [`detach`].
#[derive(Debug)]
pub enum Detached {
    /// In the foreground: the other one is ready, and this one is to end.
    Foreground,
    /// In the background: this one is to do the work.
    Background,
}

/// Goes on in the background: the program is started again with the same arguments, and
/// this call returns in both, in the foreground only when the other has said that it is ready.
///
/// # Errors
/// The program cannot be started again, or ended before it was ready; it said why.
pub fn detach() -> Result<Detached, DaemonError> {
    let failed = DaemonError::system("going into the background");
    if env::var_os(IN_BACKGROUND).is_some() {
        if is_monitored() {
            // It is in the session of the one that watches it.
            return Ok(Detached::Background);
        }
        let session = setsid().map_err(io::Error::from);
        return session.map(|_| Detached::Background).map_err(failed);
    }
    wait_for_another().map_err(failed)?;
    Ok(Detached::Foreground)
}

/// Whether this process does the work and another watches it.
#[must_use]
pub fn is_monitored() -> bool {
    env::var_os(MONITORED).is_some()
}

/// Starts the program again with the same arguments, and tells it by this variable what it is. It
/// says there when it is ready, if somebody waits for it.
pub(super) fn start_again(variable: &str, heard: Option<Stdio>) -> io::Result<Child> {
    let mut words = env::args_os();
    let name = words.next().unwrap_or_default();
    let mut command = Command::new(env::current_exe()?);
    command.arg0(name).args(words).env(variable, "1");
    if let Some(heard) = heard {
        command.stdin(Stdio::null()).stdout(heard);
    }
    command.spawn()
}

fn wait_for_another() -> io::Result<()> {
    let mut other = start_again(IN_BACKGROUND, Some(Stdio::piped()))?;
    let mut said = Vec::new();
    if let Some(pipe) = other.stdout.take() {
        pipe.take(READY.len() as u64).read_to_end(&mut said)?;
    }
    if said == READY {
        return Ok(());
    }
    let status = other.wait()?;
    Err(io::Error::other(format!(
        "it ended before it was ready: {status}"
    )))
}

/// Keeps all memory of the process out of the swap, now and later; the log says so if the
/// system refuses.
pub fn keep_in_memory() {
    if let Err(error) = mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE) {
        tracing::warn!(%error, "memory may be swapped out");
    }
}

/// Says that this process is ready, if somebody waits for that, and lets go of the
/// terminal; `chdir` says whether also of its directory.
///
/// # Errors
/// The system refuses what always works.
pub fn settle(chdir: bool) -> io::Result<()> {
    let mut stdout = io::stdout();
    // Who waited may have gone: this process may be one that was started again.
    drop(stdout.write_all(READY).and_then(|()| stdout.flush()));
    if chdir {
        env::set_current_dir("/")?;
    }
    let_go()
}

/// Lets go of the terminal.
pub(super) fn let_go() -> io::Result<()> {
    let nothing = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")?;
    dup2_stdin(&nothing)?;
    dup2_stdout(&nothing)?;
    dup2_stderr(&nothing)?;
    Ok(())
}
