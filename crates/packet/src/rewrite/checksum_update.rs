//! Incremental checksum update (RFC 1624).
//!
//! A rewrite changes a few bytes of a packet. The checksums that cover them are updated from the
//! old and the new bytes alone, so that the cost does not depend on the packet's length, and an
//! error that was in the packet before remains detectable. RFC 1624, equation 3, with `HC` the
//! checksum field, `m` the old and `m'` the new 16-bit word, and `'` for the new value:
//!
//! ```text
//! HC' = ~(~HC + ~m + m')      in ones' complement arithmetic
//! ```
//!
//! `sum_delta` computes `~m + m'` over all changed words. Special cases:
//!
//! - Odd offset: bytes at an odd offset of the covered range count with their order swapped (RFC 1071, 2 (B)).
//! - Pseudo-header: addresses and protocol number also change the transport checksum, except for ICMP and SCTP, which have no pseudo-header.
//! - UDP: zero means "no checksum" and stays zero; a result of zero is written as `0xffff` (RFC 768).
//! - Partial checksum ([`Checksum::Partial`]): the field holds the sum of the pseudo-header, not its complement. Only a changed pseudo-header changes it.
//! - SCTP: a CRC32c is linear, so the CRC of the changed bits, followed by the bytes up to the end of the packet as zeros, is the difference. In a first fragment the length is unknown; the field is left unchanged, and the receiver detects the mismatch.

use super::Packet;
use crate::checksum::{InternetSum, crc32c_delta};
use crate::headers::{Network, UpperLayer};
use crate::wire::{IpProto, icmpv4, icmpv6, ipv4, sctp, tcp, u16_at, udp};
use crate::{Checksum, Frame};

/// Checksums that cover a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coverage {
    /// No checksum.
    Nothing,
    /// Checksum of the IPv4 header.
    Header,
    /// Checksum of the IPv4 header, and the transport checksum through its pseudo-header.
    HeaderAndPseudo,
    /// Transport checksum through its pseudo-header.
    Pseudo,
    /// Transport checksum.
    Transport,
}

/// Location and kind of a transport checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChecksumField {
    /// Internet checksum at this byte of the frame. `pseudo`: it covers the pseudo-header;
    /// `optional`: zero means no checksum.
    Internet {
        at: usize,
        pseudo: bool,
        optional: bool,
    },
    /// A CRC32c at this byte of the frame.
    Crc { at: usize },
}

impl ChecksumField {
    /// Returns the checksum field of a transport header over IPv4 or IPv6, or `None` if the
    /// protocol has none or the packet ends before it.
    pub(crate) fn find(upper: UpperLayer, over_v4: bool) -> Option<Self> {
        let (offset, pseudo) = match upper.protocol {
            IpProto::TCP => (tcp::CHECKSUM, true),
            IpProto::UDP | IpProto::UDPLITE | IpProto::DCCP => (udp::CHECKSUM, true),
            IpProto::ICMPV4 if over_v4 => (icmpv4::CHECKSUM, false),
            IpProto::ICMPV6 if !over_v4 => (icmpv6::CHECKSUM, true),
            IpProto::SCTP => {
                let at = upper.at + sctp::CHECKSUM;
                return (at + 4 <= upper.end).then_some(Self::Crc { at });
            }
            _ => return None,
        };
        let at = upper.at + offset;
        (at + 2 <= upper.end).then_some(Self::Internet {
            at,
            pseudo,
            optional: matches!(upper.protocol, IpProto::UDP | IpProto::UDPLITE),
        })
    }
}

