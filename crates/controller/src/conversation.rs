//! One end of a connection with a device, without a socket, a clock or a thread: bytes are its
//! inputs and outputs.
//!
//! The channel of crate `openflow` negotiates the version. After that this module splits the stream
//! into messages and returns them as bytes, each with its transaction id. Callers decode only the
//! messages that they need: a measuring controller would otherwise spend more time on the decoding
//! of a million flow statistics than on their transmission.
//!
//! # Limits
//! The input buffer holds one incomplete message, less than 65,536 bytes. Output is buffered until
//! it is handed to the system; callers check [`Conversation::has_room`] first. The times of the
//! last 65,536 messages are stored.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use base::{Instant, Xid};
use openflow::{
    Channel, ChannelEvent, ChannelOptions, ChannelSide, DownReason, EncodeError, Malformed,
    Message, Version, VersionSet,
};
use testbed::Arrival;

use super::ControllerError;
use super::refusal::{Reason, Refusal};
use super::tally::Tally;

/// Length of a message header, in bytes (OF 1.0.1, 5.1; OF 1.3.5, 7.1).
const HEADER: usize = 8;

/// Maximum number of buffered output bytes before callers must wait.
pub const BACKLOG_MAX: usize = 256 * 1024;

/// Number of messages whose times are stored.
const TIMES_MAX: usize = 65_536;

/// Timeout of a device's hello.
pub(super) const HELLO: Duration = Duration::from_secs(5);

/// Message types that are equal in all versions (OF 1.0.1, 5.1; OF 1.3.5, 7.1).
mod number {
    pub(super) const ECHO_REQUEST: u8 = 2;
    pub(super) const HELLO: u8 = 0;
}

/// Valid types of a device's first message: a hello, or an error instead.
const GREETINGS: [u8; 2] = [number::HELLO, 1];

/// The kind of a message, according to its header and first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IncomingKind {
    /// An error.
    Error,
    /// The reply to an echo request of the controller.
    EchoReply,
    /// A features reply.
    Features,
    /// A switch configuration reply.
    Config,
    /// A packet-in.
    PacketIn,
    /// A flow-removed message.
    FlowRemoved,
    /// A port-status message.
    PortStatus,
    /// A part of a multipart reply, with more parts to follow.
    StatisticsPart,
    /// A statistics or multipart reply, or the last part of one.
    Statistics,
    /// A barrier reply.
    Barrier,
    /// Another message, with its type number.
    Other(u8),
}

impl IncomingKind {
    /// Returns the kind of `message`, which has at least a header.
    fn of(message: &[u8], version: Version) -> Self {
        // Version 1.1 added groups and tables, which shifted later types by two.
        let (statistics, barrier) = match version {
            Version::V10 => (17, 19),
            _ => (19, 21),
        };
        match message[1] {
            1 => Self::Error,
            3 => Self::EchoReply,
            6 => Self::Features,
            8 => Self::Config,
            10 => Self::PacketIn,
            11 => Self::FlowRemoved,
            12 => Self::PortStatus,
            // The lowest bit of the flags announces further parts, in all versions.
            kind if kind == statistics => match message.get(11) {
                Some(flags) if flags & 1 == 1 => Self::StatisticsPart,
                _ => Self::Statistics,
            },
            kind if kind == barrier => Self::Barrier,
            kind => Self::Other(kind),
        }
    }

    /// Returns the name of the kind.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::EchoReply => "echo reply",
            Self::Features => "features",
            Self::Config => "configuration",
            Self::PacketIn => "packet-in",
            Self::FlowRemoved => "flow-removed",
            Self::PortStatus => "port-status",
            Self::StatisticsPart => "a part of statistics",
            Self::Statistics => "statistics",
            Self::Barrier => "barrier reply",
            Self::Other(_) => "another message",
        }
    }

    /// Returns whether devices send the message unsolicited.
    #[must_use]
    pub const fn is_unsolicited(self) -> bool {
        matches!(self, Self::PacketIn | Self::FlowRemoved | Self::PortStatus)
    }
}

/// A received message.
#[derive(Clone, Copy, Debug)]
pub struct IncomingMessage<'a> {
    /// The kind of the message.
    pub kind: IncomingKind,
    /// The transaction id.
    pub xid: Xid,
    /// The arrival time of the last byte.
    pub arrival: Arrival,
    /// The time at which the request with the same transaction id was handed to the system, if
    /// known.
    pub handed: Option<Instant>,
    /// The whole message, with its header.
    pub bytes: &'a [u8],
    version: Version,
}

