//! Packets for tests.

use std::net::{Ipv4Addr, Ipv6Addr};

use base::Instant;

use crate::facts::{PacketFacts, PacketTuple, TcpFacts, TransportFacts};
use crate::key::{AddressFamily, ConnectionKey, CtZone, Endpoint, KeyProtocol};
use crate::metadata::CtMetadata;
use crate::request::CtPacket;
use crate::steady::{KeyWords, SteadyKind, SteadyState};
use crate::timeout::CtPolicyId;

/// Returns the end of a host with a port.
pub(crate) fn endpoint(host: u8, port: u16) -> Endpoint {
    Endpoint {
        address: Ipv4Addr::new(10, 0, 0, host).into(),
        port,
        message_type: 0,
    }
}

fn tuple(protocol: KeyProtocol, src: Endpoint, dst: Endpoint) -> PacketTuple {
    PacketTuple {
        src,
        dst,
        protocol,
        family: AddressFamily::V4,
    }
}

fn facts(tuple: PacketTuple, transport: TransportFacts) -> PacketFacts {
    PacketFacts { tuple, transport }
}

/// Returns a UDP packet.
pub(crate) fn udp(src: Endpoint, dst: Endpoint) -> PacketFacts {
    facts(tuple(KeyProtocol::UDP, src, dst), TransportFacts::Other)
}

/// Returns a TCP segment.
pub(crate) fn tcp(src: Endpoint, dst: Endpoint, segment: TcpFacts) -> PacketFacts {
    facts(
        tuple(KeyProtocol::TCP, src, dst),
        TransportFacts::Tcp(segment),
    )
}

/// Returns an ICMP echo request (8) or reply (0).
pub(crate) fn echo(src: u8, dst: u8, id: u16, message_type: u8) -> PacketFacts {
    let end = |host, message_type| Endpoint {
        message_type,
        ..endpoint(host, id)
    };
    let tuple = tuple(
        KeyProtocol::ICMPV4,
        end(src, message_type),
        end(dst, 8 - message_type),
    );
    facts(tuple, TransportFacts::Icmp)
}

/// Returns an ICMP error about `packet`, sent by its receiver or a router.
pub(crate) fn error_about(packet: &PacketFacts) -> PacketFacts {
    let PacketTuple { src, dst, .. } = packet.tuple;
    let tuple = PacketTuple {
        src: dst,
        dst: src,
        ..packet.tuple
    };
    facts(tuple, TransportFacts::IcmpError)
}

/// Returns the key of UDP packets between two hosts, to port 53.
pub(crate) fn udp_key(src: u8, dst: u8) -> ConnectionKey {
    udp(endpoint(src, 1000 + u16::from(src)), endpoint(dst, 53))
        .tuple
        .in_zone(CtZone(0))
}

/// Returns the key of segments between two hosts, to port 80.
pub(crate) fn tcp_key(src: u8, dst: u8) -> ConnectionKey {
    let (src, dst) = (endpoint(src, 40_000 + u16::from(src)), endpoint(dst, 80));
    tcp(src, dst, TcpFacts::default()).tuple.in_zone(CtZone(0))
}

/// Returns the key of echo requests between two hosts.
pub(crate) fn icmp_key(src: u8, dst: u8) -> ConnectionKey {
    echo(src, dst, 7, 8).tuple.in_zone(CtZone(0))
}

/// Returns a UDP packet over IPv6.
pub(crate) fn udp_v6(src: u16, dst: u16) -> PacketFacts {
    let end = |host| Endpoint {
        address: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, host).into(),
        port: 1000 + host,
        message_type: 0,
    };
    let tuple = PacketTuple {
        family: AddressFamily::V6,
        ..tuple(KeyProtocol::UDP, end(src), end(dst))
    };
    facts(tuple, TransportFacts::Other)
}

/// Returns a packet that was not tracked before.
pub(crate) fn untracked(facts: PacketFacts) -> CtPacket<'static> {
    CtPacket {
        facts: Some(facts),
        payload: &[],
        metadata: CtMetadata::default(),
    }
}

/// Returns a connection of a client whose numbers are all `number`.
pub(crate) fn steady_state(client: u8, number: u32) -> SteadyState {
    SteadyState {
        key: KeyWords::of(&udp_key(client, 9)).expect("UDP"),
        kind: SteadyKind::Datagrams,
        expires: Instant::from_nanos(number.into()),
        mark: number,
        label: [u64::from(number); 2],
        policy: CtPolicyId::DEFAULT,
        tcp: None,
        nat: None,
    }
}
