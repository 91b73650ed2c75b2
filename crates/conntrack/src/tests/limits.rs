//! Full tables and zones, and embryonic connections.

use super::*;

fn offer(tracker: &Conntrack, port: u16, request: &CtRequest) -> Option<CtCounter> {
    let facts = udp(endpoint(1, port), endpoint(2, 53));
    tracker.track(&untracked(facts), request, START).refusal
}

fn establish(tracker: &Conntrack, port: u16) {
    let (client, server) = (endpoint(1, port), endpoint(2, 53));
    state_of(tracker, udp(client, server), &commit(), START);
    state_of(tracker, udp(server, client), &commit(), START);
}

#[test]
fn full_zone_refuses_connections_by_name() {
    let tracker = tracker();
    let zone = CtZone(7);
    tracker.set_zone_limit(zone, Some(0));
    let request = CtRequest { zone, ..commit() };
    assert_eq!(offer(&tracker, 1, &request), Some(CtCounter::ZoneFull));
    assert_eq!(offer(&tracker, 1, &commit()), None);
    assert_eq!(tracker.counter(CtCounter::ZoneFull), 1);
    tracker.set_zone_limit(zone, None);
    assert_eq!(offer(&tracker, 1, &request), None);
    assert_eq!(tracker.zone_len(zone), 1);
}

#[test]
fn full_table_refuses_connections_by_name() {
    let tracker = tracker();
    tracker.set_connections_max(1);
    establish(&tracker, 1);
    assert_eq!(offer(&tracker, 2, &commit()), Some(CtCounter::TableFull));
    assert_eq!(tracker.connections_max(), 1);
    assert_eq!(tracker.len(), 1);
}

#[test]
fn flood_does_not_remove_established_connections() {
    let tracker = Conntrack::new(HashSeed([3, 4]), 4_000);
    for port in 1..=1_000 {
        establish(&tracker, port);
    }
    let mut refused = 0;
    for port in 1_001..=30_000 {
        refused += u32::from(offer(&tracker, port, &commit()).is_some());
    }
    assert_eq!(tracker.len(), 4_000);
    for port in 1..=1_000 {
        let facts = udp(endpoint(1, port), endpoint(2, 53));
        let state = state_of(&tracker, facts, &CtRequest::default(), START);
        assert_eq!(state, CtState::ESTABLISHED, "{port}");
    }
    // Shards with established connections only refuse; most shards have an embryonic one.
    let evicted = tracker.counter(CtCounter::EmbryonicEvicted);
    assert_eq!(u64::from(refused) + evicted, 26_000);
    assert!(evicted > 20_000);
}

#[test]
fn shards_have_similar_numbers_of_connections() {
    let tracker = tracker();
    for port in 1..=10_000 {
        offer(&tracker, port, &commit());
    }
    let lens = tracker.shard_lens();
    assert_eq!(lens.iter().sum::<usize>(), 10_000);
    assert!(lens.into_iter().max() < Some(80));
}
