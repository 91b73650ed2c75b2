//! The action `ct`: a packet's facts, the request and the time in; state, translation and verdict
//! out (`ovs-actions(7)`, "The ct action").
//!
//! ```text
//!  key --> expectation of NAT: reversed if the packet is already translated in this zone
//!   |
//!   +-- found:     state machine, expiry, mark, label, translation     under the shard's lock
//!   |                `-- over, or `force` from the other side: remove, continue as not found
//!   `-- not found: new (or related by a helper); with `commit`: reserve reply key, insert
//! ```

use base::Instant;
use base::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::alg::{AlgExpectation, AnnouncedConnection, HelperResult, read_packet};
use crate::counters::CtCounter;
use crate::entry::{ConnectionEntry, ReverseKey};
use crate::facts::{PacketFacts, TransportFacts};
use crate::key::{ConnectionKey, CtZone, TrafficDirection};
use crate::metadata::{CtMetadata, CtState};
use crate::nat::{CtNat, find_reply};
use crate::protocol::{PacketEffect, ProtocolState, SequenceCheck};
use crate::request::{CtCommit, CtOutcome, CtPacket, CtRequest, NatTranslation};
use crate::sequence_shift::{adjust_of, without_skew};
use crate::shard::Shard;
use crate::siphash::{HashSeed, siphash};
use crate::table::{ConnectionTable, KeyPosition};
use crate::timeout::{CtPolicyId, CtTimeout, CtTimeoutPolicy, PolicyTable};

/// A tracker, shared by all workers.
#[derive(Debug)]
pub struct Conntrack {
    pub(crate) table: ConnectionTable,
    pub(crate) policies: PolicyTable,
    checks_sequence: AtomicBool,
    /// Random numbers that were drawn.
    draws: AtomicU64,
}

/// Result of a packet for a connection that exists.
enum EntryVisit {
    /// The packet belongs to it.
    Tracked,
    /// The connection is over, or `force` replaces it.
    Replace,
}

/// A packet during `ct`.
struct TrackedPacket<'a> {
    packet: &'a CtPacket<'a>,
    facts: PacketFacts,
    request: &'a CtRequest,
    now: Instant,
    /// Key with which the connection is found.
    key: ConnectionKey,
    position: KeyPosition,
    /// True if the packet was translated in this zone before, so that `key` is that of the other
    /// direction.
    is_translated: bool,
    outcome: CtOutcome,
    helper: HelperResult,
}

impl Conntrack {
    /// Returns an empty tracker. `seed` must be secret and random.
    #[must_use]
    pub fn new(seed: HashSeed, connections_max: u32) -> Self {
        Self {
            table: ConnectionTable::new(seed, connections_max),
            policies: PolicyTable::new(),
            checks_sequence: AtomicBool::new(true),
            draws: AtomicU64::new(0),
        }
    }

    /// Tracks a packet.
    pub fn track(&self, packet: &CtPacket<'_>, request: &CtRequest, now: Instant) -> CtOutcome {
        let mut metadata = packet.metadata;
        if metadata.zone != request.zone {
            metadata.state = CtState::NONE;
        }
        let Some(facts) = packet.facts else {
            return self.invalid(metadata, request.zone);
        };
        let is_translated = metadata.state.intersects(CtState::NAT);
        let key = facts.tuple.in_zone(request.zone);
        let mut tracked = TrackedPacket {
            packet,
            facts,
            request,
            now,
            key: if is_translated { key.reversed() } else { key },
            position: self.table.position(&key),
            is_translated,
            outcome: CtOutcome {
                metadata: CtMetadata {
                    state: nat_flags(metadata.state).with(CtState::TRACKED),
                    zone: request.zone,
                    ..CtMetadata::default()
                },
                ..CtOutcome::default()
            },
            helper: HelperResult::Nothing,
        };
        match self.visit_entry(&mut tracked) {
            Some(EntryVisit::Tracked) => {}
            Some(EntryVisit::Replace) => {
                self.table.remove(&tracked.key, now);
                self.create(&mut tracked, key);
            }
            None => self.create(&mut tracked, key),
        }
        match tracked.helper {
            HelperResult::Nothing => tracked.outcome,
            helper => self.complete_helper(helper, tracked.outcome),
        }
    }

    /// Sets a timeout policy. Connections use it from their next packet.
    pub fn set_policy(&self, id: CtPolicyId, policy: &CtTimeoutPolicy) {
        self.policies.set(id, policy);
    }

