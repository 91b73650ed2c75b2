//! Statistics that are asked for again and again, and how long each answer takes.

use std::time::Duration;

use base::{Instant, Xid};
use controller::Kind;
use openflow::{Message, MultipartReply};

use super::figures::ns;
use super::rig::{Rig, Told};
use crate::trial::TrialError;

/// Questions that may be unanswered before another is asked.
const UNANSWERED_MAX: usize = 1024;

/// A question that was asked and not answered yet.
#[derive(Clone, Copy, Debug)]
struct Asked {
    xid: Xid,
    at: Instant,
}

/// A question, asked again and again.
#[derive(Debug)]
pub(super) struct Poll {
    question: Message,
    period: Duration,
    next: Instant,
    most: u64,
    open: Vec<Asked>,
    asked: u64,
    withheld: u64,
    answers_ns: Vec<u64>,
    bytes: u64,
    flows: Option<u32>,
    refused: Option<String>,
}

impl Poll {
    /// Asks each `period` from now on, `most` times at most.
    pub(super) const fn new(question: Message, period: Duration, most: u64, now: Instant) -> Self {
        Self {
            question,
            period,
            next: now,
            most,
            open: Vec::new(),
            asked: 0,
            withheld: 0,
            answers_ns: Vec::new(),
            bytes: 0,
            flows: None,
            refused: None,
        }
    }

    /// Asks, if it is time to.
    pub(super) fn turn(&mut self, rig: &mut dyn Rig) -> Result<(), TrialError> {
        let now = rig.now();
        if now < self.next || self.asked + self.withheld >= self.most {
            return Ok(());
        }
        // The schedule goes on, whatever becomes of a question.
        self.next += self.period;
        if self.open.len() >= UNANSWERED_MAX || !rig.has_room() {
            self.withheld += 1;
            return Ok(());
        }
        let xid = rig.say(&self.question)?;
        rig.flush()?;
        self.asked += 1;
        self.open.push(Asked { xid, at: now });
        Ok(())
    }

    /// Takes note of a message. Whether it was an answer.
    pub(super) fn hear(&mut self, told: &Told, rig: &dyn Rig) -> bool {
        let Some(place) = self.open.iter().position(|asked| asked.xid == told.xid) else {
            return false;
        };
        match told.kind {
            Kind::StatisticsPart => self.bytes += told.length as u64,
            Kind::Error => {
                self.refused = told.refusal(rig.version());
                self.open.swap_remove(place);
            }
            _ => {
                let asked = self.open.swap_remove(place);
                let from = told.handed.unwrap_or(asked.at);
                self.bytes += told.length as u64;
                self.answers_ns.push(ns(told.at.since(from)));
                if let Some(Message::MultipartReply {
                    reply: MultipartReply::Aggregate(_, sums),
                    ..
                }) = &told.message
                {
                    self.flows = Some(sums.flows);
                }
            }
        }
        true
    }

    /// Whether all is asked that will be.
    pub(super) const fn is_over(&self) -> bool {
        self.asked + self.withheld >= self.most
    }

    /// Questions without an answer.
    pub(super) const fn open(&self) -> usize {
        self.open.len()
    }

    /// Questions that were asked.
    pub(super) const fn asked(&self) -> u64 {
        self.asked
    }

    /// Questions that there was no room for.
    pub(super) const fn withheld(&self) -> u64 {
        self.withheld
    }

    /// What answers took, in nanoseconds.
    pub(super) fn answers_ns(&self) -> &[u64] {
        &self.answers_ns
    }

    /// Bytes of all answers.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many flows the last sums were over, if sums were asked for.
    pub(super) const fn flows(&self) -> Option<u32> {
        self.flows
    }

    /// The last refusal in words.
    pub(super) fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }
}
