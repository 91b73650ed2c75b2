//! Composition of a frame from header fields: `in_port=1,tcp,nw_dst=10.0.0.1` becomes a TCP frame to
//! that address with all other fields zero, as in Open vSwitch's `flow_compose` and
//! `ofproto/trace`.
//!
//! Not for the data path, because it allocates.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use packet::build::{
    Arp, Data, Eth, FragmentHeader, HexBytes, Icmp, Icmpv6, Ipv4, Ipv6, Mpls, Nd, Nsh, Pbb,
    RawBytes, Sctp, Stack, Tcp, TcpFlags, Udp, Vlan,
};
use packet::wire::IpProto;
use packet::wire::ethernet::{self, EtherType};
use packet::wire::icmpv6::{ADVERTISEMENT, SOLICITATION};
use packet::wire::nsh::MD_TYPE1;
use packet::wire::vlan::{self, VlanTag};
use packet::{Depth, Frame, Headers, MacAddr};

use crate::extension::PacketType;
use crate::field::{Field, VID_PRESENT, frag};
use crate::flow_key::FlowKey;
use crate::matching::Match;
use crate::pipeline_fields::PipelineFields;

/// EtherType of a frame whose fields name none: it identifies no protocol.
const NO_TYPE: EtherType = EtherType(0);

/// The value of the length field of a frame that is not of Ethernet II: that of the bare header.
const BARE_LENGTH: EtherType = EtherType(14);

/// The largest number of MPLS labels in a frame, as in Open vSwitch.
const LABELS_MAX: usize = 3;

/// The bit of an MPLS label stack entry that marks the last one (RFC 3032, 2.1).
const BOTTOM_OF_STACK: u32 = 1 << 8;

/// The fragment offset of a fragment that is not the first, in units of eight bytes.
const LATER_OFFSET: u16 = 100;

/// Length of an IGMP header, in bytes.
const IGMP_LEN: usize = 8;

/// Flags of TCP segments that carry no payload: `FIN`, `SYN` and `RST`.
const WITHOUT_PAYLOAD: u16 = 0x007;

/// The ICMP types of an echo reply and an echo request (RFC 792).
const ECHO: [u8; 2] = [0, 8];

/// The ICMPv6 types of an echo request and an echo reply (RFC 4443, 4).
const ECHO_V6: [u8; 2] = [128, 129];

/// Header fields of a frame to compose; absent ones are zero.
///
/// ```
/// use flow::{Field, HeaderFields};
///
/// let mut fields = HeaderFields::default();
/// fields.set(Field::EthType, 0x0800);
/// fields.set(Field::IpProto, 17);
/// assert_eq!(fields.frame(64).len(), 14 + 20 + 8 + 64);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderFields {
    values: BTreeMap<Field, u128>,
    /// VLAN tags, the outermost first.
    tags: Vec<VlanTag>,
    /// MPLS label stack entries, the outermost first.
    labels: Vec<u32>,
}

/// Returns a frame that `matching` accepts, with its pipeline fields, or `None` if no frame that
/// can be composed satisfies it.
///
/// ```
/// use flow::{FlowKey, Match, compose};
/// use packet::{Depth, Headers};
///
/// let matching: Match = "in_port=1,tcp,nw_dst=10.0.0.1,tp_dst=80".parse().unwrap();
/// let (frame, fields) = compose(&matching).unwrap();
/// assert_eq!(fields.in_port, base::PortNo(1));
///
/// let mut key = FlowKey::new();
/// key.fill(&Headers::parse(&frame, Depth::Transport).unwrap(), &fields);
/// assert!(matching.accepts(&key));
/// ```
#[must_use]
pub fn compose(matching: &Match) -> Option<(Frame, PipelineFields)> {
    let registers = PipelineFields::from_match(matching);
    let frame = HeaderFields::of_match(matching).frame(0);
    let headers = Headers::parse(&frame, Depth::Transport).ok()?;
    let mut key = FlowKey::new();
    key.fill(&headers, &registers);
    matching.accepts(&key).then_some((frame, registers))
}

