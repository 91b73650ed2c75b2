//! Batch lookup: up to 32 frames are parsed together and looked up table by table, so that the
//! memory latencies of different packets overlap (DPDK `rte_hash_lookup_bulk`; VPP vectors;
//! Kalia, Zhou, Kaminsky, Andersen, "Raising the bar for using GPUs in software packet processing",
//! NSDI 2015: group prefetching on the CPU).
//!
//! A core waits for a cache line from memory much longer than a stage of a lookup takes, but it can
//! wait for about ten lines at a time. So each stage of a lookup runs for all packets of the batch
//! before the next stage begins, and ends with a prefetch of the memory that the next stage reads:
//!
//! ```text
//!   parse           p0 p1 p2 ... p31      prefetch the frames of the next batch
//!   flow cache      p0 p1 p2 ... p31      hits leave the batch
//!   table 0         hash   p0 ... p31     prefetch buckets
//!                   bucket p0 ... p31     prefetch hot entries
//!                   match  p0 ... p31     inline program:
//!                      goto_table:3       -> next tables {3}
//!                      output:2           -> forwarded, nothing else to do
//!                      ct(table=4)        -> connections looked up, next tables {4}
//!                      anything else      -> left to the executor
//!   table 3         ...
//! ```
//!
//! The packets that match the same rule are handled together. A packet continues in the batch
//! while its rules do nothing but go to a later table, resubmit to one as their last action, or
//! write pipeline fields; such a rule is an [inline program](crate::action_program). A packet is
//! complete if its rule outputs it to one port. Every other packet stops at the rule that it has
//! matched, and the [executor](crate::exec) continues with it alone.
//!
//! Tables lead to later tables only, so the set of next tables is processed in ascending order, and
//! no table is visited twice.
//!
//! ```
//! use base::{Instant, PortNo};
//! use fastpath::{BatchContext, Classifier, FrameOutcome, Runner};
//! use flow::PortDesc;
//! use flow::text::parse_flow_line;
//! use packet::build::Stack;
//! use packet::{Frame, Pool};
//! use pipeline::{Limits, Pipeline};
//!
//! let mut pipeline = Pipeline::new(Limits::default(), 1);
//! let mut classifier = Classifier::new();
//! for port in 1..=3 {
//!     pipeline.set_port(&PortDesc::new(PortNo(port)));
//! }
//! for line in [
//!     "table=0,udp,actions=goto_table:1",
//!     "table=1,udp,tp_dst=53,actions=output:2",
//!     "table=1,udp,tp_dst=54,actions=output:3",
//! ] {
//!     let command = parse_flow_line(line).expect("a flow");
//!     let changes = pipeline.flow_mod(&command, Instant::START).expect("the table has room");
//!     classifier.queue_changes(&changes);
//! }
//! let view = classifier.publish(&pipeline);
//!
//! let frame = |n: usize| {
//!     let stack: Stack = format!("eth / ipv4 / udp(dst={})", 53 + n % 2).parse().expect("a frame");
//!     stack.build()
//! };
//! let mut frames: Vec<Frame> = (0..32).map(frame).collect();
//! let context = BatchContext { pipeline: &pipeline, view: &view, in_port: PortNo(1), now: Instant::START };
//! let (mut runner, mut pool) = (Runner::new(0), Pool::new(32));
//! let mut batch = runner.begin(context, &mut frames);
//! // The frames leave by two ports, so they are returned one by one.
//! for n in 0..32 {
//!     let outcome = batch.next(&mut pool);
//!     assert!(matches!(outcome, Some(FrameOutcome::Forward([_], PortNo(port))) if port == 2 + n % 2));
//! }
//! ```

use std::ops::Range;
use std::sync::Arc;

use base::{PortNo, TableId};
use flow::PipelineFields;
use pipeline::{Counters, Rule, Totals};
use sys::cache::prefetch;

