//! The action `ct` (`ovs-actions(7)`, "The ct action"): facts of the packet and arguments of the
//! action go to the tracker of the bridge, and fields and translation return.
//!
//! ```text
//!   rule: ct(commit,table=5,zone=3,nat(src=..)), output:2
//!           |
//!           +-- tracker: state, mark, label, original direction; translation of the headers
//!           +-- copy with the fields of the connection --> table 5 --> action set of the copy
//!           `-- original, without fields of a connection --> output:2
//! ```
//!
//! A trace does not change connections: its packet has the states that its user gives, or is new.

use base::TableId;
use conntrack::{CtMetadata, CtOutcome, CtRequest, CtState};
use flow::field::Depth;
use flow::{ConntrackAction, Continuation, ContinuationStep, Instructions};
use packet::{Frame, Packet};

use super::pause::FinalActionSet;
use super::{Execution, reject_malformed};
use crate::counters::OBSERVER;
use crate::limits::{NESTING_MAX, RECURSION_MAX};
use crate::tracking::{
    ConntrackSource, connection_fields, conntrack_request, family_of, first_translation,
    is_translated, track_packet, write_outcome,
};
use crate::verdict::{Destination, DropReason};

impl Execution<'_> {
    /// Executes `ct`.
    pub(crate) fn track(
        &mut self,
        packet: &mut Packet<'_>,
        action: &ConntrackAction,
    ) -> Result<(), DropReason> {
        let pipeline = self.pipeline;
        // Rules that rely on the state of connections must not let a packet pass without it.
        let tracker = pipeline.tracker().ok_or(DropReason::NoConntrack)?;
        let request = self.request(packet, action);
        if self.begin_fragment(packet, action, &request) {
            return Ok(());
        }
        let family = family_of(packet).unwrap_or_default();
        self.trace.on_track(&request, family);
        let outcome = match self.writer {
            OBSERVER => self.observed(packet, action, &request),
            _ => {
                let earlier = self.registers.connection.as_deref();
                track_packet(tracker, packet, earlier, &request, self.now)
            }
        };
        self.translate(packet, &outcome)?;
        if let Some(table) = action.table {
            self.trace.on_fork(table);
        }
        match action.table {
            Some(table) if self.trace.recirculates() => {
                self.recirculate_tracked(packet, table, &outcome.metadata);
            }
            Some(table) => self.enter_tracked(packet, table, &outcome.metadata)?,
            None => {}
        }
        // Only the copy that continues in the table has the fields of the connection.
        self.clear_connection();
        self.trace.on_untracked();
        Ok(())
    }

    /// Executes `ct_clear`.
    pub(crate) fn untrack(&mut self) {
        if self.registers.connection.is_some() {
            self.trace.on_untrack();
        }
        self.clear_connection();
    }

    /// Makes the packet one that is not tracked.
    pub(super) fn clear_connection(&mut self) {
        if self.registers.connection.take().is_some() {
            self.key_is_stale = true;
        }
    }

    /// Returns the arguments of the action for this packet.
    fn request(&mut self, packet: &Packet<'_>, action: &ConntrackAction) -> CtRequest {
        conntrack_request(action, |source| match source {
            ConntrackSource::Subfield(part) => Some(self.part(packet, part)),
            ConntrackSource::StackTop => {
                let bits = self.stack.pop();
                if bits.is_none() {
                    self.trace.on_stack_underflow();
                }
                bits.map(|bits| bits.low())
            }
        })
    }

    /// Returns the fields of a trace's packet: the states that the trace has, and the zone.
    fn observed(
        &mut self,
        packet: &Packet<'_>,
        action: &ConntrackAction,
        request: &CtRequest,
    ) -> CtOutcome {
        // Only a packet that continues in a table uses a state.
        let table = action.table;
        let state = table.and_then(|_| self.trace.next_connection_state());
        let is_ip = family_of(packet).is_some();
        let state = match state {
            Some(state) => CtState(state),
            None if is_ip => CtState::TRACKED.with(CtState::NEW),
            None => CtState::TRACKED.with(CtState::INVALID),
        };
        let translation = first_translation(packet, request);
        CtOutcome {
            translation,
            metadata: CtMetadata {
                state,
                zone: request.zone,
                ..CtMetadata::default()
            },
            ..CtOutcome::default()
        }
    }

    /// Writes the translation of a connection to the packet.
    fn translate(
        &mut self,
        packet: &mut Packet<'_>,
        outcome: &CtOutcome,
    ) -> Result<(), DropReason> {
        if !is_translated(outcome) {
            return Ok(());
        }
        self.preserve_state(packet)?;
        self.mark_modified();
        write_outcome(packet, outcome)
    }

    /// Ends the part of a trace in which the packet is not tracked: its continuation enters the
    /// table, as after a recirculation of Open vSwitch.
    fn recirculate_tracked(&mut self, packet: &Packet<'_>, table: TableId, metadata: &CtMetadata) {
        let rest = Instructions {
            goto: Some(table),
            ..Instructions::default()
        };
        let step = ContinuationStep {
            table: self.table,
            cookie: self.cookie,
            rest,
        };
        let mut meta = self.packet_in(None);
        meta.registers.connection = Some(Box::new(connection_fields(metadata, packet)));
        meta.continuation = Some(Continuation {
            stack: self.stack.clone(),
            steps: vec![step],
            set: Some(self.set.actions().to_vec()),
            ..Continuation::default()
        });
        self.record_output(Destination::Controller(meta));
    }

    /// Runs a copy of the packet with the fields of its connection through the tables from `table`.
    pub(super) fn enter_tracked(
        &mut self,
        packet: &Packet<'_>,
        table: TableId,
        metadata: &CtMetadata,
    ) -> Result<(), DropReason> {
        let backward = usize::from(table <= self.table);
        if self.recursion + backward > RECURSION_MAX || self.nesting >= NESTING_MAX {
            return Err(DropReason::RecursionTooDeep);
        }
        self.count_lookup()?;
        self.preserve_state(packet)?;
        let copy = self.pool.duplicate(packet.frame());
        let mut copy = copy.ok_or(DropReason::NoBuffer)?;
        let (set, stack) = (self.set.clone(), self.stack.clone());
        let (from, registers, priority) = (self.in_port, self.registers.clone(), self.priority);
        let (rule, depth) = ((self.table, self.rule, self.cookie, self.cause), self.depth);
        self.table = table;
        self.recursion += backward;
        self.nesting += 1;
        self.registers.connection = Some(Box::new(connection_fields(metadata, packet)));
        self.mark_modified();
        self.trace.on_copy(&[]);
        self.trace.on_tracked(metadata.state.0);
        let done = self.run_tracked(packet, &mut copy);
        self.finish_pause(FinalActionSet::Executed);
        self.trace.on_copy_end();
        self.finish_frame(copy);
        self.recursion -= backward;
        self.nesting -= 1;
        ((self.table, self.rule, self.cookie, self.cause), self.depth) = (rule, depth);
        (*self.set, *self.stack) = (set, stack);
        (self.in_port, self.registers, self.priority) = (from, registers, priority);
        self.exited = false;
        self.mark_modified();
        self.contain_drop(done, DropReason::drops_all)
    }

    fn run_tracked(&mut self, packet: &Packet<'_>, copy: &mut Frame) -> Result<(), DropReason> {
        reject_malformed(packet)?;
        self.depth = self.pipeline.depth().max(Depth::Transport);
        let mut copied = Packet::parse(copy, self.depth).map_err(DropReason::Malformed)?;
        let found = self.look_up_onward(&copied);
        if self.run_rules(&mut copied, found)? {
            self.execute_set(&mut copied)
        } else {
            self.handle_miss()
        }
    }
}
