//! Requests at a fixed interval, and the response time of each.

use std::time::Duration;

use base::{Instant, Xid};
use controller::IncomingKind;
use openflow::{Message, MultipartReply};

use super::figures::ns;
use super::rig::{ControlRig, SwitchMessage};
use crate::trial::TrialError;

/// Greatest number of outstanding requests.
const UNANSWERED_MAX: usize = 1024;

/// A request without a reply so far.
#[derive(Clone, Copy, Debug)]
struct OpenRequest {
    xid: Xid,
    at: Instant,
}

/// A request that is repeated at a fixed interval.
#[derive(Debug)]
pub(super) struct Poll {
    request: Message,
    period: Duration,
    next: Instant,
    most: u64,
    open: Vec<OpenRequest>,
    sent: u64,
    withheld: u64,
    answers_ns: Vec<u64>,
    bytes: u64,
    flows: Option<u32>,
    refused: Option<String>,
}

impl Poll {
    /// Sends a request each `period` from now on, at most `most` times.
    pub(super) const fn new(request: Message, period: Duration, most: u64, now: Instant) -> Self {
        Self {
            request,
            period,
            next: now,
            most,
            open: Vec::new(),
            sent: 0,
            withheld: 0,
            answers_ns: Vec::new(),
            bytes: 0,
            flows: None,
            refused: None,
        }
    }

    /// Sends a request if it is due.
    pub(super) fn turn(&mut self, rig: &mut dyn ControlRig) -> Result<(), TrialError> {
        let now = rig.now();
        if now < self.next || self.sent + self.withheld >= self.most {
            return Ok(());
        }
        // The interval does not depend on the replies.
        self.next += self.period;
        if self.open.len() >= UNANSWERED_MAX || !rig.has_room() {
            self.withheld += 1;
            return Ok(());
        }
        let xid = rig.queue(&self.request)?;
        rig.flush()?;
        self.sent += 1;
        self.open.push(OpenRequest { xid, at: now });
        Ok(())
    }

    /// Processes a message. Returns true if it replies to one of the requests.
    pub(super) fn process(&mut self, message: &SwitchMessage, rig: &dyn ControlRig) -> bool {
        let Some(index) = self.open.iter().position(|sent| sent.xid == message.xid) else {
            return false;
        };
        match message.kind {
            IncomingKind::StatisticsPart => self.bytes += message.length as u64,
            IncomingKind::Error => {
                self.refused = message.refusal(rig.version());
                self.open.swap_remove(index);
            }
            _ => {
                let sent = self.open.swap_remove(index);
                let from = message.written.unwrap_or(sent.at);
                self.bytes += message.length as u64;
                self.answers_ns.push(ns(message.at.since(from)));
                if let Some(Message::MultipartReply {
                    reply: MultipartReply::Aggregate(_, sums),
                    ..
                }) = &message.body
                {
                    self.flows = Some(sums.flows);
                }
            }
        }
        true
    }

    /// Returns true if all requests were sent or withheld.
    pub(super) const fn is_over(&self) -> bool {
        self.sent + self.withheld >= self.most
    }

    /// Returns the number of outstanding requests.
    pub(super) const fn open(&self) -> usize {
        self.open.len()
    }

    /// Returns the number of requests that were sent.
    pub(super) const fn sent(&self) -> u64 {
        self.sent
    }

    /// Returns the number of requests that were not sent because the device did not read.
    pub(super) const fn withheld(&self) -> u64 {
        self.withheld
    }

    /// Returns the response times in nanoseconds.
    pub(super) fn answers_ns(&self) -> &[u64] {
        &self.answers_ns
    }

    /// Returns the bytes of all replies.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of flows in the last aggregate statistics.
    pub(super) const fn flows(&self) -> Option<u32> {
        self.flows
    }

    /// Returns the last error in words.
    pub(super) fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }
}
