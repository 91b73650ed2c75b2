//! Replay of walks from the [walk cache](crate::walk_cache): effects without lookups. A packet whose
//! connection leads where no walk was recorded continues in the tables.

use base::{Instant, PortNo};
use conntrack::{ChecksumCheck, Conntrack, CtCommit, SteadyLookup, SteadyNat, SteadyPacket};
use flow::{ConnectionFields, PipelineFields};
use packet::{Frame, PlainHop, Pool, set_plain_hop};
use pipeline::{
    Cause, Destination, DropReason, Egress, FinalActionSet, TurnPlace, connection_fields,
    is_translated, track_packet, write_outcome,
};

use super::levels::Level;
use super::track::SteadyCall;
use super::{ExecPoint, Executor, FrameOutcome, Interruption};
use crate::batch_lookup::track::{begin_lookup_in, checksum_check, write_ends};
use crate::batch_mask::BatchMask;
use crate::egress_cache::EgressCheck;
use crate::header_rewrite::RewriteFailure;
use crate::walk_cache::{ResumeState, TrackEffect, TrackedWalk, WalkEffect, WalkSearch};

/// Fields that a packet has after `ct`. They are written in place: to copy them takes longer than
/// the lookup.
struct TrackedFields {
    plain: SteadyPacket,
    /// The fields instead of `plain`, if any.
    other: Option<ConnectionFields>,
}