use crate::action_program::InlineProgram;
use crate::batch_mask::{BatchMask, LOOKUP_BATCH};
use crate::batch_state::BatchState;
use crate::batch_stats::add;
use crate::classifier::SingleForm;
use crate::compiled_set::CompiledSet;
use crate::flow_cache::FlowRecorder;
use crate::frame_progress::{BATCH_RESUBMITS_MAX, FrameProgress};
use crate::ingress_tables::IngressTables;
use crate::match_result::MatchResult;
use crate::packed_key::PackedKey;

mod cached;
mod in_forms;
mod in_linear;
mod in_tuple;
mod packet_group;
mod parse;
mod pipeline_writes;
pub(crate) mod track;
mod walks;

use packet_group::{NextTables, PacketGroup, RuleHits, TableResult};

pub(crate) use walks::{PacketWalk, PacketWalks};

/// Rules by which each packet was resubmitted.
type Resubmissions<'a> = [[Option<&'a Rule>; BATCH_RESUBMITS_MAX]; LOOKUP_BATCH];

/// Lookup of a batch, 32 frames at a time.
#[derive(Debug)]
pub(crate) struct BatchLookup<'a> {
    pub(crate) state: BatchState<'a>,
    pub(crate) ingress_tables: IngressTables<'a>,
    /// Index of the first of the frames that were looked up last.
    pub(crate) first: usize,
    /// Progress of the frames that were looked up last.
    pub(crate) progress: [FrameProgress<'a>; LOOKUP_BATCH],
    /// Packets whose action set is not empty.
    pub(crate) with_action_set: BatchMask,
    /// Packets that are recorded for the flow cache.
    pub(crate) recorder: Option<FlowRecorder<'a>>,
    /// Allocated by the first resubmission of the batch. Each rule ends with its resubmission.
    pub(crate) resubmitted: Option<Resubmissions<'a>>,
    /// Packets that leave the batch for the walk cache.
    pub(crate) walks: PacketWalks,
}

impl<'a> BatchLookup<'a> {
    /// Parses and looks up the frames from index `first`, at most [`LOOKUP_BATCH`]. Returns the
    /// index after the last.
    pub(crate) fn look_up_frames(&mut self, first: usize) -> usize {
        let frames = first..self.state.frames.len().min(first + LOOKUP_BATCH);
        self.look_up_range(frames.clone());
        frames.end
    }

    fn look_up_range(&mut self, frames: Range<usize>) {
        for index in std::mem::take(&mut self.state.memory.written) {
            self.state.memory.keys[index].reset_written_fields();
            self.progress[index].outer_nesting = 0;
        }
        self.first = frames.start;
        for index in std::mem::take(&mut self.with_action_set) {
            self.progress[index % LOOKUP_BATCH].action_set = None;
        }
        let mut group = self.parse_frames(frames);
        group = self.look_up_walks(group);
        self.ingress_tables.count(group.totals);
        self.recorder = None;
        let mut next = match self.ingress_tables.result {
            None => {
                group = self.look_up_cached(group);
                match group.packets.is_empty() {
                    true => NextTables::NONE,
                    false => self.look_up_group(group),
                }
            }
            Some(MatchResult::Rule(Some(rule))) => {
                let (mut result, packets) = (self.table_result(group), group.packets);
                self.apply_hits(RuleHits { rule, packets }, &mut result);
                self.finish_table(result)
            }
            Some(result) => return self.stop(group.packets, result, &group),
        };
        // A table leads to later ones only, so none is visited twice.
        let (mut lookups, mut tables) = (1, 1);
        while !next.packets.is_empty() {
            if !next.is_one() {
                self.add_lookups(next.packets, std::mem::take(&mut lookups));
            }
            let (group, elsewhere) = self.split_first(next, lookups);
            next = self.look_up_group(group);
            (lookups, tables) = (lookups + 1, tables + 1);
            if !elsewhere.is_empty() {
                self.add_lookups(next.packets, std::mem::take(&mut lookups));
                for index in elsewhere {
                    let FrameProgress { weight, table, .. } = self.progress[index];
                    next.add(BatchMask::single(index), table, &mut self.progress);
                    add(&mut next.totals, weight);
                }
            }
        }
        self.state.memory.flow_cache.count_batch(tables);
    }

