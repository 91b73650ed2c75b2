//! A switch without ports or controllers: the tables, an interpreter, a clock.

use std::cmp::Reverse;

use base::{DatapathId, GroupId, Instant, MeterId, PortNo, TableId};
use fastpath::{BatchContext, Classifier, FrameOutcome, LookupScratch, Runner, View, ViewLookup};
use flow::text::Brief;
use flow::{
    FlowMod, FlowStats, FlowStatsRequest, Match, MatchBuilder, OptionTerm, PacketOut, Refusal,
    Registers, Resume,
};
use openflow::continuation;
use packet::{Frame, Pool};
use pipeline::{
    Arrival, Changes, Destination, Egress, Interpreter, Limits, LookupTables, PausedPacket,
    Pipeline, TracePrinter, Verdict,
};

use super::counts::{self, Counts};
use super::script::{Count, Event};
use super::words;

/// Buffers for one frame and its copies: more than any case needs.
const BUFFERS: usize = 64;

/// The lines that tell what came of an event, and how frames went.
type Told = (Vec<String>, String);

/// Who runs a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// The interpreter, which walks along the rules.
    Walked,
    /// The interpreter, for whom compiled tables find the rules.
    Compiled,
    /// Compiled tables, which do what the rules say too, as the switch's workers have it.
    Run,
}

impl Way {
    pub(super) const ALL: [Self; 3] = [Self::Walked, Self::Compiled, Self::Run];
}

pub(super) struct Player {
    pipeline: Pipeline,
    /// Beside it, if it is to be looked into by them.
    compiled: Option<Compiled>,
    /// Who runs the frames that come in by ports, if it is not the interpreter.
    runner: Option<Runner>,
    interpreter: Interpreter,
    pool: Pool,
    verdict: Verdict,
    /// The frame that began to wait last: its registers, bytes, and how to go on.
    waiting: Option<(Registers, Vec<u8>, Vec<u8>)>,
    now: Instant,
}

/// Which switch it is.
const DATAPATH: DatapathId = DatapathId(1);

/// The tables compiled, which are told of each change.
struct Compiled {
    classifier: Classifier,
    view: View,
    scratch: LookupScratch,
}

impl Compiled {
    fn new(pipeline: &Pipeline) -> Self {
        let mut classifier = Classifier::new();
        Self {
            view: classifier.publish(pipeline),
            classifier,
            scratch: LookupScratch::new(),
        }
    }

    fn looker(&self) -> ViewLookup<'_> {
        ViewLookup::new(&self.view, &self.scratch)
    }
}

impl Player {
    pub(super) fn new(way: Way) -> Self {
        let pipeline = Pipeline::new(Limits::default(), 1);
        let compiled = (way != Way::Walked).then(|| Compiled::new(&pipeline));
        Self {
            runner: (way == Way::Run).then(|| Runner::new(0)),
            pipeline,
            compiled,
            interpreter: Interpreter::new(0),
            pool: Pool::new(BUFFERS),
            verdict: Verdict::new(),
            waiting: None,
            now: Instant::START,
        }
    }

    /// Lets the event happen.
    pub(super) fn play(&mut self, event: &Event) -> Result<Told, String> {
        let mut effects = Vec::new();
        match event {
            Event::Ports(ports) => ports.iter().for_each(|port| self.pipeline.set_port(port)),
            Event::PortGone(port) => self.pipeline.remove_port(*port),
            Event::Miss(miss) => self.pipeline.set_miss_policy(*miss),
            Event::Standalone(on) => self.pipeline.set_standalone(*on),
            Event::Fragments(handling) => {
                let result = self.pipeline.set_fragments(*handling);
                effects.extend(result.err().map(words::refused));
            }
            Event::Flow(command) => {
                let done = self.pipeline.flow_mod(command, self.now);
                effects = self.outcome_of(done);
            }
            Event::Group(command) => {
                let done = self.pipeline.group_mod(command, self.now);
                effects = self.outcome_of(done);
            }
            Event::Meter(command) => {
                let done = self.pipeline.meter_mod(command, self.now);
                effects = self.outcome_of(done);
            }
            Event::TlvTable(change) => {
                let done = self.pipeline.tlv_table_mod(change);
                effects.extend(done.err().map(words::refused));
            }
            Event::PacketOut(message) => return Ok(self.packet_out(message)),
            Event::Resume(changed) => return self.resume(changed),
            Event::Arrive { port, times, frame } => {
                let mut story = String::new();
                for _ in 0..*times {
                    let (more, last) = self.arrive(*port, frame);
                    effects.extend(more);
                    story = last;
                }
                return Ok((effects, story));
            }
            Event::Time(time) => {
                self.now += *time;
                let changes = self.pipeline.expire(self.now);
                effects = self.told(&changes);
            }
            Event::Dump(request) => effects = self.dump(request),
            Event::Groups => effects = self.groups(),
            Event::Meters => effects = self.meters(),
        }
        Ok((effects, String::new()))
    }

