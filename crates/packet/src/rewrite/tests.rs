//! Rewriting equals building from scratch: the same change is applied to a frame and to the layers
//! that it was built from, and both must agree, with complete and with partial checksums.

use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use proptest::sample::select;

use super::{Packet, RewriteError, TtlExpired};
use crate::build::{ChecksumFill, Layer, Mpls, Stack, Vlan};
use crate::wire::ethernet::EtherType;
use crate::wire::{IpProto, u16_at};
use crate::{Checksum, Depth, Frame, Headers, MacAddr, Malformed, Network, Transport};

/// Change of one field or header.
#[derive(Clone, Copy, Debug)]
enum Change {
    EthDst(MacAddr),
    EthSrc(MacAddr),
    VlanVid(u16),
    VlanPcp(u8),
    PushVlan(u16),
    PopVlan,
    PushMpls(u16),
    PopMpls,
    MplsLabel(u32),
    MplsTc(u8),
    MplsTtl(u8),
    ArpOp(u16),
    ArpSha(MacAddr),
    ArpSpa(Ipv4Addr),
    ArpTha(MacAddr),
    ArpTpa(Ipv4Addr),
    IpDscp(u8),
    IpEcn(u8),
    IpTtl(u8),
    Ipv4Src(Ipv4Addr),
    Ipv4Dst(Ipv4Addr),
    Ipv6Src(Ipv6Addr),
    Ipv6Dst(Ipv6Addr),
    Ipv6Flabel(u32),
    PortSrc(u16),
    PortDst(u16),
    IcmpType(u8),
    IcmpCode(u8),
    NdTarget(Ipv6Addr),
    NdSll(MacAddr),
    NdTll(MacAddr),
    DecIpTtl,
    DecMplsTtl,
    CopyTtlOut,
    CopyTtlIn,
}

/// Makes the change to the packet.
fn rewrite(packet: &mut Packet<'_>, change: Change, below: u16) -> Result<(), RewriteError> {
    match change {
        Change::EthDst(mac) => packet.set_eth_dst(mac),
        Change::EthSrc(mac) => packet.set_eth_src(mac),
        Change::VlanVid(vid) => packet.set_vlan_vid(vid),
        Change::VlanPcp(pcp) => packet.set_vlan_pcp(pcp),
        Change::PushVlan(tpid) => packet.push_vlan(tpid)?,
        Change::PopVlan => packet.pop_vlan()?,
        Change::PushMpls(eth_type) => packet.push_mpls(eth_type)?,
        Change::PopMpls => packet.pop_mpls(below)?,
        Change::MplsLabel(label) => packet.set_mpls_label(label),
        Change::MplsTc(tc) => packet.set_mpls_tc(tc),
        Change::MplsTtl(ttl) => packet.set_mpls_ttl(ttl),
        Change::ArpOp(op) => packet.set_arp_op(op),
        Change::ArpSha(mac) => packet.set_arp_sha(mac),
        Change::ArpSpa(ip) => packet.set_arp_spa(ip),
        Change::ArpTha(mac) => packet.set_arp_tha(mac),
        Change::ArpTpa(ip) => packet.set_arp_tpa(ip),
        Change::IpDscp(dscp) => packet.set_ip_dscp(dscp),
        Change::IpEcn(ecn) => packet.set_ip_ecn(ecn),
        Change::IpTtl(ttl) => packet.set_ip_ttl(ttl),
        Change::Ipv4Src(ip) => packet.set_ipv4_src(ip),
        Change::Ipv4Dst(ip) => packet.set_ipv4_dst(ip),
        Change::Ipv6Src(ip) => packet.set_ipv6_src(ip),
        Change::Ipv6Dst(ip) => packet.set_ipv6_dst(ip),
        Change::Ipv6Flabel(label) => packet.set_ipv6_flabel(label),
        Change::PortSrc(port) => packet.set_port_src(port),
        Change::PortDst(port) => packet.set_port_dst(port),
        Change::IcmpType(kind) => {
            packet.set_icmpv4_type(kind);
            packet.set_icmpv6_type(kind);
        }
        Change::IcmpCode(code) => {
            packet.set_icmpv4_code(code);
            packet.set_icmpv6_code(code);
        }
        Change::NdTarget(ip) => packet.set_nd_target(ip),
        Change::NdSll(mac) => packet.set_nd_sll(mac),
        Change::NdTll(mac) => packet.set_nd_tll(mac),
        Change::DecIpTtl => drop(packet.dec_ip_ttl()),
        Change::DecMplsTtl => drop(packet.dec_mpls_ttl()),
        Change::CopyTtlOut => packet.copy_ttl_out(),
        Change::CopyTtlIn => packet.copy_ttl_in(),
    }
    Ok(())
}

