//! The action `ct` with a table in the batch: packets of connections in a steady state continue in
//! that table, and all others are left to the executor.
//!
//! ```text
//!   key and hash   p0 p1 ... p31     prefetch buckets of the index
//!   entry          p0 p1 ... p31     prefetch entries
//!   state          p0 p1 ... p31     fields of the connection; next tables
//! ```

use base::TableId;
use conntrack::{
    AddressFamily, ChecksumCheck, Conntrack, CtOutcome, CtZone, NatTranslation, PlainPacket,
    SteadyLookup, SteadyNat,
};
use flow::{Action, ConntrackAction, ConntrackFlags, ConntrackZone, Extension};
use packet::wire::ethernet::{self, EtherType};
use packet::wire::vlan;
use packet::{Checksum, Depth, Frame, Packet};
use pipeline::{Rule, write_outcome};
use sys::cache::prefetch;

use super::{BatchLookup, RuleHits, TableResult};
use crate::action_program::InlineProgram;
use crate::batch_mask::{BatchMask, LOOKUP_BATCH};
use crate::match_result::MatchResult;
use crate::packed_key::PackedKey;

impl<'a> BatchLookup<'a> {
    /// Collects the packets of a rule that tracks them. Those that cannot continue in the batch are
    /// left to the executor.
    pub(super) fn collect_tracked(
        &mut self,
        hits: RuleHits<'a>,
        table: TableId,
        result: &mut TableResult,
    ) {
        let RuleHits { rule, packets } = hits;
        let continues = table > result.group.table && self.state.ingress.depth != Depth::Link;
        let tracked = match continues && is_steady_request(rule) {
            true => packets.difference(self.with_action_set),
            false => BatchMask::EMPTY,
        };
        for index in tracked {
            self.progress[index % LOOKUP_BATCH].result = MatchResult::Rule(Some(rule));
        }
        result.tracked.insert(tracked);
        let others = packets.difference(tracked);
        self.stop(others, MatchResult::Rule(Some(rule)), &result.group);
    }

    /// Tracks the collected packets of a table, rule by rule.
    #[inline(never)]
    pub(super) fn track_packets(&mut self, result: &mut TableResult) {
        // Cached flows do not depend on connections.
        self.recorder = None;
        let mut remaining = std::mem::take(&mut result.tracked);
        while let Some(first) = remaining.into_iter().next() {
            let MatchResult::Rule(Some(rule)) = self.progress[first].result else {
                return;
            };
            let has_rule = |index: usize| match self.progress[index].result {
                MatchResult::Rule(Some(other)) => std::ptr::eq(other, rule),
                _ => false,
            };
            let packets = remaining.fold(BatchMask::EMPTY, |mut packets, index| {
                packets.insert(BatchMask::single_if(index, has_rule(index)));
                packets
            });
            remaining = remaining.difference(packets);
            self.track_hits(RuleHits { rule, packets }, result);
        }
    }

    /// Tracks the packets of one rule.
    fn track_hits(&mut self, hits: RuleHits<'a>, result: &mut TableResult) {
        let RuleHits { rule, packets } = hits;
        let inline_program = rule.instructions.program_slot().inline_program();
        let mut steady = BatchMask::EMPTY;
        if let (InlineProgram::Track(table), Some(action), Some(tracker)) = (
            InlineProgram::decode(inline_program),
            conntrack_action(rule),
            self.state.context.pipeline.tracker(),
        ) {
            if rule.instructions.apply.len() > 1 {
                self.write_fields(hits);
            }
            steady = self.track_steady(packets, action, tracker);
            self.state.memory.written.insert(steady);
            for index in steady {
                let progress = &mut self.progress[index % LOOKUP_BATCH];
                progress.outer_nesting += u16::from(std::mem::take(&mut progress.resubmits)) + 1;
            }
            result.next.add(steady, table, &mut self.progress);
        }
        if !steady.is_empty() {
            let totals = self.weigh_in(steady, &result.group);
            let (writer, now) = (self.state.memory.writer, self.state.context.now);
            rule.counters.add(writer, totals, now);
        }
        let others = packets.difference(steady);
        self.stop(others, MatchResult::Rule(Some(rule)), &result.group);
    }

    /// Gives packets the fields of their connections. Returns those whose connection is in a steady
    /// state.
    fn track_steady(
        &mut self,
        packets: BatchMask,
        action: &ConntrackAction,
        tracker: &Conntrack,
    ) -> BatchMask {
        let (first, now) = (self.first, self.state.context.now);
        let keys = &mut *self.state.memory.keys;
        let frames = &*self.state.frames;
        let mut lookups = [None; LOOKUP_BATCH];
        for index in packets {
            let key = &keys[index % LOOKUP_BATCH];
            let lookup = begin_lookup(tracker, key, &frames[first + index], action);
            if let Some(lookup) = &lookup {
                tracker.steady_bucket(lookup).into_iter().for_each(prefetch);
            }
            lookups[index % LOOKUP_BATCH] = lookup;
        }
        for lookup in lookups.iter_mut().flatten() {
            tracker.find_steady(lookup).into_iter().for_each(prefetch);
        }
        let nat = match action.actions.is_empty() {
            true => SteadyNat::Ignore,
            false => SteadyNat::Apply,
        };
        let mut steady = BatchMask::EMPTY;
        let mut translations = [None; LOOKUP_BATCH];
        let mut translated = BatchMask::EMPTY;
        let mut deferred = DeferredConnections::default();
        for index in packets {
            let check = checksum_check(&frames[first + index]);
            let Some(lookup) = &lookups[index % LOOKUP_BATCH] else {
                continue;
            };
            let tracked = match deferred.contains(lookup) {
                false => tracker.track_steady(lookup, (check, nat), now),
                true => None,
            };
            if tracked.is_none() {
                deferred.insert(lookup);
            }
            if let Some(packet) = &tracked {
                keys[index % LOOKUP_BATCH].set_steady_connection(packet);
                translations[index % LOOKUP_BATCH] = packet.translation;
                translated.insert(BatchMask::single_if(index, packet.translation.is_some()));
            }
            steady.insert(BatchMask::single_if(index, tracked.is_some()));
        }
        for index in translated {
            if !self.translate(index, translations[index % LOOKUP_BATCH]) {
                self.state.memory.keys[index % LOOKUP_BATCH].clear_connection();
                steady = steady.difference(BatchMask::single(index));
            }
        }
        steady
    }

