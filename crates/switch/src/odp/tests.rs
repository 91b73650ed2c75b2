//! Tests with flows as Open vSwitch writes them.

use proptest::prelude::*;

use super::*;

fn port(number: PortNo) -> String {
    number.0.to_string()
}

fn named(text: &str) -> Option<u32> {
    (text == "p1").then_some(1)
}

fn parse(text: &str) -> Result<OdpFlow, OdpFlowError> {
    OdpFlow::parse(text, named)
}

fn matched(text: &str) -> Match {
    let flow = parse(text).expect(text);
    flow.to_match(|number| Some(PortNo(number))).expect(text)
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
        assert_eq!(matched(written), matching);
    }
}

#[test]
fn odp_parser_accepts_output_of_open_vswitch() {
    let printed = "skb_priority(0/0),skb_mark(0/0),ct_state(0/0),recirc_id(0),dp_hash(0/0),in_port(p1),\
        packet_type(ns=0,id=0),eth(src=02:00:00:00:00:01/00:00:00:00:00:00,dst=02:00:00:00:00:02),\
        eth_type(0x0800),ipv4(src=10.0.0.9/0.0.0.0,dst=10.0.0.1/255.0.0.0,proto=6,tos=0/0,ttl=64,frag=no),\
        tcp(src=9/0,dst=80)";
    assert_eq!(
        matched(printed).to_string(),
        "tcp,in_port=1,dl_dst=02:00:00:00:00:02,nw_dst=10.0.0.0/8,nw_ttl=64,nw_frag=no,tp_dst=80"
    );
    // A frame has the values, with and without a mask.
    let flow = parse(printed).expect(printed);
    let frame = flow.frame_fields().frame(0);
    assert_eq!(frame.bytes()[6..12], [2, 0, 0, 0, 0, 1]);
    assert_eq!(frame.bytes()[26..30], [10, 0, 0, 9]);
}

#[test]
fn odp_parser_accepts_blanks_flags_and_every_group() {
    let accepted = [
        "in_port(1),\n  eth(src=02:00:00:00:00:01,dst=02:00:00:00:00:02),\teth_type(0x0806), \
         arp(sip=1.2.3.4,tip=5.6.7.8,op=1/0xff,sha=00:0f:10:11:12:13,tha=00:14:15:16:17:18)",
        "eth(),eth_type(0x0800),ipv4()",
        "eth_type(0x0800),ipv4(src=10.0.0.4,dst=\n10.0.0.3,proto=\n1,tos=0,ttl=64,frag=no)",
        "skb_priority(1),skb_mark(0x2),recirc_id(0),dp_hash(0/0),ct_state(+trk-new),ct_zone(1)",
        "ct_tuple4(src=1.2.3.4,dst=5.6.7.8,proto=6,tp_src=1,tp_dst=2)",
        "eth_type(0x0800),ipv4(proto=6,frag=first),tcp(src=8,dst=9/0xf0),tcp_flags(ack)",
        "eth_type(0x0800),ipv4(proto=6),tcp_flags(+syn-ack)",
        "eth_type(0x8847),mpls(label=60,tc=0,ttl=64,bos=0,label=50,tc=0,ttl=64,bos=1)",
        "packet_type(ns=1,id=0x800),eth_type(0x0800)",
        "eth_type(0x88a8),vlan(vid=5,pcp=0),encap(eth_type(0x8100),vlan(vid=6/0xfff),\
         encap(eth_type(0x86dd),ipv6(label=0/0xfffff,tclass=0x70,proto=58,hlimit=64),\
         icmpv6(type=135,code=0),nd(target=fe80::1,sll=02:00:00:00:00:01)))",
        "eth_type(0x894f),nsh(flags=0,ttl=63,mdtype=1,np=3,spi=0x1234,si=255,c1=0x11223344)",
        "ufid:00000000-0000-0000-0000-000000000001, in_port(p1)",
        "tunnel(tun_id=0x1,src=1.1.1.1,dst=2.2.2.2/255.0.0.0,tos=0x3,ttl=64,tp_src=1,tp_dst=2,\
         geneve({class=0xffff,type=0,len=4,0xa}{class=0xffff,type=0x1,len=0}),flags(df|key))",
        "tunnel(ipv6_src=::1,ipv6_dst=::2,vxlan(gbp(id=1,flags=0x8)),flags(-df+csum))",
        "tunnel(src=1.1.1.1,dst=2.2.2.2,erspan(ver=2,dir=1,hwid=0x7),flags())",
    ];
    for text in accepted {
        assert!(parse(text).is_ok(), "{text}: {:?}", parse(text));
    }
}

#[test]
fn odp_tunnel_is_written_as_open_vswitch_writes_it() {
    let text = "tun_id=0x5,src=2.2.2.2,dst=1.1.1.1,tos=0x1,ttl=64,tp_dst=6081,\
                geneve({class=0xffff,type=0,len=4,0xa}{class=0xffff,type=0x1,len=4,0}),\
                flags(df|csum|key)";
    let flow = parse(&format!("tunnel({text})")).expect(text);
    assert_eq!(
        flow.tunnel.map(|tunnel| tunnel.text()).as_deref(),
        Some(text)
    );
}

