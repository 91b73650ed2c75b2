//! The interpreter: runs one packet through the tables by the letter of the specification (OF
//! 1.3.5, 5.1 to 5.12).
//!
//! ```text
//!    receive                                          packet_out
//!       |                                                 |
//!    walk: table 0 -> look_up -> rule -> follow           |
//!       ^                                  |              v
//!       |            meter, apply_actions, clear, write, metadata
//!       +--- goto -------------------------+
//!                                          | no goto
//!                                   execute_set -> end -> Verdict
//! ```
//!
//! The packet is modified in place. An output does not copy it: it records that the packet leaves
//! in its present state, and only a later modification makes a copy that keeps that state.

use std::collections::VecDeque;

use base::{Cookie, Instant, PortNo, Priority, TableId};
use flow::field::Depth;
use flow::{Action, Field, FlowKey, Instructions, PacketOut, PipelineFields, Wide};
use packet::{Frame, Packet, Pool};

use crate::bare_frame::stored;
use crate::counters::{OBSERVER, Totals};
use crate::instructions::action_set::ActionSet;
use crate::limits::{ACTION_SET_MAX, ACTIONS_PER_FRAME_MAX, BUCKETS_PER_FRAME_MAX};
use crate::lookup::{Lookup, LookupTables};
use crate::pipeline::{MissPolicy, Pipeline};
use crate::rules::Rule;
use crate::trace::Trace;
use crate::verdict::{Cause, Destination, DropReason, Verdict};
use fragments::ReleasedFragment;
use pause::{FinalActionSet, Pause};

pub(crate) mod actions;
mod conjunction;
mod conntrack;
mod egress;
mod encap;
mod extension;
mod fragments;
mod group_actions;
mod hash_select;
mod learn;
mod output;
pub(crate) mod pause;
mod registers;
pub(crate) mod resume;
mod submit;
mod table_lookup;
pub(crate) mod turn;

/// A packet to run.
#[derive(Debug)]
pub struct InputFrame {
    /// The frame.
    pub frame: Frame,
    /// Ingress port. For a packet-out, the controller's choice, or [`PortNo::CONTROLLER`].
    pub in_port: PortNo,
    /// Time of its arrival.
    pub now: Instant,
}

/// An interpreter: its index among the writers of counters, and memory that is reused.
#[derive(Debug)]
pub struct Interpreter {
    writer: usize,
    key: FlowKey,
    set: ActionSet,
    stack: Vec<Wide>,
    /// Fragments that continue after the packet.
    released: VecDeque<ReleasedFragment>,
}

impl Interpreter {
    /// Creates an interpreter that counts as `writer`, which is below the pipeline's number of
    /// writers and used by no other.
    #[must_use]
    pub fn new(writer: usize) -> Self {
        Self {
            writer,
            key: FlowKey::new(),
            set: ActionSet::default(),
            stack: Vec::new(),
            released: VecDeque::new(),
        }
    }

    /// Creates an interpreter that counts nothing and takes no tokens of meters, for traces.
    #[must_use]
    pub fn observer() -> Self {
        Self::new(OBSERVER)
    }

