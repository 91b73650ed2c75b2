//! OpenFlow actions: bytes, tags and checksums of the frames that leave the switch.

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};

use testbed::{DeviceOffload, Failure};

use crate::support::context::{SystemTest, TestContext, TestResult, WAIT_LIMIT, tests};
use crate::support::host::{copy_stream, pseudo_random_bytes};
use crate::support::network::TestNetwork;
use crate::support::switch::{SECURE_2, SECURE_3};

pub(crate) const TESTS: &[SystemTest] = tests![
    actions_of_openflow_10_modify_frames,
    actions_of_openflow_13_modify_frames,
    output_actions_select_ports,
    frames_cross_between_a_port_and_the_host_port,
    partial_checksum_is_correct_after_a_rewrite,
    tcp_stream_crosses_address_translation,
];

/// Actions before `output:2`, a frame, and the frame that leaves. The builder computes correct
/// checksums on both sides.
#[rustfmt::skip]
const ACTIONS_OF_OPENFLOW_10: [(&str, &str, &str); 16] = [
    ("",                             "eth / ipv4 / udp / data(7)",                "eth / ipv4 / udp / data(7)"),
    ("mod_dl_src:02:00:00:00:00:aa", "eth / ipv4 / udp / data(7)",                "eth(src=02:00:00:00:00:aa) / ipv4 / udp / data(7)"),
    ("mod_dl_dst:02:00:00:00:00:aa", "eth / arp",                                 "eth(dst=02:00:00:00:00:aa) / arp"),
    ("mod_nw_src:192.0.2.1",         "eth / ipv4 / tcp / data(7)",                "eth / ipv4(src=192.0.2.1) / tcp / data(7)"),
    ("mod_nw_dst:192.0.2.1",         "eth / ipv4 / udp / data(8)",                "eth / ipv4(dst=192.0.2.1) / udp / data(8)"),
    ("mod_nw_tos:40",                "eth / ipv4(tos=3) / udp",                   "eth / ipv4(tos=43) / udp"),
    ("mod_tp_src:7",                 "eth / ipv4 / tcp / data(9)",                "eth / ipv4 / tcp(src=7) / data(9)"),
    ("mod_tp_dst:7",                 "eth / ipv4 / udp / data(9)",                "eth / ipv4 / udp(dst=7) / data(9)"),
    // A checksum of zero means that there is none (RFC 768).
    ("mod_tp_dst:7",                 "eth / ipv4 / udp(checksum=0) / data(9)",    "eth / ipv4 / udp(dst=7,checksum=0) / data(9)"),
    ("mod_vlan_vid:10",              "eth / ipv4 / udp",                          "eth / vlan(vid=10) / ipv4 / udp"),
    ("mod_vlan_vid:10",              "eth / vlan(vid=5,pcp=6) / ipv4 / udp",      "eth / vlan(vid=10,pcp=6) / ipv4 / udp"),
    ("mod_vlan_pcp:3",               "eth / arp",                                 "eth / vlan(vid=0,pcp=3) / arp"),
    ("mod_vlan_pcp:3",               "eth / vlan(vid=5) / arp",                   "eth / vlan(vid=5,pcp=3) / arp"),
    ("strip_vlan",                   "eth / vlan(vid=5) / ipv4 / udp",            "eth / ipv4 / udp"),
    ("strip_vlan",                   "eth / vlan(tpid=0x88a8,vid=5) / vlan(vid=6) / ipv4 / udp", "eth / vlan(vid=6) / ipv4 / udp"),
    ("strip_vlan",                   "eth / ipv4 / udp",                          "eth / ipv4 / udp"),
];

