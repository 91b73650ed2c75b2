//! Runs frames through compiled tables and compiled actions, a batch at a time: the
//! frames are read and looked up in the first table some at a time, so that one need
//! not wait for the memory of another, and then go their ways one after the other.
//!
//! A frame that comes to what is not compiled is handed to the interpreter, which goes
//! on where it is: nothing is done twice, and the reason is counted. What becomes of
//! a frame is what the interpreter would make of it.

use std::ops::Range;
use std::slice;

use base::{Instant, PortNo, TableId};
use flow::{FlowKey, FragmentHandling, PipelineFields};
use packet::wire::Fragment;
use packet::{Depth, Frame, Headers, Pool};
use pipeline::{
    DropReason, InputFrame, Interpreter, LookupTables, PendingRule, Pipeline, PortView, Rule,
    Totals, Trace, Verdict,
};

use crate::ahead::{AHEAD, Ahead, RESUBMITS_AHEAD};
use crate::classifier::{ByClauses, LookupScratch, Sole, TableView, Uncompiled, View, ViewLookup};
use crate::doors::Doors;
use crate::lanes::{Lanes, Uncommon};
use crate::places::Places;
use crate::steps::SlowPathReason;
use crate::tally::{TableTally, Tally};
use crate::trail::{Followed, Trails};
use crate::trunk::Trunk;
use crate::way::{RESUBMITS_DEEP, Way};

/// What the frames of a batch have in common.
#[derive(Clone, Copy, Debug)]
pub struct BatchContext<'a> {
    /// The tables.
    pub pipeline: &'a Pipeline,
    /// The same, compiled.
    pub view: &'a View,
    /// The port by which they came in.
    pub in_port: PortNo,
    /// When.
    pub now: Instant,
}