#[test]
fn odp_flow_is_listed_with_masks_in_the_order_of_a_datapath() {
    let texts = [
        (
            "tunnel(dst=1.1.1.1,src=3.3.3.200/255.255.255.0,tp_dst=123,tp_src=1,ttl=64),\
             recirc_id(0),in_port(1),eth(),eth_type(0x0800),ipv4()",
            "tunnel(src=3.3.3.200/255.255.255.0,dst=1.1.1.1,ttl=64,tp_src=1,tp_dst=123),\
             recirc_id(0),in_port(1),eth(),eth_type(0x0800)",
        ),
        (
            "in_port(1),eth(src=00:00:00:00:00:01),eth_type(0x8100),vlan(vid=5,pcp=0/0),\
             encap(eth_type(0x0800),ipv4(src=10.0.0.1/255.0.0.0,dst=1.2.3.4/0.0.0.0,tos=4/0xfc))",
            "recirc_id(0),in_port(1),eth(src=00:00:00:00:00:01),eth_type(0x8100),vlan(vid=5),\
             encap(eth_type(0x0800),ipv4(src=10.0.0.1/255.0.0.0,tos=0x4/0xfc))",
        ),
    ];
    for (text, listed) in texts {
        assert_eq!(parse(text).expect(text).text(), listed);
    }
}

#[test]
fn odp_flow_composes_all_tags_and_labels() {
    let text = "eth_type(0x88a8),vlan(vid=5,pcp=1),encap(eth_type(0x8100),vlan(vid=6),\
                encap(eth_type(0x8847),mpls(label=20,tc=0,ttl=64,bos=1)))";
    let frame = parse(text).expect(text).frame_fields().frame(64);
    assert_eq!(
        frame.bytes()[12..],
        [
            0x88, 0xa8, 0x20, 5, 0x81, 0, 0, 6, 0x88, 0x47, 0, 1, 0x41, 64
        ]
    );
    // Without a type the frame has a length.
    let frame = parse("in_port(1)")
        .expect("a flow")
        .frame_fields()
        .frame(64);
    assert_eq!(frame.bytes()[12..], [0, 14]);
}

#[test]
fn odp_flow_without_eth_type_composes_the_packet_of_its_protocol() {
    let cases = [
        ("eth(),ipv4(proto=1),icmp(type=8,code=0)", [0x08, 0x00], 106),
        ("eth(),ipv6(proto=17),udp(src=1,dst=2)", [0x86, 0xdd], 126),
    ];
    for (text, ether_type, len) in cases {
        let frame = parse(text).expect(text).frame_fields().frame(64);
        assert_eq!(frame.bytes()[12..14], ether_type, "{text}");
        assert_eq!(frame.len(), len, "{text}");
    }
}

#[test]
fn odp_parser_reports_the_position_of_an_error() {
    let refused = [
        ("in_port(9", "syntax error at in_port(9"),
        ("br0", "syntax error at br0"),
        (
            "in_port(1),in_port(p9),eth()",
            "syntax error at in_port(p9),eth()",
        ),
        ("eth(src=02)", "syntax error at eth(src=02)"),
        ("dance(1)", "syntax error at dance(1)"),
        (
            "encap(eth_type(0x0800)",
            "syntax error at encap(eth_type(0x0800)",
        ),
        (
            "eth(src=02:00:00:00:00:01, dst=02:00:00:00:00:01)",
            "syntax error at eth(src=02:00:00:00:00:01, dst=02:00:00:00:00:01)",
        ),
        (
            "eth_type(0x0800),ipv4(tos=0x100)",
            "syntax error at ipv4(tos=0x100)",
        ),
        (
            "mpls(label=0x100000)",
            "syntax error at mpls(label=0x100000)",
        ),
        (
            "tunnel(geneve({class=1,type=1,len=3,0x1}))",
            "syntax error at tunnel(geneve({class=1,type=1,len=3,0x1}))",
        ),
    ];
    for (text, why) in refused {
        let error = parse(text).expect_err(text);
        assert_eq!(
            (error.to_string().as_str(), error.reason()),
            (why, "Invalid argument")
        );
    }
    let repeated = format!("tunnel({}dst=1.1.1.1)", "dst=1.1.1.1,".repeat(8192));
    let error = parse(&repeated).expect_err("it is too long");
    assert_eq!(error.reason(), "Argument list too long");
    let flow = parse("tcp(src=9)").expect("its syntax is right");
    let error = flow.to_match(|_| None).expect_err("it has no prerequisite");
    assert!(error.contains("lacks a prerequisite"), "{error}");
}

proptest! {
    #[test]
    fn odp_parser_never_panics(text in "[a-z0-9_(),=/:.{}|+-]{0,60}") {
        if let Ok(flow) = parse(&text) {
            assert!(!flow.frame_fields().frame(64).is_empty());
            let _ = flow.to_match(|number| Some(PortNo(number)));
        }
    }
}