/// Layers of a frame, to which the same change is applied.
struct Model(Vec<Layer>);

impl Model {
    /// Index of the first layer after the link layer.
    fn network(&self) -> usize {
        let link = |layer: &Layer| matches!(layer, Layer::Eth(_) | Layer::Vlan(_) | Layer::Snap(_));
        self.0.iter().take_while(|layer| link(layer)).count()
    }

    fn tag(&mut self) -> Option<&mut Vlan> {
        match &mut self.0[1] {
            Layer::Vlan(tag) => Some(tag),
            _ => None,
        }
    }

    fn mpls(&mut self) -> Option<&mut Mpls> {
        let at = self.network();
        match &mut self.0[at] {
            Layer::Mpls(entry) => Some(entry),
            _ => None,
        }
    }

    /// Returns the TTL of the layer `depth` layers inside the link layer, if it has one.
    fn ttl(&mut self, depth: usize) -> Option<&mut u8> {
        let at = self.network() + depth;
        match self.0.get_mut(at)? {
            Layer::Mpls(entry) => Some(&mut entry.ttl),
            Layer::Ipv4(ip) => Some(&mut ip.ttl),
            Layer::Ipv6(ip) => Some(&mut ip.hlim),
            _ => None,
        }
    }

    fn set_type(&mut self, number: u16) {
        let at = self.network() - 1;
        match &mut self.0[at] {
            Layer::Eth(layer) => layer.eth_type = Some(EtherType(number)),
            Layer::Vlan(layer) => layer.eth_type = Some(EtherType(number)),
            Layer::Snap(layer) => layer.eth_type = Some(EtherType(number)),
            _ => unreachable!("not of the link"),
        }
    }

    /// Returns the EtherType that a controller would state when it pops the outermost entry.
    fn below(&self) -> u16 {
        match self.0.get(self.network() + 1) {
            Some(Layer::Mpls(_)) => 0x8847,
            Some(Layer::Ipv4(_)) => 0x0800,
            Some(Layer::Ipv6(_)) => 0x86dd,
            Some(Layer::Arp(_)) => 0x0806,
            _ => 0x88b5,
        }
    }

    fn change(&mut self, change: Change) {
        self.change_link(change);
        self.change_mpls(change);
        let at = self.network();
        match &mut self.0[at] {
            Layer::Arp(arp) => match change {
                Change::ArpOp(op) => arp.op = op,
                Change::ArpSha(mac) => arp.sha = mac,
                Change::ArpSpa(ip) => arp.spa = ip,
                Change::ArpTha(mac) => arp.tha = mac,
                Change::ArpTpa(ip) => arp.tpa = ip,
                _ => {}
            },
            Layer::Ipv4(ip) => match change {
                Change::IpDscp(dscp) => ip.tos = dscp << 2 | ip.tos & 3,
                Change::IpEcn(ecn) => ip.tos = ip.tos & !3 | ecn & 3,
                Change::IpTtl(ttl) => ip.ttl = ttl,
                Change::Ipv4Src(address) => ip.src = address,
                Change::Ipv4Dst(address) => ip.dst = address,
                Change::DecIpTtl if ip.ttl > 1 => ip.ttl -= 1,
                _ => {}
            },
            Layer::Ipv6(ip) => match change {
                Change::IpDscp(dscp) => ip.tclass = dscp << 2 | ip.tclass & 3,
                Change::IpEcn(ecn) => ip.tclass = ip.tclass & !3 | ecn & 3,
                Change::IpTtl(ttl) => ip.hlim = ttl,
                Change::Ipv6Src(address) => ip.src = address,
                Change::Ipv6Dst(address) => ip.dst = address,
                Change::Ipv6Flabel(label) => ip.flabel = label & 0xf_ffff,
                Change::DecIpTtl if ip.hlim > 1 => ip.hlim -= 1,
                _ => {}
            },
            _ => return,
        }
        self.change_transport(change);
    }

