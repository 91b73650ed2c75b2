//! Copies of connections for dumps, removal of many connections, and the numbers of the table.
//!
//! A dump copies a few entries of one shard at a time and locks nothing in between, so workers are
//! not held up. It lists each connection that exists from its begin to its end once; one that is
//! created or removed meanwhile may be listed or not, as in Open vSwitch.

use std::time::Duration;

use base::Instant;

use crate::alg::AlgHelper;
use crate::counters::CtCounter;
use crate::entry::ConnectionEntry;
use crate::key::{ConnectionKey, CtZone};
use crate::nat::NatSide;
use crate::protocol::{ProtocolState, SctpPhase, TcpEnd};
use crate::tracker::Conntrack;

/// Entries that are copied or removed under one lock.
const CHUNK: u32 = 64;

/// State of a protocol that dumps show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolInfo {
    /// Both ends of a TCP connection: that of the original direction first.
    Tcp([TcpEnd; 2]),
    /// An SCTP association.
    Sctp(SctpPhase),
    /// No state.
    None,
}

/// A connection at the time of a dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionInfo {
    /// Original direction.
    pub original: ConnectionKey,
    /// Reply direction.
    pub reply: ConnectionKey,
    /// Original direction of the control connection, if a helper expected this one.
    pub parent: Option<ConnectionKey>,
    /// `ct_mark`.
    pub mark: u32,
    /// `ct_label`.
    pub label: u128,
    /// Time until the connection expires.
    pub timeout: Duration,
    /// State of the protocol.
    pub protocol: ProtocolInfo,
    /// The side of packets of the original direction that is translated.
    pub nat: Option<NatSide>,
    /// The helper.
    pub helper: Option<AlgHelper>,
}

impl ConnectionInfo {
    fn new(entry: &ConnectionEntry, now: Instant) -> Self {
        Self {
            original: entry.original(),
            reply: entry.reply(),
            parent: entry.parent().copied(),
            mark: entry.mark,
            label: entry.label(),
            timeout: entry.expires.since(now),
            protocol: match &entry.state {
                ProtocolState::Tcp(connection) => ProtocolInfo::Tcp(connection.ends),
                ProtocolState::Sctp(association) => ProtocolInfo::Sctp(association.phase),
                ProtocolState::Icmp(_) | ProtocolState::Other(_) => ProtocolInfo::None,
            },
            nat: entry.nat(),
            helper: entry.helper(),
        }
    }
}

/// Position of a dump: a shard, and the entries of it that were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DumpCursor {
    shard: usize,
    index: u32,
}

impl Conntrack {
    /// Copies the next connections of a dump to `connections`. Returns false at its end. A call
    /// reads at most 64 entries, and may copy none.
    pub fn dump(
        &self,
        cursor: &mut DumpCursor,
        now: Instant,
        connections: &mut Vec<ConnectionInfo>,
    ) -> bool {
        if cursor.shard >= self.table.shard_count() {
            return false;
        }
        self.table.with_shard(cursor.shard, |shard| {
            let end = shard.index_end();
            let stop = end.min(cursor.index.saturating_add(CHUNK));
            for index in cursor.index..stop {
                drop(shard.check_out(index, &self.table.steady));
                let entry = shard.entry(index);
                let live = entry.filter(|entry| !entry.is_expired(now));
                connections.extend(live.map(|entry| ConnectionInfo::new(entry, now)));
            }
            *cursor = if stop < end {
                DumpCursor {
                    index: stop,
                    ..*cursor
                }
            } else {
                DumpCursor {
                    shard: cursor.shard + 1,
                    index: 0,
                }
            };
        });
        true
    }

    /// Returns all connections.
    #[must_use]
    pub fn connections(&self, now: Instant) -> Vec<ConnectionInfo> {
        let mut cursor = DumpCursor::default();
        let mut connections = Vec::new();
        while self.dump(&mut cursor, now, &mut connections) {}
        connections
    }

