//! Tests of built frames, parsed with another library.

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use proptest::prelude::*;

use super::*;
use crate::Signature;
use crate::layers::checksums_hold;

fn built(template: &Template, stamp: FrameStamp) -> Vec<u8> {
    let pattern = template.pattern().unwrap();
    let mut frame = pattern.bytes().to_vec();
    pattern.write(&mut frame, stamp);
    frame
}

fn protocols() -> impl Strategy<Value = Protocol> {
    prop::sample::select(vec![
        Protocol::Udp,
        Protocol::Udp6,
        Protocol::Tcp,
        Protocol::Icmp,
    ])
}

fn encapsulations() -> impl Strategy<Value = Encapsulation> {
    let tag = (0..4096_u16, 0..8_u8).prop_map(|(vid, pcp)| Tag { vid, pcp });
    let tunnel = (0..=0xff_ffff_u32).prop_map(|vni| Tunnel {
        source: Party::numbered(8),
        destination: Party::numbered(9),
        vni,
    });
    prop_oneof![
        Just(Encapsulation::Plain),
        tag.clone().prop_map(Encapsulation::Vlan),
        (tag.clone(), tag).prop_map(|(outer, inner)| Encapsulation::QinQ { outer, inner }),
        (0..=0xf_ffff_u32).prop_map(|value| Encapsulation::Mpls(Label {
            value,
            class: 5,
            ttl: 63
        })),
        tunnel.clone().prop_map(Encapsulation::Vxlan),
        tunnel.clone().prop_map(Encapsulation::Gre),
        tunnel.prop_map(Encapsulation::Geneve),
    ]
}

fn fields(protocol: Protocol) -> impl Strategy<Value = Vec<FlowField>> {
    let mut all = vec![
        FlowField::SourceMac,
        FlowField::DestinationMac,
        FlowField::SourceAddress,
        FlowField::DestinationAddress,
    ];
    if protocol != Protocol::Icmp {
        all.extend([FlowField::SourcePort, FlowField::DestinationPort]);
    }
    let count = all.len();
    prop::sample::subsequence(all, 1..=count)
}

prop_compose! {
    fn templates()(protocol in protocols(), encapsulation in encapsulations())(
        protocol in Just(protocol),
        encapsulation in Just(encapsulation),
        fields in fields(protocol),
        count in 1..=65_536_u32,
        seed in any::<Option<u64>>(),
        longer in prop_oneof![0..9_u16, 0..1_500_u16, 0..8_800_u16],
        dscp in 0..64_u8,
        ttl in 1..=255_u8,
        absent in any::<bool>(),
    ) -> Template {
        let order = seed.map_or(FlowOrder::Sequential, |seed| FlowOrder::Random { seed });
        let mut template = Template {
            protocol,
            encapsulation,
            dscp,
            ttl,
            flows: Flows { count, order, fields },
            ..Template::udp(64)
        };
        if absent && protocol != Protocol::Udp6 {
            template.udp_checksum = UdpChecksum::Absent;
        }
        template.frame_bytes = template.least_bytes() + longer;
        template
    }
}

/// The frame inside a tunnel, by header lengths from another library.
fn inside<'a>(template: &Template, frame: &'a [u8]) -> &'a [u8] {
    let around = match template.encapsulation {
        Encapsulation::Vxlan(_) | Encapsulation::Geneve(_) => 14 + 20 + 8 + 8,
        Encapsulation::Gre(_) => 14 + 20 + 4,
        _ => return frame,
    };
    let outer = SlicedPacket::from_ethernet(frame).unwrap();
    let Some(NetSlice::Ipv4(ip)) = outer.net else {
        panic!("a tunnel is over IPv4");
    };
    let header = ip.header();
    assert_eq!(
        header.header_checksum(),
        header.to_header().calc_header_checksum()
    );
    assert_eq!(usize::from(header.total_len()), frame.len() - 14);
    if let Some(TransportSlice::Udp(udp)) = outer.transport {
        assert_eq!(usize::from(udp.length()), frame.len() - 34);
        assert!([4789, 6081].contains(&udp.destination_port()));
        assert_eq!(udp.checksum(), 0);
    }
    &frame[around..]
}