    fn change_link(&mut self, change: Change) {
        match (change, &mut self.0[0]) {
            (Change::EthDst(mac), Layer::Eth(eth)) => eth.dst = mac,
            (Change::EthSrc(mac), Layer::Eth(eth)) => eth.src = mac,
            (Change::PushVlan(tpid), Layer::Eth(eth)) => {
                let (eth_type, outer) = (eth.eth_type.take(), self.tag().cloned());
                let fresh = Vlan {
                    vid: 0,
                    ..Vlan::default()
                };
                let tag = Vlan {
                    tpid: EtherType(tpid),
                    dei: false,
                    eth_type,
                    ..outer.unwrap_or(fresh)
                };
                self.0.insert(1, tag.into());
            }
            (Change::PopVlan, Layer::Eth(eth)) => {
                let eth = eth.clone();
                if let Some(tag) = self.tag().cloned() {
                    self.0.remove(1);
                    let eth_type = tag.eth_type;
                    self.0[0] = crate::build::Eth { eth_type, ..eth }.into();
                }
            }
            (Change::VlanVid(vid), _) => drop(self.tag().map(|tag| tag.vid = vid & 0xfff)),
            (Change::VlanPcp(pcp), _) => drop(self.tag().map(|tag| tag.pcp = pcp & 7)),
            _ => {}
        }
    }

    fn change_mpls(&mut self, change: Change) {
        let at = self.network();
        match (change, self.mpls()) {
            (Change::MplsLabel(label), Some(entry)) => entry.label = label & 0xf_ffff,
            (Change::MplsTc(tc), Some(entry)) => entry.tc = tc & 7,
            (Change::MplsTtl(ttl), Some(entry)) => entry.ttl = ttl,
            (Change::DecMplsTtl, Some(entry)) if entry.ttl > 1 => entry.ttl -= 1,
            (Change::PopMpls, Some(_)) => {
                let below = self.below();
                self.set_type(below);
                self.0.remove(at);
            }
            (Change::PushMpls(eth_type), outer) => {
                let fresh = Mpls {
                    label: 0,
                    ttl: 0,
                    ..Mpls::default()
                };
                let entry = Mpls {
                    bos: None,
                    ..outer.cloned().unwrap_or(fresh)
                };
                let ttl = self.ttl(0).copied().unwrap_or(0);
                self.set_type(eth_type);
                self.0.insert(at, Mpls { ttl, ..entry }.into());
            }
            (Change::CopyTtlOut, _) => {
                if let (Some(inner), Some(outer)) = (self.ttl(1).copied(), self.ttl(0)) {
                    *outer = inner;
                }
            }
            (Change::CopyTtlIn, _) => {
                if let (Some(outer), Some(inner)) = (self.ttl(0).copied(), self.ttl(1)) {
                    *inner = outer;
                }
            }
            _ => {}
        }
    }

    fn change_transport(&mut self, change: Change) {
        let extension = |layer: &&mut Layer| {
            use Layer as L;
            matches!(
                layer,
                L::HopByHop(_) | L::Destination(_) | L::Routing(_) | L::Fragment(_) | L::Ah(_)
            )
        };
        let at = self.network() + 1;
        let above = self.0[at..].iter_mut().find(|layer| !extension(layer));
        if let Some(layer) = above {
            match (layer, change) {
                (Layer::Tcp(header), Change::PortSrc(port)) => header.src = port,
                (Layer::Tcp(header), Change::PortDst(port)) => header.dst = port,
                (Layer::Udp(header), Change::PortSrc(port)) => header.src = port,
                (Layer::Udp(header), Change::PortDst(port)) => header.dst = port,
                (Layer::Sctp(header), Change::PortSrc(port)) => header.src = port,
                (Layer::Sctp(header), Change::PortDst(port)) => header.dst = port,
                (Layer::Icmp(header), Change::IcmpType(kind)) => header.kind = kind,
                (Layer::Icmp(header), Change::IcmpCode(code)) => header.code = code,
                (Layer::Icmpv6(header), Change::IcmpType(kind)) => header.kind = kind,
                (Layer::Icmpv6(header), Change::IcmpCode(code)) => header.code = code,
                (Layer::Nd(nd), Change::IcmpCode(code)) => nd.code = code,
                (Layer::Nd(nd), Change::IcmpType(kind)) => nd.kind = kind,
                (Layer::Nd(nd), Change::NdTarget(target)) if nd.kind >= 135 => nd.target = target,
                (Layer::Nd(nd), Change::NdSll(mac)) if nd.kind == 135 => {
                    nd.sll = nd.sll.map(|_| mac);
                }
                (Layer::Nd(nd), Change::NdTll(mac)) if nd.kind == 136 => {
                    nd.tll = nd.tll.map(|_| mac);
                }
                _ => {}
            }
        }
    }
}