    /// Runs a packet from a port. The result replaces the contents of `verdict`.
    pub fn run<'a>(
        &'a mut self,
        tables: impl Into<LookupTables<'a>>,
        arrival: InputFrame,
        pool: &'a mut Pool,
        trace: &'a mut dyn Trace,
        verdict: &'a mut Verdict,
    ) {
        let mut run = self.begin(tables.into(), &arrival, pool, trace, verdict);
        let mut frame = arrival.frame;
        let result = run.receive(&mut frame);
        run.end(frame, result);
    }

    /// Executes a packet-out that [`Pipeline::check_packet_out`] has accepted.
    pub fn packet_out<'a>(
        &'a mut self,
        tables: impl Into<LookupTables<'a>>,
        message: &PacketOut,
        now: Instant,
        pool: &'a mut Pool,
        trace: &'a mut dyn Trace,
        verdict: &'a mut Verdict,
    ) {
        let arrival = InputFrame {
            frame: stored(&message.data, message.registers.packet_type),
            in_port: message.registers.in_port,
            now,
        };
        let mut run = self.begin(tables.into(), &arrival, pool, trace, verdict);
        run.registers = message.registers.clone();
        run.rule_cause = Cause::PacketOut;
        let mut frame = arrival.frame;
        let result = run.send_out(&mut frame, &message.actions);
        run.end(frame, result);
    }

    pub(crate) fn begin<'a>(
        &'a mut self,
        tables: LookupTables<'a>,
        arrival: &InputFrame,
        pool: &'a mut Pool,
        trace: &'a mut dyn Trace,
        verdict: &'a mut Verdict,
    ) -> Execution<'a> {
        verdict.clear();
        self.reset_packet();
        let at_ingress = (arrival.in_port, arrival.now);
        let mut run = self.execution(tables, at_ingress, pool, trace, verdict);
        run.weight = Totals {
            packets: arrival.frame.wire_frames(),
            bytes: arrival.frame.wire_bytes(),
        };
        run.priority = arrival.frame.priority;
        run
    }

    /// The execution of a packet with the action set and the stack that the interpreter holds.
    fn execution<'a>(
        &'a mut self,
        tables: LookupTables<'a>,
        (in_port, now): (PortNo, Instant),
        pool: &'a mut Pool,
        trace: &'a mut dyn Trace,
        verdict: &'a mut Verdict,
    ) -> Execution<'a> {
        Execution {
            pipeline: tables.pipeline,
            lookup: tables.lookup,
            pool,
            trace,
            verdict,
            key: &mut self.key,
            key_is_stale: true,
            is_rewritten: false,
            has_own_fields: false,
            set: &mut self.set,
            stack: &mut self.stack,
            writer: self.writer,
            now,
            in_port,
            weight: Totals::default(),
            registers: PipelineFields::new(in_port),
            table: TableId::FIRST,
            rule: None,
            cookie: Cookie::NONE,
            cause: Cause::PacketOut,
            rule_cause: Cause::Action,
            egress_pending: false,
            priority: Priority::NONE,
            depth: Depth::Link,
            exited: false,
            recursion: 0,
            nesting: 0,
            resubmits: 0,
            buckets_left: BUCKETS_PER_FRAME_MAX,
            actions_left: ACTIONS_PER_FRAME_MAX,
            pause: None,
            released: &mut self.released,
        }
    }
}

/// The state of one packet in execution.
pub(crate) struct Execution<'a> {
    pub(crate) pipeline: &'a Pipeline,
    lookup: &'a dyn Lookup,
    pub(crate) pool: &'a mut Pool,
    pub(crate) trace: &'a mut dyn Trace,
    pub(crate) verdict: &'a mut Verdict,
    pub(crate) key: &'a mut FlowKey,
    /// True if the packet was modified since the key was filled.
    key_is_stale: bool,
    /// True if the packet may have been modified.
    is_rewritten: bool,
    /// True if an action has written pipeline fields other than the metadata and general registers.
    has_own_fields: bool,
    pub(crate) set: &'a mut ActionSet,
    /// The stack of `push` and `pop`.
    pub(crate) stack: &'a mut Vec<Wide>,
    pub(crate) writer: usize,
    pub(crate) now: Instant,
    /// Ingress port.
    pub(crate) in_port: PortNo,
    /// Packets and bytes to count: those of the packet as received.
    pub(crate) weight: Totals,
    /// Pipeline fields. Ingress port and output of the action set are as of the last
    /// [`Execution::sync_registers`].
    pub(crate) registers: PipelineFields,
    pub(crate) table: TableId,
    /// The rule whose actions are executed; `None` for a packet-out.
    pub(crate) rule: Option<&'a Rule>,
    /// The cookie of that rule.
    pub(crate) cookie: Cookie,
    /// The cause of packet-ins.
    pub(crate) cause: Cause,
    /// The cause of packet-ins by a rule's actions: [`Cause::PacketOut`] for the packet of a
    /// packet-out in the tables, as in Open vSwitch.
    rule_cause: Cause,
    /// True if the packet leaves in its present state.
    egress_pending: bool,
    pub(crate) priority: Priority,
    /// Parse depth.
    pub(crate) depth: Depth,
    /// True if processing ends.
    pub(crate) exited: bool,
    /// Nesting of resubmissions that did not lead to a later table.
    pub(crate) recursion: usize,
    /// Nesting of resubmissions and clones.
    pub(crate) nesting: usize,
    /// Number of lookups beyond the first.
    pub(crate) resubmits: usize,
    /// Number of buckets that may still be examined.
    pub(crate) buckets_left: u32,
    /// Number of actions that the rules and buckets to be executed may have together.
    pub(crate) actions_left: usize,
    /// The continuation of a packet that is being paused. Until it is complete, no other action is
    /// executed.
    pub(crate) pause: Option<Pause>,
    /// Fragments that continue after this packet.
    released: &'a mut VecDeque<ReleasedFragment>,
}

