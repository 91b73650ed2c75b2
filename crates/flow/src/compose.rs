//! Composition of a frame that a match accepts: `in_port=1,tcp,nw_dst=10.0.0.1` becomes a TCP frame
//! to that address with all other fields zero, as in Open vSwitch's `flow_compose` and
//! `ofproto/trace`.
//!
//! Not for the data path, because it allocates.

use std::net::{Ipv4Addr, Ipv6Addr};

use packet::build::{
    Arp, Data, Eth, FragmentHeader, HexBytes, Icmp, Icmpv6, Ipv4, Ipv6, Llc, Mpls, Nd, Nsh, Pbb,
    Sctp, Stack, Tcp, TcpFlags, Udp, Vlan,
};
use packet::wire::IpProto;
use packet::wire::ethernet::EtherType;
use packet::wire::icmpv6::{ADVERTISEMENT, SOLICITATION};
use packet::wire::nsh::MD_TYPE1;
use packet::{Depth, Frame, Headers, MacAddr};

use crate::extension::PacketType;
use crate::field::{Field, VID_PRESENT, frag};
use crate::flow_key::FlowKey;
use crate::matching::Match;
use crate::pipeline_fields::PipelineFields;

/// EtherType of a frame without further fields: the first experimental one of IEEE 802, so that no
/// parser interprets the payload.
const ANY_TYPE: EtherType = EtherType(0x88b5);

/// Field values for the frame; absent ones are zero.
struct FrameTemplate<'a> {
    matching: &'a Match,
    /// Number of bytes after the transport header.
    payload: usize,
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
    compose_with(matching, 0)
}

/// Like [`compose`], with `payload` bytes after the transport header, which count up from zero.
#[must_use]
pub fn compose_with(matching: &Match, payload: usize) -> Option<(Frame, PipelineFields)> {
    let template = FrameTemplate { matching, payload };
    let registers = PipelineFields::from_match(matching);
    let frame = template.stack().build();
    let headers = Headers::parse(&frame, Depth::Transport).ok()?;
    let mut key = FlowKey::new();
    key.fill(&headers, &registers);
    matching.accepts(&key).then_some((frame, registers))
}

impl FrameTemplate<'_> {
    /// Returns the value of `field`, or zero. It fits, because a field fits its own type.
    fn get<T: TryFrom<u128> + Default>(&self, field: Field) -> T {
        let value = self.matching.term(field).map_or(0, |term| term.value);
        T::try_from(value).unwrap_or_default()
    }

    fn has(&self, field: Field) -> bool {
        self.matching.term(field).is_some()
    }

    fn mac(&self, field: Field) -> MacAddr {
        MacAddr::from_u64(self.get(field))
    }

    fn stack(&self) -> Stack {
        let kind = PacketType(self.get(Field::PacketType));
        let eth_type = match (self.has(Field::EthType), kind.ether_type()) {
            (true, _) => EtherType(self.get(Field::EthType)),
            (false, Some(bare)) => EtherType(bare),
            (false, None) => ANY_TYPE,
        };
        let named = (eth_type != EtherType::LLC).then_some(eth_type);
        let tag: u16 = self.get(Field::VlanVid);
        // A VLAN id without the presence bit implies a tag too.
        let tagged = tag != 0;
        let stack = Stack::new().with(Eth {
            dst: self.mac(Field::EthDst),
            src: self.mac(Field::EthSrc),
            eth_type: named.filter(|_| !tagged),
        });
        let stack = match tagged {
            true => stack.with(Vlan {
                tpid: EtherType::VLAN,
                vid: tag & !VID_PRESENT,
                pcp: self.get(Field::VlanPcp),
                dei: false,
                eth_type: named,
            }),
            false => stack,
        };
        match eth_type {
            EtherType::ARP | EtherType::RARP => stack.with(self.arp()),
            EtherType::IPV4 => self.with_transport(stack.with(self.ipv4())),
            EtherType::IPV6 => self.with_transport(self.with_ipv6(stack)),
            EtherType::LLC => stack.with(Llc {
                dsap: 0,
                ssap: 0,
                control: 0,
            }),
            EtherType::NSH => stack.with(self.nsh()),
            EtherType::PBB => stack.with(self.pbb()).with(Eth::default()),
            _ if eth_type.is_mpls() => stack.with(self.mpls()).with(Data { len: 4 }),
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

    fn mpls(&self) -> Mpls {
        Mpls {
            label: self.get(Field::MplsLabel),
            tc: self.get(Field::MplsTc),
            bos: Some(!self.has(Field::MplsBos) || self.get::<u8>(Field::MplsBos) == 1),
            ttl: self.get(Field::MplsTtl),
        }
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
            offset: u16::from(self.is_later_fragment()),
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

    /// Returns the stack with the transport layer; a later fragment has only payload there.
    fn with_transport(&self, stack: Stack) -> Stack {
        if self.is_later_fragment() {
            return stack.with(Data { len: 8 });
        }
        let stack = match IpProto(self.get(Field::IpProto)) {
            IpProto::TCP => stack.with(Tcp {
                src: self.get(Field::TcpSrc),
                dst: self.get(Field::TcpDst),
                flags: TcpFlags(self.get(Field::TcpFlags)),
                ..Tcp::default()
            }),
            IpProto::UDP => stack.with(Udp {
                src: self.get(Field::UdpSrc),
                dst: self.get(Field::UdpDst),
                ..Udp::default()
            }),
            IpProto::SCTP => stack.with(Sctp {
                src: self.get(Field::SctpSrc),
                dst: self.get(Field::SctpDst),
                ..Sctp::default()
            }),
            IpProto::ICMPV4 => stack.with(Icmp {
                kind: self.get(Field::Icmpv4Type),
                code: self.get(Field::Icmpv4Code),
                ..Icmp::default()
            }),
            IpProto::ICMPV6 => return self.with_icmpv6(stack),
            _ => return stack,
        };
        self.with_payload(stack)
    }

    fn with_payload(&self, stack: Stack) -> Stack {
        match self.payload {
            0 => stack,
            len => stack.with(Data { len }),
        }
    }

    fn with_icmpv6(&self, stack: Stack) -> Stack {
        let (kind, code) = (self.get(Field::Icmpv6Type), self.get(Field::Icmpv6Code));
        let option = |field| self.has(field).then(|| self.mac(field));
        match kind {
            SOLICITATION | ADVERTISEMENT => stack.with(Nd {
                kind,
                code,
                target: Ipv6Addr::from_bits(self.get(Field::Ipv6NdTarget)),
                flags: self.get(Field::NdReserved),
                sll: option(Field::Ipv6NdSll),
                tll: option(Field::Ipv6NdTll),
                ..Nd::default()
            }),
            _ => self.with_payload(stack.with(Icmpv6 {
                kind,
                code,
                ..Icmpv6::default()
            })),
        }
    }
}

#[cfg(test)]
mod tests {
    use base::PortNo;

    use proptest::prelude::*;

    use super::*;

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
             ipv4(src=0.0.0.0,dst=10.0.0.1,ttl=0) / tcp(src=0,flags=0)"
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
            let (frame, _) = compose_with(&matching, payload).expect("a frame");
            frame.bytes().len()
        };
        assert_eq!((length("tcp", 0), length("tcp", 64)), (54, 118));
        assert_eq!((length("udp6", 64), length("icmp", 64)), (126, 106));
        assert_eq!((length("arp", 64), length("dl_type=0x88b5", 64)), (42, 14));
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
            let usual = !rare.into_iter().any(|field| matching.term(field).is_some());
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
