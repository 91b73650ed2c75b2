//! Tests of the tracker, and its comparison with the reference model.

use std::net::Ipv4Addr;
use std::time::Duration;

use base::Instant;
use packet::wire::tcp::{ACK, FIN, PSH, RST, SYN};
use proptest::prelude::*;

use crate::facts::{PacketFacts, TcpFacts};
use crate::key::{ConnectionKey, CtZone};
use crate::metadata::{CtMetadata, CtState, MaskedWrite};
use crate::model::ModelTracker;
use crate::nat::{CtNat, NatRange, NatSide};
use crate::protocol::SequenceCheck;
use crate::request::{CtCommit, CtPacket, CtRequest};
use crate::test_packets::{echo, endpoint, error_about, tcp, udp, udp_v6, untracked};
use crate::{Conntrack, CtCounter, CtOutcome, HashSeed};

mod helpers;
mod limits;
mod nat;
mod steady;

const START: Instant = Instant::from_secs(100);

fn tracker() -> Conntrack {
    Conntrack::new(HashSeed([0x1234, 0x5678]), 10_000)
}

fn commit() -> CtRequest {
    CtRequest {
        commit: CtCommit::Commit,
        ..CtRequest::default()
    }
}

fn state_of(tracker: &Conntrack, facts: PacketFacts, request: &CtRequest, now: Instant) -> CtState {
    let outcome = tracker.track(&untracked(facts), request, now);
    outcome.metadata.state.without(CtState::TRACKED)
}

fn flags(flags: u16) -> TcpFacts {
    TcpFacts {
        flags,
        ..TcpFacts::default()
    }
}

#[test]
fn udp_connection_is_new_then_established() {
    let tracker = tracker();
    let (client, server) = (endpoint(1, 1000), endpoint(2, 53));
    let (request, reply) = (udp(client, server), udp(server, client));
    let look = CtRequest::default();
    assert_eq!(state_of(&tracker, request, &look, START), CtState::NEW);
    assert_eq!(state_of(&tracker, reply, &look, START), CtState::NEW);
    assert_eq!(state_of(&tracker, request, &commit(), START), CtState::NEW);
    let replied = CtState::ESTABLISHED.with(CtState::REPLY);
    assert_eq!(state_of(&tracker, reply, &look, START), replied);
    let established = CtState::ESTABLISHED;
    assert_eq!(state_of(&tracker, request, &look, START), established);
    let other_zone = CtRequest {
        zone: CtZone(1),
        ..look
    };
    assert_eq!(
        state_of(&tracker, request, &other_zone, START),
        CtState::NEW
    );
    let expired = START + Duration::from_secs(30);
    assert_eq!(state_of(&tracker, request, &look, expired), CtState::NEW);
}

#[test]
fn udp_over_ipv6_is_tracked() {
    let tracker = tracker();
    assert_eq!(
        state_of(&tracker, udp_v6(1, 2), &commit(), START),
        CtState::NEW
    );
    let replied = CtState::ESTABLISHED.with(CtState::REPLY);
    assert_eq!(state_of(&tracker, udp_v6(2, 1), &commit(), START), replied);
}

#[test]
fn icmp_error_is_related_to_its_connection() {
    let tracker = tracker();
    let request = udp(endpoint(1, 1000), endpoint(2, 53));
    let look = CtRequest::default();
    let error = error_about(&request);
    assert_eq!(state_of(&tracker, error, &look, START), CtState::INVALID);
    state_of(&tracker, request, &commit(), START);
    let related = CtState::RELATED.with(CtState::REPLY);
    assert_eq!(state_of(&tracker, error, &look, START), related);
    let ping = echo(1, 2, 7, 8);
    assert_eq!(state_of(&tracker, ping, &commit(), START), CtState::NEW);
    let replied = CtState::ESTABLISHED.with(CtState::REPLY);
    assert_eq!(state_of(&tracker, echo(2, 1, 7, 0), &look, START), replied);
    assert_eq!(
        state_of(&tracker, echo(2, 1, 8, 0), &look, START),
        CtState::INVALID
    );
}

#[test]
fn packet_without_facts_is_invalid() {
    let tracker = tracker();
    let packet = CtPacket {
        facts: None,
        payload: &[],
        metadata: CtMetadata::default(),
    };
    let outcome = tracker.track(&packet, &commit(), START);
    let invalid = CtState::INVALID.with(CtState::TRACKED);
    assert_eq!(outcome.metadata.state, invalid);
    assert_eq!(tracker.counter(CtCounter::InvalidPacket), 1);
    assert!(tracker.is_empty());
}

