//! Running one frame through the tables, by the letter (OF 1.3.5, 5.1 to 5.12).
//!
//! The frame is changed in place. An output does not copy it; it promises that
//! the frame will leave in the state it has, and only a change after a promise
//! makes a copy that keeps it.

use base::{Cookie, Instant, PortNo, Priority, TableId};
use flow::field::Depth;
use flow::{
    Action, Field, FlowKey, FragmentHandling, Instructions, PacketOut, PipelineFields, Wide,
};
use packet::wire::Fragment;
use packet::{Frame, Packet, Pool};

use crate::bare_frame::stored;
use crate::counters::{OBSERVER, Totals};
use crate::instructions::action_set::ActionSet;
use crate::limits::{ACTION_SET_MAX, BUCKETS_PER_FRAME_MAX};
use crate::lookup::{Lookup, LookupResult, LookupTables};
use crate::pipeline::{MissPolicy, Pipeline};
use crate::rules::Rule;
use crate::trace::Trace;
use crate::verdict::{Cause, Destination, DropReason, Egress, Verdict};
use pause::{FinalActionSet, Pause};

mod actions;
mod conjunction;
mod encap;
mod extension;
mod group_actions;
mod hash_select;
mod learn;
mod output;
pub(crate) mod pause;
mod registers;
pub(crate) mod resume;
mod submit;

/// A frame that is to be run.
#[derive(Debug)]
pub struct InputFrame {
    /// The frame.
    pub frame: Frame,
    /// The port it came in by. Of a packet-out, what the controller says, and
    /// [`PortNo::CONTROLLER`] for none.
    pub in_port: PortNo,
    /// When.
    pub now: Instant,
}

/// What a worker keeps from frame to frame: its place among those who count, and
/// memory that is used again.
#[derive(Debug)]
pub struct Interpreter {
    writer: usize,
    key: FlowKey,
    set: ActionSet,
    stack: Vec<Wide>,
}

impl Interpreter {
    /// One that counts as `writer`, which must be less than the pipeline's number
    /// of writers, and no other's.
    #[must_use]
    pub fn new(writer: usize) -> Self {
        Self {
            writer,
            key: FlowKey::new(),
            set: ActionSet::default(),
            stack: Vec::new(),
        }
    }

    /// One that tells a frame's fate and leaves no trace of it in any count or meter.
    #[must_use]
    pub fn observer() -> Self {
        Self::new(OBSERVER)
    }

    /// Runs a frame that came in by a port. What becomes of it is in `verdict`,
    /// which forgets the frame before.
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

    /// Carries out a packet-out, of which [`Pipeline::check_packet_out`] said
    /// that it can be.
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
        verdict.frames.clear();
        verdict.egress.clear();
        verdict.drops.clear();
        verdict.learn_requests.clear();
        self.set.clear();
        self.stack.clear();
        Execution {
            pipeline: tables.pipeline,
            lookup: tables.lookup,
            pool,
            trace,
            verdict,
            key: &mut self.key,
            key_is_stale: true,
            set: &mut self.set,
            stack: &mut self.stack,
            writer: self.writer,
            now: arrival.now,
            from: arrival.in_port,
            weight: Totals {
                packets: arrival.frame.wire_frames(),
                bytes: arrival.frame.wire_bytes(),
            },
            registers: PipelineFields::new(arrival.in_port),
            table: TableId::FIRST,
            rule: None,
            cookie: Cookie::NONE,
            cause: Cause::PacketOut,
            promised: false,
            priority: arrival.frame.priority,
            depth: Depth::Link,
            exited: false,
            recursion: 0,
            nesting: 0,
            resubmits: 0,
            buckets_left: BUCKETS_PER_FRAME_MAX,
            pause: None,
        }
    }
}

/// One frame's way.
pub(crate) struct Execution<'a> {
    pub(crate) pipeline: &'a Pipeline,
    lookup: &'a dyn Lookup,
    pub(crate) pool: &'a mut Pool,
    pub(crate) trace: &'a mut dyn Trace,
    pub(crate) verdict: &'a mut Verdict,
    pub(crate) key: &'a mut FlowKey,
    /// Whether the frame has changed since the key was filled.
    key_is_stale: bool,
    pub(crate) set: &'a mut ActionSet,
    /// What `push` has put aside.
    pub(crate) stack: &'a mut Vec<Wide>,
    pub(crate) writer: usize,
    pub(crate) now: Instant,
    /// The port it came in by.
    pub(crate) from: PortNo,
    /// What it counts for: itself, as it came.
    pub(crate) weight: Totals,
    /// What else goes with it; of the port and the set's output it knows when they
    /// were gathered.
    pub(crate) registers: PipelineFields,
    pub(crate) table: TableId,
    /// The rule whose actions are done; none of a packet-out.
    pub(crate) rule: Option<&'a Rule>,
    /// Of the rule whose actions are done; of a packet-out, none.
    pub(crate) cookie: Cookie,
    /// Why an output to the controllers is one.
    pub(crate) cause: Cause,
    /// Whether the frame is to leave in the state it has now.
    promised: bool,
    pub(crate) priority: Priority,
    /// How deep it was read.
    pub(crate) depth: Depth,
    /// Whether nothing more is to be done with it.
    pub(crate) exited: bool,
    /// How many resubmissions we are in that did not lead to a later table.
    pub(crate) recursion: usize,
    /// How many resubmissions and clones we are in.
    pub(crate) nesting: usize,
    /// How many lookups there were beyond the first.
    pub(crate) resubmits: usize,
    /// How many buckets may still be looked at for it.
    pub(crate) buckets_left: u32,
    /// What is being put together of a frame that is to wait for a controller; while
    /// it is, nothing else is done to that frame.
    pub(crate) pause: Option<Pause>,
}

