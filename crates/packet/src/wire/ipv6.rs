//! The IPv6 header and its chain of extension headers (RFC 8200).
//!
//! ```text
//!  0    4           12                       32 bits
//! +----+-----------+-------------------------+
//! | 6  |  traffic  |       flow label        |
//! +----+-----------+------------+------------+
//! |  payload length  |next header| hop limit |
//! +------------------+-----------+-----------+
//! |       source, 16 bytes                   |
//! |       destination, 16 bytes              |
//! +------------------------------------------+
//! ```
//!
//! The parser follows hop-by-hop, routing, destination options, authentication and fragment headers
//! and stops at the first other header. In a later fragment it stops after the fragment header and
//! reports the protocol number of that header, as in IPv4; the bytes after it begin in the middle
//! of a header or of payload.

use std::net::Ipv6Addr;

use super::{Fragment, IpProto, u16_at};
use crate::Malformed;

/// Length of the header without extensions, in bytes.
pub const LEN: usize = 40;

/// Offset of the payload length.
pub const PAYLOAD_LEN: usize = 4;
/// Offset of the next header's number.
pub const NEXT: usize = 6;
/// Offset of the hop limit.
pub const HOP_LIMIT: usize = 7;
/// Offset of the source.
pub const SRC: usize = 8;
/// Offset of the destination.
pub const DST: usize = 24;

/// Largest number of extension headers that the parser follows: RFC 8200, 4.1, lists seven
/// positions, and every header costs time.
pub const EXTENSIONS_MAX: usize = 16;

/// Extension headers of a packet as `OFPIEH_*` bits (OF 1.3.5, 7.2.3.7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extensions(pub u16);

impl Extensions {
    /// The last next-header number is 59: nothing follows.
    pub const NO_NEXT: Self = Self(1 << 0);
    /// Encapsulating security payload.
    pub const ESP: Self = Self(1 << 1);
    /// Authentication.
    pub const AUTH: Self = Self(1 << 2);
    /// Destination options, once or twice.
    pub const DEST: Self = Self(1 << 3);
    /// Fragment.
    pub const FRAG: Self = Self(1 << 4);
    /// Routing.
    pub const ROUTER: Self = Self(1 << 5);
    /// Hop-by-hop options, in the first place.
    pub const HOP: Self = Self(1 << 6);
    /// An extension header occurs more often than it should.
    pub const UNREP: Self = Self(1 << 7);
    /// The extension headers are not in the order that RFC 8200, 4.1, recommends.
    pub const UNSEQ: Self = Self(1 << 8);

    /// True if all bits of `other` are set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    const fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// IPv6 header with a summary of its extension headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6 {
    /// Source address.
    pub src: Ipv6Addr,
    /// Destination address.
    pub dst: Ipv6Addr,
    /// Protocol after all extension headers.
    pub protocol: IpProto,
    /// Offset of that protocol number: in the last extension header or in the fixed header.
    pub protocol_at: u16,
    /// DSCP in the upper six bits, ECN in the lower two.
    pub traffic_class: u8,
    /// The flow label, twenty bits.
    pub flow_label: u32,
    /// The hop limit.
    pub hop_limit: u8,
    /// Part of the packet that this fragment holds.
    pub fragment: Fragment,
    /// Extension headers that are present.
    pub extensions: Extensions,
    /// True if a routing header has segments left: `dst` is then not the destination that the
    /// transport checksum covers (RFC 8200, 8.1).
    pub routed: bool,
    /// Length of the header with its extensions, in bytes.
    pub header_len: u16,
    /// Length of header, extensions and payload, in bytes; padding follows.
    pub total_len: usize,
}