/// What becomes of a frame, or of several.
#[derive(Debug)]
pub enum FrameOutcome<'a> {
    /// It and those right behind it, as many as are here, leave as they are by this port,
    /// which is there and may send; that is all. Whoever sends them takes them from where they
    /// are.
    Forward(&'a mut [Frame], PortNo),
    /// What the verdict says of one frame.
    Verdict(&'a mut Verdict),
}

/// A worker's memory, which serves batch after batch.
#[derive(Debug)]
pub struct Runner {
    pub(crate) writer: usize,
    pub(crate) interpreter: Interpreter,
    /// What the interpreter's lookups need.
    pub(crate) scratch: LookupScratch,
    /// The words of the frames that were read ahead.
    pub(crate) lanes: Box<[Lanes; AHEAD]>,
    /// The fields of a frame, for groups that choose by them.
    pub(crate) key: Box<FlowKey>,
    /// Those of them in which is written what goes with a frame.
    pub(crate) written: Places,
    /// What goes with the frame at hand, for those who ask for more than words; always that
    /// of a fresh one in between.
    pub(crate) registers: PipelineFields,
    pub(crate) verdict: Verdict,
    pub(crate) tables: TableTally,
    pub(crate) trails: Trails,
    handed: [u64; SlowPathReason::ALL.len()],
}

impl Runner {
    /// One that counts as `writer`, as an [`Interpreter`] does.
    #[must_use]
    pub fn new(writer: usize) -> Self {
        Self {
            writer,
            interpreter: Interpreter::new(writer),
            scratch: LookupScratch::new(),
            key: Box::new(FlowKey::new()),
            lanes: Box::new(std::array::from_fn(|_| Lanes::fresh())),
            written: Places::NONE,
            registers: PipelineFields::new(PortNo::ANY),
            verdict: Verdict::new(),
            tables: TableTally::new(),
            trails: Trails::new(writer),
            handed: [0; SlowPathReason::ALL.len()],
        }
    }

    /// One that remembers the ways of frames from the first batch on, whether that is of
    /// use or not, for those who ask whether it makes a difference.
    #[must_use]
    pub fn with_flow_cache(writer: usize) -> Self {
        let mut runner = Self::new(writer);
        runner.trails.always();
        runner
    }

    /// Begins a batch of frames, which stay where they are until they have gone their way.
    pub fn begin<'a>(
        &'a mut self,
        ground: BatchContext<'a>,
        frames: &'a mut [Frame],
    ) -> BatchRun<'a> {
        self.begin_with_registers(ground, None, frames)
    }

    /// The same, of frames with which this goes when they come in: what a tunnel tells of
    /// them. Nothing is written yet into what rules write.
    pub fn begin_with_registers<'a>(
        &'a mut self,
        ground: BatchContext<'a>,
        arrival: Option<&'a PipelineFields>,
        frames: &'a mut [Frame],
    ) -> BatchRun<'a> {
        self.registers = fresh(ground.in_port, arrival);
        if let Some(arrival) = arrival {
            self.lanes
                .iter_mut()
                .for_each(|lanes| lanes.arrive(arrival));
        }
        self.trails.begin(ground.view, ground.pipeline, ground.now);
        let (pipeline, ingress) = (ground.pipeline, ground.pipeline.port(ground.in_port));
        let standalone = pipeline.is_standalone();
        let trunk = match standalone {
            true => Trunk::none(),
            false => Trunk::of(ground.view, ground.in_port, &mut self.lanes[0]),
        };
        BatchRun {
            tally: Tally::new(self.writer, ground.now),
            doors: Doors::new(pipeline, ground.in_port),
            depth: match standalone {
                true => Depth::Link,
                false => pipeline.depth(),
            },
            is_guarded: standalone
                || pipeline.fragments() == FragmentHandling::Drop
                || !ingress.is_some_and(|port| port.receives_all()),
            ingress,
            ahead: [Ahead::NOWHERE; AHEAD],
            with_set: Places::NONE,
            followed: None,
            resubmitted: None,
            trunk,
            rest: 0..frames.len(),
            arrival,
            seen: 0,
            early: None,
            due: 0,
            frames,
            behind: [None; RESUBMITS_DEEP],
            runner: self,
            ground,
        }
    }

    /// Has the interpreter tell what becomes of one frame, with which this goes when it comes
    /// in, and each step of its way. To be asked between two batches.
    pub fn run_traced(
        &mut self,
        ground: BatchContext<'_>,
        arrival: &PipelineFields,
        frame: Frame,
        pool: &mut Pool,
        trace: &mut dyn Trace,
    ) -> &mut Verdict {
        self.count_handed(SlowPathReason::Traced);
        let tables = LookupTables {
            pipeline: ground.pipeline,
            lookup: &ViewLookup::new(ground.view, &self.scratch),
        };
        let registers = fresh(ground.in_port, Some(arrival));
        let arrival = InputFrame {
            frame,
            in_port: ground.in_port,
            now: ground.now,
        };
        let verdict = &mut self.verdict;
        self.interpreter
            .run_with_registers(tables, arrival, registers, pool, trace, verdict);
        &mut self.verdict
    }

    /// Writes down what frames have counted of which that is not done yet: for those that go
    /// the way of others it is put off, for some milliseconds at most while batches come.
    /// Whoever says that counts are final does so before, and whoever rests.
    #[inline]
    pub fn flush_stats(&mut self) {
        self.trails.settle();
    }

    /// Whether there is nothing of that kind.
    #[inline]
    #[must_use]
    pub fn has_pending_stats(&self) -> bool {
        !self.trails.have_settled()
    }

    /// How many frames were handed to the interpreter since this was asked last, by the
    /// number of the [`SlowPathReason`].
    pub fn take_slow_path_packets(&mut self) -> [u64; SlowPathReason::ALL.len()] {
        std::mem::take(&mut self.handed)
    }

    pub(crate) const fn count_handed(&mut self, reason: SlowPathReason) {
        self.handed[reason as usize] += 1;
    }
}

/// What a look at a frame has come to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Seen<'a> {
    /// The rule that it finds, if there is one.
    Found(Option<&'a Rule>),
    /// The interpreter must look.
    Unknown(SlowPathReason),
    /// It goes where an ordinary switch would send it, whatever the tables hold.
    Standalone,
    /// It goes no further.
    Refused(DropReason),
}