impl<'b, 'a> Executor<'b, 'a> {
    /// Executes a frame by the walk with this number.
    pub(crate) fn run_walk(mut self, walk: u16, pool: &mut Pool) -> FrameOutcome<'b> {
        let mut frame = std::mem::take(&mut self.batch.frames[self.frame_index]);
        self.priority = frame.priority;
        let result = self.replay(&mut frame, walk, pool);
        let end = self.complete(frame, result, pool);
        self.outcome(end)
    }

    /// Replays a walk.
    fn replay(
        &mut self,
        frame: &mut Frame,
        walk: u16,
        pool: &mut Pool,
    ) -> Result<(), Interruption<'a>> {
        let (weight, now) = (self.weight, self.batch.context.now);
        let cache = &mut self.batch.memory.walk_cache;
        let effects = cache.take_effects(walk, weight, now);
        let result = self.replay_effects(frame, &effects, pool);
        self.batch.memory.walk_cache.return_effects(walk, effects);
        result
    }

    fn replay_effects(
        &mut self,
        frame: &mut Frame,
        mut effects: &[WalkEffect],
        pool: &mut Pool,
    ) -> Result<(), Interruption<'a>> {
        while let [effect, rest @ ..] = effects {
            effects = match effect {
                WalkEffect::Rewrite(_) => self.replay_rewrites(frame, effects, pool)?,
                WalkEffect::Hop(hop) => {
                    let reads_key = rest.iter().any(WalkEffect::reads_key);
                    self.replay_hop(frame, (hop, reads_key), pool)?;
                    rest
                }
                WalkEffect::Send(port) => {
                    self.send(*port);
                    rest
                }
                WalkEffect::SendNormal => {
                    self.send_to(Destination::Normal);
                    rest
                }
                WalkEffect::SendWith(port, fields) => {
                    self.send_with(*port, fields);
                    rest
                }
                WalkEffect::SetInPort(port) => {
                    self.set_in_port(*port);
                    rest
                }
                WalkEffect::Drop(reason) => {
                    self.push_drop(*reason);
                    rest
                }
                WalkEffect::Track(track) => {
                    self.replay_track(frame, track, pool)?;
                    rest
                }
                WalkEffect::BeginCopy => self.replay_copy(frame, rest, pool)?,
                WalkEffect::EndCopy => rest,
            };
        }
        Ok(())
    }

    /// Applies the adjacent rewrites. Returns the effects after them.
    fn replay_rewrites<'e>(
        &mut self,
        frame: &mut Frame,
        mut effects: &'e [WalkEffect],
        pool: &mut Pool,
    ) -> Result<&'e [WalkEffect], Interruption<'a>> {
        self.copy_before_rewrite(frame, pool)
            .map_err(Interruption::Drop)?;
        self.key_is_stale = true;
        let mut packet = self.parse(frame)?;
        while let [WalkEffect::Rewrite(rewrite), rest @ ..] = effects {
            rewrite.apply(&mut packet).map_err(|failure| {
                Interruption::Drop(match failure {
                    RewriteFailure::Dropped(reason) => reason,
                    // A walk has no packet whose time to live expires.
                    RewriteFailure::TtlExpired => DropReason::InvalidTtl,
                })
            })?;
            effects = rest;
        }
        Ok(effects)
    }

    /// Applies the rewrites of a router; `reads_key` is true if a later effect reads the key.
    fn replay_hop(
        &mut self,
        frame: &mut Frame,
        (hop, reads_key): (&PlainHop, bool),
        pool: &mut Pool,
    ) -> Result<(), Interruption<'a>> {
        self.copy_before_rewrite(frame, pool)
            .map_err(Interruption::Drop)?;
        let keeps_key = reads_key && !self.key_is_stale;
        self.key_is_stale = !keeps_key;
        if set_plain_hop(frame.bytes_mut(), hop) {
            if keeps_key {
                self.key().set_hop(hop);
            }
            return Ok(());
        }
        self.key_is_stale = true;
        let mut packet = self.parse(frame)?;
        if hop.dec_ttl && packet.dec_ip_ttl().is_err() {
            return Err(Interruption::Drop(DropReason::InvalidTtl));
        }
        hop.eth_dst
            .into_iter()
            .for_each(|dst| packet.set_eth_dst(dst));
        hop.eth_src
            .into_iter()
            .for_each(|src| packet.set_eth_src(src));
        Ok(())
    }

    /// Sends the frame with the fields of a tunnel, if the port is one.
    fn send_with(&mut self, port: PortNo, fields: &PipelineFields) {
        if !self.may_tunnel(port) {
            return self.send(port);
        }
        let check = EgressCheck::of(self.batch.context.pipeline, self.in_port, port);
        if let EgressCheck::Denied(reason) = check {
            return self.push_drop(reason);
        }
        self.use_verdict();
        self.is_output = true;
        let verdict = &mut self.batch.memory.verdict;
        let frame = verdict.frames.len();
        verdict.push_egress(Egress {
            priority: self.priority,
            registers: Some(Box::new(fields.clone())),
            ..Egress::new(frame, Destination::Port(port))
        });
    }

    /// Replays the effects on a copy. Returns the effects after its end.
    fn replay_copy<'e>(
        &mut self,
        frame: &Frame,
        effects: &'e [WalkEffect],
        pool: &mut Pool,
    ) -> Result<&'e [WalkEffect], Interruption<'a>> {
        let (of_copy, rest) = split_copy(effects);
        let mut copy = self.copy_frame(frame, pool)?;
        let (in_port, is_stale) = (self.in_port, self.key_is_stale);
        let result = self.replay_effects(&mut copy, of_copy, pool);
        self.end_replayed_copy(copy, pool);
        self.set_in_port(in_port);
        self.key_is_stale |= is_stale;
        self.contain(result, DropReason::drops_all)?;
        Ok(rest)
    }

    fn end_replayed_copy(&mut self, copy: Frame, pool: &mut Pool) {
        match std::mem::take(&mut self.is_output) {
            true => self.batch.memory.verdict.frames.push(copy),
            false => pool.put(copy),
        }
        // The key may be that of the copy.
        self.key_is_stale = true;
    }

    /// Tracks the packet, and replays the walk of its connection, if there is one.
    fn replay_track(
        &mut self,
        frame: &mut Frame,
        track: &TrackEffect,
        pool: &mut Pool,
    ) -> Result<(), Interruption<'a>> {
        let Some(tracker) = self.batch.context.pipeline.tracker() else {
            return Err(Interruption::Drop(DropReason::NoConntrack));
        };
        match &track.earlier {
            None => self.untrack(),
            Some(fields) => self.key().set_connection(fields),
        }
        let mut fields = TrackedFields {
            plain: SteadyPacket::NONE,
            other: None,
        };
        if !self.track_plainly(frame, (tracker, track), pool, &mut fields.plain)? {
            fields.other = Some(self.track_fully(frame, tracker, track, pool)?);
        }
        let Some(next) = &track.next else {
            return Ok(());
        };
        if next.is_last {
            self.enter_connection(frame, &fields);
            return self.continue_walk(frame, next, pool);
        }
        let mut copy = self.copy_frame(frame, pool)?;
        let in_port = self.in_port;
        self.enter_connection(&copy, &fields);
        let result = self.continue_walk(&mut copy, next, pool);
        self.end_replayed_copy(copy, pool);
        self.set_in_port(in_port);
        self.contain(result, DropReason::drops_all)
    }

    /// Tracks a plain packet of a connection, or one that begins a connection, and writes its fields
    /// if it continues. Returns false, without a change, for others.
    #[inline]
    fn track_plainly(
        &mut self,
        frame: &mut Frame,
        (tracker, track): (&Conntrack, &TrackEffect),
        pool: &mut Pool,
        fields: &mut SteadyPacket,
    ) -> Result<bool, Interruption<'a>> {
        let (nat, now) = match track.steady {
            SteadyCall::None => return Ok(false),
            SteadyCall::Nat => (SteadyNat::Apply, self.batch.context.now),
            _ => (SteadyNat::Ignore, self.batch.context.now),
        };
        let key = &self.batch.memory.keys[self.key_index];
        let zone = track.request.zone;
        let mut lookup = begin_lookup_in(tracker, key, frame, (zone, nat));
        // By reference: to move it takes as long as the lookup.
        let Some(lookup) = &mut lookup else {
            return Ok(false);
        };
        let check = match self.is_verified {
            true => ChecksumCheck::Skip,
            false => checksum_check(frame),
        };
        let is_found = tracker.find_steady(lookup).is_some();
        if track.steady == SteadyCall::WritingCommit {
            let writes = track.request.writes();
            let is_new = !is_found
                && track.next.is_none()
                && tracker.commit_absent(lookup, check, &writes, now);
            return Ok(is_new);
        }
        if !is_found || !tracker.track_steady(lookup, (check, nat), now, fields) {
            let settings = (check, now);
            return Ok(track_unsteady(tracker, track, (lookup, settings), fields));
        }
        self.is_verified = true;
        if let Some(ends) = fields.translation {
            self.copy_before_rewrite(frame, pool)
                .map_err(Interruption::Drop)?;
            write_ends(frame, ends);
            if !self.key_is_stale {
                self.key().set_ends_v4(ends);
            }
        }
        Ok(true)
    }

    /// Tracks any packet.
    #[inline(never)]
    fn track_fully(
        &mut self,
        frame: &mut Frame,
        tracker: &Conntrack,
        track: &TrackEffect,
        pool: &mut Pool,
    ) -> Result<ConnectionFields, Interruption<'a>> {
        let (earlier, now) = (track.earlier.as_ref(), self.batch.context.now);
        let packet = self.parse(frame)?;
        let outcome = track_packet(tracker, &packet, earlier, &track.request, now);
        let fields = connection_fields(&outcome.metadata, &packet);
        if is_translated(&outcome) {
            self.copy_before_rewrite(frame, pool)
                .map_err(Interruption::Drop)?;
            self.key_is_stale = true;
            let mut packet = self.parse(frame)?;
            write_outcome(&mut packet, &outcome).map_err(Interruption::Drop)?;
        }
        Ok(fields)
    }

    /// Gives the packet the fields of its connection.
    fn enter_connection(&mut self, frame: &Frame, fields: &TrackedFields) {
        self.refresh_key(frame);
        match &fields.other {
            None => self.key().set_steady_connection(&fields.plain),
            Some(other) => self.key().set_connection(other),
        }
    }

    /// Executes the tables after `ct`, by their walk if there is one.
    fn continue_walk(
        &mut self,
        frame: &mut Frame,
        next: &TrackedWalk,
        pool: &mut Pool,
    ) -> Result<(), Interruption<'a>> {
        let memory = &mut *self.batch.memory;
        let search = match self.key_is_stale {
            true => WalkSearch::NoKey,
            false => memory
                .walk_cache
                .find(&memory.keys[self.key_index], next.id),
        };
        match search {
            WalkSearch::Found(walk) => {
                let cache = &mut self.batch.memory.walk_cache;
                cache.count_continued();
                if next.later_zone.get().is_none() {
                    let [later_zone, _] = cache.zones(walk);
                    next.later_zone.set(later_zone);
                }
                self.replay(frame, walk, pool)
            }
            _ => self.leave_walk(frame, next, pool),
        }
    }

    /// Executes the tables after `ct`, from the state in which a walk reaches them.
    #[inline(never)]
    fn leave_walk(
        &mut self,
        frame: &mut Frame,
        next: &TrackedWalk,
        pool: &mut Pool,
    ) -> Result<(), Interruption<'a>> {
        self.batch.memory.walk_cache.count_left();
        self.resume(&next.resume);
        let table = next.table;
        let may_record = self.batch.memory.walk_cache.recorder.may_record(0);
        self.is_recording = may_record;
        self.begin_tracked_recording(Some(next.id), frame);
        let result = self.look_up(frame, table);
        let place = TurnPlace {
            table,
            rule: None,
            cause: Cause::Action,
        };
        let result = match self.run_tables(frame, ExecPoint::Table(table, result), pool) {
            Err(Interruption::SlowPath(reason, at)) => {
                self.batch.memory.count_slow_path(reason);
                self.finish_level_in_interpreter(frame, (place, at), true, pool)
            }
            Err(Interruption::Pause(at)) => {
                self.finish_level_in_interpreter(frame, (place, at), true, pool)
            }
            other => other,
        };
        self.finish_pause(frame, FinalActionSet::Executed, pool);
        let result = self.contain(result, DropReason::drops_all);
        if may_record {
            self.end_recording();
        }
        self.forget();
        result
    }

    /// Restores the state in which a walk reaches a table.
    fn resume(&mut self, state: &ResumeState) {
        let memory = &mut *self.batch.memory;
        memory.written.insert(BatchMask::single(self.key_index));
        let key = &mut memory.keys[self.key_index];
        key.copy_pipeline_fields(&state.key);
        key.replace_in_port(self.in_port);
        if let Some(saved) = &state.memory {
            memory.interpreter.restore_packet(saved.clone());
            self.uses_interpreter = true;
        } else if self.uses_interpreter {
            memory.interpreter.reset_packet();
        }
        self.lookups = state.lookups;
        self.buckets_left = state.buckets_left;
        self.actions_left = state.actions_left;
        self.level = Level {
            nesting: state.nesting,
            recursion: state.recursion,
            base_nesting: state.nesting,
            base_recursion: state.recursion,
            ..Level::FIRST
        };
    }

    /// Forgets the pipeline fields that the tables after a walk have written: the rest of the walk
    /// does not read them.
    fn forget(&mut self) {
        if self.uses_pipeline_fields {
            self.reset_pipeline_fields();
            self.uses_pipeline_fields = false;
        }
        self.level = Level::FIRST;
        self.action_set = None;
        self.holds_set = false;
        self.last_rule = None;
        self.lookup_port = None;
        self.has_own_fields = false;
        self.is_lookup_special = false;
        self.is_malformed = false;
        self.key_is_stale = true;
    }
}

