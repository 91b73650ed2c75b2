//! The life of a channel: one end of the connection between a switch and a
//! controller, as a state machine that does no I/O and reads no clock.
//!
//! # Greeting
//! Each end begins by sending a hello and waits for the other's. The version is
//! the newest that both bitmaps hold or, if one end sent none, the lower of the
//! two hellos' versions, which this end must then speak (OF 1.3.5, 6.3.1). With
//! no such version the channel says so in an error that a person can read, and
//! is down. So it is if anything but a hello comes first, or nothing in time.
//!
//! # Up
//! Bytes are cut into messages by the lengths in their headers. A message that
//! can be understood, and that the other side is the one to send, becomes an
//! event; what cannot is answered with the error that the specification gives it
//! and becomes an event too, to be counted. The channel itself answers echo
//! requests, keeps the Nicira switches that the controller turns, and ignores a
//! second hello. An end that hears no message for a while asks with an echo
//! request whether the other is there, and is down if no message comes after
//! that either.
//!
//! A controller does not answer what it cannot understand: nobody would listen.
//! Neither side answers an error with an error.
//!
//! # Down
//! There is no way back: a new connection is a new channel. What is still to be
//! sent may be sent (it can be the error that says why), input is ignored, and
//! so is everything that anybody asks to be sent. A length in a header that is
//! shorter than the header ends the channel as well, for nobody can know where
//! the next message begins.
//!
//! # Limits
//! Between two calls the channel keeps no more input than one unfinished
//! message, less than 65,535 bytes. Its output has no bound of its own, since an
//! answer may be as long as a table is large: the shell stops reading from a peer
//! that does not read while [`Channel::is_congested`], and then one read's worth
//! of requests is all that can still be answered. Of messages that it is given back
//! ([`Channel::recycle`]) it keeps at most 1024.
//!
//! # How to drive it
//! After [`Channel::new`] and after each `handle_*` and [`Channel::send`]: take
//! events with [`Channel::poll_event`] until there is none, write
//! [`Channel::pending`] to the socket and report with [`Channel::transmitted`],
//! and call [`Channel::handle_timeout`] when [`Channel::next_timeout`] has come.
//! When the socket closes, drop the channel.

mod event;
mod send_buffer;

use std::collections::VecDeque;
use std::time::Duration;

use base::{Instant, Xid};
use flow::Refusal;

pub use event::{BoxedMessage, ChannelEvent, DownReason, Excerpt, ReceivedMessage};
use send_buffer::SendBuffer;

use crate::codec::{EncodeError, Malformed};
use crate::dialect::Dialect;
use crate::header::Header;
use crate::kinds::MessageSender;
use crate::message::error::ErrorMessage;
use crate::message::hello::{self, Hello};
use crate::message::{Message, error};
use crate::version::{Version, VersionSet};

/// Which end of the connection this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelSide {
    /// The switch.
    Switch,
    /// The controller.
    Controller,
}

/// How a channel is to behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelOptions {
    /// The versions that it may speak.
    pub versions: VersionSet,
    /// How long the other end may take to say hello.
    pub hello_timeout: Duration,
    /// After how long a silence the other end is asked whether it is there.
    pub echo_interval: Duration,
    /// How long it may take to say anything then.
    pub echo_timeout: Duration,
    /// Bytes waiting to be sent from which on the channel is congested.
    pub backlog_max: usize,
}

impl Default for ChannelOptions {
    fn default() -> Self {
        Self {
            versions: VersionSet::ALL,
            // Both ends send their hello at once: a round trip is enough by far.
            hello_timeout: Duration::from_secs(5),
            // What Open vSwitch does unless it is told otherwise.
            echo_interval: Duration::from_secs(5),
            echo_timeout: Duration::from_secs(5),
            // Sixteen messages of the greatest length: enough to keep any link busy
            // while the shell looks elsewhere.
            backlog_max: 1 << 20,
        }
    }
}