    /// Sets the timeout policy of a zone, which its new connections use unless the request names
    /// another one.
    pub fn set_zone_policy(&self, zone: CtZone, id: CtPolicyId) {
        self.policies.set_zone(zone, id);
    }

    /// Sets whether sequence numbers are checked.
    pub fn set_sequence_check(&self, check: SequenceCheck) {
        let is_strict = check == SequenceCheck::Strict;
        self.checks_sequence.store(is_strict, Ordering::Relaxed);
    }

    /// Returns whether sequence numbers are checked.
    #[must_use]
    pub fn sequence_check(&self) -> SequenceCheck {
        if self.checks_sequence.load(Ordering::Relaxed) {
            SequenceCheck::Strict
        } else {
            SequenceCheck::Off
        }
    }

    /// Applies the packet to its connection, if there is one.
    fn visit_entry(&self, tracked: &mut TrackedPacket<'_>) -> Option<EntryVisit> {
        let (key, now) = (tracked.key, tracked.now);
        let steady = &self.table.steady;
        let position = tracked.position;
        self.table
            .with_entry(&key, position, now, |shard, index, direction| {
                let direction = if tracked.is_translated {
                    direction.reversed()
                } else {
                    direction
                };
                let writer = shard.check_out(index, steady);
                let visit = self.apply(shard, index, direction, tracked);
                shard.check_in(index, steady, writer);
                visit
            })
    }

    fn apply(
        &self,
        shard: &mut Shard,
        index: u32,
        direction: TrafficDirection,
        tracked: &mut TrackedPacket<'_>,
    ) -> EntryVisit {
        let is_reply = direction == TrafficDirection::Reply;
        if is_reply && tracked.request.commit == CtCommit::Force {
            return EntryVisit::Replace;
        }
        let Some(entry) = shard.entry_mut(index) else {
            return EntryVisit::Replace;
        };
        let state = &mut tracked.outcome.metadata.state;
        let mut timeout = None;
        if tracked.facts.transport == TransportFacts::IcmpError {
            *state = state.with(CtState::RELATED);
            if is_reply {
                *state = state.with(CtState::REPLY);
            }
        } else {
            if entry.parent().is_some() {
                *state = state.with(CtState::RELATED);
            }
            let facts = without_skew(&tracked.facts, entry.skew(), direction);
            let effect = entry.state.apply(&facts, direction, self.sequence_check());
            let Some((flags, new)) = state_after(effect, direction) else {
                if effect == PacketEffect::Restart {
                    return EntryVisit::Replace;
                }
                *state = nat_flags(*state)
                    .with(CtState::INVALID)
                    .with(CtState::TRACKED);
                self.table.counters.add(CtCounter::InvalidPacket, 1);
                return EntryVisit::Tracked;
            };
            *state = state.with(flags);
            timeout = new;
        }
        tracked.join(entry, direction);
        let policy = entry.policy();
        if let Some(timeout) = timeout {
            let expires = tracked.now + self.policies.duration(policy, timeout);
            shard.set_expiry(index, expires);
        }
        EntryVisit::Tracked
    }

    /// Handles a packet without a connection. `key` is that of its headers.
    fn create(&self, tracked: &mut TrackedPacket<'_>, key: ConnectionKey) {
        let expectation = self.table.expectations.find(&key);
        let Some((state, timeout)) = ProtocolState::begin(&tracked.facts) else {
            let metadata = tracked.outcome.metadata;
            tracked.outcome = self.invalid(metadata, tracked.request.zone);
            return;
        };
        let metadata = &mut tracked.outcome.metadata;
        metadata.state = CtState::NEW.with(CtState::TRACKED);
        metadata.original = Some(key);
        if let Some(expectation) = &expectation {
            metadata.state = metadata.state.with(CtState::RELATED);
            metadata.original = Some(expectation.parent);
            metadata.mark = expectation.mark;
            let [high, low] = expectation.label;
            metadata.label = u128::from(high) << 64 | u128::from(low);
        }
        if tracked.request.commit == CtCommit::No {
            return;
        }
        let policy = match tracked.request.policy {
            CtPolicyId::DEFAULT => self.policies.of_zone(tracked.request.zone),
            policy => policy,
        };
        let expires = tracked.now + self.policies.duration(policy, timeout);
        let mut entry = ConnectionEntry::new(&key, state, expires);
        entry.set_policy(policy);
        entry.mark = tracked.outcome.metadata.mark;
        if let Some(helper) = tracked.request.helper.filter(|helper| helper.fits(&key)) {
            entry.set_helper(helper);
        }
        if let Some(expectation) = &expectation {
            entry.set_label(tracked.outcome.metadata.label);
            entry.set_parent(expectation.parent);
        }
        self.commit(tracked, entry, expectation.as_ref());
    }