impl Packet<'_> {
    /// Writes `new` at `at`, and lets the checksums follow.
    #[inline]
    pub(super) fn write<const N: usize>(&mut self, at: usize, new: [u8; N], coverage: Coverage) {
        let field = &mut self.frame.bytes_mut()[at..at + N];
        let mut old = [0; N];
        old.copy_from_slice(field);
        field.copy_from_slice(&new);
        match coverage {
            Coverage::Nothing => {}
            Coverage::Header => self.update_header_checksum(at, &old, &new),
            Coverage::HeaderAndPseudo => {
                self.update_header_checksum(at, &old, &new);
                self.update_transport_checksum(at, &old, &new, true);
            }
            Coverage::Pseudo => self.update_transport_checksum(at, &old, &new, true),
            Coverage::Transport => self.update_transport_checksum(at, &old, &new, false),
        }
    }

    /// Updates the transport checksum after a change of the protocol number, which is the lower
    /// byte of a word of the pseudo-header (RFC 9293, 3.1; RFC 8200, 8.1).
    pub(super) fn update_for_protocol(&mut self, old: IpProto, new: IpProto) {
        self.update_transport_checksum(0, &[0, old.0], &[0, new.0], true);
    }

    fn update_header_checksum(&mut self, at: usize, old: &[u8], new: &[u8]) {
        let header = self.headers.network_at();
        update_ipv4_checksum(self.frame, header, sum_delta(at - header, old, new));
    }

    pub(super) fn update_transport_checksum(
        &mut self,
        at: usize,
        old: &[u8],
        new: &[u8],
        pseudo: bool,
    ) {
        let Some(upper) = self.headers.upper else {
            return;
        };
        let over_v4 = matches!(self.headers.network, Network::Ipv4(_));
        match ChecksumField::find(upper, over_v4) {
            None => {}
            Some(ChecksumField::Crc { .. }) if pseudo => {}
            Some(ChecksumField::Crc { at: field_at }) => {
                self.update_crc(field_at, upper.end, at, old, new)
            }
            Some(ChecksumField::Internet { pseudo: false, .. }) if pseudo => {}
            Some(ChecksumField::Internet {
                at: field_at,
                optional,
                ..
            }) => {
                // A field has the same alignment in the pseudo-header and in its own header.
                let base = if pseudo { at } else { upper.at };
                let change = sum_delta(at - base, old, new);
                self.update_internet(field_at, optional, change, pseudo);
            }
        }
    }

    /// A partial checksum holds the sum of the pseudo-header; only a change of the pseudo-header
    /// affects it.
    fn update_internet(&mut self, at: usize, optional: bool, change: InternetSum, pseudo: bool) {
        let partial = self.is_partial_checksum_at(at);
        let field = &mut self.frame.bytes_mut()[at..at + 2];
        let value = u16_at(field, 0);
        let value = match (partial, pseudo) {
            (true, true) => InternetSum::word(value).plus(change).value(),
            (true, false) => return,
            (false, _) if optional && value == 0 => return,
            (false, _) => match InternetSum::from_checksum(value).plus(change).checksum() {
                0 if optional => 0xffff,
                checksum => checksum,
            },
        };
        field.copy_from_slice(&value.to_be_bytes());
    }

    /// In a first fragment the length of the rest is unknown and no CRC can be updated: the field
    /// is left unchanged, and the receiver detects the mismatch.
    fn update_crc(&mut self, field_at: usize, end: usize, at: usize, old: &[u8], new: &[u8]) {
        let whole = self.headers.fragment() == Some(crate::wire::Fragment::No);
        if !whole || self.is_partial_checksum_at(field_at) {
            return;
        }
        let flipped = old.iter().zip(new).map(|(a, b)| a ^ b);
        let flip = crc32c_delta(flipped, end - at - old.len());
        let field = &mut self.frame.bytes_mut()[field_at..field_at + 4];
        for (byte, flip) in field.iter_mut().zip(flip.to_le_bytes()) {
            *byte ^= flip;
        }
    }

    fn is_partial_checksum_at(&self, at: usize) -> bool {
        matches!(self.frame.offload.checksum, Checksum::Partial { start, offset }
            if usize::from(start) + usize::from(offset) == at)
    }
}

/// Updates the checksum of the IPv4 header at `header`.
pub(super) fn update_ipv4_checksum(frame: &mut Frame, header: usize, change: InternetSum) {
    let at = header + ipv4::CHECKSUM;
    let field = &mut frame.bytes_mut()[at..at + 2];
    let checksum = InternetSum::from_checksum(u16_at(field, 0))
        .plus(change)
        .checksum();
    field.copy_from_slice(&checksum.to_be_bytes());
}

/// Returns the summand that updates a sum when `old` becomes `new`, `offset` bytes after its start.
pub(super) fn sum_delta(offset: usize, old: &[u8], new: &[u8]) -> InternetSum {
    let change = InternetSum::of(new).minus(InternetSum::of(old));
    if offset.is_multiple_of(2) {
        change
    } else {
        change.byte_swapped()
    }
}
