//! The Ethernet header (IEEE 802.3) and, behind a length, LLC and SNAP (802.2).
//!
//! ```text
//!  0      6      12     14
//! +------+------+------+----
//! | dst  | src  | type | payload
//! +------+------+------+----
//!                 < 0x0600: a length, then
//!               14   15   16   17    20     22
//!              +----+----+----+-----+------+----
//!              | AA | AA | 03 | OUI | type | payload
//!              +----+----+----+-----+------+----
//! ```

use std::fmt;

use super::u16_at;
use crate::{MacAddr, Malformed};

/// EtherType number. A newtype, so that unknown numbers survive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EtherType(pub u16);

impl EtherType {
    /// IPv4.
    pub const IPV4: Self = Self(0x0800);
    /// ARP.
    pub const ARP: Self = Self(0x0806);
    /// Reverse ARP: the same layout.
    pub const RARP: Self = Self(0x8035);
    /// A customer VLAN tag (802.1Q).
    pub const VLAN: Self = Self(0x8100);
    /// A service VLAN tag (802.1ad).
    pub const SERVICE_VLAN: Self = Self(0x88a8);
    /// IPv6.
    pub const IPV6: Self = Self(0x86dd);
    /// MPLS.
    pub const MPLS: Self = Self(0x8847);
    /// MPLS with a label that the downstream router assigned, once "multicast".
    pub const MPLS_MULTICAST: Self = Self(0x8848);
    /// A service instance tag of provider backbone bridging (802.1ah).
    pub const PBB: Self = Self(0x88e7);
    /// The network service header (RFC 8300).
    pub const NSH: Self = Self(0x894f);
    /// No EtherType: an 802.2 frame without SNAP, or with the SNAP of another organisation (OF
    /// 1.0.1, 5.2.3).
    pub const LLC: Self = Self(0x05ff);

    /// Lowest EtherType; smaller numbers are lengths (802.3, 3.2.6).
    const MIN: u16 = 0x0600;

    /// True if the type is a VLAN tag protocol identifier.
    #[must_use]
    pub const fn is_vlan(self) -> bool {
        matches!(self, Self::VLAN | Self::SERVICE_VLAN)
    }

    /// True if the type is MPLS.
    #[must_use]
    pub const fn is_mpls(self) -> bool {
        matches!(self, Self::MPLS | Self::MPLS_MULTICAST)
    }
}

impl fmt::Display for EtherType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#06x}", self.0)
    }
}

/// Length of the header, in bytes.
pub const LEN: usize = 14;
/// Length of LLC and SNAP, in bytes.
pub const SNAP_LEN: usize = 8;

/// Offset of the destination.
pub const DST: usize = 0;
/// Offset of the source.
pub const SRC: usize = 6;
/// Offset of the EtherType or of the first tag.
pub const TYPE: usize = 12;

/// LLC and SNAP header with the organisation code of EtherTypes.
const SNAP: [u8; 6] = [0xaa, 0xaa, 0x03, 0, 0, 0];

/// The two addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ethernet {
    /// Destination address.
    pub dst: MacAddr,
    /// Source address.
    pub src: MacAddr,
}

impl Ethernet {
    /// Parses the addresses at the front of `bytes`.
    ///
    /// # Errors
    /// `bytes` has fewer than 14 bytes.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let header: &[u8; LEN] = bytes.first_chunk().ok_or(Malformed::Runt)?;
        let [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, _, _] = *header;
        Ok(Self {
            dst: MacAddr([d0, d1, d2, d3, d4, d5]),
            src: MacAddr([s0, s1, s2, s3, s4, s5]),
        })
    }

    /// The header with this type, or length.
    #[must_use]
    pub fn emit(&self, eth_type: u16) -> [u8; LEN] {
        let mut header = [0; LEN];
        header[DST..SRC].copy_from_slice(&self.dst.0);
        header[SRC..TYPE].copy_from_slice(&self.src.0);
        header[TYPE..].copy_from_slice(&eth_type.to_be_bytes());
        header
    }
}

/// Returns the EtherType of the payload and its offset. The two bytes at `at`, which the caller has
/// checked, hold the type or the length that follows all tags.
#[inline]
pub(crate) fn payload_type(bytes: &[u8], at: usize) -> (EtherType, usize) {
    let number = u16_at(bytes, at);
    if number >= EtherType::MIN {
        return (EtherType(number), at);
    }
    match bytes[at + 2..].first_chunk::<SNAP_LEN>() {
        Some(&[a, b, c, d, e, f, high, low]) if [a, b, c, d, e, f] == SNAP => {
            match u16::from_be_bytes([high, low]) {
                number @ EtherType::MIN.. => (EtherType(number), at + SNAP_LEN),
                _ => (EtherType::LLC, at),
            }
        }
        _ => (EtherType::LLC, at),
    }
}

/// LLC and SNAP that announce this type.
#[must_use]
pub fn emit_snap(eth_type: u16) -> [u8; SNAP_LEN] {
    let [a, b, c, d, e, f] = SNAP;
    let [high, low] = eth_type.to_be_bytes();
    [a, b, c, d, e, f, high, low]
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: [u8; 22] = [
        1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0x00, 0x08, 0xaa, 0xaa, 3, 0, 0, 0, 0x08, 0x06,
    ];

    #[test]
    fn addresses_are_read_and_written() {
        let header = Ethernet::parse(&FRAME).expect("long enough");
        assert_eq!(header.dst, MacAddr([1, 2, 3, 4, 5, 6]));
        assert_eq!(header.src, MacAddr([7, 8, 9, 10, 11, 12]));
        assert_eq!(header.emit(8), FRAME[..LEN]);
        assert_eq!(Ethernet::parse(&FRAME[..13]), Err(Malformed::Runt));
    }

    #[test]
    fn snap_header_after_length_has_ether_type() {
        assert_eq!(payload_type(&FRAME, TYPE), (EtherType::ARP, 20));
        assert_eq!(payload_type(&FRAME[..21], TYPE), (EtherType::LLC, TYPE));
        let mut spanning_tree = FRAME;
        spanning_tree[14..17].copy_from_slice(&[0x42, 0x42, 3]);
        assert_eq!(payload_type(&spanning_tree, TYPE), (EtherType::LLC, TYPE));
        let mut other_organisation = FRAME;
        other_organisation[19] = 0x0c;
        assert_eq!(
            payload_type(&other_organisation, TYPE),
            (EtherType::LLC, TYPE)
        );
        assert_eq!(emit_snap(0x0806), FRAME[14..]);
    }
}
