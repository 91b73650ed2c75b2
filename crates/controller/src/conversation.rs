//! One end of a connection with a device, as bytes in and bytes out: no socket, no clock,
//! no thread.
//!
//! The channel of crate `openflow` greets. From then on messages are cut out of the stream
//! here and handed out as bytes, each with its number, for a controller that measures must
//! look at no more of what it is told than it has to: a million flows that are told would
//! else take longer to understand than to send. Whoever wants a message has it decoded.
//!
//! # Limits
//! Input is kept of one unfinished message, less than 65,536 bytes. What is said is kept
//! until it is handed to the system: whoever says much asks [`Conversation::has_room`]. The
//! times of the last 65,536 messages are known, no more.

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

/// Bytes of a message's header (OF 1.0.1, 5.1; OF 1.3.5, 7.1).
const HEADER: usize = 8;

/// Bytes that may wait to be handed to the system before more is said.
pub const BACKLOG_MAX: usize = 256 * 1024;

/// Messages whose times are known.
const TIMES_MAX: usize = 65_536;

/// How long a device may take to say hello.
pub(super) const HELLO: Duration = Duration::from_secs(5);

/// Messages of types that mean the same in all versions (OF 1.0.1, 5.1; OF 1.3.5, 7.1).
mod number {
    pub(super) const ECHO_REQUEST: u8 = 2;
    pub(super) const HELLO: u8 = 0;
}

/// What a device may begin with: a hello, or an error in place of one.
const GREETINGS: [u8; 2] = [number::HELLO, 1];

/// What a message is, as far as its header and first bytes say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// An error.
    Error,
    /// The answer to an echo request of ours.
    EchoReply,
    /// What the device is.
    Features,
    /// How it is configured.
    Config,
    /// A frame for the controller.
    PacketIn,
    /// A rule is gone.
    FlowRemoved,
    /// News of a port.
    PortStatus,
    /// A part of statistics or descriptions that another follows.
    StatisticsPart,
    /// Statistics or descriptions, or the last part of them.
    Statistics,
    /// All before a barrier is done.
    Barrier,
    /// Something else, of this number.
    Other(u8),
}

impl Kind {
    /// The kind of `message`, which has a header at least.
    fn of(message: &[u8], version: Version) -> Self {
        // From 1.1 on there are groups and tables, and later numbers are two higher.
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
            // The lowest bit of the flags says that more follows, in all versions.
            kind if kind == statistics => match message.get(11) {
                Some(flags) if flags & 1 == 1 => Self::StatisticsPart,
                _ => Self::Statistics,
            },
            kind if kind == barrier => Self::Barrier,
            kind => Self::Other(kind),
        }
    }

    /// What it is called.
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

    /// Whether devices send it unasked.
    #[must_use]
    pub const fn is_unasked(self) -> bool {
        matches!(self, Self::PacketIn | Self::FlowRemoved | Self::PortStatus)
    }
}

/// A message that came.
#[derive(Clone, Copy, Debug)]
pub struct Heard<'a> {
    /// What it is.
    pub kind: Kind,
    /// Its number.
    pub xid: Xid,
    /// When its last byte came.
    pub arrival: Arrival,
    /// When the message of ours that bears this number was handed to the system, if there
    /// is one and that is known.
    pub handed: Option<Instant>,
    /// All of it, header included.
    pub bytes: &'a [u8],
    version: Version,
}

impl Heard<'_> {
    /// The message, understood.
    ///
    /// # Errors
    /// It breaks the protocol.
    pub fn message(&self) -> Result<Message, Malformed> {
        Message::decode(self.bytes, self.version).map(|(_, message)| message)
    }

    /// Checks that it is no error.
    ///
    /// # Errors
    /// It is one, about this request.
    pub fn expect_no_error(&self, request: &'static str) -> Result<(), ControllerError> {
        if self.kind != Kind::Error {
            return Ok(());
        }
        let Ok(Message::Error(error)) = self.message() else {
            return Err(ControllerError::Down(
                "an error that cannot be read".to_owned(),
            ));
        };
        let fault = Box::new(Refusal {
            place: 0,
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

    /// The version that it is of.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.version
    }
}

/// Why nothing more can be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// They did not come to an agreement.
    #[error("{0}")]
    Greeting(String),
    /// A message claims to be shorter than its header.
    #[error("a header claims a length of {0} bytes")]
    Length(usize),
    /// A message is of another version than was agreed on.
    #[error("a message of wire version {found:#04x} came where {agreed} was agreed on")]
    Version {
        /// The number in its header.
        found: u8,
        /// What was agreed on.
        agreed: Version,
    },
}

