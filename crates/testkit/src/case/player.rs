//! A switch without ports or controllers: tables, an interpreter and a clock.

use std::cmp::Reverse;
use std::sync::Arc;

use base::{DatapathId, GroupId, Instant, MeterId, PortNo, TableId};
use conntrack::{Conntrack, HashSeed};
use fastpath::{BatchContext, Classifier, FrameOutcome, LookupScratch, Runner, View, ViewLookup};
use flow::text::FlowWithoutStats;
use flow::{
    FlowMod, FlowStats, FlowStatsRequest, Match, MatchBuilder, OptionTerm, PacketOut,
    PipelineFields, Refusal, Resume,
};
use openflow::continuation;
use packet::{Frame, Pool};
use pipeline::{
    Changes, Destination, Egress, InputFrame, Interpreter, Limits, LookupTables, PausedPacket,
    Pipeline, TracePrinter, Verdict,
};

use super::counts::{self, NamedCounts};
use super::notation;
use super::script::{CaseEvent, CountQuery};

/// Buffers for one frame and its copies: more than any case needs.
const BUFFERS: usize = 64;

/// Connections that a case may have.
const CONNECTIONS_MAX: u32 = 1000;

/// The effects of an event, and the trace of its frames.
type Effects = (Vec<String>, String);

/// The engine that runs frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CaseEngine {
    /// The interpreter, which searches the rules linearly.
    Interpreter,
    /// The interpreter with compiled lookups.
    CompiledLookup,
    /// The fast path: compiled lookups and compiled actions, as in the workers.
    FastPath,
}

impl CaseEngine {
    pub(super) const ALL: [Self; 3] = [Self::Interpreter, Self::CompiledLookup, Self::FastPath];
}

pub(super) struct Player {
    pipeline: Pipeline,
    /// The compiled tables, for the engines that use them.
    compiled: Option<CompiledTables>,
    /// The fast path, for frames that arrive at ports, if the engine is [`CaseEngine::FastPath`].
    runner: Option<Runner>,
    interpreter: Interpreter,
    pool: Pool,
    verdict: Verdict,
    /// The last paused frame: its registers, its bytes and its encoded continuation.
    paused: Option<(PipelineFields, Vec<u8>, Vec<u8>)>,
    now: Instant,
}

/// The datapath id of the switch.
const DATAPATH: DatapathId = DatapathId(1);

/// The compiled tables, updated with each change.
struct CompiledTables {
    classifier: Classifier,
    view: View,
    scratch: LookupScratch,
}

impl CompiledTables {
    fn new(pipeline: &Pipeline) -> Self {
        let mut classifier = Classifier::new();
        Self {
            view: classifier.publish(pipeline),
            classifier,
            scratch: LookupScratch::new(),
        }
    }

    fn lookup(&self) -> ViewLookup<'_> {
        ViewLookup::new(&self.view, &self.scratch)
    }
}

impl Player {
    pub(super) fn new(engine: CaseEngine) -> Self {
        let mut pipeline = Pipeline::new(Limits::default(), 1);
        let tracker = Conntrack::new(HashSeed([1, 2]), CONNECTIONS_MAX);
        pipeline.set_tracker(Arc::new(tracker));
        pipeline.set_fragment_store(Arc::default());
        let compiled = (engine != CaseEngine::Interpreter).then(|| CompiledTables::new(&pipeline));
        Self {
            runner: (engine == CaseEngine::FastPath).then(|| Runner::new(0)),
            pipeline,
            compiled,
            interpreter: Interpreter::new(0),
            pool: Pool::new(BUFFERS),
            verdict: Verdict::new(),
            paused: None,
            now: Instant::START,
        }
    }

