//! A switch without ports or controllers: the tables, an interpreter, a clock.

use std::time::Duration;

use base::{DatapathId, GroupId, Instant, MeterId, PortNo, TableId};
use flow::text::Brief;
use flow::{FlowMod, FlowStatsRequest, Match, PacketOut, Refusal, Registers, Resume};
use openflow::continuation;
use packet::{Frame, Pool};
use pipeline::{
    Arrival, Changes, Destination, Interpreter, Limits, Pipeline, Story, Verdict, Waiting,
};

use super::script::{Count, Event};
use super::words;

/// Buffers for one frame and its copies: more than any case needs.
const BUFFERS: usize = 64;

/// The lines that tell what came of an event, and how frames went.
type Told = (Vec<String>, String);

pub(super) struct Player {
    pipeline: Pipeline,
    interpreter: Interpreter,
    pool: Pool,
    verdict: Verdict,
    /// The frame that began to wait last: its registers, bytes, and how to go on.
    waiting: Option<(Registers, Vec<u8>, Vec<u8>)>,
    now: Instant,
}

/// Which switch it is.
const DATAPATH: DatapathId = DatapathId(1);

impl Player {
    pub(super) fn new() -> Self {
        Self {
            pipeline: Pipeline::new(Limits::default(), 1),
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
            Event::Miss(miss) => self.pipeline.set_miss(*miss),
            Event::Standalone(on) => self.pipeline.set_standalone(*on),
            Event::Fragments(handling) => {
                let result = self.pipeline.set_fragments(*handling);
                effects.extend(result.err().map(refused));
            }
            Event::Flow(command) => {
                effects = outcome(self.pipeline.flow_mod(command, self.now));
            }
            Event::Group(command) => {
                effects = outcome(self.pipeline.group_mod(command, self.now));
            }
            Event::Meter(command) => {
                effects = outcome(self.pipeline.meter_mod(command, self.now));
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
                effects = told(&changes);
            }
            Event::Dump(request) => effects = self.dump(request),
            Event::Groups => effects = self.groups(),
            Event::Meters => effects = self.meters(),
        }
        Ok((effects, String::new()))
    }

    fn dump(&self, request: &FlowStatsRequest) -> Vec<String> {
        match self.pipeline.flow_stats(request, self.now) {
            Ok(rules) => rules
                .map(|rule| words::indented("=", &Brief(&rule).to_string()))
                .collect(),
            Err(refusal) => vec![refused(refusal)],
        }
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
        let mut story = Story::new();
        self.interpreter.run(
            &self.pipeline,
            arrival,
            &mut self.pool,
            &mut story,
            &mut self.verdict,
        );
        (self.outcome(), story.text().to_owned())
    }