    /// Removes the connections for which `is_selected` is true, 64 entries under one lock at most.
    /// Returns their number.
    pub fn flush(
        &self,
        now: Instant,
        mut is_selected: impl FnMut(&ConnectionInfo) -> bool,
    ) -> usize {
        self.flush_entries(|entry| is_selected(&ConnectionInfo::new(entry, now)))
    }

    /// Removes the connections of a zone. Returns their number.
    pub fn flush_zone(&self, zone: CtZone) -> usize {
        self.flush_entries(|entry| entry.zone() == zone)
    }

    /// Removes all connections. Returns their number.
    pub fn flush_all(&self) -> usize {
        self.flush_entries(|_| true)
    }

    fn flush_entries(&self, mut is_selected: impl FnMut(&ConnectionEntry) -> bool) -> usize {
        let mut removed = 0;
        for at in 0..self.table.shard_count() {
            let mut begin = 0_u32;
            loop {
                let mut entries = Vec::new();
                let end = self.table.with_shard(at, |shard| {
                    let end = shard.index_end();
                    for index in begin..end.min(begin.saturating_add(CHUNK)) {
                        if shard.entry(index).is_some_and(&mut is_selected) {
                            entries.extend(shard.remove(index));
                        }
                    }
                    end
                });
                removed += entries.len();
                for entry in entries {
                    self.table.finish(Some(entry), CtCounter::Removed);
                }
                begin = begin.saturating_add(CHUNK);
                if begin >= end {
                    break;
                }
            }
        }
        removed
    }

    /// Removes the connection of a key of either direction. Returns false if there is none.
    pub fn flush_tuple(&self, key: &ConnectionKey, now: Instant) -> bool {
        self.table.remove(key, now)
    }

    /// Removes connections that have expired, after at most `steps` timers, in a part of the
    /// table: 64 calls visit all of it. Returns the number of removed connections.
    pub fn expire(&self, now: Instant, steps: usize) -> usize {
        self.table.expire(now, steps)
    }

    /// Returns a counter.
    #[must_use]
    pub fn counter(&self, counter: CtCounter) -> u64 {
        if counter != CtCounter::Committed {
            return self.table.counters.get(counter);
        }
        let shards = 0..self.table.shard_count();
        let inserted = shards.map(|at| self.table.with_shard(at, |shard| shard.inserted()));
        inserted.sum()
    }

    /// Number of connections, those included that have expired and were not removed yet.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.table.limits.held()
    }

    /// True if there is no connection.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of connections of a zone.
    #[must_use]
    pub fn zone_len(&self, zone: CtZone) -> u32 {
        self.table.limits.zone_held(zone)
    }

    /// Largest number of connections.
    #[must_use]
    pub fn connections_max(&self) -> u32 {
        self.table.limits.held_max()
    }

    /// Sets the largest number of connections. Those that exist stay.
    pub fn set_connections_max(&self, limit: u32) {
        self.table.limits.set_held_max(limit);
    }

    /// Limit of a zone, if it has one of its own.
    #[must_use]
    pub fn zone_limit(&self, zone: CtZone) -> Option<u32> {
        self.table.limits.zone_limit(zone)
    }

    /// Sets or removes the limit of a zone.
    pub fn set_zone_limit(&self, zone: CtZone, limit: Option<u32>) {
        self.table.limits.set_zone_limit(zone, limit);
    }

    /// Limit of each zone without one of its own.
    #[must_use]
    pub fn default_zone_limit(&self) -> Option<u32> {
        self.table.limits.default_limit()
    }

    /// Sets or removes the limit of zones without one of their own.
    pub fn set_default_zone_limit(&self, limit: Option<u32>) {
        self.table.limits.set_default_limit(limit);
    }

    /// Number of connections of each shard (`dpctl/ct-bkts`).
    #[must_use]
    pub fn shard_lens(&self) -> Vec<usize> {
        (0..self.table.shard_count())
            .map(|at| self.table.with_shard(at, |shard| shard.len()))
            .collect()
    }
}
