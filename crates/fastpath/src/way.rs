//! One frame's way through the tables: what it finds is done, step by step, until it
//! ends or comes to what only the interpreter does.
//!
//! Most frames leave by one port as they came. Of those no verdict is written; it is
//! as soon as there is more to tell.

use std::sync::Arc;

use base::{PortNo, TableId};
use flow::{Action, MetadataWrite, Registers};
use packet::{Frame, Packet, Pool};
use pipeline::{
    Arrival, Destination, DropReason, Egress, Handover, MissPolicy, PortView, Rule, Stop, Tables,
    Totals,
};

use crate::change::Unmade;
use crate::classifier::Looker;
use crate::doors::Door;
use crate::runner::{Batch, Fate, Runner, Seen};
use crate::steps::{Reason, Set, Step, Steps};

/// Why a way ends before its end.
enum End<'a> {
    /// Nothing more is done with the frame.
    Lost(DropReason),
    /// The interpreter goes on.
    Handed(Reason, Stop<'a>),
}

/// A frame's way.
pub(crate) struct Way<'b, 'a> {
    batch: &'b mut Batch<'a>,
    /// Which frame it is.
    index: usize,
    /// Where its words are.
    place: usize,
    /// What it counts for: itself, as it came.
    weight: Totals,
    /// What was written into its action set: an output, if anything.
    set: Option<&'a Action>,
    /// Whether it is to leave in the state it has now.
    promised: bool,
    /// Where to, if there is nothing else to tell yet.
    pending: Option<PortNo>,
    /// Whether the verdict is this frame's.
    told: bool,
    /// Whether the words do not fit the frame any more, or what goes with it.
    frame_is_stale: bool,
    registers_are_stale: bool,
    /// Whether something was written into what goes with it.
    registers_are_written: bool,
}

impl<'b, 'a> Way<'b, 'a> {
    #[inline]
    pub(crate) fn new(
        batch: &'b mut Batch<'a>,
        index: usize,
        place: usize,
        weight: Totals,
    ) -> Self {
        Self {
            batch,
            index,
            place,
            weight,
            set: None,
            promised: false,
            pending: None,
            told: false,
            frame_is_stale: false,
            registers_are_stale: false,
            registers_are_written: false,
        }
    }

    /// Goes it, from what this table says.
    pub(crate) fn go(mut self, table: TableId, seen: Seen<'a>, pool: &mut Pool) -> Fate<'b> {
        let mut frame = std::mem::take(&mut self.batch.frames[self.index]);
        match self.walk(&mut frame, table, seen, pool) {
            Ok(()) => self.finish(frame, pool),
            Err(End::Lost(reason)) => {
                self.drop(reason);
                self.finish(frame, pool)
            }
            Err(End::Handed(reason, stop)) => self.hand(frame, reason, stop, pool),
        }
    }

    fn walk(
        &mut self,
        frame: &mut Frame,
        mut table: TableId,
        mut seen: Seen<'a>,
        pool: &mut Pool,
    ) -> Result<(), End<'a>> {
        loop {
            let found = match seen {
                Seen::Found(found) => found,
                Seen::Standalone => {
                    self.promise(Destination::Normal);
                    return Ok(());
                }
                Seen::Refused(reason) => return Err(End::Lost(reason)),
                Seen::Unknown(reason) => return Err(End::Handed(reason, Stop::Table(table))),
            };
            let Some(rule) = found else {
                return Err(self.missed(table));
            };
            self.batch.count(table, rule, self.weight);
            match self.follow(frame, rule, pool)? {
                Some(next) => {
                    table = next;
                    seen = self.look_up(frame, table);
                }
                None => {
                    self.execute_set();
                    return Ok(());
                }
            }
        }
    }

