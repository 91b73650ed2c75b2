//! The manager: a state machine from the database's events to configurations and operations. It
//! serves one session after the other; the configuration lasts across sessions.
//!
//! While another switch has the lock of the database, nothing is written. While there is no
//! session, nothing is written and the configuration does not change: forwarding continues.

use std::path::PathBuf;
use std::time::Duration;

use ovsdb::{Database, Operation, SessionEvent, TransactionId};

use super::LOCK;
use super::desired::{DesiredState, convert_rows, mirrors};
use super::host::HostFacts;
use super::report::{Extent, report};
use super::rows::root;
use config::{Config, DummyMode};
use runtime::Facts;

/// The limit of unsupported keys that are logged at once: there are about eighty.
const UNSUPPORTED_LOGGED_MAX: usize = 100;

/// The state of the database's lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LockState {
    /// Not known yet.
    #[default]
    Unknown,
    /// This switch has the lock.
    Owner,
    /// Another switch has it.
    Second,
}

/// The manager.
#[derive(Debug, Default)]
pub(crate) struct Manager {
    desired: DesiredState,
    lock_state: LockState,
    /// True if the session has received the rows.
    is_ready: bool,
    /// True if the rows have changed since the last conversion.
    is_changed: bool,
    /// The extent of the pending report, if any.
    due: Option<Extent>,
    /// The transaction without an answer yet.
    in_flight: Option<TransactionId>,
}

impl Manager {
    /// Returns a manager with these dummies, and with Unix sockets of controllers confined to this
    /// directory.
    pub(crate) fn new(dummies: DummyMode, unix_socket_dir: Option<PathBuf>) -> Self {
        let mut manager = Self::default();
        manager.desired.config.dummies = dummies;
        manager.desired.config.unix_socket_dir = unix_socket_dir;
        manager
    }

    /// Resets the state for a new session; the configuration stays.
    pub(crate) fn handle_session(&mut self) {
        let desired = std::mem::take(&mut self.desired);
        *self = Self {
            desired,
            ..Self::default()
        };
    }

    /// Handles an event of the session.
    pub(crate) fn handle_event(&mut self, event: &SessionEvent) {
        match event {
            SessionEvent::Ready => {
                (self.is_ready, self.is_changed) = (true, true);
                self.due = Some(Extent::Statistics);
            }
            SessionEvent::Changed => self.is_changed = true,
            SessionEvent::Locked => (self.lock_state, self.is_changed) = (LockState::Owner, true),
            SessionEvent::Contended => {
                if self.lock_state != LockState::Second {
                    tracing::error!(
                        "another ovs-vswitchd process is running, disabling this process (pid {}) until it goes away",
                        std::process::id()
                    );
                }
                (self.lock_state, self.is_changed) = (LockState::Second, true);
            }
            SessionEvent::Done(id, outcome) => {
                if self.in_flight == Some(*id) {
                    self.in_flight = None;
                }
                if let Err(reason) = outcome {
                    tracing::warn!(%reason, "the database rejected a transaction");
                }
            }
            SessionEvent::Closed(reason) => {
                tracing::warn!(%reason, "closing the database connection")
            }
        }
    }

    /// Records that the state of the switch has changed.
    pub(crate) fn handle_change(&mut self) {
        self.due = self.due.or(Some(Extent::State));
    }

    /// Records that statistics are due.
    pub(crate) fn handle_tick(&mut self) {
        self.due = Some(Extent::Statistics);
    }

    /// Returns the interval of [`Manager::handle_tick`].
    pub(crate) fn statistics_interval(&self) -> Duration {
        self.desired.statistics_interval
    }

    /// Returns the new configuration, if it has changed.
    pub(crate) fn next_config(&mut self, database: &Database) -> Option<Config> {
        if !std::mem::take(&mut self.is_changed) {
            return None;
        }
        let desired = match self.lock_state {
            LockState::Unknown => return None,
            LockState::Owner if !self.is_ready => return None,
            // An empty database is newly created, or belongs to another program.
            LockState::Owner if root(database).is_none() => {
                tracing::info!(
                    "the database has no row in Open_vSwitch: keeping the configuration (ovs-vsctl init)"
                );
                return None;
            }
            LockState::Owner => convert_rows(database, &self.desired.config),
            // The other switch has the interfaces, or is about to open them.
            LockState::Second => DesiredState::nothing(&self.desired.config),
        };
        if desired == self.desired {
            return None;
        }
        let unsupported = desired.unsupported.difference(&self.desired.unsupported);
        for key in unsupported.take(UNSUPPORTED_LOGGED_MAX) {
            tracing::info!("other_config:{key} of Open_vSwitch: ignored: not supported");
        }
        for line in desired.warnings.difference(&self.desired.warnings) {
            tracing::warn!("{line}");
        }
        for line in desired.errors.difference(&self.desired.errors) {
            tracing::error!("{line}");
        }
        self.log_mirror_notes(&desired);
        let changed = desired.config != self.desired.config;
        self.desired = desired;
        self.due = Some(Extent::Statistics);
        changed.then(|| self.desired.config.clone())
    }

    /// Logs each new note about mirrors: a user of a mirror looks at frames, not at the bridge's
    /// status.
    fn log_mirror_notes(&self, desired: &DesiredState) {
        for (uuid, outcome) in &desired.bridges {
            let before = self.desired.bridges.get(uuid).map(|before| &before.notes);
            for (key, why) in &outcome.notes {
                let is_known = before.and_then(|before| before.get(key)) == Some(why);
                if key.starts_with(mirrors::COLUMN) && !is_known {
                    tracing::warn!("bridge {}: {key}: {why}", outcome.name);
                }
            }
        }
    }

    /// Returns true if the configuration is that of the database; false while waiting for the lock.
    pub(crate) fn is_applied(&self) -> bool {
        self.lock_state == LockState::Owner && self.is_ready && !self.is_changed
    }

    /// Returns true if [`Manager::report`] must be called with the state of the switch.
    pub(crate) fn is_report_due(&self) -> bool {
        let may_write = self.lock_state == LockState::Owner && self.is_ready;
        may_write && self.in_flight.is_none() && self.due.is_some()
    }

    /// Returns true if no report is due or in flight.
    pub(crate) fn is_written(&self) -> bool {
        self.in_flight.is_none() && !self.is_report_due()
    }

    /// Returns true if the next report includes statistics of the host.
    pub(crate) fn wants_host(&self) -> bool {
        self.desired.reports_host && self.due == Some(Extent::Statistics)
    }

    /// Returns the operations that write this state; none if the database has it already.
    pub(crate) fn report(
        &mut self,
        database: &Database,
        facts: &Facts,
        host: &HostFacts,
    ) -> Vec<Operation> {
        let extent = self.due.take().unwrap_or(Extent::State);
        let operations = report(database, &self.desired, (facts, host), extent);
        if operations.is_empty() {
            return operations;
        }
        let mine = Operation::Assert {
            lock: LOCK.to_owned(),
        };
        std::iter::once(mine).chain(operations).collect()
    }

    /// Records that the report was sent.
    pub(crate) fn handle_sent(&mut self, id: Option<TransactionId>) {
        self.in_flight = id;
    }
}

#[cfg(test)]
mod tests;