impl<'a> Execution<'a> {
    /// Runs a packet from a port: through the tables, if the port receives.
    pub(crate) fn receive(&mut self, frame: &mut Frame) -> Result<(), DropReason> {
        let pipeline = self.pipeline;
        let depth = if pipeline.is_standalone() {
            Depth::Link
        } else {
            pipeline.depth()
        };
        self.depth = depth;
        let mut packet = Packet::parse(frame, depth).map_err(DropReason::Malformed)?;
        let dst = packet.headers().link.dst;
        let ingress = pipeline.port(self.in_port);
        // As in Open vSwitch, a trace may have no ingress port, or one that does not exist.
        let is_traced = self.writer == OBSERVER;
        if !ingress.map_or(is_traced, |port| port.receives(dst)) {
            return Err(DropReason::IngressClosed);
        }
        self.sync_registers();
        self.trace.on_arrival(packet.frame(), &self.registers);
        if pipeline.is_standalone() {
            self.record_output(Destination::Normal);
            return Ok(());
        }
        self.run_tables(&mut packet)
    }

    /// Runs a packet from a controller, with these actions.
    fn send_out(&mut self, frame: &mut Frame, actions: &[Action]) -> Result<(), DropReason> {
        let depth = self.pipeline.depth_for(actions);
        self.depth = depth;
        let mut packet = Packet::parse(frame, depth).map_err(DropReason::Malformed)?;
        self.sync_registers();
        self.trace.on_arrival(packet.frame(), &self.registers);
        self.apply(&mut packet, actions)?;
        self.execute_set(&mut packet)
    }

    /// Runs the packet through the tables from the first, unless it is a fragment to be dropped.
    pub(crate) fn run_tables(&mut self, packet: &mut Packet<'_>) -> Result<(), DropReason> {
        let pipeline = self.pipeline;
        if pipeline.drops_fragment(packet.frame(), Some(packet.headers())) {
            return Err(DropReason::Fragment);
        }
        self.table = TableId::FIRST;
        let found = self.look_up_onward(packet);
        if self.run_rules(packet, found)? {
            self.execute_set(packet)
        } else {
            self.handle_miss()
        }
    }

    /// Executes the rule that was found, and those of the tables that it leads to. Returns false if
    /// a table has no matching rule.
    pub(crate) fn run_rules(
        &mut self,
        packet: &mut Packet<'_>,
        mut found: Option<&'a Rule>,
    ) -> Result<bool, DropReason> {
        while let Some(rule) = found {
            self.begin_rule(rule);
            self.spend_actions(rule.instructions.apply.len())?;
            let next = self.execute_instructions(packet, &rule.instructions)?;
            match next {
                Some(table) if !self.exited => self.table = table,
                _ => return Ok(true),
            }
            self.count_lookup()?;
            reject_malformed(packet)?;
            found = self.look_up_onward(packet);
        }
        Ok(false)
    }

    /// Charges the actions of a rule or bucket to the packet's budget.
    pub(crate) fn spend_actions(&mut self, count: usize) -> Result<(), DropReason> {
        let left = self.actions_left.checked_sub(count);
        self.actions_left = left.ok_or(DropReason::TooManyActions)?;
        Ok(())
    }

    /// Makes `rule` the rule in execution.
    pub(crate) fn begin_rule(&mut self, rule: &'a Rule) {
        (self.rule, self.cookie) = (Some(rule), rule.cookie);
        self.cause = match rule.is_table_miss() {
            true => Cause::MissRule,
            false => self.rule_cause,
        };
    }