impl HeaderFields {
    /// Returns the values of a match; masks are ignored.
    #[must_use]
    pub fn of_match(matching: &Match) -> Self {
        let mut fields = Self::default();
        for term in matching.terms() {
            fields.set(term.field, term.value);
        }
        let vid: u16 = fields.get(Field::VlanVid);
        // A VLAN id without the presence bit implies a tag too.
        if vid != 0 {
            fields.push_tag(VlanTag {
                tpid: EtherType::VLAN.0,
                pcp: fields.get(Field::VlanPcp),
                dei: false,
                vid: vid & !VID_PRESENT,
            });
        }
        if fields.eth_type().is_mpls() {
            let label = |field| fields.get::<u32>(field);
            fields.push_label(
                label(Field::MplsLabel) << 12
                    | label(Field::MplsTc) << 9
                    | label(Field::MplsBos) << 8
                    | label(Field::MplsTtl),
            );
        }
        fields
    }

    /// Sets a header field. VLAN tags and MPLS labels are added with [`Self::push_tag`] and
    /// [`Self::push_label`].
    pub fn set(&mut self, field: Field, value: u128) {
        self.values.insert(field, value);
    }

    /// Adds a VLAN tag within those that exist.
    pub fn push_tag(&mut self, tag: VlanTag) {
        self.tags.push(tag);
    }

    /// Adds an MPLS label stack entry below those that exist.
    pub fn push_label(&mut self, entry: u32) {
        self.labels.push(entry);
    }

    /// Returns the frame, with `payload` bytes after the transport header, which count up from
    /// zero. TCP segments with the flags `SYN`, `FIN` or `RST`, SCTP packets and ICMP messages
    /// other than echo have no payload.
    #[must_use]
    pub fn frame(&self, payload: usize) -> Frame {
        self.stack(Payload::Counting(payload)).build()
    }

    /// Returns the frame with these bytes after the transport header, where it has a payload.
    #[must_use]
    pub fn frame_with(&self, payload: &[u8]) -> Frame {
        self.stack(Payload::Bytes(payload)).build()
    }

    /// Returns the frame of `len` bytes: zeros extend it, which lengths and checksums include. None
    /// if the headers are longer, or no frame has this length.
    #[must_use]
    pub fn frame_of_len(&self, len: usize) -> Option<Frame> {
        let bare = self.stack(Payload::Counting(0)).build();
        let more = len.checked_sub(bare.len())?;
        if len > Frame::LEN_MAX {
            return None;
        }
        let frame = self.stack(Payload::Zeros(more)).build();
        let mut bytes = frame.bytes().to_vec();
        if self.eth_type() == EtherType::LLC {
            let length = u16::try_from(len).unwrap_or(u16::MAX);
            let at = ethernet::TYPE + self.tags.len() * vlan::LEN;
            bytes[at..at + 2].copy_from_slice(&length.to_be_bytes());
        }
        bytes.resize(len, 0);
        Some(Frame::from_bytes(&bytes))
    }

    /// Returns the value of `field`, or zero. It fits, because a field fits its own type.
    fn get<T: TryFrom<u128> + Default>(&self, field: Field) -> T {
        let value = self.values.get(&field).copied().unwrap_or_default();
        T::try_from(value).unwrap_or_default()
    }

    fn has(&self, field: Field) -> bool {
        self.values.contains_key(&field)
    }

    fn mac(&self, field: Field) -> MacAddr {
        MacAddr::from_u64(self.get(field))
    }

    fn eth_type(&self) -> EtherType {
        let kind = PacketType(self.get(Field::PacketType));
        match (self.has(Field::EthType), kind.ether_type()) {
            (true, _) => EtherType(self.get(Field::EthType)),
            (false, Some(bare)) => EtherType(bare),
            (false, None) => NO_TYPE,
        }
    }

