//! Runner: takes batches of frames through compiled tables and action programs.
//!
//! The frames of a batch are looked up 32 at a time ([`batch_lookup`](crate::batch_lookup)), then
//! completed one after the other ([`exec`](crate::exec)). A frame that reaches what is not compiled
//! continues in the interpreter from there: nothing is done twice, and the reason is counted. The
//! outcome of a frame is always that of the interpreter.

use std::ops::Range;
use std::slice;

use base::PortNo;
use flow::{FragmentHandling, PipelineFields};
use packet::{Depth, Frame, Pool};
use pipeline::{InputFrame, LookupTables, Trace, Verdict};

use crate::action_program::SlowPathReason;
use crate::batch_lookup::{BatchLookup, PacketWalk, PacketWalks};
use crate::batch_mask::{BatchMask, LOOKUP_BATCH};
use crate::batch_state::{BatchContext, BatchIngress, BatchState, WorkerMemory, fields_at_ingress};
use crate::batch_stats::BatchStats;
use crate::classifier::ViewLookup;
use crate::egress_cache::EgressCache;
use crate::exec::{Executor, FrameOutcome, PENDING_MAX, ResubmitStack};
use crate::frame_progress::FrameProgress;
use crate::ingress_tables::IngressTables;

/// The compiled data path of one worker, with the memory that it uses for one batch after the
/// other.
#[derive(Debug)]
pub struct Runner {
    pub(crate) memory: WorkerMemory,
}

impl Runner {
    /// A runner that counts as `writer`, as an [`Interpreter`](pipeline::Interpreter) does.
    #[must_use]
    pub fn new(writer: usize) -> Self {
        Self {
            memory: WorkerMemory::new(writer),
        }
    }

    /// A runner that uses its flow cache from the first batch on, useful or not, for tests.
    #[must_use]
    pub fn with_flow_cache(writer: usize) -> Self {
        let mut runner = Self::new(writer);
        runner.memory.flow_cache.force();
        runner
    }

    /// A runner that uses its walk cache from the first batch on, useful or not, for tests.
    #[must_use]
    pub fn with_walk_cache(writer: usize) -> Self {
        let mut runner = Self::new(writer);
        runner.memory.walk_cache.force();
        runner
    }

    /// Limits the rules that are examined one by one for a walk, for tests: those of larger tables
    /// are examined together.
    pub const fn limit_examined_rules(&mut self, rules: usize) {
        self.memory.walk_cache.recorder.limit_examined(rules);
    }

