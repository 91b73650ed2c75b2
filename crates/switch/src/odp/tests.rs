//! Tests with flows as Open vSwitch writes them.

use proptest::prelude::*;

use super::*;

fn port(number: PortNo) -> String {
    number.0.to_string()
}

fn named(text: &str) -> Option<PortNo> {
    match text {
        "p1" => Some(PortNo(1)),
        text => text.parse().ok().map(PortNo),
    }
}

#[test]
fn odp_flows_survive_write_and_parse() {
    let both = [
        ("", ""),
        ("in_port=1", "in_port(1)"),
        (
            "in_port=3,dl_src=02:00:00:00:00:09,dl_dst=02:00:00:00:00:01/ff:ff:ff:00:00:00",
            "in_port(3),eth(src=02:00:00:00:00:09,dst=02:00:00:00:00:00/ff:ff:ff:00:00:00)",
        ),
        (
            "tcp,nw_src=10.0.0.0/8,nw_ttl=64,tp_dst=80",
            "eth_type(0x0800),ipv4(src=10.0.0.0/255.0.0.0,proto=6,ttl=64),tcp(dst=80)",
        ),
        (
            "dl_vlan=5,dl_vlan_pcp=3,ip,nw_frag=no",
            "eth_type(0x8100),vlan(vid=5,pcp=3),encap(eth_type(0x0800),ipv4(frag=no))",
        ),
        ("ip,nw_tos=16,nw_ecn=2", "eth_type(0x0800),ipv4(tos=0x12)"),
        (
            "icmp6,ipv6_dst=fe80::1,icmp_type=135,icmp_code=0,nd_target=fe80::/16",
            "eth_type(0x86dd),ipv6(dst=fe80::1,proto=58),icmpv6(type=135,code=0),nd(target=fe80::/ffff::)",
        ),
        (
            "arp,arp_tpa=10.0.0.2,arp_op=1",
            "eth_type(0x0806),arp(tip=10.0.0.2,op=1)",
        ),
    ];
    for (known, written) in both {
        let matching: Match = known.parse().expect(known);
        assert_eq!(write(&matching, port), written);
        assert_eq!(parse(written, named).expect(written), matching);
    }
}

#[test]
fn odp_parser_accepts_output_of_open_vswitch() {
    let printed = "skb_priority(0/0),skb_mark(0/0),ct_state(0/0),recirc_id(0),dp_hash(0/0),in_port(p1),\
        packet_type(ns=0,id=0),eth(src=02:00:00:00:00:01/00:00:00:00:00:00,dst=02:00:00:00:00:02),\
        eth_type(0x0800),ipv4(src=10.0.0.9/0.0.0.0,dst=10.0.0.1/255.0.0.0,proto=6,tos=0/0,ttl=64,frag=no),\
        tcp(src=9/0,dst=80)";
    let read = parse(printed, named).expect("it is printed so");
    assert_eq!(
        read.to_string(),
        "tcp,in_port=1,dl_dst=02:00:00:00:00:02,nw_dst=10.0.0.0/8,nw_ttl=64,nw_frag=no,tp_dst=80"
    );
}

#[test]
fn odp_parser_reports_the_position_of_an_error() {
    let refused = [
        ("in_port(9", "syntax error at in_port(9"),
        ("br0", "syntax error at br0"),
        ("in_port(p9)", "in_port(p9): no such port"),
        ("eth(src=02)", "syntax error at eth(src=02)"),
        ("dance(1)", "syntax error at dance(1)"),
        (
            "recirc_id(3)",
            "recirc_id(3): received frames do not have this",
        ),
        (
            "tcp(src=9)",
            "tcp(src=9): tp_src contradicts the other fields or lacks a prerequisite",
        ),
        (
            "eth_type(0x0800),ipv4(tos=0x100)",
            "syntax error at ipv4(tos=0x100)",
        ),
    ];
    for (text, why) in refused {
        let error = parse(text, named).expect_err(text);
        assert_eq!(error.replace("tcp_src", "tp_src"), why);
    }
}

proptest! {
    #[test]
    fn odp_parser_never_panics(text in "[a-z0-9_(),=/:.]{0,60}") {
        let _ = parse(&text, named);
    }
}
