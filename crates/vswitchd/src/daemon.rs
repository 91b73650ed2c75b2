//! Daemonization: the pidfile, and the detachment from the terminal.
//!
//! A process with threads cannot fork safely, so the background process is the same program started
//! again; it reports through a pipe that it is ready.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::{env, process};

use rustix::fs::{FlockOperation, Mode, OFlags, fcntl_lock};
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::setsid;
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

use crate::error::DaemonError;
use crate::private_file::open_private;

/// Set in the environment of the background process.
const IN_BACKGROUND: &str = "COMPORTA_IN_BACKGROUND";

/// Set in the environment of a process with a monitor.
pub(super) const MONITORED: &str = "COMPORTA_MONITORED";

/// The mode of a new pidfile, which every user may read.
const PIDFILE_MODE: u32 = 0o644;

/// The message of the background process when it is ready.
const READY: &[u8] = b"ready";

/// A file with the number of this process, locked while it runs: tools use it to find the process
/// (ovs-appctl(8)), and to check that it runs.
#[derive(Debug)]
pub struct Pidfile {
    path: PathBuf,
    _file: File,
}

impl Pidfile {
    /// Writes the file.
    ///
    /// # Errors
    /// The file cannot be written, or another process holds its lock.
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
        let mode = Mode::from_raw_mode(PIDFILE_MODE);
        let mut file = open_private(path, OFlags::RDWR, mode).map_err(failed)?;
        if fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            let mut pid = String::new();
            // An unreadable file leaves the number out.
            drop(file.read_to_string(&mut pid));
            return Err(DaemonError::AlreadyRunning {
                path: path.to_owned(),
                pid: pid.trim().to_owned(),
            });
        }
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
            tracing::debug!(path = %self.path.display(), %error, "the file was already removed");
        }
    }
}

/// The role of a process after [`detach`].
#[derive(Debug)]
pub enum ProcessRole {
    /// The foreground process: the other one is ready, and this one must exit.
    Foreground,
    /// The background process, which runs the switch.
    Background,
}

/// Detaches: starts the program again with the same arguments. The call returns in both processes,
/// in the foreground only after the other has reported that it is ready.
///
/// # Errors
/// The program cannot be started again, or ended before it was ready; it has printed the reason.
pub fn detach() -> Result<ProcessRole, DaemonError> {
    let failed = DaemonError::system("detaching from the terminal");
    if env::var_os(IN_BACKGROUND).is_some() {
        if is_monitored() {
            // The session is that of the monitor.
            return Ok(ProcessRole::Background);
        }
        let session = setsid().map_err(io::Error::from);
        return session.map(|_| ProcessRole::Background).map_err(failed);
    }
    wait_until_ready().map_err(failed)?;
    Ok(ProcessRole::Foreground)
}

/// Returns true if this process runs the switch under a monitor.
#[must_use]
pub fn is_monitored() -> bool {
    env::var_os(MONITORED).is_some()
}

/// Starts the program again with the same arguments and sets `variable` in its environment. The
/// process reports to `ready_pipe`, if given, when it is ready.
pub(super) fn restart(variable: &str, ready_pipe: Option<Stdio>) -> io::Result<Child> {
    let mut words = env::args_os();
    let name = words.next().unwrap_or_default();
    let mut command = Command::new(env::current_exe()?);
    command.arg0(name).args(words).env(variable, "1");
    if let Some(ready_pipe) = ready_pipe {
        command.stdin(Stdio::null()).stdout(ready_pipe);
    }
    command.spawn()
}

fn wait_until_ready() -> io::Result<()> {
    let mut other = restart(IN_BACKGROUND, Some(Stdio::piped()))?;
    let mut received = Vec::new();
    if let Some(pipe) = other.stdout.take() {
        pipe.take(READY.len() as u64).read_to_end(&mut received)?;
    }
    if received == READY {
        return Ok(());
    }
    let status = other.wait()?;
    Err(io::Error::other(format!(
        "the background process ended before it was ready: {status}"
    )))
}

/// Locks the current and the future memory of the process; logs a failure.
pub fn keep_in_memory() {
    if let Err(error) = mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE) {
        tracing::warn!(%error, "cannot lock memory");
    }
}

/// Reports that this process is ready, and releases the terminal; with `chdir`, changes to the root
/// directory.
///
/// # Errors
/// A system call failed that succeeds on every supported system.
pub fn settle(chdir: bool) -> io::Result<()> {
    let mut stdout = io::stdout();
    // The foreground process may have ended: a monitor may have restarted this one.
    drop(stdout.write_all(READY).and_then(|()| stdout.flush()));
    if chdir {
        env::set_current_dir("/")?;
    }
    release_terminal()
}

/// Redirects the standard streams to `/dev/null`.
pub(super) fn release_terminal() -> io::Result<()> {
    let nothing = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")?;
    dup2_stdin(&nothing)?;
    dup2_stdout(&nothing)?;
    dup2_stderr(&nothing)?;
    Ok(())
}
