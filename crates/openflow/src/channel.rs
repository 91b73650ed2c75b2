//! An OpenFlow channel: one end of the connection between a switch and a controller, as a state
//! machine without I/O and without a clock.
//!
//! # Negotiation
//! Each end sends a hello first and waits for the peer's hello. The version is the newest one in
//! both bitmaps. If one end sent no bitmap, it is the lower of the versions of the two hellos, and
//! this end must support that version (OF 1.3.5, 6.3.1). Without a common version the channel sends
//! an error with a readable text and closes. It also closes if the first message is not a hello, or
//! if no hello arrives in time.
//!
//! # Up
//! The channel splits the stream into messages by the lengths in their headers. A message that
//! decodes and that the peer may send becomes an event. Any other message is answered with the
//! error of the specification and also becomes an event, so that the user can count it. The channel
//! itself answers echo requests, applies the Nicira settings of the controller and ignores a second
//! hello. If no message arrives for the echo interval, the channel sends an echo request; it closes
//! if no message arrives within the echo timeout after that.
//!
//! A controller does not answer a malformed message: a switch would ignore the error. Neither side
//! answers an error with an error.
//!
//! # Down
//! The state is final: a new connection needs a new channel. The user may still send the pending
//! bytes, for example the error with the reason. The channel ignores input and messages to send. A
//! length in a header that is shorter than the header also closes the channel, because the start of
//! the next message is then unknown.
//!
//! # Limits
//! Between two calls the channel buffers at most one incomplete message, less than 65,535 bytes.
//! Its output has no bound of its own, since a reply grows with the table. The caller stops reading
//! from a peer while [`Channel::is_congested`], and then the channel answers at most the requests
//! of one more read. Of the messages that are returned to it ([`Channel::recycle`]) it keeps at
//! most 1,024.
//!
//! # Use
//! After [`Channel::new`] and after each `handle_*` and [`Channel::send`]: take events with
//! [`Channel::poll_event`] until it returns none, write [`Channel::pending`] to the socket and
//! report the count with [`Channel::transmitted`], and call [`Channel::handle_timeout`] at
//! [`Channel::next_timeout`]. When the socket closes, drop the channel.

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

/// The end of the connection that a channel represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelSide {
    /// The switch.
    Switch,
    /// The controller.
    Controller,
}

/// The options of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelOptions {
    /// The versions that it may negotiate.
    pub versions: VersionSet,
    /// The time within which the peer's hello must arrive.
    pub hello_timeout: Duration,
    /// The idle time after which the channel sends an echo request.
    pub echo_interval: Duration,
    /// The time within which a message must follow that echo request.
    pub echo_timeout: Duration,
    /// The pending bytes from which on the channel is congested.
    pub backlog_max: usize,
    /// Decodes the actions for tests, `debug_slow` and `debug_recirc`; otherwise they are unknown.
    pub debug_actions: bool,
}

impl Default for ChannelOptions {
    fn default() -> Self {
        Self {
            versions: VersionSet::ALL,
            // Both ends send their hello at once, so one round trip suffices.
            hello_timeout: Duration::from_secs(5),
            // Open vSwitch's default.
            echo_interval: Duration::from_secs(5),
            echo_timeout: Duration::from_secs(5),
            // Sixteen messages of the maximum length: enough to keep a link busy until the caller
            // polls again.
            backlog_max: 1 << 20,
            debug_actions: true,
        }
    }
}

/// The state of a channel.
#[derive(Clone, Copy, Debug)]
enum ChannelState {
    /// Our hello is sent; the peer's must arrive before `deadline`.
    Negotiating { deadline: Instant },
    /// A version is negotiated.
    Up {
        dialect: Dialect,
        liveness: Liveness,
    },
    /// Closed.
    Down,
}

/// The last sign of life of the peer.
#[derive(Clone, Copy, Debug)]
enum Liveness {
    /// The time of its last message.
    Heard(Instant),
    /// The time of an echo request that no message has followed yet.
    Probed(Instant),
}

/// The transaction id of the channel's own messages. A user that sends echo requests must use
/// another id to receive the replies.
const OWN_XID: Xid = Xid(0);

/// Decoded messages to keep for reuse, half a kilobyte each. 64 kB of input hold fewer flow-mods
/// than this, so a burst of them allocates no memory.
const SPARE_MAX: usize = 1024;

/// One end of an OpenFlow channel, without I/O and without a clock.
#[derive(Debug)]
pub struct Channel {
    side: ChannelSide,
    options: ChannelOptions,
    state: ChannelState,
    /// The start of an incomplete message.
    input: Vec<u8>,
    output: SendBuffer,
    events: VecDeque<ChannelEvent>,
    /// Messages to overwrite with newly decoded ones.
    spare: Vec<BoxedMessage>,
}

