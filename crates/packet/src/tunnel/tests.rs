//! Encapsulation and decapsulation are inverse; arbitrary bytes do not panic.

use std::net::IpAddr;

use proptest::prelude::*;

use super::*;
use crate::MacAddr;
use crate::checksum::InternetSum;
use crate::wire::IpProto;
use crate::wire::ethernet::EtherType;

fn protocols() -> impl Strategy<Value = TunnelProtocol> {
    prop_oneof![
        Just(TunnelProtocol::Vxlan(VxlanExtension::None)),
        Just(TunnelProtocol::Vxlan(VxlanExtension::Gbp)),
        Just(TunnelProtocol::Vxlan(VxlanExtension::Gpe)),
        Just(TunnelProtocol::Geneve),
        Just(TunnelProtocol::Gre),
        Just(TunnelProtocol::Erspan),
        Just(TunnelProtocol::Gtpu),
        Just(TunnelProtocol::Lisp),
    ]
}

fn options() -> impl Strategy<Value = Vec<TunnelOption>> {
    let value = proptest::collection::vec(any::<[u8; 4]>(), 0..=7);
    let option = (any::<u16>(), any::<u8>(), value).prop_map(|(class, kind, words)| TunnelOption {
        class,
        kind,
        value: words.concat(),
    });
    proptest::collection::vec(option, 0..6)
}

prop_compose! {
    fn shims()(
        protocol in protocols(),
        key in any::<u32>(),
        has_key in any::<bool>(),
        policy in proptest::option::of((any::<u16>(), any::<u8>())),
        (oam, summed) in any::<(bool, bool)>(),
        sequence in any::<Option<u32>>(),
        bare in any::<bool>(),
        options in options(),
    ) -> TunnelHeader {
        let is_gre = protocol == TunnelProtocol::Gre;
        let mut shim = TunnelHeader::new(protocol);
        shim.key = match is_gre {
            true => has_key.then_some(key),
            false => Some(key & protocol.key_max()),
        };
        shim.oam = oam && matches!(protocol, TunnelProtocol::Geneve | TunnelProtocol::Vxlan(VxlanExtension::Gpe));
        let is_ip = matches!(protocol, TunnelProtocol::Gtpu | TunnelProtocol::Lisp);
        let is_of_frames = matches!(
            protocol,
            TunnelProtocol::Vxlan(VxlanExtension::None | VxlanExtension::Gbp) | TunnelProtocol::Erspan
        );
        if is_ip || (bare && !is_of_frames) {
            shim.payload = TunnelPayload::Packet(EtherType::IPV4);
        }
        if protocol == TunnelProtocol::Vxlan(VxlanExtension::Gbp) {
            shim.policy = policy.map(|(id, flags)| GroupPolicy { id, flags: flags & 0x48 });
        }
        if is_gre {
            (shim.summed, shim.sequence) = (summed, sequence);
        }
        if protocol == TunnelProtocol::Geneve {
            shim.options = options;
        }
        if protocol == TunnelProtocol::Erspan {
            shim.sequence = Some(sequence.unwrap_or(0));
            shim.erspan = Some(match oam {
                true => ErspanHeader::V1 { index: key & 0x000f_ffff },
                false => ErspanHeader::V2 {
                    direction: u8::from(summed),
                    hardware: u8::try_from(key & 0x3f).expect("six bits"),
                    timestamp: key,
                },
            });
        }
        if protocol == TunnelProtocol::Gtpu {
            shim.sequence = sequence.map(|number| number & 0xffff);
            let flags = if shim.sequence.is_some() { 0x32 } else { 0x30 };
            shim.gtpu = Some(GtpuHeader { flags, message: GTPU_USER_PACKET });
        }
        shim
    }
}

prop_compose! {
    fn outers()(
        ends in prop_oneof![
            any::<([u8; 4], [u8; 4])>().prop_map(|(a, b)| (IpAddr::from(a), IpAddr::from(b))),
            any::<([u8; 16], [u8; 16])>().prop_map(|(a, b)| (IpAddr::from(a), IpAddr::from(b))),
        ],
        macs in any::<([u8; 6], [u8; 6])>(),
        (tos, ttl, dont_fragment) in any::<(u8, u8, bool)>(),
        (src, dst, summed) in any::<(u16, u16, bool)>(),
    ) -> OuterHeaders {
        OuterHeaders {
            eth_dst: MacAddr(macs.0),
            eth_src: MacAddr(macs.1),
            src: ends.0,
            dst: ends.1,
            tos,
            ttl,
            dont_fragment: dont_fragment || ends.0.is_ipv6(),
            upper: OuterTransport::Udp { src, dst, summed },
        }
    }
}