    /// Inserts a connection, with its translation.
    fn commit(
        &self,
        tracked: &mut TrackedPacket<'_>,
        mut entry: ConnectionEntry,
        expectation: Option<&AlgExpectation>,
    ) {
        if !self.choose_reply(tracked, &mut entry, expectation) {
            self.refuse(tracked, CtCounter::NatExhausted);
            return;
        }
        let before = tracked.outcome.metadata;
        tracked.join(&mut entry, TrafficDirection::Original);
        let serial = entry.serial();
        let reply = (serial != 0).then(|| entry.reply());
        let inserted = self.table.insert(entry, tracked.position, tracked.now);
        let Err(error) = inserted else {
            return;
        };
        if let Some(reply) = reply {
            self.table.release_reply(&reply, serial);
        }
        // A packet without a connection has had nothing else.
        tracked.outcome = CtOutcome {
            metadata: before,
            ..CtOutcome::default()
        };
        tracked.helper = HelperResult::Nothing;
        match error.counter() {
            Some(counter) => self.refuse(tracked, counter),
            None => self.join_present(tracked),
        }
    }

    /// Another worker has committed the same key: the packet belongs to that connection.
    fn join_present(&self, tracked: &mut TrackedPacket<'_>) {
        tracked.outcome.metadata.state = CtState::TRACKED;
        let visit = self.visit_entry(tracked);
        if !matches!(visit, Some(EntryVisit::Tracked)) {
            // It has ended in the meantime.
            tracked.outcome.metadata.state = CtState::NEW.with(CtState::TRACKED);
        }
    }

    /// Chooses and reserves the reply key. Returns false if none is free.
    fn choose_reply(
        &self,
        tracked: &TrackedPacket<'_>,
        entry: &mut ConnectionEntry,
        expectation: Option<&AlgExpectation>,
    ) -> bool {
        let serial = self.serial_for(tracked.request.nat);
        let original = entry.original();
        let reserve = |reply: &ConnectionKey| {
            let reverse = ReverseKey {
                reply: *reply,
                original,
                serial,
            };
            self.table.reserve_reply(&reverse, tracked.now)
        };
        let (side, reply) = match (tracked.request.nat, expectation) {
            (None, _) | (Some(CtNat::Existing), None) => return true,
            (Some(_), Some(expectation)) => {
                let reply = expectation.reply_key(&original);
                (expectation.side, reserve(&reply).then_some(reply))
            }
            (Some(CtNat::New(range)), None) => {
                let random = || self.random();
                let reply = find_reply(self.table.seed(), &original, &range, random, reserve);
                (range.side, reply)
            }
        };
        let Some(reply) = reply else {
            return false;
        };
        // Without a change no reverse key was stored.
        let serial = if reply == original.reversed() {
            0
        } else {
            serial
        };
        entry.set_nat(side, reply, serial);
        true
    }

    fn serial_for(&self, nat: Option<CtNat>) -> u64 {
        nat.map_or(0, |_| self.table.next_serial())
    }

    fn refuse(&self, tracked: &mut TrackedPacket<'_>, counter: CtCounter) {
        self.table.counters.add(counter, 1);
        tracked.outcome.refusal = Some(counter);
    }

    /// Stores the expectation of a control message, and returns the outcome.
    #[inline(never)]
    fn complete_helper(&self, helper: HelperResult, mut outcome: CtOutcome) -> CtOutcome {
        match helper {
            HelperResult::Nothing => {}
            HelperResult::Invalid => {
                self.table.counters.add(CtCounter::InvalidAlgMessage, 1);
                outcome.metadata.state = outcome.metadata.state.with(CtState::INVALID);
            }
            HelperResult::Expect(announced) => {
                let AnnouncedConnection {
                    key,
                    expectation,
                    rewrite,
                } = *announced;
                if !self.table.expectations.insert(key, expectation) {
                    self.table.counters.add(CtCounter::ExpectationsFull, 1);
                }
                outcome.rewrite = rewrite.map(Box::new);
            }
        }
        outcome
    }