/// When a message was handed to the system, if it was.
#[derive(Clone, Copy, Debug)]
struct Said {
    xid: u32,
    /// Its end, in bytes from the start of all that was said.
    end: u64,
    handed: Option<Instant>,
}

/// One end of a connection.
#[derive(Debug)]
pub struct Conversation {
    channel: Channel,
    version: Option<Version>,
    input: Vec<u8>,
    /// Bytes of the input that are dealt with.
    done: usize,
    output: Vec<u8>,
    /// Bytes of the output that are handed to the system.
    gone: usize,
    said: u64,
    handed: u64,
    times: VecDeque<Said>,
    /// Of these, how many are handed over.
    times_handed: usize,
    last_xid: u32,
    arrival: Arrival,
    tally: Tally,
}

impl Conversation {
    /// The controller's end of a new connection. Its hello is pending.
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
            said: output.len() as u64,
            channel,
            version: None,
            input: Vec::new(),
            done: 0,
            output,
            gone: 0,
            handed: 0,
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

    /// The version agreed on, if there is one yet.
    #[must_use]
    pub const fn version(&self) -> Option<Version> {
        self.version
    }

    /// What came and went so far.
    #[must_use]
    pub const fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Takes bytes that came. Whoever brings more first takes all that these made whole.
    pub fn handle_input(&mut self, bytes: &[u8], arrival: Arrival) {
        self.input.drain(..self.done);
        self.done = 0;
        self.input.extend_from_slice(bytes);
        self.arrival = arrival;
    }