fn changes() -> impl Strategy<Value = Change> {
    use Change as C;
    let mac = || any::<[u8; 6]>().prop_map(MacAddr);
    let v4 = || any::<Ipv4Addr>();
    let v6 = || any::<Ipv6Addr>();
    prop_oneof![
        prop_oneof![
            mac().prop_map(C::EthDst),
            mac().prop_map(C::EthSrc),
            any::<u16>().prop_map(C::VlanVid),
            any::<u8>().prop_map(C::VlanPcp),
            select(vec![0x8100_u16, 0x88a8]).prop_map(C::PushVlan),
            Just(C::PopVlan),
            select(vec![0x8847_u16, 0x8848]).prop_map(C::PushMpls),
            Just(C::PopMpls),
            any::<u32>().prop_map(C::MplsLabel),
            any::<u8>().prop_map(C::MplsTc),
            any::<u8>().prop_map(C::MplsTtl),
        ],
        prop_oneof![
            any::<u16>().prop_map(C::ArpOp),
            mac().prop_map(C::ArpSha),
            v4().prop_map(C::ArpSpa),
            mac().prop_map(C::ArpTha),
            v4().prop_map(C::ArpTpa),
        ],
        prop_oneof![
            any::<u8>().prop_map(C::IpDscp),
            any::<u8>().prop_map(C::IpEcn),
            any::<u8>().prop_map(C::IpTtl),
            v4().prop_map(C::Ipv4Src),
            v4().prop_map(C::Ipv4Dst),
            v6().prop_map(C::Ipv6Src),
            v6().prop_map(C::Ipv6Dst),
            any::<u32>().prop_map(C::Ipv6Flabel),
            Just(C::DecIpTtl),
            Just(C::DecMplsTtl),
            Just(C::CopyTtlOut),
            Just(C::CopyTtlIn),
        ],
        prop_oneof![
            any::<u16>().prop_map(C::PortSrc),
            any::<u16>().prop_map(C::PortDst),
            // Other fields apply to a message that becomes, or no longer is, neighbour discovery.
            (0..133_u8).prop_map(C::IcmpType),
            any::<u8>().prop_map(C::IcmpCode),
            v6().prop_map(C::NdTarget),
            mac().prop_map(C::NdSll),
            mac().prop_map(C::NdTll),
        ],
    ]
}

/// Stacks of every kind that a rewrite looks at.
fn stacks() -> impl Strategy<Value = Stack> {
    let link = select(vec![
        "eth",
        "eth / vlan(vid=5,pcp=3,dei)",
        "eth / vlan(tpid=0x88a8,vid=100) / vlan(vid=6)",
        "eth / snap",
        "eth / vlan / snap",
    ]);
    let mpls = select(vec![
        "",
        " / mpls(tc=3)",
        " / mpls(ttl=1) / mpls(label=77,ttl=3)",
    ]);
    let transport = select(vec![
        "tcp",
        "udp",
        "sctp",
        "udp(checksum=0)",
        "tcp(options=01010101)",
    ]);
    let v4 = select(vec!["ipv4", "ipv4(options=94040000,tos=3,ttl=1)"]);
    let v6 = select(vec![
        "ipv6",
        "ipv6(tclass=0xff,flabel=0xfffff) / hop_by_hop / destination",
        "ipv6 / routing(left=0)",
        "ipv6 / routing(left=1)",
        "ipv6 / fragment(id=5) / ah",
    ]);
    let first = select(vec![
        "ipv4(mf) / tcp",
        "ipv4(mf) / udp",
        "ipv6 / fragment(more) / udp",
        "ipv4(offset=3,proto=6)",
        "ipv6 / fragment(offset=9,next=17)",
        "ipv4 / ipv4(ttl=9) / udp",
        "ipv4 / ipv6(hlim=9) / tcp",
        "arp",
    ]);
    let packet = prop_oneof![
        (v4.clone(), transport.clone()).prop_map(|(ip, above)| format!("{ip} / {above}")),
        (v6.clone(), transport).prop_map(|(ip, above)| format!("{ip} / {above}")),
        v4.prop_map(|ip| format!("{ip} / icmp")),
        v6.prop_map(|ip| format!("{ip} / icmpv6")),
        Just("ipv6 / nd(sll=02:00:00:00:00:01)".to_owned()),
        Just("ipv6 / nd(type=136,tll=02:00:00:00:00:02)".to_owned()),
        first.prop_map(str::to_owned),
    ];
    let data = proptest::collection::vec(any::<u8>(), 0..50);
    (link, mpls, packet, data).prop_map(|(link, mpls, packet, data)| {
        let hex: String = data.iter().map(|byte| format!("{byte:02x}")).collect();
        let text = match packet.as_str() {
            "arp" => format!("{link}{mpls} / arp / pad(64)"),
            nd if nd.contains("nd(") => format!("{link}{mpls} / {nd} / pad(64)"),
            _ => format!("{link}{mpls} / {packet} / raw({hex}) / pad(64)"),
        };
        text.parse().expect("a stack")
    })
}

