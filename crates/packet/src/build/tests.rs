//! Built frames are checked by `etherparse`, an independent parser.

use etherparse::{NetHeaders, PacketHeaders};
use proptest::prelude::*;

use super::{ParseStackError, Stack};
use crate::{Checksum, Frame, SegmentationKind};

fn build(text: &str) -> Frame {
    text.parse::<Stack>().expect("a stack").build()
}

/// Asserts that an independent parser accepts every checksum of the frame.
fn assert_valid(frame: &Frame) {
    let read = PacketHeaders::from_ethernet_slice(frame.bytes()).expect("etherparse accepts it");
    let (net, mut transport) = (
        read.net.expect("a network"),
        read.transport.expect("a transport"),
    );
    let before = transport.clone();
    let payload = read.payload.slice();
    match &net {
        NetHeaders::Ipv4(ip, _) => {
            assert_eq!(ip.header_checksum, ip.calc_header_checksum(), "IPv4 header");
            transport.update_checksum_ipv4(ip, payload).expect("short");
        }
        NetHeaders::Ipv6(ip, _) => transport.update_checksum_ipv6(ip, payload).expect("short"),
        NetHeaders::Arp(_) => panic!("not IP"),
    }
    assert_eq!(before, transport);
}

#[test]
fn etherparse_accepts_types_lengths_and_checksums() {
    for text in [
        "eth / ipv4 / tcp(flags=SA,options=020405b4) / data(11)",
        "eth / vlan(vid=5,pcp=3) / ipv4(tos=0xb8,options=94040000) / udp / data(3)",
        "eth / vlan(tpid=0x88a8) / vlan(vid=6) / ipv6 / udp / data(4)",
        "eth / ipv4 / icmp / data(32)",
        "eth / ipv6(tclass=7,flabel=0x12345) / icmpv6 / data(9)",
        "eth / ipv6 / hop_by_hop / destination / tcp / data(100)",
        "eth / ipv6 / nd(sll=02:00:00:00:00:01)",
    ] {
        assert_valid(&build(text));
    }
}

#[test]
fn udp_without_a_checksum_is_never_sent_by_accident() {
    // With this payload the sum is all ones and the checksum zero.
    let frame = build("eth / ipv4 / udp / raw(e01f)");
    assert_eq!(frame.bytes()[40..42], [0xff, 0xff]);
    assert_valid(&frame);
}

#[test]
fn frame_gets_requested_length() {
    let udp = "eth / ipv4 / udp".parse::<Stack>().expect("a stack");
    for len in [64, 128, 256, 1514] {
        let frame = udp.clone().with_frame_len(len).build();
        assert_eq!(frame.len(), len);
        assert_valid(&frame);
    }
    assert_eq!(build("eth / arp / pad(60)").len(), 60);
}

#[test]
fn debts_are_stated_where_they_are() {
    let frame = build("eth / vlan / ipv4 / tcp(checksum=partial) / data(3000) / gso(1448)");
    let partial = Checksum::Partial {
        start: 38,
        offset: 16,
    };
    assert_eq!(frame.offload.checksum, partial);
    let how = frame
        .offload
        .segmentation
        .expect("a segmentation is outstanding");
    assert_eq!(
        (how.kind, how.size, how.header_len),
        (SegmentationKind::Tcp4, 1448, 58)
    );
    assert_eq!(
        (frame.wire_frames(), frame.wire_bytes()),
        (3, 3 * 58 + 3000)
    );
}

#[test]
fn text_form_round_trips() {
    for text in [
        "eth",
        "eth(dst=ff:ff:ff:ff:ff:ff,type=0x86dd)",
        "eth / snap / arp / pad(60)",
        "eth / llc / raw(0000000000)",
        "eth / vlan(vid=5,pcp=7,dei) / mpls(label=3,tc=1) / mpls(ttl=9) / ipv4 / udp",
        "eth / ipv4(mf) / udp / data(8)",
        "eth / ipv4(offset=185,proto=17) / data(40)",
        "eth / ipv6 / fragment(more,id=77) / udp / data(8)",
        "eth / ipv6 / routing(left=1) / ah(spi=9) / sctp / data(16)",
        "eth / ipv6 / nd(type=136,flags=1610612736,tll=02:00:00:00:00:02)",
        "eth / ipv4(length=2000) / tcp(checksum=partial) / data(5) / gso(2)",
        "eth / ipv4(checksum=1) / icmp(type=3,code=1,checksum=2)",
    ] {
        let stack = text.parse::<Stack>().expect(text);
        assert_eq!(stack.to_string(), text);
    }
}

#[test]
fn malformed_stack_text_is_refused() {
    let read = |text: &str| text.parse::<Stack>().expect_err(text);
    assert_eq!(read("eth / ip"), ParseStackError::Layer("ip".to_owned()));
    for (text, what) in [
        ("ipv4(ttl=256)", "ttl=256"),
        ("ipv4(mtu=3)", "mtu=3"),
        ("ipv4(ttl)", "ttl"),
        ("raw(123)", "123"),
    ] {
        let error = ParseStackError::Field {
            layer: text
                .split('(')
                .next()
                .map_or("", |name| if name == "raw" { "raw" } else { "ipv4" }),
            text: what.to_owned(),
        };
        assert_eq!(read(text), error);
    }
}

#[test]
fn dissection_yields_layers_of_frame() {
    for text in [
        "eth / vlan(tpid=0x88a8,vid=5) / vlan(vid=6,pcp=3) / ipv4(tos=184,ttl=3,df) / tcp(flags=FSRPAUECN,options=020405b4) / data(7)",
        "eth / snap / arp(op=2) / pad(60)",
        "eth / llc / raw(00000000) / pad(60)",
        "eth / mpls / mpls(label=3) / ipv6 / udp(checksum=0) / data(5)",
        "eth / ipv4(mf) / udp(length=1000) / data(8)",
        "eth / ipv4(offset=185,proto=17) / data(40)",
        "eth / ipv6 / hop_by_hop / routing(left=1) / destination / tcp / raw(010101)",
        "eth / ipv6 / fragment(more,id=77) / sctp(tag=5) / data(8)",
        "eth / ipv6 / nd(type=136,flags=1610612736,tll=02:00:00:00:00:02)",
        "eth / ipv4 / tcp(checksum=partial) / data(3000) / gso(1448)",
        "eth(type=0x88b5) / data(46)",
    ] {
        let frame = build(text);
        let text = text.replace("(type=0x88b5)", "");
        assert_eq!(Stack::dissect(&frame).to_string(), text);
    }
}

proptest! {
    #[test]
    fn dissection_of_arbitrary_bytes_is_lossless(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        eth_type in proptest::sample::select(vec![0x0800_u16, 0x86dd, 0x0806, 0x8100, 0x8847, 0x0030]),
        protocol in proptest::sample::select(vec![1_u8, 6, 17, 58, 132]),
    ) {
        let mut bytes = bytes;
        if bytes.len() > 60 {
            bytes[12..14].copy_from_slice(&eth_type.to_be_bytes());
            bytes[14] = if eth_type == 0x86dd { 0x60 } else { 0x45 };
            bytes[16..20].copy_from_slice(&[0, 46, 0, 20]);
            bytes[20] = protocol;
            bytes[23] = protocol;
        }
        let frame = Frame::from_bytes(&bytes);
        let stack = Stack::dissect(&frame);
        let again: Stack = stack.to_string().parse().expect("the text form parses");
        prop_assert_eq!(&again, &stack);
        let built = again.build();
        prop_assert_eq!(built.bytes(), frame.bytes());
    }
}