    fn look_up(&mut self, frame: &Frame, table: TableId) -> Seen<'a> {
        if self.frame_is_stale {
            if let Err(reason) = self.batch.reread(self.place, frame) {
                return Seen::Refused(reason);
            }
        } else if self.registers_are_stale {
            self.batch.refill(self.place);
        }
        (self.frame_is_stale, self.registers_are_stale) = (false, false);
        self.batch.find(self.place, table)
    }

    fn missed(&mut self, table: TableId) -> End<'a> {
        let tables = &mut self.batch.runner.tables;
        tables.looked_up(table, self.weight);
        tables.missed(table, self.weight);
        match self.batch.ground.pipeline.miss() {
            MissPolicy::Drop => End::Lost(DropReason::NoMatch),
            MissPolicy::Controller => End::Handed(Reason::Miss, Stop::Missed(table)),
        }
    }

    /// Does what a rule says, and answers where to go on (OF 1.3.5, 5.9).
    #[inline]
    fn follow(
        &mut self,
        frame: &mut Frame,
        rule: &'a Arc<Rule>,
        pool: &mut Pool,
    ) -> Result<Option<TableId>, End<'a>> {
        let at_its_beginning = |reason| {
            let (metered, done) = (false, 0);
            let stop = Stop::Rule {
                rule,
                metered,
                done,
            };
            End::Handed(reason, stop)
        };
        let Some(steps) = rule.instructions.compiled::<Steps>() else {
            return Err(at_its_beginning(Reason::Action));
        };
        if steps.metered {
            return Err(at_its_beginning(Reason::Meter));
        }
        self.apply(frame, rule, &steps.steps, pool)?;
        self.write_set(steps.set, &rule.instructions.write);
        if let Some(write) = steps.metadata {
            self.write_metadata(write);
        }
        Ok(steps.goto)
    }

    fn apply(
        &mut self,
        frame: &mut Frame,
        rule: &'a Rule,
        steps: &[Step],
        pool: &mut Pool,
    ) -> Result<(), End<'a>> {
        let mut at = 0;
        while let Some(step) = steps.get(at) {
            match *step {
                Step::Output(port) => self.output(port),
                Step::InPort => self.send(self.batch.ground.from),
                Step::Normal => self.promise(Destination::Normal),
                Step::Flood => self.spread(PortView::floods),
                Step::All => self.spread(PortView::forwards),
                Step::Change(_) => {
                    at = self.change(frame, rule, steps, at, pool)?;
                    continue;
                }
                Step::Register {
                    number,
                    value,
                    mask,
                } => {
                    let general = &mut self.registers().general;
                    let register = &mut general[usize::from(number)];
                    *register = *register & !mask | value & mask;
                }
                Step::Metadata(write) => self.write_metadata(write),
                Step::Nothing => {}
                Step::Hand(reason) => return Err(End::Handed(reason, at_action(rule, at))),
            }
            at += 1;
        }
        Ok(())
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
        self.keep(frame, pool)?;
        self.frame_is_stale = true;
        let packet = Packet::read(frame, self.batch.depth);
        let mut packet = packet.map_err(|reason| End::Lost(DropReason::Malformed(reason)))?;
        let mut at = first;
        while let Some(Step::Change(change)) = steps.get(at) {
            match change.make(&mut packet) {
                Ok(()) => at += 1,
                Err(Unmade::Expired) => {
                    return Err(End::Handed(Reason::TtlExpired, at_action(rule, at)));
                }
                Err(Unmade::Lost(reason)) => return Err(End::Lost(reason)),
            }
        }
        Ok(at)
    }

    fn write_set(&mut self, set: Set, write: &'a [Action]) {
        match set {
            Set::Kept => return,
            Set::Emptied => self.set = None,
            Set::Output | Set::OnlyOutput => self.set = write.last(),
        }
        let port = self.set.and_then(port_of).unwrap_or(PortNo::UNSET);
        self.registers().set_output = port;
    }

    fn write_metadata(&mut self, write: MetadataWrite) {
        let metadata = &mut self.registers().metadata;
        *metadata = *metadata & !write.mask | write.value & write.mask;
    }

    /// What goes with the frame, to be written.
    fn registers(&mut self) -> &mut Registers {
        self.registers_are_stale = true;
        self.registers_are_written = true;
        &mut self.batch.runner.registers
    }

    fn execute_set(&mut self) {
        match self.set.and_then(port_of) {
            None => {}
            Some(PortNo::IN_PORT) => self.send(self.batch.ground.from),
            Some(port) => self.output(port),
        }
    }

    /// The only way back is `IN_PORT`, so that a mistake makes no loop.
    #[inline]
    fn output(&mut self, port: PortNo) {
        if port == self.batch.ground.from {
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
            Door::Closed => self.drop(DropReason::OutputClosed),
            Door::Missing => self.drop(DropReason::OutputNoPort),
        }
    }

    fn spread(&mut self, takes: fn(&PortView) -> bool) {
        let from = self.batch.ground.from;
        for (port, view) in self.batch.ground.pipeline.ports() {
            if port != from && takes(&view) {
                self.promise(Destination::Port(port));
            }
        }
    }

    fn promise(&mut self, to: Destination) {
        self.tell();
        self.promised = true;
        let verdict = &mut self.batch.runner.verdict;
        let frame = verdict.frames.len();
        verdict.egress.push(Egress { frame, to });
    }

    /// Before a change: if the frame is to leave as it is now, a copy of it will.
    fn keep(&mut self, frame: &Frame, pool: &mut Pool) -> Result<(), End<'a>> {
        if self.promised {
            self.tell();
            let copy = pool.duplicate(frame);
            let copy = copy.ok_or(End::Lost(DropReason::NoBuffer))?;
            self.batch.runner.verdict.frames.push(copy);
            self.promised = false;
        }
        Ok(())
    }

    fn drop(&mut self, reason: DropReason) {
        self.tell();
        self.batch.runner.verdict.drops.push(reason);
    }

    /// Makes the verdict this frame's, and puts down in it what is to be told so far.
    fn tell(&mut self) {
        let verdict = &mut self.batch.runner.verdict;
        if !self.told {
            self.told = true;
            verdict.frames.clear();
            verdict.egress.clear();
            verdict.drops.clear();
            verdict.learned.clear();
        }
        if let Some(port) = self.pending.take() {
            let to = Destination::Port(port);
            verdict.egress.push(Egress { frame: 0, to });
        }
    }

    /// Nothing more is to be done.
    #[inline]
    fn finish(mut self, frame: Frame, pool: &mut Pool) -> Fate<'b> {
        if self.registers_are_written {
            self.forget_registers();
        }
        if let Some(port) = self.pending {
            let place = &mut self.batch.frames[self.index];
            *place = frame;
            return Fate::Leaves(place, port);
        }
        self.tell();
        let verdict = &mut self.batch.runner.verdict;
        if verdict.egress.is_empty() && verdict.drops.is_empty() {
            verdict.drops.push(DropReason::NoOutput);
        }
        match self.promised {
            true => verdict.frames.push(frame),
            false => pool.put(frame),
        }
        Fate::Told(verdict)
    }

    /// The interpreter does the rest.
    fn hand(mut self, frame: Frame, reason: Reason, stop: Stop<'a>, pool: &mut Pool) -> Fate<'b> {
        self.tell();
        let handover = Handover {
            weight: self.weight,
            registers: self.batch.runner.registers.clone(),
            set: self.set,
            promised: self.promised,
            stop,
        };
        self.forget_registers();
        let ground = self.batch.ground;
        let runner: &'b mut Runner = self.batch.runner;
        runner.count_handed(reason);
        let tables = Tables {
            pipeline: ground.pipeline,
            lookup: &Looker::new(ground.view, &runner.scratch),
        };
        let arrival = Arrival {
            frame,
            from: ground.from,
            now: ground.now,
        };
        let verdict = &mut runner.verdict;
        runner
            .interpreter
            .take_over(tables, arrival, handover, pool, &mut (), verdict);
        Fate::Told(verdict)
    }

    fn forget_registers(&mut self) {
        self.batch.runner.registers = Registers::new(self.batch.ground.from);
    }
}

/// Behind the rule's meter, before the action of this place.
const fn at_action(rule: &Rule, place: usize) -> Stop<'_> {
    Stop::Rule {
        rule,
        metered: true,
        done: place,
    }
}

/// Where an action of an action set sends the frame.
const fn port_of(action: &Action) -> Option<PortNo> {
    match action {
        Action::Output { port, .. } => Some(*port),
        _ => None,
    }
}
