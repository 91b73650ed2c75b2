//! What a child does between fork and exec: into its namespace, its session, its
//! cores, and bound to the life of the thread that started it.
//!
//! Not here: which program, where its output goes, how it is stopped.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Pid, Signal};
use rustix::thread::CpuSet;

use crate::namespace;

/// How a child is set apart from its parent.
#[derive(Debug, Default)]
pub struct Confinement {
    /// The network namespace it runs in; the parent's, if none.
    pub namespace: Option<OwnedFd>,
    /// The cores it may run on; the parent's, if empty.
    pub cores: Vec<usize>,
    /// Whether it gets a session of its own, out of reach of the terminal's signals,
    /// with a SIGHUP that ends it even where `nohup` is among its ancestors.
    pub own_session: bool,
    /// Whether it is killed when the *thread* that started it ends, and so, at the
    /// latest, when the process does (`PR_SET_PDEATHSIG`, prctl(2)).
    pub dies_with_parent: bool,
}

/// Makes children of `command` start under `confinement`.
///
/// # Errors
/// A core number that is no number of a core. What fails in the child, such as
/// `setns(2)`, comes back from [`Command::spawn`].
pub fn confine(command: &mut Command, confinement: Confinement) -> io::Result<()> {
    let affinity = affinity(&confinement.cores)?;
    let parent = rustix::process::getpid();
    let child = move || confine_self(&confinement, affinity.as_ref(), parent);
    // SAFETY: between fork and exec only async-signal-safe calls are allowed.
    // `confine_self` makes plain system calls: it takes no lock and frees and
    // allocates nothing (an errno becomes an `io::Error` without a heap).
    unsafe { command.pre_exec(child) };
    Ok(())
}

/// Keeps the calling thread on `cores`; an empty slice changes nothing.
///
/// # Errors
/// A core that does not exist or may not be used.
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
            let text = format!("there is no core {core}");
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
        // The parent may have died before the line above: then nobody would send the signal.
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

/// Gives SIGHUP back its meaning: a parent below `nohup` hands down to ignore it.
fn restore_sighup() {
    // SAFETY: signal(2) may be called between fork and exec, and the default action
    // is no function of ours.
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