    fn stack(&self, payload: Payload<'_>) -> Stack {
        let eth_type = self.eth_type();
        let written = match eth_type {
            EtherType::LLC => BARE_LENGTH,
            other => other,
        };
        let mut stack = Stack::new().with(Eth {
            dst: self.mac(Field::EthDst),
            src: self.mac(Field::EthSrc),
            eth_type: Some(self.tags.first().map_or(written, |tag| EtherType(tag.tpid))),
        });
        for (place, tag) in self.tags.iter().enumerate() {
            let next = self.tags.get(place + 1);
            stack = stack.with(Vlan {
                tpid: EtherType(tag.tpid),
                vid: tag.vid,
                pcp: tag.pcp,
                dei: tag.dei,
                eth_type: Some(next.map_or(written, |tag| EtherType(tag.tpid))),
            });
        }
        match eth_type {
            EtherType::ARP | EtherType::RARP => stack.with(self.arp()),
            EtherType::IPV4 => self.with_transport(stack.with(self.ipv4()), payload),
            EtherType::IPV6 => self.with_transport(self.with_ipv6(stack), payload),
            EtherType::NSH => stack.with(self.nsh()),
            EtherType::PBB => stack.with(self.pbb()).with(Eth::default()),
            _ if eth_type.is_mpls() => self.with_labels(stack),
            _ => stack,
        }
    }

    fn arp(&self) -> Arp {
        Arp {
            op: self.get(Field::ArpOp),
            sha: self.mac(Field::ArpSha),
            spa: Ipv4Addr::from_bits(self.get(Field::ArpSpa)),
            tha: self.mac(Field::ArpTha),
            tpa: Ipv4Addr::from_bits(self.get(Field::ArpTpa)),
        }
    }

    /// Returns the stack with the labels, up to the last; zeros follow if none is the last.
    fn with_labels(&self, stack: Stack) -> Stack {
        let entries = self.labels.iter().copied().chain(std::iter::repeat(0));
        let mut stack = stack;
        for entry in entries.take(LABELS_MAX.max(self.labels.len())) {
            let octet = |shift: u32| u8::try_from(entry >> shift & 0xff).unwrap_or_default();
            let is_last = entry & BOTTOM_OF_STACK != 0;
            stack = stack.with(Mpls {
                label: entry >> 12,
                tc: octet(9) & 7,
                bos: Some(is_last),
                ttl: octet(0),
            });
            if is_last {
                break;
            }
        }
        stack
    }

    fn pbb(&self) -> Pbb {
        Pbb {
            isid: self.get(Field::PbbIsid),
            uca: self.get::<u8>(Field::PbbUca) == 1,
            ..Pbb::default()
        }
    }

    fn nsh(&self) -> Nsh {
        let words = [Field::NshC1, Field::NshC2, Field::NshC3, Field::NshC4];
        let words = words.map(|field| self.get::<u32>(field).to_be_bytes());
        let md_type = match self.has(Field::NshMdtype) {
            true => self.get(Field::NshMdtype),
            false => MD_TYPE1,
        };
        let metadata = match md_type {
            MD_TYPE1 => words.concat(),
            _ => Vec::new(),
        };
        Nsh {
            spi: self.get(Field::NshSpi),
            si: self.get(Field::NshSi),
            ttl: self.get(Field::NshTtl),
            flags: self.get(Field::NshFlags),
            mdtype: md_type,
            np: Some(self.get(Field::NshNp)),
            md: HexBytes(metadata),
        }
    }

    fn tos(&self) -> u8 {
        self.get::<u8>(Field::IpDscp) << 2 | self.get::<u8>(Field::IpEcn)
    }

    fn is_fragment(&self) -> bool {
        self.get::<u8>(Field::IpFrag) & frag::ANY != 0
    }

    fn is_later_fragment(&self) -> bool {
        self.get::<u8>(Field::IpFrag) & frag::LATER != 0
    }