    fn packet_out(&mut self, message: &PacketOut) -> Told {
        if let Err(refusal) = self.pipeline.check_packet_out(message) {
            return (vec![refused(refusal)], String::new());
        }
        let (pool, mut story) = (&mut self.pool, Story::new());
        let verdict = &mut self.verdict;
        self.interpreter
            .packet_out(&self.pipeline, message, self.now, pool, &mut story, verdict);
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
        let message = Resume {
            registers: Registers::of(&told.map_err(words::told)?),
            data,
            continuation,
        };
        let left = continuation::decode(&message.continuation, DATAPATH).map_err(words::told)?;
        if let Err(refusal) = self.pipeline.check_resume(&message, &left) {
            return Ok((vec![refused(refusal)], String::new()));
        }
        let waiting = Waiting {
            data: &message.data,
            registers: message.registers,
            continuation: &left,
            now: self.now,
        };
        let (pool, mut story) = (&mut self.pool, Story::new());
        self.interpreter
            .resume(&self.pipeline, waiting, pool, &mut story, &mut self.verdict);
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
                    Destination::Controller(meta) => {
                        if let Some(left) = &meta.continuation {
                            let left = continuation::encode(left, DATAPATH);
                            let left = left.expect("the interpreter knows how long it may be");
                            let data = frame.bytes().to_vec();
                            self.waiting = Some((meta.registers, data, left));
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
        assert_eq!(self.pool.missing(), 0, "a frame got lost");
        for learned in std::mem::take(&mut self.verdict.learned) {
            lines.extend(outcome(self.pipeline.learn(&learned, self.now)));
        }
        lines
    }

    /// Answers a count, in the words of the question.
    pub(super) fn count(&self, count: &Count) -> Result<String, String> {
        let (line, names, answers) = match count {
            Count::Flow { line, rule, names } => (line, names, self.flow_counts(rule)),
            Count::Table { line, table, names } => (line, names, self.table_counts(*table)),
            Count::Group { line, group, names } => (line, names, self.group_counts(*group)),
            Count::Meter { line, meter, names } => (line, names, self.meter_counts(*meter)),
        };
        let mut text = line.clone();
        for name in names {
            let answer = answers.iter().find(|(known, _)| known == name);
            let known = answers.is_empty() || answer.is_some();
            known
                .then_some(())
                .ok_or_else(|| format!("not counted: {name}"))?;
            let value = answer.map_or("none", |(_, value)| value);
            text += &format!(" {name}={value}");
        }
        Ok(words::indented("=", &text))
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
        counts([
            ("packets", rule.packets.to_string()),
            ("bytes", rule.bytes.to_string()),
            ("cookie", format!("{:#x}", rule.cookie.0)),
            ("duration", seconds(rule.duration)),
            ("idle_age", seconds(rule.idle_age)),
            ("hard_age", seconds(rule.hard_age)),
        ])
    }

    fn group_counts(&self, group: GroupId) -> Counts {
        let Some(stats) = self.pipeline.group_stats(group, self.now).next() else {
            return Vec::new();
        };
        let buckets = stats.buckets.iter().enumerate();
        let buckets = buckets.map(|(at, told)| (format!("bucket{at}"), told.packets.to_string()));
        let whole = counts([
            ("references", stats.references.to_string()),
            ("packets", stats.packets.to_string()),
            ("bytes", stats.bytes.to_string()),
            ("duration", seconds(stats.duration)),
        ]);
        whole.into_iter().chain(buckets).collect()
    }

    fn meter_counts(&self, meter: MeterId) -> Counts {
        let stats = self.pipeline.meter_stats(meter, self.now);
        let Some(stats) = stats.into_iter().flatten().next() else {
            return Vec::new();
        };
        let bands = stats.bands.iter().enumerate();
        let bands = bands.map(|(at, told)| (format!("band{at}"), told.packets.to_string()));
        let whole = counts([
            ("flows", stats.flows.to_string()),
            ("packets", stats.packets.to_string()),
            ("bytes", stats.bytes.to_string()),
            ("duration", seconds(stats.duration)),
        ]);
        whole.into_iter().chain(bands).collect()
    }

    fn table_counts(&self, table: u8) -> Counts {
        let mut tables = self.pipeline.table_stats();
        let Some(stats) = tables.find(|stats| stats.table == TableId(table)) else {
            return Vec::new();
        };
        counts([
            ("lookups", stats.lookups.to_string()),
            ("matched", stats.matched.to_string()),
            ("active", stats.active.to_string()),
        ])
    }
}

/// What was counted, by name.
type Counts = Vec<(String, String)>;

fn counts<const N: usize>(named: [(&str, String); N]) -> Counts {
    named.map(|(name, count)| (name.to_owned(), count)).to_vec()
}

fn seconds(duration: Duration) -> String {
    format!("{}s", duration.as_secs_f64())
}

/// What is heard of a command.
fn outcome(done: Result<Changes, Refusal>) -> Vec<String> {
    match done {
        Ok(changes) => told(&changes),
        Err(refusal) => vec![refused(refusal)],
    }
}

fn refused(refusal: Refusal) -> String {
    words::indented("!", &format!("refused {}", words::snake_case(&refusal)))
}

/// What the controllers hear of a change.
fn told(changes: &Changes) -> Vec<String> {
    let events = changes.removed.iter().filter_map(pipeline::Removal::event);
    let events = events.map(|event| words::flow_removed(&event));
    events.chain(changes.complaint.map(refused)).collect()
}