    /// Plays an event.
    pub(super) fn play(&mut self, event: &CaseEvent) -> Result<Effects, String> {
        let mut effects = Vec::new();
        match event {
            CaseEvent::Ports(ports) => ports.iter().for_each(|port| self.pipeline.set_port(port)),
            CaseEvent::PortRemoved(port) => self.pipeline.remove_port(*port),
            CaseEvent::Miss(miss) => self.pipeline.set_miss_policy(*miss),
            CaseEvent::TableMiss(table, miss) => {
                let result = self.pipeline.set_table_miss(*table, *miss);
                effects.extend(result.err().map(notation::refusal_line));
            }
            CaseEvent::Standalone(on) => self.pipeline.set_standalone(*on),
            CaseEvent::Fragments(handling) => {
                let result = self.pipeline.set_fragments(*handling);
                effects.extend(result.err().map(notation::refusal_line));
            }
            CaseEvent::Flow(command) => {
                let outcome = self.pipeline.flow_mod(command, self.now);
                effects = self.change_outcome(outcome);
            }
            CaseEvent::Group(command) => {
                let outcome = self.pipeline.group_mod(command, self.now);
                effects = self.change_outcome(outcome);
            }
            CaseEvent::Meter(command) => {
                let outcome = self.pipeline.meter_mod(command, self.now);
                effects = self.change_outcome(outcome);
            }
            CaseEvent::TlvTable(change) => {
                let outcome = self.pipeline.tlv_table_mod(change);
                effects.extend(outcome.err().map(notation::refusal_line));
            }
            CaseEvent::PacketOut(message) => return Ok(self.packet_out(message)),
            CaseEvent::Resume(changed) => return self.resume(changed),
            CaseEvent::Receive { port, times, frame } => {
                let mut trace = String::new();
                for _ in 0..*times {
                    let (more, last) = self.receive(*port, frame);
                    effects.extend(more);
                    trace = last;
                }
                return Ok((effects, trace));
            }
            CaseEvent::Time(time) => {
                self.now += *time;
                let changes = self.pipeline.expire(self.now);
                effects = self.change_effects(&changes);
            }
            CaseEvent::Dump(request) => effects = self.dump(request),
            CaseEvent::Groups => effects = self.groups(),
            CaseEvent::Meters => effects = self.meters(),
        }
        Ok((effects, String::new()))
    }

    /// Dumps the rules. Rules of one table and priority are sorted by match: the specification does
    /// not define their order.
    fn dump(&self, request: &FlowStatsRequest) -> Vec<String> {
        let rules = match self.pipeline.flow_stats(request, self.now) {
            Ok(rules) => rules,
            Err(refusal) => return vec![notation::refusal_line(refusal)],
        };
        let mut rules: Vec<_> = rules.collect();
        rules.sort_by(|a, b| {
            let order = |rule: &FlowStats| (rule.table, Reverse(rule.priority));
            (order(a), &a.matching).cmp(&(order(b), &b.matching))
        });
        let lines = rules.iter().map(|rule| FlowWithoutStats(rule).to_string());
        lines
            .map(|line| notation::effect_line("=", &line))
            .collect()
    }

    fn groups(&self) -> Vec<String> {
        let groups = self.pipeline.group_descs(GroupId::ALL);
        groups
            .map(|group| notation::effect_line("=", &group.to_string()))
            .collect()
    }

    fn meters(&self) -> Vec<String> {
        let meters = self.pipeline.meter_configs(MeterId::ALL);
        let meters = meters.into_iter().flatten();
        meters
            .map(|meter| notation::effect_line("=", &meter.to_string()))
            .collect()
    }

    fn receive(&mut self, from: PortNo, frame: &Frame) -> Effects {
        let input_frame = self.input_frame(from, frame);
        if self.runner.is_some() {
            self.run(input_frame);
            return (self.take_outcome(), String::new());
        }
        let mut trace = TracePrinter::new();
        let lookup = self.compiled.as_ref().map(CompiledTables::lookup);
        self.interpreter.run(
            tables(&self.pipeline, lookup.as_ref()),
            input_frame,
            &mut self.pool,
            &mut trace,
            &mut self.verdict,
        );
        (self.take_outcome(), trace.text().to_owned())
    }

