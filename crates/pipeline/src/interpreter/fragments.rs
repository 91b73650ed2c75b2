//! Fragments in `ct`: each stops there, with the rest of its processing, until its packet is complete
//! and was tracked. Then all continue after the packet that was last, in the order of their arrival,
//! with the fields and the translation of the whole packet (Open vSwitch, `lib/ipf.c`).
//!
//! A fragment that no packet can have, and one whose packet was not complete in time, continue as
//! invalid packets.

use conntrack::{
    ChecksumCheck, CtMetadata, CtOutcome, CtRequest, CtState, FragmentOutcome, ReassembledPacket,
};
use flow::{ConntrackAction, Continuation};
use packet::wire::Fragment;
use packet::{Depth, Frame, Packet};

use super::Execution;
use super::pause::FinalActionSet;
use crate::counters::{OBSERVER, Totals};
use crate::fragment_store::{HeldFragment, UsedLimits};
use crate::tracking::{checksum_check, family_of, is_translated, track_reassembled, write_outcome};
use crate::verdict::DropReason;

/// A fragment that continues, with the result of its packet.
#[derive(Debug)]
pub(super) struct ReleasedFragment {
    fragment: HeldFragment,
    outcome: CtOutcome,
}

/// The most fragments that one packet releases: those of the longest list, in a few zones each, and
/// the expired ones.
const RELEASED_MAX: u32 = 256;

