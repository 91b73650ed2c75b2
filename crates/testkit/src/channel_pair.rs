//! Two ends of an OpenFlow channel, connected in memory, with time as a variable.
//!
//! It uses no sockets and no clock: a test advances the time, and may cut the connection or limit
//! the size of the pieces that it carries.

use std::time::Duration;

use base::Instant;
use openflow::{Channel, ChannelEvent, ChannelOptions, ChannelSide};

/// A switch's and a controller's channel and the connection between them.
#[derive(Debug)]
pub struct ChannelPair {
    /// The switch's end.
    pub switch: Channel,
    /// The controller's end.
    pub controller: Channel,
    /// The most bytes that the connection carries at once, at least one.
    pub chunk: usize,
    /// True if the connection is cut: bytes that are sent stay pending.
    pub cut: bool,
    now: Instant,
}

impl ChannelPair {
    /// Returns two ends that were just connected.
    #[must_use]
    pub fn new(switch: ChannelOptions, controller: ChannelOptions) -> Self {
        let now = Instant::START;
        Self {
            switch: Channel::new(ChannelSide::Switch, switch, now),
            controller: Channel::new(ChannelSide::Controller, controller, now),
            chunk: usize::MAX,
            cut: false,
            now,
        }
    }

    /// Returns two ends that have negotiated the newest version of `options`.
    ///
    /// # Panics
    /// If the negotiation fails.
    #[must_use]
    pub fn connected(options: ChannelOptions) -> Self {
        let mut pair = Self::new(options, options);
        pair.drive();
        for (side, channel) in [
            ("switch", &mut pair.switch),
            ("controller", &mut pair.controller),
        ] {
            let event = channel.poll_event();
            assert!(
                matches!(event, Some(ChannelEvent::Up(_))),
                "{side}: {event:?}"
            );
        }
        pair
    }

    /// Returns the current time.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Carries bytes in both directions until neither end has any to send.
    pub fn drive(&mut self) {
        let (chunk, now) = (self.chunk, self.now);
        while !self.cut {
            let there = carry(&mut self.switch, &mut self.controller, chunk, now);
            let back = carry(&mut self.controller, &mut self.switch, chunk, now);
            if !there && !back {
                break;
            }
        }
    }

    /// Advances the time. Both ends handle each timeout at the instant when it is due.
    pub fn advance(&mut self, duration: Duration) {
        let end = self.now + duration;
        while let Some(due) = self.next_timeout().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.switch.handle_timeout(self.now);
            self.controller.handle_timeout(self.now);
            self.drive();
        }
        self.now = end;
    }

    fn next_timeout(&self) -> Option<Instant> {
        let ends = [&self.switch, &self.controller];
        ends.into_iter().filter_map(Channel::next_timeout).min()
    }
}

/// Removes and returns all pending events of a channel.
pub fn events(channel: &mut Channel) -> Vec<ChannelEvent> {
    std::iter::from_fn(|| channel.poll_event()).collect()
}

/// Carries pending bytes from one end to the other. Returns false if there were none.
fn carry(from: &mut Channel, to: &mut Channel, chunk: usize, now: Instant) -> bool {
    let bytes = from.pending();
    let bytes = bytes[..bytes.len().min(chunk)].to_vec();
    from.transmitted(bytes.len());
    to.handle_input(&bytes, now);
    !bytes.is_empty()
}