impl Ipv6 {
    /// Parses the header at the front of `bytes`, which end where the frame ends.
    ///
    /// # Errors
    /// The header is truncated or has another version, or the header or an extension has a length
    /// that does not fit the frame.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let header: &[u8; LEN] = bytes.first_chunk().ok_or(Malformed::Ipv6Truncated)?;
        if header[0] >> 4 != 6 {
            return Err(Malformed::Ipv6Version);
        }
        let total_len = LEN + usize::from(u16_at(header, PAYLOAD_LEN));
        let packet = bytes.get(..total_len).ok_or(Malformed::Ipv6PayloadLength)?;
        let address = |at: usize| {
            let octets: Option<&[u8; 16]> = header[at..].first_chunk();
            Ipv6Addr::from(*octets.expect("both addresses are within the header"))
        };
        let first_word = u32::from_be_bytes([header[0], header[1], header[2], header[3]]);
        let [_, _, _, traffic_class] = (first_word >> 20).to_be_bytes();
        let mut chain = ExtensionChain::new(IpProto(header[NEXT]));
        while chain.step(packet)? {}
        Ok(Self {
            src: address(SRC),
            dst: address(DST),
            protocol: chain.next,
            protocol_at: u16::try_from(chain.next_at).map_err(|_| Malformed::Ipv6Extension)?,
            traffic_class,
            flow_label: first_word & 0x000f_ffff,
            hop_limit: header[HOP_LIMIT],
            fragment: chain.fragment,
            extensions: chain.extensions,
            routed: chain.routed,
            header_len: u16::try_from(chain.at).map_err(|_| Malformed::Ipv6Extension)?,
            total_len,
        })
    }

    /// Returns the fixed header with `next` as the next header number.
    #[must_use]
    pub fn emit(&self, next: IpProto) -> [u8; LEN] {
        let mut header = [0; LEN];
        let first_word =
            6 << 28 | u32::from(self.traffic_class) << 20 | self.flow_label & 0x000f_ffff;
        let payload_len = u16::try_from(self.total_len - LEN).unwrap_or(u16::MAX);
        header[..PAYLOAD_LEN].copy_from_slice(&first_word.to_be_bytes());
        header[PAYLOAD_LEN..NEXT].copy_from_slice(&payload_len.to_be_bytes());
        header[NEXT] = next.0;
        header[HOP_LIMIT] = self.hop_limit;
        header[SRC..DST].copy_from_slice(&self.src.octets());
        header[DST..].copy_from_slice(&self.dst.octets());
        header
    }
}

/// Position in the chain of extension headers.
struct ExtensionChain {
    /// The number of the header at `at`.
    next: IpProto,
    /// Offset of that number.
    next_at: usize,
    at: usize,
    headers: usize,
    /// Highest rank so far in the recommended order.
    rank: u8,
    seen: Extensions,
    destinations: u8,
    fragment: Fragment,
    extensions: Extensions,
    routed: bool,
}

impl ExtensionChain {
    const fn new(next: IpProto) -> Self {
        Self {
            next,
            next_at: NEXT,
            at: LEN,
            headers: 0,
            rank: 0,
            seen: Extensions(0),
            destinations: 0,
            fragment: Fragment::No,
            extensions: Extensions(0),
            routed: false,
        }
    }

    /// Consumes one extension header. Returns false if the chain ends here.
    #[inline]
    fn step(&mut self, packet: &[u8]) -> Result<bool, Malformed> {
        match self.next {
            IpProto::HOP_BY_HOP
            | IpProto::DESTINATION
            | IpProto::ROUTING
            | IpProto::AH
            | IpProto::FRAGMENT => self.skip_header(packet),
            IpProto::ESP => {
                self.note(Extensions::ESP, 5);
                Ok(false)
            }
            IpProto::NO_NEXT => {
                self.extensions.add(Extensions::NO_NEXT);
                Ok(false)
            }
            _ => Ok(false),
        }
    }