    /// Returns the outcome of a packet that belongs to no connection.
    fn invalid(&self, metadata: CtMetadata, zone: CtZone) -> CtOutcome {
        self.table.counters.add(CtCounter::InvalidPacket, 1);
        let flags = nat_flags(metadata.state);
        CtOutcome {
            metadata: CtMetadata {
                state: flags.with(CtState::INVALID).with(CtState::TRACKED),
                zone,
                ..CtMetadata::default()
            },
            ..CtOutcome::default()
        }
    }

    /// Returns a number that cannot be predicted without the seed.
    fn random(&self) -> u32 {
        let number = self.draws.fetch_add(1, Ordering::Relaxed);
        let [a, b, c, d, ..] = siphash::<1, 3>(self.table.seed(), &[number]).to_be_bytes();
        u32::from_be_bytes([a, b, c, d])
    }
}

impl TrackedPacket<'_> {
    /// Gives the packet the fields and the translation of its connection, and writes mark and label.
    fn join(&mut self, entry: &mut ConnectionEntry, direction: TrafficDirection) {
        // A connection that a helper expected keeps the mark and label of its parent.
        if entry.parent().is_none() {
            if let Some(write) = self.request.mark {
                entry.mark = write.apply(entry.mark);
            }
            if let Some(write) = self.request.label {
                let label = write.apply(entry.label());
                entry.set_label(label);
            }
        }
        entry.fill(&mut self.outcome.metadata);
        self.translate(entry, direction);
        self.read_control_message(entry, direction);
    }

    fn translate(&mut self, entry: &ConnectionEntry, direction: TrafficDirection) {
        let (Some(_), Some(nat), false) = (self.request.nat, entry.nat(), self.is_translated)
        else {
            return;
        };
        let side = match direction {
            TrafficDirection::Original => nat,
            TrafficDirection::Reply => nat.reversed(),
        };
        let metadata = &mut self.outcome.metadata;
        metadata.state = metadata.state.with(side.flag());
        self.outcome.translation = Some(NatTranslation {
            side,
            header: entry.key(direction.reversed()).reversed(),
            is_error: self.facts.transport == TransportFacts::IcmpError,
        });
    }

    fn read_control_message(&mut self, entry: &mut ConnectionEntry, direction: TrafficDirection) {
        let is_error = self.facts.transport == TransportFacts::IcmpError;
        if entry.helper().is_none() || is_error || self.is_translated {
            return;
        }
        if self.request.nat.is_some() {
            self.outcome.adjust = adjust_of(&self.facts, entry.skew(), direction);
        }
        self.helper = read_packet(entry, direction, self.packet.payload);
        let HelperResult::Expect(announced) = &mut self.helper else {
            return;
        };
        let rewrite = &mut announced.rewrite;
        if self.request.nat.is_none() {
            *rewrite = None;
        }
        let Some(rewrite) = rewrite else {
            return;
        };
        let growth = i32::try_from(rewrite.text.len()).unwrap_or(0)
            - i32::try_from(rewrite.range.len()).unwrap_or(0);
        if growth != 0
            && let TransportFacts::Tcp(segment) = &self.facts.transport
        {
            entry.skew_mut().grow(direction, segment.sequence, growth);
        }
    }
}

/// Returns the flags of `ct_state` and the new timeout after an effect; none if the packet is
/// invalid, or begins the connection anew.
pub(crate) fn state_after(
    effect: PacketEffect,
    direction: TrafficDirection,
) -> Option<(CtState, Option<CtTimeout>)> {
    let established = match direction {
        TrafficDirection::Original => CtState::ESTABLISHED,
        TrafficDirection::Reply => CtState::ESTABLISHED.with(CtState::REPLY),
    };
    match effect {
        PacketEffect::Restart | PacketEffect::Invalid => None,
        PacketEffect::StillNew(timeout) => Some((CtState::NEW, Some(timeout))),
        PacketEffect::Tolerated => Some((established, None)),
        PacketEffect::Established(timeout) => Some((established, Some(timeout))),
    }
}

/// Returns the flags of a translation. They stay when a packet is tracked again in its zone, because
/// its headers do.
const fn nat_flags(state: CtState) -> CtState {
    CtState(state.0 & CtState::NAT.0)
}