    /// Runs a frame on the fast path, as a worker does.
    fn run(&mut self, input_frame: InputFrame) {
        let (Some(runner), Some(compiled)) = (&mut self.runner, &self.compiled) else {
            return;
        };
        let context = BatchContext {
            pipeline: &self.pipeline,
            view: &compiled.view,
            in_port: input_frame.in_port,
            now: input_frame.now,
        };
        let mut frames = [input_frame.frame];
        let mut batch = runner.begin(context, &mut frames);
        match batch.next(&mut self.pool).expect("there is a frame") {
            FrameOutcome::Verdict(verdict) => std::mem::swap(&mut self.verdict, verdict),
            FrameOutcome::Forward(frames, port) => {
                self.verdict = Verdict::new();
                self.verdict.frames.push(std::mem::take(&mut frames[0]));
                let to = Destination::Port(port);
                self.verdict.egress.push(Egress::new(0, to));
            }
        }
    }

    fn packet_out(&mut self, message: &PacketOut) -> Effects {
        if let Err(refusal) = self.pipeline.check_packet_out(message) {
            return (vec![notation::refusal_line(refusal)], String::new());
        }
        let (pool, mut trace) = (&mut self.pool, TracePrinter::new());
        let verdict = &mut self.verdict;
        let lookup = self.compiled.as_ref().map(CompiledTables::lookup);
        let tables = tables(&self.pipeline, lookup.as_ref());
        self.interpreter
            .packet_out(tables, message, self.now, pool, &mut trace, verdict);
        (self.take_outcome(), trace.text().to_owned())
    }

    /// Resumes the last paused frame, as a controller does.
    fn resume(&mut self, changed: &Match) -> Result<Effects, String> {
        let (registers, data, continuation) = self.paused.take().ok_or("no frame is paused")?;
        let old = registers.to_match();
        let unchanged = old.terms();
        let unchanged = unchanged.filter(|term| changed.term(term.field).is_none());
        let fields = unchanged
            .chain(changed.terms())
            .try_fold(Match::any(), |fields, term| {
                fields.with(term.field, term.value)
            });
        let mut fields = MatchBuilder::from(&fields.map_err(notation::error_text)?);
        let unchanged = old.options();
        let unchanged = unchanged.filter(|term| changed.option(term.field).is_none());
        for OptionTerm { field, value, mask } in unchanged.chain(changed.options()) {
            fields
                .add_option(field, value, mask)
                .map_err(notation::error_text)?;
        }
        let message = Resume {
            registers: PipelineFields::from_match(&fields.build()),
            data,
            continuation,
        };
        let continuation_state =
            continuation::decode(&message.continuation, DATAPATH).map_err(notation::error_text)?;
        if let Err(refusal) = self.pipeline.check_resume(&message, &continuation_state) {
            return Ok((vec![notation::refusal_line(refusal)], String::new()));
        }
        let paused = PausedPacket {
            data: &message.data,
            registers: message.registers.clone(),
            continuation: &continuation_state,
            now: self.now,
        };
        let (pool, mut trace) = (&mut self.pool, TracePrinter::new());
        let lookup = self.compiled.as_ref().map(CompiledTables::lookup);
        let tables = tables(&self.pipeline, lookup.as_ref());
        self.interpreter
            .resume_paused(tables, paused, pool, &mut trace, &mut self.verdict);
        Ok((self.take_outcome(), trace.text().to_owned()))
    }

    fn input_frame(&mut self, from: PortNo, frame: &Frame) -> InputFrame {
        InputFrame {
            frame: self.pool.duplicate(frame).expect("all buffers are free"),
            in_port: from,
            now: self.now,
        }
    }