    fn skip_header(&mut self, packet: &[u8]) -> Result<bool, Malformed> {
        self.headers += 1;
        if self.headers > EXTENSIONS_MAX {
            return Err(Malformed::Ipv6ExtensionCount);
        }
        let header: &[u8; 8] = packet
            .get(self.at..)
            .and_then(|rest| rest.first_chunk())
            .ok_or(Malformed::Ipv6Extension)?;
        let len = match self.next {
            IpProto::FRAGMENT => 8,
            IpProto::AH => (usize::from(header[1]) + 2) * 4,
            _ => (usize::from(header[1]) + 1) * 8,
        };
        if packet.len() - self.at < len {
            return Err(Malformed::Ipv6Extension);
        }
        self.next_at = self.at;
        self.at += len;
        match self.next {
            IpProto::HOP_BY_HOP => self.hop_by_hop(),
            IpProto::DESTINATION => self.destination(),
            IpProto::ROUTING => {
                self.routed |= header[3] != 0;
                self.note(Extensions::ROUTER, 2);
            }
            IpProto::FRAGMENT => {
                self.note(Extensions::FRAG, 3);
                self.fragment(u16_at(header, 2));
            }
            _ => self.note(Extensions::AUTH, 4),
        }
        self.next = IpProto(header[0]);
        Ok(self.fragment != Fragment::Later)
    }

    /// Records a header, and that the order is wrong if a header of a higher rank came before it.
    fn note(&mut self, which: Extensions, rank: u8) {
        if self.seen.contains(which) {
            self.extensions.add(Extensions::UNREP);
        }
        if rank < self.rank {
            self.extensions.add(Extensions::UNSEQ);
        }
        self.rank = self.rank.max(rank);
        self.seen.add(which);
        self.extensions.add(which);
    }

    /// `OFPIEH_HOP` is for the first place only.
    fn hop_by_hop(&mut self) {
        if self.headers == 1 {
            self.note(Extensions::HOP, 0);
        } else {
            let repeated = self.seen.contains(Extensions::HOP);
            self.seen.add(Extensions::HOP);
            self.extensions.add(Extensions::UNSEQ);
            if repeated {
                self.extensions.add(Extensions::UNREP);
            }
        }
    }

    /// Destination options have two positions: before the routing header and last.
    fn destination(&mut self) {
        self.destinations += 1;
        if self.destinations > 2 {
            self.extensions.add(Extensions::UNREP);
        }
        let rank = if self.rank == 0 { 1 } else { 6 };
        self.rank = self.rank.max(rank);
        self.extensions.add(Extensions::DEST);
    }

    /// A fragment header with offset zero and no more fragments has no effect (RFC 6946: an atomic
    /// fragment).
    const fn fragment(&mut self, bits: u16) {
        self.fragment = match (bits >> 3, bits & 1) {
            (0, 0) => Fragment::No,
            (0, _) => Fragment::First,
            _ => Fragment::Later,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: Ipv6 = Ipv6 {
        src: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1),
        dst: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2),
        protocol: IpProto::UDP,
        protocol_at: 6,
        traffic_class: 0xb9,
        flow_label: 0x12345,
        hop_limit: 64,
        fragment: Fragment::No,
        extensions: Extensions(0),
        routed: false,
        header_len: 40,
        total_len: 40,
    };

    /// Returns a packet with extension headers of these numbers, eight bytes each (sixteen for
    /// authentication), and with the given bytes 2 to 5.
    fn chain(headers: &[(IpProto, [u8; 4])], last: IpProto) -> Vec<u8> {
        let first = headers.first().map_or(last, |(number, _)| *number);
        let mut bytes = Vec::new();
        for (index, (number, tail)) in headers.iter().enumerate() {
            let next = headers.get(index + 1).map_or(last, |(number, _)| *number);
            let len = u8::from(*number == IpProto::AH) * 2;
            bytes.extend([next.0, len]);
            bytes.extend(&tail[..2]);
            bytes.extend([0; 4]);
            bytes.extend(vec![0; usize::from(len) * 4]);
        }
        let total_len = LEN + bytes.len();
        [
            &Ipv6 {
                total_len,
                ..HEADER
            }
            .emit(first)[..],
            &bytes,
        ]
        .concat()
    }

    fn read(numbers: &[IpProto], last: IpProto) -> Ipv6 {
        let headers: Vec<_> = numbers.iter().map(|number| (*number, [0; 4])).collect();
        Ipv6::parse(&chain(&headers, last)).expect("well formed")
    }