/// Tracks a plain packet whose connection is in no steady state, or does not exist, and writes its
/// fields if it continues. Returns false, without a change, for others.
fn track_unsteady(
    tracker: &Conntrack,
    track: &TrackEffect,
    (lookup, (check, now)): (&mut SteadyLookup<'_>, (ChecksumCheck, Instant)),
    fields: &mut SteadyPacket,
) -> bool {
    tracker.begin_absent(lookup);
    let is_new = match (track.steady, &track.next) {
        // Without `commit`, a packet without a connection is not translated.
        (SteadyCall::Plain | SteadyCall::Nat, _) if track.request.commit == CtCommit::No => {
            tracker.track_absent(lookup, check, fields)
        }
        (SteadyCall::PlainCommit, None) => {
            tracker.commit_absent(lookup, check, &track.request.writes(), now)
        }
        _ => false,
    };
    is_new || tracker.track_changing(lookup, check, now, fields)
}

/// Splits effects at the end of the copy that has begun before them.
fn split_copy(effects: &[WalkEffect]) -> (&[WalkEffect], &[WalkEffect]) {
    let mut depth = 0_usize;
    for (number, effect) in effects.iter().enumerate() {
        match effect {
            WalkEffect::BeginCopy => depth += 1,
            WalkEffect::EndCopy if depth == 0 => {
                return (&effects[..number], &effects[number + 1..]);
            }
            WalkEffect::EndCopy => depth -= 1,
            _ => {}
        }
    }
    (effects, &[])
}
