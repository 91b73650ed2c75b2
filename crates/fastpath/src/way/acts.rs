//! What the steps of a rule do to a frame, and to what goes with it.

use base::{MeterId, PortNo, Priority, TableId};
use flow::{Action, Extension, MaxLen};
use packet::{Frame, Network, Packet, Pool};
use pipeline::{
    Cause, Destination, DropReason, Egress, MeterDecision, PacketInMeta, PortView, ResumeAt, Rule,
    raise_drop_precedence,
};

use super::{End, LOOKUPS, RESUBMITS_DEEP, Way};
use crate::change::Unmade;
use crate::doors::Door;
use crate::lanes::{Lanes, Write};
use crate::places::Places;
use crate::steps::{Set, SlowPathReason, Step, Steps, port_of};

impl<'a> Way<'_, 'a> {
    /// Does the steps from the one at `first` on. Answers in which table the frame is to
    /// be looked up before the others are done, if it is.
    pub(super) fn apply(
        &mut self,
        frame: &mut Frame,
        rule: &'a Rule,
        of_rule: &Steps,
        first: usize,
        pool: &mut Pool,
    ) -> Result<Option<TableId>, End<'a>> {
        let (steps, mut at) = (&*of_rule.steps, first);
        while let Some(step) = steps.get(at) {
            match *step {
                Step::Output(_) | Step::InPort | Step::Normal | Step::Flood | Step::All => {
                    self.send_by(step);
                }
                Step::Enqueue(..) | Step::Queue(_) => self.send_by(step),
                Step::Report(max_len) => self.report(rule, max_len),
                Step::Sample => self.sample(rule, at),
                Step::Group(group) => self.group(frame, rule, (at, group), pool)?,
                Step::Meter(meter) => self.submit_to_meter(frame, meter, pool)?,
                Step::Resubmit(table) => {
                    let is_last = of_rule.ends_with(at);
                    return self.resubmit(rule, at, table, is_last).map(Some);
                }
                Step::Change(_) => {
                    at = self.change(frame, rule, steps, at, pool)?;
                    continue;
                }
                Step::Write(write) => self.write(write),
                Step::Copy { from, to } => self.lanes().copy(from, to),
                Step::Nothing => {}
                Step::Hand(reason) => return Err(End::Handed(reason, at_action(rule, at))),
            }
            at += 1;
        }
        Ok(None)
    }

    /// Sends the frame by a step that does no more than that.
    #[inline]
    pub(super) fn send_by(&mut self, step: &Step) {
        match *step {
            Step::Output(port) => self.output(port),
            Step::InPort => self.send(self.batch.ground.in_port),
            Step::Normal => self.promise(Destination::Normal),
            Step::Flood => self.spread(PortView::floods),
            Step::All => self.spread(PortView::forwards),
            Step::Enqueue(port, priority) => self.enqueue(port, priority),
            Step::Queue(priority) => drop(self.set_priority(priority)),
            _ => {}
        }
    }

    /// From now on the frame is for this class of a port's queueing discipline. Answers for
    /// which it was.
    pub(super) fn set_priority(&mut self, priority: Priority) -> Priority {
        // Where it goes already, it goes as it was for.
        self.tell();
        std::mem::replace(&mut self.priority, priority)
    }

    fn enqueue(&mut self, port: PortNo, priority: Priority) {
        let before = self.set_priority(priority);
        match port {
            PortNo::IN_PORT => self.send(self.batch.ground.in_port),
            port => self.output(port),
        }
        self.priority = before;
    }

    /// Makes all changes from the step at `first` on that stand one behind the other, and
    /// answers which step is the next.
    fn change(
        &mut self,
        frame: &mut Frame,
        rule: &'a Rule,
        steps: &[Step],
        first: usize,
        pool: &mut Pool,
    ) -> Result<usize, End<'a>> {
        self.keep(frame, pool).map_err(End::Lost)?;
        self.frame_is_stale = true;
        let mut packet = self.read(frame)?;
        let mut at = first;
        while let Some(Step::Change(change)) = steps.get(at) {
            match change.make(&mut packet) {
                Ok(()) => at += 1,
                Err(unmade) => return Err(End::Lost(self.unmade(rule, unmade))),
            }
        }
        Ok(at)
    }

    pub(super) fn read<'f>(&self, frame: &'f mut Frame) -> Result<Packet<'f>, End<'a>> {
        let packet = Packet::parse(frame, self.batch.depth);
        packet.map_err(|reason| End::Lost(DropReason::Malformed(reason)))
    }

    /// Notes what is behind a resubmission, and answers where it leads. Those that lead
    /// to no later table are the interpreter's, who knows how many there may be.
    fn resubmit(
        &mut self,
        rule: &'a Rule,
        at: usize,
        table: TableId,
        is_last: bool,
    ) -> Result<TableId, End<'a>> {
        let is_usual = table > rule.table() && self.lookups < LOOKUPS;
        if !is_usual || self.nesting == RESUBMITS_DEEP {
            return Err(End::Handed(SlowPathReason::Resubmit, at_action(rule, at)));
        }
        let done = at + 1;
        self.batch.behind[self.nesting] = Some(pipeline::PendingRule {
            rule,
            actions_done: done,
        });
        self.idle = self.idle & !(1 << self.nesting) | u32::from(is_last) << self.nesting;
        self.nesting += 1;
        Ok(table)
    }

    /// Submits the frame to a meter. One that is not there lets it pass.
    pub(super) fn submit_to_meter(
        &mut self,
        frame: &mut Frame,
        meter: MeterId,
        pool: &mut Pool,
    ) -> Result<(), End<'a>> {
        match self.metered(meter) {
            MeterDecision::Pass => Ok(()),
            MeterDecision::Drop => Err(End::Lost(DropReason::Metered)),
            MeterDecision::Remark(levels) => self.remark(frame, levels, pool),
        }
    }

    fn metered(&self, meter: MeterId) -> MeterDecision {
        let (ground, writer) = (self.batch.ground, self.batch.runner.writer);
        let outcome = ground
            .pipeline
            .submit_to_meter(meter, writer, self.weight, ground.now);
        outcome.unwrap_or(MeterDecision::Pass)
    }

    /// Raises the frame's drop precedence, if it has one.
    fn remark(&mut self, frame: &mut Frame, levels: u8, pool: &mut Pool) -> Result<(), End<'a>> {
        let packet = self.read(frame)?;
        let tos = match &packet.headers().network {
            Network::Ipv4(ip) => Some(ip.tos),
            Network::Ipv6(ip) => Some(ip.traffic_class),
            _ => None,
        };
        if let Some(dscp) = tos.and_then(|tos| raise_drop_precedence(tos >> 2, levels)) {
            self.keep(frame, pool).map_err(End::Lost)?;
            self.frame_is_stale = true;
            self.read(frame)?.set_ip_dscp(dscp);
        }
        Ok(())
    }

    /// To the controllers; by the table-miss rule only if the port allows it
    /// (OF 1.3.5, 7.2.1: `OFPPC_NO_PACKET_IN`).
    fn report(&mut self, rule: &'a Rule, max_len: MaxLen) {
        let (cause, allowed) = match rule.is_table_miss() {
            true => (Cause::MissRule, self.batch.reports_misses()),
            false => (Cause::Action, true),
        };
        let told = match allowed {
            true => self.tell_controllers(cause, rule.table(), Some(rule), Some(max_len)),
            false => Err(DropReason::NoPacketIn),
        };
        if let Err(reason) = told {
            self.drop(reason);
        }
    }

    /// Why the frame is lost, of which a change could not be made. If its TTL is over, the
    /// controllers may want to answer the sender (OF 1.3.5, 5.12).
    pub(super) fn unmade(&mut self, rule: &Rule, unmade: Unmade) -> DropReason {
        match unmade {
            Unmade::Lost(reason) => return reason,
            Unmade::Expired => {}
        }
        let told = self.tell_controllers(Cause::InvalidTtl, rule.table(), Some(rule), None);
        if let Err(reason) = told {
            self.drop(reason);
        }
        DropReason::InvalidTtl
    }

    /// The frame goes to the controllers, if their meter lets it.
    pub(super) fn tell_controllers(
        &mut self,
        cause: Cause,
        table: TableId,
        rule: Option<&Rule>,
        max_len: Option<MaxLen>,
    ) -> Result<(), DropReason> {
        match self.metered(MeterId::CONTROLLER) {
            MeterDecision::Pass => {}
            MeterDecision::Drop | MeterDecision::Remark(_) => {
                return Err(DropReason::ControllerMetered);
            }
        }
        let meta = PacketInMeta {
            cause,
            table,
            cookie: rule.map_or(base::Cookie::NONE, |rule| rule.cookie),
            registers: self.tell_registers().clone(),
            controller: 0,
            userdata: Vec::new(),
            continuation: None,
            max_len,
        };
        self.promise(Destination::Controller(Box::new(meta)));
        Ok(())
    }

    /// Steps stand in the places of their actions.
    fn sample(&mut self, rule: &Rule, at: usize) {
        if let Some(Action::Extended(Extension::Sample(sample))) = rule.instructions.apply.get(at) {
            self.promise(Destination::Collectors(Box::new(*sample)));
        }
    }

    pub(super) fn write_set(&mut self, set: Set, write: &'a [Action]) {
        if let Some(port) = set.put(&mut self.set, write) {
            self.lanes().put_set_output(port);
        }
    }

    pub(super) fn write(&mut self, write: Write) {
        self.lanes().write(write);
    }

    /// The words of the frame, for what goes with it to be written there.
    fn lanes(&mut self) -> &mut Lanes {
        let runner = &mut *self.batch.runner;
        runner.written.add(Places::of(self.place));
        &mut runner.lanes[self.place]
    }

    pub(super) fn execute_set(&mut self) {
        match self.set.and_then(port_of) {
            None => {}
            Some(PortNo::IN_PORT) => self.send(self.batch.ground.in_port),
            Some(port) => self.output(port),
        }
    }

    /// The only way back is `IN_PORT`, so that a mistake makes no loop.
    #[inline]
    fn output(&mut self, port: PortNo) {
        if port == self.batch.ground.in_port {
            self.drop(DropReason::OutputToIngress);
        } else {
            self.send(port);
        }
    }

    #[inline]
    fn send(&mut self, port: PortNo) {
        match self.batch.doors.door(port) {
            Door::Open if !self.told && self.pending.is_none() => {
                self.promised = true;
                self.pending = Some(port);
            }
            Door::Open => self.promise(Destination::Port(port)),
            Door::Closed(reason) => self.drop(reason),
        }
    }

    fn spread(&mut self, takes: fn(&PortView) -> bool) {
        let (from, pipeline) = (self.batch.ground.in_port, self.batch.ground.pipeline);
        let is_protected = pipeline.is_protected(from);
        for (port, view) in pipeline.ports() {
            if port != from && takes(&view) && !(is_protected && view.is_protected) {
                self.promise(Destination::Port(port));
            }
        }
    }

    pub(super) fn promise(&mut self, to: Destination) {
        self.tell();
        self.promised = true;
        let verdict = &mut self.batch.runner.verdict;
        let frame = verdict.frames.len();
        verdict.egress.push(Egress {
            priority: self.priority,
            ..Egress::new(frame, to)
        });
    }

    /// Before a change: if the frame is to leave as it is now, a copy of it will.
    pub(super) fn keep(&mut self, frame: &Frame, pool: &mut Pool) -> Result<(), DropReason> {
        if self.promised {
            self.tell();
            let copy = pool.duplicate(frame).ok_or(DropReason::NoBuffer)?;
            self.batch.runner.verdict.frames.push(copy);
            self.promised = false;
        }
        Ok(())
    }

    pub(super) fn drop(&mut self, reason: DropReason) {
        self.tell();
        self.batch.runner.verdict.drops.push(reason);
    }
}

/// Behind the rule's meter, before the action of this place.
pub(super) const fn at_action(rule: &Rule, place: usize) -> ResumeAt<'_> {
    ResumeAt::Rule {
        rule,
        metered: true,
        actions_done: place,
    }
}