    /// The rules, of one table and priority in the order of their matches: which of them
    /// came first, no specification asks.
    fn dump(&self, request: &FlowStatsRequest) -> Vec<String> {
        let rules = match self.pipeline.flow_stats(request, self.now) {
            Ok(rules) => rules,
            Err(refusal) => return vec![words::refused(refusal)],
        };
        let mut rules: Vec<_> = rules.collect();
        rules.sort_by(|a, b| {
            let place = |rule: &FlowStats| (rule.table, Reverse(rule.priority));
            (place(a), &a.matching).cmp(&(place(b), &b.matching))
        });
        let lines = rules.iter().map(|rule| Brief(rule).to_string());
        lines.map(|line| words::indented("=", &line)).collect()
    }

    fn groups(&self) -> Vec<String> {
        let groups = self.pipeline.group_descs(GroupId::ALL);
        groups
            .map(|group| words::indented("=", &group.to_string()))
            .collect()
    }

    fn meters(&self) -> Vec<String> {
        let meters = self.pipeline.meter_configs(MeterId::ALL);
        let meters = meters.into_iter().flatten();
        meters
            .map(|meter| words::indented("=", &meter.to_string()))
            .collect()
    }

    fn arrive(&mut self, from: PortNo, frame: &Frame) -> Told {
        let arrival = self.arrival(from, frame);
        if self.runner.is_some() {
            self.run(arrival);
            return (self.outcome(), String::new());
        }
        let mut story = TracePrinter::new();
        let looker = self.compiled.as_ref().map(Compiled::looker);
        self.interpreter.run(
            tables(&self.pipeline, looker.as_ref()),
            arrival,
            &mut self.pool,
            &mut story,
            &mut self.verdict,
        );
        (self.outcome(), story.text().to_owned())
    }