/// The stack with all checksums unfinished that can be.
fn unfinished(stack: &Stack) -> Stack {
    refilled(stack, ChecksumFill::Correct, ChecksumFill::Partial)
}

fn refilled(stack: &Stack, old: ChecksumFill, new: ChecksumFill) -> Stack {
    let mut layers = stack.layers().to_vec();
    for layer in &mut layers {
        let fill = match layer {
            Layer::Tcp(layer) => &mut layer.checksum,
            Layer::Udp(layer) => &mut layer.checksum,
            Layer::Sctp(layer) => &mut layer.checksum,
            Layer::Icmpv6(layer) => &mut layer.checksum,
            Layer::Nd(layer) => &mut layer.checksum,
            _ => continue,
        };
        if *fill == old {
            *fill = new;
        }
    }
    layers.into_iter().fold(Stack::new(), Stack::with)
}

/// Applies the changes to the frame of the stack and compares.
fn check(stack: &Stack, changes: &[Change]) -> Result<(), TestCaseError> {
    let mut frame = stack.build();
    let mut packet = Packet::parse(&mut frame, Depth::Transport).expect("well formed");
    let mut model = Model(stack.layers().to_vec());
    for change in changes {
        let below = model.below();
        model.change(*change);
        rewrite(&mut packet, *change, below).expect("space is left and the headers are valid");
        let read = Headers::parse(packet.frame(), Depth::Transport);
        prop_assert_eq!(read.as_ref(), Ok(packet.headers()));
    }
    let expected = model.0.into_iter().fold(Stack::new(), Stack::with);
    let (built, rewritten) = (expected.build(), packet.frame());
    // The model adds new padding, the frame keeps its own.
    let len = built.len().min(rewritten.len());
    prop_assert_eq!(
        &Stack::dissect(&cut(rewritten, len)),
        &Stack::dissect(&cut(&built, len))
    );
    prop_assert_eq!(cut(rewritten, len), cut(&built, len));
    frame.complete_checksum();
    let finished = refilled(&expected, ChecksumFill::Partial, ChecksumFill::Correct).build();
    prop_assert_eq!(&frame.bytes()[..len], &finished.bytes()[..len]);
    prop_assert_eq!(frame.offload.checksum, Checksum::Complete);
    Ok(())
}

fn cut(frame: &Frame, len: usize) -> Frame {
    let mut frame = frame.clone();
    frame.truncate(len);
    frame
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn rewrite_equals_building_from_scratch(
        stack in stacks(),
        changes in proptest::collection::vec(changes(), 1..5),
    ) {
        check(&stack, &changes)?;
    }

    #[test]
    fn also_where_the_checksum_is_unfinished(
        stack in stacks(),
        changes in proptest::collection::vec(changes(), 1..5),
    ) {
        check(&unfinished(&stack), &changes)?;
    }

    #[test]
    fn wrong_checksum_stays_wrong_by_same_amount(
        stack in stacks(),
        change in changes(),
        flip in 1..=u16::MAX,
    ) {
        let good = stack.build();
        let headers = Headers::parse(&good, Depth::Transport).expect("well formed");
        if let Some(at) = headers.transport_at() {
            let mut bad = good.clone();
            let payload_at = at + 30;
            if payload_at + 2 < good.len() && matches!(headers.network, Network::Ipv4(_)) {
                for (byte, flip) in bad.bytes_mut()[payload_at..].iter_mut().zip(flip.to_be_bytes()) {
                    *byte ^= flip;
                }
                let (mut after_good, mut after_bad) = (good, bad);
                for frame in [&mut after_good, &mut after_bad] {
                    let mut packet = Packet::parse(frame, Depth::Transport).expect("well formed");
                    rewrite(&mut packet, change, 0x0800).expect("the headroom has space");
                }
                // Exactly the corrupted bytes differ, before and after.
                let differ = |a: &Frame, b: &Frame| {
                    a.bytes().iter().zip(b.bytes()).filter(|(a, b)| a != b).count()
                };
                prop_assert!(differ(&after_good, &after_bad) <= 2);
            }
        }
    }
}

