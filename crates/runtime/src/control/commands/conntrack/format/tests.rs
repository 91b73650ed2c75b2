//! Lines of connections that a tracker holds.

use std::net::{Ipv4Addr, Ipv6Addr};

use base::Instant;
use conntrack::{
    AddressFamily, AlgHelper, Conntrack, CtAddress, CtCommit, CtMetadata, CtNat, CtPacket,
    CtRequest, CtZone, Endpoint, HashSeed, MaskedWrite, NatRange, NatSide, PacketFacts,
    PacketTuple, TcpFacts, TransportFacts,
};

use super::*;

const NOW: Instant = Instant::from_secs(10);

/// Flags of TCP (RFC 9293, 3.1).
const SYN: u16 = 0x02;
const ACK: u16 = 0x10;

fn commit() -> CtRequest {
    CtRequest {
        commit: CtCommit::Commit,
        ..CtRequest::default()
    }
}

fn end(address: CtAddress, port: u16, message_type: u8) -> Endpoint {
    Endpoint {
        address,
        port,
        message_type,
    }
}

fn v4(host: u8) -> CtAddress {
    Ipv4Addr::new(10, 1, 1, host).into()
}

fn facts(protocol: u8, [src, dst]: [Endpoint; 2], transport: TransportFacts) -> PacketFacts {
    PacketFacts {
        tuple: PacketTuple {
            src,
            dst,
            protocol: KeyProtocol(protocol),
            family: AddressFamily::V4,
        },
        transport,
    }
}

fn udp() -> PacketFacts {
    let ends = [end(v4(1), 1, 0), end(v4(2), 2, 0)];
    facts(17, ends, TransportFacts::Other)
}

/// Returns the lines of a tracker that has seen these packets: without options, and with `-m -s`.
fn lines(packets: &[(PacketFacts, CtRequest)]) -> (String, String) {
    let tracker = Conntrack::new(HashSeed([1, 2]), 10);
    for (facts, request) in packets {
        let packet = CtPacket {
            facts: Some(*facts),
            payload: &[],
            metadata: CtMetadata::default(),
        };
        tracker.track(&packet, request, NOW);
    }
    let connections = tracker.connections(NOW);
    let [connection] = &connections[..] else {
        panic!("one connection: {connections:?}");
    };
    let line = |is_verbose, has_statistics| {
        let line = ConnectionLine {
            connection,
            is_verbose,
            has_statistics,
        };
        line.to_string()
    };
    (line(false, false), line(true, true))
}

#[test]
fn connection_line_has_both_tuples_and_the_zone() {
    let (plain, all) = lines(&[(udp(), commit())]);
    let tuples = "udp,orig=(src=10.1.1.1,dst=10.1.1.2,sport=1,dport=2),\
                  reply=(src=10.1.1.2,dst=10.1.1.1,sport=2,dport=1)";
    assert_eq!(plain, tuples);
    assert_eq!(all, format!("{tuples},id=0,status=0,timeout=60"));
    let request = CtRequest {
        zone: CtZone(9),
        mark: Some(MaskedWrite {
            value: 3,
            mask: u32::MAX,
        }),
        label: Some(MaskedWrite {
            value: 0x0a00_000d_0005_0001_0800_0010,
            mask: u128::MAX,
        }),
        ..commit()
    };
    let (plain, all) = lines(&[(udp(), request)]);
    let fields = "mark=3,labels=0xa00000d0005000108000010";
    assert_eq!(plain, format!("{tuples},zone=9,{fields}"));
    let numbers = "id=0,zone=9,status=0,timeout=60";
    assert_eq!(all, format!("{tuples},{numbers},{fields}"));
}

