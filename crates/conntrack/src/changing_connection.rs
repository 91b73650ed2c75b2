//! Plain packets of connections in no steady state, which open or close: the frequent case of
//! [`Conntrack::track`] for a connection that exists.
//!
//! A packet is left to [`Conntrack::track`] if the connection has a translation or a helper, and if
//! the packet is invalid, or begins the connection anew.

use base::Instant;

use crate::extract::ChecksumCheck;
use crate::facts::{PacketFacts, PacketTuple, TransportFacts};
use crate::key::{KeyProtocol, TrafficDirection};
use crate::metadata::CtState;
use crate::shard::{Shard, ShardMatch};
use crate::steady::KeyWords;
use crate::steady_lookup::{SteadyLookup, SteadyPacket};
use crate::tracker::{Conntrack, state_after};

impl Conntrack {
    /// Tracks a packet of a connection that its shard has, by a `ct` that writes neither mark nor
    /// label and does not force a commit, after [`Conntrack::begin_absent`], and writes its fields.
    /// Returns false if [`Conntrack::track`] must do it; nothing has changed then.
    pub fn track_changing(
        &self,
        lookup: &SteadyLookup<'_>,
        check: ChecksumCheck,
        now: Instant,
        fields: &mut SteadyPacket,
    ) -> bool {
        if lookup.translated != CtState::NONE || !lookup.packet.has_valid_checksums(check) {
            return false;
        }
        let (at, hash) = lookup.position;
        let key = lookup.key.to_key();
        let steady = &self.table.steady;
        let changed = self.table.with_shard(at, |shard| {
            let ShardMatch::Entry(index, direction) = shard.find(hash, &key, now) else {
                return None;
            };
            shard.entry(index).filter(|entry| entry.is_simple())?;
            let writer = shard.check_out(index, steady);
            let packet = self.change(shard, (index, direction), lookup, now);
            shard.check_in(index, steady, writer);
            packet
        });
        if let Some(packet) = changed {
            *fields = packet;
        }
        changed.is_some()
    }

    /// Applies a packet to its connection.
    fn change(
        &self,
        shard: &mut Shard,
        (index, direction): (u32, TrafficDirection),
        lookup: &SteadyLookup<'_>,
        now: Instant,
    ) -> Option<SteadyPacket> {
        let facts = lookup.facts()?;
        let entry = shard.entry_mut(index)?;
        let original = KeyWords::of(&entry.original())?;
        let effect = entry.state.apply(&facts, direction, self.sequence_check());
        let (state, timeout) = state_after(effect, direction)?;
        let packet = SteadyPacket {
            state: state.with(CtState::TRACKED),
            zone: original.zone(),
            mark: entry.mark,
            label: entry.label(),
            addresses: original.addresses,
            ports: original.ports(),
            protocol: lookup.packet.protocol,
            family: lookup.packet.family,
            translation: None,
        };
        let policy = entry.policy();
        if let Some(timeout) = timeout {
            shard.set_expiry(index, now + self.policies.duration(policy, timeout));
        }
        Some(packet)
    }
}

impl SteadyLookup<'_> {
    /// Facts of the packet.
    fn facts(&self) -> Option<PacketFacts> {
        let key = self.key.to_key();
        let transport = match self.packet.protocol {
            KeyProtocol::TCP => TransportFacts::Tcp(self.packet.any_segment()?),
            _ => TransportFacts::Other,
        };
        let tuple = PacketTuple {
            src: key.src,
            dst: key.dst,
            protocol: key.protocol,
            family: key.family,
        };
        Some(PacketFacts { tuple, transport })
    }
}