/// As [`ACTIONS_OF_OPENFLOW_10`], with a match in front.
#[rustfmt::skip]
const ACTIONS_OF_OPENFLOW_13: [(&str, &str, &str, &str); 24] = [
    ("",      "push_vlan:0x8100,set_field:4106->vlan_vid", "eth / ipv4 / udp",                        "eth / vlan(vid=10) / ipv4 / udp"),
    ("",      "push_vlan:0x88a8,set_field:4106->vlan_vid", "eth / vlan(vid=5,pcp=2) / arp",           "eth / vlan(tpid=0x88a8,vid=10,pcp=2) / vlan(vid=5,pcp=2) / arp"),
    ("dl_vlan=5,", "pop_vlan",                             "eth / vlan(vid=5) / vlan(vid=6) / arp",   "eth / vlan(vid=6) / arp"),
    ("dl_vlan=5,", "set_field:5->vlan_pcp",                "eth / vlan(vid=5) / arp",                 "eth / vlan(vid=5,pcp=5) / arp"),
    ("ip,",   "push_mpls:0x8847,set_field:99->mpls_label", "eth / ipv4(ttl=9) / udp",                 "eth / mpls(label=99,ttl=9) / ipv4(ttl=9) / udp"),
    ("mpls,", "push_mpls:0x8847,set_field:99->mpls_label", "eth / mpls(label=5,tc=3,ttl=7) / ipv4",   "eth / mpls(label=99,tc=3,ttl=7) / mpls(label=5,tc=3,ttl=7) / ipv4"),
    ("mpls,", "pop_mpls:0x0800",                           "eth / mpls(label=5) / ipv4 / udp",        "eth / ipv4 / udp"),
    ("mpls,", "set_mpls_ttl(33)",                          "eth / mpls(ttl=7) / ipv4 / udp",          "eth / mpls(ttl=33) / ipv4 / udp"),
    ("mpls,", "dec_mpls_ttl",                              "eth / mpls(ttl=7) / ipv4 / udp",          "eth / mpls(ttl=6) / ipv4 / udp"),
    ("ip,",   "mod_nw_ttl:33",                             "eth / ipv4(ttl=7) / udp",                 "eth / ipv4(ttl=33) / udp"),
    ("ip,",   "dec_ttl",                                   "eth / ipv4(ttl=7) / udp",                 "eth / ipv4(ttl=6) / udp"),
    ("ipv6,", "dec_ttl",                                   "eth / ipv6(hlim=7) / tcp / data(3)",      "eth / ipv6(hlim=6) / tcp / data(3)"),
    ("ip,",   "set_field:192.0.2.1->ip_src",               "eth / ipv4 / tcp / data(7)",              "eth / ipv4(src=192.0.2.1) / tcp / data(7)"),
    ("ipv6,", "set_field:fd00::77->ipv6_dst",              "eth / ipv6 / udp / data(7)",              "eth / ipv6(dst=fd00::77) / udp / data(7)"),
    ("ipv6,", "set_field:fd00::77->ipv6_src",              "eth / ipv6 / hop_by_hop / icmpv6 / data(7)", "eth / ipv6(src=fd00::77) / hop_by_hop / icmpv6 / data(7)"),
    ("ip,",   "set_field:10->ip_dscp",                     "eth / ipv4(tos=1) / udp",                 "eth / ipv4(tos=41) / udp"),
    ("ip,",   "set_field:2->nw_ecn",                       "eth / ipv4(tos=40) / udp",                "eth / ipv4(tos=42) / udp"),
    ("tcp,",  "set_field:7->tcp_dst",                      "eth / ipv4(options=01010101) / tcp / data(5)", "eth / ipv4(options=01010101) / tcp(dst=7) / data(5)"),
    ("sctp,", "set_field:7->sctp_src",                     "eth / ipv4 / sctp / data(8)",             "eth / ipv4 / sctp(src=7) / data(8)"),
    ("icmp,", "set_field:0->icmp_type",                    "eth / ipv4 / icmp / data(5)",             "eth / ipv4 / icmp(type=0) / data(5)"),
    ("arp,",  "set_field:2->arp_op",                       "eth / arp",                               "eth / arp(op=2)"),
    ("arp,",  "set_field:192.0.2.1->arp_spa",              "eth / vlan / arp",                        "eth / vlan / arp(spa=192.0.2.1)"),
    ("icmp6,icmpv6_type=135,", "set_field:fd00::9->nd_target", "eth / ipv6(hlim=255) / nd",           "eth / ipv6(hlim=255) / nd(target=fd00::9)"),
    ("",      "set_field:02:00:00:00:00:aa->eth_dst",      "eth / data(46)",                          "eth(dst=02:00:00:00:00:aa) / data(46)"),
];

fn actions_of_openflow_10_modify_frames(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(SECURE_2)?;
    let mut two = network.host(2).capture_frames()?;
    for (actions, sent, expected) in ACTIONS_OF_OPENFLOW_10 {
        switch.ofctl("del-flows br0")?;
        switch.ofctl(&format!(
            "add-flow br0 in_port=1,actions={actions},output:2"
        ))?;
        network.host(1).send(&[sent])?;
        two.expect_frame(expected);
    }
    Ok(())
}

fn actions_of_openflow_13_modify_frames(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(SECURE_2)?;
    let mut two = network.host(2).capture_frames()?;
    for (matching, actions, sent, expected) in ACTIONS_OF_OPENFLOW_13 {
        switch.ofctl("-O OpenFlow13 del-flows br0")?;
        let flow = format!("in_port=1,{matching}actions={actions},output:2");
        switch.ofctl(&format!("-O OpenFlow13 add-flow br0 {flow}"))?;
        network.host(1).send(&[sent])?;
        two.expect_frame(expected);
    }
    Ok(())
}

