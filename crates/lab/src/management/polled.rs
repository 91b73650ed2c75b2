//! A switch that is asked by SNMP, again and again.

use std::time::Duration;

use base::Instant;
use testbed::Clock;

use super::snmp::{Snmp, SnmpError, SwitchSample};
use crate::devices::Agent;

/// Answers that are kept: ten hours, once a second. What comes later is counted.
const KEPT_MAX: usize = 36_000;

/// What was answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Polls {
    /// What the switch says that it is (`sysDescr`); none if it never answered.
    pub description: Option<String>,
    /// What it counted, by the time of the question.
    pub switch: Vec<(Instant, SwitchSample)>,
    /// Questions that were not answered in time, or not at all.
    pub unanswered: u64,
    /// Answers that made no sense, or said that there is no such thing.
    pub senseless: u64,
    /// Answers beyond those that are kept.
    pub dropped: u64,
    /// The last reason why something could not be had, in words.
    pub reason: Option<String>,
}

/// Who asks.
pub struct Polled {
    agent: Agent,
    answer: Duration,
    session: Option<Snmp>,
    polls: Polls,
}

impl Polled {
    pub(super) fn new(agent: Agent, answer: Duration) -> Self {
        Self {
            agent,
            answer,
            session: None,
            polls: Polls::default(),
        }
    }

    pub(super) fn into_polls(self) -> Polls {
        self.polls
    }

    /// Asks all that there is to ask, once.
    pub(super) fn poll(&mut self, clock: &Clock) {
        let at = clock.now();
        match self.ask() {
            Ok(_) if self.polls.switch.len() >= KEPT_MAX => self.polls.dropped += 1,
            Ok(sample) => self.polls.switch.push((at, sample)),
            Err(error) => {
                // Whatever is still under way must not be taken for the next answer.
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

    fn ask(&mut self) -> Result<SwitchSample, SnmpError> {
        let session = match &mut self.session {
            Some(session) => session,
            None => {
                let mut session = Snmp::open(&self.agent, self.answer)?;
                if self.polls.description.is_none() {
                    self.polls.description = Some(session.description()?);
                }
                self.session.insert(session)
            }
        };
        session.sample()
    }
}
