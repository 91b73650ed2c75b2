//! Operations of action programs.

use base::{MeterId, PortNo, Priority, TableId};
use flow::{Action, Extension, Field, MaxLen, PipelineFields};
use packet::{Frame, Network, Packet, Pool};
use pipeline::{
    Cause, Destination, DropReason, Egress, MeterDecision, PacketInMeta, PortView, ResumeAt, Rule,
    raise_drop_precedence,
};

use super::turns::{cause_of, place_of};
use super::{Executor, Interruption};
use crate::action_program::{ActionProgram, ActionSetUpdate, Op, output_port, written_port};
use crate::batch_mask::BatchMask;
use crate::egress_cache::EgressCheck;
use crate::header_rewrite::RewriteFailure;
use crate::packed_key::{FieldWrite, PackedKey};
use crate::walk_cache::WalkEffect;

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
                Op::Controller(max_len) => self.report(rule, cause_of(rule), max_len),
                Op::Sample => self.sample(rule, number),
                Op::Group(group) => self.execute_group(frame, place_of(rule), group, pool)?,
                Op::Meter(meter) => self.apply_meter(frame, meter, pool)?,
                Op::Resubmit(table) => {
                    self.resubmit(rule, number, table, program.ends_with(number))?;
                    return Ok(Some(table));
                }
                Op::ResubmitFrom(port, table) => {
                    let table = table.unwrap_or_else(|| rule.table());
                    self.resubmit(rule, number, table, program.ends_with(number))?;
                    self.look_up_as(port);
                    return Ok(Some(table));
                }
                Op::Track(_) => {
                    if let Some(table) = self.track_last(frame, rule, program, number, pool)? {
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
                Op::Turn => {
                    number = self.execute_turns(frame, rule, (ops, number), pool)?;
                    continue;
                }
                ref other => self.execute_uncommon(frame, rule, (other, number), pool)?,
            }
            number += 1;
        }
        Ok(None)
    }

    /// Executes an operation that few rules have.
    #[inline(never)]
    fn execute_uncommon(
        &mut self,
        frame: &Frame,
        rule: &'a Rule,
        (op, number): (&Op, usize),
        pool: &mut Pool,
    ) -> Result<(), Interruption<'a>> {
        match *op {
            Op::Push(_) | Op::Pop(_) => self.move_on_stack(op),
            Op::SetInPort(port) => {
                self.set_in_port(port);
                Ok(())
            }
            Op::Clone => match rule.instructions.apply.get(number) {
                Some(Action::Extended(Extension::Clone(actions))) => {
                    self.execute_copy(frame, place_of(rule), actions, pool)
                }
                _ => Ok(()),
            },
            Op::Pause => Err(Interruption::Pause(stop_at(rule, number))),
            Op::Exit => Err(Interruption::Exit),
            Op::SlowPath(reason) => Err(Interruption::SlowPath(reason, stop_at(rule, number))),
            _ => Ok(()),
        }
    }

    /// Moves bits of a pipeline field to or from the stack.
    pub(super) fn move_on_stack(&mut self, op: &Op) -> Result<(), Interruption<'a>> {
        self.use_interpreter();
        match *op {
            Op::Push(from) => {
                let bits = match from.field() {
                    Field::InPort => self.in_port.0.into(),
                    Field::NxInPort => from.of(self.in_port.0.into()),
                    _ => self.key().written_bits(from),
                };
                let pushed = self.batch.memory.interpreter.push(bits);
                pushed.map_err(Interruption::Drop)
            }
            Op::Pop(to) => {
                if let Some(bits) = self.batch.memory.interpreter.pop() {
                    match written_port(to.field(), bits) {
                        Some(port) => self.set_in_port(port),
                        None => self.key().set_bits(to, bits),
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Changes the ingress port.
    pub(super) fn set_in_port(&mut self, port: PortNo) {
        self.record(|| WalkEffect::SetInPort(port));
        self.in_port = port;
        self.key().replace_in_port(port);
    }

    /// True if the ingress port may cause packet-ins by misses.
    pub(super) fn reports_misses(&self) -> bool {
        let context = self.batch.context;
        match self.in_port == context.in_port {
            true => self.batch.reports_misses(),
            false => context
                .pipeline
                .port(self.in_port)
                .is_none_or(|port| port.reports_misses()),
        }
    }

    /// Executes an operation that only outputs the frame or selects a queue.
    #[inline]
    pub(super) fn execute_output(&mut self, op: &Op) {
        match *op {
            Op::Output(port) => self.output(port),
            Op::InPort => self.send(self.in_port),
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
        self.give_up_recording();
        // A pending output keeps its class.
        self.use_verdict();
        std::mem::replace(&mut self.priority, priority)
    }

    fn enqueue(&mut self, port: PortNo, priority: Priority) {
        let before = self.set_priority(priority);
        match port {
            PortNo::IN_PORT => self.send(self.in_port),
            port => self.output(port),
        }
        self.priority = before;
    }

    /// Applies the adjacent rewrites from operation `first` on. Returns the number of the next
    /// operation.
    pub(super) fn rewrite(
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
                Ok(()) => {
                    number += 1;
                    if self.is_recording {
                        self.record_effect(WalkEffect::Rewrite(*rewrite));
                    }
                }
                Err(failure) => {
                    return Err(Interruption::Drop(self.rewrite_failed(rule, failure)));
                }
            }
        }
        self.is_malformed = packet.malformed().is_some();
        if self.is_malformed {
            self.give_up_recording();
        }
        Ok(number)
    }

    pub(super) fn parse<'f>(&self, frame: &'f mut Frame) -> Result<Packet<'f>, Interruption<'a>> {
        let depth = self.batch.ingress.depth;
        let packet = match self.is_malformed {
            false => Packet::parse(frame, depth),
            true => Packet::parse_leniently(frame, depth),
        };
        packet.map_err(|reason| Interruption::Drop(DropReason::Malformed(reason)))
    }

    /// Applies a meter. A meter that does not exist passes all packets.
    pub(super) fn apply_meter(
        &mut self,
        frame: &mut Frame,
        meter: MeterId,
        pool: &mut Pool,
    ) -> Result<(), Interruption<'a>> {
        self.give_up_recording();
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
    pub(super) fn report(&mut self, rule: &'a Rule, cause: Cause, max_len: MaxLen) {
        self.give_up_recording();
        let is_allowed = cause != Cause::MissRule || self.reports_misses();
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

    pub(super) fn update_action_set(
        &mut self,
        update: ActionSetUpdate,
        rule: &'a Rule,
    ) -> Result<(), Interruption<'a>> {
        let write = &rule.instructions.write;
        if self.holds_set || !update.is_plain() {
            return self.update_held_set(update, write);
        }
        if let Some(port) = update.apply(&mut self.action_set, write) {
            self.key().set_action_set_output(port);
        }
        Ok(())
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
            Some(PortNo::IN_PORT) => self.send(self.in_port),
            Some(port) => self.output(port),
        }
    }

    /// Outputs to a port. Only `IN_PORT` sends to the ingress port, so that a mistake makes no
    /// loop.
    #[inline]
    fn output(&mut self, port: PortNo) {
        if port == self.in_port {
            self.drop(DropReason::OutputToIngress);
        } else {
            self.send(port);
        }
    }

    #[inline]
    fn check_egress(&mut self, port: PortNo) -> EgressCheck {
        match self.in_port == self.batch.context.in_port {
            true => self.batch.egress.check(port),
            false => EgressCheck::of(self.batch.context.pipeline, self.in_port, port),
        }
    }

    #[inline]
    pub(super) fn send(&mut self, port: PortNo) {
        if self.is_recording {
            self.record_send(port);
        }
        match self.check_egress(port) {
            EgressCheck::Allowed if !self.uses_verdict && self.pending_output.is_none() => {
                self.is_output = true;
                self.pending_output = Some(port);
            }
            EgressCheck::Allowed => self.send_to(Destination::Port(port)),
            EgressCheck::Denied(reason) => self.push_drop(reason),
        }
    }

    /// Sends to all ports that `accepts` holds for, except the ingress port and, from a protected
    /// port, other protected ports.
    fn send_to_ports(&mut self, accepts: fn(&PortView) -> bool) {
        self.give_up_recording();
        let (in_port, pipeline) = (self.in_port, self.batch.context.pipeline);
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
        match to {
            Destination::Port(_) => {}
            Destination::Normal if !self.has_own_fields => self.record(|| WalkEffect::SendNormal),
            _ => self.give_up_recording(),
        }
        self.use_verdict();
        self.is_output = true;
        let verdict = &mut self.batch.memory.verdict;
        let frame = verdict.frames.len();
        let registers = match self.has_own_fields {
            true => self.fields_of_egress(&to),
            false => None,
        };
        let verdict = &mut self.batch.memory.verdict;
        verdict.push_egress(Egress {
            priority: self.priority,
            registers,
            ..Egress::new(frame, to)
        });
    }

    /// Pipeline fields of an output that may be one by a tunnel.
    #[inline(never)]
    pub(super) fn fields_of_egress(&mut self, to: &Destination) -> Option<Box<PipelineFields>> {
        let may_tunnel = self.batch.context.pipeline.may_tunnel(to);
        may_tunnel.then(|| Box::new(self.store_pipeline_fields().clone()))
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
        match reason {
            DropReason::OutputToIngress => self.record(|| WalkEffect::Drop(reason)),
            _ => self.give_up_recording(),
        }
        self.push_drop(reason);
    }

    /// Adds a drop that is not an effect of rules alone.
    pub(super) fn push_drop(&mut self, reason: DropReason) {
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