#[test]
fn ttl_of_one_is_not_decremented() {
    for text in ["eth / ipv4(ttl=1) / udp", "eth / ipv6(hlim=0) / udp"] {
        let mut frame = text.parse::<Stack>().expect("a stack").build();
        let before = frame.clone();
        let mut packet = Packet::parse(&mut frame, Depth::Network).expect("well formed");
        assert_eq!(packet.dec_ip_ttl(), Err(TtlExpired));
        assert_eq!(packet.dec_mpls_ttl(), Ok(()));
        assert_eq!(frame, before);
    }
}

#[test]
fn header_exposed_by_pop_is_validated() {
    let stack: Stack = "eth / mpls / ipv4(length=3)".parse().expect("a stack");
    let mut frame = stack.build();
    let mut packet = Packet::parse(&mut frame, Depth::Network).expect("MPLS is well formed");
    assert_eq!(packet.pop_mpls(0x0800), Ok(()));
    assert_eq!(packet.malformed(), Some(Malformed::Ipv4TotalLength));
    assert_eq!(packet.headers().network, Network::None);
    let mut frame = stack.build();
    let mut packet = Packet::parse(&mut frame, Depth::Network).expect("MPLS is well formed");
    assert_eq!(packet.pop_mpls(0x88b5), Ok(()));
    assert_eq!(packet.malformed(), None);
}

#[test]
fn set_field_may_make_header_malformed() {
    let stack: Stack = "eth / ipv6 / icmpv6".parse().expect("a stack");
    let mut frame = stack.build();
    let mut packet = Packet::parse(&mut frame, Depth::Transport).expect("well formed");
    packet.set_icmpv6_type(135);
    let Transport::Icmpv6(message) = packet.headers().transport else {
        panic!("still an ICMPv6 message");
    };
    assert_eq!((message.kind, message.nd), (135, None));
    packet
        .set_ip_proto(6)
        .expect("no header before TCP changed");
    assert_eq!(packet.headers().transport, Transport::None);
    assert_eq!(packet.headers().ip_proto(), Some(IpProto::TCP));
    packet.set_eth_type(0x0800).expect("no tag to pop");
    assert_eq!(packet.headers().network, Network::None);
    assert_eq!(packet.headers().link.eth_type, EtherType::IPV4);
}

#[test]
fn checksum_follows_protocol_number() {
    for (text, checksum_at) in [
        ("eth / ipv4 / udp / data(9)", 40),
        ("eth / ipv6 / udp / data(9)", 60),
        ("eth / ipv6 / hop_by_hop / udp / data(9)", 68),
    ] {
        let mut frame = text.parse::<Stack>().expect("a stack").build();
        let before = frame.clone();
        let mut packet = Packet::parse(&mut frame, Depth::Transport).expect("well formed");
        packet.set_ip_proto(136).expect("well formed");
        assert_eq!(packet.headers().ip_proto(), Some(IpProto::UDPLITE));
        let checksum = |frame: &Frame| u16_at(frame.bytes(), checksum_at);
        let fallen = checksum(&before) - checksum(packet.frame());
        assert_eq!(fallen, 136 - 17, "{text}");
        packet.set_ip_proto(17).expect("well formed");
        assert_eq!(frame, before);
    }
}

