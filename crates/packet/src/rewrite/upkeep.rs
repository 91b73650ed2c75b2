//! How a changed field reaches the checksums that cover it.

use super::Packet;
use crate::checksum::{Sum, crc32c_difference};
use crate::headers::{Network, Upper};
use crate::wire::{IpProto, icmpv4, icmpv6, ipv4, sctp, tcp, u16_at, udp};
use crate::{Checksum, Frame};

/// Which checksums cover a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cover {
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
pub(crate) enum Place {
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

impl Place {
    /// Where the transport header of an IPv4 packet, or an IPv6 packet, keeps
    /// its checksum; none if the packet ends before, or has none.
    pub(crate) fn find(upper: Upper, over_v4: bool) -> Option<Self> {
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
    pub(super) fn write<const N: usize>(&mut self, at: usize, new: [u8; N], cover: Cover) {
        let field = &mut self.frame.bytes_mut()[at..at + N];
        let mut old = [0; N];
        old.copy_from_slice(field);
        field.copy_from_slice(&new);
        match cover {
            Cover::Nothing => {}
            Cover::Header => self.follow_in_header(at, &old, &new),
            Cover::HeaderAndPseudo => {
                self.follow_in_header(at, &old, &new);
                self.follow_in_transport(at, &old, &new, true);
            }
            Cover::Pseudo => self.follow_in_transport(at, &old, &new, true),
            Cover::Transport => self.follow_in_transport(at, &old, &new, false),
        }
    }

    /// Lets the transport's checksum follow another number of its own protocol, which
    /// is the lower byte of a word of the pseudo-header (RFC 9293, 3.1; RFC 8200, 8.1).
    pub(super) fn follow_protocol(&mut self, old: IpProto, new: IpProto) {
        self.follow_in_transport(0, &[0, old.0], &[0, new.0], true);
    }

    fn follow_in_header(&mut self, at: usize, old: &[u8], new: &[u8]) {
        let header = self.headers.network_at();
        follow_ipv4(self.frame, header, difference(at - header, old, new));
    }

    fn follow_in_transport(&mut self, at: usize, old: &[u8], new: &[u8], pseudo: bool) {
        let Some(upper) = self.headers.upper else {
            return;
        };
        let over_v4 = matches!(self.headers.network, Network::Ipv4(_));
        match Place::find(upper, over_v4) {
            None => {}
            Some(Place::Crc { .. }) if pseudo => {}
            Some(Place::Crc { at: place }) => self.follow_crc(place, upper.end, at, old, new),
            Some(Place::Internet { pseudo: false, .. }) if pseudo => {}
            Some(Place::Internet {
                at: place,
                optional,
                ..
            }) => {
                // A pseudo-header has the same alignment as the header it stands for.
                let base = if pseudo { at } else { upper.at };
                let change = difference(at - base, old, new);
                self.follow_internet(place, optional, change, pseudo);
            }
        }
    }

    /// An unfinished checksum holds the sum of the pseudo-header, so that nothing
    /// but the pseudo-header changes it.
    fn follow_internet(&mut self, at: usize, optional: bool, change: Sum, pseudo: bool) {
        let partial = self.owes_checksum_at(at);
        let field = &mut self.frame.bytes_mut()[at..at + 2];
        let value = u16_at(field, 0);
        let value = match (partial, pseudo) {
            (true, true) => Sum::word(value).and(change).get(),
            (true, false) => return,
            (false, _) if optional && value == 0 => return,
            (false, _) => match Sum::of_checksum(value).and(change).checksum() {
                0 if optional => 0xffff,
                checksum => checksum,
            },
        };
        field.copy_from_slice(&value.to_be_bytes());
    }

    /// The first fragment does not tell how much follows, and then no CRC can be
    /// brought up to date: it is left as it was, and the receiver will notice.
    fn follow_crc(&mut self, place: usize, end: usize, at: usize, old: &[u8], new: &[u8]) {
        let whole = self.headers.fragment() == Some(crate::wire::Fragment::No);
        if !whole || self.owes_checksum_at(place) {
            return;
        }
        let flipped = old.iter().zip(new).map(|(a, b)| a ^ b);
        let flip = crc32c_difference(flipped, end - at - old.len());
        let field = &mut self.frame.bytes_mut()[place..place + 4];
        for (byte, flip) in field.iter_mut().zip(flip.to_le_bytes()) {
            *byte ^= flip;
        }
    }

    fn owes_checksum_at(&self, at: usize) -> bool {
        matches!(self.frame.offload.checksum, Checksum::Partial { start, offset }
            if usize::from(start) + usize::from(offset) == at)
    }
}

/// Brings the checksum of the IPv4 header at `header` up to date.
pub(super) fn follow_ipv4(frame: &mut Frame, header: usize, change: Sum) {
    let at = header + ipv4::CHECKSUM;
    let field = &mut frame.bytes_mut()[at..at + 2];
    let checksum = Sum::of_checksum(u16_at(field, 0)).and(change).checksum();
    field.copy_from_slice(&checksum.to_be_bytes());
}

/// What to add to a sum when `old` becomes `new`, `offset` bytes into what is summed.
pub(super) fn difference(offset: usize, old: &[u8], new: &[u8]) -> Sum {
    let change = Sum::of(new).without(Sum::of(old));
    if offset.is_multiple_of(2) {
        change
    } else {
        change.shifted()
    }
}