impl IncomingMessage<'_> {
    /// Decodes the message.
    ///
    /// # Errors
    /// The message violates the protocol.
    pub fn message(&self) -> Result<Message, Malformed> {
        Message::decode(self.bytes, self.version).map(|(_, message)| message)
    }

    /// Checks that the message is not an error.
    ///
    /// # Errors
    /// The message is an error about this request.
    pub fn expect_no_error(&self, request: &'static str) -> Result<(), ControllerError> {
        if self.kind != IncomingKind::Error {
            return Ok(());
        }
        let Ok(Message::Error(error)) = self.message() else {
            return Err(ControllerError::Down(
                "a malformed error message".to_owned(),
            ));
        };
        let fault = Box::new(Refusal {
            position: 0,
            xid: self.xid,
            message: request,
            reason: Reason::Error {
                fault: error.code,
                version: self.version,
                arrival: self.arrival,
            },
        });
        Err(ControllerError::Refused { request, fault })
    }

    /// Returns the version of the message.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.version
    }
}

/// A protocol violation that ends the connection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolViolation {
    /// The version negotiation failed.
    #[error("{0}")]
    Greeting(String),
    /// The length of a message is smaller than its header.
    #[error("a header claims a length of {0} bytes")]
    Length(usize),
    /// The message has another version than the negotiated one.
    #[error("received a message of wire version {found:#04x} after negotiation of {agreed}")]
    Version {
        /// The version in the header.
        found: u8,
        /// The negotiated version.
        agreed: Version,
    },
}

/// A sent message and the time at which it was handed to the system.
#[derive(Clone, Copy, Debug)]
struct SentMessage {
    xid: u32,
    /// The end of the message, in bytes since the start of all output.
    end: u64,
    handed: Option<Instant>,
}

/// One end of a connection.
#[derive(Debug)]
pub struct Conversation {
    channel: Channel,
    version: Option<Version>,
    input: Vec<u8>,
    /// Number of processed bytes of `input`.
    done: usize,
    output: Vec<u8>,
    /// Number of bytes of `output` that were handed to the system.
    written: usize,
    queued_bytes: u64,
    written_bytes: u64,
    times: VecDeque<SentMessage>,
    /// Number of `times` that were handed to the system.
    times_handed: usize,
    last_xid: u32,
    arrival: Arrival,
    tally: Tally,
}

impl Conversation {
    /// Returns the controller's end of a new connection. Its hello is pending.
    #[must_use]
    pub fn new(versions: VersionSet, now: Instant) -> Self {
        let options = ChannelOptions {
            versions,
            hello_timeout: HELLO,
            ..ChannelOptions::default()
        };
        let channel = Channel::new(ChannelSide::Controller, options, now);
        let output = channel.pending().to_vec();
        Self {
            queued_bytes: output.len() as u64,
            channel,
            version: None,
            input: Vec::new(),
            done: 0,
            output,
            written: 0,
            written_bytes: 0,
            times: VecDeque::new(),
            times_handed: 0,
            last_xid: 0,
            arrival: Arrival {
                at: now,
                by: testbed::Stamp::Read,
            },
            tally: Tally::new(now),
        }
    }

    /// Returns the negotiated version, if any.
    #[must_use]
    pub const fn version(&self) -> Option<Version> {
        self.version
    }

    /// Returns the message counters.
    #[must_use]
    pub const fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Appends received bytes. Callers must have taken all complete messages before.
    pub fn handle_input(&mut self, bytes: &[u8], arrival: Arrival) {
        self.input.drain(..self.done);
        self.done = 0;
        self.input.extend_from_slice(bytes);
        self.arrival = arrival;
    }