#[test]
fn connection_line_has_the_state_of_tcp() {
    let ends = [end(v4(1), 40_000, 0), end(v4(2), 21, 0)];
    let [client, server] = ends;
    let segment = |flags, sequence, acknowledgment, window_scale| {
        TransportFacts::Tcp(TcpFacts {
            flags,
            sequence,
            acknowledgment,
            window: 1000,
            window_scale,
            payload_len: 0,
        })
    };
    let request = CtRequest {
        helper: Some(AlgHelper::Ftp),
        ..commit()
    };
    let syn = (facts(6, ends, segment(SYN, 1, 0, Some(7))), request);
    let (plain, _) = lines(&[syn]);
    assert!(
        plain.ends_with(",protoinfo=(state=SYN_SENT),helper=ftp"),
        "{plain}"
    );
    let reply = segment(SYN | ACK, 100, 2, Some(6));
    let reply = (facts(6, [server, client], reply), CtRequest::default());
    let ack = (
        facts(6, ends, segment(ACK, 2, 101, None)),
        CtRequest::default(),
    );
    let (plain, all) = lines(&[syn, reply, ack]);
    let state = ",protoinfo=(state=ESTABLISHED),helper=ftp";
    assert!(plain.ends_with(state), "{plain}");
    let state = ",timeout=86400,protoinfo=(state_orig=ESTABLISHED,state_reply=ESTABLISHED,\
                 wscale_orig=7,wscale_reply=6,flags_orig=WINDOW_SCALE,flags_reply=WINDOW_SCALE),\
                 helper=ftp";
    assert!(all.ends_with(state), "{all}");
    let later = (facts(6, ends, segment(ACK, 2, 101, None)), commit());
    let (_, all) = lines(&[later]);
    assert!(all.contains("flags_orig=BE_LIBERAL"), "{all}");
}

#[test]
fn connection_line_has_the_parts_of_icmp() {
    let echo = [end(v4(1), 7, 8), end(v4(2), 7, 0)];
    let (plain, _) = lines(&[(facts(1, echo, TransportFacts::Icmp), commit())]);
    let expected = "icmp,orig=(src=10.1.1.1,dst=10.1.1.2,id=7,type=8,code=0),\
                    reply=(src=10.1.1.2,dst=10.1.1.1,id=7,type=0,code=0)";
    assert_eq!(plain, expected);
}

#[test]
fn connection_line_has_translated_and_long_addresses() {
    let range = NatRange::to_address(NatSide::Source, v4(9));
    let request = CtRequest {
        nat: Some(CtNat::New(range)),
        ..commit()
    };
    let (plain, _) = lines(&[(udp(), request)]);
    assert!(
        plain.ends_with(",reply=(src=10.1.1.2,dst=10.1.1.9,sport=2,dport=1)"),
        "{plain}"
    );
    let address = |host| Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, host).into();
    let mut packet = facts(
        200,
        [end(address(1), 0, 0), end(address(2), 0, 0)],
        TransportFacts::Other,
    );
    packet.tuple.family = AddressFamily::V6;
    let (plain, _) = lines(&[(packet, commit())]);
    assert!(
        plain.starts_with("200,orig=(src=fd00::1,dst=fd00::2,sport=0,dport=0),"),
        "{plain}"
    );
}

#[test]
fn connection_statistics_count_protocols_and_states() {
    let tracker = Conntrack::new(HashSeed([1, 2]), 10);
    let syn = TransportFacts::Tcp(TcpFacts {
        flags: SYN,
        ..TcpFacts::default()
    });
    let ends = |port| [end(v4(1), port, 0), end(v4(2), 80, 0)];
    for facts in [
        udp(),
        facts(6, ends(1), syn),
        facts(6, ends(2), syn),
        facts(99, ends(0), TransportFacts::Other),
    ] {
        let packet = CtPacket {
            facts: Some(facts),
            payload: &[],
            metadata: CtMetadata::default(),
        };
        tracker.track(&packet, &commit(), NOW);
    }
    let mut statistics = ConnectionStatistics::default();
    for connection in tracker.connections(NOW) {
        statistics.add(&connection);
    }
    let plain = "Connections Stats:\n    Total: 4\n  TCP: 2\n  UDP: 1\n  Other: 1\n";
    assert_eq!(statistics.format(false), plain);
    let states = "  TCP: 2\n    Conn per TCP states:\n\t  [SYN_SENT]=2\n";
    assert_eq!(statistics.format(true), plain.replace("  TCP: 2\n", states));
}

#[test]
fn buckets_are_listed_eight_in_a_line() {
    let empty = "Total Buckets: 2\nCurrent Connections: 0\n\n";
    assert_eq!(buckets(&[0, 0], 0), empty);
    let expected = "Total Buckets: 9\n\
        Current Connections: 4\n\n\
        +-----------+-----------------------------------------+\n\
        |  Buckets  |         Connections per Buckets         |\n\
        +-----------+-----------------------------------------+\n   \
        0..  7   |     .    3    .    .    .    .    .    .\n   \
        8.. 15   |     .\n\n";
    assert_eq!(buckets(&[0, 3, 0, 0, 0, 0, 0, 0, 1], 1), expected);
}