    pub(crate) fn handle_miss(&mut self) -> Result<(), DropReason> {
        // As in Open vSwitch, where an internal rule sends these packets.
        self.cookie = Cookie(0);
        self.cause = Cause::Miss;
        match self.pipeline.miss_policy_of(self.table) {
            MissPolicy::Drop => Err(DropReason::NoMatch),
            MissPolicy::Controller if !self.reports_misses() => Err(DropReason::NoPacketIn),
            MissPolicy::Controller => self.send_to_controllers(None),
        }
    }

    /// Executes instructions in the order of OF 1.3.5, 5.9. Returns the next table.
    pub(crate) fn execute_instructions(
        &mut self,
        packet: &mut Packet<'_>,
        instructions: &Instructions,
    ) -> Result<Option<TableId>, DropReason> {
        if let Some(meter) = instructions.meter {
            self.submit_to_meter(packet, meter)?;
        }
        self.execute_remaining(packet, instructions, 0)
    }

    /// Executes instructions after the meter and the first `done` actions.
    pub(crate) fn execute_remaining(
        &mut self,
        packet: &mut Packet<'_>,
        instructions: &Instructions,
        done: usize,
    ) -> Result<Option<TableId>, DropReason> {
        self.apply(packet, &instructions.apply[done..])?;
        if self.exited {
            self.pause_instructions(instructions);
            return Ok(None);
        }
        self.trace.on_instructions(instructions);
        if instructions.clear {
            self.set.clear();
        }
        self.set.write(&instructions.write);
        if self.set.len() > ACTION_SET_MAX {
            return Err(DropReason::ActionSetTooLong);
        }
        if let Some(write) = instructions.metadata {
            let metadata = self.registers.metadata & !write.mask | write.value & write.mask;
            self.set_register(Field::Metadata, metadata.into());
        }
        Ok(instructions.goto)
    }

    pub(crate) fn execute_set(&mut self, packet: &mut Packet<'_>) -> Result<(), DropReason> {
        if self.exited || self.set.actions().is_empty() {
            return Ok(());
        }
        let set = std::mem::take(self.set);
        self.trace.on_action_set(set.actions());
        if self.cause == Cause::Action {
            self.cause = Cause::ActionSet;
        }
        let result = self.apply(packet, set.actions());
        // The rest of a set is complete; it is not executed again.
        self.finish_pause(FinalActionSet::Never);
        *self.set = set;
        result
    }

    /// Returns the fields of the packet as it is now.
    pub(crate) fn fields(&mut self, packet: &Packet<'_>) -> &FlowKey {
        self.refresh(packet);
        self.key
    }

    /// Updates the key. The action set changes without a notice, and is taken away while it is
    /// executed.
    fn refresh(&mut self, packet: &Packet<'_>) {
        self.sync_registers();
        if self.key_is_stale {
            self.key.fill(packet.headers(), &self.registers);
            self.key_is_stale = false;
        } else {
            let output = self.registers.set_output.0;
            self.key.set(Field::ActsetOutput, output.into());
        }
    }

    /// Returns a field of the packet as it is now.
    pub(crate) fn field(&mut self, packet: &Packet<'_>, field: Field) -> Option<u128> {
        self.refresh(packet);
        self.key.get(field)
    }

    pub(crate) fn end(mut self, frame: Frame, result: Result<(), DropReason>) {
        let result = match self.verdict.is_over_limit {
            true => Err(DropReason::TooManyOutputs),
            false => result,
        };
        if let Err(reason) = result {
            self.drop(reason);
            if reason.drops_all() {
                self.verdict.discard_outputs(self.pool);
                (self.egress_pending, self.pause) = (false, None);
            }
        }
        self.finish_pause(FinalActionSet::Executed);
        if !self.verdict.has_result() {
            self.drop(DropReason::NoOutput);
        }
        self.sync_registers();
        self.trace.on_end(&frame, &self.registers);
        self.finish_frame(frame);
        if !self.released.is_empty() {
            self.run_released();
        }
    }
}

/// Rejects a packet before a lookup, if an action has exposed a malformed header: it could evade a
/// rule that reads it.
pub(crate) fn reject_malformed(packet: &Packet<'_>) -> Result<(), DropReason> {
    match packet.malformed() {
        Some(reason) => Err(DropReason::Malformed(reason)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
