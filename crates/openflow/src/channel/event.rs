//! What a channel tells its user.

use std::fmt;

use base::Xid;
use flow::FlowMod;

use crate::codec::Malformed;
use crate::error_codes::ErrorCode;
use crate::message::Message;
use crate::version::{Version, VersionSet};

/// What happened on the channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelEvent {
    /// Both ends agree on this version.
    Up(Version),
    /// A message came that is for the user of the channel.
    Received(BoxedMessage),
    /// A message came that could not be understood, or that the other side may not
    /// send. A switch has answered it.
    Refused(Malformed),
    /// The channel is over.
    Down(DownReason),
}

/// A message on its way to others: it is large, and a box is moved more cheaply.
pub type BoxedMessage = Box<ReceivedMessage>;

/// A message, and what is needed to refuse it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedMessage {
    /// The number that its replies must bear.
    pub xid: Xid,
    /// The message.
    pub message: Message,
    /// Its beginning, for an error message.
    pub excerpt: Excerpt,
}

/// Nothing that anybody sent: room for a message.
impl Default for ReceivedMessage {
    fn default() -> Self {
        Self {
            xid: Xid(0),
            message: Message::BarrierReply,
            excerpt: Excerpt::of(&[]),
        }
    }
}

impl ReceivedMessage {
    /// Actions of a message that it is worth to keep.
    const ACTIONS_MAX: usize = 4;

    /// Bytes of a match of such a message.
    const MATCH_MAX: usize = 64;

    /// Whether it is a flow-mod as most are, whose memory is of use to the next.
    pub(super) fn is_small(&self) -> bool {
        let Message::FlowMod(FlowMod {
            matching,
            instructions,
            ..
        }) = &self.message
        else {
            return false;
        };
        instructions.apply.capacity() <= Self::ACTIONS_MAX
            && instructions.write.is_empty()
            && matching.as_bytes().len() <= Self::MATCH_MAX
    }
}

/// Why a channel is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DownReason {
    /// No hello came in time.
    HelloTimeout,
    /// Something else came before a hello: the message type in its header.
    HelloExpected(u8),
    /// No version in common: what the other end speaks.
    Incompatible(VersionSet),
    /// The other end refused our hello.
    HelloRefused {
        /// The numbers of its error.
        code: ErrorCode,
        /// What it said, as far as it is text.
        text: String,
    },
    /// A header claims this length, which is less than its own.
    BadLength(u16),
    /// No message came, not even after an echo request.
    Unresponsive,
}

impl fmt::Display for DownReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HelloTimeout => f.write_str("no hello came in time"),
            Self::HelloExpected(kind) => {
                write!(f, "a message of type {kind} came in place of a hello")
            }
            Self::Incompatible(versions) => {
                write!(f, "no version in common: the peer speaks {versions}")
            }
            Self::HelloRefused { code, text } => {
                write!(f, "the peer refused our hello ({code}): {text}")
            }
            Self::BadLength(length) => {
                write!(f, "a header claims a length of {length} bytes")
            }
            Self::Unresponsive => f.write_str("the peer does not answer echo requests"),
        }
    }
}

/// The first 64 bytes of a message, or all of a shorter one: what an error message
/// quotes (OF 1.3.5, 7.4.4).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Excerpt {
    length: u8,
    bytes: [u8; Self::LENGTH_MAX],
}

impl Excerpt {
    /// Bytes that are quoted at most: no fewer must be, of a message that has them.
    pub const LENGTH_MAX: usize = 64;

    /// The beginning of `message`.
    #[must_use]
    pub fn of(message: &[u8]) -> Self {
        let bytes = message.first_chunk().copied().unwrap_or_else(|| {
            let mut bytes = [0; Self::LENGTH_MAX];
            bytes[..message.len()].copy_from_slice(message);
            bytes
        });
        let length = message.len().min(Self::LENGTH_MAX);
        let length = u8::try_from(length).expect("64 at most");
        Self { length, bytes }
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl fmt::Debug for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.as_bytes() {
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}