    fn ipv4(&self) -> Ipv4 {
        Ipv4 {
            src: Ipv4Addr::from_bits(self.get(Field::Ipv4Src)),
            dst: Ipv4Addr::from_bits(self.get(Field::Ipv4Dst)),
            tos: self.tos(),
            ttl: self.get(Field::IpTtl),
            proto: Some(self.get(Field::IpProto)),
            mf: self.is_fragment(),
            offset: match self.is_later_fragment() {
                true => LATER_OFFSET,
                false => 0,
            },
            ..Ipv4::default()
        }
    }

    fn with_ipv6(&self, stack: Stack) -> Stack {
        let proto = match self.has(Field::IpProto) {
            true => self.get(Field::IpProto),
            false => IpProto::NO_NEXT.0,
        };
        let stack = stack.with(Ipv6 {
            src: Ipv6Addr::from_bits(self.get(Field::Ipv6Src)),
            dst: Ipv6Addr::from_bits(self.get(Field::Ipv6Dst)),
            tclass: self.tos(),
            flabel: self.get(Field::Ipv6Flabel),
            hlim: self.get(Field::IpTtl),
            next: (!self.is_fragment()).then_some(proto),
            length: None,
        });
        match self.is_fragment() {
            true => stack.with(FragmentHeader {
                offset: u16::from(self.is_later_fragment()),
                more: true,
                id: 0,
                next: Some(proto),
            }),
            false => stack,
        }
    }

    /// Returns the stack with the transport layer; a later fragment has none.
    fn with_transport(&self, stack: Stack, payload: Payload<'_>) -> Stack {
        if self.is_later_fragment() {
            return payload.padding(stack);
        }
        match IpProto(self.get(Field::IpProto)) {
            IpProto::TCP => {
                let flags: u16 = self.get(Field::TcpFlags);
                let stack = stack.with(Tcp {
                    src: self.get(Field::TcpSrc),
                    dst: self.get(Field::TcpDst),
                    flags: TcpFlags(flags),
                    window: 0,
                    ..Tcp::default()
                });
                payload.after(stack, flags & WITHOUT_PAYLOAD == 0)
            }
            IpProto::UDP => {
                let stack = stack.with(Udp {
                    src: self.get(Field::UdpSrc),
                    dst: self.get(Field::UdpDst),
                    ..Udp::default()
                });
                payload.after(stack, true)
            }
            IpProto::SCTP => {
                let stack = stack.with(Sctp {
                    src: self.get(Field::SctpSrc),
                    dst: self.get(Field::SctpDst),
                    ..Sctp::default()
                });
                payload.padding(stack)
            }
            IpProto::ICMPV4 => {
                let (kind, code) = (self.get(Field::Icmpv4Type), self.get(Field::Icmpv4Code));
                let stack = stack.with(Icmp {
                    kind,
                    code,
                    rest: 0,
                    ..Icmp::default()
                });
                payload.after(stack, code == 0 && ECHO.contains(&kind))
            }
            IpProto::ICMPV6 => self.with_icmpv6(stack, payload),
            IpProto::IGMP if self.eth_type() == EtherType::IPV4 => {
                payload.padding(stack.with(igmp()))
            }
            _ => payload.padding(stack),
        }
    }

    fn with_icmpv6(&self, stack: Stack, payload: Payload<'_>) -> Stack {
        let (kind, code) = (self.get(Field::Icmpv6Type), self.get(Field::Icmpv6Code));
        let option = |field| self.has(field).then(|| self.mac(field));
        match (kind, code) {
            (SOLICITATION | ADVERTISEMENT, 0) => payload.padding(stack.with(Nd {
                kind,
                code,
                target: Ipv6Addr::from_bits(self.get(Field::Ipv6NdTarget)),
                flags: self.get(Field::NdReserved),
                sll: option(Field::Ipv6NdSll),
                tll: option(Field::Ipv6NdTll),
                ..Nd::default()
            })),
            _ => {
                let stack = stack.with(Icmpv6 {
                    kind,
                    code,
                    rest: 0,
                    ..Icmpv6::default()
                });
                payload.after(stack, code == 0 && ECHO_V6.contains(&kind))
            }
        }
    }
}

