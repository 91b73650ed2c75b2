//! Operations of action programs.

use base::{MeterId, PortNo, Priority, TableId};
use flow::{Action, Extension, MaxLen};
use packet::{Frame, Network, Packet, Pool};
use pipeline::{
    Cause, Destination, DropReason, Egress, MeterDecision, PacketInMeta, PortView, ResumeAt, Rule,
    raise_drop_precedence,
};

use super::{Executor, Interruption, LOOKUPS_MAX, RESUBMITS_MAX};
use crate::action_program::{ActionProgram, ActionSetUpdate, Op, SlowPathReason, output_port};
use crate::batch_mask::BatchMask;
use crate::egress_cache::EgressCheck;
use crate::header_rewrite::RewriteFailure;
use crate::packed_key::{FieldWrite, PackedKey};

impl<'a> Executor<'_, 'a> {
    /// Executes the operations from number `first`. Returns the table of a resubmission; the
    /// operations after it are pending then.
    pub(super) fn execute_ops(
        &mut self,
        frame: &mut Frame,
        rule: &'a Rule,
        program: &ActionProgram,
        first: usize,
        pool: &mut Pool,
    ) -> Result<Option<TableId>, Interruption<'a>> {
        let (ops, mut number) = (&*program.ops, first);
        while let Some(op) = ops.get(number) {
            match *op {
                Op::Output(_) | Op::InPort | Op::Normal | Op::Flood | Op::All => {
                    self.execute_output(op);
                }
                Op::Enqueue(..) | Op::SetQueue(_) => self.execute_output(op),
                Op::Controller(max_len) => self.report(rule, max_len),
                Op::Sample => self.sample(rule, number),
                Op::Group(group) => self.execute_group(frame, rule, (number, group), pool)?,
                Op::Meter(meter) => self.apply_meter(frame, meter, pool)?,
                Op::Resubmit(table) => {
                    let is_last = program.ends_with(number);
                    return self.resubmit(rule, number, table, is_last).map(Some);
                }
                Op::Track(_) => {
                    if let Some(table) = self.track(frame, rule, program, number, pool)? {
                        return Ok(Some(table));
                    }
                }
                Op::Untrack => self.untrack(),
                Op::Rewrite(_) => {
                    number = self.rewrite(frame, rule, ops, number, pool)?;
                    continue;
                }
                Op::Write(write) => self.write_field(write),
                Op::Copy { from, to } => self.key().copy(from, to),
                Op::Nop => {}
                Op::SlowPath(reason) => {
                    return Err(Interruption::SlowPath(reason, stop_at(rule, number)));
                }
            }
            number += 1;
        }
        Ok(None)
    }

    /// Executes an operation that only outputs the frame or selects a queue.
    #[inline]
    pub(super) fn execute_output(&mut self, op: &Op) {
        match *op {
            Op::Output(port) => self.output(port),
            Op::InPort => self.send(self.batch.context.in_port),
            Op::Normal => self.send_to(Destination::Normal),
            Op::Flood => self.send_to_ports(PortView::floods),
            Op::All => self.send_to_ports(PortView::forwards),
            Op::Enqueue(port, priority) => self.enqueue(port, priority),
            Op::SetQueue(priority) => drop(self.set_priority(priority)),
            _ => {}
        }
    }

    /// Selects the class of a port's queueing discipline for later outputs. Returns the previous
    /// one.
    pub(super) fn set_priority(&mut self, priority: Priority) -> Priority {
        // A pending output keeps its class.
        self.use_verdict();
        std::mem::replace(&mut self.priority, priority)
    }

    fn enqueue(&mut self, port: PortNo, priority: Priority) {
        let before = self.set_priority(priority);
        match port {
            PortNo::IN_PORT => self.send(self.batch.context.in_port),
            port => self.output(port),
        }
        self.priority = before;
    }

    /// Applies the adjacent rewrites from operation `first` on. Returns the number of the next
    /// operation.
    fn rewrite(
        &mut self,
        frame: &mut Frame,
        rule: &'a Rule,
        ops: &[Op],
        first: usize,
        pool: &mut Pool,
    ) -> Result<usize, Interruption<'a>> {
        self.copy_before_rewrite(frame, pool)
            .map_err(Interruption::Drop)?;
        self.key_is_stale = true;
        let mut packet = self.parse(frame)?;
        let mut number = first;
        while let Some(Op::Rewrite(rewrite)) = ops.get(number) {
            match rewrite.apply(&mut packet) {
                Ok(()) => number += 1,
                Err(failure) => {
                    return Err(Interruption::Drop(self.rewrite_failed(rule, failure)));
                }
            }
        }
        Ok(number)
    }

    pub(super) fn parse<'f>(&self, frame: &'f mut Frame) -> Result<Packet<'f>, Interruption<'a>> {
        let packet = Packet::parse(frame, self.batch.ingress.depth);
        packet.map_err(|reason| Interruption::Drop(DropReason::Malformed(reason)))
    }

    /// Starts a resubmission, with the operations after it pending. Returns its table. A
    /// resubmission to the same or an earlier table is the interpreter's, which limits their
    /// number.
    fn resubmit(
        &mut self,
        rule: &'a Rule,
        number: usize,
        table: TableId,
        is_last: bool,
    ) -> Result<TableId, Interruption<'a>> {
        let is_supported = table > rule.table() && self.lookups < LOOKUPS_MAX;
        if !is_supported || self.nesting == RESUBMITS_MAX {
            return Err(Interruption::SlowPath(
                SlowPathReason::Resubmit,
                stop_at(rule, number),
            ));
        }
        self.resubmit_stack[self.nesting] = Some(pipeline::PendingRule {
            rule,
            actions_done: number + 1,
        });
        self.finished = self.finished & !(1 << self.nesting) | u32::from(is_last) << self.nesting;
        self.nesting += 1;
        Ok(table)
    }

    /// Applies a meter. A meter that does not exist passes all packets.
    pub(super) fn apply_meter(
        &mut self,
        frame: &mut Frame,
        meter: MeterId,
        pool: &mut Pool,
    ) -> Result<(), Interruption<'a>> {
        match self.meter_outcome(meter) {
            MeterDecision::Pass => Ok(()),
            MeterDecision::Drop => Err(Interruption::Drop(DropReason::Metered)),
            MeterDecision::Remark(levels) => self.remark(frame, levels, pool),
        }
    }

    fn meter_outcome(&self, meter: MeterId) -> MeterDecision {
        let (context, writer) = (self.batch.context, self.batch.memory.writer);
        let outcome = context
            .pipeline
            .submit_to_meter(meter, writer, self.weight, context.now);
        outcome.unwrap_or(MeterDecision::Pass)
    }

    /// Raises the drop precedence of an IP packet.
    fn remark(
        &mut self,
        frame: &mut Frame,
        levels: u8,
        pool: &mut Pool,
    ) -> Result<(), Interruption<'a>> {
        let packet = self.parse(frame)?;
        let tos = match &packet.headers().network {
            Network::Ipv4(ip) => Some(ip.tos),
            Network::Ipv6(ip) => Some(ip.traffic_class),
            _ => None,
        };
        if let Some(dscp) = tos.and_then(|tos| raise_drop_precedence(tos >> 2, levels)) {
            self.copy_before_rewrite(frame, pool)
                .map_err(Interruption::Drop)?;
            self.key_is_stale = true;
            self.parse(frame)?.set_ip_dscp(dscp);
        }
        Ok(())
    }

    /// Sends a packet-in; the table-miss rule does so only if the port allows it (OF 1.3.5, 7.2.1:
    /// `OFPPC_NO_PACKET_IN`).
    fn report(&mut self, rule: &'a Rule, max_len: MaxLen) {
        let (cause, is_allowed) = match rule.is_table_miss() {
            true => (Cause::MissRule, self.batch.reports_misses()),
            false => (Cause::Action, true),
        };
        let sent = match is_allowed {
            true => self.send_packet_in(cause, rule.table(), Some(rule), Some(max_len)),
            false => Err(DropReason::NoPacketIn),
        };
        if let Err(reason) = sent {
            self.drop(reason);
        }
    }

    /// Returns the drop reason of a failed rewrite. An expired TTL is reported to controllers,
    /// which may answer the sender (OF 1.3.5, 5.12).
    pub(super) fn rewrite_failed(&mut self, rule: &Rule, failure: RewriteFailure) -> DropReason {
        match failure {
            RewriteFailure::Dropped(reason) => return reason,
            RewriteFailure::TtlExpired => {}
        }
        let sent = self.send_packet_in(Cause::InvalidTtl, rule.table(), Some(rule), None);
        if let Err(reason) = sent {
            self.drop(reason);
        }
        DropReason::InvalidTtl
    }

    /// Sends a packet-in, if the meter of the controllers passes it.
    pub(super) fn send_packet_in(
        &mut self,
        cause: Cause,
        table: TableId,
        rule: Option<&Rule>,
        max_len: Option<MaxLen>,
    ) -> Result<(), DropReason> {
        match self.meter_outcome(MeterId::CONTROLLER) {
            MeterDecision::Pass => {}
            MeterDecision::Drop | MeterDecision::Remark(_) => {
                return Err(DropReason::ControllerMetered);
            }
        }
        // A packet without a rule has the same cookie as in the interpreter.
        let cookie = rule.map_or(base::Cookie(0), |rule| rule.cookie);
        let meta = PacketInMeta {
            cause,
            table,
            cookie,
            registers: self.store_pipeline_fields().clone(),
            controller: 0,
            userdata: Vec::new(),
            continuation: None,
            max_len,
        };
        self.send_to(Destination::Controller(Box::new(meta)));
        Ok(())
    }

    /// Sends a sample to the collectors of the action with this number.
    fn sample(&mut self, rule: &Rule, number: usize) {
        let action = rule.instructions.apply.get(number);
        if let Some(Action::Extended(Extension::Sample(sample))) = action {
            self.send_to(Destination::Collectors(Box::new(*sample)));
        }
    }

    pub(super) fn update_action_set(&mut self, update: ActionSetUpdate, write: &'a [Action]) {
        if let Some(port) = update.apply(&mut self.action_set, write) {
            self.key().set_action_set_output(port);
        }
    }

    pub(super) fn write_field(&mut self, write: FieldWrite) {
        self.key().write(write);
    }

    /// The key of the packet, to write pipeline fields.
    pub(super) fn key(&mut self) -> &mut PackedKey {
        let memory = &mut *self.batch.memory;
        memory.written.insert(BatchMask::single(self.key_index));
        &mut memory.keys[self.key_index]
    }

    pub(super) fn execute_action_set(&mut self) {
        match self.action_set.and_then(output_port) {
            None => {}
            Some(PortNo::IN_PORT) => self.send(self.batch.context.in_port),
            Some(port) => self.output(port),
        }
    }

    /// Outputs to a port. Only `IN_PORT` sends to the ingress port, so that a mistake makes no
    /// loop.
    #[inline]
    fn output(&mut self, port: PortNo) {
        if port == self.batch.context.in_port {
            self.drop(DropReason::OutputToIngress);
        } else {
            self.send(port);
        }
    }

    #[inline]
    fn send(&mut self, port: PortNo) {
        match self.batch.egress.check(port) {
            EgressCheck::Allowed if !self.uses_verdict && self.pending_output.is_none() => {
                self.is_output = true;
                self.pending_output = Some(port);
            }
            EgressCheck::Allowed => self.send_to(Destination::Port(port)),
            EgressCheck::Denied(reason) => self.drop(reason),
        }
    }

    /// Sends to all ports that `accepts` holds for, except the ingress port and, from a protected
    /// port, other protected ports.
    fn send_to_ports(&mut self, accepts: fn(&PortView) -> bool) {
        let (in_port, pipeline) = (self.batch.context.in_port, self.batch.context.pipeline);
        let is_protected = pipeline.is_protected(in_port);
        for (port, view) in pipeline.ports() {
            if self.uses_verdict && self.batch.memory.verdict.is_over_limit {
                break;
            }
            if port != in_port && accepts(&view) && !(is_protected && view.is_protected) {
                self.send_to(Destination::Port(port));
            }
        }
    }

    /// Adds an output of the current state of the frame to the verdict.
    pub(super) fn send_to(&mut self, to: Destination) {
        self.use_verdict();
        self.is_output = true;
        let verdict = &mut self.batch.memory.verdict;
        let frame = verdict.frames.len();
        verdict.push_egress(Egress {
            priority: self.priority,
            ..Egress::new(frame, to)
        });
    }

    /// Before a rewrite: if the current state of the frame is to be sent, a copy is.
    pub(super) fn copy_before_rewrite(
        &mut self,
        frame: &Frame,
        pool: &mut Pool,
    ) -> Result<(), DropReason> {
        if self.is_output {
            self.use_verdict();
            let copy = pool.duplicate(frame).ok_or(DropReason::NoBuffer)?;
            self.batch.memory.verdict.frames.push(copy);
            self.is_output = false;
        }
        Ok(())
    }

    pub(super) fn drop(&mut self, reason: DropReason) {
        self.use_verdict();
        self.batch.memory.verdict.push_drop(reason);
    }
}

/// The point after the meter of a rule and before the action with this number.
pub(super) const fn stop_at(rule: &Rule, number: usize) -> ResumeAt<'_> {
    ResumeAt::Rule {
        rule,
        metered: true,
        actions_done: number,
    }
}