#[test]
fn pbb_push_and_pop_are_inverse() {
    let inner: Stack = "eth / vlan(pcp=3) / ipv4 / udp / data(40)"
        .parse()
        .expect("a stack");
    let mut frame = inner.build();
    let mut packet = Packet::parse(&mut frame, Depth::Transport).expect("well formed");
    packet.push_pbb(0x88e7).expect("the headroom has space");
    packet.set_pbb_isid(7);
    packet.set_eth_dst(MacAddr([4; 6]));
    packet.push_pbb(0x88e7).expect("the headroom has space");
    packet.push_vlan(0x88a8).expect("the headroom has space");
    let outer = "eth(dst=04:04:04:04:04:04) / vlan(tpid=0x88a8,vid=0) / pbb(isid=7) \
                 / eth(dst=04:04:04:04:04:04) / pbb(isid=7,pcp=3) / eth / vlan(pcp=3) / ipv4 / udp / data(40)";
    assert_eq!(Stack::dissect(packet.frame()).to_string(), outer);
    packet.pop_pbb().expect("well formed");
    let outer = "eth(dst=04:04:04:04:04:04) / vlan(tpid=0x88a8,vid=0) / pbb(isid=7,pcp=3) \
                 / eth / vlan(pcp=3) / ipv4 / udp / data(40)";
    assert_eq!(Stack::dissect(packet.frame()).to_string(), outer);
    packet.pop_vlan().expect("well formed");
    packet.pop_pbb().expect("well formed");
    assert_eq!(Stack::dissect(&frame), inner);
}

#[test]
fn frame_shortened_by_pop_is_padded() {
    let popped = |text: &str| {
        let mut frame = text.parse::<Stack>().expect("a stack").build();
        let mut packet = Packet::parse(&mut frame, Depth::Network).expect("well formed");
        packet.pop_vlan().expect("well formed");
        Stack::dissect(&frame).to_string()
    };
    let cases = [
        (
            "eth / vlan / ipv4 / udp / data(14)",
            "eth / ipv4 / udp / data(14) / pad(60)",
        ),
        (
            "eth / vlan / ipv4 / udp / data(17)",
            "eth / ipv4 / udp / data(17) / pad(60)",
        ),
        (
            "eth / vlan / ipv4 / udp / data(18)",
            "eth / ipv4 / udp / data(18)",
        ),
        (
            "eth / vlan / ipv4 / udp / data(13)",
            "eth / ipv4 / udp / data(13)",
        ),
    ];
    for (before, after) in cases {
        assert_eq!(popped(before), after);
    }
}

#[test]
fn first_fragment_of_sctp_keeps_its_checksum() {
    let stack: Stack = "eth / ipv4(mf) / sctp / data(16)".parse().expect("a stack");
    let mut frame = stack.build();
    let before = frame.bytes()[42..46].to_vec();
    let mut packet = Packet::parse(&mut frame, Depth::Transport).expect("well formed");
    packet.set_port_dst(7);
    assert_eq!(frame.bytes()[42..46], before);
}

#[test]
fn udp_never_loses_its_checksum_to_arithmetic() {
    // With port 2000 the checksum is zero, which would mean "no checksum".
    let before: Stack = "eth / ipv4 / udp(dst=2001) / raw(e01f)"
        .parse()
        .expect("a stack");
    let after: Stack = "eth / ipv4 / udp(dst=2000) / raw(e01f)"
        .parse()
        .expect("a stack");
    let mut frame = before.build();
    let mut packet = Packet::parse(&mut frame, Depth::Transport).expect("well formed");
    packet.set_port_dst(2000);
    assert_eq!(frame.bytes()[40..42], [0xff, 0xff]);
    assert_eq!(frame, after.build());
}

#[test]
fn setter_for_absent_or_unparsed_header_has_no_effect() {
    let stack: Stack = "eth / ipv4 / tcp".parse().expect("a stack");
    let mut frame = stack.build();
    let mut packet = Packet::parse(&mut frame, Depth::Network).expect("well formed");
    packet.set_port_dst(7);
    packet.set_vlan_vid(7);
    packet.set_arp_op(7);
    packet.set_nd_sll(MacAddr::BROADCAST);
    packet.copy_ttl_in();
    packet.pop_vlan().expect("nothing to pop");
    packet.pop_mpls(7).expect("nothing to pop");
    assert_eq!(frame, stack.build());
}

#[test]
fn headroom_holds_many_tags() {
    let stack: Stack = "eth / ipv4 / tcp".parse().expect("a stack");
    let mut frame = stack.build();
    let mut packet = Packet::parse(&mut frame, Depth::Transport).expect("well formed");
    let pushed = (0..40)
        .take_while(|_| packet.push_vlan(0x8100).is_ok())
        .count();
    assert!(pushed >= 28, "112 bytes are free, after those for a header");
}