    /// Adds to the number of lookups of these packets.
    fn add_lookups(&mut self, packets: BatchMask, lookups: u16) {
        packets.for_each(|index| self.progress[index % LOOKUP_BATCH].lookups += lookups);
    }

    /// Splits off the packets that continue in the first of the tables.
    #[inline]
    fn split_first(&self, next: NextTables, lookups: u16) -> (PacketGroup, BatchMask) {
        let mut group = PacketGroup {
            packets: next.packets,
            totals: next.totals,
            table: next.first,
            lookups,
        };
        if next.is_one() {
            return (group, BatchMask::EMPTY);
        }
        let is_first = |index: usize| self.progress[index % LOOKUP_BATCH].table == next.first;
        group.packets = next.packets.fold(BatchMask::EMPTY, |mut packets, index| {
            packets.insert(BatchMask::single_if(index, is_first(index)));
            packets
        });
        group.totals = self.weigh(group.packets);
        (group, next.packets.difference(group.packets))
    }

    /// Sum of the weights of these packets.
    #[inline]
    fn weigh(&self, packets: BatchMask) -> Totals {
        packets.fold(Totals::default(), |mut totals, index| {
            add(&mut totals, self.progress[index % LOOKUP_BATCH].weight);
            totals
        })
    }

    /// Looks up a group in its table. Returns the packets that continue.
    fn look_up_group(&mut self, group: PacketGroup) -> NextTables {
        let view = self.state.context.view;
        let packets = group.packets.len();
        self.state.memory.walk_cache.count_lookups(packets);
        let Some(table) = view.table(group.table) else {
            self.stop(group.packets, MatchResult::MISS, &group);
            return NextTables::NONE;
        };
        // Each form has its own loop, so that the form is selected once and not for each packet.
        match table.single_form() {
            SingleForm::Linear(compiled, linear) => self.look_up_linear(group, (compiled, linear)),
            SingleForm::Tuple(tuple) => self.look_up_in_tuple(group, tuple),
            SingleForm::CompiledSet(compiled) => self.look_up_compiled(group, compiled),
            SingleForm::None => self.look_up_forms(group, table),
        }
    }

    /// An empty result of a group in its table.
    #[inline]
    fn table_result(&self, group: PacketGroup) -> TableResult {
        TableResult {
            group,
            next: NextTables::NONE,
            forwarded: BatchMask::EMPTY,
            tracked: BatchMask::EMPTY,
            is_plain: self.recorder.is_none() && self.with_action_set.is_empty(),
        }
    }

    /// Looks up a group in a compiled set.
    fn look_up_compiled(&mut self, group: PacketGroup, compiled: &'a CompiledSet) -> NextTables {
        let epoch = self.state.context.view.epoch();
        let ranks = compiled.likely_ranks(&self.state.memory.keys, group.packets, epoch);
        let mut result = self.table_result(group);
        for index in group.packets {
            let likely = ranks[index % LOOKUP_BATCH];
            if let Some(hot) = compiled.hot_rule(likely, epoch) {
                let rule = || compiled.rule(likely).map(AsRef::as_ref);
                let program = (hot.inline_program, &hot.counters);
                self.apply_hit(index, program, rule, &mut result);
                continue;
            }
            let key = &self.state.memory.keys[index % LOOKUP_BATCH];
            match compiled
                .rule(likely)
                .and_then(|_| compiled.find(key, epoch, |_| true))
            {
                Some(rule) => self.apply_rule(index, rule, &mut result),
                None => self.stop(BatchMask::single(index), MatchResult::MISS, &group),
            }
        }
        self.finish_table(result)
    }

    /// Looks up a group packet by packet with `look_up`.
    #[inline(always)]
    fn look_up_each(
        &mut self,
        group: PacketGroup,
        look_up: impl Fn(usize, &PackedKey) -> MatchResult<'a>,
    ) -> NextTables {
        let mut result = self.table_result(group);
        for index in group.packets {
            match look_up(index, &self.state.memory.keys[index % LOOKUP_BATCH]) {
                MatchResult::Rule(Some(rule)) => self.apply_rule(index, rule, &mut result),
                other => self.stop(BatchMask::single(index), other, &group),
            }
        }
        self.finish_table(result)
    }

