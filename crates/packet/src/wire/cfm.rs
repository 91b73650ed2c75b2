//! Connectivity fault management (IEEE 802.1ag): continuity check messages (21.6), with the fields
//! of Open vSwitch's extended mode in octets that the standard reserves for ITU-T Y.1731.
//!
//! ```text
//!  0       1      2     3          4          8    10       58         60       68      69   74
//! +-------+------+-----+----------+----------+----+--------+----------+--------+-------+----+---+
//! |lvl,ver|opcode|flags|TLV offset| sequence |MEP | MAID   | interval | MEP 64 | down  | 0  |end|
//! +-------+------+-----+----------+----------+----+--------+----------+--------+-------+----+---+
//! ```

use super::ethernet::{self, EtherType, Ethernet};
use super::u16_at;
use super::vlan::VlanTag;
use crate::{Link, MacAddr};

/// The type of the frames.
pub const TYPE: EtherType = EtherType(0x8902);
/// Length of a message, in bytes.
pub const LEN: usize = 75;
/// Length of the shortest message that is accepted: old versions of Open vSwitch leave the end out.
pub const LEN_MIN: usize = 74;
/// Length of the identifier of a maintenance association, in bytes.
pub const MAID_LEN: usize = 48;
/// The destination of messages at maintenance level 0 (802.1ag, table 8-9).
pub const ADDRESS: MacAddr = MacAddr([0x01, 0x80, 0xc2, 0, 0, 0x30]);
/// The destination of messages in extended mode, which bridges forward.
pub const ADDRESS_EXTENDED: MacAddr = MacAddr([0x01, 0x23, 0x20, 0, 0, 0x30]);

/// The opcode of a continuity check message.
const OPCODE: u8 = 1;
/// The offset of the first TLV, counted from the end of the four-byte header.
const TLV_OFFSET: u8 = 70;
/// The flag that the sender receives no messages (RDI).
const REMOTE_DEFECT: u8 = 0x80;
/// The bits of the flags with the interval.
const INTERVAL: u8 = 0x07;

/// A continuity check message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContinuityCheck {
    /// The sequence number.
    pub sequence: u32,
    /// The sender receives no messages of others.
    pub remote_defect: bool,
    /// The code of the transmission interval; zero if `interval_ms` has it.
    pub interval: u8,
    /// The sender's identifier in its maintenance association.
    pub mpid: u16,
    /// The identifier of the maintenance association.
    pub maid: [u8; MAID_LEN],
    /// Extended mode: the transmission interval in milliseconds; zero if `interval` has it.
    pub interval_ms: u16,
    /// Extended mode: the sender's identifier.
    pub mpid_extended: u64,
    /// Extended mode: the sender is operationally down.
    pub is_down: bool,
}

/// The reason to discard a frame of connectivity fault management.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MalformedCfm {
    /// The message is truncated.
    #[error("truncated 802.1ag message")]
    Truncated,
    /// The message is not a continuity check.
    #[error("unsupported 802.1ag message (opcode {0})")]
    Opcode(u8),
}

/// The headers before a continuity check message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContinuityCheckHeader {
    /// The destination, [`ADDRESS`] or [`ADDRESS_EXTENDED`].
    pub dst: MacAddr,
    /// The source.
    pub src: MacAddr,
    /// The VLAN tag, if the frame has one.
    pub tag: Option<VlanTag>,
}

impl ContinuityCheckHeader {
    /// Returns the destination and the message in a frame of connectivity fault management, VLAN
    /// tags skipped; none if the frame holds something else.
    #[must_use]
    pub fn find(frame: &[u8]) -> Option<(Self, &[u8])> {
        let link = Link::parse(frame).ok()?;
        let header = Self {
            dst: link.dst,
            src: link.src,
            tag: link.tag,
        };
        let is_one = link.eth_type == TYPE;
        is_one.then(|| Some((header, frame.get(link.payload_at()..)?)))?
    }

    /// Returns the frame with this message.
    #[must_use]
    pub fn emit(&self, message: &ContinuityCheck) -> Vec<u8> {
        let header = Ethernet {
            dst: self.dst,
            src: self.src,
        };
        let header = header.emit(TYPE.0);
        let (addresses, eth_type) = header.split_at(ethernet::TYPE);
        let tag = self.tag.map(|tag| tag.emit());
        let tag = tag.as_ref().map_or(&[][..], |tag| &tag[..]);
        [addresses, tag, eth_type, &message.emit()].concat()
    }
}

