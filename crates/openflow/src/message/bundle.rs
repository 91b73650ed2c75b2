//! Bundles: messages that take effect together or not at all. OpenFlow 1.4's (OF 1.4.1, 7.3.9) and,
//! with the same layout, those of ONF's extension 230 to 1.3.
//!
//! ```text
//!  0        4      6       8
//! +--------+------+-------+----
//! | bundle | type | flags | properties     (control)
//! | bundle | zero | flags | a message, padded to eight bytes, properties (add)
//! +--------+------+-------+----
//! ```
//!
//! In 1.5 a property of a commit can set the time of execution (OF 1.5.1, 7.3.9.9).

use std::time::Duration;

use base::Xid;
use flow::Refusal;

use super::{Message, WireFormat, encode_framed, message_row, property};
use crate::channel::Excerpt;
use crate::codec::{EncodeError, Malformed, Reader, Writer};
use crate::dialect::Dialect;
use crate::header::Header;
use crate::kinds::MessageKind;
use crate::version::Version;

/// The id of a bundle within a connection, assigned by the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BundleId(pub u32);

/// The mode of execution of a bundle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BundleFlags(pub u16);

impl BundleFlags {
    /// No packet observes a part of the bundle (`OFPBF_ATOMIC`).
    pub const ATOMIC: Self = Self(1 << 0);
    /// Executes the messages in order (`OFPBF_ORDERED`).
    pub const ORDERED: Self = Self(1 << 1);

    /// Executes the bundle at the time in the commit (`OFPBF_TIME` of 1.5).
    pub const TIME: Self = Self(1 << 2);

    /// Returns true if the specification defines all set bits.
    #[must_use]
    pub const fn is_known(self) -> bool {
        self.0 & !(Self::ATOMIC.0 | Self::ORDERED.0 | Self::TIME.0) == 0
    }

    /// Returns true if all flags of `other` are set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A wall-clock time since the beginning of 1970, or a duration (`ofp_time` of 1.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct WallTime(pub Duration);

impl WallTime {
    /// Decodes sixteen bytes: seconds, nanoseconds, padding.
    pub(super) fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let bad = r.fail(Refusal::PropertyBadValue);
        let (seconds, nanos) = (r.u64()?, r.u32()?);
        r.skip(4)?;
        if nanos >= 1_000_000_000 {
            return Err(bad);
        }
        Ok(Self(Duration::new(seconds, nanos)))
    }

    /// Appends sixteen bytes.
    pub(super) fn encode(self, w: &mut Writer<'_>) {
        w.u64(self.0.as_secs());
        w.u32(self.0.subsec_nanos());
        w.zeros(4);
    }
}

/// `OFPBPT_TIME`.
const TIME: u16 = 1;

/// The step of a bundle control message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BundleStep {
    /// Opens the bundle.
    OpenRequest,
    /// The bundle is open.
    OpenReply,
    /// Closes the bundle to further messages.
    CloseRequest,
    /// The bundle is closed.
    CloseReply,
    /// Executes the bundle.
    CommitRequest,
    /// The bundle was executed.
    CommitReply,
    /// Discards the bundle.
    DiscardRequest,
    /// The bundle was discarded.
    DiscardReply,
}

impl BundleStep {
    /// All steps in the order of their numbers.
    const ALL: [Self; 8] = [
        Self::OpenRequest,
        Self::OpenReply,
        Self::CloseRequest,
        Self::CloseReply,
        Self::CommitRequest,
        Self::CommitReply,
        Self::DiscardRequest,
        Self::DiscardReply,
    ];
}

/// A bundle control message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BundleControl {
    /// The bundle.
    pub bundle: BundleId,
    /// The step.
    pub step: BundleStep,
    /// The mode of execution.
    pub flags: BundleFlags,
    /// The time of execution, if there is one (1.5).
    pub time: Option<WallTime>,
}

/// A bundle add message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleAdd {
    /// The bundle.
    pub bundle: BundleId,
    /// The mode of execution.
    pub flags: BundleFlags,
    /// The contained message. It has the transaction id of the bundle add message.
    pub message: Box<Message>,
    /// The contained message as received, for an error message.
    pub excerpt: Excerpt,
    /// The length of the contained message in bytes.
    pub length: u16,
}

