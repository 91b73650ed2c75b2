//! The events that a channel reports to its user.

use std::fmt;

use base::Xid;
use flow::FlowMod;

use crate::codec::Malformed;
use crate::error_codes::ErrorCode;
use crate::message::Message;
use crate::version::{Version, VersionSet};

/// An event on the channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelEvent {
    /// Both ends negotiated this version.
    Up(Version),
    /// A message for the user of the channel.
    Received(BoxedMessage),
    /// A malformed message, or one that the peer may not send. A switch has answered it with an
    /// error.
    Refused(Malformed),
    /// The channel is closed.
    Down(DownReason),
}

/// A boxed message: it is large, and a box is cheaper to move.
pub type BoxedMessage = Box<ReceivedMessage>;

/// A message with the data for an error reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedMessage {
    /// The transaction id, which its replies repeat.
    pub xid: Xid,
    /// The message.
    pub message: Message,
    /// The message as received, for an error message.
    pub excerpt: Excerpt,
}

/// A placeholder to decode a message into.
impl Default for ReceivedMessage {
    fn default() -> Self {
        Self {
            xid: Xid(0),
            message: Message::BarrierReply,
            excerpt: Excerpt::default(),
        }
    }
}

impl ReceivedMessage {
    /// Returns an upper estimate of the memory of a message that was received with so many bytes:
    /// the bytes are kept for an error message, and decoded actions take up to six times theirs.
    #[must_use]
    pub const fn memory_of(wire_bytes: usize) -> usize {
        size_of::<Self>() + 7 * wire_bytes
    }

    /// The maximum number of actions of a message to reuse.
    const ACTIONS_MAX: usize = 4;

    /// The maximum length in bytes of the match of a message to reuse.
    const MATCH_MAX: usize = 64;

    /// The maximum capacity in bytes of the excerpt of a message to reuse.
    const EXCERPT_MAX: usize = 512;

    /// Returns true for a flow-mod of typical size, the memory of which is worth reusing.
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
            && self.excerpt.0.capacity() <= Self::EXCERPT_MAX
    }
}

/// The reason why a channel closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DownReason {
    /// No hello arrived in time.
    HelloTimeout,
    /// Another message arrived before a hello; the value is the message type in its header.
    HelloExpected(u8),
    /// No version in common; the value is the set of the peer's versions.
    Incompatible(VersionSet),
    /// The peer refused our hello.
    HelloRefused {
        /// The numbers of its error.
        code: ErrorCode,
        /// The text of its error, with invalid UTF-8 replaced.
        text: String,
    },
    /// A header has this length, which is less than a header's.
    BadLength(u16),
    /// No message arrived, even after an echo request.
    Unresponsive,
}

impl fmt::Display for DownReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HelloTimeout => f.write_str("no hello within the timeout"),
            Self::HelloExpected(kind) => {
                write!(f, "message of type {kind} instead of a hello")
            }
            Self::Incompatible(versions) => {
                write!(f, "no version in common: the peer supports {versions}")
            }
            Self::HelloRefused { code, text } => {
                write!(f, "the peer refused our hello ({code}): {text}")
            }
            Self::BadLength(length) => {
                write!(f, "invalid message length in a header: {length} bytes")
            }
            Self::Unresponsive => f.write_str("the peer does not answer echo requests"),
        }
    }
}

/// A message as received, for the data of an error message, which repeats as much of it as fits
/// (OF 1.3.5, 7.4.4, requires 64 bytes; Open vSwitch also sends all). Only a message of nearly the
/// maximum length is truncated.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Excerpt(Vec<u8>);

impl Excerpt {
    /// The maximum number of bytes: the longest message without the longest header of an error
    /// message, which is that of Nicira's errors in OpenFlow 1.0.
    pub const LENGTH_MAX: usize = u16::MAX as usize - 20;

    /// Returns the excerpt of `message`.
    #[must_use]
    pub fn of(message: &[u8]) -> Self {
        let mut excerpt = Self::default();
        excerpt.set(message);
        excerpt
    }

    /// Replaces the contents by the excerpt of `message`. The memory is reused.
    pub(super) fn set(&mut self, message: &[u8]) {
        self.0.clear();
        let length = message.len().min(Self::LENGTH_MAX);
        self.0.extend_from_slice(&message[..length]);
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
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
