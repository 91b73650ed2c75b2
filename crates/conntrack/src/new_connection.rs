//! New connections of plain packets: the frequent case of [`Conntrack::track`], in steps that batches
//! interleave.
//!
//! ```text
//!   begin_absent    position of the key; prefetches the shard
//!   prefetch_head   prefetches the head of the chain, and the memory of the next insertion
//!   prefetch_link   prefetches the first link
//!   track_absent    no link has the hash: the packet is new
//!   commit_absent   the same; the connection is inserted
//! ```
//!
//! Each step locks the shard for a few instructions. A packet is left to [`Conntrack::track`] if a
//! connection or a reverse key has the hash of its key, if a helper expects any connection, if its
//! checksum is wrong, if it cannot begin a connection, and if a limit is reached
//! and no connection is given up for it.

use base::Instant;

use crate::entry::ConnectionEntry;
use crate::extract::ChecksumCheck;
use crate::key::KeyProtocol;
use crate::metadata::CtState;
use crate::plain_packet::PlainBody;
use crate::protocol::tcp::TcpConnection;
use crate::protocol::{OtherState, ProtocolState};
use crate::request::ConnectionWrites;
use crate::steady_lookup::{SteadyLookup, SteadyPacket};
use crate::timeout::CtTimeout;
use crate::tracker::Conntrack;

impl Conntrack {
    /// Begins a lookup in the shards for a packet without an entry, and prefetches the shard.
    #[inline]
    pub fn begin_absent(&self, lookup: &mut SteadyLookup<'_>) {
        lookup.position = self.table.position_of(&lookup.key.symmetric_words());
        self.table.prefetch_shard(lookup.position.0);
    }

    /// Prefetches the memory that [`Conntrack::prefetch_link`] reads, and that an insertion writes.
    #[inline]
    pub fn prefetch_head(&self, lookup: &SteadyLookup<'_>) {
        let (at, hash) = lookup.position;
        let is_full = self.table.limits.is_full();
        self.table.with_shard(at, |shard| {
            shard.prefetch_head(hash);
            if is_full {
                shard.prefetch_victim();
            }
        });
    }

    /// Prefetches the memory that [`Conntrack::track_absent`] reads.
    #[inline]
    pub fn prefetch_link(&self, lookup: &SteadyLookup<'_>) {
        let (at, hash) = lookup.position;
        let is_full = self.table.limits.is_full();
        self.table.with_shard(at, |shard| {
            shard.prefetch_link(hash);
            if is_full {
                shard.prefetch_links_of_victim();
            }
        });
    }

    /// Tracks a packet without a connection by a `ct` without `commit`, after
    /// [`Conntrack::begin_absent`], and writes its fields. Returns false if [`Conntrack::track`] must
    /// do it; nothing has changed then.
    #[inline]
    pub fn track_absent(
        &self,
        lookup: &SteadyLookup<'_>,
        check: ChecksumCheck,
        fields: &mut SteadyPacket,
    ) -> bool {
        let SteadyLookup { packet, key, .. } = lookup;
        let (at, hash) = lookup.position;
        let is_plain = lookup.is_absent() && lookup.translated == CtState::NONE;
        if !is_plain || !self.table.expectations.is_empty() || first_state(packet).is_none() {
            return false;
        }
        let is_absent = self
            .table
            .with_shard(at, |shard| shard.is_hash_absent(hash));
        if !is_absent || !packet.has_valid_checksums(check) {
            return false;
        }
        *fields = SteadyPacket {
            state: CtState::NEW.with(CtState::TRACKED),
            zone: key.zone(),
            mark: 0,
            label: 0,
            addresses: key.addresses,
            ports: key.ports(),
            protocol: packet.protocol,
            family: packet.family,
            translation: None,
        };
        true
    }

    /// Commits the connection of a packet without one, by a `ct` with `commit` and no other argument
    /// but a zone and `writes`. Returns false if [`Conntrack::track`] must do it; nothing has changed
    /// then.
    pub fn commit_absent(
        &self,
        lookup: &SteadyLookup<'_>,
        check: ChecksumCheck,
        writes: &ConnectionWrites,
        now: Instant,
    ) -> bool {
        self.try_commit(lookup, check, writes, now).is_some()
    }

    fn try_commit(
        &self,
        lookup: &SteadyLookup<'_>,
        check: ChecksumCheck,
        writes: &ConnectionWrites,
        now: Instant,
    ) -> Option<()> {
        let SteadyLookup { packet, key, .. } = lookup;
        let is_plain = lookup.is_absent() && lookup.translated == CtState::NONE;
        if !is_plain || !self.table.expectations.is_empty() || !packet.has_valid_checksums(check) {
            return None;
        }
        let (state, timeout) = first_state(packet)?;
        let (at, hash) = self.table.position_of(&key.symmetric_words());
        let zone = key.zone();
        let policy = self.policies.of_zone(zone);
        let expires = now + self.policies.duration(policy, timeout);
        let mut entry = ConnectionEntry::new(&key.to_key(), state, expires);
        entry.set_policy(policy);
        if let Some(write) = writes.mark {
            entry.mark = write.apply(0);
        }
        if let Some(write) = writes.label {
            entry.set_label(write.apply(0));
        }
        // Nothing is given up for a packet of a connection that exists.
        if !self
            .table
            .with_shard(at, |shard| shard.is_hash_absent(hash))
        {
            return None;
        }
        self.table.reserve_place(zone, at).ok()?;
        let is_inserted = self.table.with_shard(at, |shard| {
            shard.is_hash_absent(hash) && shard.insert(hash, entry).is_ok()
        });
        if !is_inserted {
            self.table.limits.release(zone);
            return None;
        }
        Some(())
    }
}

/// Returns the state of a connection after its first packet, and its timeout, if the packet can be
/// the first one.
#[inline]
fn first_state(packet: &PlainBody<'_>) -> Option<(ProtocolState, CtTimeout)> {
    match packet.protocol {
        KeyProtocol::UDP => Some((ProtocolState::Other(OtherState::First), CtTimeout::UdpFirst)),
        _ => {
            let connection = TcpConnection::begin(&packet.first_segment()?)?;
            Some((ProtocolState::Tcp(connection), CtTimeout::TcpSynSent))
        }
    }
}