    /// Begins a batch of frames. They stay in the slice until their outcome is returned.
    pub fn begin<'a>(
        &'a mut self,
        context: BatchContext<'a>,
        frames: &'a mut [Frame],
    ) -> BatchRun<'a> {
        self.begin_with_fields(context, None, frames)
    }

    /// Begins a batch of frames that have these pipeline fields at ingress: those of a tunnel. The
    /// fields that rules write must be unset.
    pub fn begin_with_fields<'a>(
        &'a mut self,
        context: BatchContext<'a>,
        ingress_fields: Option<&'a PipelineFields>,
        frames: &'a mut [Frame],
    ) -> BatchRun<'a> {
        let memory = &mut self.memory;
        memory.pipeline_fields = fields_at_ingress(context.in_port, ingress_fields);
        if let Some(fields) = ingress_fields {
            let keys = &mut memory.keys;
            keys.iter_mut()
                .for_each(|key| key.set_ingress_fields(fields));
        }
        memory
            .flow_cache
            .begin(context.view, context.pipeline, context.now);
        let (pipeline, port) = (context.pipeline, context.pipeline.port(context.in_port));
        let is_standalone = pipeline.is_standalone();
        let has_walks = memory.walk_cache.begin(
            context.view,
            pipeline,
            context.now,
            ingress_fields.is_none() && !is_standalone && pipeline.depth() == Depth::Transport,
        );
        let ingress_tables = match is_standalone || has_walks || pipeline.any_table_continues() {
            true => IngressTables::none(),
            false => IngressTables::of(context.view, context.in_port, &mut memory.keys[0]),
        };
        // One literal, so that no part is built elsewhere and copied.
        BatchRun {
            remaining: 0..frames.len(),
            parsed: 0,
            next_lookup: 0,
            common_egress: None,
            resubmit_stack: [None; PENDING_MAX],
            lookup: BatchLookup {
                state: BatchState {
                    stats: BatchStats::new(memory.writer, context.now),
                    egress: EgressCache::new(pipeline, context.in_port),
                    ingress: BatchIngress {
                        depth: match is_standalone {
                            true => Depth::Link,
                            false => pipeline.depth(),
                        },
                        is_filtered: is_standalone
                            || pipeline.fragments() == FragmentHandling::Drop
                            || pipeline.any_table_continues()
                            || !port.is_some_and(|port| port.receives_all()),
                        port,
                    },
                    ingress_fields,
                    frames,
                    memory,
                    context,
                },
                ingress_tables,
                first: 0,
                progress: [FrameProgress::START; LOOKUP_BATCH],
                with_action_set: BatchMask::EMPTY,
                recorder: None,
                resubmitted: None,
                walks: PacketWalks::NONE,
            },
        }
    }

    /// Runs one frame in the interpreter, which reports each step to `trace`. `ingress` holds its
    /// pipeline fields at ingress. Called between batches.
    pub fn run_traced(
        &mut self,
        context: BatchContext<'_>,
        ingress: &PipelineFields,
        frame: Frame,
        pool: &mut Pool,
        trace: &mut dyn Trace,
    ) -> &mut Verdict {
        let ingress = (ingress, SlowPathReason::Capture);
        self.run_in_interpreter(context, ingress, frame, pool, trace)
    }

    /// Runs one frame in the interpreter, since compiled tables do not match its pipeline fields at
    /// ingress ([`PipelineFields::need_interpreter`]). Called between batches.
    pub fn run_uncompiled(
        &mut self,
        context: BatchContext<'_>,
        ingress: &PipelineFields,
        frame: Frame,
        pool: &mut Pool,
    ) -> &mut Verdict {
        self.run_in_interpreter(
            context,
            (ingress, SlowPathReason::Uncompiled),
            frame,
            pool,
            &mut (),
        )
    }

    fn run_in_interpreter(
        &mut self,
        context: BatchContext<'_>,
        (ingress, reason): (&PipelineFields, SlowPathReason),
        frame: Frame,
        pool: &mut Pool,
        trace: &mut dyn Trace,
    ) -> &mut Verdict {
        let memory = &mut self.memory;
        memory.count_slow_path(reason);
        let tables = LookupTables {
            pipeline: context.pipeline,
            lookup: &ViewLookup::new(context.view, &memory.scratch),
        };
        let fields = fields_at_ingress(context.in_port, Some(ingress));
        let arrival = InputFrame {
            frame,
            in_port: context.in_port,
            now: context.now,
        };
        let verdict = &mut memory.verdict;
        memory
            .interpreter
            .run_with_registers(tables, arrival, fields, pool, trace, verdict);
        verdict
    }

    /// Adds all pending statistics to the counters. Hits of the flow cache are counted with a
    /// delay, some milliseconds at most while batches arrive. Called before exact counts are
    /// required, and before the worker sleeps.
    #[inline]
    pub fn flush_stats(&mut self) {
        self.memory.flow_cache.flush_stats();
        self.memory.walk_cache.flush_stats();
    }

    /// True if statistics are pending.
    #[inline]
    #[must_use]
    pub fn has_pending_stats(&self) -> bool {
        self.memory.flow_cache.has_pending_stats() || self.memory.walk_cache.has_pending_stats()
    }

    /// Returns the number of packets that the interpreter has handled since the last call, by
    /// [`SlowPathReason`].
    pub fn take_slow_path_packets(&mut self) -> [u64; SlowPathReason::ALL.len()] {
        std::mem::take(&mut self.memory.slow_path_packets)
    }

    /// Returns the number of packets that have hit the walk cache so far.
    #[inline]
    #[must_use]
    pub const fn walk_cache_hits(&self) -> u64 {
        self.memory.walk_cache.hits()
    }

    /// Returns the number of lookups that have hit the flow cache so far.
    #[inline]
    #[must_use]
    pub const fn flow_cache_hits(&self) -> u64 {
        self.memory.flow_cache.hits()
    }
}

