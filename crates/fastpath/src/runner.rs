//! Runs frames through compiled tables and compiled actions, a batch at a time: the
//! frames are read and looked up in the first table some at a time, so that one need
//! not wait for the memory of another, and then go their ways one after the other.
//!
//! A frame that comes to what is not compiled is handed to the interpreter, which goes
//! on where it is: nothing is done twice, and the reason is counted. What becomes of
//! a frame is what the interpreter would make of it.

use std::collections::VecDeque;
use std::sync::Arc;

use base::{Instant, PortNo, TableId};
use flow::{FragmentHandling, Registers};
use packet::wire::Fragment;
use packet::{Depth, Frame, Headers, MacAddr, Pool};
use pipeline::{DropReason, Interpreter, Pipeline, PortView, Rule, Verdict};

use crate::classifier::{ByClauses, Scratch, Uncompiled, View};
use crate::doors::Doors;
use crate::lanes::{Lanes, Uncommon};
use crate::steps::Reason;
use crate::tally::{TableTally, Tally};
use crate::way::Way;

/// Frames that are read before the first of them goes its way. Their words take half of
/// a first-level cache of 32 kB at most, and more than some ten are no use: a core has no
/// more loads in flight.
const AHEAD: usize = 32;

/// What the frames of a batch have in common.
#[derive(Clone, Copy, Debug)]
pub struct Ground<'a> {
    /// The tables.
    pub pipeline: &'a Pipeline,
    /// The same, compiled.
    pub view: &'a View,
    /// The port by which they came in.
    pub from: PortNo,
    /// When.
    pub now: Instant,
}

/// What becomes of a frame.
#[derive(Debug)]
pub enum Fate<'a> {
    /// It leaves as it is by this port, which is there and may send; that is all.
    Leaves(Frame, PortNo),
    /// What the verdict says.
    Told(&'a mut Verdict),
}

/// A worker's memory, which serves batch after batch.
#[derive(Debug)]
pub struct Runner {
    pub(crate) writer: usize,
    pub(crate) interpreter: Interpreter,
    /// What the interpreter's lookups need.
    pub(crate) scratch: Scratch,
    frames: VecDeque<Frame>,
    /// The words of the frames that were read ahead.
    lanes: Box<[Lanes]>,
    /// What goes with the frame at hand; always that of a fresh one in between.
    pub(crate) registers: Registers,
    pub(crate) verdict: Verdict,
    pub(crate) tables: TableTally,
    handed: [u64; Reason::ALL.len()],
}

impl Runner {
    /// One that counts as `writer`, as an [`Interpreter`] does.
    #[must_use]
    pub fn new(writer: usize) -> Self {
        Self {
            writer,
            interpreter: Interpreter::new(writer),
            scratch: Scratch::new(),
            frames: VecDeque::with_capacity(2 * AHEAD),
            lanes: (0..AHEAD).map(|_| Lanes::new()).collect(),
            registers: Registers::new(PortNo::ANY),
            verdict: Verdict::new(),
            tables: TableTally::new(),
            handed: [0; Reason::ALL.len()],
        }
    }

    /// Begins a batch of frames. What was left of the one before is forgotten.
    pub fn begin<'a>(
        &'a mut self,
        ground: Ground<'a>,
        frames: impl Iterator<Item = Frame>,
    ) -> Batch<'a> {
        self.frames.clear();
        self.frames.extend(frames);
        self.registers = Registers::new(ground.from);
        let standalone = ground.pipeline.standalone();
        Batch {
            tally: Tally::new(self.writer, ground.now),
            doors: Doors::new(ground.pipeline),
            depth: match standalone {
                true => Depth::Link,
                false => ground.pipeline.depth(),
            },
            standalone,
            ingress: ground.pipeline.port(ground.from),
            ahead: [Seen::Found(None); AHEAD],
            seen: 0..0,
            runner: self,
            ground,
        }
    }

    /// How many frames were handed to the interpreter since this was asked last, by the
    /// number of the [`Reason`].
    pub fn handed(&mut self) -> [u64; Reason::ALL.len()] {
        std::mem::take(&mut self.handed)
    }

    pub(crate) const fn count_handed(&mut self, reason: Reason) {
        self.handed[reason as usize] += 1;
    }
}

/// What a look at a frame has come to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Seen<'a> {
    /// The rule that it finds, if there is one.
    Found(Option<&'a Arc<Rule>>),
    /// The interpreter must look.
    Unknown(Reason),
    /// It goes where an ordinary switch would send it, whatever the tables hold.
    Standalone,
    /// It goes no further.
    Refused(DropReason),
}

