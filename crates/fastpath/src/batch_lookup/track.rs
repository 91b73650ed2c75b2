//! The action `ct` with a table in the batch: plain packets that are new or belong to a connection
//! continue in that table, and all others are left to the executor.
//!
//! ```text
//!   key and hash   p0 p1 ... p31     prefetch buckets of the index
//!   entry          p0 p1 ... p31     prefetch entries
//!   state          p0 p1 ... p31     fields of the connection; next tables
//! ```

use base::{Instant, TableId};
use conntrack::{
    AddressFamily, ChecksumCheck, Conntrack, CtState, CtZone, SteadyLookup, SteadyNat, SteadyPacket,
};
use flow::{Action, ConntrackAction, ConntrackFlags, ConntrackZone, Extension};
use packet::wire::ethernet::{self, EtherType};
use packet::wire::vlan;
use packet::{Checksum, Depth, Frame, PlainEnds, set_plain_ends};
use pipeline::Rule;
use sys::cache::prefetch;

use super::{BatchLookup, RuleHits, TableResult};
use crate::action_program::{InlineProgram, is_readable};
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
        // Packets that have left the batch may be earlier ones of the same connections.
        let continues = table > result.group.table
            && self.state.ingress.depth != Depth::Link
            && self.walks.is_empty();
        let is_steady = conntrack_action(rule).is_some_and(is_steady_action);
        let tracked = match continues && is_steady {
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
        let mut all_are_plain = true;
        for index in packets {
            let key = &keys[index % LOOKUP_BATCH];
            let lookup = &mut lookups[index % LOOKUP_BATCH];
            *lookup = begin_lookup(tracker, key, &frames[first + index], action);
            match lookup {
                Some(lookup) => tracker.steady_bucket(lookup).into_iter().for_each(prefetch),
                None => all_are_plain = false,
            }
        }
        let mut any_is_absent = false;
        for lookup in lookups.iter_mut().flatten() {
            tracker.find_steady(lookup).into_iter().for_each(prefetch);
            any_is_absent |= lookup.is_absent();
        }
        if any_is_absent {
            prefetch_absent(tracker, &mut lookups);
        }
        let nat = steady_nat(action);
        // The connections that earlier packets of the batch commit do not exist yet: packets with
        // their keys are deferred. Other keys of connections are those of translations.
        let may_be_new = nat == SteadyNat::Ignore && !action.flags.contains(ConntrackFlags::COMMIT);
        let mut steady = BatchMask::EMPTY;
        let mut translations = [PlainEnds::default(); LOOKUP_BATCH];
        let mut translated = BatchMask::EMPTY;
        let mut deferred = DeferredConnections::default();
        let mut packet = SteadyPacket::NONE;
        for index in packets {
            let (Some(lookup), packet) = (&mut lookups[index % LOOKUP_BATCH], &mut packet) else {
                continue;
            };
            let settings = (checksum_check(&frames[first + index]), nat);
            let is_tracked = match (deferred.contains(lookup), all_are_plain) {
                (true, _) => false,
                (false, true) => track_plain(tracker, lookup, (settings, may_be_new, now), packet),
                (false, false) => tracker.track_steady(lookup, settings, now, packet),
            };
            // A later packet may belong to the connection that this one begins.
            let begins = lookup.is_absent() && packet.state.intersects(CtState::NEW);
            if !is_tracked || begins {
                deferred.insert(lookup);
            }
            if !is_tracked {
                continue;
            }
            keys[index % LOOKUP_BATCH].set_steady_connection(packet);
            if let Some(ends) = packet.translation {
                translations[index % LOOKUP_BATCH] = ends;
                translated.insert(BatchMask::single(index));
            }
            steady.insert(BatchMask::single(index));
        }
        for index in translated {
            let ends = translations[index % LOOKUP_BATCH];
            write_ends(&mut self.state.frames[first + index], ends);
            self.state.memory.keys[index % LOOKUP_BATCH].set_ends_v4(ends);
        }
        steady
    }
}

/// Tracks a packet, and writes its fields; one without a connection only if it `may_be_new`. Returns
/// false, without a change, if the executor must do it.
#[inline]
fn track_plain(
    tracker: &Conntrack,
    lookup: &mut SteadyLookup<'_>,
    ((check, nat), may_be_new, now): ((ChecksumCheck, SteadyNat), bool, Instant),
    packet: &mut SteadyPacket,
) -> bool {
    let is_tracked = match lookup.is_absent() {
        true => may_be_new && tracker.track_absent(lookup, check, packet),
        false => tracker.track_steady(lookup, (check, nat), now, packet),
    };
    if is_tracked {
        return true;
    }
    if !lookup.is_absent() {
        tracker.begin_absent(lookup);
    }
    tracker.track_changing(lookup, check, now, packet)
}