/// Verifies one frame with the other library.
fn verify(template: &Template, frame: &[u8]) {
    assert_eq!(frame.len() + 4, usize::from(template.frame_bytes));
    let mut frame = inside(template, frame).to_vec();
    if let Encapsulation::Mpls(label) = template.encapsulation {
        let entry = u32::from_be_bytes(*frame[14..].first_chunk().unwrap());
        let (value, bottom) = (entry >> 12, entry >> 8 & 1);
        assert_eq!((value, bottom), (label.value, 1));
        assert_eq!(frame[12..14], [0x88, 0x47]);
        let kind = match template.protocol {
            Protocol::Udp6 => [0x86, 0xdd],
            _ => [0x08, 0x00],
        };
        frame.splice(12..18, kind);
    }
    let sliced = SlicedPacket::from_ethernet(&frame).unwrap();
    match template.encapsulation {
        Encapsulation::Vlan(tag) => {
            assert_eq!(sliced.vlan_ids()[0].value(), tag.vid);
        }
        Encapsulation::QinQ { outer, inner } => {
            let vids: Vec<u16> = sliced.vlan_ids().iter().map(|vid| vid.value()).collect();
            assert_eq!(vids, [outer.vid, inner.vid]);
        }
        _ => assert!(sliced.vlan_ids().is_empty()),
    }
    verify_transport(template, sliced);
}

fn verify_transport(template: &Template, sliced: SlicedPacket<'_>) {
    match (sliced.net.unwrap(), sliced.transport.unwrap()) {
        (NetSlice::Ipv4(ip), transport) => {
            let header = ip.header().to_header();
            assert_eq!(header.header_checksum, header.calc_header_checksum());
            assert_eq!(header.dscp.value(), template.dscp);
            assert_eq!(header.time_to_live, template.ttl);
            match transport {
                TransportSlice::Udp(udp) => {
                    let full = udp.to_header().calc_checksum_ipv4(&header, udp.payload());
                    let expected = match template.udp_checksum {
                        UdpChecksum::Computed => full.unwrap(),
                        UdpChecksum::Absent => 0,
                    };
                    assert_eq!(udp.checksum(), expected);
                }
                TransportSlice::Tcp(tcp) => {
                    let full = tcp.to_header().calc_checksum_ipv4(&header, tcp.payload());
                    assert_eq!(tcp.checksum(), full.unwrap());
                }
                TransportSlice::Icmpv4(icmp) => {
                    let full = icmp.header().icmp_type.calc_checksum(icmp.payload());
                    assert_eq!(icmp.checksum(), full);
                }
                other => panic!("{other:?}"),
            }
        }
        (NetSlice::Ipv6(ip), TransportSlice::Udp(udp)) => {
            let header = ip.header().to_header();
            assert_eq!(header.traffic_class >> 2, template.dscp);
            assert_eq!(header.hop_limit, template.ttl);
            let full = udp.to_header().calc_checksum_ipv6(&header, udp.payload());
            assert_eq!(udp.checksum(), full.unwrap());
        }
        other => panic!("{other:?}"),
    }
}

proptest! {
    #[test]
    fn built_frames_are_valid_for_another_library(
        template in templates(),
        number in any::<u64>(),
        time_ns in any::<u64>(),
        stream in any::<u8>(),
    ) {
        let frame = built(&template, FrameStamp { stream, number, time_ns });
        verify(&template, &frame);
        prop_assert!(checksums_hold(&frame));
        let signature = Signature::of(&frame).unwrap();
        prop_assert_eq!(u64::from(signature.sequence), number & 0xffff_ffff);
        prop_assert_eq!(signature.time_ns, time_ns & 0xffff_ffff_ffff);
        prop_assert_eq!(signature.stream, stream);
        // Padding after the packet does not affect the verification.
        let padded: Vec<u8> = frame.iter().copied().chain([0; 9]).collect();
        prop_assert_eq!(Signature::of(&padded), Some(signature));
    }

    #[test]
    fn modified_byte_invalidates_a_checksum(
        template in templates(),
        at in any::<prop::sample::Index>(),
        bit in 0..8_u32,
    ) {
        let good = Template {
            udp_checksum: UdpChecksum::Computed,
            encapsulation: Encapsulation::Plain,
            ..template
        };
        let least = good.least_bytes().max(good.frame_bytes);
        let good = Template { frame_bytes: least, ..good };
        let mut frame = built(&good, FrameStamp { stream: 0, number: 1, time_ns: 2 });
        let payload = frame.len() - Signature::LEN;
        let at = payload + at.index(Signature::LEN);
        frame[at] ^= 1 << bit;
        prop_assert!(!checksums_hold(&frame));
    }

    #[test]
    fn header_parser_accepts_any_input(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Signature::of(&bytes);
        let _ = checksums_hold(&bytes);
    }

    #[test]
    fn truncated_frame_has_no_signature(template in templates(), cut in 1..60_usize) {
        let frame = built(&template, FrameStamp { stream: 0, number: 1, time_ns: 2 });
        prop_assert_eq!(Signature::of(&frame[..frame.len() - cut]), None);
    }

    #[test]
    fn flows_have_the_requested_number(template in templates(), fields in fields(Protocol::Udp)) {
        let count = template.flows.count.min(300);
        let flows = Flows::sequential(count, &fields);
        let template = Template { flows, ..Template::udp(64) };
        let mut all: Vec<Vec<u8>> = (0..u64::from(count) * 2)
            .map(|number| {
                let frame = built(&template, FrameStamp { stream: 0, number, time_ns: 0 });
                // Addresses and ports, without checksums.
                [&frame[..12], &frame[26..38]].concat()
            })
            .collect();
        all.sort();
        all.dedup();
        prop_assert_eq!(all.len(), count as usize);
    }
}

