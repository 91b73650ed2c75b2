//! The monitor process, which restarts the switch when it was killed by a fault: `--monitor` of
//! ovs-vswitchd(8).

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use base::Instant;
use runtime::{Clock, LogControl};
use rustix::process::Signal;

use super::daemon::{MONITORED, release_terminal, restart};
use crate::error::DaemonError;
use crate::logging::Logging;

/// The minimum interval between two restarts.
const RESTART_INTERVAL: Duration = Duration::from_secs(10);

/// Signals that indicate a fault of the process itself (ovs-vswitchd(8), `--monitor`).
const FAULTS: [Signal; 10] = [
    Signal::ABORT,
    Signal::ALARM,
    Signal::BUS,
    Signal::FPE,
    Signal::ILL,
    Signal::PIPE,
    Signal::SEGV,
    // The filter of system calls.
    Signal::SYS,
    Signal::XCPU,
    Signal::XFSZ,
];

/// The reaction to the end of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MonitorAction {
    /// A restart, not before this time.
    Again(Instant),
    /// The end of the monitor.
    End,
}

/// The number of crashes, and the time of the last restart.
#[derive(Debug, Default)]
struct CrashHistory {
    crashes: u64,
    restarted: Option<Instant>,
}

impl CrashHistory {
    /// Handles the end of a process, by this signal if any.
    fn handle_end(&mut self, signal: Option<i32>, now: Instant) -> MonitorAction {
        let is_fault = |signal: i32| FAULTS.iter().any(|fault| fault.as_raw() == signal);
        if !signal.is_some_and(is_fault) {
            return MonitorAction::End;
        }
        self.crashes += 1;
        let since = self
            .restarted
            .map_or(now, |restarted| restarted + RESTART_INTERVAL);
        let then = since.max(now);
        self.restarted = Some(then);
        MonitorAction::Again(then)
    }
}

/// Runs processes one after the other until one ends without a fault; returns its status. With
/// `in_background`, a foreground process waits for the first to be ready.
///
/// # Errors
/// A process cannot be started.
pub fn monitor(logging: &Logging, in_background: bool) -> Result<ExitStatus, DaemonError> {
    let failed = DaemonError::system("starting the monitored process");
    watch(logging, in_background).map_err(failed)
}

fn watch(logging: &Logging, in_background: bool) -> io::Result<ExitStatus> {
    if let Err(error) = rustix::thread::set_name(c"monitor") {
        tracing::debug!(%error, "cannot set the process name");
    }
    let clock = Clock::start();
    let mut watch = CrashHistory::default();
    let waits = io::stdout().as_fd().try_clone_to_owned();
    let waits = in_background.then_some(waits).transpose()?;
    loop {
        let ready_pipe = waits.as_ref().map(OwnedFd::try_clone).transpose()?;
        let mut process = restart(MONITORED, ready_pipe.map(Stdio::from))?;
        if in_background {
            release_terminal()?;
        }
        // An open file would survive a log rotation.
        logging.close();
        let status = process.wait()?;
        drop(logging.reopen());
        let pid = process.id();
        match watch.handle_end(status.signal(), clock.now()) {
            MonitorAction::End => {
                tracing::info!("pid {pid} died, {status}, exiting");
                return Ok(status);
            }
            MonitorAction::Again(then) => {
                let crashes = watch.crashes;
                tracing::error!("{crashes} crashes: pid {pid} died, {status}, restarting");
                wait_until(then, clock);
            }
        }
    }
}

fn wait_until(then: Instant, clock: Clock) {
    if then > clock.now() {
        tracing::warn!("waiting until 10 seconds since last restart");
    }
    while clock.now() < then {
        thread::park_timeout(then - clock.now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn monitor_restarts_at_most_every_ten_seconds() {
        let at = |second: u64| Instant::from_nanos(second * 1_000_000_000);
        let mut watch = CrashHistory::default();
        let fault = Some(Signal::SEGV.as_raw());
        assert_eq!(watch.handle_end(fault, at(3)), MonitorAction::Again(at(3)));
        assert_eq!(watch.handle_end(fault, at(4)), MonitorAction::Again(at(13)));
        assert_eq!(
            watch.handle_end(fault, at(14)),
            MonitorAction::Again(at(23))
        );
        assert_eq!(
            watch.handle_end(fault, at(60)),
            MonitorAction::Again(at(60))
        );
        assert_eq!(watch.crashes, 4);
        for signal in [
            None,
            Some(Signal::TERM.as_raw()),
            Some(Signal::KILL.as_raw()),
        ] {
            assert_eq!(watch.handle_end(signal, at(100)), MonitorAction::End);
        }
    }
}