proptest! {
    #[test]
    fn decapsulation_inverts_encapsulation(
        shim in shims(),
        mut outer in outers(),
        mut inner in proptest::collection::vec(any::<u8>(), 14..1600),
        skip in 0_u16..14,
    ) {
        if shim.protocol.is_gre() {
            outer.upper = OuterTransport::Gre;
        }
        let skip = if shim.payload == TunnelPayload::Ethernet { 0 } else { skip };
        // GTP-U and LISP have no type of the payload but its IP version.
        inner[usize::from(skip)] = 0x45;
        let mut pool = Pool::new(4);
        let mut frame = pool.take().expect("a buffer");
        frame.copy_from(&inner).expect("the headroom has space");
        encapsulate(&mut frame, skip, &outer, &shim, &mut pool).expect("below the maximum length");
        let packet = parse_outer(frame.bytes()).expect("a packet");
        prop_assert_eq!(packet.outer, outer);
        prop_assert_eq!(packet.end, frame.len());
        let decoded = decapsulate(&mut frame, &packet, shim.protocol).expect("not truncated");
        prop_assert_eq!(decoded, shim);
        prop_assert_eq!(frame.bytes(), &inner[usize::from(skip)..]);
        pool.put(frame);
        prop_assert_eq!(pool.outstanding(), 0);
    }

    #[test]
    fn corrupt_bit_under_outer_checksum_is_detected(
        shim in shims(),
        mut outer in outers(),
        inner in proptest::collection::vec(any::<u8>(), 14..200),
        at in any::<prop::sample::Index>(),
        bit in 0_u32..8,
    ) {
        if let OuterTransport::Udp { summed, .. } = &mut outer.upper {
            *summed = true;
        }
        let mut pool = Pool::new(4);
        let mut frame = Frame::from_bytes(&inner);
        encapsulate(&mut frame, 0, &outer, &shim, &mut pool).expect("below the maximum length");
        let at = 14 + at.index(frame.len() - 14);
        frame.bytes_mut()[at] ^= 1_u8 << bit;
        if let Some(packet) = parse_outer(frame.bytes()) {
            let is_udp = matches!(packet.outer.upper, OuterTransport::Udp { summed: true, .. });
            let decoded = decapsulate(&mut frame, &packet, shim.protocol);
            // IPv6 itself sums nothing but the addresses.
            if is_udp && outer.src.is_ipv4() {
                prop_assert!(decoded.is_err());
            }
        }
    }

    #[test]
    fn random_bytes_do_not_panic_in_tunnel_parser(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..300),
        protocol in protocols(),
        kind in 0_usize..4,
    ) {
        if bytes.len() > 34 {
            let (ether, ip, upper): ([u8; 2], u8, u8) = [
                ([8, 0], 0x45, 17),
                ([8, 0], 0x45, 47),
                ([0x86, 0xdd], 0x60, 17),
                ([0x86, 0xdd], 0x60, 47),
            ][kind];
            bytes[12..14].copy_from_slice(&ether);
            bytes[14] = ip;
            bytes[if kind < 2 { 23 } else { 20 }] = upper;
        }
        let _ = TunnelHeader::parse(protocol, &bytes, true);
        if let Some(packet) = parse_outer(&bytes) {
            let mut frame = Frame::from_bytes(&bytes);
            frame.offload.checksum = Checksum::Verified;
            let _ = decapsulate(&mut frame, &packet, protocol);
        }
    }
}

#[test]
fn headers_are_as_the_standards_draw_them() {
    let emitted = |shim: &TunnelHeader| {
        let mut bytes = Vec::new();
        shim.emit(&mut bytes);
        bytes
    };
    let mut vxlan = TunnelHeader::new(TunnelProtocol::Vxlan(VxlanExtension::None));
    vxlan.key = Some(0x12_3456);
    assert_eq!(emitted(&vxlan), [8, 0, 0, 0, 0x12, 0x34, 0x56, 0]);
    vxlan.protocol = TunnelProtocol::Vxlan(VxlanExtension::Gbp);
    vxlan.policy = Some(GroupPolicy {
        id: 0x0102,
        flags: 8,
    });
    assert_eq!(emitted(&vxlan), [0x88, 8, 1, 2, 0x12, 0x34, 0x56, 0]);
    vxlan.protocol = TunnelProtocol::Vxlan(VxlanExtension::Gpe);
    assert_eq!(emitted(&vxlan), [0x0c, 0, 0, 3, 0x12, 0x34, 0x56, 0]);
    let mut geneve = TunnelHeader::new(TunnelProtocol::Geneve);
    geneve.key = Some(7);
    geneve.options = vec![TunnelOption {
        class: 0xffff,
        kind: 0x80,
        value: vec![1, 2, 3, 4],
    }];
    let option = [0xff, 0xff, 0x80, 1, 1, 2, 3, 4];
    let expected = [[2, 0x40, 0x65, 0x58, 0, 0, 7, 0], option].concat();
    assert_eq!(emitted(&geneve), expected);
    let mut gre = TunnelHeader::new(TunnelProtocol::Gre);
    assert_eq!(emitted(&gre), [0, 0, 0x65, 0x58]);
    (gre.key, gre.sequence) = (Some(1), Some(2));
    assert_eq!(emitted(&gre), [0x30, 0, 0x65, 0x58, 0, 0, 0, 1, 0, 0, 0, 2]);
}

