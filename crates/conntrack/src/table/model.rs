//! Concurrency models of the table: workers that commit, remove, prolong and expire connections, in
//! many of the orders that are possible. With this feature the table has two shards and sixteen
//! zones.

use std::sync::Arc;
use std::time::Duration;

use base::sync::{explore, thread};

use super::*;
use crate::nat::NatSide;
use crate::protocol::ProtocolState;
use crate::test_packets::{endpoint, udp};

/// Orders that each scheduler explores.
const ORDERS: usize = 1_000;
const NOW: Instant = Instant::from_secs(10);

fn table() -> Arc<ConnectionTable> {
    Arc::new(ConnectionTable::new(HashSeed([1, 2]), 16))
}

fn original(client: u16) -> ConnectionKey {
    let facts = udp(endpoint(1, client), endpoint(2, 53));
    facts.tuple.in_zone(CtZone(0))
}

/// Returns the reply key of a connection that is translated to a public port.
fn reply(public: u16) -> ConnectionKey {
    let facts = udp(endpoint(2, 53), endpoint(200, public));
    facts.tuple.in_zone(CtZone(0))
}

/// Commits a translated connection as the tracker does. Returns whether it was inserted.
fn commit(table: &ConnectionTable, client: u16, public: u16) -> bool {
    let (original, reply) = (original(client), reply(public));
    let serial = table.next_serial();
    let reverse = ReverseKey {
        reply,
        original,
        serial,
    };
    if !table.reserve_reply(&reverse, NOW) {
        return false;
    }
    let facts = udp(original.src, original.dst);
    let (state, _) = ProtocolState::begin(&facts).expect("UDP");
    let mut entry = ConnectionEntry::new(&original, state, NOW + Duration::from_secs(60));
    entry.set_nat(NatSide::Source, reply, serial);
    let is_inserted = table.insert(entry, table.position(&original), NOW).is_ok();
    if !is_inserted {
        table.release_reply(&reply, serial);
    }
    is_inserted
}

/// Looks a reply up. A connection that is found has this reply key.
fn look_up(table: &ConnectionTable, public: u16) -> Option<ConnectionKey> {
    let key = reply(public);
    table.with_entry(
        &key,
        table.position(&key),
        NOW,
        |shard, index, direction| {
            let entry = shard.entry(index).expect("the entry was found");
            assert_eq!(entry.reply(), key, "never another connection");
            assert_eq!(direction, TrafficDirection::Reply);
            entry.original()
        },
    )
}

/// Checks that each connection has one place in the counts and one reverse key.
fn check(table: &ConnectionTable, expected: usize) {
    let sum = |len: fn(&Shard) -> usize| -> usize {
        (0..table.shard_count())
            .map(|at| table.with_shard(at, |shard| len(shard)))
            .sum()
    };
    assert_eq!(sum(Shard::len), expected);
    assert_eq!(sum(Shard::reverse_len), expected);
    assert_eq!(table.limits.held() as usize, expected);
    assert_eq!(table.limits.zone_held(CtZone(0)) as usize, expected);
}

#[test]
fn racing_commits_of_a_key_keep_one_connection() {
    explore(ORDERS, || {
        let table = table();
        let other = Arc::clone(&table);
        let worker = thread::spawn(move || commit(&other, 1000, 5000));
        let is_second = commit(&table, 1000, 5001);
        look_up(&table, 5000);
        let is_first = worker.join().expect("the worker ends");
        assert!(is_first != is_second, "one of them is inserted");
        let public = if is_first { 5000 } else { 5001 };
        assert_eq!(look_up(&table, public), Some(original(1000)));
        check(&table, 1);
    });
}

#[test]
fn reply_key_moves_to_another_connection() {
    explore(ORDERS, || {
        let table = table();
        assert!(commit(&table, 1000, 5000));
        let other = Arc::clone(&table);
        let worker = thread::spawn(move || commit(&other, 1001, 5000));
        let is_removed = table.remove(&original(1000), NOW);
        look_up(&table, 5000);
        let is_moved = worker.join().expect("the worker ends");
        assert!(is_removed, "no other removes it");
        let expected = is_moved.then_some(original(1001));
        assert_eq!(look_up(&table, 5000), expected);
        check(&table, usize::from(is_moved));
    });
}

#[test]
fn expiry_removes_each_connection_once() {
    explore(ORDERS, || {
        let table = table();
        assert!(commit(&table, 1000, 5000));
        let other = Arc::clone(&table);
        let late = NOW + Duration::from_secs(100);
        let worker = thread::spawn(move || other.expire(late, 8));
        let key = reply(5000);
        table.with_entry(&key, table.position(&key), NOW, |shard, index, _| {
            shard.set_expiry(index, late + Duration::from_secs(1));
        });
        let is_removed = table.remove(&original(1000), NOW);
        let expired = worker.join().expect("the worker ends");
        assert_eq!(
            expired + usize::from(is_removed),
            1,
            "one of them removes it"
        );
        check(&table, 0);
    });
}