    /// Formats the verdict and returns its frames to the pool.
    fn take_outcome(&mut self) -> Vec<String> {
        let verdict = &mut self.verdict;
        let mut lines: Vec<_> = verdict
            .egress
            .iter()
            .map(|egress| {
                let frame = &verdict.frames[egress.frame];
                match &egress.to {
                    Destination::Port(port) => notation::output_line(&port.to_string(), frame),
                    Destination::Normal => notation::output_line("normal", frame),
                    Destination::Collectors(sample) => {
                        notation::output_line(&format!("collectors:{}", sample.collectors), frame)
                    }
                    Destination::Controller(meta) => {
                        if let Some(continuation_state) = &meta.continuation {
                            let continuation_state =
                                continuation::encode(continuation_state, DATAPATH);
                            let continuation_state =
                                continuation_state.expect("the interpreter limits its length");
                            let data = frame.bytes().to_vec();
                            self.paused = Some((meta.registers.clone(), data, continuation_state));
                        }
                        notation::packet_in_line(&notation::packet_in_head(meta), frame)
                    }
                }
            })
            .collect();
        let drops = verdict.drops.iter();
        lines.extend(drops.map(|reason| notation::effect_line("x", reason.name())));
        let last = verdict.egress.last().map_or(0, |egress| egress.frame + 1);
        assert_eq!(verdict.frames.len(), last, "a frame without an egress");
        verdict
            .frames
            .drain(..)
            .for_each(|frame| self.pool.put(frame));
        assert_eq!(self.pool.outstanding(), 0, "a frame leaked");
        for learned in std::mem::take(&mut self.verdict.learn_requests) {
            let outcome = self.pipeline.learn(&learned, self.now);
            lines.extend(self.change_outcome(outcome));
        }
        lines
    }

    /// Formats the outcome of a command.
    fn change_outcome(&mut self, outcome: Result<Changes, Refusal>) -> Vec<String> {
        match outcome {
            Ok(changes) => self.change_effects(&changes),
            Err(refusal) => vec![notation::refusal_line(refusal)],
        }
    }

    /// Updates the compiled tables with a change and formats its messages to the controllers.
    fn change_effects(&mut self, changes: &Changes) -> Vec<String> {
        if let Some(compiled) = &mut self.compiled {
            compiled.classifier.queue_changes(changes);
            compiled.view = compiled.classifier.publish(&self.pipeline);
        }
        let events = changes
            .removed
            .iter()
            .filter_map(pipeline::Removal::flow_removed);
        let events = events.map(|event| notation::flow_removed_line(&event));
        events
            .chain(changes.deferred_refusal.map(notation::refusal_line))
            .collect()
    }

    /// Answers a count query in the notation of the query.
    pub(super) fn count(&self, count: &CountQuery) -> Result<String, String> {
        count.answer(&match count {
            CountQuery::Flow { rule, .. } => self.flow_counts(rule),
            CountQuery::Table { table, .. } => self.table_counts(*table),
            CountQuery::Group { group, .. } => self.group_counts(*group),
            CountQuery::Meter { meter, .. } => self.meter_counts(*meter),
        })
    }

    /// Returns the counters of a rule, or no counters if the rule does not exist.
    fn flow_counts(&self, expected: &FlowMod) -> NamedCounts {
        let is_same = |rule: &&Arc<pipeline::Rule>| {
            rule.priority() == expected.priority && *rule.matching() == expected.matching
        };
        let Some(rule) = self.pipeline.rules(expected.table).find(is_same) else {
            return Vec::new();
        };
        let rule = rule.statistics(self.now);
        let mut counts = counts::flow_counts(&rule);
        counts.push(("idle_age".to_owned(), counts::seconds(rule.idle_age)));
        counts.push(("hard_age".to_owned(), counts::seconds(rule.hard_age)));
        counts
    }

    fn group_counts(&self, group: GroupId) -> NamedCounts {
        let Some(stats) = self.pipeline.group_stats(group, self.now).next() else {
            return Vec::new();
        };
        counts::group_counts(&stats)
    }

    fn meter_counts(&self, meter: MeterId) -> NamedCounts {
        let stats = self.pipeline.meter_stats(meter, self.now);
        let Some(stats) = stats.into_iter().flatten().next() else {
            return Vec::new();
        };
        counts::meter_counts(&stats)
    }

    fn table_counts(&self, table: u8) -> NamedCounts {
        let mut tables = self.pipeline.table_stats();
        let Some(stats) = tables.find(|stats| stats.table == TableId(table)) else {
            return Vec::new();
        };
        counts::table_counts(&stats)
    }
}

/// Returns the tables with the given lookup, or with the linear lookup of the pipeline.
fn tables<'a>(pipeline: &'a Pipeline, lookup: Option<&'a ViewLookup<'a>>) -> LookupTables<'a> {
    match lookup {
        Some(lookup) => LookupTables { pipeline, lookup },
        None => pipeline.into(),
    }
}