#[test]
fn headers_of_erspan_gtpu_and_lisp_are_as_open_vswitch_draws_them() {
    let mut erspan = TunnelHeader::new(TunnelProtocol::Erspan);
    (erspan.key, erspan.sequence) = (Some(0x7b), Some(1));
    erspan.erspan = Some(ErspanHeader::V1 { index: 3 });
    let v1 = [
        0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 0, 0, 0x7b, 0, 0, 0, 3,
    ];
    assert_eq!(erspan.to_bytes(), v1);
    erspan.key = Some(0x237);
    erspan.erspan = Some(ErspanHeader::V2 {
        direction: 1,
        hardware: 7,
        timestamp: 0x10ab_cd01,
    });
    let v2 = [
        0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 0, 2, 0x37, 0x10, 0xab, 0xcd, 1, 0, 0, 0, 0x78,
    ];
    assert_eq!(erspan.to_bytes(), v2);
    for bytes in [v1.as_slice(), v2.as_slice()] {
        let decoded = TunnelHeader::parse(TunnelProtocol::Erspan, bytes, true);
        let (header, len) = decoded.expect("a header");
        assert_eq!((header.to_bytes().as_slice(), len), (bytes, bytes.len()));
        assert_eq!(TunnelProtocol::of_gre(bytes), Some(TunnelProtocol::Erspan));
    }
    let mut gtpu = TunnelHeader::new(TunnelProtocol::Gtpu);
    gtpu.key = Some(0x7b);
    assert_eq!(gtpu.to_bytes(), [0x30, 255, 0, 0, 0, 0, 0, 0x7b]);
    gtpu.sequence = Some(5);
    let with_number = [0x32, 255, 0, 0, 0, 0, 0, 0x7b, 0, 5, 0, 0];
    assert_eq!(gtpu.to_bytes(), with_number);
    let mut lisp = TunnelHeader::new(TunnelProtocol::Lisp);
    lisp.key = Some(0x0001_0203);
    assert_eq!(lisp.to_bytes(), [0x48, 0, 0, 0, 1, 2, 3, 1]);
}

#[test]
fn gtpu_extension_headers_are_skipped_and_control_messages_recognised() {
    let parse = |bytes: &[u8]| TunnelHeader::parse(TunnelProtocol::Gtpu, bytes, true);
    let extended = [
        0x34, 255, 0, 13, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0x10, 9, 0xc0, 1, 0, 0, 0, 0x45,
    ];
    let (header, len) = parse(&extended).expect("a header");
    assert_eq!((header.key, len), (Some(1), 20));
    assert_eq!(header.payload, TunnelPayload::Packet(EtherType::IPV4));
    let endless = [0x34, 255, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0x85, 0, 0, 0, 0x85];
    assert_eq!(parse(&endless), Err(TunnelError::Unknown));
    let cut = [0x34, 255, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0x85, 9, 0, 0, 0x85];
    assert_eq!(parse(&cut), Err(TunnelError::Truncated));
    let (echo, _) = parse(&[0x32, 1, 0, 4, 0, 0, 0, 0, 0, 1, 0, 0]).expect("a header");
    assert!(echo.is_control_message());
    assert_eq!(
        parse(&[0x30, 255, 0, 1, 0, 0, 0, 0, 0x15]),
        Err(TunnelError::Payload)
    );
}

/// A packet as Open vSwitch 3.1 sends it: the checksum is that of a message of length zero.
#[test]
fn gtpu_checksum_without_the_length_is_accepted() {
    let mut packet = vec![0; 14];
    packet[12] = 8;
    packet.extend([
        0x45, 0, 0, 56, 0, 0, 0x40, 0, 64, 17, 0, 0, 172, 16, 0, 2, 172, 16, 0, 1,
    ]);
    packet.extend([
        0xb4, 0x9b, 8, 0x68, 0, 36, 0, 0, 0x30, 255, 0, 0, 0, 0, 0, 21,
    ]);
    packet.extend([
        0x45, 0, 0, 20, 0, 0, 0, 0, 64, 1, 0, 0, 10, 1, 0, 2, 10, 1, 0, 1,
    ]);
    let header = InternetSum::of(&packet[14..34]).checksum().to_be_bytes();
    packet[24..26].copy_from_slice(&header);
    let addresses = ([172, 16, 0, 2].into(), [172, 16, 0, 1].into());
    let pseudo = InternetSum::pseudo_v4(addresses.0, addresses.1, IpProto::UDP, 36);
    let sum = pseudo.plus(InternetSum::of(&packet[34..])).checksum();
    packet[40..42].copy_from_slice(&sum.to_be_bytes());
    let decapsulated = |packet: &[u8]| {
        let outer = parse_outer(packet).expect("a tunnel packet");
        let mut frame = Frame::from_bytes(packet);
        decapsulate(&mut frame, &outer, TunnelProtocol::Gtpu).map(|header| header.key)
    };
    packet[44..46].copy_from_slice(&20_u16.to_be_bytes());
    assert_eq!(decapsulated(&packet), Ok(Some(21)));
    packet[49] ^= 1;
    assert_eq!(decapsulated(&packet), Err(TunnelError::Checksum));
}