/// Where a channel is in its life.
#[derive(Clone, Copy, Debug)]
enum ChannelState {
    /// Our hello is out; the other's must be here by then.
    Negotiating { deadline: Instant },
    /// There is agreement.
    Up {
        dialect: Dialect,
        liveness: Liveness,
    },
    /// It is over.
    Down,
}

/// When the other end was last known to be there.
#[derive(Clone, Copy, Debug)]
enum Liveness {
    /// It sent a message then.
    Heard(Instant),
    /// It was asked then, and has not sent one since.
    Probed(Instant),
}

/// The number of the channel's own messages. Whoever sends echo requests of his
/// own takes another to see the answers.
const OWN_XID: Xid = Xid(0);

/// Messages that were read and are kept to be written over, half a kilobyte each: more than
/// there are flow-mods in 64 kB, so that such a burst asks for no memory.
const SPARE_MAX: usize = 1024;

/// One end of an OpenFlow channel. It does no I/O and reads no clock.
#[derive(Debug)]
pub struct Channel {
    side: ChannelSide,
    options: ChannelOptions,
    state: ChannelState,
    /// The beginning of a message whose end has not come yet.
    input: Vec<u8>,
    output: SendBuffer,
    events: VecDeque<ChannelEvent>,
    /// Messages that nobody needs any more: others are written over them.
    spare: Vec<BoxedMessage>,
}

impl Channel {
    /// A channel on a connection that has just been made. Its hello is pending.
    #[must_use]
    pub fn new(side: ChannelSide, options: ChannelOptions, now: Instant) -> Self {
        let mut output = SendBuffer::default();
        let hello = Hello::new(options.versions);
        hello
            .encode(OWN_XID, output.back())
            .expect("every version can say hello");
        Self {
            side,
            options,
            state: ChannelState::Negotiating {
                deadline: now + options.hello_timeout,
            },
            input: Vec::new(),
            output,
            events: VecDeque::new(),
            spare: Vec::new(),
        }
    }

    /// Takes bytes that the other end sent.
    pub fn handle_input(&mut self, bytes: &[u8], now: Instant) {
        let mut input = std::mem::take(&mut self.input);
        input.extend_from_slice(bytes);
        let mut rest = &input[..];
        while !matches!(self.state, ChannelState::Down) {
            let Some(header) = Header::peek(rest) else {
                break;
            };
            let length = usize::from(header.length);
            if length < Header::LENGTH {
                self.close(DownReason::BadLength(header.length));
                break;
            }
            let Some((message, tail)) = rest.split_at_checked(length) else {
                break;
            };
            self.handle_message(header, message, now);
            rest = tail;
        }
        if !matches!(self.state, ChannelState::Down) {
            let done = input.len() - rest.len();
            input.drain(..done);
            self.input = input;
        }
    }

