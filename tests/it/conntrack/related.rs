//! UDP, ICMP, SCTP, and ICMP errors that belong to a connection, with and without translation.

use super::scripts::{IPV4, IPV6, Script, back, compare, out};
use super::trackers::TrackerKind::OpenVswitch;
use super::trackers::{FIREWALL, TrackerPolicy};
use crate::support::context::{SystemTest, TestContext, TestResult, tests};

pub(crate) const TESTS: &[SystemTest] = tests![
    udp_and_echo_requests_are_tracked_alike,
    icmpv6_is_tracked_alike,
    sctp_is_tracked_alike,
    icmp_errors_are_related,
    source_translation_covers_inner_headers,
    destination_translation_is_undone_for_replies,
];

/// Rules that let no frame bypass translation: connections from port 1 get the address 10.2.0.100.
const SOURCE_NAT: TrackerPolicy = TrackerPolicy {
    flows: &[
        "table=0,priority=100,ip,actions=ct(nat,table=1)",
        "table=1,priority=300,ct_state=+trk+inv,actions=drop",
        "table=1,priority=200,ct_state=+trk+est,actions=resubmit(,2)",
        "table=1,priority=200,ct_state=+trk+rel-new,actions=resubmit(,2)",
        "table=1,priority=100,ip,in_port=1,ct_state=+trk+new,actions=ct(commit,nat(src=10.2.0.100)),resubmit(,2)",
        "table=2,in_port=1,actions=output:2",
        "table=2,in_port=2,actions=output:1",
    ],
    ruleset: "table inet firewall {
        chain forward {
            type filter hook forward priority filter; policy drop;
            ct state invalid drop
            ct state established,related accept
            ct state new ip saddr 10.2.0.1 accept
        }
        chain postrouting {
            type nat hook postrouting priority srcnat;
            ip saddr 10.2.0.1 snat ip to 10.2.0.100
        }
    }
    ",
};

/// Rules for connections to 10.2.0.200, which station 2 serves.
const DESTINATION_NAT: TrackerPolicy = TrackerPolicy {
    flows: &[
        "table=0,priority=100,ip,actions=ct(nat,table=1)",
        "table=1,priority=300,ct_state=+trk+inv,actions=drop",
        "table=1,priority=200,ct_state=+trk+est,actions=resubmit(,2)",
        "table=1,priority=200,ct_state=+trk+rel-new,actions=resubmit(,2)",
        "table=1,priority=100,ip,in_port=1,nw_dst=10.2.0.200,ct_state=+trk+new,actions=ct(commit,nat(dst=10.2.0.2)),resubmit(,2)",
        "table=2,in_port=1,actions=output:2",
        "table=2,in_port=2,actions=output:1",
    ],
    ruleset: "table inet firewall {
        chain prerouting {
            type nat hook prerouting priority dstnat;
            ip daddr 10.2.0.200 dnat ip to 10.2.0.2
        }
        chain forward {
            type filter hook forward priority filter; policy drop;
            ct state invalid drop
            ct state established,related accept
            ct state new ct status dnat accept
        }
    }
    ",
};

fn udp_and_echo_requests_are_tracked_alike(context: &TestContext) -> TestResult {
    let script = Script {
        headers: IPV4,
        steps: &[
            back("udp(src=53,dst=1000) / data(20)").dropped(),
            out("udp(src=1000,dst=53) / data(20)"),
            back("udp(src=53,dst=1000) / data(40)"),
            back("udp(src=54,dst=1000) / data(40)").dropped(),
            out("udp(src=1000,dst=53) / data(20)"),
            // A datagram without a checksum, and one with a wrong checksum.
            out("udp(src=1001,dst=53,checksum=0) / data(20)"),
            out("udp(src=1002,dst=53,checksum=0x1234) / data(20)").dropped(),
            back("icmp(type=8,rest=0x12340001) / data(56)").dropped(),
            out("icmp(type=8,rest=0x12340001) / data(56)"),
            back("icmp(type=0,rest=0x12340001) / data(56)"),
            back("icmp(type=0,rest=0x12340002) / data(56)"),
            back("icmp(type=0,rest=0x99990001) / data(56)").dropped(),
        ],
        unlisted: None,
    };
    compare(context, &FIREWALL, &script)
}

fn icmpv6_is_tracked_alike(context: &TestContext) -> TestResult {
    let script = Script {
        headers: IPV6,
        steps: &[
            out("icmpv6(type=128,rest=0x12340001) / data(56)"),
            back("icmpv6(type=129,rest=0x12340001) / data(56)"),
            back("icmpv6(type=129,rest=0x77770001) / data(56)").dropped(),
            out("udp(src=1000,dst=53) / data(20)"),
            // Port unreachable, and a packet too big of the same connection.
            back(
                "icmpv6(type=1,code=4) / ipv6(src=fd00::1,dst=fd00::2) / udp(src=1000,dst=53) / data(20)",
            ),
            back(
                "icmpv6(type=2,rest=1280) / ipv6(src=fd00::1,dst=fd00::2) / udp(src=1000,dst=53) / data(20)",
            ),
            // The same for an unknown connection.
            back(
                "icmpv6(type=1,code=4) / ipv6(src=fd00::1,dst=fd00::2) / udp(src=1001,dst=53) / data(20)",
            )
            .dropped(),
        ],
        unlisted: None,
    };
    compare(context, &FIREWALL, &script)
}

