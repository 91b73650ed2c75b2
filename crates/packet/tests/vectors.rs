//! Frames that a Linux kernel created or tshark parsed.

#![expect(
    clippy::unwrap_used,
    reason = "a vector that is no vector fails the test"
)]

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use packet::build::Stack;
use packet::wire::Fragment;
use packet::{Depth, Frame, Headers, Network, Packet, Transport};

/// Returns pairs of lines: a description and the bytes of a frame.
fn pairs(text: &str) -> impl Iterator<Item = (&str, Frame)> {
    let mut lines = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    std::iter::from_fn(move || {
        let (values, hex) = (lines.next()?, lines.next()?);
        let pairs = hex
            .as_bytes()
            .chunks(2)
            .map(|pair| str::from_utf8(pair).unwrap());
        let bytes: Vec<u8> = pairs
            .map(|pair| u8::from_str_radix(pair, 16).unwrap())
            .collect();
        Some((values, Frame::from_bytes(&bytes)))
    })
}

/// Returns the parsed headers under tshark's field names.
fn read(frame: &Frame) -> BTreeMap<&'static str, String> {
    let headers = Headers::parse(frame, Depth::Transport).unwrap();
    let mut values = BTreeMap::new();
    values.insert("eth.dst", headers.link.dst.to_string());
    values.insert("eth.src", headers.link.src.to_string());
    values.insert("eth.type", headers.link.eth_type.to_string());
    match headers.network {
        Network::Arp(arp) => {
            let addresses = arp.addresses.unwrap();
            values.insert("arp.opcode", arp.op.to_string());
            values.insert("arp.src.proto_ipv4", addresses.spa.to_string());
            values.insert("arp.dst.proto_ipv4", addresses.tpa.to_string());
            values.insert("arp.src.hw_mac", addresses.sha.to_string());
            values.insert("arp.dst.hw_mac", addresses.tha.to_string());
        }
        Network::Ipv4(ip) => {
            values.insert("ip.src", ip.src.to_string());
            values.insert("ip.dst", ip.dst.to_string());
            values.insert("ip.ttl", ip.ttl.to_string());
            values.insert("ip.proto", ip.protocol.0.to_string());
            values.insert("ip.dsfield", format!("{:#04x}", ip.tos));
        }
        Network::Ipv6(ip) => {
            values.insert("ipv6.src", ip.src.to_string());
            values.insert("ipv6.dst", ip.dst.to_string());
            values.insert("ipv6.hlim", ip.hop_limit.to_string());
            values.insert("ipv6.flow", format!("{:#08x}", ip.flow_label));
        }
        Network::None | Network::Mpls(_) | Network::Pbb(_) | Network::Nsh(_) => {}
    }
    match headers.transport {
        Transport::Tcp(tcp) => {
            values.insert("tcp.srcport", tcp.src.to_string());
            values.insert("tcp.dstport", tcp.dst.to_string());
            values.insert("tcp.flags", format!("{:#06x}", tcp.flags));
        }
        Transport::Udp(udp) => {
            values.insert("udp.srcport", udp.src.to_string());
            values.insert("udp.dstport", udp.dst.to_string());
        }
        Transport::Icmpv4(icmp) => {
            values.insert("icmp.type", icmp.kind.to_string());
            values.insert("icmp.code", icmp.code.to_string());
        }
        Transport::Icmpv6(icmp) => {
            values.insert("icmpv6.type", icmp.kind.to_string());
            values.insert("icmpv6.code", icmp.code.to_string());
            if let Some(nd) = icmp.nd {
                let target = match icmp.kind {
                    135 => "icmpv6.nd.ns.target_address",
                    _ => "icmpv6.nd.na.target_address",
                };
                values.insert(target, nd.target.to_string());
                let option = nd.sll.or(nd.tll).unwrap();
                values.insert("icmpv6.opt.linkaddr", option.address.to_string());
            }
        }
        Transport::Sctp(_) | Transport::None => {}
    }
    values
}

/// Fields that tshark also reports for the packet quoted in an ICMP error, or that `Fragment`
/// represents here.
const APART: [&str; 4] = [
    "ip.frag_offset",
    "ip.flags.mf",
    "ipv6.fraghdr.offset",
    "quoted",
];

#[test]
fn kernel_frames_are_parsed_like_tshark() {
    for (values, frame) in pairs(include_str!("../vectors/kernel.txt")) {
        let theirs: BTreeMap<_, _> = values
            .split(' ')
            .map(|pair| pair.split_once('=').unwrap())
            .collect();
        let ours = read(&frame);
        for (field, value) in &ours {
            assert_eq!(
                theirs.get(field),
                Some(&value.as_str()),
                "{field} in {values}"
            );
        }
        let quotes =
            theirs.get("icmp.type") == Some(&"3") || theirs.get("icmpv6.type") == Some(&"1");
        for field in theirs
            .keys()
            .filter(|field| !APART.contains(field) && !quotes)
        {
            assert!(ours.contains_key(field), "{field} in {values}");
        }
        let offset = theirs
            .get("ip.frag_offset")
            .or_else(|| theirs.get("ipv6.fraghdr.offset"));
        let later = offset.is_some_and(|offset| *offset != "0");
        let fragment = Headers::parse(&frame, Depth::Network).unwrap().fragment();
        assert_eq!(fragment == Some(Fragment::Later), later, "{values}");
    }
}

/// A frame that is built again from its layers gets new checksums; they equal the kernel's. (Except
/// for the transport checksum of a fragment, which covers all fragments.)
#[test]
fn checksums_equal_the_kernels() {
    for (values, frame) in pairs(include_str!("../vectors/kernel.txt")) {
        let stack = Stack::dissect(&frame);
        let text = stack.to_string();
        assert_eq!(stack.build().bytes(), frame.bytes(), "{values}");
        let fragment = Headers::parse(&frame, Depth::Network).unwrap().fragment();
        let whole = fragment != Some(Fragment::First);
        assert!(!text.contains("checksum=") || !whole, "{text}");
    }
}

#[test]
fn reverted_rewrite_restores_kernel_frame() {
    for (values, frame) in pairs(include_str!("../vectors/kernel.txt")) {
        let mut changed = frame.clone();
        let mut packet = Packet::parse(&mut changed, Depth::Transport).unwrap();
        let before = *packet.headers();
        packet.push_vlan(0x8100).unwrap();
        packet.set_ipv4_src(Ipv4Addr::BROADCAST);
        packet.set_ipv6_dst(Ipv6Addr::LOCALHOST);
        packet.set_port_dst(7);
        packet.set_ip_dscp(9);
        match before.network {
            Network::Ipv4(ip) => packet.set_ipv4_src(ip.src),
            Network::Ipv6(ip) => packet.set_ipv6_dst(ip.dst),
            _ => {}
        }
        match before.network {
            Network::Ipv4(ip) => packet.set_ip_dscp(ip.tos >> 2),
            Network::Ipv6(ip) => packet.set_ip_dscp(ip.traffic_class >> 2),
            _ => {}
        }
        match before.transport {
            Transport::Tcp(tcp) => packet.set_port_dst(tcp.dst),
            Transport::Udp(udp) => packet.set_port_dst(udp.dst),
            _ => {}
        }
        packet.pop_vlan().unwrap();
        assert_eq!(*packet.headers(), before);
        assert_eq!(changed, frame, "{values}");
    }
}

#[test]
fn built_frames_equal_stored_vectors() {
    for (text, frame) in pairs(include_str!("../vectors/built.txt")) {
        let stack: Stack = text.parse().unwrap();
        assert_eq!(stack.build(), frame, "{text}");
    }
}
