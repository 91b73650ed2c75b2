//! Bounded storage of unsolicited messages with their arrival times. Messages beyond the bound are
//! counted.

use std::collections::VecDeque;

use openflow::Message;
use testbed::Arrival;

use super::conversation::{IncomingKind, IncomingMessage};

/// Maximum number of stored messages.
const COUNT_MAX: usize = 65_536;

/// Maximum size of stored messages, in bytes.
const BYTES_MAX: usize = 32 << 20;

/// An unsolicited message.
#[derive(Clone, Debug)]
pub struct Event {
    /// The arrival time.
    pub arrival: Arrival,
    /// The message: a packet-in, flow-removed or port-status, or an error that answers no request.
    pub message: Message,
}

/// Unsolicited messages that are not yet taken.
#[derive(Debug, Default)]
pub(super) struct Events {
    queue: VecDeque<(Event, usize)>,
    bytes: usize,
    lost: u64,
    unread: u64,
}

impl Events {
    /// Stores an unsolicited message, if there is room.
    pub(super) fn store(&mut self, incoming: &IncomingMessage<'_>) {
        let is_relevant = incoming.kind.is_unsolicited() || incoming.kind == IncomingKind::Error;
        if !is_relevant {
            return;
        }
        let bytes = incoming.bytes.len();
        if self.queue.len() == COUNT_MAX || self.bytes + bytes > BYTES_MAX {
            self.lost += 1;
            return;
        }
        match incoming.message() {
            Ok(message) => {
                let arrival = incoming.arrival;
                self.bytes += bytes;
                self.queue.push_back((Event { arrival, message }, bytes));
            }
            Err(_) => self.unread += 1,
        }
    }

    /// Returns and removes all stored messages, the oldest first.
    pub(super) fn take(&mut self) -> Vec<Event> {
        self.bytes = 0;
        self.queue.drain(..).map(|(event, _)| event).collect()
    }

    /// Returns the number of messages without room.
    pub(super) const fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns the number of messages that violate the protocol.
    pub(super) const fn unread(&self) -> u64 {
        self.unread
    }
}