    /// The next message that came. Hellos and echo requests are dealt with here.
    ///
    /// # Errors
    /// What came is no OpenFlow; nothing more can be heard.
    pub fn hear(&mut self) -> Result<Option<Heard<'_>>, Broken> {
        let (place, version) = loop {
            let Some(place) = self.cut()? else {
                return Ok(None);
            };
            let Some(version) = self.version else {
                self.greet(place)?;
                continue;
            };
            let message = &self.input[place.clone()];
            if message[0] != version.number() && message[1] != number::HELLO {
                let found = message[0];
                let agreed = version;
                return Err(Broken::Version { found, agreed });
            }
            match message[1] {
                number::HELLO => {}
                number::ECHO_REQUEST => {
                    self.tally.note_echo_request(self.arrival.at);
                    self.echo(place, version);
                }
                _ => break (place, version),
            }
        };
        let bytes = &self.input[place];
        let kind = Kind::of(bytes, version);
        let xid = xid(bytes);
        self.tally.note(kind, bytes, version, self.arrival.at);
        Ok(Some(Heard {
            kind,
            xid,
            arrival: self.arrival,
            handed: self.handed_at(xid),
            bytes,
            version,
        }))
    }

    /// Where the next whole message is.
    fn cut(&mut self) -> Result<Option<Range<usize>>, Broken> {
        let rest = &self.input[self.done..];
        let Some([_, kind, a, b, ..]) = rest.first_chunk::<HEADER>() else {
            return Ok(None);
        };
        // Who begins with something else is no device: its length means nothing.
        if self.version.is_none() && !GREETINGS.contains(kind) {
            let reason = DownReason::HelloExpected(*kind);
            return Err(Broken::Greeting(reason.to_string()));
        }
        let length = usize::from(u16::from_be_bytes([*a, *b]));
        if length < HEADER {
            return Err(Broken::Length(length));
        }
        if rest.len() < length {
            return Ok(None);
        }
        let start = self.done;
        self.done += length;
        Ok(Some(start..self.done))
    }

    fn greet(&mut self, place: Range<usize>) -> Result<(), Broken> {
        self.channel.transmitted(self.channel.backlog());
        self.channel
            .handle_input(&self.input[place], self.arrival.at);
        // Where there is no agreement, an error says so to the other end.
        let answer = self.channel.pending().to_vec();
        self.append(&answer);
        while let Some(event) = self.channel.poll_event() {
            match event {
                ChannelEvent::Up(version) => self.version = Some(version),
                ChannelEvent::Down(reason) => return Err(Broken::Greeting(reason.to_string())),
                ChannelEvent::Received(_) | ChannelEvent::Refused(_) => {}
            }
        }
        Ok(())
    }

    fn echo(&mut self, place: Range<usize>, version: Version) {
        let request = &self.input[place];
        let xid = xid(request);
        let reply = Message::EchoReply(request[HEADER..].to_vec());
        let before = self.output.len();
        reply
            .encode(xid, version, &mut self.output)
            .expect("an echo is no longer than what it answers");
        self.said += (self.output.len() - before) as u64;
    }

    /// Says something, and answers its number, by which [`Self::handed_at`] knows it. What
    /// cannot be said takes a number too.
    ///
    /// # Errors
    /// The version has no words for it.
    ///
    /// # Panics
    /// If no version is agreed on yet.
    pub fn say(&mut self, message: &Message) -> Result<Xid, EncodeError> {
        let version = self.version.expect("an agreement comes before messages");
        self.last_xid = self.last_xid.wrapping_add(1);
        let xid = Xid(self.last_xid);
        let before = self.output.len();
        let outcome = message.encode(xid, version, &mut self.output);
        self.said += (self.output.len() - before) as u64;
        self.tally.note_said();
        if self.times.len() == TIMES_MAX {
            self.times.pop_front();
            self.times_handed = self.times_handed.saturating_sub(1);
        }
        self.times.push_back(Said {
            xid: xid.0,
            end: self.said,
            handed: None,
        });
        outcome.map(|()| xid)
    }

    /// The number of what was said last.
    #[must_use]
    pub const fn last_xid(&self) -> Xid {
        Xid(self.last_xid)
    }

    /// Says messages that were encoded before, whose times are not kept.
    pub fn append(&mut self, messages: &[u8]) {
        self.output.extend_from_slice(messages);
        self.said += messages.len() as u64;
    }

    /// What is to be handed to the system.
    #[must_use]
    pub fn pending(&self) -> &[u8] {
        &self.output[self.gone..]
    }

    /// Whether more may be said without much waiting.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.pending().len() < BACKLOG_MAX
    }

    /// Takes note that the system has so many of the pending bytes since `now`.
    ///
    /// # Panics
    /// If there were not so many.
    pub fn transmitted(&mut self, count: usize, now: Instant) {
        assert!(count <= self.pending().len(), "no more than there was");
        self.gone += count;
        self.handed += count as u64;
        if self.gone == self.output.len() {
            self.output.clear();
            self.gone = 0;
        } else if self.gone > BACKLOG_MAX {
            self.output.drain(..self.gone);
            self.gone = 0;
        }
        if count > 0 {
            self.tally.note_handed(count, now);
        }
        while let Some(said) = self.times.get_mut(self.times_handed) {
            if said.end > self.handed {
                break;
            }
            said.handed = Some(now);
            self.times_handed += 1;
        }
    }

    /// When the last byte of a message was handed to the system, if it was and if that is
    /// not too long ago to be known.
    #[must_use]
    pub fn handed_at(&self, xid: Xid) -> Option<Instant> {
        let first = self.times.front()?.xid;
        let place = usize::try_from(xid.0.wrapping_sub(first)).ok()?;
        self.times.get(place)?.handed
    }
}

/// The number of a message, which has a header at least.
fn xid(message: &[u8]) -> Xid {
    Xid(u32::from_be_bytes([
        message[4], message[5], message[6], message[7],
    ]))
}

#[cfg(test)]
mod tests;