    #[test]
    fn ipv6_header_round_trips_and_padding_is_legal() {
        let bytes = HEADER.emit(IpProto::UDP);
        assert_eq!(Ipv6::parse(&bytes), Ok(HEADER));
        assert_eq!(Ipv6::parse(&[&bytes[..], &[0; 6]].concat()), Ok(HEADER));
    }

    #[test]
    fn protocol_is_after_all_extension_headers() {
        use IpProto as P;
        let all = [
            P::HOP_BY_HOP,
            P::DESTINATION,
            P::ROUTING,
            P::FRAGMENT,
            P::AH,
            P::DESTINATION,
        ];
        let header = read(&all, P::TCP);
        assert_eq!(header.protocol, P::TCP);
        assert_eq!(header.header_len, 40 + 5 * 8 + 16);
        assert_eq!(header.fragment, Fragment::No, "an atomic fragment");
        assert_eq!(header.extensions, Extensions(0b111_1100));
    }

    #[test]
    fn order_and_repetition_are_noticed() {
        use IpProto as P;
        let bits = |numbers: &[P]| read(numbers, P::UDP).extensions.0;
        assert_eq!(bits(&[P::ROUTING, P::DESTINATION]), 0b0010_1000);
        assert_eq!(bits(&[P::DESTINATION, P::DESTINATION]), 0b1000);
        assert_eq!(bits(&[P::DESTINATION; 3]), 0b1000_1000);
        assert_eq!(bits(&[P::FRAGMENT, P::ROUTING]), 0b1_0011_0000);
        assert_eq!(bits(&[P::ROUTING, P::HOP_BY_HOP]), 0b1_0010_0000);
        assert_eq!(bits(&[P::ROUTING, P::ROUTING]), 0b1010_0000);
        assert_eq!(read(&[], P::NO_NEXT).extensions, Extensions::NO_NEXT);
        assert_eq!(read(&[], P::ESP).extensions, Extensions::ESP);
    }

    #[test]
    fn extension_chain_ends_in_later_fragment() {
        let fragment = |bits: [u8; 2]| {
            let tail = [bits[0], bits[1], 0, 0];
            let headers = [(IpProto::FRAGMENT, tail), (IpProto::DESTINATION, [0; 4])];
            Ipv6::parse(&chain(&headers, IpProto::UDP)).expect("well formed")
        };
        let first = fragment([0, 1]);
        assert_eq!(
            (first.fragment, first.protocol),
            (Fragment::First, IpProto::UDP)
        );
        let later = fragment([0, 8]);
        assert_eq!(
            (later.fragment, later.protocol),
            (Fragment::Later, IpProto::DESTINATION)
        );
        assert_eq!(later.header_len, 48);
    }

    #[test]
    fn segments_left_are_noticed() {
        let header = Ipv6::parse(&chain(&[(IpProto::ROUTING, [0, 2, 0, 0])], IpProto::TCP));
        assert!(header.expect("well formed").routed);
        assert!(!read(&[IpProto::ROUTING], IpProto::TCP).routed);
    }

    #[test]
    fn malformed_ipv6_header_is_refused() {
        let mut bytes = HEADER.emit(IpProto::UDP);
        assert_eq!(Ipv6::parse(&bytes[..39]), Err(Malformed::Ipv6Truncated));
        bytes[5] = 1;
        assert_eq!(Ipv6::parse(&bytes), Err(Malformed::Ipv6PayloadLength));
        bytes[0] = 0x4b;
        assert_eq!(Ipv6::parse(&bytes), Err(Malformed::Ipv6Version));
        let cut = HEADER.emit(IpProto::ROUTING);
        assert_eq!(Ipv6::parse(&cut), Err(Malformed::Ipv6Extension));
        let mut long = chain(&[(IpProto::ROUTING, [0; 4])], IpProto::UDP);
        long[41] = 1;
        assert_eq!(Ipv6::parse(&long), Err(Malformed::Ipv6Extension));
        let many = chain(&[(IpProto::DESTINATION, [0; 4]); 17], IpProto::UDP);
        assert_eq!(Ipv6::parse(&many), Err(Malformed::Ipv6ExtensionCount));
    }
}