#[test]
fn mark_and_label_belong_to_the_connection() {
    let tracker = tracker();
    let (client, server) = (endpoint(1, 1000), endpoint(2, 53));
    let write = CtRequest {
        mark: Some(MaskedWrite {
            value: 5,
            mask: 0xff,
        }),
        label: Some(MaskedWrite {
            value: 1 << 100,
            mask: u128::MAX,
        }),
        ..commit()
    };
    tracker.track(&untracked(udp(client, server)), &write, START);
    let reply = untracked(udp(server, client));
    let metadata = tracker.track(&reply, &CtRequest::default(), START).metadata;
    assert_eq!((metadata.mark, metadata.label), (5, 1 << 100));
    let original = udp(client, server).tuple.in_zone(CtZone(0));
    assert_eq!(metadata.original, Some(original));
}

#[test]
fn force_replaces_connection_of_the_other_end() {
    let tracker = tracker();
    let (client, server) = (endpoint(1, 1000), endpoint(2, 53));
    let force = CtRequest {
        commit: CtCommit::Force,
        ..CtRequest::default()
    };
    state_of(&tracker, udp(client, server), &commit(), START);
    assert_eq!(
        state_of(&tracker, udp(server, client), &force, START),
        CtState::NEW
    );
    assert_eq!(tracker.len(), 1);
    let connections = tracker.connections(START);
    assert_eq!(connections[0].original.src, server);
}

#[test]
fn tcp_connection_restarts_after_its_end() {
    let tracker = tracker();
    tracker.set_sequence_check(SequenceCheck::Off);
    let (client, server) = (endpoint(1, 1000), endpoint(2, 80));
    let sent = |flag| tcp(client, server, flags(flag));
    state_of(&tracker, sent(SYN), &commit(), START);
    state_of(&tracker, sent(RST), &commit(), START);
    assert_eq!(
        state_of(&tracker, sent(SYN), &commit(), START),
        CtState::NEW
    );
    assert_eq!(tracker.len(), 1);
    assert_eq!(tracker.counter(CtCounter::Committed), 2);
}

#[test]
fn expiry_removes_connections_in_bounded_turns() {
    let tracker = tracker();
    for port in 1..=2_000 {
        let facts = udp(endpoint(1, port), endpoint(2, 53));
        state_of(&tracker, facts, &commit(), START);
    }
    assert_eq!(tracker.len(), 2_000);
    let late = START + Duration::from_secs(100);
    let mut turns = 0;
    while !tracker.is_empty() {
        assert!(tracker.expire(late, 8) <= 8);
        turns += 1;
        assert!(turns < 2_000);
    }
    assert_eq!(tracker.counter(CtCounter::Expired), 2_000);
}

#[test]
fn connections_are_flushed_by_zone_and_tuple() {
    let tracker = tracker();
    for (zone, port) in [(1, 10), (1, 11), (2, 10)] {
        let request = CtRequest {
            zone: CtZone(zone),
            ..commit()
        };
        let facts = udp(endpoint(1, port), endpoint(2, 53));
        state_of(&tracker, facts, &request, START);
    }
    assert_eq!(tracker.zone_len(CtZone(1)), 2);
    let key = udp(endpoint(1, 10), endpoint(2, 53))
        .tuple
        .in_zone(CtZone(1));
    assert!(tracker.flush_tuple(&key, START));
    assert!(!tracker.flush_tuple(&key, START));
    assert_eq!(tracker.flush_zone(CtZone(1)), 1);
    let left = tracker.connections(START);
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].original.zone, CtZone(2));
    assert_eq!(left[0].timeout, Duration::from_secs(60));
}

#[test]
fn workers_share_connections() {
    let tracker = tracker();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for port in 1..500 {
                    let (client, server) = (endpoint(1, port), endpoint(2, 53));
                    state_of(&tracker, udp(client, server), &commit(), START);
                    state_of(&tracker, udp(server, client), &commit(), START);
                }
            });
        }
    });
    assert_eq!(tracker.len(), 499);
    assert_eq!(tracker.connections(START).len(), 499);
}

/// A step of the comparison with the model.
#[derive(Clone, Debug)]
struct PacketStep {
    /// Packet of an existing connection: its index, and whether it is a reply.
    existing: Option<(usize, bool)>,
    client: u8,
    server: u8,
    protocol: u8,
    flags: u16,
    is_error: bool,
    request: CtRequest,
    pause: Duration,
}

