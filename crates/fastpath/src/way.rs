//! One frame's way through the tables: what it finds is done, step by step, until it
//! ends or comes to what only the interpreter does.
//!
//! Most frames leave by one port as they came. Of those no verdict is written; it is
//! as soon as there is more to tell. What a step does stands in `acts`.

use base::{PortNo, Priority, TableId};
use flow::{Action, PipelineFields};
use packet::{Frame, Pool};
use pipeline::{
    BUCKETS_PER_FRAME_MAX, Cause, Destination, DropReason, InputFrame, LookupTables, MissPolicy,
    PendingRule, ResumeAt, ResumeState, Rule, Totals,
};

use crate::ahead::Ahead;
use crate::classifier::ViewLookup;
use crate::runner::{BatchRun, FrameOutcome, Runner, Seen, fresh};
use crate::steps::{SlowPathReason, Steps};

mod acts;
mod groups;

/// How deep resubmissions may lie in one another. Beyond that it is the interpreter who
/// comes back to the rules that they stand in.
pub(crate) const RESUBMITS_DEEP: usize = u32::BITS as usize;

/// How many lookups a frame may have. Beyond that it is the interpreter who counts, and
/// says when they are too many.
const LOOKUPS: usize = 1024;

/// Why a way ends before its end.
enum End<'a> {
    /// Nothing more is done with the frame.
    Lost(DropReason),
    /// The interpreter goes on.
    Handed(SlowPathReason, ResumeAt<'a>),
}

/// A frame's way.
pub(crate) struct Way<'b, 'a> {
    batch: &'b mut BatchRun<'a>,
    /// Which frame it is.
    index: usize,
    /// Where its words are.
    place: usize,
    /// What it counts for: itself, as it came.
    weight: Totals,
    /// What was written into its action set: an output, if anything.
    set: Option<&'a Action>,
    /// How many lookups there were beyond the first.
    lookups: usize,
    /// How many buckets of groups may still be looked at.
    buckets_left: u32,
    /// How many resubmissions we are in; of each, the batch has what is behind it.
    nesting: usize,
    /// Behind which of them there is nothing, a bit for each.
    idle: u32,
    /// Whether it is to leave in the state it has now.
    promised: bool,
    /// Which class of a port's queueing discipline it is for.
    priority: Priority,
    /// Where to, if there is nothing else to tell yet.
    pending: Option<PortNo>,
    /// Whether the verdict is this frame's.
    told: bool,
    /// Whether the words do not fit the frame any more.
    frame_is_stale: bool,
    /// Whether what goes with it was put into registers.
    told_registers: bool,
}

