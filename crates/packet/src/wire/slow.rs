//! Slow protocols between the two ends of a link (IEEE 802.3, annex 57A): LACP and the marker
//! protocol (IEEE 802.1AX-2014, 6.4.2 and 6.5.3).
//!
//! ```text
//!  0     1     2                22               42               58
//! +-----+-----+----------------+----------------+----------------+-----
//! |  1  | ver | 1, 20, actor   | 2, 20, partner | 3, 16, delay.. | zeros
//! +-----+-----+----------------+----------------+----------------+-----
//! information: | prio(2) | system(6) | key(2) | prio(2) | port(2) | state(1) | 0 (3) |
//!
//! +-----+-----+------+------+------+--------+----------------+-----
//! |  2  | ver | 1, 2 |  16  | port | system | transaction    | zeros
//! +-----+-----+------+------+------+--------+----------------+-----
//! ```

use super::ethernet::{self, EtherType, Ethernet};
use super::u16_at;
use crate::MacAddr;

/// Destination address of all slow protocols; no bridge forwards it.
pub const GROUP: MacAddr = MacAddr([0x01, 0x80, 0xc2, 0x00, 0x00, 0x02]);
/// The type of their frames.
pub const TYPE: EtherType = EtherType(0x8809);
/// Length of a PDU of either protocol from its subtype on, in bytes.
pub const LEN: usize = 110;
/// Length of a whole frame with one, in bytes.
pub const FRAME_LEN: usize = ethernet::LEN + LEN;

/// Subtypes.
const LACP: u8 = 1;
const MARKER: u8 = 2;
/// Version in sent PDUs. Received PDUs may have any: later versions keep the layout.
const VERSION: u8 = 1;
/// TLV types with their lengths.
const ACTOR: [u8; 2] = [1, 20];
const PARTNER: [u8; 2] = [2, 20];
const COLLECTOR: [u8; 2] = [3, 16];
const MARKER_INFO: [u8; 2] = [1, 16];
const MARKER_RESPONSE: [u8; 2] = [2, 16];
/// Length of the information TLV of one end, in bytes.
const INFO_LEN: usize = 20;
/// Offsets of the TLVs of a LACPDU.
const ACTOR_AT: usize = 2;
const PARTNER_AT: usize = ACTOR_AT + INFO_LEN;
const COLLECTOR_AT: usize = PARTNER_AT + INFO_LEN;

/// System identifier: owner of the ports that may be aggregated. The lower one decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LacpSystem {
    /// System priority.
    pub priority: u16,
    /// System address.
    pub address: MacAddr,
}

/// State of one end (6.4.2.3, `Actor_State`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LacpState(pub u8);

impl LacpState {
    /// Active LACP: PDUs are sent without request.
    pub const ACTIVITY: Self = Self(1);
    /// Short timeout: one PDU per second is expected.
    pub const TIMEOUT: Self = Self(1 << 1);
    /// The port may be aggregated with others.
    pub const AGGREGATION: Self = Self(1 << 2);
    /// The port is attached to the right aggregator.
    pub const SYNCHRONIZATION: Self = Self(1 << 3);
    /// Received frames are accepted.
    pub const COLLECTING: Self = Self(1 << 4);
    /// Frames are sent.
    pub const DISTRIBUTING: Self = Self(1 << 5);
    /// The partner's information consists of administrative defaults.
    pub const DEFAULTED: Self = Self(1 << 6);
    /// The partner's PDUs have timed out.
    pub const EXPIRED: Self = Self(1 << 7);

    /// The bits by name, in their order.
    pub const NAMES: [(Self, &'static str); 8] = [
        (Self::ACTIVITY, "activity"),
        (Self::TIMEOUT, "timeout"),
        (Self::AGGREGATION, "aggregation"),
        (Self::SYNCHRONIZATION, "synchronized"),
        (Self::COLLECTING, "collecting"),
        (Self::DISTRIBUTING, "distributing"),
        (Self::DEFAULTED, "defaulted"),
        (Self::EXPIRED, "expired"),
    ];

    /// True if all of `bits` are set.
    #[must_use]
    pub const fn has(self, bits: Self) -> bool {
        self.0 & bits.0 == bits.0
    }

    /// Returns the state with `bits` set or cleared.
    #[must_use]
    pub const fn with(self, bits: Self, set: bool) -> Self {
        if set {
            Self(self.0 | bits.0)
        } else {
            Self(self.0 & !bits.0)
        }
    }
}

/// Information about one end of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LacpInfo {
    /// System identifier.
    pub system: LacpSystem,
    /// Operational key: ports of a system with the same key may be aggregated.
    pub key: u16,
    /// Port priority: ports with lower numbers are aggregated first.
    pub port_priority: u16,
    /// Port number.
    pub port: u16,
    /// State bits.
    pub state: LacpState,
}