fn output_actions_select_ports(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let switch = network.start_switch(SECURE_3)?;
    let frame = "eth / ipv4 / udp";
    let last = "eth / arp";
    for version in ["", "-O OpenFlow13"] {
        for (output, receivers) in [
            ("output:2", &[2][..]),
            ("output:3,output:2", &[2, 3]),
            ("IN_PORT", &[1]),
            ("FLOOD", &[2, 3]),
            ("ALL", &[2, 3]),
            ("NORMAL", &[2, 3]),
            ("output:1", &[]),
            ("drop", &[]),
            ("output:9", &[]),
        ] {
            switch.ofctl(&format!("{version} del-flows br0"))?;
            switch.ofctl(&format!("{version} add-flow br0 ip,actions={output}"))?;
            switch.ofctl(&format!("{version} add-flow br0 arp,actions=IN_PORT,FLOOD"))?;
            let mut captures = Vec::new();
            for host in 1..=3 {
                captures.push((host, network.host(host).capture_frames()?));
            }
            network.host(1).send(&[frame, last])?;
            for (host, capture) in &mut captures {
                if receivers.contains(host) {
                    capture.expect_frame(frame);
                }
                capture.expect_frame(last);
            }
        }
    }
    Ok(())
}

fn frames_cross_between_a_port_and_the_host_port(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 1)?;
    let switch = network.start_switch("--bridge br0 --fail-mode secure --port p1")?;
    network.switch_namespace.set_up("br0")?;
    switch.ofctl("add-flow br0 in_port=1,actions=mod_nw_dst:192.0.2.1,LOCAL")?;
    switch.ofctl("add-flow br0 in_port=LOCAL,actions=output:1")?;
    context.wait_until("the host port to be up", || {
        Ok(!switch.ofctl("show br0")?.contains("PORT_DOWN"))
    })?;
    let mut local = network.capture_frames("br0")?;
    network.host(1).send(&["eth / ipv4 / tcp / data(5)"])?;
    local.expect_frame("eth / ipv4(dst=192.0.2.1) / tcp / data(5)");
    let mut one = network.host(1).capture_frames()?;
    let reply = "eth / ipv4 / udp / data(50)";
    network.send_from("br0", &[reply])?;
    one.expect_frame(reply);
    Ok(())
}

/// A host's own datagram is sent with a partial checksum. A port that supports checksum offload
/// passes it on; for another port the switch completes the checksum, which is then correct.
fn partial_checksum_is_correct_after_a_rewrite(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(SECURE_2)?;
    switch.ofctl("add-flow br0 udp,actions=mod_nw_dst:192.0.2.1,mod_tp_dst:9,output:2")?;
    network.add_static_neighbours(1, 2)?;
    let (one, two) = network.host_pair();
    let from = SocketAddrV4::new(one.address, 1000);
    let socket = one
        .namespace
        .run(|| UdpSocket::bind(from))?
        .map_err(Failure::to("open a UDP socket"))?;
    let mut capture = two.capture_frames()?;
    for (complete, checksum) in [(false, ",checksum=partial"), (true, "")] {
        network
            .switch_namespace
            .set_offload("p2", DeviceOffload::TxChecksum, !complete)?;
        // The content of the builder's data layer.
        let data: Vec<u8> = (0..33).collect();
        socket.send_to(&data, SocketAddrV4::new(two.address, 2000))?;
        capture.expect_frame_ignoring_ip_id(&format!(
            "eth / ipv4(src=10.1.0.1,dst=192.0.2.1,df) / udp(src=1000,dst=9{checksum}) / data(33)"
        ));
    }
    Ok(())
}

/// Address and port are translated in both directions, while the hosts leave checksums and
/// segmentation to their interfaces.
fn tcp_stream_crosses_address_translation(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(SECURE_2)?;
    let (one, two) = network.host_pair();
    let virtual_address = Ipv4Addr::new(10, 1, 0, 200);
    one.namespace
        .add_neighbour(one.interface, virtual_address, two.mac)?;
    two.namespace
        .add_neighbour(two.interface, one.address, one.mac)?;
    switch.ofctl("add-flow br0 in_port=1,tcp,nw_dst=10.1.0.200,tp_dst=80,actions=mod_nw_dst:10.1.0.2,mod_tp_dst:7000,output:2")?;
    switch.ofctl("-O OpenFlow13 add-flow br0 in_port=2,tcp,nw_src=10.1.0.2,tp_src=7000,actions=set_field:10.1.0.200->ip_src,set_field:80->tcp_src,dec_ttl,output:1")?;
    let file = pseudo_random_bytes(16 << 20);
    let server = two.listen(7000)?;
    for complete in [false, true] {
        network
            .switch_namespace
            .set_offload("p1", DeviceOffload::TxChecksum, !complete)?;
        network
            .switch_namespace
            .set_offload("p2", DeviceOffload::TxChecksum, !complete)?;
        let stream = one.connect(virtual_address, 80)?;
        let (accepted, _) = server.accept()?;
        accepted.set_read_timeout(Some(WAIT_LIMIT))?;
        let received = copy_stream(&file, &stream, &accepted)?;
        assert!(received == file, "the file to the server differs");
        let received = copy_stream(&file, &accepted, &stream)?;
        assert!(received == file, "the file to the client differs");
    }
    Ok(())
}
