//! How a changed field reaches the checksums that cover it.

use super::Packet;
use crate::checksum::{InternetSum, crc32c_delta};
use crate::headers::{Network, UpperLayer};
use crate::wire::{IpProto, icmpv4, icmpv6, ipv4, sctp, tcp, u16_at, udp};
use crate::{Checksum, Frame};

/// Which checksums cover a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coverage {
    /// None.
    Nothing,
    /// That of the IPv4 header.
    Header,
    /// That of the IPv4 header, and the transport's by way of its pseudo-header.
    HeaderAndPseudo,
    /// The transport's, by way of its pseudo-header.
    Pseudo,
    /// The transport's.
    Transport,
}

/// Where a transport protocol keeps its checksum, and what it covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChecksumField {
    /// An Internet checksum at this byte of the frame. `pseudo`: it covers the
    /// pseudo-header; `optional`: zero means that there is none.
    Internet {
        at: usize,
        pseudo: bool,
        optional: bool,
    },
    /// A CRC32c at this byte of the frame.
    Crc { at: usize },
}

impl ChecksumField {
    /// Where the transport header of an IPv4 packet, or an IPv6 packet, keeps
    /// its checksum; none if the packet ends before, or has none.
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

    /// Lets the transport's checksum follow another number of its own protocol, which
    /// is the lower byte of a word of the pseudo-header (RFC 9293, 3.1; RFC 8200, 8.1).
    pub(super) fn update_for_protocol(&mut self, old: IpProto, new: IpProto) {
        self.update_transport_checksum(0, &[0, old.0], &[0, new.0], true);
    }

    fn update_header_checksum(&mut self, at: usize, old: &[u8], new: &[u8]) {
        let header = self.headers.network_at();
        update_ipv4_checksum(self.frame, header, sum_delta(at - header, old, new));
    }

    fn update_transport_checksum(&mut self, at: usize, old: &[u8], new: &[u8], pseudo: bool) {
        let Some(upper) = self.headers.upper else {
            return;
        };
        let over_v4 = matches!(self.headers.network, Network::Ipv4(_));
        match ChecksumField::find(upper, over_v4) {
            None => {}
            Some(ChecksumField::Crc { .. }) if pseudo => {}
            Some(ChecksumField::Crc { at: place }) => {
                self.update_crc(place, upper.end, at, old, new)
            }
            Some(ChecksumField::Internet { pseudo: false, .. }) if pseudo => {}
            Some(ChecksumField::Internet {
                at: place,
                optional,
                ..
            }) => {
                // A pseudo-header has the same alignment as the header it stands for.
                let base = if pseudo { at } else { upper.at };
                let change = sum_delta(at - base, old, new);
                self.update_internet(place, optional, change, pseudo);
            }
        }
    }

    /// An unfinished checksum holds the sum of the pseudo-header, so that nothing
    /// but the pseudo-header changes it.
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

    /// The first fragment does not tell how much follows, and then no CRC can be
    /// brought up to date: it is left as it was, and the receiver will notice.
    fn update_crc(&mut self, place: usize, end: usize, at: usize, old: &[u8], new: &[u8]) {
        let whole = self.headers.fragment() == Some(crate::wire::Fragment::No);
        if !whole || self.is_partial_checksum_at(place) {
            return;
        }
        let flipped = old.iter().zip(new).map(|(a, b)| a ^ b);
        let flip = crc32c_delta(flipped, end - at - old.len());
        let field = &mut self.frame.bytes_mut()[place..place + 4];
        for (byte, flip) in field.iter_mut().zip(flip.to_le_bytes()) {
            *byte ^= flip;
        }
    }

    fn is_partial_checksum_at(&self, at: usize) -> bool {
        matches!(self.frame.offload.checksum, Checksum::Partial { start, offset }
            if usize::from(start) + usize::from(offset) == at)
    }
}

/// Brings the checksum of the IPv4 header at `header` up to date.
pub(super) fn update_ipv4_checksum(frame: &mut Frame, header: usize, change: InternetSum) {
    let at = header + ipv4::CHECKSUM;
    let field = &mut frame.bytes_mut()[at..at + 2];
    let checksum = InternetSum::from_checksum(u16_at(field, 0))
        .plus(change)
        .checksum();
    field.copy_from_slice(&checksum.to_be_bytes());
}

/// What to add to a sum when `old` becomes `new`, `offset` bytes into what is summed.
pub(super) fn sum_delta(offset: usize, old: &[u8], new: &[u8]) -> InternetSum {
    let change = InternetSum::of(new).minus(InternetSum::of(old));
    if offset.is_multiple_of(2) {
        change
    } else {
        change.byte_swapped()
    }
}