    /// Returns the next received message. Hellos and echo requests are processed internally.
    ///
    /// # Errors
    /// The input violates the protocol; the connection is unusable.
    pub fn next_message(&mut self) -> Result<Option<IncomingMessage<'_>>, ProtocolViolation> {
        let (range, version) = loop {
            let Some(range) = self.next_range()? else {
                return Ok(None);
            };
            let Some(version) = self.version else {
                self.negotiate(range)?;
                continue;
            };
            let message = &self.input[range.clone()];
            if message[0] != version.number() && message[1] != number::HELLO {
                let found = message[0];
                let agreed = version;
                return Err(ProtocolViolation::Version { found, agreed });
            }
            match message[1] {
                number::HELLO => {}
                number::ECHO_REQUEST => {
                    self.tally.note_echo_request(self.arrival.at);
                    self.echo(range, version);
                }
                _ => break (range, version),
            }
        };
        let bytes = &self.input[range];
        let kind = IncomingKind::of(bytes, version);
        let xid = xid(bytes);
        self.tally.note(kind, bytes, version, self.arrival.at);
        Ok(Some(IncomingMessage {
            kind,
            xid,
            arrival: self.arrival,
            handed: self.handed_at(xid),
            bytes,
            version,
        }))
    }

    /// Returns the range of the next complete message.
    fn next_range(&mut self) -> Result<Option<Range<usize>>, ProtocolViolation> {
        let rest = &self.input[self.done..];
        let Some([_, kind, a, b, ..]) = rest.first_chunk::<HEADER>() else {
            return Ok(None);
        };
        // Another first message proves that the peer is not a device, so its length field has no
        // meaning.
        if self.version.is_none() && !GREETINGS.contains(kind) {
            let reason = DownReason::HelloExpected(*kind);
            return Err(ProtocolViolation::Greeting(reason.to_string()));
        }
        let length = usize::from(u16::from_be_bytes([*a, *b]));
        if length < HEADER {
            return Err(ProtocolViolation::Length(length));
        }
        if rest.len() < length {
            return Ok(None);
        }
        let start = self.done;
        self.done += length;
        Ok(Some(start..self.done))
    }

    fn negotiate(&mut self, range: Range<usize>) -> Result<(), ProtocolViolation> {
        self.channel.transmitted(self.channel.backlog());
        self.channel
            .handle_input(&self.input[range], self.arrival.at);
        // If there is no common version, the channel sends an error to the other end.
        let answer = self.channel.pending().to_vec();
        self.append(&answer);
        while let Some(event) = self.channel.poll_event() {
            match event {
                ChannelEvent::Up(version) => self.version = Some(version),
                ChannelEvent::Down(reason) => {
                    return Err(ProtocolViolation::Greeting(reason.to_string()));
                }
                ChannelEvent::Received(_) | ChannelEvent::Refused(_) => {}
            }
        }
        Ok(())
    }

    fn echo(&mut self, range: Range<usize>, version: Version) {
        let request = &self.input[range];
        let xid = xid(request);
        let reply = Message::EchoReply(request[HEADER..].to_vec());
        let before = self.output.len();
        reply
            .encode(xid, version, &mut self.output)
            .expect("an echo is no longer than what it answers");
        self.queued_bytes += (self.output.len() - before) as u64;
    }

    /// Sends a message and returns its transaction id, for [`Self::handed_at`]. A message that
    /// cannot be encoded consumes an id too.
    ///
    /// # Errors
    /// The version cannot express the message.
    ///
    /// # Panics
    /// If no version is negotiated yet.
    pub fn send(&mut self, message: &Message) -> Result<Xid, EncodeError> {
        let version = self
            .version
            .expect("the version is negotiated before messages");
        self.last_xid = self.last_xid.wrapping_add(1);
        let xid = Xid(self.last_xid);
        let before = self.output.len();
        let outcome = message.encode(xid, version, &mut self.output);
        self.queued_bytes += (self.output.len() - before) as u64;
        self.tally.note_sent();
        if self.times.len() == TIMES_MAX {
            self.times.pop_front();
            self.times_handed = self.times_handed.saturating_sub(1);
        }
        self.times.push_back(SentMessage {
            xid: xid.0,
            end: self.queued_bytes,
            handed: None,
        });
        outcome.map(|()| xid)
    }

    /// Returns the transaction id of the last message.
    #[must_use]
    pub const fn last_xid(&self) -> Xid {
        Xid(self.last_xid)
    }

    /// Sends encoded messages, whose times are not stored.
    pub fn append(&mut self, messages: &[u8]) {
        self.output.extend_from_slice(messages);
        self.queued_bytes += messages.len() as u64;
    }

    /// Returns the bytes to be handed to the system.
    #[must_use]
    pub fn pending(&self) -> &[u8] {
        &self.output[self.written..]
    }

    /// Returns whether the output buffer is below its limit.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.pending().len() < BACKLOG_MAX
    }

    /// Records that the system accepted `count` pending bytes at `now`.
    ///
    /// # Panics
    /// If there were fewer pending bytes.
    pub fn transmitted(&mut self, count: usize, now: Instant) {
        assert!(count <= self.pending().len(), "no more than was pending");
        self.written += count;
        self.written_bytes += count as u64;
        if self.written == self.output.len() {
            self.output.clear();
            self.written = 0;
        } else if self.written > BACKLOG_MAX {
            self.output.drain(..self.written);
            self.written = 0;
        }
        if count > 0 {
            self.tally.note_handed(count, now);
        }
        while let Some(sent) = self.times.get_mut(self.times_handed) {
            if sent.end > self.written_bytes {
                break;
            }
            sent.handed = Some(now);
            self.times_handed += 1;
        }
    }

    /// Returns the time at which the last byte of a message was handed to the system, if that
    /// happened and is still stored.
    #[must_use]
    pub fn handed_at(&self, xid: Xid) -> Option<Instant> {
        let first = self.times.front()?.xid;
        let index = usize::try_from(xid.0.wrapping_sub(first)).ok()?;
        self.times.get(index)?.handed
    }
}

/// Returns the transaction id of a message, which has at least a header.
fn xid(message: &[u8]) -> Xid {
    Xid(u32::from_be_bytes([
        message[4], message[5], message[6], message[7],
    ]))
}

#[cfg(test)]
mod tests;