impl ContinuityCheck {
    /// Parses a message.
    ///
    /// # Errors
    /// The message is truncated, or no continuity check.
    pub fn parse(bytes: &[u8]) -> Result<Self, MalformedCfm> {
        let bytes: &[u8; LEN_MIN] = bytes.first_chunk().ok_or(MalformedCfm::Truncated)?;
        let [_, opcode, flags, _, s0, s1, s2, s3, ..] = *bytes;
        if opcode != OPCODE {
            return Err(MalformedCfm::Opcode(opcode));
        }
        let mut maid = [0; MAID_LEN];
        maid.copy_from_slice(&bytes[10..58]);
        let mut mpid_extended = [0; 8];
        mpid_extended.copy_from_slice(&bytes[60..68]);
        Ok(Self {
            sequence: u32::from_be_bytes([s0, s1, s2, s3]),
            remote_defect: flags & REMOTE_DEFECT != 0,
            interval: flags & INTERVAL,
            mpid: u16_at(bytes, 8),
            maid,
            interval_ms: u16_at(bytes, 58),
            mpid_extended: u64::from_be_bytes(mpid_extended),
            is_down: bytes[68] != 0,
        })
    }

    /// Returns the bytes of the message.
    #[must_use]
    pub fn emit(&self) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        bytes[1] = OPCODE;
        bytes[2] = self.interval & INTERVAL | if self.remote_defect { REMOTE_DEFECT } else { 0 };
        bytes[3] = TLV_OFFSET;
        bytes[4..8].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[8..10].copy_from_slice(&self.mpid.to_be_bytes());
        bytes[10..58].copy_from_slice(&self.maid);
        bytes[58..60].copy_from_slice(&self.interval_ms.to_be_bytes());
        bytes[60..68].copy_from_slice(&self.mpid_extended.to_be_bytes());
        bytes[68] = u8::from(self.is_down);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> ContinuityCheck {
        let mut maid = [0; MAID_LEN];
        maid[..10].copy_from_slice(b"\x04\x03ovs\x02\x03ovs");
        ContinuityCheck {
            sequence: 0x0102_0304,
            remote_defect: true,
            interval: 4,
            mpid: 0x1fff,
            maid,
            interval_ms: 300,
            mpid_extended: 0x0807_0605_0403_0201,
            is_down: true,
        }
    }

    #[test]
    fn continuity_check_round_trips() {
        let bytes = message().emit();
        let begin = [
            0, 1, 0x84, 70, 1, 2, 3, 4, 0x1f, 0xff, 4, 3, b'o', b'v', b's', 2, 3,
        ];
        assert_eq!(bytes[..begin.len()], begin);
        assert_eq!(bytes[58..69], [1, 44, 8, 7, 6, 5, 4, 3, 2, 1, 1]);
        assert_eq!(ContinuityCheck::parse(&bytes), Ok(message()));
        assert_eq!(ContinuityCheck::parse(&bytes[..LEN_MIN]), Ok(message()));
        for len in 0..LEN_MIN {
            let truncated = ContinuityCheck::parse(&bytes[..len]);
            assert_eq!(truncated, Err(MalformedCfm::Truncated), "{len}");
        }
        let mut other = bytes;
        other[1] = 3;
        assert_eq!(ContinuityCheck::parse(&other), Err(MalformedCfm::Opcode(3)));
    }

    #[test]
    fn continuity_check_frame_round_trips_with_and_without_tag() {
        let tag = VlanTag {
            tpid: EtherType::VLAN.0,
            pcp: 5,
            dei: false,
            vid: 7,
        };
        for tag in [None, Some(tag)] {
            let header = ContinuityCheckHeader {
                dst: ADDRESS,
                src: MacAddr([2, 0, 0, 0, 0, 1]),
                tag,
            };
            let frame = header.emit(&message());
            let (found, bytes) = ContinuityCheckHeader::find(&frame).expect("a message");
            assert_eq!(found, header);
            assert_eq!(ContinuityCheck::parse(bytes), Ok(message()));
            assert_eq!(ContinuityCheckHeader::find(&frame[..13]), None);
        }
    }
}