    /// Runs a frame as a worker does.
    fn run(&mut self, arrival: Arrival) {
        let (Some(runner), Some(compiled)) = (&mut self.runner, &self.compiled) else {
            return;
        };
        let ground = BatchContext {
            pipeline: &self.pipeline,
            view: &compiled.view,
            in_port: arrival.from,
            now: arrival.now,
        };
        let mut frames = [arrival.frame];
        let mut batch = runner.begin(ground, &mut frames);
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

    fn packet_out(&mut self, message: &PacketOut) -> Told {
        if let Err(refusal) = self.pipeline.check_packet_out(message) {
            return (vec![words::refused(refusal)], String::new());
        }
        let (pool, mut story) = (&mut self.pool, TracePrinter::new());
        let verdict = &mut self.verdict;
        let looker = self.compiled.as_ref().map(Compiled::looker);
        let tables = tables(&self.pipeline, looker.as_ref());
        self.interpreter
            .packet_out(tables, message, self.now, pool, &mut story, verdict);
        (self.outcome(), story.text().to_owned())
    }

    /// Sends the frame that began to wait last back, as a controller would.
    fn resume(&mut self, changed: &Match) -> Result<Told, String> {
        let (registers, data, continuation) = self.waiting.take().ok_or("no frame waits")?;
        let old = registers.told();
        let kept = old.terms();
        let kept = kept.filter(|term| changed.term(term.field).is_none());
        let told = kept
            .chain(changed.terms())
            .try_fold(Match::any(), |told, term| told.with(term.field, term.value));
        let mut told = MatchBuilder::from(&told.map_err(words::told)?);
        let kept = old.options();
        let kept = kept.filter(|term| changed.option(term.field).is_none());
        for OptionTerm { field, value, mask } in kept.chain(changed.options()) {
            told.add_option(field, value, mask).map_err(words::told)?;
        }
        let message = Resume {
            registers: Registers::of(&told.build()),
            data,
            continuation,
        };
        let left = continuation::decode(&message.continuation, DATAPATH).map_err(words::told)?;
        if let Err(refusal) = self.pipeline.check_resume(&message, &left) {
            return Ok((vec![words::refused(refusal)], String::new()));
        }
        let waiting = PausedPacket {
            data: &message.data,
            registers: message.registers.clone(),
            continuation: &left,
            now: self.now,
        };
        let (pool, mut story) = (&mut self.pool, TracePrinter::new());
        let looker = self.compiled.as_ref().map(Compiled::looker);
        let tables = tables(&self.pipeline, looker.as_ref());
        self.interpreter
            .resume_paused(tables, waiting, pool, &mut story, &mut self.verdict);
        Ok((self.outcome(), story.text().to_owned()))
    }

    fn arrival(&mut self, from: PortNo, frame: &Frame) -> Arrival {
        Arrival {
            frame: self.pool.duplicate(frame).expect("all buffers are back"),
            from,
            now: self.now,
        }
    }

    /// What the verdict says; its frames go back to the pool.
    fn outcome(&mut self) -> Vec<String> {
        let verdict = &mut self.verdict;
        let mut lines: Vec<_> = verdict
            .egress
            .iter()
            .map(|egress| {
                let frame = &verdict.frames[egress.frame];
                match &egress.to {
                    Destination::Port(port) => words::sent(&port.to_string(), frame),
                    Destination::Normal => words::sent("normal", frame),
                    Destination::Collectors(sample) => {
                        words::sent(&format!("collectors:{}", sample.collectors), frame)
                    }
                    Destination::Controller(meta) => {
                        if let Some(left) = &meta.continuation {
                            let left = continuation::encode(left, DATAPATH);
                            let left = left.expect("the interpreter knows how long it may be");
                            let data = frame.bytes().to_vec();
                            self.waiting = Some((meta.registers.clone(), data, left));
                        }
                        words::packet_in(&words::packet_in_head(meta), frame)
                    }
                }
            })
            .collect();
        let drops = verdict.drops.iter();
        lines.extend(drops.map(|reason| words::indented("x", reason.name())));
        let last = verdict.egress.last().map_or(0, |egress| egress.frame + 1);
        assert_eq!(verdict.frames.len(), last, "a frame that goes nowhere");
        verdict
            .frames
            .drain(..)
            .for_each(|frame| self.pool.put(frame));
        assert_eq!(self.pool.outstanding(), 0, "a frame got lost");
        for learned in std::mem::take(&mut self.verdict.learn_requests) {
            let done = self.pipeline.learn(&learned, self.now);
            lines.extend(self.outcome_of(done));
        }
        lines
    }

    /// What is heard of a command.
    fn outcome_of(&mut self, done: Result<Changes, Refusal>) -> Vec<String> {
        match done {
            Ok(changes) => self.told(&changes),
            Err(refusal) => vec![words::refused(refusal)],
        }
    }

    /// What the controllers hear of a change, which the compiled tables take note of.
    fn told(&mut self, changes: &Changes) -> Vec<String> {
        if let Some(compiled) = &mut self.compiled {
            compiled.classifier.queue_changes(changes);
            compiled.view = compiled.classifier.publish(&self.pipeline);
        }
        let events = changes
            .removed
            .iter()
            .filter_map(pipeline::Removal::flow_removed);
        let events = events.map(|event| words::flow_removed(&event));
        events
            .chain(changes.deferred_refusal.map(words::refused))
            .collect()
    }

    /// Answers a count, in the words of the question.
    pub(super) fn count(&self, count: &Count) -> Result<String, String> {
        count.answer(&match count {
            Count::Flow { rule, .. } => self.flow_counts(rule),
            Count::Table { table, .. } => self.table_counts(*table),
            Count::Group { group, .. } => self.group_counts(*group),
            Count::Meter { meter, .. } => self.meter_counts(*meter),
        })
    }

    /// Of no rule, nothing.
    fn flow_counts(&self, wanted: &FlowMod) -> Counts {
        let same = |rule: &&std::sync::Arc<pipeline::Rule>| {
            rule.priority() == wanted.priority && *rule.matching() == wanted.matching
        };
        let Some(rule) = self.pipeline.rules(wanted.table).find(same) else {
            return Vec::new();
        };
        let rule = rule.statistics(self.now);
        let mut counts = counts::of_flow(&rule);
        counts.push(("idle_age".to_owned(), counts::seconds(rule.idle_age)));
        counts.push(("hard_age".to_owned(), counts::seconds(rule.hard_age)));
        counts
    }

    fn group_counts(&self, group: GroupId) -> Counts {
        let Some(stats) = self.pipeline.group_stats(group, self.now).next() else {
            return Vec::new();
        };
        counts::of_group(&stats)
    }

    fn meter_counts(&self, meter: MeterId) -> Counts {
        let stats = self.pipeline.meter_stats(meter, self.now);
        let Some(stats) = stats.into_iter().flatten().next() else {
            return Vec::new();
        };
        counts::of_meter(&stats)
    }

    fn table_counts(&self, table: u8) -> Counts {
        let mut tables = self.pipeline.table_stats();
        let Some(stats) = tables.find(|stats| stats.table == TableId(table)) else {
            return Vec::new();
        };
        counts::of_table(&stats)
    }
}

/// The tables, and who looks into them.
fn tables<'a>(pipeline: &'a Pipeline, looker: Option<&'a ViewLookup<'a>>) -> LookupTables<'a> {
    match looker {
        Some(lookup) => LookupTables { pipeline, lookup },
        None => pipeline.into(),
    }
}