/// A batch in progress. Statistics are added to the counters when it is dropped.
#[derive(Debug)]
pub struct BatchRun<'a> {
    lookup: BatchLookup<'a>,
    resubmit_stack: ResubmitStack<'a>,
    /// Frames whose outcome was not returned.
    remaining: Range<usize>,
    /// Number of frames that were parsed and looked up.
    parsed: usize,
    /// Frame before which the next frames must be looked up, or `common_egress` applied.
    next_lookup: usize,
    /// The first so many frames leave by this port; their outcome was not returned.
    common_egress: Option<(usize, PortNo)>,
}

impl BatchRun<'_> {
    /// Returns the outcome of the next frame, or of several that leave by the same port, or `None`
    /// after the last frame.
    #[inline]
    pub fn next(&mut self, pool: &mut Pool) -> Option<FrameOutcome<'_>> {
        let index = self.remaining.next()?;
        if index == self.next_lookup
            && let Some((end, port)) = self.look_up_next(index)
        {
            self.remaining.start = end;
            let frames = &mut self.lookup.state.frames[index..end];
            return Some(FrameOutcome::Forward(frames, port));
        }
        let key_index = index % LOOKUP_BATCH;
        let progress = &self.lookup.progress[key_index];
        if let Some(port) = progress.egress {
            let frame = slice::from_mut(&mut self.lookup.state.frames[index]);
            return Some(FrameOutcome::Forward(frame, port));
        }
        let walk = self.lookup.walks.of(key_index);
        let resubmitted = self.lookup.resubmitted.as_ref();
        let executor = Executor::new(
            &mut self.lookup.state,
            &mut self.resubmit_stack,
            (index, key_index),
            progress,
            resubmitted.map(|rules| &rules[key_index]),
        );
        Some(match walk {
            PacketWalk::None => executor.run(progress.table, progress.result, pool),
            PacketWalk::Cached(walk) => executor.run_walk(walk, pool),
            PacketWalk::Recorded => executor.run_recorded(pool),
        })
    }

    /// Looks up the next frames. Returns the end of the frames from `index` that leave together,
    /// and their port, if they do.
    #[inline(never)]
    fn look_up_next(&mut self, index: usize) -> Option<(usize, PortNo)> {
        if let Some(common) = self.common_egress.take() {
            self.next_lookup = self.parsed;
            return Some(common);
        }
        self.parsed = self.lookup.look_up_frames(self.parsed);
        self.next_lookup = self.parsed;
        let port = self.common_port(index)?;
        Some((self.parsed, port))
    }

    /// Returns the port if all frames leave as they are by the same port and nothing else is to be
    /// done; [`BatchRun::next`] returns `None` then. Called before any other method, so that the
    /// caller can send the frames without moving them.
    #[inline]
    pub fn forward_all(&mut self) -> Option<PortNo> {
        debug_assert!(self.parsed == 0, "forward_all is called first");
        let mut all = None;
        while self.parsed < self.lookup.state.frames.len() {
            let first = self.parsed;
            self.parsed = self.lookup.look_up_frames(first);
            let port = self.common_port(first);
            if port.is_none() || all.is_some_and(|all| port != Some(all)) {
                self.common_egress = all.map(|port| (first, port));
                self.next_lookup = if all.is_some() { 0 } else { self.parsed };
                return None;
            }
            all = port;
        }
        self.remaining.start = self.parsed;
        all
    }

    /// Returns the port if all frames that were looked up last, from index `first`, leave by the
    /// same one. Shorter runs are not detected: with several ports, that costs more than it saves.
    #[inline]
    fn common_port(&self, first: usize) -> Option<PortNo> {
        let port = self.lookup.progress[0].egress?;
        let mut others = self.lookup.progress[1..self.parsed - first].iter();
        others
            .all(|progress| progress.egress == Some(port))
            .then_some(port)
    }
}