#[test]
fn smallest_frames_have_no_spare_byte() {
    let of = |protocol, encapsulation| {
        Template {
            protocol,
            encapsulation,
            ..Template::udp(64)
        }
        .least_bytes()
    };
    let tag = Tag { vid: 1, pcp: 0 };
    let tunnel = Tunnel {
        source: Party::numbered(1),
        destination: Party::numbered(2),
        vni: 1,
    };
    assert_eq!(of(Protocol::Udp, Encapsulation::Plain), 64);
    assert_eq!(of(Protocol::Udp, Encapsulation::Vlan(tag)), 64);
    assert_eq!(of(Protocol::Tcp, Encapsulation::Plain), 70);
    assert_eq!(of(Protocol::Udp6, Encapsulation::Plain), 78);
    assert_eq!(of(Protocol::Udp, Encapsulation::Vxlan(tunnel)), 108);
    assert_eq!(of(Protocol::Udp, Encapsulation::Gre(tunnel)), 96);
}

#[test]
fn invalid_templates_are_refused_by_name() {
    let check = |change: fn(&mut Template)| {
        let mut template = Template::udp(64);
        change(&mut template);
        template.check().unwrap_err().to_string()
    };
    let tcp = check(|template| template.protocol = Protocol::Tcp);
    assert_eq!(tcp, "frame size 64 out of range: 70 to 9000 bytes with FCS");
    let vid = check(|template| {
        template.encapsulation = Encapsulation::Vlan(Tag { vid: 4096, pcp: 0 });
    });
    assert_eq!(vid, "a VLAN must be at most 4095, not 4096");
    let port = [FlowField::SourcePort];
    let flows = Flows::sequential(1_000_000, &port);
    let bad = Template {
        flows,
        ..Template::udp(64)
    };
    assert!(matches!(
        bad.check(),
        Err(BadTemplate::TooManyFlows { bits: 20, .. })
    ));
    let bad = Template {
        flows: Flows::sequential(9, &port),
        protocol: Protocol::Icmp,
        ..Template::udp(64)
    };
    assert_eq!(
        bad.check(),
        Err(BadTemplate::NoPorts(FlowField::SourcePort))
    );
}

#[test]
fn million_flows_have_a_million_addresses() {
    let flows = Flows::sequential(1_000_000, &[FlowField::SourceAddress]);
    let template = Template {
        flows,
        ..Template::udp(64)
    };
    let pattern = template.pattern().unwrap();
    let mut frame = pattern.bytes().to_vec();
    let mut seen = vec![false; 1 << 20];
    for number in 0..1_000_000 {
        pattern.write_flow(&mut frame, number);
        let address = u32::from_be_bytes(*frame[26..].first_chunk().unwrap());
        seen[(address & 0xf_ffff) as usize] = true;
    }
    assert_eq!(seen.iter().filter(|seen| **seen).count(), 1_000_000);
}

#[test]
fn mix_is_interleaved_evenly() {
    let mix = Mix::imix(&Template::udp(64)).unwrap();
    let round = mix.round();
    let of = |part| round.iter().filter(|&&one| one == part).count();
    assert_eq!([of(0), of(1), of(2)], [7, 4, 1]);
    assert!((mix.mean_bytes() - (7.0 * 64.0 + 4.0 * 570.0 + 1518.0) / 12.0).abs() < 1e-9);
    let first = round[..6].iter().filter(|&&one| one == 0).count();
    assert!((3..=4).contains(&first));
    let csit = Mix::imix_csit(&Template::udp(64)).unwrap();
    assert_eq!(csit.round().len(), 48);
}
