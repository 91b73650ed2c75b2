//! The IPv6 header and the walk over its extension headers (RFC 8200).
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
//! The walk ends at the first header that is none of: hop-by-hop, routing,
//! destination options, authentication, fragment. In a later fragment it ends
//! behind the fragment header, and the protocol is the one written there, as in
//! IPv4; what stands behind is the middle of something.

use std::net::Ipv6Addr;

use super::{Fragment, IpProto, u16_at};
use crate::Malformed;

/// Bytes of the header without extensions.
pub const LEN: usize = 40;

/// Where the payload length is.
pub const PAYLOAD_LEN: usize = 4;
/// Where the next header's number is.
pub const NEXT: usize = 6;
/// Where the hop limit is.
pub const HOP_LIMIT: usize = 7;
/// Where the source is.
pub const SRC: usize = 8;
/// Where the destination is.
pub const DST: usize = 24;

/// The most extension headers that are walked over: RFC 8200, 4.1, knows seven
/// places, and every header costs the reader time.
pub const EXTENSIONS_MAX: usize = 16;

/// Which extension headers there are: the bits of `OFPIEH_*` (OF 1.3.5, 7.2.3.7).
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
    /// One of them comes more often than it should.
    pub const UNREP: Self = Self(1 << 7);
    /// They do not come in the order that RFC 8200, 4.1, prefers.
    pub const UNSEQ: Self = Self(1 << 8);

    /// Whether all bits of `other` are set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    const fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// A header, with what the walk found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6 {
    /// From whom.
    pub src: Ipv6Addr,
    /// To whom.
    pub dst: Ipv6Addr,
    /// What it carries behind all extension headers.
    pub protocol: IpProto,
    /// Where that is written: in the last extension header, if there is one.
    pub protocol_at: u16,
    /// DSCP in the upper six bits, ECN in the lower two.
    pub traffic_class: u8,
    /// The flow label, twenty bits.
    pub flow_label: u32,
    /// The hop limit.
    pub hop_limit: u8,
    /// Which part of the packet this is.
    pub fragment: Fragment,
    /// Which extension headers there are.
    pub extensions: Extensions,
    /// Whether a routing header still has segments to visit: `dst` is then not
    /// the destination that the transport checksum covers (RFC 8200, 8.1).
    pub routed: bool,
    /// Bytes of the header with its extensions.
    pub header_len: u16,
    /// Bytes of header, extensions and payload; what follows is padding.
    pub total_len: usize,
}

impl Ipv6 {
    /// Reads the header at the front of `bytes`, which reach to the end of the frame.
    ///
    /// # Errors
    /// The header is cut off, is no IPv6 header, or it or an extension states a
    /// length that cannot be.
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
        let mut walk = ExtensionWalk::new(IpProto(header[NEXT]));
        while walk.step(packet)? {}
        Ok(Self {
            src: address(SRC),
            dst: address(DST),
            protocol: walk.next,
            protocol_at: u16::try_from(walk.next_at).map_err(|_| Malformed::Ipv6Extension)?,
            traffic_class,
            flow_label: first_word & 0x000f_ffff,
            hop_limit: header[HOP_LIMIT],
            fragment: walk.fragment,
            extensions: walk.extensions,
            routed: walk.routed,
            header_len: u16::try_from(walk.at).map_err(|_| Malformed::Ipv6Extension)?,
            total_len,
        })
    }

    /// The fixed header, with `next` as the number of what follows it.
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

/// The way over the extension headers.
struct ExtensionWalk {
    /// The number of the header at `at`.
    next: IpProto,
    /// Where that number is written.
    next_at: usize,
    at: usize,
    steps: usize,
    /// The place of the last header in the preferred order.
    rank: u8,
    seen: Extensions,
    destinations: u8,
    fragment: Fragment,
    extensions: Extensions,
    routed: bool,
}

impl ExtensionWalk {
    const fn new(next: IpProto) -> Self {
        Self {
            next,
            next_at: NEXT,
            at: LEN,
            steps: 0,
            rank: 0,
            seen: Extensions(0),
            destinations: 0,
            fragment: Fragment::No,
            extensions: Extensions(0),
            routed: false,
        }
    }

    /// Passes one extension header; false if there is none to pass.
    #[inline]
    fn step(&mut self, packet: &[u8]) -> Result<bool, Malformed> {
        match self.next {
            IpProto::HOP_BY_HOP
            | IpProto::DESTINATION
            | IpProto::ROUTING
            | IpProto::AH
            | IpProto::FRAGMENT => self.pass(packet),
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

    fn pass(&mut self, packet: &[u8]) -> Result<bool, Malformed> {
        self.steps += 1;
        if self.steps > EXTENSIONS_MAX {
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

    /// Notes a header, out of place if one of a later place was before it.
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
        if self.steps == 1 {
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

    /// Destination options have two places: before the routing header and last.
    fn destination(&mut self) {
        self.destinations += 1;
        if self.destinations > 2 {
            self.extensions.add(Extensions::UNREP);
        }
        let place = if self.rank == 0 { 1 } else { 6 };
        self.rank = self.rank.max(place);
        self.extensions.add(Extensions::DEST);
    }

    /// A fragment header with neither offset nor successor changes nothing
    /// (RFC 6946: an atomic fragment).
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

    /// A packet whose extension headers have these numbers, eight bytes each
    /// (sixteen for authentication), their second half as given.
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
    fn a_header_round_trips_and_padding_is_legal() {
        let bytes = HEADER.emit(IpProto::UDP);
        assert_eq!(Ipv6::parse(&bytes), Ok(HEADER));
        assert_eq!(Ipv6::parse(&[&bytes[..], &[0; 6]].concat()), Ok(HEADER));
    }

    #[test]
    fn the_protocol_is_behind_all_extension_headers() {
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
    fn the_walk_ends_in_a_later_fragment() {
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
    fn damage_is_named() {
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