impl LacpInfo {
    fn parse(bytes: &[u8]) -> Self {
        let address = std::array::from_fn(|index| bytes[4 + index]);
        Self {
            system: LacpSystem {
                priority: u16_at(bytes, 2),
                address: MacAddr(address),
            },
            key: u16_at(bytes, 10),
            port_priority: u16_at(bytes, 12),
            port: u16_at(bytes, 14),
            state: LacpState(bytes[16]),
        }
    }

    fn emit(&self, into: &mut [u8]) {
        into[2..4].copy_from_slice(&self.system.priority.to_be_bytes());
        into[4..10].copy_from_slice(&self.system.address.0);
        into[10..12].copy_from_slice(&self.key.to_be_bytes());
        into[12..14].copy_from_slice(&self.port_priority.to_be_bytes());
        into[14..16].copy_from_slice(&self.port.to_be_bytes());
        into[16] = self.state.0;
    }
}

/// A LACPDU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lacpdu {
    /// Information about the sender.
    pub actor: LacpInfo,
    /// Information that the sender has about the other end.
    pub partner: LacpInfo,
    /// Maximum delay of the frame collector, in tens of microseconds.
    pub collector_delay: u16,
}

/// Marker PDU: its response proves that all frames sent before it were received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marker {
    /// True for a response.
    pub is_response: bool,
    /// System of the requester.
    pub system: MacAddr,
    /// Port of the requester.
    pub port: u16,
    /// Transaction number of the request.
    pub transaction: u32,
}

/// A message of a slow protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowPdu {
    /// LACPDU.
    Lacp(Lacpdu),
    /// Marker PDU.
    Marker(Marker),
    /// PDU of another subtype.
    Other(u8),
}

/// Error: the PDU is truncated or lacks a required TLV.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed slow protocol PDU")]
pub struct MalformedSlowPdu;

/// True if the frame belongs to a slow protocol.
#[inline]
#[must_use]
pub fn is_slow_protocol(frame: &[u8]) -> bool {
    frame.len() > ethernet::LEN
        && frame[..ethernet::SRC] == GROUP.0
        && u16_at(frame, ethernet::TYPE) == TYPE.0
}

impl SlowPdu {
    /// Parses the PDU of a frame for which [`is_slow_protocol`] holds.
    ///
    /// # Errors
    /// The PDU is truncated or malformed.
    pub fn parse(frame: &[u8]) -> Result<Self, MalformedSlowPdu> {
        let bytes = frame.get(ethernet::LEN..).ok_or(MalformedSlowPdu)?;
        let subtype = *bytes.first().ok_or(MalformedSlowPdu)?;
        if !matches!(subtype, LACP | MARKER) {
            return Ok(Self::Other(subtype));
        }
        let bytes: &[u8; LEN] = bytes.first_chunk().ok_or(MalformedSlowPdu)?;
        let begins = |at: usize, with: [u8; 2]| bytes[at..at + 2] == with;
        if subtype == LACP {
            if !begins(ACTOR_AT, ACTOR) || !begins(PARTNER_AT, PARTNER) {
                return Err(MalformedSlowPdu);
            }
            return Ok(Self::Lacp(Lacpdu {
                actor: LacpInfo::parse(&bytes[ACTOR_AT..]),
                partner: LacpInfo::parse(&bytes[PARTNER_AT..]),
                collector_delay: u16_at(bytes, COLLECTOR_AT + 2),
            }));
        }
        let is_response = begins(2, MARKER_RESPONSE);
        if !is_response && !begins(2, MARKER_INFO) {
            return Err(MalformedSlowPdu);
        }
        let [.., a, b, c, d] = *bytes.first_chunk::<16>().ok_or(MalformedSlowPdu)?;
        Ok(Self::Marker(Marker {
            is_response,
            system: MacAddr(std::array::from_fn(|index| bytes[6 + index])),
            port: u16_at(bytes, 4),
            transaction: u32::from_be_bytes([a, b, c, d]),
        }))
    }
}

