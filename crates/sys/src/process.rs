//! Setup of a child process between fork and exec: namespace, session, affinity, and death signal
//! of its parent thread.
//!
//! Not here: choice of the program, its output, its termination.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Pid, Signal};
use rustix::thread::CpuSet;

use crate::namespace;

/// Isolation of a child from its parent.
#[derive(Debug, Default)]
pub struct Confinement {
    /// Network namespace of the child; `None`: the parent's.
    pub namespace: Option<OwnedFd>,
    /// Cores that the child may run on; empty: the parent's.
    pub cores: Vec<usize>,
    /// Start a new session, unreachable by the terminal's signals, with the default action of
    /// SIGHUP even if `nohup` is among the ancestors.
    pub own_session: bool,
    /// Kill the child when the *thread* that started it ends, hence at the latest with the process
    /// (`PR_SET_PDEATHSIG`, prctl(2)).
    pub dies_with_parent: bool,
}

/// Configures `command` to start its child under `confinement`.
///
/// # Errors
/// A core number is out of range. Failures in the child, such as of `setns(2)`, are returned by
/// [`Command::spawn`].
pub fn confine(command: &mut Command, confinement: Confinement) -> io::Result<()> {
    let affinity = affinity(&confinement.cores)?;
    let parent = rustix::process::getpid();
    let child = move || confine_self(&confinement, affinity.as_ref(), parent);
    // SAFETY: between fork and exec only async-signal-safe calls are allowed. `confine_self` makes
    // plain system calls: it takes no lock, and allocates and frees nothing (an errno becomes an
    // `io::Error` without a heap allocation).
    unsafe { command.pre_exec(child) };
    Ok(())
}

/// Restricts the calling thread to `cores`; an empty slice changes nothing.
///
/// # Errors
/// A core does not exist or is not allowed.
pub fn pin_current_thread(cores: &[usize]) -> io::Result<()> {
    match affinity(cores)? {
        Some(set) => Ok(rustix::thread::sched_setaffinity(None, &set)?),
        None => Ok(()),
    }
}

fn affinity(cores: &[usize]) -> io::Result<Option<CpuSet>> {
    if cores.is_empty() {
        return Ok(None);
    }
    let mut set = CpuSet::new();
    for &core in cores {
        if core >= CpuSet::MAX_CPU {
            let text = format!("core {core} does not exist");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        set.set(core);
    }
    Ok(Some(set))
}

fn confine_self(
    confinement: &Confinement,
    affinity: Option<&CpuSet>,
    parent: Pid,
) -> io::Result<()> {
    if confinement.dies_with_parent {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // If the parent died before the call above, no signal is pending and none will be sent.
        if rustix::process::getppid() != Some(parent) {
            return Err(rustix::io::Errno::SRCH.into());
        }
    }
    if confinement.own_session {
        rustix::process::setsid()?;
        restore_sighup();
    }
    if let Some(set) = affinity {
        rustix::thread::sched_setaffinity(None, set)?;
    }
    if let Some(fd) = &confinement.namespace {
        namespace::enter(fd.as_fd())?;
    }
    Ok(())
}

/// Restores the default action of SIGHUP: a process below `nohup` inherits that it is ignored.
fn restore_sighup() {
    // SAFETY: signal(2) is allowed between fork and exec, and the default action runs no function
    // of this program.
    unsafe { libc::signal(libc::SIGHUP, libc::SIG_DFL) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn child_runs_on_its_assigned_core() {
        let mut command = Command::new("grep");
        command.args(["Cpus_allowed_list", "/proc/self/status"]);
        let confinement = Confinement {
            cores: vec![0],
            own_session: true,
            dies_with_parent: true,
            ..Confinement::default()
        };
        confine(&mut command, confinement).unwrap();
        let output = command.output().unwrap();
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "Cpus_allowed_list:\t0\n"
        );
    }

    #[test]
    fn child_dies_with_thread_that_started_it() {
        let mut child = std::thread::spawn(|| {
            let mut command = Command::new("sleep");
            let confinement = Confinement {
                dies_with_parent: true,
                ..Confinement::default()
            };
            confine(&mut command, confinement).unwrap();
            command.arg("600").spawn().unwrap()
        })
        .join()
        .unwrap();
        assert_eq!(child.wait().unwrap().to_string(), "signal: 9 (SIGKILL)");
    }

    #[test]
    fn core_number_out_of_range_is_refused() {
        let mut command = Command::new("true");
        let confinement = Confinement {
            cores: vec![usize::MAX],
            ..Confinement::default()
        };
        assert!(confine(&mut command, confinement).is_err());
    }
}