/// Frames on their way. What they count for is written down when this goes.
#[derive(Debug)]
pub struct BatchRun<'a> {
    pub(crate) runner: &'a mut Runner,
    pub(crate) ground: BatchContext<'a>,
    /// What goes with all of them when they come in, if that is anything but nothing.
    pub(crate) arrival: Option<&'a PipelineFields>,
    pub(crate) tally: Tally<'a>,
    pub(crate) doors: Doors<'a>,
    pub(crate) depth: Depth,
    /// Whether frames may be told what becomes of them before any lookup.
    pub(crate) is_guarded: bool,
    pub(crate) ingress: Option<PortView>,
    /// The way that is the same for all of them.
    pub(crate) trunk: Trunk<'a>,
    /// How far those have come that were read ahead.
    pub(crate) ahead: [Ahead<'a>; AHEAD],
    /// Of which of them something was written into the action set.
    pub(crate) with_set: Places,
    /// Those of them whose ways are noted.
    pub(crate) followed: Option<Followed<'a>>,
    /// The rules by which they were resubmitted, behind each of which there is nothing. As
    /// long as none was, no memory need be written for that.
    pub(crate) resubmitted: Option<[[Option<&'a Rule>; RESUBMITS_AHEAD]; AHEAD]>,
    pub(crate) frames: &'a mut [Frame],
    /// What is behind the resubmissions that the frame at hand is in.
    pub(crate) behind: [Option<PendingRule<'a>>; RESUBMITS_DEEP],
    /// Those that have not gone their way.
    pub(crate) rest: Range<usize>,
    /// How many have been read.
    pub(crate) seen: usize,
    /// Up to this one the first leave by this port, and have not been told of.
    early: Option<(usize, PortNo)>,
    /// Before this one of the rest it is to be looked ahead, or told of those.
    due: usize,
}

impl<'a> BatchRun<'a> {
    /// What becomes of the next frame, and of those behind it that leave together with it;
    /// none if there is none.
    #[inline]
    pub fn next(&mut self, pool: &mut Pool) -> Option<FrameOutcome<'_>> {
        let index = self.rest.next()?;
        if index == self.due
            && let Some((end, port)) = self.look_on(index)
        {
            self.rest.start = end;
            return Some(FrameOutcome::Forward(&mut self.frames[index..end], port));
        }
        let place = index % AHEAD;
        if let Some(port) = self.ahead[place].leaves {
            return Some(FrameOutcome::Forward(
                slice::from_mut(&mut self.frames[index]),
                port,
            ));
        }
        Some(Way::new(self, index, place).go(pool))
    }

    /// Looks ahead of the next frame, where that is due. Answers how far frames leave together
    /// from there, and by which port, if they do.
    #[inline(never)]
    fn look_on(&mut self, index: usize) -> Option<(usize, PortNo)> {
        if let Some(early) = self.early.take() {
            self.due = self.seen;
            return Some(early);
        }
        self.look_ahead();
        self.due = self.seen;
        let port = self.leave_together(index)?;
        Some((self.seen, port))
    }

    /// The port by which all frames leave, if it is one and nothing else becomes of any: then
    /// none is left for [`BatchRun::next`]. To be asked first of all, before any frame goes its
    /// way: whoever sends them need not move them.
    #[inline]
    pub fn forward_all(&mut self) -> Option<PortNo> {
        debug_assert!(self.seen == 0, "before any goes its way");
        let mut all = None;
        while self.seen < self.frames.len() {
            let first = self.seen;
            self.look_ahead();
            let port = self.leave_together(first);
            if port.is_none() || all.is_some_and(|all| port != Some(all)) {
                self.early = all.map(|port| (first, port));
                self.due = if all.is_some() { 0 } else { self.seen };
                return None;
            }
            all = port;
        }
        self.rest.start = self.seen;
        all
    }

    /// The port by which all frames leave that were read ahead, if it is one. Of fewer than
    /// all it is not asked: where frames leave by several ports, to tell how many go on
    /// together costs more than it spares.
    #[inline]
    fn leave_together(&self, first: usize) -> Option<PortNo> {
        let port = self.ahead[0].leaves?;
        let mut others = self.ahead[1..self.seen - first].iter();
        others
            .all(|ahead| ahead.leaves == Some(port))
            .then_some(port)
    }

    /// Whether the port of arrival may cause packet-ins by misses.
    pub(crate) fn reports_misses(&self) -> bool {
        self.ingress.is_none_or(|port| port.reports_misses())
    }

    /// Counts a frame that found a rule in a table.
    #[inline]
    pub(crate) fn count(&mut self, table: TableId, rule: &'a Rule, weight: Totals) {
        let tables = &mut self.runner.tables;
        self.tally.found(table, rule, weight, tables);
    }

    /// Reads a frame again that has changed; its words are in that place.
    pub(crate) fn reread(&mut self, place: usize, frame: &Frame) -> Result<(), DropReason> {
        let lanes = &mut self.runner.lanes[place];
        read(lanes, frame, self.ground, self.depth).map(|_| ())
    }

    /// What a table says to the words in that place.
    #[inline]
    pub(crate) fn find(&self, place: usize, table: TableId) -> Seen<'a> {
        let view = self.ground.view;
        let lanes = &self.runner.lanes[place];
        match view.table(table) {
            None => Seen::Found(None),
            Some(table) => match table.sole() {
                Sole::Direct(base, direct) => {
                    let rule = base.find_direct(direct, lanes, view.epoch());
                    Seen::Found(rule.map(AsRef::as_ref))
                }
                _ => look_up(view, Some(table), lanes),
            },
        }
    }
}

/// What a table says to words, if it has rules.
#[inline]
pub(crate) fn look_up<'a>(view: &View, table: Option<&'a TableView>, lanes: &Lanes) -> Seen<'a> {
    let Some(table) = table else {
        return Seen::Found(None);
    };
    match table.uncompiled {
        None => Seen::Found(view.look_up(table, lanes).map(AsRef::as_ref)),
        Some(Uncompiled::Conjunctions) => match view.look_up_clauses(table, lanes) {
            ByClauses::Rule(found) => Seen::Found(found.map(AsRef::as_ref)),
            ByClauses::Conjunction(..) | ByClauses::TooMany => {
                Seen::Unknown(SlowPathReason::Conjunction)
            }
        },
        Some(Uncompiled::Outside) => Seen::Unknown(SlowPathReason::Uncompiled),
    }
}