/// Chunks: INIT, INIT ACK, COOKIE ECHO, COOKIE ACK, DATA, SACK, SHUTDOWN, SHUTDOWN ACK, SHUTDOWN
/// COMPLETE (RFC 9260, 3.3).
fn sctp_is_tracked_alike(context: &TestContext) -> TestResult {
    let script = Script {
        headers: IPV4,
        steps: &[
            out("sctp(src=1000,dst=36412) / raw(01000014000000a10000ffff0001000100000001)"),
            back(
                "sctp(src=36412,dst=1000,tag=161) / raw(02000014000000b20000ffff0001000100000001)",
            ),
            out("sctp(src=1000,dst=36412,tag=178) / raw(0a00000800000000)"),
            back("sctp(src=36412,dst=1000,tag=161) / raw(0b000004)"),
            out("sctp(src=1000,dst=36412,tag=178) / raw(00030014000000010000000000000000aabbccdd)"),
            back("sctp(src=36412,dst=1000,tag=161) / raw(03000010000000010000ffff00000000)"),
            out("sctp(src=1000,dst=36412,tag=178) / raw(0700000800000001)"),
            back("sctp(src=36412,dst=1000,tag=161) / raw(08000004)"),
            out("sctp(src=1000,dst=36412,tag=178) / raw(0e000004)"),
        ],
        unlisted: Some((
            OpenVswitch,
            "it tracks SCTP by addresses, without ports and states",
        )),
    };
    compare(context, &FIREWALL, &script)
}

fn icmp_errors_are_related(context: &TestContext) -> TestResult {
    let script = Script {
        headers: IPV4,
        steps: &[
            out("udp(src=1000,dst=33434) / data(20)"),
            // Time exceeded at a router, and port unreachable at the target.
            back(
                "ipv4(src=10.9.9.9,dst=10.2.0.1) / icmp(type=11) / ipv4(src=10.2.0.1,dst=10.2.0.2) / udp(src=1000,dst=33434) / data(20)",
            ),
            back(
                "icmp(type=3,code=3) / ipv4(src=10.2.0.1,dst=10.2.0.2) / udp(src=1000,dst=33434) / data(20)",
            ),
            // Fragmentation needed, for a connection of TCP.
            out("tcp(src=1000,dst=80,seq=100,flags=S,window=5000)"),
            back(
                "ipv4(src=10.9.9.9,dst=10.2.0.1) / icmp(type=3,code=4,rest=1000) / ipv4(src=10.2.0.1,dst=10.2.0.2) / tcp(src=1000,dst=80,seq=100,flags=S,window=5000)",
            ),
            // An error of an unknown connection, and one with half a header.
            back(
                "icmp(type=3,code=3) / ipv4(src=10.2.0.1,dst=10.2.0.2) / udp(src=1001,dst=33434) / data(20)",
            )
            .dropped(),
            back("icmp(type=3,code=3) / raw(4500001c0000)").dropped(),
        ],
        unlisted: None,
    };
    compare(context, &FIREWALL, &script)
}

fn source_translation_covers_inner_headers(context: &TestContext) -> TestResult {
    let script = Script {
        headers: [
            "ipv4(src=10.2.0.1,dst=10.2.0.2)",
            "ipv4(src=10.2.0.2,dst=10.2.0.100)",
        ],
        steps: &[
            out("udp(src=1000,dst=33434) / data(20)"),
            back("udp(src=33434,dst=1000) / data(30)"),
            back(
                "ipv4(src=10.9.9.9,dst=10.2.0.100) / icmp(type=11) / ipv4(src=10.2.0.100,dst=10.2.0.2) / udp(src=1000,dst=33434) / data(20)",
            ),
            out("tcp(src=1000,dst=80,seq=100,flags=S,window=5000)"),
            back("tcp(src=80,dst=1000,seq=900,ack=101,flags=SA,window=5000)"),
            back(
                "ipv4(src=10.9.9.9,dst=10.2.0.100) / icmp(type=3,code=4,rest=1000) / ipv4(src=10.2.0.100,dst=10.2.0.2) / tcp(src=1000,dst=80,seq=101,ack=901,flags=A,window=5000)",
            ),
            out("icmp(type=8,rest=0x12340001) / data(56)"),
            back("icmp(type=0,rest=0x12340001) / data(56)"),
        ],
        unlisted: None,
    };
    compare(context, &SOURCE_NAT, &script)
}

fn destination_translation_is_undone_for_replies(context: &TestContext) -> TestResult {
    let script = Script {
        headers: [
            "ipv4(src=10.2.0.1,dst=10.2.0.200)",
            "ipv4(src=10.2.0.2,dst=10.2.0.1)",
        ],
        steps: &[
            out("tcp(src=1000,dst=80,seq=100,flags=S,window=5000)"),
            back("tcp(src=80,dst=1000,seq=900,ack=101,flags=SA,window=5000)"),
            out("tcp(src=1000,dst=80,seq=101,ack=901,flags=A,window=5000)"),
            out("udp(src=1000,dst=53) / data(20)"),
            back("udp(src=53,dst=1000) / data(20)"),
            back(
                "icmp(type=3,code=3) / ipv4(src=10.2.0.1,dst=10.2.0.2) / udp(src=1000,dst=53) / data(20)",
            ),
            out("ipv4(src=10.2.0.1,dst=10.2.0.2) / udp(src=1001,dst=53) / data(20)").dropped(),
        ],
        unlisted: None,
    };
    compare(context, &DESTINATION_NAT, &script)
}