/// Frames on their way. What they count for is written down when this goes.
#[derive(Debug)]
pub struct Batch<'a> {
    pub(crate) runner: &'a mut Runner,
    pub(crate) ground: Ground<'a>,
    pub(crate) tally: Tally<'a>,
    pub(crate) doors: Doors<'a>,
    pub(crate) depth: Depth,
    pub(crate) standalone: bool,
    ingress: Option<PortView>,
    /// What the first table says to the frames that were read ahead.
    ahead: [Seen<'a>; AHEAD],
    /// Which of them are left.
    seen: std::ops::Range<usize>,
}

impl<'a> Batch<'a> {
    /// What becomes of the next frame; none if there is none.
    #[inline]
    pub fn next(&mut self, pool: &mut Pool) -> Option<Fate<'_>> {
        if self.seen.is_empty() {
            self.look_ahead();
        }
        let place = self.seen.next()?;
        let frame = self.runner.frames.pop_front()?;
        let seen = self.ahead[place];
        Some(Way::new(self, place, &frame).go(frame, seen, pool))
    }

    /// Reads some frames, and looks each up in the first table.
    fn look_ahead(&mut self) {
        let count = self.runner.frames.len().min(AHEAD);
        for place in 0..count {
            self.ahead[place] = self.look(place);
        }
        self.seen = 0..count;
    }

    /// Reads the frame in this place of those that wait, and looks it up.
    #[inline]
    fn look(&mut self, place: usize) -> Seen<'a> {
        let frame = &self.runner.frames[place];
        let lanes = &mut self.runner.lanes[place];
        let arrived = match read(lanes, frame, self.ground, self.depth) {
            Ok(arrived) => arrived,
            Err(reason) => return Seen::Refused(reason),
        };
        let open = |port: PortView| port.receives(arrived.dst);
        if !self.ingress.is_some_and(open) {
            return Seen::Refused(DropReason::IngressClosed);
        }
        if self.standalone {
            return Seen::Standalone;
        }
        if arrived.is_fragment && self.ground.pipeline.fragments() == FragmentHandling::Drop {
            return Seen::Refused(DropReason::Fragment);
        }
        self.refill(place);
        self.find(place, TableId::FIRST)
    }

    /// Reads a frame again that has changed; its words are in that place.
    pub(crate) fn reread(&mut self, place: usize, frame: &Frame) -> Result<(), DropReason> {
        read(
            &mut self.runner.lanes[place],
            frame,
            self.ground,
            self.depth,
        )?;
        self.refill(place);
        Ok(())
    }

    /// Puts what goes with the frame at hand among the words in that place.
    pub(crate) fn refill(&mut self, place: usize) {
        let lanes = &mut self.runner.lanes[place];
        lanes.fill_beside(self.ground.view.parts(), &self.runner.registers);
    }

    /// What a table says to the words in that place.
    #[inline]
    pub(crate) fn find(&self, place: usize, table: TableId) -> Seen<'a> {
        let view = self.ground.view;
        let Some(table) = view.table(table) else {
            return Seen::Found(None);
        };
        match table.uncompiled {
            None => Seen::Found(view.look_up(table, &self.runner.lanes[place])),
            Some(Uncompiled::Conjunctions) => {
                match view.look_up_clauses(table, &self.runner.lanes[place]) {
                    ByClauses::Rule(found) => Seen::Found(found),
                    ByClauses::Conjunction(..) | ByClauses::TooMany => {
                        Seen::Unknown(Reason::Conjunction)
                    }
                }
            }
            Some(Uncompiled::Outside) => Seen::Unknown(Reason::Uncompiled),
        }
    }
}

/// What must be known of a frame before it is looked up.
struct Arrived {
    dst: MacAddr,
    is_fragment: bool,
}

/// Reads the words of a frame, but for what goes with it.
#[inline]
fn read(
    lanes: &mut Lanes,
    frame: &Frame,
    ground: Ground<'_>,
    depth: Depth,
) -> Result<Arrived, DropReason> {
    match lanes.read(frame, ground.from, depth) {
        Ok(()) => Ok(Arrived {
            dst: lanes.eth_dst(),
            is_fragment: false,
        }),
        Err(Uncommon) => read_uncommon(lanes, frame, ground, depth),
    }
}

fn read_uncommon(
    lanes: &mut Lanes,
    frame: &Frame,
    ground: Ground<'_>,
    depth: Depth,
) -> Result<Arrived, DropReason> {
    let headers = Headers::parse(frame, depth).map_err(DropReason::Malformed)?;
    lanes.fill_frame(&headers, ground.from);
    Ok(Arrived {
        dst: headers.link.dst,
        is_fragment: !matches!(headers.fragment(), None | Some(Fragment::No)),
    })
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        self.tally
            .settle(&mut self.runner.tables, self.ground.pipeline);
    }
}
