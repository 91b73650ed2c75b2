//! What a device tells unasked, each with the time at which it came, until somebody wants
//! to know. There is a bound, and what comes beyond it is counted.

use std::collections::VecDeque;

use openflow::Message;
use testbed::Arrival;

use super::conversation::{Heard, Kind};

/// Messages that are kept.
const COUNT_MAX: usize = 65_536;

/// Bytes of messages that are kept.
const BYTES_MAX: usize = 32 << 20;

/// Something that the device told unasked.
#[derive(Clone, Debug)]
pub struct Event {
    /// When it came.
    pub arrival: Arrival,
    /// What it is: a packet-in, flow-removed, port-status, or an error about nothing that
    /// was asked.
    pub message: Message,
}

/// What was told and nobody has taken yet.
#[derive(Debug, Default)]
pub(super) struct Events {
    queue: VecDeque<(Event, usize)>,
    bytes: usize,
    lost: u64,
    unread: u64,
}

impl Events {
    /// Keeps a message that was told unasked, if there is room.
    pub(super) fn keep(&mut self, heard: &Heard<'_>) {
        let wanted = heard.kind.is_unasked() || heard.kind == Kind::Error;
        if !wanted {
            return;
        }
        let bytes = heard.bytes.len();
        if self.queue.len() == COUNT_MAX || self.bytes + bytes > BYTES_MAX {
            self.lost += 1;
            return;
        }
        match heard.message() {
            Ok(message) => {
                let arrival = heard.arrival;
                self.bytes += bytes;
                self.queue.push_back((Event { arrival, message }, bytes));
            }
            Err(_) => self.unread += 1,
        }
    }

    /// Hands out all that are kept, the oldest first.
    pub(super) fn take(&mut self) -> Vec<Event> {
        self.bytes = 0;
        self.queue.drain(..).map(|(event, _)| event).collect()
    }

    /// How many there was no room for.
    pub(super) const fn lost(&self) -> u64 {
        self.lost
    }

    /// How many broke the protocol.
    pub(super) const fn unread(&self) -> u64 {
        self.unread
    }
}