/// What goes with a frame that has just come in.
#[inline]
pub(crate) fn fresh(from: PortNo, arrival: Option<&PipelineFields>) -> PipelineFields {
    match arrival {
        None => PipelineFields::new(from),
        Some(arrival) => PipelineFields {
            in_port: from,
            ..arrival.clone()
        },
    }
}

/// What a frame counts for.
#[inline]
pub(crate) fn weight_of(frame: &Frame) -> Totals {
    Totals {
        packets: frame.wire_frames(),
        bytes: frame.wire_bytes(),
    }
}

/// Reads the words of a frame, but for what goes with it. Answers whether it is a fragment.
#[inline]
pub(crate) fn read(
    lanes: &mut Lanes,
    frame: &Frame,
    ground: BatchContext<'_>,
    depth: Depth,
) -> Result<bool, DropReason> {
    match lanes.read(frame, ground.in_port, depth) {
        Ok(()) => Ok(false),
        Err(Uncommon) => read_uncommon(lanes, frame, ground, depth),
    }
}

/// The same, of a frame that is none of the ordinary ones.
pub(crate) fn read_uncommon(
    lanes: &mut Lanes,
    frame: &Frame,
    ground: BatchContext<'_>,
    depth: Depth,
) -> Result<bool, DropReason> {
    let headers = Headers::parse(frame, depth).map_err(DropReason::Malformed)?;
    lanes.fill_frame(&headers, ground.in_port);
    Ok(!matches!(headers.fragment(), None | Some(Fragment::No)))
}

impl Drop for BatchRun<'_> {
    fn drop(&mut self) {
        let tables = &mut self.runner.tables;
        self.trunk.settle(tables, &mut self.tally);
        self.tally.settle(tables, self.ground.pipeline);
        if self.arrival.is_some() {
            let lanes = &mut self.runner.lanes;
            lanes.iter_mut().for_each(|lanes| *lanes = Lanes::fresh());
            self.runner.written = Places::NONE;
        }
    }
}