impl Lacpdu {
    /// Returns the frame with this PDU from the port with address `src`.
    #[must_use]
    pub fn emit(&self, src: MacAddr) -> [u8; FRAME_LEN] {
        let mut frame = begin(src, LACP);
        let bytes = &mut frame[ethernet::LEN..];
        bytes[ACTOR_AT..ACTOR_AT + 2].copy_from_slice(&ACTOR);
        self.actor.emit(&mut bytes[ACTOR_AT..]);
        bytes[PARTNER_AT..PARTNER_AT + 2].copy_from_slice(&PARTNER);
        self.partner.emit(&mut bytes[PARTNER_AT..]);
        bytes[COLLECTOR_AT..COLLECTOR_AT + 2].copy_from_slice(&COLLECTOR);
        let delay = self.collector_delay.to_be_bytes();
        bytes[COLLECTOR_AT + 2..COLLECTOR_AT + 4].copy_from_slice(&delay);
        frame
    }
}

impl Marker {
    /// Returns the frame with this PDU from the port with address `src`.
    #[must_use]
    pub fn emit(&self, src: MacAddr) -> [u8; FRAME_LEN] {
        let mut frame = begin(src, MARKER);
        let bytes = &mut frame[ethernet::LEN..];
        let part = if self.is_response {
            MARKER_RESPONSE
        } else {
            MARKER_INFO
        };
        bytes[2..4].copy_from_slice(&part);
        bytes[4..6].copy_from_slice(&self.port.to_be_bytes());
        bytes[6..12].copy_from_slice(&self.system.0);
        bytes[12..16].copy_from_slice(&self.transaction.to_be_bytes());
        frame
    }
}

/// Returns a frame of zeros with the header that all PDUs share.
fn begin(src: MacAddr, subtype: u8) -> [u8; FRAME_LEN] {
    let mut frame = [0; FRAME_LEN];
    let header = Ethernet { dst: GROUP, src }.emit(TYPE.0);
    frame[..ethernet::LEN].copy_from_slice(&header);
    frame[ethernet::LEN] = subtype;
    frame[ethernet::LEN + 1] = VERSION;
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    const SRC: MacAddr = MacAddr([2, 0, 0, 0, 0, 9]);

    /// LACPDU written by hand after the standard's figure, without the trailing zeros.
    const BY_HAND: [u8; 58] = [
        0x01, 0x80, 0xc2, 0, 0, 2, 0x02, 0, 0, 0, 0, 9, 0x88, 0x09, // Ethernet
        1, 1, 1, 20, 0xff, 0xff, 0x02, 0, 0, 0, 0, 9, 0, 15, 0, 255, 0, 1, 0x4f, 0, 0, 0, //
        2, 20, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0, 255, 0, 1, 0x01, 0, 0, 0, //
        3, 16,
    ];

    #[test]
    fn lacpdu_round_trips() {
        let mut frame = [0; FRAME_LEN];
        frame[..58].copy_from_slice(&BY_HAND);
        assert!(is_slow_protocol(&frame));
        let Ok(SlowPdu::Lacp(pdu)) = SlowPdu::parse(&frame) else {
            panic!("a LACPDU");
        };
        assert_eq!(pdu.actor.system.address, SRC);
        assert_eq!((pdu.actor.system.priority, pdu.actor.key), (0xffff, 15));
        assert_eq!((pdu.actor.port_priority, pdu.actor.port), (255, 1));
        assert!(pdu.actor.state.has(LacpState(0x4f)) && !pdu.actor.state.has(LacpState::EXPIRED));
        assert_eq!(
            (pdu.partner.key, pdu.partner.state),
            (1, LacpState::ACTIVITY)
        );
        assert_eq!(pdu.emit(SRC), frame);
    }

    #[test]
    fn marker_pdu_round_trips() {
        for is_response in [false, true] {
            let marker = Marker {
                is_response,
                system: SRC,
                port: 7,
                transaction: 0x0102_0304,
            };
            assert_eq!(
                SlowPdu::parse(&marker.emit(SRC)),
                Ok(SlowPdu::Marker(marker))
            );
        }
    }

    #[test]
    fn malformed_slow_pdu_is_refused() {
        let frame = Lacpdu::default().emit(SRC);
        for len in 0..FRAME_LEN {
            assert_eq!(
                SlowPdu::parse(&frame[..len]),
                Err(MalformedSlowPdu),
                "{len}"
            );
        }
        for at in [16, 17, 36, 37] {
            let mut frame = frame;
            frame[at] ^= 1;
            assert_eq!(SlowPdu::parse(&frame), Err(MalformedSlowPdu), "{at}");
        }
        let mut other = frame;
        other[14] = 10;
        assert_eq!(SlowPdu::parse(&other), Ok(SlowPdu::Other(10)));
        other[5] = 3;
        assert!(!is_slow_protocol(&other));
    }
}