impl Execution<'_> {
    /// Begins to hold the packet, if it is a fragment to be reassembled. Returns false otherwise, and
    /// in a trace, which changes no state.
    pub(super) fn begin_fragment(
        &mut self,
        packet: &Packet<'_>,
        action: &ConntrackAction,
        request: &CtRequest,
    ) -> bool {
        let is_fragment = packet.headers().fragment() != Some(Fragment::No);
        let (Some(family), true) = (family_of(packet), is_fragment) else {
            return false;
        };
        let Some((store, owner)) = self.pipeline.fragment_store() else {
            return false;
        };
        if self.writer == OBSERVER || !store.is_enabled(family) {
            return false;
        }
        let frame = packet.frame();
        let fragment = HeldFragment {
            owner: *owner,
            bytes: frame.bytes().to_vec(),
            network_at: packet.headers().network_at(),
            offload: frame.offload,
            registers: self.registers(),
            priority: self.priority,
            request: *request,
            next: action.table,
            family,
            check: checksum_check(frame),
            table: self.table,
            cookie: self.cookie,
            cause: self.cause,
            rule_cause: self.rule_cause,
            set: self.set.actions().to_vec(),
            used: UsedLimits {
                recursion: self.recursion,
                nesting: self.nesting,
                resubmits: self.resubmits,
                buckets_left: self.buckets_left,
                actions_left: self.actions_left,
            },
            rest: Continuation::default(),
        };
        self.begin_hold(Box::new(fragment));
        true
    }

    /// Adds a fragment to the store, and releases those that continue.
    pub(super) fn hold(&mut self, fragment: HeldFragment) {
        let Some((store, _)) = self.pipeline.fragment_store() else {
            return;
        };
        let (outcome, expired) = store.handle(fragment, self.now);
        for fragment in expired {
            self.release_invalid(fragment);
        }
        self.verdict.held_fragments += 1;
        match outcome {
            FragmentOutcome::Held => {}
            FragmentOutcome::Complete(packet) => self.release_tracked(packet),
            FragmentOutcome::NotHeld(fragment) | FragmentOutcome::Invalid(fragment, _) => {
                self.release_invalid(fragment);
            }
        }
    }

    /// Tracks a packet and releases its fragments. The arguments of `ct` are those of the fragment
    /// that was last, as in Open vSwitch.
    fn release_tracked(&mut self, packet: ReassembledPacket<HeldFragment>) {
        let ReassembledPacket {
            bytes,
            fragments,
            first,
        } = packet;
        let pipeline = self.pipeline;
        let (Some(tracker), Some(last)) = (pipeline.tracker(), fragments.last()) else {
            return;
        };
        let mut checks = fragments.iter().map(|fragment| fragment.check);
        let check = match checks.all(|check| check == ChecksumCheck::Verify) {
            true => ChecksumCheck::Verify,
            false => ChecksumCheck::Skip,
        };
        let earlier = fragments[first].registers.connection.as_deref();
        let of_bytes = (last.family, check);
        let outcome =
            track_reassembled(tracker, &bytes, of_bytes, earlier, &last.request, self.now);
        let released = fragments.into_iter().map(|fragment| ReleasedFragment {
            fragment,
            outcome: outcome.clone(),
        });
        self.released.extend(released);
    }

    fn release_invalid(&mut self, fragment: HeldFragment) {
        let metadata = CtMetadata {
            state: CtState::TRACKED.with(CtState::INVALID),
            zone: fragment.request.zone,
            ..CtMetadata::default()
        };
        self.released.push_back(ReleasedFragment {
            fragment,
            outcome: CtOutcome {
                metadata,
                ..CtOutcome::default()
            },
        });
    }

    /// Runs the fragments that continue, and those that they release themselves: [`RELEASED_MAX`]
    /// at most, since each has the limits of a packet and rules may hold it again.
    pub(super) fn run_released(&mut self) {
        let mut runs = 0;
        while let Some(released) = self.released.pop_front() {
            runs += 1;
            if runs > RELEASED_MAX {
                self.released.clear();
                self.drop(DropReason::TooManyActions);
                return;
            }
            let results = self.verdict.results();
            let result = self.run_fragment(released);
            let result = match self.verdict.is_over_limit {
                true => Err(DropReason::TooManyOutputs),
                false => result,
            };
            if let Err(reason) = result {
                self.drop(reason);
                if reason.drops_all() {
                    self.verdict.discard_outputs(self.pool);
                    self.verdict.is_over_limit = false;
                }
            } else if self.verdict.results() == results {
                self.drop(DropReason::NoOutput);
            }
        }
    }

    /// Runs one fragment from `ct` on: the copy that enters the table, then the rest of the actions.
    fn run_fragment(&mut self, released: ReleasedFragment) -> Result<(), DropReason> {
        let ReleasedFragment { fragment, outcome } = released;
        let mut stored = Frame::from_bytes(&fragment.bytes);
        stored.offload = fragment.offload;
        let frame = self.pool.duplicate(&stored);
        let mut frame = frame.ok_or(DropReason::NoBuffer)?;
        self.restore(&fragment, &frame);
        let mut result = self.enter_fragment(&mut frame, &fragment, &outcome);
        if result.is_ok() {
            self.clear_connection();
            self.set.clear();
            result = self.execute_continuation(&mut frame, &fragment.rest);
        }
        if result.is_err_and(DropReason::drops_all) {
            (self.egress_pending, self.pause) = (false, None);
        }
        self.finish_pause(FinalActionSet::Executed);
        self.finish_frame(frame);
        result
    }

    /// Restores the state in which the fragment was held.
    fn restore(&mut self, fragment: &HeldFragment, frame: &Frame) {
        self.registers = fragment.registers.clone();
        self.in_port = fragment.registers.in_port;
        self.priority = fragment.priority;
        (self.table, self.rule, self.cookie) = (fragment.table, None, fragment.cookie);
        (self.cause, self.rule_cause) = (fragment.cause, fragment.rule_cause);
        self.set.clear();
        self.set.write(&fragment.set);
        self.stack.clear();
        self.stack.extend(&fragment.rest.stack);
        let used = fragment.used;
        (self.recursion, self.nesting) = (used.recursion, used.nesting);
        (self.resubmits, self.buckets_left) = (used.resubmits, used.buckets_left);
        self.actions_left = used.actions_left;
        self.weight = Totals {
            packets: frame.wire_frames(),
            bytes: frame.wire_bytes(),
        };
        self.depth = Depth::Transport;
        (self.exited, self.egress_pending, self.pause) = (false, false, None);
        self.mark_modified();
    }

    /// Translates the fragment. If `ct` has a table, a copy with the fields of the connection enters
    /// it.
    fn enter_fragment(
        &mut self,
        frame: &mut Frame,
        fragment: &HeldFragment,
        outcome: &CtOutcome,
    ) -> Result<(), DropReason> {
        let mut packet = Packet::parse(frame, self.depth).map_err(DropReason::Malformed)?;
        if is_translated(outcome) {
            write_outcome(&mut packet, outcome)?;
        }
        match fragment.next {
            Some(table) => self.enter_tracked(&packet, table, &outcome.metadata),
            None => Ok(()),
        }
    }
}
