//! A switch and its controller's counters, asked again and again.

use std::time::Duration;

use base::Instant;
use testbed::Clock;

use super::snmp::{Snmp, SnmpError, SwitchSample};
use super::{PortCounts, Ports};
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
    /// What the controller's owner was told of its ports.
    pub ports: Vec<(Instant, PortCounts)>,
    /// Questions that were not answered in time, or not at all.
    pub unanswered: u64,
    /// Answers that made no sense, or said that there is no such thing.
    pub senseless: u64,
    /// Port counters that could not be had.
    pub portless: u64,
    /// Answers beyond those that are kept.
    pub dropped: u64,
    /// The last reason why something could not be had, in words.
    pub reason: Option<String>,
}

/// Who asks.
pub struct Polled {
    agent: Option<Agent>,
    ports: Option<Ports>,
    answer: Duration,
    session: Option<Snmp>,
    polls: Polls,
}

impl Polled {
    pub(super) fn new(agent: Option<Agent>, ports: Option<Ports>, answer: Duration) -> Self {
        Self {
            agent,
            ports,
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
            Ok(Some(sample)) => {
                let polls = &mut self.polls;
                keep(&mut polls.switch, (at, sample), &mut polls.dropped);
            }
            Ok(None) => {}
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
        let at = clock.now();
        match self.ports.as_mut().map(|ports| ports()) {
            Some(Ok(counts)) => {
                let polls = &mut self.polls;
                keep(&mut polls.ports, (at, counts), &mut polls.dropped);
            }
            Some(Err(reason)) => {
                self.polls.portless += 1;
                self.polls.reason = Some(reason);
            }
            None => {}
        }
    }

    fn ask(&mut self) -> Result<Option<SwitchSample>, SnmpError> {
        let Some(agent) = &self.agent else {
            return Ok(None);
        };
        let session = match &mut self.session {
            Some(session) => session,
            None => {
                let mut session = Snmp::open(agent, self.answer)?;
                if self.polls.description.is_none() {
                    self.polls.description = Some(session.description()?);
                }
                self.session.insert(session)
            }
        };
        session.sample().map(Some)
    }
}

fn keep<T>(kept: &mut Vec<T>, one: T, dropped: &mut u64) {
    match kept.len() < KEPT_MAX {
        true => kept.push(one),
        false => *dropped += 1,
    }
}