/// Where a way goes on.
enum Leg<'a> {
    /// With what this table says.
    Table(TableId, Seen<'a>),
    /// Behind so many steps of a rule.
    Rule(&'a Rule, usize),
    /// Behind all that a rule does.
    Nowhere,
}

impl<'b, 'a> Way<'b, 'a> {
    /// That of the frame at `index`, on from where it was taken to ahead.
    #[inline]
    pub(crate) fn new(batch: &'b mut BatchRun<'a>, index: usize, place: usize) -> Self {
        let ahead = &batch.ahead[place];
        let (weight, set, lookups) = (ahead.weight, ahead.set, ahead.lookups.into());
        let nesting = usize::from(ahead.resubmits);
        if let Some(resubmitted) = &batch.resubmitted {
            let rules = resubmitted[place].iter().take(nesting);
            for (behind, rule) in batch.behind.iter_mut().zip(rules) {
                *behind = rule.map(|rule| PendingRule {
                    rule,
                    actions_done: rule.instructions.apply.len(),
                });
            }
        }
        Self {
            batch,
            index,
            place,
            weight,
            set,
            lookups,
            buckets_left: BUCKETS_PER_FRAME_MAX,
            nesting,
            idle: (1 << nesting) - 1,
            promised: false,
            priority: Priority::NONE,
            pending: None,
            told: false,
            frame_is_stale: false,
            told_registers: false,
        }
    }

    /// Goes it, from what that table says.
    pub(crate) fn go(mut self, pool: &mut Pool) -> FrameOutcome<'b> {
        let Ahead { table, seen, .. } = self.batch.ahead[self.place];
        let mut frame = std::mem::take(&mut self.batch.frames[self.index]);
        self.priority = frame.priority;
        match self.walk(&mut frame, Leg::Table(table, seen), pool) {
            Ok(()) => self.finish(frame, pool),
            Err(End::Lost(reason)) => {
                self.drop(reason);
                self.finish(frame, pool)
            }
            Err(End::Handed(reason, stop)) => self.hand(frame, reason, stop, pool),
        }
    }

    /// Through the tables, and back to what is behind resubmissions.
    fn walk(
        &mut self,
        frame: &mut Frame,
        mut leg: Leg<'a>,
        pool: &mut Pool,
    ) -> Result<(), End<'a>> {
        if let Leg::Table(_, Seen::Standalone) = leg {
            self.promise(Destination::Normal);
            return Ok(());
        }
        loop {
            let done = self.traverse(frame, leg, pool);
            if self.nesting == 0 {
                return match done? {
                    None => {
                        self.execute_set();
                        Ok(())
                    }
                    Some(table) => self.missed(table),
                };
            }
            match done {
                // Ends what the resubmission led to, and no more.
                Err(End::Lost(DropReason::InvalidTtl)) => self.drop(DropReason::InvalidTtl),
                Err(end) => return Err(end),
                // A miss is not reported: whoever resubmits asks whether there is a rule.
                Ok(_) => {}
            }
            leg = match self.come_back() {
                Some(behind) => Leg::Rule(behind.rule, behind.actions_done),
                None => Leg::Nowhere,
            };
        }
    }

    /// What is behind the innermost resubmission that we are in and behind which there is
    /// anything; we are in it no more, nor in those within it.
    fn come_back(&mut self) -> Option<PendingRule<'a>> {
        let deep = u32::try_from(self.nesting).expect("they are few");
        let busy = !self.idle & u32::MAX.checked_shr(u32::BITS - deep)?;
        self.nesting = busy.checked_ilog2().map_or(0, |last| last as usize);
        if busy == 0 {
            return None;
        }
        self.batch.behind[self.nesting]
    }

    /// Goes on to where no rule leads any more. Answers the table in which the frame found
    /// none, if that is why.
    fn traverse(
        &mut self,
        frame: &mut Frame,
        leg: Leg<'a>,
        pool: &mut Pool,
    ) -> Result<Option<TableId>, End<'a>> {
        let (mut table, mut rule, mut done) = match leg {
            Leg::Table(table, seen) => (table, self.arrive(table, seen)?, 0),
            Leg::Rule(rule, done) => (rule.table(), Some(rule), done),
            Leg::Nowhere => return Ok(None),
        };
        while let Some(found) = rule {
            match self.follow(frame, found, done, pool)? {
                Some(next) => table = next,
                None => return Ok(None),
            }
            let seen = self.look_up(frame, table);
            (rule, done) = (self.arrive(table, seen)?, 0);
        }
        Ok(Some(table))
    }

    /// Counts what a table says: the rule that the frame finds, or that there is none.
    #[inline]
    fn arrive(&mut self, table: TableId, seen: Seen<'a>) -> Result<Option<&'a Rule>, End<'a>> {
        match seen {
            Seen::Found(Some(rule)) => {
                self.batch.count(table, rule, self.weight);
                Ok(Some(rule))
            }
            Seen::Found(None) => {
                let tables = &mut self.batch.runner.tables;
                tables.looked_up(table, self.weight);
                tables.missed(table, self.weight);
                Ok(None)
            }
            Seen::Refused(reason) => Err(End::Lost(reason)),
            Seen::Unknown(reason) => Err(End::Handed(reason, ResumeAt::Table(table))),
            Seen::Standalone => Ok(None),
        }
    }

    fn look_up(&mut self, frame: &Frame, table: TableId) -> Seen<'a> {
        self.lookups += 1;
        if std::mem::take(&mut self.frame_is_stale)
            && let Err(reason) = self.batch.reread(self.place, frame)
        {
            return Seen::Refused(reason);
        }
        self.batch.find(self.place, table)
    }

    /// Does what a rule says, from the step at `done` on, and answers where to go on
    /// (OF 1.3.5, 5.9).
    fn follow(
        &mut self,
        frame: &mut Frame,
        rule: &'a Rule,
        done: usize,
        pool: &mut Pool,
    ) -> Result<Option<TableId>, End<'a>> {
        let Some(steps) = rule.instructions.compiled::<Steps>() else {
            let metered = done > 0;
            let stop = ResumeAt::Rule {
                rule,
                metered,
                actions_done: done,
            };
            return Err(End::Handed(SlowPathReason::Action, stop));
        };
        if let Some(meter) = steps.meter.filter(|_| done == 0) {
            self.submit_to_meter(frame, meter, pool)?;
        }
        if let Some(table) = self.apply(frame, rule, steps, done, pool)? {
            return Ok(Some(table));
        }
        self.write_set(steps.set, &rule.instructions.write);
        if let Some(write) = steps.metadata {
            self.write(write);
        }
        Ok(steps.goto)
    }

    fn missed(&mut self, table: TableId) -> Result<(), End<'a>> {
        let lost = |reason| Err(End::Lost(reason));
        match self.batch.ground.pipeline.miss_policy() {
            MissPolicy::Drop => lost(DropReason::NoMatch),
            MissPolicy::Controller if !self.batch.reports_misses() => lost(DropReason::NoPacketIn),
            MissPolicy::Controller => {
                let told = self.tell_controllers(Cause::Miss, table, None, None);
                told.map_err(End::Lost)
            }
        }
    }

    /// Makes the verdict this frame's, and puts down in it what is to be told so far.
    fn tell(&mut self) {
        let verdict = &mut self.batch.runner.verdict;
        if !self.told {
            self.told = true;
            verdict.frames.clear();
            verdict.egress.clear();
            verdict.drops.clear();
            verdict.learn_requests.clear();
        }
        if let Some(port) = self.pending.take() {
            let to = Destination::Port(port);
            verdict.egress.push(pipeline::Egress {
                priority: self.priority,
                ..pipeline::Egress::new(0, to)
            });
        }
    }

    /// Nothing more is to be done.
    #[inline]
    fn finish(mut self, frame: Frame, pool: &mut Pool) -> FrameOutcome<'b> {
        if self.told_registers {
            self.batch.runner.registers = fresh(self.batch.ground.in_port, self.batch.arrival);
        }
        if let Some(port) = self.pending {
            let place = &mut self.batch.frames[self.index];
            *place = frame;
            return FrameOutcome::Forward(std::slice::from_mut(place), port);
        }
        self.tell();
        let verdict = &mut self.batch.runner.verdict;
        if !verdict.has_result() {
            verdict.drops.push(DropReason::NoOutput);
        }
        match self.promised {
            true => verdict.frames.push(frame),
            false => pool.put(frame),
        }
        FrameOutcome::Verdict(verdict)
    }

    /// The interpreter does the rest.
    fn hand(
        mut self,
        frame: Frame,
        reason: SlowPathReason,
        stop: ResumeAt<'a>,
        pool: &mut Pool,
    ) -> FrameOutcome<'b> {
        self.tell();
        self.tell_registers();
        let batch = self.batch;
        let runner: &'b mut Runner = batch.runner;
        let ground = batch.ground;
        let registers =
            std::mem::replace(&mut runner.registers, fresh(ground.in_port, batch.arrival));
        let handover = ResumeState {
            weight: self.weight,
            registers,
            action_set: self.set,
            egress_pending: self.promised,
            priority: self.priority,
            lookups: self.lookups,
            buckets_left: self.buckets_left,
            pending: &batch.behind[..self.nesting],
            at: stop,
        };
        runner.count_handed(reason);
        let tables = LookupTables {
            pipeline: ground.pipeline,
            lookup: &ViewLookup::new(ground.view, &runner.scratch),
        };
        let arrival = InputFrame {
            frame,
            in_port: ground.in_port,
            now: ground.now,
        };
        let verdict = &mut runner.verdict;
        runner
            .interpreter
            .resume_slow_path(tables, arrival, handover, pool, &mut (), verdict);
        FrameOutcome::Verdict(verdict)
    }

    /// Puts what was written that goes with the frame into registers, for those who ask for
    /// more than words.
    fn tell_registers(&mut self) -> &PipelineFields {
        let runner = &mut *self.batch.runner;
        if runner.written.have(self.place) {
            self.told_registers = true;
            runner.lanes[self.place].tell(&mut runner.registers);
        }
        &runner.registers
    }
}
