//! Two ends of an OpenFlow channel, joined in memory, with time as a variable.
//!
//! No sockets and no clock: a test says how much time passes and may cut the
//! line or let it through in small pieces.

use std::time::Duration;

use base::Instant;
use openflow::{Channel, ChannelEvent, ChannelOptions, ChannelSide};

/// A switch's and a controller's channel and the line between them.
#[derive(Debug)]
pub struct ChannelPair {
    /// The switch's end.
    pub switch: Channel,
    /// The controller's end.
    pub controller: Channel,
    /// The most bytes that the line takes at once, at least one.
    pub chunk: usize,
    /// Whether the line is dead: what is sent stays pending.
    pub cut: bool,
    now: Instant,
}

impl ChannelPair {
    /// Two ends that have just been connected.
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

    /// Two ends that have agreed on the newest version of `options`.
    ///
    /// # Panics
    /// If they cannot agree.
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

    /// The time.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Carries bytes both ways until nobody has any to send.
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

    /// Lets time pass. Both ends do what becomes due, each thing in its moment.
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

/// Takes all events of a channel.
pub fn events(channel: &mut Channel) -> Vec<ChannelEvent> {
    std::iter::from_fn(|| channel.poll_event()).collect()
}

/// Carries what is pending from one end to the other; whether there was anything.
fn carry(from: &mut Channel, to: &mut Channel, chunk: usize, now: Instant) -> bool {
    let bytes = from.pending();
    let bytes = bytes[..bytes.len().min(chunk)].to_vec();
    from.transmitted(bytes.len());
    to.handle_input(&bytes, now);
    !bytes.is_empty()
}