    /// Applies the rules that the packets of a group match, after prefetching their programs and
    /// counters; the rules themselves were prefetched before.
    fn apply_far_rules(
        &mut self,
        group: PacketGroup,
        rules: &[Option<&'a Arc<Rule>>; LOOKUP_BATCH],
    ) -> NextTables {
        for rule in group.packets.filter_map(|index| rules[index]) {
            prefetch(rule.instructions.program_slot());
            let cell = rule.counters.prefetch_target(self.state.memory.writer);
            cell.into_iter().for_each(prefetch);
        }
        self.look_up_each(group, |index, _| {
            MatchResult::Rule(rules[index].map(AsRef::as_ref))
        })
    }

    /// Applies the encoded inline program of a rule that one packet matches, and counts it. `rule`
    /// is called only if the program is not sufficient.
    #[inline(always)]
    fn apply_hit(
        &mut self,
        index: usize,
        (inline_program, counters): (u32, &Counters),
        rule: impl FnOnce() -> Option<&'a Rule>,
        result: &mut TableResult,
    ) {
        match InlineProgram::decode(inline_program) {
            InlineProgram::Output(port)
                if result.is_plain && self.state.egress.may_egress(port) =>
            {
                self.progress[index % LOOKUP_BATCH].egress = Some(port);
                result.forwarded.insert(BatchMask::single(index));
            }
            InlineProgram::Goto(table) if result.is_plain => {
                result
                    .next
                    .add(BatchMask::single(index), table, &mut self.progress);
            }
            _ => {
                let packets = BatchMask::single(index);
                let hits = rule().map(|rule| RuleHits { rule, packets });
                hits.into_iter()
                    .for_each(|hits| self.apply_hits(hits, result));
                return;
            }
        }
        let weight = self.progress[index % LOOKUP_BATCH].weight;
        counters.add(self.state.memory.writer, weight, self.state.context.now);
    }

    /// Counts the lookups of the packets that continue or are forwarded. Returns those that
    /// continue.
    #[inline]
    fn finish_table(&mut self, mut result: TableResult) -> NextTables {
        if !result.tracked.is_empty() {
            self.track_packets(&mut result);
        }
        let TableResult {
            group,
            mut next,
            forwarded,
            ..
        } = result;
        let all = next.packets.union(forwarded);
        if !all.is_empty() {
            let totals = self.weigh_in(all, &group);
            let tables = &mut self.state.memory.table_stats;
            tables.count_lookups(group.table, totals);
            next.totals = match next.packets == all {
                true => totals,
                false => self.weigh(next.packets),
            };
        }
        next
    }

    /// Applies a rule to the packets that match it, and counts those that continue or are
    /// forwarded.
    fn apply_hits(&mut self, hits: RuleHits<'a>, result: &mut TableResult) {
        let RuleHits { rule, packets } = hits;
        let inline_program = rule.instructions.program_slot().inline_program();
        if let InlineProgram::Output(port) = InlineProgram::decode(inline_program)
            && result.is_plain
            && packets != result.group.packets
            && self.state.egress.may_egress(port)
        {
            // The packets of several rules: their weights are summed in the same loop.
            let totals = packets.fold(Totals::default(), |mut totals, index| {
                let progress = &mut self.progress[index % LOOKUP_BATCH];
                progress.egress = Some(port);
                add(&mut totals, progress.weight);
                totals
            });
            result.forwarded.insert(packets);
            return rule
                .counters
                .add(self.state.memory.writer, totals, self.state.context.now);
        }
        // Most rules only go to a table or output to a port.
        let applied = match InlineProgram::decode(inline_program) {
            InlineProgram::Goto(table) => {
                result.next.add(packets, table, &mut self.progress);
                self.record_hits(hits, None);
                packets
            }
            InlineProgram::Output(port)
                if self.with_action_set.is_empty() && self.state.egress.may_egress(port) =>
            {
                result.forwarded.insert(packets);
                self.forward(hits, port);
                packets
            }
            _ => self.apply_other_hits(hits, inline_program, result),
        };
        if !applied.is_empty() {
            let totals = self.weigh_in(applied, &result.group);
            let counters = &rule.counters;
            counters.add(self.state.memory.writer, totals, self.state.context.now);
        }
    }

    /// Applies a rule that is not handled by [`BatchLookup::apply_hits`]. Returns the packets that
    /// continue or are forwarded.
    #[inline(never)]
    fn apply_other_hits(
        &mut self,
        hits: RuleHits<'a>,
        inline_program: u32,
        result: &mut TableResult,
    ) -> BatchMask {
        let RuleHits { rule, packets } = hits;
        if let InlineProgram::Track(table) = InlineProgram::decode(inline_program) {
            self.collect_tracked(hits, table, result);
            return BatchMask::EMPTY;
        }
        let group = &result.group;
        if let Some(table) = self.next_table(hits, inline_program, group.table) {
            result.next.add(packets, table, &mut self.progress);
            self.record_hits(hits, None);
            return packets;
        }
        let forwarded = match InlineProgram::decode(inline_program) {
            InlineProgram::Output(port) if self.state.egress.may_egress(port) => {
                let packets = packets.difference(self.with_action_set);
                self.forward(RuleHits { packets, ..hits }, port);
                packets
            }
            _ => BatchMask::EMPTY,
        };
        let stopped = packets.difference(forwarded);
        self.stop(stopped, MatchResult::Rule(Some(rule)), group);
        result.forwarded.insert(forwarded);
        forwarded
    }

    /// Sum of the weights of these packets of a group.
    #[inline]
    fn weigh_in(&self, packets: BatchMask, group: &PacketGroup) -> Totals {
        match packets == group.packets {
            true => group.totals,
            false => self.weigh(packets),
        }
    }

    /// Leaves these packets to the executor, with the result of their table.
    #[inline]
    fn stop(&mut self, packets: BatchMask, result: MatchResult<'a>, group: &PacketGroup) {
        for index in packets {
            let progress = &mut self.progress[index % LOOKUP_BATCH];
            progress.result = result;
            progress.table = group.table;
            progress.lookups += group.lookups;
        }
    }

    /// Forwards packets to a port whose egress check has passed.
    #[inline]
    fn forward(&mut self, hits: RuleHits<'a>, port: PortNo) {
        for index in hits.packets {
            self.progress[index % LOOKUP_BATCH].egress = Some(port);
        }
        self.record_hits(hits, Some(port));
    }

    /// Executes an inline program that leads to another table. Returns that table, or `None` if
    /// the program does not, or the executor must do it.
    #[inline]
    fn next_table(
        &mut self,
        hits: RuleHits<'a>,
        inline_program: u32,
        from: TableId,
    ) -> Option<TableId> {
        match InlineProgram::decode(inline_program) {
            InlineProgram::Goto(table) => Some(table),
            InlineProgram::WriteGoto(table) => {
                self.write_fields(hits)?;
                Some(table)
            }
            InlineProgram::WriteResubmit(table) => {
                if table <= from {
                    return None;
                }
                self.resubmit(hits)?;
                Some(table)
            }
            InlineProgram::Output(_) | InlineProgram::Track(_) | InlineProgram::None => None,
        }
    }
}

impl Drop for BatchLookup<'_> {
    /// Adds the statistics of the batch to the counters, and resets the keys.
    fn drop(&mut self) {
        let state = &mut self.state;
        let tables = &mut state.memory.table_stats;
        self.ingress_tables.flush(tables, &mut state.stats);
        state.stats.flush(tables, state.context.pipeline);
        if state.ingress_fields.is_some() {
            let memory = &mut *state.memory;
            for index in std::mem::take(&mut memory.written) {
                memory.keys[index].reset_written_fields();
            }
            let fields = PipelineFields::new(PortNo::ANY);
            let keys = memory.keys.iter_mut();
            keys.for_each(|key| key.set_ingress_fields(&fields));
        }
    }
}