/// An IGMP header of zeros with its checksum.
fn igmp() -> RawBytes {
    let mut bytes = vec![0; IGMP_LEN];
    bytes[2..4].fill(0xff);
    RawBytes {
        bytes: HexBytes(bytes),
    }
}

/// The bytes after the transport header.
#[derive(Clone, Copy)]
enum Payload<'a> {
    /// Bytes that count up from zero.
    Counting(usize),
    /// Given bytes.
    Bytes(&'a [u8]),
    /// Zeros, which every protocol carries.
    Zeros(usize),
}

impl Payload<'_> {
    /// Adds the payload to a protocol that carries one if `carries`.
    fn after(self, stack: Stack, carries: bool) -> Stack {
        match self {
            Self::Counting(len) if carries && len > 0 => stack.with(Data { len }),
            Self::Bytes(bytes) if carries && !bytes.is_empty() => stack.with(RawBytes {
                bytes: HexBytes(bytes.to_vec()),
            }),
            Self::Counting(_) | Self::Bytes(_) => stack,
            Self::Zeros(_) => self.padding(stack),
        }
    }

    /// Adds zeros alone, to a protocol that carries no payload.
    fn padding(self, stack: Stack) -> Stack {
        match self {
            Self::Zeros(len) if len > 0 => stack.with(RawBytes {
                bytes: HexBytes(vec![0; len]),
            }),
            _ => stack,
        }
    }
}

#[cfg(test)]
mod tests {
    use base::PortNo;

    use proptest::prelude::*;

    use super::*;
    use crate::connection_fields::ConnectionFields;

    fn composed(text: &str) -> String {
        let matching: Match = text.parse().expect("a match");
        let (frame, _) = compose(&matching).expect("a frame");
        Stack::dissect(&frame).to_string()
    }

    #[test]
    fn unspecified_fields_of_composed_frame_are_zero() {
        assert_eq!(
            composed("tcp,nw_dst=10.0.0.1,tp_dst=80,dl_vlan=5"),
            "eth(dst=00:00:00:00:00:00,src=00:00:00:00:00:00) / vlan(vid=5) / \
             ipv4(src=0.0.0.0,dst=10.0.0.1,ttl=0) / tcp(src=0,flags=0,window=0)"
        );
        assert_eq!(
            composed("arp,arp_op=1"),
            "eth(dst=00:00:00:00:00:00,src=00:00:00:00:00:00) / \
             arp(sha=00:00:00:00:00:00,spa=0.0.0.0,tpa=0.0.0.0)"
        );
    }

    #[test]
    fn payload_follows_transport_header() {
        let length = |text: &str, payload| {
            let matching: Match = text.parse().expect("a match");
            HeaderFields::of_match(&matching).frame(payload).len()
        };
        assert_eq!((length("tcp", 0), length("tcp", 64)), (54, 118));
        assert_eq!((length("udp6", 64), length("icmp", 64)), (126, 106));
        assert_eq!((length("arp", 64), length("dl_type=0x88b5", 64)), (42, 14));
        assert_eq!(
            (length("tcp,tcp_flags=+syn", 64), length("sctp", 64)),
            (54, 46)
        );
        assert_eq!((length("icmp,icmp_type=3", 64), length("", 64)), (42, 14));
    }

