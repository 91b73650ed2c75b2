//! Periodic SNMP polls of a switch.

use std::time::Duration;

use base::Instant;
use testbed::Clock;

use super::snmp::{Snmp, SnmpError, SwitchSample};
use crate::devices::Agent;

/// Greatest number of replies kept: ten hours at one per second. Later ones are only counted.
const KEPT_MAX: usize = 36_000;

/// Replies of a switch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Polls {
    /// Description of the switch (`sysDescr`); `None` if it never replied.
    pub description: Option<String>,
    /// Counters by the time of the poll.
    pub switch: Vec<(Instant, SwitchSample)>,
    /// Polls without a reply in time.
    pub unanswered: u64,
    /// Malformed replies, and replies that the object does not exist.
    pub senseless: u64,
    /// Replies that were dropped because the series is full.
    pub dropped: u64,
    /// Reason for the last failure, in words.
    pub reason: Option<String>,
}

/// State of a poller.
pub struct PollState {
    agent: Agent,
    limit: Duration,
    session: Option<Snmp>,
    polls: Polls,
}

impl PollState {
    pub(super) fn new(agent: Agent, limit: Duration) -> Self {
        Self {
            agent,
            limit,
            session: None,
            polls: Polls::default(),
        }
    }

    pub(super) fn into_polls(self) -> Polls {
        self.polls
    }

    /// Polls all objects once.
    pub(super) fn poll(&mut self, clock: &Clock) {
        let at = clock.now();
        match self.sample() {
            Ok(_) if self.polls.switch.len() >= KEPT_MAX => self.polls.dropped += 1,
            Ok(sample) => self.polls.switch.push((at, sample)),
            Err(error) => {
                // A late reply must not be taken for the next one.
                self.session = None;
                match error {
                    SnmpError::Silent => self.polls.unanswered += 1,
                    SnmpError::System(_) | SnmpError::Senseless(_) | SnmpError::Missing(_) => {
                        self.polls.senseless += 1;
                    }
                }
                self.polls.reason = Some(error.to_string());
            }
        }
    }

    fn sample(&mut self) -> Result<SwitchSample, SnmpError> {
        let session = match &mut self.session {
            Some(session) => session,
            None => {
                let mut session = Snmp::open(&self.agent, self.limit)?;
                if self.polls.description.is_none() {
                    self.polls.description = Some(session.description()?);
                }
                self.session.insert(session)
            }
        };
        session.sample()
    }
}
