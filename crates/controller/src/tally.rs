//! Message counters of a connection, for the diagnosis of a silent device.

use std::collections::BTreeMap;

use base::Instant;
use openflow::{Message, Version};

use super::conversation::IncomingKind;
use super::refusal::describe_fault;

/// Number of stored errors, the latest ones.
const ERRORS_MAX: usize = 8;

/// Message counters of a connection.
#[derive(Clone, Debug)]
pub struct Tally {
    began: Instant,
    sent: u64,
    bytes: u64,
    last_handed: Option<Instant>,
    received: BTreeMap<IncomingKind, (u64, Instant)>,
    echo_requests: u64,
    last: Option<(&'static str, Instant)>,
    errors: Vec<String>,
}

impl Tally {
    /// Returns counters at zero.
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            began: now,
            sent: 0,
            bytes: 0,
            last_handed: None,
            received: BTreeMap::new(),
            echo_requests: 0,
            last: None,
            errors: Vec::new(),
        }
    }

    pub(super) fn note(
        &mut self,
        kind: IncomingKind,
        bytes: &[u8],
        version: Version,
        now: Instant,
    ) {
        let (count, last) = self.received.entry(kind).or_insert((0, now));
        *count += 1;
        *last = now;
        self.last = Some((kind.name(), now));
        if kind == IncomingKind::Error {
            let words = match Message::decode(bytes, version) {
                Ok((_, Message::Error(error))) => describe_fault(error.code, version),
                _ => "a malformed error message".to_owned(),
            };
            self.errors.truncate(ERRORS_MAX - 1);
            self.errors.insert(0, words);
        }
    }

    pub(super) const fn note_echo_request(&mut self, now: Instant) {
        self.echo_requests += 1;
        self.last = Some(("echo request", now));
    }

    pub(super) const fn note_sent(&mut self) {
        self.sent += 1;
    }

    pub(super) const fn note_handed(&mut self, count: usize, now: Instant) {
        self.bytes += count as u64;
        self.last_handed = Some(now);
    }

    /// Returns the time at which the connection was opened.
    #[must_use]
    pub const fn began(&self) -> Instant {
        self.began
    }

    /// Returns the number of messages sent to the device.
    #[must_use]
    pub const fn sent(&self) -> u64 {
        self.sent
    }

    /// Returns the number of bytes handed to the system, and the time of the last hand-over.
    #[must_use]
    pub const fn handed(&self) -> (u64, Option<Instant>) {
        (self.bytes, self.last_handed)
    }

    /// Returns the number of received messages of a kind.
    #[must_use]
    pub fn received(&self, kind: IncomingKind) -> u64 {
        self.received.get(&kind).map_or(0, |(count, _)| *count)
    }

    /// Returns the kinds of received messages, with their counts and the times of the last ones.
    pub fn kinds(&self) -> impl Iterator<Item = (IncomingKind, u64, Instant)> {
        self.received
            .iter()
            .map(|(kind, (count, last))| (*kind, *count, *last))
    }

    /// Returns the number of echo requests from the device.
    #[must_use]
    pub const fn echo_requests(&self) -> u64 {
        self.echo_requests
    }

    /// Returns the last received message and its time.
    #[must_use]
    pub const fn last(&self) -> Option<(&'static str, Instant)> {
        self.last
    }

    /// Returns the latest errors in words, the newest first.
    #[must_use]
    pub fn errors(&self) -> &[String] {
        &self.errors
    }
}