    /// Does what is due, if [`Self::next_timeout`] has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.next_timeout().is_none_or(|due| now < due) {
            return;
        }
        match self.state {
            ChannelState::Negotiating { .. } => self.close(DownReason::HelloTimeout),
            ChannelState::Up {
                liveness: Liveness::Probed(_),
                ..
            } => self.close(DownReason::Unresponsive),
            ChannelState::Up { dialect, .. } => {
                self.send_own(OWN_XID, &Message::EchoRequest(Vec::new()));
                let liveness = Liveness::Probed(now);
                self.state = ChannelState::Up { dialect, liveness };
            }
            ChannelState::Down => {}
        }
    }

    /// When [`Self::handle_timeout`] has something to do, if nothing comes before.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        match self.state {
            ChannelState::Negotiating { deadline } => Some(deadline),
            ChannelState::Up {
                liveness: Liveness::Heard(then),
                ..
            } => Some(then + self.options.echo_interval),
            ChannelState::Up {
                liveness: Liveness::Probed(then),
                ..
            } => Some(then + self.options.echo_timeout),
            ChannelState::Down => None,
        }
    }

    /// Sends a message, as several if it is a reply too long for one. Unless the
    /// channel is up, nothing is sent.
    ///
    /// # Errors
    /// The version has no words for it; then nothing is sent.
    pub fn send(&mut self, xid: Xid, message: &Message) -> Result<(), EncodeError> {
        let ChannelState::Up { dialect, liveness } = self.state else {
            return Ok(());
        };
        message.encode(xid, dialect, self.output.back())?;
        if let Message::NiciraSetting(change) = message {
            let dialect = dialect.after(*change);
            self.state = ChannelState::Up { dialect, liveness };
        }
        Ok(())
    }

    /// Answers a message with an error.
    pub fn refuse(&mut self, xid: Xid, refusal: Refusal, excerpt: &Excerpt) {
        if let Some(version) = self.version() {
            let data = excerpt.as_bytes().to_vec();
            self.send_own(
                xid,
                &Message::Error(ErrorMessage::new(refusal, version, data)),
            );
        }
    }

    /// What happened next, if anything did.
    pub fn poll_event(&mut self) -> Option<ChannelEvent> {
        self.events.pop_front()
    }

    /// Takes back messages that were read: it costs less to write others over them than to
    /// free them, elsewhere perhaps, and to ask for as much memory again. They are kept until
    /// they are needed, or [`Channel::release_spare`] is called.
    pub fn recycle(&mut self, read: Vec<BoxedMessage>) {
        let room = SPARE_MAX - self.spare.len();
        let kept = read.into_iter().filter(|received| received.is_small());
        self.spare.extend(kept.take(room));
    }

    /// Lets go of messages that were taken back.
    pub fn release_spare(&mut self) {
        self.spare = Vec::new();
    }

    /// Bytes to be sent to the other end.
    #[must_use]
    pub fn pending(&self) -> &[u8] {
        self.output.pending()
    }

    /// Takes note that so many of the pending bytes are sent.
    ///
    /// # Panics
    /// If there were not so many.
    pub fn transmitted(&mut self, count: usize) {
        self.output.transmitted(count);
    }

    /// How many bytes are pending.
    #[must_use]
    pub fn backlog(&self) -> usize {
        self.output.pending().len()
    }

    /// Whether so much is pending that the other end should not be read from, nor
    /// told what it has not asked for.
    #[must_use]
    pub fn is_congested(&self) -> bool {
        self.backlog() >= self.options.backlog_max
    }

    /// The version agreed on, while the channel is up.
    #[must_use]
    pub fn version(&self) -> Option<Version> {
        match self.state {
            ChannelState::Up { dialect, .. } => Some(dialect.version),
            ChannelState::Negotiating { .. } | ChannelState::Down => None,
        }
    }

    /// Whether the channel is over.
    #[must_use]
    pub const fn is_down(&self) -> bool {
        matches!(self.state, ChannelState::Down)
    }

    /// Takes a whole message.
    fn handle_message(&mut self, header: Header, message: &[u8], now: Instant) {
        match (self.state, header.kind) {
            (ChannelState::Negotiating { .. }, hello::NUMBER) => self.handle_hello(message, now),
            (ChannelState::Negotiating { .. }, error::NUMBER) => {
                self.handle_hello_error(header, message)
            }
            (ChannelState::Negotiating { .. }, kind) => self.close(DownReason::HelloExpected(kind)),
            (ChannelState::Up { dialect, .. }, kind) => {
                let liveness = Liveness::Heard(now);
                self.state = ChannelState::Up { dialect, liveness };
                if kind != hello::NUMBER {
                    self.handle_request(header, message, dialect);
                }
            }
            (ChannelState::Down, _) => {}
        }
    }

    /// Takes the other end's hello.
    fn handle_hello(&mut self, message: &[u8], now: Instant) {
        // The version decides nothing about a hello.
        let Ok((_, Message::Hello(hello))) = Message::decode(message, Version::V13) else {
            unreachable!("a hello is never refused");
        };
        match negotiate(self.options.versions, &hello) {
            Some(version) => {
                let dialect = Dialect::new(version);
                let liveness = Liveness::Heard(now);
                self.state = ChannelState::Up { dialect, liveness };
                self.events.push_back(ChannelEvent::Up(version));
            }
            None => self.refuse_hello(&hello),
        }
    }

    /// Says that there is no version in common, in the oldest words that the other
    /// end may know, and is down.
    fn refuse_hello(&mut self, hello: &Hello) {
        let peer = hello.spoken();
        let text = format!(
            "no version in common: we speak {}, you speak {peer}",
            self.options.versions
        );
        let version = Version::from_number(hello.highest).unwrap_or(Version::V10);
        let refusal = Refusal::HelloIncompatible;
        let error = ErrorMessage::new(refusal, version, text.into_bytes());
        Message::Error(error)
            .encode(OWN_XID, version, self.output.back())
            .expect("every version has errors");
        self.close(DownReason::Incompatible(peer));
    }

    /// Takes an error in place of a hello.
    fn handle_hello_error(&mut self, header: Header, message: &[u8]) {
        let version = Version::from_number(header.version).unwrap_or(Version::V10);
        let decoded = Message::decode(message, version);
        self.close(match decoded {
            Ok((_, Message::Error(ErrorMessage { code, data }))) => DownReason::HelloRefused {
                code,
                text: String::from_utf8_lossy(&data).into_owned(),
            },
            _ => DownReason::HelloExpected(header.kind),
        });
    }

    /// Takes any message but a hello, while the channel is up.
    fn handle_request(&mut self, header: Header, message: &[u8], dialect: Dialect) {
        let excerpt = Excerpt::of(message);
        let mut received = self.spare.pop().unwrap_or_default();
        let malformed = match received.message.decode_into(message, dialect) {
            Ok((xid, sender)) if self.is_valid_sender(sender) => {
                (received.xid, received.excerpt) = (xid, excerpt);
                self.handle_decoded(received);
                return;
            }
            Ok(_) => Malformed {
                refusal: Refusal::RequestBadType,
                at: 0,
            },
            Err(malformed) => malformed,
        };
        if self.side == ChannelSide::Switch && header.kind != error::NUMBER {
            self.refuse(header.xid, malformed.refusal, &excerpt);
        }
        self.events.push_back(ChannelEvent::Refused(malformed));
    }

    /// Whether the other end may send what such a sender sends.
    const fn is_valid_sender(&self, sender: MessageSender) -> bool {
        match (self.side, sender) {
            (_, MessageSender::Either)
            | (ChannelSide::Switch, MessageSender::Controller)
            | (ChannelSide::Controller, MessageSender::Switch) => true,
            (ChannelSide::Switch, MessageSender::Switch)
            | (ChannelSide::Controller, MessageSender::Controller) => false,
        }
    }

    /// Deals with what the channel deals with, and tells of the rest.
    #[inline]
    fn handle_decoded(&mut self, mut received: BoxedMessage) {
        let xid = received.xid;
        match &mut received.message {
            Message::EchoRequest(data) => {
                let data = std::mem::take(data);
                self.send_own(xid, &Message::EchoReply(data));
            }
            Message::EchoReply(_) if xid == OWN_XID => {}
            Message::NiciraSetting(change) => {
                if let ChannelState::Up { dialect, .. } = &mut self.state {
                    *dialect = dialect.after(*change);
                }
            }
            _ => self.events.push_back(ChannelEvent::Received(received)),
        }
    }

    /// Sends what every version can say.
    fn send_own(&mut self, xid: Xid, message: &Message) {
        self.send(xid, message)
            .expect("errors and echoes are in every version, and no longer than what they answer");
    }

    fn close(&mut self, reason: DownReason) {
        self.state = ChannelState::Down;
        self.events.push_back(ChannelEvent::Down(reason));
    }
}

/// The version that two ends agree on (OF 1.3.5, 6.3.1).
fn negotiate(own: VersionSet, peer: &Hello) -> Option<Version> {
    match peer.versions {
        Some(versions) => own.intersection(versions).newest(),
        None => {
            let lower = own.newest()?.number().min(peer.highest);
            Version::from_number(lower).filter(|version| own.contains(*version))
        }
    }
}

#[cfg(test)]
mod tests;
