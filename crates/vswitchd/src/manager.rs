//! The one that is told what the database says, and decides what is to be done and what
//! is to be written. It serves one session after the other; what they had in common, the
//! configuration, lasts.
//!
//! While no database is there, or another switch has its lock, nothing is written; and
//! while none is there, nothing is changed either: frames go on.

use std::path::PathBuf;
use std::time::Duration;

use ovsdb::{Database, Operation, SessionEvent, TransactionId};

use super::LOCK;
use super::desired::{Desired, desire, mirrors};
use super::host::HostFacts;
use super::report::{Extent, report};
use super::rows::root;
use config::{Config, DummyMode};
use runtime::Facts;

/// The most keys that nothing comes of which are said at once: there are some eighty.
const UNHEEDED_MAX: usize = 100;

/// What the lock of the database says of this switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Standing {
    /// Nothing is known.
    #[default]
    Unknown,
    /// It is the one.
    Owner,
    /// Another is.
    Second,
}

/// Decides what is to be done, and what is to be written.
#[derive(Debug, Default)]
pub(crate) struct Manager {
    desired: Desired,
    standing: Standing,
    /// Whether the rows are there.
    is_ready: bool,
    /// Whether the rows were not looked at since they came or changed.
    is_changed: bool,
    /// What is to be written, if anything may have to be.
    due: Option<Extent>,
    /// What the database was handed and has not answered.
    in_flight: Option<TransactionId>,
}

impl Manager {
    /// One that makes these interfaces dummies, and has controllers met at sockets in this
    /// directory only.
    pub(crate) fn new(dummies: DummyMode, unix_socket_dir: Option<PathBuf>) -> Self {
        let mut manager = Self::default();
        manager.desired.config.dummies = dummies;
        manager.desired.config.unix_socket_dir = unix_socket_dir;
        manager
    }

    /// Begins anew, with another session.
    pub(crate) fn handle_session(&mut self) {
        let desired = std::mem::take(&mut self.desired);
        *self = Self {
            desired,
            ..Self::default()
        };
    }

    /// Takes note of what a session tells.
    pub(crate) fn handle_event(&mut self, event: &SessionEvent) {
        match event {
            SessionEvent::Ready => {
                (self.is_ready, self.is_changed) = (true, true);
                self.due = Some(Extent::Statistics);
            }
            SessionEvent::Changed => self.is_changed = true,
            SessionEvent::Locked => (self.standing, self.is_changed) = (Standing::Owner, true),
            SessionEvent::Contended => {
                if self.standing != Standing::Second {
                    tracing::error!(
                        "another switch has the lock of this database: waiting until it lets it go"
                    );
                }
                (self.standing, self.is_changed) = (Standing::Second, true);
            }
            SessionEvent::Done(id, outcome) => {
                if self.in_flight == Some(*id) {
                    self.in_flight = None;
                }
                if let Err(reason) = outcome {
                    tracing::warn!(%reason, "the database did not take what was to be written");
                }
            }
            SessionEvent::Closed(reason) => tracing::warn!(%reason, "the database is left"),
        }
    }

    /// Takes note that something is not as it was.
    pub(crate) fn handle_news(&mut self) {
        self.due = self.due.or(Some(Extent::State));
    }

    /// Takes note that statistics are due.
    pub(crate) fn handle_tick(&mut self) {
        self.due = Some(Extent::Statistics);
    }

    /// How often [`Manager::handle_tick`] is to be called.
    pub(crate) fn statistics_interval(&self) -> Duration {
        self.desired.statistics_interval
    }

    /// What is to be from now on, if that is something else than before.
    pub(crate) fn next_config(&mut self, database: &Database) -> Option<Config> {
        if !std::mem::take(&mut self.is_changed) {
            return None;
        }
        let desired = match self.standing {
            Standing::Unknown => return None,
            Standing::Owner if !self.is_ready => return None,
            // It speaks of no switch at all: it was made a moment ago, or is another's.
            Standing::Owner if root(database).is_none() => {
                tracing::warn!(
                    "the database has no row in Open_vSwitch: nothing changes (ovs-vsctl init)"
                );
                return None;
            }
            Standing::Owner => desire(database, &self.desired.config),
            // The other has the interfaces, or is about to take them.
            Standing::Second => Desired::nothing(&self.desired.config),
        };
        if desired == self.desired {
            return None;
        }
        let unheeded = desired.unheeded.difference(&self.desired.unheeded);
        for key in unheeded.take(UNHEEDED_MAX) {
            tracing::warn!("other_config:{key} of Open_vSwitch: not honoured: it has no like here");
        }
        self.say_of_mirrors(&desired);
        let changed = desired.config != self.desired.config;
        self.desired = desired;
        self.due = Some(Extent::Statistics);
        changed.then(|| self.desired.config.clone())
    }

    /// Says once what of mirrors is not honoured: who set one up looks for frames, and not at
    /// the bridge.
    fn say_of_mirrors(&self, desired: &Desired) {
        for (uuid, fate) in &desired.bridges {
            let before = self.desired.bridges.get(uuid).map(|before| &before.notes);
            for (key, why) in &fate.notes {
                let is_said = before.and_then(|before| before.get(key)) == Some(why);
                if key.starts_with(mirrors::COLUMN) && !is_said {
                    tracing::warn!("bridge {}: {key}: {why}", fate.name);
                }
            }
        }
    }

    /// Whether it has looked at what the database says. Who waits for the lock has not.
    pub(crate) fn is_settled(&self) -> bool {
        self.standing == Standing::Owner && self.is_ready && !self.is_changed
    }

    /// Whether [`Manager::report`] is to be told how things are.
    pub(crate) fn is_report_due(&self) -> bool {
        let may_write = self.standing == Standing::Owner && self.is_ready;
        may_write && self.in_flight.is_none() && self.due.is_some()
    }

    /// Whether what is to be written next tells of the host, too.
    pub(crate) fn wants_host(&self) -> bool {
        self.desired.tells_of_host && self.due == Some(Extent::Statistics)
    }

    /// What is to be written, if things are so; nothing, if the database says it all.
    pub(crate) fn report(
        &mut self,
        database: &Database,
        facts: &Facts,
        host: &HostFacts,
    ) -> Vec<Operation> {
        let extent = self.due.take().unwrap_or(Extent::State);
        let news = report(database, &self.desired, (facts, host), extent);
        if news.is_empty() {
            return news;
        }
        let mine = Operation::Assert {
            lock: LOCK.to_owned(),
        };
        std::iter::once(mine).chain(news).collect()
    }

    /// Takes note that what was to be written is on its way.
    pub(crate) fn handle_sent(&mut self, id: Option<TransactionId>) {
        self.in_flight = id;
    }
}

#[cfg(test)]
mod tests;