fn requests() -> impl Strategy<Value = CtRequest> {
    let commits = prop::sample::select(vec![CtCommit::No, CtCommit::Commit, CtCommit::Force]);
    let range = |side, ports| {
        let address = Ipv4Addr::new(192, 0, 2, 1).into();
        Some(CtNat::New(NatRange {
            ports,
            ..NatRange::to_address(side, address)
        }))
    };
    let nats = prop::sample::select(vec![
        None,
        Some(CtNat::Existing),
        range(NatSide::Source, None),
        range(NatSide::Source, Some((7000, 7001))),
        range(NatSide::Destination, None),
        range(NatSide::Destination, Some((8000, 8003))),
    ]);
    let marks = prop::option::of((0_u32..4, 1_u32..4));
    (commits, nats, marks, 0_u16..2).prop_map(|(commit, nat, mark, zone)| CtRequest {
        zone: CtZone(zone),
        commit,
        nat,
        mark: mark.map(|(value, mask)| MaskedWrite { value, mask }),
        ..CtRequest::default()
    })
}

fn steps() -> impl Strategy<Value = PacketStep> {
    let all_flags = vec![
        SYN,
        SYN | ACK,
        ACK,
        ACK | PSH,
        ACK | FIN,
        RST,
        FIN,
        SYN | RST,
    ];
    let existing = prop::option::weighted(0.6, (any::<usize>(), any::<bool>()));
    let ends = (1_u8..4, 5_u8..7);
    (
        (existing, ends, 0_u8..3, prop::sample::select(all_flags)),
        (prop::bool::weighted(0.1), requests(), 0_u64..20_000),
    )
        .prop_map(
            |((existing, (client, server), protocol, flags), (is_error, request, pause))| {
                PacketStep {
                    existing,
                    client,
                    server,
                    protocol,
                    flags,
                    is_error,
                    request,
                    pause: Duration::from_millis(pause),
                }
            },
        )
}

impl PacketStep {
    /// Returns the packet and the request.
    fn packet(&self, model: &ModelTracker) -> (PacketFacts, CtRequest) {
        let chosen = self.existing.and_then(|(index, is_reply)| {
            let count = model.connections.len();
            let connection = model.connections.get(index.checked_rem(count)?)?;
            Some(if is_reply {
                connection.reply
            } else {
                connection.original
            })
        });
        let client = endpoint(self.client, 1000);
        let server = endpoint(self.server, 80);
        let facts = match self.protocol {
            0 => udp(client, server),
            1 => tcp(client, server, flags(self.flags)),
            _ => echo(self.client, self.server, 7, 8),
        };
        let key = chosen.unwrap_or_else(|| facts.tuple.in_zone(self.request.zone));
        let facts = self.facts_of(&key);
        let request = CtRequest {
            zone: key.zone,
            ..self.request
        };
        (facts, request)
    }

    fn facts_of(&self, key: &ConnectionKey) -> PacketFacts {
        let facts = match key.protocol.0 {
            17 => udp(key.src, key.dst),
            6 => tcp(key.src, key.dst, flags(self.flags)),
            _ => {
                let mut facts = echo(1, 2, 7, 8);
                (facts.tuple.src, facts.tuple.dst) = (key.src, key.dst);
                facts
            }
        };
        if self.is_error {
            error_about(&facts)
        } else {
            facts
        }
    }
}

proptest! {
    #[test]
    fn tracker_agrees_with_the_model(steps in prop::collection::vec(steps(), 1..150)) {
        let tracker = tracker();
        tracker.set_sequence_check(SequenceCheck::Off);
        let mut model = ModelTracker::default();
        let mut now = START;
        for step in steps {
            now += step.pause;
            let (facts, request) = step.packet(&model);
            let outcome: CtOutcome = tracker.track(&untracked(facts), &request, now);
            let result = model.check(&facts, &request, now, &outcome);
            prop_assert_eq!(result, Ok(()));
            tracker.expire(now, 3);
        }
        let key = |original: &ConnectionKey, reply: &ConnectionKey, mark| (*original, *reply, mark);
        let mut expected: Vec<_> = model.connections.iter()
            .map(|connection| key(&connection.original, &connection.reply, connection.mark))
            .collect();
        let dump = tracker.connections(now);
        let mut actual: Vec<_> = dump.iter()
            .map(|connection| key(&connection.original, &connection.reply, connection.mark))
            .collect();
        expected.sort_unstable();
        actual.sort_unstable();
        prop_assert_eq!(actual, expected);
        tracker.flush(now, |_| true);
        prop_assert!(tracker.is_empty());
        let reverse_keys = (0..tracker.table.shard_count())
            .map(|at| tracker.table.with_shard(at, |shard| shard.reverse_len()))
            .sum::<usize>();
        prop_assert_eq!(reverse_keys, 0);
    }
}