impl WireFormat for BundleControl {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let bundle = BundleId(r.u32()?);
        let bad = r.fail(Refusal::BundleBadType);
        let step = BundleStep::ALL.get(usize::from(r.u16()?));
        let step = *step.ok_or(bad)?;
        let flags = BundleFlags(r.u16()?);
        let time = match r.version() {
            Version::V15 => decode_time(r)?,
            // Only experimenters define properties here.
            _ => {
                r.rest();
                None
            }
        };
        Ok(Self {
            bundle,
            step,
            flags,
            time,
        })
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        let mut numbered = (0..).zip(BundleStep::ALL);
        let found = numbered.find(|(_, step)| *step == self.step);
        let (number, _) = found.expect("every step is in the list");
        w.u32(self.bundle.0);
        w.u16(number);
        w.u16(self.flags.0);
        match (self.time, w.version()) {
            (None, _) => Ok(()),
            (Some(time), Version::V15) => property::put(TIME, w, |w| {
                w.zeros(4);
                time.encode(w);
                Ok(())
            }),
            (Some(_), _) => Err(w.unsupported("the time of a bundle commit")),
        }
    }
}

/// Decodes the properties of a step: the time of execution, if there is one.
pub(crate) fn decode_time(r: &mut Reader<'_>) -> Result<Option<WallTime>, Malformed> {
    let mut time = None;
    while !r.is_empty() {
        let mut property = property::next(r)?;
        match property.kind {
            TIME if property.value.len() != 20 => {
                return Err(property.fail(Refusal::PropertyBadLength));
            }
            TIME if time.is_some() => return Err(property.fail(Refusal::PropertyDuplicate)),
            TIME => {
                property.value.skip(4)?;
                time = Some(WallTime::decode(&mut property.value)?);
            }
            _ => return Err(property.unknown()),
        }
    }
    Ok(time)
}

/// Decodes a bundle add message with the transaction id `xid`.
pub(super) fn decode_add(xid: Xid, r: &mut Reader<'_>) -> Result<BundleAdd, Malformed> {
    let bundle = BundleId(r.u32()?);
    r.skip(2)?;
    let flags = BundleFlags(r.u16()?);
    let start = r.fail(Refusal::BundleMessageBadLength);
    let rest = r.rest();
    let header = Header::peek(rest).ok_or(start)?;
    let length = usize::from(header.length);
    let bytes = rest.get(..length).filter(|_| length >= Header::LENGTH);
    let bytes = bytes.ok_or(start)?;
    let refused = |refusal| Malformed { refusal, ..start };
    if header.xid != xid {
        return Err(refused(Refusal::BundleMessageBadXid));
    }
    check_kind(&header, bytes, r.dialect()).map_err(refused)?;
    let within = |malformed: Malformed| Malformed {
        at: start.at + malformed.at,
        ..malformed
    };
    let (_, message) = Message::decode(bytes, r.dialect()).map_err(within)?;
    Ok(BundleAdd {
        bundle,
        flags,
        message: Box::new(message),
        excerpt: Excerpt::of(bytes),
        length: header.length,
    })
}

/// Checks that a bundle may contain the message: changes of tables and ports, and packet-outs.
/// Bundle messages are refused, so that bundles do not nest.
fn check_kind(header: &Header, bytes: &[u8], dialect: Dialect) -> Result<(), Refusal> {
    if header.version != dialect.version.number() {
        return Err(Refusal::RequestBadVersion);
    }
    let mut r = Reader::new(bytes, dialect);
    let row = r
        .skip(Header::LENGTH)
        .and_then(|()| message_row(header, &mut r));
    match row.map(|row| row.kind) {
        Ok(
            MessageKind::FlowMod
            | MessageKind::GroupMod
            | MessageKind::MeterMod
            | MessageKind::PortMod
            | MessageKind::PacketOut,
        ) => Ok(()),
        Ok(_) | Err(_) => Err(Refusal::BundleMessageUnsupported),
    }
}

/// Appends a bundle add message, including its header.
pub(super) fn encode_add(
    add: &BundleAdd,
    xid: Xid,
    dialect: Dialect,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let mut message = Vec::new();
    add.message.encode(xid, dialect, &mut message)?;
    encode_framed(MessageKind::BundleAdd, xid, dialect, out, |w| {
        w.u32(add.bundle.0);
        w.zeros(2);
        w.u16(add.flags.0);
        w.bytes(&message);
        Ok(())
    })
}