impl<'a> Execution<'a> {
    /// A frame from a port: let in, if the port is open, and through the tables.
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
        let ingress = pipeline.port(self.from);
        if !ingress.is_some_and(|port| port.receives(dst)) {
            return Err(DropReason::IngressClosed);
        }
        self.gather();
        self.trace.on_arrival(packet.frame(), &self.registers);
        if pipeline.is_standalone() {
            self.promise(Destination::Normal);
            return Ok(());
        }
        self.walk(&mut packet)
    }

    /// A frame from a controller, with what is to be done to it.
    fn send_out(&mut self, frame: &mut Frame, actions: &[Action]) -> Result<(), DropReason> {
        if self.from == PortNo::ANY {
            self.from = PortNo::CONTROLLER;
        }
        let depth = self.pipeline.depth_for(actions);
        self.depth = depth;
        let mut packet = Packet::parse(frame, depth).map_err(DropReason::Malformed)?;
        self.gather();
        self.trace.on_arrival(packet.frame(), &self.registers);
        self.apply(&mut packet, actions)?;
        self.execute_set(&mut packet)
    }

    /// Through the tables, from the first to where no rule leads on; or not at
    /// all, if it is a fragment and these are to be dropped.
    pub(crate) fn walk(&mut self, packet: &mut Packet<'_>) -> Result<(), DropReason> {
        let pipeline = self.pipeline;
        let whole = matches!(packet.headers().fragment(), None | Some(Fragment::No));
        if !whole && pipeline.fragments() == FragmentHandling::Drop {
            return Err(DropReason::Fragment);
        }
        self.table = TableId::FIRST;
        let found = self.look_up(packet);
        if self.traverse(packet, found)? {
            self.execute_set(packet)
        } else {
            self.missed()
        }
    }

    /// Does what the rule says that was found, and goes on to where it leads.
    /// Answers whether the way ended by a rule, not by the want of one.
    pub(crate) fn traverse(
        &mut self,
        packet: &mut Packet<'_>,
        mut found: Option<&'a Rule>,
    ) -> Result<bool, DropReason> {
        while let Some(rule) = found {
            self.come_to(rule);
            let next = self.follow(packet, &rule.instructions)?;
            match next {
                Some(table) if !self.exited => self.table = table,
                _ => return Ok(true),
            }
            self.count_lookup()?;
            found = self.look_up(packet);
        }
        Ok(false)
    }

    /// This rule's actions are done now.
    pub(crate) fn come_to(&mut self, rule: &'a Rule) {
        (self.rule, self.cookie) = (Some(rule), rule.cookie);
        self.cause = match rule.is_table_miss() {
            true => Cause::MissRule,
            false => Cause::Action,
        };
    }

    /// The rule of the current table that the frame finds.
    pub(crate) fn look_up(&mut self, packet: &Packet<'_>) -> Option<&'a Rule> {
        self.forget_conjunction();
        self.gather();
        let lookup = self.lookup;
        // Compiled tables know Ethernet frames only.
        let found = match self.is_bare() {
            true => LookupResult::Unknown,
            false => lookup.look_up(self.table, packet.headers(), &self.registers),
        };
        let found = match found {
            LookupResult::Rule(found) => found,
            LookupResult::Conjunction(rule, id) => {
                self.remember_conjunction(id);
                Some(rule)
            }
            LookupResult::Unknown => self.search(packet),
        };
        let (looked_up, matched) = self.pipeline.table_counters(self.table);
        looked_up.add(self.writer, self.weight, self.now);
        if let Some(rule) = found {
            matched.add(self.writer, self.weight, self.now);
            rule.counters.add(self.writer, self.weight, self.now);
        }
        self.trace.on_lookup(self.table, found);
        found
    }

    /// Walks along the list.
    fn search(&mut self, packet: &Packet<'_>) -> Option<&'a Rule> {
        self.refresh(packet);
        let table = self.pipeline.table(self.table)?;
        let found = if table.has_clauses() {
            let (found, conjunction) = conjunction::look_up(table, self.key);
            self.remember_conjunction(conjunction);
            found
        } else {
            table.lookup(self.key)
        };
        found.map(AsRef::as_ref)
    }

    fn remember_conjunction(&mut self, id: u32) {
        self.registers.conjunction = id;
        self.key.set(Field::ConjId, id.into());
    }

    /// What one lookup has satisfied, the next does not know.
    fn forget_conjunction(&mut self) {
        if self.registers.conjunction != 0 {
            self.remember_conjunction(0);
        }
    }

    pub(crate) fn missed(&mut self) -> Result<(), DropReason> {
        self.cookie = Cookie::NONE;
        self.cause = Cause::Miss;
        match self.pipeline.miss_policy() {
            MissPolicy::Drop => Err(DropReason::NoMatch),
            MissPolicy::Controller if !self.reports_misses() => Err(DropReason::NoPacketIn),
            MissPolicy::Controller => self.tell_controllers(None),
        }
    }

    /// Instructions in the order of OF 1.3.5, 5.9. Answers where to go on.
    pub(crate) fn follow(
        &mut self,
        packet: &mut Packet<'_>,
        instructions: &Instructions,
    ) -> Result<Option<TableId>, DropReason> {
        if let Some(meter) = instructions.meter {
            self.submit_to_meter(packet, meter)?;
        }
        self.follow_behind(packet, instructions, 0)
    }

    /// The same, behind the meter and the first actions.
    pub(crate) fn follow_behind(
        &mut self,
        packet: &mut Packet<'_>,
        instructions: &Instructions,
        done: usize,
    ) -> Result<Option<TableId>, DropReason> {
        self.apply(packet, &instructions.apply[done..])?;
        if self.exited {
            self.leave_instructions(instructions);
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
        // What is left of a set is done; it is not executed again.
        self.wait(FinalActionSet::Never);
        *self.set = set;
        result
    }

    /// The fields of the frame as it is now.
    pub(crate) fn fields(&mut self, packet: &Packet<'_>) -> &FlowKey {
        self.refresh(packet);
        self.key
    }

    /// Makes the key fit the frame again. The action set changes without a word to the
    /// key, and is taken away while it is executed.
    fn refresh(&mut self, packet: &Packet<'_>) {
        self.gather();
        if self.key_is_stale {
            self.key.fill(packet.headers(), &self.registers);
            self.key_is_stale = false;
        } else {
            let output = self.registers.set_output.0;
            self.key.set(Field::ActsetOutput, output.into());
        }
    }

    /// A field of the frame as it is now.
    pub(crate) fn field(&mut self, packet: &Packet<'_>, field: Field) -> Option<u128> {
        self.refresh(packet);
        self.key.get(field)
    }

    /// The frame leaves there, as it is now.
    pub(crate) fn promise(&mut self, to: Destination) {
        self.promised = true;
        self.trace.on_output(&to);
        let registers = self.pipeline.may_tunnel(&to).then(|| {
            self.gather();
            Box::new(self.registers.clone())
        });
        self.verdict.egress.push(Egress {
            frame: self.verdict.frames.len(),
            to,
            priority: self.priority,
            registers,
        });
    }

    /// Before a change: if the frame is to leave as it is now, a copy of it will.
    pub(crate) fn keep(&mut self, packet: &Packet<'_>) -> Result<(), DropReason> {
        if self.promised {
            let copy = self.pool.duplicate(packet.frame());
            self.verdict.frames.push(copy.ok_or(DropReason::NoBuffer)?);
            self.promised = false;
        }
        Ok(())
    }

    /// Whether the frame is to leave in the state it has now.
    pub(crate) const fn set_promised(&mut self, promised: bool) {
        self.promised = promised;
    }

    /// The frame is about to be another.
    pub(crate) const fn changes(&mut self) {
        self.key_is_stale = true;
    }

    /// The frame, or one of its copies, ends here.
    pub(crate) fn drop(&mut self, reason: DropReason) {
        self.verdict.drops.push(reason);
        self.trace.on_drop(reason);
    }

    /// Keeps a promise, or gives the buffer back.
    pub(crate) fn settle(&mut self, frame: Frame) {
        if self.promised {
            self.verdict.frames.push(frame);
            self.promised = false;
        } else {
            self.pool.put(frame);
        }
    }

    pub(crate) fn end(mut self, frame: Frame, result: Result<(), DropReason>) {
        if let Err(reason) = result {
            self.drop(reason);
        }
        self.wait(FinalActionSet::Executed);
        if !self.verdict.has_result() {
            self.drop(DropReason::NoOutput);
        }
        self.gather();
        self.trace.on_end(&frame, &self.registers);
        self.settle(frame);
    }
}

#[cfg(test)]
mod tests;