/// Prefetches the memory of the shards that is read for packets without an entry: those that begin
/// a connection, above all.
#[inline(never)]
fn prefetch_absent(tracker: &Conntrack, lookups: &mut [Option<SteadyLookup<'_>>]) {
    let is_absent = |lookup: &&mut SteadyLookup<'_>| lookup.is_absent();
    for lookup in lookups.iter_mut().flatten().filter(is_absent) {
        tracker.begin_absent(lookup);
    }
    let absent = || lookups.iter().flatten().filter(|lookup| lookup.is_absent());
    for lookup in absent() {
        tracker.prefetch_head(lookup);
    }
    for lookup in absent() {
        tracker.prefetch_link(lookup);
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
pub(crate) fn begin_lookup<'f>(
    tracker: &Conntrack,
    key: &PackedKey,
    frame: &'f Frame,
    action: &ConntrackAction,
) -> Option<SteadyLookup<'f>> {
    let zone = match action.zone {
        ConntrackZone::Number(zone) => zone,
        ConntrackZone::Subfield(part) if !is_readable(part) => return None,
        ConntrackZone::Subfield(part) => {
            let [.., high, low] = key.written_bits(part).to_be_bytes();
            u16::from_be_bytes([high, low])
        }
    };
    begin_lookup_in(tracker, key, frame, (CtZone(zone), steady_nat(action)))
}

/// Begins the lookup of a packet's connection in a zone.
#[inline]
pub(crate) fn begin_lookup_in<'f>(
    tracker: &Conntrack,
    key: &PackedKey,
    frame: &'f Frame,
    (zone, nat): (CtZone, SteadyNat),
) -> Option<SteadyLookup<'f>> {
    let is_complete = frame.offload.is_empty() || nat == SteadyNat::Ignore;
    let at = network_at(frame).filter(|_| is_complete)?;
    let bytes = frame.bytes().get(at..)?;
    let family = match bytes.first()? >> 4 {
        4 => AddressFamily::V4,
        6 => AddressFamily::V6,
        _ => return None,
    };
    tracker.begin_steady((bytes, family), zone, key.translated_in(zone))
}

/// Returns the offset of the IP header in a frame with at most one VLAN tag.
#[inline]
fn network_at(frame: &Frame) -> Option<usize> {
    let bytes = frame.bytes();
    let type_at = |at: usize| {
        let word = bytes.get(at..)?.first_chunk();
        word.map(|word| EtherType(u16::from_be_bytes(*word)))
    };
    let outer = type_at(ethernet::TYPE)?;
    let (eth_type, at) = match outer.is_vlan() {
        true => (
            type_at(ethernet::TYPE + vlan::LEN)?,
            ethernet::TYPE + vlan::LEN,
        ),
        false => (outer, ethernet::TYPE),
    };
    let version = bytes.get(at + 2)? >> 4;
    let is_ip =
        eth_type == EtherType::IPV4 && version == 4 || eth_type == EtherType::IPV6 && version == 6;
    is_ip.then_some(at + 2)
}

/// Writes the translation of a plain packet over IPv4.
#[inline]
pub(crate) fn write_ends(frame: &mut Frame, ends: PlainEnds) {
    let at = network_at(frame).unwrap_or(usize::MAX);
    if let Some(bytes) = frame.bytes_mut().get_mut(at..) {
        set_plain_ends(bytes, ends);
    }
}

/// Checksums of frames that a device completes are not verified.
#[inline]
pub(crate) fn checksum_check(frame: &Frame) -> ChecksumCheck {
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

/// Returns the use of a connection's translation.
#[inline]
pub(crate) fn steady_nat(action: &ConntrackAction) -> SteadyNat {
    match action.actions.is_empty() {
        true => SteadyNat::Ignore,
        false => SteadyNat::Apply,
    }
}

fn is_nat(action: &Action) -> bool {
    matches!(action, Action::Extended(Extension::Nat(_)))
}

/// True if `ct` neither writes mark or label nor replaces connections.
pub(crate) fn is_steady_action(action: &ConntrackAction) -> bool {
    !action.flags.contains(ConntrackFlags::FORCE) && action.actions.iter().all(is_nat)
}

/// True if `ct` commits connections, and has no other argument but a zone.
pub(crate) fn is_plain_commit(action: &ConntrackAction) -> bool {
    let is_commit = action.flags.contains(ConntrackFlags::COMMIT);
    is_commit && action.actions.is_empty() && action.alg == 0
}

/// True if `ct` commits connections with writes of mark or label, and has no other argument but a
/// zone.
pub(crate) fn is_writing_commit(action: &ConntrackAction) -> bool {
    let is_commit = action.flags.contains(ConntrackFlags::COMMIT)
        && !action.flags.contains(ConntrackFlags::FORCE);
    let writes = !action.actions.is_empty() && !action.actions.iter().any(is_nat);
    is_commit && writes && action.alg == 0
}