    /// Translates a frame and its key. Returns false if the executor must do it.
    fn translate(&mut self, index: usize, translation: Option<NatTranslation>) -> bool {
        let frame = &mut self.state.frames[self.first + index];
        let Ok(mut packet) = Packet::parse(frame, Depth::Transport) else {
            return false;
        };
        let outcome = CtOutcome {
            translation,
            ..CtOutcome::default()
        };
        let is_written = write_outcome(&mut packet, &outcome).is_ok();
        if let Some(translation) = translation.filter(|_| is_written) {
            self.state.memory.keys[index % LOOKUP_BATCH].set_ends_v4(&translation.header);
        }
        is_written
    }
}

/// Connections with a packet that is left to the executor. Later packets of them are left to it too,
/// so that they are tracked in the order of their arrival.
#[derive(Default)]
struct DeferredConnections {
    connections: [u64; LOOKUP_BATCH],
    len: usize,
}

impl DeferredConnections {
    #[inline]
    fn contains(&self, lookup: &SteadyLookup<'_>) -> bool {
        self.len > 0 && self.connections[..self.len].contains(&lookup.connection())
    }

    fn insert(&mut self, lookup: &SteadyLookup<'_>) {
        if let Some(slot) = self.connections.get_mut(self.len) {
            *slot = lookup.connection();
            self.len += 1;
        }
    }
}

/// Begins the lookup of a packet's connection, unless its facts are not at fixed offsets.
#[inline]
fn begin_lookup<'f>(
    tracker: &Conntrack,
    key: &PackedKey,
    frame: &'f Frame,
    action: &ConntrackAction,
) -> Option<SteadyLookup<'f>> {
    let zone = match action.zone {
        ConntrackZone::Number(zone) => zone,
        ConntrackZone::Subfield(part) => {
            let [.., high, low] = key.written_bits(part).to_be_bytes();
            u16::from_be_bytes([high, low])
        }
    };
    let zone = CtZone(zone);
    if key.is_translated_in(zone) {
        return None;
    }
    let is_complete = frame.offload.is_empty() || action.actions.is_empty();
    let (bytes, family) = ip_packet(frame, key.eth_type()).filter(|_| is_complete)?;
    let packet = PlainPacket::read(bytes, family)?;
    Some(tracker.begin_steady(packet, zone))
}

/// Returns the IP packet in a frame with at most one VLAN tag, and its version.
#[inline]
fn ip_packet(frame: &Frame, eth_type: EtherType) -> Option<(&[u8], AddressFamily)> {
    let family = match eth_type {
        EtherType::IPV4 => AddressFamily::V4,
        EtherType::IPV6 => AddressFamily::V6,
        _ => return None,
    };
    let bytes = frame.bytes();
    let type_at = |at: usize| {
        let word = bytes.get(at..)?.first_chunk();
        word.map(|word| EtherType(u16::from_be_bytes(*word)))
    };
    let outer = type_at(ethernet::TYPE)?;
    let is_tagged = outer.is_vlan() && type_at(ethernet::TYPE + vlan::LEN)? == eth_type;
    let at = match is_tagged {
        true => ethernet::TYPE + vlan::LEN + 2,
        false if outer == eth_type => ethernet::TYPE + 2,
        false => return None,
    };
    Some((bytes.get(at..)?, family))
}

/// Checksums of frames that a device completes are not verified.
#[inline]
fn checksum_check(frame: &Frame) -> ChecksumCheck {
    match frame.offload.checksum {
        Checksum::Complete if frame.offload.segmentation.is_none() => ChecksumCheck::Verify,
        _ => ChecksumCheck::Skip,
    }
}

/// Returns the `ct` that ends a rule.
fn conntrack_action(rule: &Rule) -> Option<&ConntrackAction> {
    match rule.instructions.apply.last() {
        Some(Action::Extended(Extension::Conntrack(action))) => Some(action),
        _ => None,
    }
}

/// True if the `ct` of a rule neither writes mark or label nor replaces connections.
fn is_steady_request(rule: &Rule) -> bool {
    let is_nat = |action: &Action| matches!(action, Action::Extended(Extension::Nat(_)));
    conntrack_action(rule).is_some_and(|action| {
        !action.flags.contains(ConntrackFlags::FORCE) && action.actions.iter().all(is_nat)
    })
}