impl Channel {
    /// Creates the channel of a new connection. Its hello is pending.
    #[must_use]
    pub fn new(side: ChannelSide, options: ChannelOptions, now: Instant) -> Self {
        let mut output = SendBuffer::default();
        let hello = Hello::new(options.versions);
        hello
            .encode(OWN_XID, output.back())
            .expect("every version has a hello");
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

    /// Sets the idle time after which the channel sends an echo request, and the time within which
    /// a message must follow it.
    pub const fn set_echo_interval(&mut self, interval: Duration) {
        self.options.echo_interval = interval;
        self.options.echo_timeout = interval;
    }

    /// Processes bytes from the peer.
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

    /// Handles the timeouts that expired at `now`.
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

    /// The time of the next [`Self::handle_timeout`] if no message arrives before.
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

    /// Sends a message; a long reply becomes several messages. Sends nothing unless the channel is
    /// up.
    ///
    /// # Errors
    /// The version cannot express the message; then nothing is sent.
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
            self.send_error(xid, version, refusal, excerpt);
        }
    }

    /// Returns the next event, if there is one.
    pub fn poll_event(&mut self) -> Option<ChannelEvent> {
        self.events.pop_front()
    }

    /// Keeps decoded messages for reuse. To overwrite them costs less than to free them, possibly
    /// on another thread, and to allocate as much memory again. The channel holds them until it
    /// needs them or until [`Channel::release_spare`].
    pub fn recycle(&mut self, read: Vec<BoxedMessage>) {
        let room = SPARE_MAX - self.spare.len();
        let kept = read.into_iter().filter(|received| received.is_small());
        self.spare.extend(kept.take(room));
    }

    /// Frees the messages that are kept for reuse.
    pub fn release_spare(&mut self) {
        self.spare = Vec::new();
    }

    /// The bytes to send to the peer.
    #[must_use]
    pub fn pending(&self) -> &[u8] {
        self.output.pending()
    }

    /// Removes the first `count` pending bytes, which the caller has sent.
    ///
    /// # Panics
    /// If `count` exceeds the number of pending bytes.
    pub fn transmitted(&mut self, count: usize) {
        self.output.transmitted(count);
    }

    /// The number of pending bytes.
    #[must_use]
    pub fn backlog(&self) -> usize {
        self.output.pending().len()
    }

    /// Returns true if so many bytes are pending that the caller should stop reading from the peer
    /// and stop sending unsolicited messages.
    #[must_use]
    pub fn is_congested(&self) -> bool {
        self.backlog() >= self.options.backlog_max
    }

    /// The negotiated version, while the channel is up.
    #[must_use]
    pub fn version(&self) -> Option<Version> {
        match self.state {
            ChannelState::Up { dialect, .. } => Some(dialect.version),
            ChannelState::Negotiating { .. } | ChannelState::Down => None,
        }
    }

    /// Returns true if the channel is closed.
    #[must_use]
    pub const fn is_down(&self) -> bool {
        matches!(self.state, ChannelState::Down)
    }

    /// Processes a complete message.
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

    /// Processes the peer's hello.
    fn handle_hello(&mut self, message: &[u8], now: Instant) {
        // A hello has the same format in every version.
        let Ok((_, Message::Hello(hello))) = Message::decode(message, Version::V13) else {
            unreachable!("a hello always decodes");
        };
        match negotiate(self.options.versions, &hello) {
            Some(version) => {
                let dialect = Dialect {
                    debug_actions: self.options.debug_actions,
                    ..Dialect::new(version)
                };
                let liveness = Liveness::Heard(now);
                self.state = ChannelState::Up { dialect, liveness };
                self.events.push_back(ChannelEvent::Up(version));
            }
            None => self.refuse_hello(&hello),
        }
    }

    /// Sends the error that no version is in common, in a version that the peer reads, and closes.
    fn refuse_hello(&mut self, hello: &Hello) {
        let peer = hello.supported();
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

    /// Processes an error that arrives instead of a hello.
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

    /// Processes any message except a hello while the channel is up.
    fn handle_request(&mut self, header: Header, message: &[u8], dialect: Dialect) {
        let mut received = self.spare.pop().unwrap_or_default();
        let malformed = match received.message.decode_into(message, dialect) {
            Ok((xid, sender)) if self.is_valid_sender(sender) => {
                received.xid = xid;
                received.excerpt.set(message);
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
            // An error repeats the version of its request, as far as it is one (as in Open vSwitch).
            let version = match malformed.refusal {
                Refusal::RequestBadVersion => {
                    Version::from_number(header.version).unwrap_or(Version::V10)
                }
                _ => dialect.version,
            };
            let excerpt = Excerpt::of(message);
            self.send_error(header.xid, version, malformed.refusal, &excerpt);
        }
        self.events.push_back(ChannelEvent::Refused(malformed));
    }

    /// Returns true if the peer may send messages of this sender.
    const fn is_valid_sender(&self, sender: MessageSender) -> bool {
        match (self.side, sender) {
            (_, MessageSender::Either)
            | (ChannelSide::Switch, MessageSender::Controller)
            | (ChannelSide::Controller, MessageSender::Switch) => true,
            (ChannelSide::Switch, MessageSender::Switch)
            | (ChannelSide::Controller, MessageSender::Controller) => false,
        }
    }

    /// Processes the messages of the channel itself and reports the others as events.
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

    /// Sends an error message of this version.
    fn send_error(&mut self, xid: Xid, version: Version, refusal: Refusal, excerpt: &Excerpt) {
        let data = excerpt.as_bytes().to_vec();
        Message::Error(ErrorMessage::new(refusal, version, data))
            .encode(xid, version, self.output.back())
            .expect("every version has errors, and an excerpt leaves room for their header");
    }

    /// Sends a message that every version can encode.
    fn send_own(&mut self, xid: Xid, message: &Message) {
        self.send(xid, message)
            .expect("every version has echoes, and a reply is as long as its request");
    }

    fn close(&mut self, reason: DownReason) {
        self.state = ChannelState::Down;
        self.events.push_back(ChannelEvent::Down(reason));
    }
}

/// The version that both ends select (OF 1.3.5, 6.3.1).
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
