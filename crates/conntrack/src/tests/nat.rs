//! Translation of packets of both directions, of errors, and of packets that are tracked twice.

use super::*;
use crate::key::{CtAddress, Endpoint, TrafficDirection};
use crate::request::NatTranslation;

fn public() -> CtAddress {
    Ipv4Addr::new(192, 0, 2, 1).into()
}

fn source_nat() -> CtRequest {
    let range = NatRange::to_address(NatSide::Source, public());
    CtRequest {
        nat: Some(CtNat::New(range)),
        ..commit()
    }
}

fn existing() -> CtRequest {
    CtRequest {
        nat: Some(CtNat::Existing),
        ..CtRequest::default()
    }
}

/// Returns the packet with the header of its translation.
fn translated(facts: PacketFacts, translation: &NatTranslation) -> PacketFacts {
    let mut facts = facts;
    facts.tuple.src = translation.header.src;
    facts.tuple.dst = translation.header.dst;
    facts
}

#[test]
fn source_nat_translates_both_directions() {
    let tracker = tracker();
    let (client, server) = (endpoint(1, 1000), endpoint(2, 53));
    let request = udp(client, server);
    let outcome = tracker.track(&untracked(request), &source_nat(), START);
    let state = CtState::NEW.with(CtState::SOURCE_NAT);
    assert_eq!(outcome.metadata.state, state.with(CtState::TRACKED));
    let translation = outcome.translation.expect("a translation");
    let public = Endpoint {
        address: public(),
        ..client
    };
    assert_eq!(translation.header.src, public);
    assert_eq!(translation.header.dst, server);

    let reply = tracker.track(&untracked(udp(server, public)), &existing(), START);
    let state = CtState::ESTABLISHED.with(CtState::REPLY);
    let state = state.with(CtState::DESTINATION_NAT);
    assert_eq!(reply.metadata.state, state.with(CtState::TRACKED));
    let translation = reply.translation.expect("a translation");
    assert_eq!(
        (translation.header.src, translation.header.dst),
        (server, client)
    );
    assert_eq!(translation.side, NatSide::Destination);
}

#[test]
fn packet_without_nat_argument_is_not_translated() {
    let tracker = tracker();
    let request = udp(endpoint(1, 1000), endpoint(2, 53));
    tracker.track(&untracked(request), &source_nat(), START);
    let look = CtRequest::default();
    let outcome = tracker.track(&untracked(request), &look, START);
    assert_eq!(outcome.translation, None);
}

#[test]
fn translated_packet_is_found_again_in_its_zone() {
    let tracker = tracker();
    let request = udp(endpoint(1, 1000), endpoint(2, 53));
    let first = tracker.track(&untracked(request), &source_nat(), START);
    let translation = first.translation.expect("a translation");
    let again = CtPacket {
        facts: Some(translated(request, &translation)),
        payload: &[],
        metadata: first.metadata,
    };
    let second = tracker.track(&again, &source_nat(), START);
    assert_eq!(second.metadata.state, first.metadata.state);
    assert_eq!(second.translation, None);
    assert_eq!(tracker.len(), 1);
}

#[test]
fn error_about_translated_packet_is_translated() {
    let tracker = tracker();
    let (client, server) = (endpoint(1, 1000), endpoint(2, 53));
    let request = udp(client, server);
    let first = tracker.track(&untracked(request), &source_nat(), START);
    let translation = first.translation.expect("a translation");
    let error = error_about(&translated(request, &translation));
    let outcome = tracker.track(&untracked(error), &existing(), START);
    let state = CtState::RELATED.with(CtState::REPLY);
    let state = state.with(CtState::DESTINATION_NAT);
    assert_eq!(outcome.metadata.state, state.with(CtState::TRACKED));
    let translation = outcome.translation.expect("a translation");
    assert!(translation.is_error);
    assert_eq!(translation.header.dst, client);
    assert_eq!(translation.header.reversed().src, client);
}

#[test]
fn connections_behind_one_address_have_different_ports() {
    let tracker = tracker();
    let mut headers = std::collections::BTreeSet::new();
    for host in 1..100 {
        let request = udp(endpoint(host, 1000), endpoint(200, 53));
        let outcome = tracker.track(&untracked(request), &source_nat(), START);
        headers.insert(outcome.translation.expect("a translation").header);
    }
    assert_eq!(headers.len(), 99);
}

#[test]
fn clients_behind_one_address_have_different_identifiers() {
    let tracker = tracker();
    let requests = [echo(1, 9, 7, 8), echo(2, 9, 7, 8)];
    let headers = requests.map(|request| {
        let outcome = tracker.track(&untracked(request), &source_nat(), START);
        outcome.translation.expect("a translation").header
    });
    let [first, second] = headers;
    assert_eq!(first.src.port, 7);
    assert_ne!(second.src.port, 7);
    assert_eq!(second.src.port, second.dst.port);

    let mut reply = echo(9, 1, second.src.port, 0);
    reply.tuple.dst.address = public();
    let outcome = tracker.track(&untracked(reply), &existing(), START);
    let header = outcome.translation.expect("a translation").header;
    assert_eq!(header.dst.address, endpoint(2, 7).address);
    assert_eq!((header.src.port, header.dst.port), (7, 7));
}

#[test]
fn exhausted_nat_refuses_a_connection() {
    let tracker = tracker();
    let range = NatRange {
        ports: Some((5000, 5000)),
        ..NatRange::to_address(NatSide::Source, public())
    };
    let request = CtRequest {
        nat: Some(CtNat::New(range)),
        ..commit()
    };
    for (host, refusal) in [(1, None), (2, Some(CtCounter::NatExhausted))] {
        let packet = untracked(udp(endpoint(host, 1000), endpoint(9, 53)));
        let outcome = tracker.track(&packet, &request, START);
        assert!(outcome.metadata.state.contains(CtState::NEW));
        assert_eq!(outcome.refusal, refusal);
    }
    assert_eq!(tracker.len(), 1);
    assert_eq!(tracker.counter(CtCounter::NatExhausted), 1);
}

#[test]
fn connection_with_the_reply_key_of_another_is_refused() {
    let tracker = tracker();
    let backend = endpoint(9, 80);
    let range = NatRange::to_address(NatSide::Destination, backend.address);
    let request = CtRequest {
        nat: Some(CtNat::New(range)),
        ..commit()
    };
    let client = endpoint(1, 1000);
    tracker.track(&untracked(udp(client, endpoint(2, 80))), &request, START);
    let direct = tracker.track(&untracked(udp(client, backend)), &commit(), START);
    assert_eq!(direct.refusal, Some(CtCounter::ReplyInUse));
    assert_eq!(
        TrafficDirection::Reply.reversed(),
        TrafficDirection::Original
    );
    assert_eq!(tracker.len(), 1);
}

#[test]
fn expired_translation_frees_its_key() {
    let tracker = tracker();
    let (client, server) = (endpoint(1, 1000), endpoint(2, 53));
    tracker.track(&untracked(udp(client, server)), &source_nat(), START);
    let late = START + Duration::from_secs(100);
    let public = Endpoint {
        address: public(),
        ..client
    };
    let outcome = tracker.track(&untracked(udp(server, public)), &commit(), late);
    assert_eq!(outcome.refusal, None);
    assert_eq!(tracker.len(), 1);
    assert_eq!(tracker.connections(late)[0].original.src, server);
}
