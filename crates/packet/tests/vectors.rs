//! Frames made or judged by others: a Linux kernel, tshark.

#![expect(
    clippy::unwrap_used,
    reason = "a vector that is no vector fails the test"
)]

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use packet::build::Stack;
use packet::wire::Fragment;
use packet::{Depth, Frame, Headers, Network, Packet, Transport};

/// Pairs of lines: what is said of a frame, and its bytes.
fn pairs(text: &str) -> impl Iterator<Item = (&str, Frame)> {
    let mut lines = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    std::iter::from_fn(move || {
        let (said, hex) = (lines.next()?, lines.next()?);
        let pairs = hex
            .as_bytes()
            .chunks(2)
            .map(|pair| str::from_utf8(pair).unwrap());
        let bytes: Vec<u8> = pairs
            .map(|pair| u8::from_str_radix(pair, 16).unwrap())
            .collect();
        Some((said, Frame::from_bytes(&bytes)))
    })
}

/// What is read of the frame, in tshark's words.
fn read(frame: &Frame) -> BTreeMap<&'static str, String> {
    let headers = Headers::parse(frame, Depth::Transport).unwrap();
    let mut said = BTreeMap::new();
    said.insert("eth.dst", headers.link.dst.to_string());
    said.insert("eth.src", headers.link.src.to_string());
    said.insert("eth.type", headers.link.eth_type.to_string());
    match headers.network {
        Network::Arp(arp) => {
            let addresses = arp.addresses.unwrap();
            said.insert("arp.opcode", arp.op.to_string());
            said.insert("arp.src.proto_ipv4", addresses.spa.to_string());
            said.insert("arp.dst.proto_ipv4", addresses.tpa.to_string());
            said.insert("arp.src.hw_mac", addresses.sha.to_string());
            said.insert("arp.dst.hw_mac", addresses.tha.to_string());
        }
        Network::Ipv4(ip) => {
            said.insert("ip.src", ip.src.to_string());
            said.insert("ip.dst", ip.dst.to_string());
            said.insert("ip.ttl", ip.ttl.to_string());
            said.insert("ip.proto", ip.protocol.0.to_string());
            said.insert("ip.dsfield", format!("{:#04x}", ip.tos));
        }
        Network::Ipv6(ip) => {
            said.insert("ipv6.src", ip.src.to_string());
            said.insert("ipv6.dst", ip.dst.to_string());
            said.insert("ipv6.hlim", ip.hop_limit.to_string());
            said.insert("ipv6.flow", format!("{:#08x}", ip.flow_label));
        }
        Network::None | Network::Mpls(_) | Network::Pbb(_) | Network::Nsh(_) => {}
    }
    match headers.transport {
        Transport::Tcp(tcp) => {
            said.insert("tcp.srcport", tcp.src.to_string());
            said.insert("tcp.dstport", tcp.dst.to_string());
            said.insert("tcp.flags", format!("{:#06x}", tcp.flags));
        }
        Transport::Udp(udp) => {
            said.insert("udp.srcport", udp.src.to_string());
            said.insert("udp.dstport", udp.dst.to_string());
        }
        Transport::Icmpv4(icmp) => {
            said.insert("icmp.type", icmp.kind.to_string());
            said.insert("icmp.code", icmp.code.to_string());
        }
        Transport::Icmpv6(icmp) => {
            said.insert("icmpv6.type", icmp.kind.to_string());
            said.insert("icmpv6.code", icmp.code.to_string());
            if let Some(nd) = icmp.nd {
                let target = match icmp.kind {
                    135 => "icmpv6.nd.ns.target_address",
                    _ => "icmpv6.nd.na.target_address",
                };
                said.insert(target, nd.target.to_string());
                let option = nd.sll.or(nd.tll).unwrap();
                said.insert("icmpv6.opt.linkaddr", option.address.to_string());
            }
        }
        Transport::Sctp(_) | Transport::None => {}
    }
    said
}

/// Fields that tshark also finds in the packet that an ICMP error quotes, or
/// that are told by `fragment` here.
const APART: [&str; 4] = [
    "ip.frag_offset",
    "ip.flags.mf",
    "ipv6.fraghdr.offset",
    "quoted",
];

#[test]
fn what_a_kernel_sent_is_read_as_tshark_reads_it() {
    for (said, frame) in pairs(include_str!("../vectors/kernel.txt")) {
        let theirs: BTreeMap<_, _> = said
            .split(' ')
            .map(|pair| pair.split_once('=').unwrap())
            .collect();
        let ours = read(&frame);
        for (field, value) in &ours {
            assert_eq!(
                theirs.get(field),
                Some(&value.as_str()),
                "{field} in {said}"
            );
        }
        let quotes =
            theirs.get("icmp.type") == Some(&"3") || theirs.get("icmpv6.type") == Some(&"1");
        for field in theirs
            .keys()
            .filter(|field| !APART.contains(field) && !quotes)
        {
            assert!(ours.contains_key(field), "{field} in {said}");
        }
        let offset = theirs
            .get("ip.frag_offset")
            .or_else(|| theirs.get("ipv6.fraghdr.offset"));
        let later = offset.is_some_and(|offset| *offset != "0");
        let fragment = Headers::parse(&frame, Depth::Network).unwrap().fragment();
        assert_eq!(fragment == Some(Fragment::Later), later, "{said}");
    }
}

/// Built again from its layers a frame gets our checksums in place of the
/// kernel's: they are the same. (Of a fragment, the transport's is not ours to know.)
#[test]
fn our_checksums_are_the_kernels() {
    for (said, frame) in pairs(include_str!("../vectors/kernel.txt")) {
        let stack = Stack::dissect(&frame);
        let text = stack.to_string();
        assert_eq!(stack.build().bytes(), frame.bytes(), "{said}");
        let fragment = Headers::parse(&frame, Depth::Network).unwrap().fragment();
        let whole = fragment != Some(Fragment::First);
        assert!(!text.contains("checksum=") || !whole, "{text}");
    }
}

#[test]
fn a_change_there_and_back_leaves_the_kernels_frame_as_it_was() {
    for (said, frame) in pairs(include_str!("../vectors/kernel.txt")) {
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
        assert_eq!(changed, frame, "{said}");
    }
}

#[test]
fn what_tshark_found_whole_is_still_built_the_same() {
    for (text, frame) in pairs(include_str!("../vectors/built.txt")) {
        let stack: Stack = text.parse().unwrap();
        assert_eq!(stack.build(), frame, "{text}");
    }
}