    #[test]
    fn frame_of_given_length_has_correct_lengths_and_checksums() {
        let matching: Match = "udp,tp_dst=9".parse().expect("a match");
        let fields = HeaderFields::of_match(&matching);
        let frame = fields.frame_of_len(200).expect("it is long enough");
        assert_eq!(frame.len(), 200);
        assert_eq!(frame.bytes()[16..18], 186_u16.to_be_bytes());
        assert_eq!(frame.bytes()[38..40], 166_u16.to_be_bytes());
        assert_eq!(fields.frame_of_len(41), None);
        assert_eq!(fields.frame_of_len(Frame::LEN_MAX + 1), None);
        let bare = HeaderFields::default().frame_of_len(60).expect("a frame");
        assert_eq!(bare.len(), 60);
    }

    #[test]
    fn composed_frame_has_all_tags_and_labels() {
        let mut fields = HeaderFields::default();
        fields.set(Field::EthType, 0x8847);
        for (tpid, vid) in [(0x88a8, 5), (0x8100, 6)] {
            fields.push_tag(VlanTag {
                tpid,
                pcp: 0,
                dei: false,
                vid,
            });
        }
        fields.push_label(20 << 12 | 64);
        fields.push_label(30 << 12 | BOTTOM_OF_STACK | 63);
        let frame = fields.frame(64);
        assert_eq!(
            frame.bytes()[12..],
            [
                0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 0x88, 0x47, 0, 1, 0x40, 64, 0, 1, 0xe1, 63
            ]
        );
        // Without a last label, zeros follow up to the maximum.
        fields.labels.pop();
        assert_eq!(fields.frame(64).len(), 14 + 8 + 12);
    }

    #[test]
    fn pipeline_fields_of_composed_frame_are_returned() {
        let text = "reg3=7,xxreg3=0x5,pkt_mark=2,tun_src=1.2.3.4,conj_id=9,actset_output=4";
        let matching: Match = text.parse().expect("a match");
        let (_, registers) = compose(&matching).expect("a frame");
        assert_eq!((registers.general[3], registers.general[15]), (7, 5));
        assert_eq!((registers.mark, registers.conjunction), (2, 9));
        assert_eq!(registers.tunnel_v4, [0x0102_0304, 0]);
        assert_eq!(registers.set_output, PortNo(4));
    }

    #[test]
    fn impossible_match_has_no_composed_frame() {
        let matching: Match = "ipv6,ipv6_exthdr=2".parse().expect("a match");
        assert!(compose(&matching).is_none());
    }

    proptest! {
        /// Matches on fields of ordinary frames can be composed.
        #[test]
        fn composed_frame_satisfies_match(matching in crate::text::tests::random::matching()) {
            let rare = [
                Field::InPhyPort,
                Field::PacketType,
                Field::Ipv6Exthdr,
                Field::IpFrag,
                Field::TcpFlags,
                Field::NshFlags,
                Field::NshTtl,
                Field::NshMdtype,
                Field::NdOptionsType,
                Field::TunGtpuFlags,
                Field::TunGtpuMsgtype,
                Field::DpHash,
                Field::RecircId,
            ];
            let mut rare = rare.into_iter().chain(ConnectionFields::ALL);
            let usual = !rare.any(|field| matching.term(field).is_some());
            // A length cannot be an EtherType, and no tag follows the last tag.
            let eth_type = matching.exact(Field::EthType);
            let possible = eth_type.is_none_or(|eth_type| {
                let eth_type = EtherType(u16::try_from(eth_type).expect("16 bits"));
                eth_type.0 >= EtherType::LLC.0 && !eth_type.is_vlan()
            });
            // An untagged frame has no VLAN id.
            let absent = matching.term(Field::VlanVid).is_some_and(|term| {
                let bit = u128::from(VID_PRESENT);
                term.mask & bit != 0 && term.value & bit == 0 && term.value != 0
            });
            // The protocol after all extension headers is not an extension header.
            let above = matching.exact(Field::IpProto).is_some_and(|proto| {
                eth_type == Some(0x86dd) && [0, 43, 44, 50, 51, 60].contains(&proto)
            });
            let possible = possible && !absent && !above;
            prop_assert!(!usual || !possible || compose(&matching).is_some(), "{matching}");
        }
    }
}
