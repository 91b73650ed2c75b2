//! Flow tables, and frames that match rules in them. The timed benchmarks and the instruction
//! counts use the same workloads.
//!
//! A [`Workload`] is a description in text, a [`LoadedWorkload`] contains the built tables, and an
//! [`InterpreterRunner`] processes a frame as a worker does, without ports.

use std::sync::Arc;

use base::{Instant, PortNo};
use conntrack::{Conntrack, HashSeed};
use fastpath::{BatchContext, FrameOutcome};
use flow::text::{parse_flow_line, parse_group_line, parse_meter_line};
use flow::{PortDesc, TlvCommand, TlvMapping, TlvTableMod};
use packet::build::Stack;
use packet::{Frame, Pool};
use pipeline::{Changes, InputFrame, Interpreter, Limits, LookupTables, Pipeline, Verdict};

mod connections;
mod frame_stream;
mod rule_lists;

pub use frame_stream::FrameStream;
pub use rule_lists::{TrafficPattern, splitmix64};

/// The frame that matches every workload of a single frame.
pub const FRAME: &str = "eth / ipv4 / tcp / data(6)";

/// The rule with all twelve fields of OpenFlow 1.0, which matches [`FRAME`].
pub const TWELVE_FIELDS: &str = "priority=10,in_port=1,dl_src=02:00:00:00:00:01,\
     dl_dst=02:00:00:00:00:02,dl_vlan=0xffff,tcp,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_tos=0,\
     tp_src=1000,tp_dst=80,actions=output:2";

/// The number of ports, numbered from 1; frames arrive at port 1.
const PORTS: u32 = 4;

/// The largest number of tracked connections.
const CONNECTIONS_MAX: u32 = 5_000_000;

/// Descriptions of tables and frames, in text.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The name of the workload in results.
    pub name: &'static str,
    /// Groups, meters and flows in the syntax of `ovs-ofctl`.
    groups: Vec<String>,
    meters: Vec<String>,
    flows: Vec<String>,
    /// Frames, each of which is output to one port.
    frames: Vec<String>,
    /// Frames that arrive at port 2, if any.
    replies: Vec<String>,
}

impl Workload {
    /// A workload of these flows and [`FRAME`].
    #[must_use]
    pub fn new(name: &'static str, flows: &[&str]) -> Self {
        Self {
            name,
            groups: Vec::new(),
            meters: Vec::new(),
            flows: flows.iter().map(ToString::to_string).collect(),
            frames: vec![FRAME.to_owned()],
            replies: Vec::new(),
        }
    }

    /// These flows and groups, with `frames` that arrive at port 1 and `replies` that arrive at
    /// port 2.
    #[must_use]
    pub fn of_two_ports(
        name: &'static str,
        flows: Vec<String>,
        groups: Vec<String>,
        frames: Vec<String>,
        replies: Vec<String>,
    ) -> Self {
        Self {
            name,
            groups,
            meters: Vec::new(),
            flows,
            frames,
            replies,
        }
    }

    /// One rule that matches only the ingress port: the cheapest workload.
    #[must_use]
    pub fn one_rule() -> Self {
        Self::new("one rule, in_port", &["in_port=1,actions=output:2"])
    }

    /// One rule with every field that OpenFlow 1.0 can match.
    #[must_use]
    pub fn twelve_fields() -> Self {
        Self::new("one rule, twelve fields", &[TWELVE_FIELDS])
    }

    /// One rule with the action `NORMAL`, which forwards by the forwarding database.
    #[must_use]
    pub fn normal() -> Self {
        Self::new("one rule, NORMAL", &["priority=0,actions=NORMAL"])
    }

    /// One rule that rewrites two fields, and so updates checksums.
    #[must_use]
    pub fn rewritten() -> Self {
        let flow = "tcp,actions=mod_nw_dst:10.0.0.9,mod_tp_dst:7,output:2";
        Self::new("one rule, two fields rewritten", &[flow])
    }

    /// A chain of ten tables.
    #[must_use]
    pub fn ten_tables() -> Self {
        let leading = |n| format!("table={n},in_port=1,actions=goto_table:{}", n + 1);
        let last = "table=9,in_port=1,actions=output:2".to_owned();
        Self {
            flows: (0..9).map(leading).chain([last]).collect(),
            ..Self::new("ten tables", &[])
        }
    }

    /// One rule on a TCP port, so that frames are parsed up to the transport header.
    #[must_use]
    pub fn tcp_port_rule() -> Self {
        Self::new("one rule, TCP port", &["tcp,tp_dst=80,actions=output:2"])
    }

    /// Rules for `count` destination addresses, spread over three ports, and a frame to each
    /// address.
    #[must_use]
    pub fn mac_addresses(name: &'static str, count: u32) -> Self {
        let address = |n: u32| {
            let [_, a, b, c] = n.to_be_bytes();
            format!("02:00:00:{a:02x}:{b:02x}:{c:02x}")
        };
        let flow = |n: u32| format!("dl_dst={},actions=output:{}", address(n), 2 + n % 3);
        let frame = |n: u32| format!("eth(dst={}) / ipv4 / udp / data(18)", address(n));
        Self {
            flows: (0..count).map(flow).collect(),
            frames: (0..count).map(frame).collect(),
            ..Self::new(name, &[])
        }
    }

    /// A chain of ten tables, each of which matches a register and writes it.
    #[must_use]
    pub fn ten_tables_with_registers() -> Self {
        let leading = |n| {
            let next = n + 1;
            format!("table={n},tcp,reg0={n},actions=load:{next}->NXM_NX_REG0[],resubmit(,{next})")
        };
        let last = "table=9,tcp,reg0=9,actions=output:2".to_owned();
        Self {
            flows: (0..9).map(leading).chain([last]).collect(),
            ..Self::new("ten tables with registers", &[])
        }
    }

    /// A `select` group, which selects a bucket by a hash.
    #[must_use]
    pub fn group() -> Self {
        let group = "group_id=1,type=select,bucket=output:2,bucket=output:3,bucket=output:4";
        Self {
            groups: vec![group.to_owned()],
            ..Self::new("a select group", &["in_port=1,actions=group:1"])
        }
    }

    /// A meter with a rate that is not exceeded.
    #[must_use]
    pub fn meter() -> Self {
        let meter = "meter=1,pktps,burst,stats,band=type=drop,rate=1000000,burst_size=1000000";
        Self {
            meters: vec![meter.to_owned()],
            ..Self::new("a meter", &["in_port=1,actions=meter:1,output:2"])
        }
    }

    /// `count` rules with one mask, and a frame for each of up to 2,000 rules.
    #[must_use]
    pub fn exact(name: &'static str, count: u32) -> Self {
        // A hundred thousand frames would not fit the caches, which is a different measurement.
        Self::exact_with_step(name, count, count / 2000 + 1)
    }

    /// The workload [`exact`](Self::exact) with a frame for each `step`th rule.
    #[must_use]
    pub fn exact_with_step(name: &'static str, count: u32, step: u32) -> Self {
        let flow = |n: u32| {
            let [_, port, upper, lower] = n.to_be_bytes();
            format!("udp,nw_src=10.0.{upper}.{lower},tp_dst={port},actions=output:2")
        };
        let frame = |n: u32| {
            let [_, port, upper, lower] = n.to_be_bytes();
            format!("eth / ipv4(src=10.0.{upper}.{lower}) / udp(dst={port})")
        };
        let step = usize::try_from(step).expect("it fits");
        Self {
            flows: (0..count).map(flow).collect(),
            frames: (0..count).step_by(step).map(frame).collect(),
            ..Self::new(name, &[])
        }
    }

    /// Ten masks, of which the last in the lookup order matches [`FRAME`].
    #[must_use]
    pub fn ten_masks() -> Self {
        let other = |bits| format!("priority={bits},tcp,nw_src=192.168.0.0/{bits},actions=drop");
        let matching = "priority=1,tcp,nw_src=10.0.0.0/8,actions=output:2".to_owned();
        Self {
            flows: (16..25).map(other).chain([matching]).collect(),
            ..Self::new("ten shapes", &[])
        }
    }

    /// A hundred rules that do not match [`FRAME`], and one of lower priority that does.
    #[must_use]
    pub fn last_of_many() -> Self {
        let other = |n| format!("priority=10,tcp,tp_dst={n},actions=output:2");
        let matching = "priority=1,in_port=1,actions=output:2".to_owned();
        Self {
            flows: (1000..1100).map(other).chain([matching]).collect(),
            ..Self::new("the last of 101 rules", &[])
        }
    }

    /// The same frames, with more flows after the others.
    #[must_use]
    pub fn with_flows(mut self, flows: impl IntoIterator<Item = String>) -> Self {
        self.flows.extend(flows);
        self
    }

    /// The same flows with a mix of frames: nine of this workload, then one of `other`, until all
    /// frames of `other` are used.
    #[must_use]
    pub fn mixed_nine_to_one(self, other: Self) -> Self {
        let mut own = self.frames.iter().cycle().cloned();
        let turn = |tenth| own.by_ref().take(9).chain([tenth]).collect::<Vec<_>>();
        Self {
            frames: other.frames.into_iter().flat_map(turn).collect(),
            ..self.clone()
        }
    }

    /// Returns the number of flows.
    #[must_use]
    pub const fn flows(&self) -> usize {
        self.flows.len()
    }

    /// Returns the flows in the syntax of `ovs-ofctl`.
    #[must_use]
    pub fn flow_lines(&self) -> &[String] {
        &self.flows
    }

    /// Builds the tables.
    ///
    /// # Panics
    /// If the text is malformed, or the tables refuse a flow, group or meter.
    #[must_use]
    pub fn load(&self) -> LoadedWorkload {
        let mut pipeline = Pipeline::new(Limits::default(), 1);
        for number in 1..=PORTS {
            pipeline.set_port(&PortDesc::new(PortNo(number)));
        }
        if self.flows.iter().any(|flow| flow.contains("tun_metadata0")) {
            let mapping = TlvTableMod {
                command: TlvCommand::Add,
                mappings: vec![TlvMapping {
                    class: 0xffff,
                    kind: 1,
                    length: 4,
                    index: 0,
                }],
            };
            let mapped = pipeline.tlv_table_mod(&mapping);
            mapped.expect("the table of options is empty");
        }
        if self.flows.iter().any(|flow| flow.contains("ct(")) {
            let tracker = Conntrack::new(HashSeed([7, 11]), CONNECTIONS_MAX);
            pipeline.set_tracker(Arc::new(tracker));
        }
        for line in &self.groups {
            let command = parse_group_line(line).expect(line);
            pipeline.group_mod(&command, Instant::START).expect(line);
        }
        for line in &self.meters {
            let command = parse_meter_line(line).expect(line);
            pipeline.meter_mod(&command, Instant::START).expect(line);
        }
        let mut add = |line: &String| {
            let command = parse_flow_line(line).expect(line);
            pipeline.flow_mod(&command, Instant::START).expect(line)
        };
        let changes = self.flows.iter().map(&mut add).collect();
        LoadedWorkload {
            changes,
            frames: self.frames(),
            pipeline,
        }
    }

    /// Returns the bytes of the frames.
    ///
    /// # Panics
    /// If the text is malformed.
    #[must_use]
    pub fn frames(&self) -> Vec<Vec<u8>> {
        self.frames.iter().map(|text| frame(text)).collect()
    }

    /// Returns the bytes of the frames that arrive at port 2.
    ///
    /// # Panics
    /// If the text is malformed.
    #[must_use]
    pub fn replies(&self) -> Vec<Vec<u8>> {
        self.replies.iter().map(|text| frame(text)).collect()
    }

    /// Returns the groups in the syntax of `ovs-ofctl`.
    #[must_use]
    pub fn group_lines(&self) -> &[String] {
        &self.groups
    }
}

/// Returns the bytes of a frame.
///
/// # Panics
/// If `text` is not a frame.
#[must_use]
pub fn frame(text: &str) -> Vec<u8> {
    text.parse::<Stack>().expect(text).build().bytes().to_vec()
}

/// Built tables, and the frames for them.
#[derive(Debug)]
pub struct LoadedWorkload {
    /// The tables.
    pub pipeline: Pipeline,
    /// The rule changes of each added flow, in the order of the flows.
    pub changes: Vec<Changes>,
    /// The frames.
    pub frames: Vec<Vec<u8>>,
}

/// A worker without ports: buffers, an interpreter, and a clock that advances by 1 µs a frame.
pub struct InterpreterRunner {
    pool: Pool,
    interpreter: Interpreter,
    verdict: Verdict,
    now: Instant,
}

impl InterpreterRunner {
    /// The number of buffers.
    const BUFFERS: usize = 64;

    /// Returns a runner at the start of its clock.
    #[must_use]
    pub fn new() -> Self {
        Self {
            pool: Pool::new(Self::BUFFERS),
            interpreter: Interpreter::new(0),
            verdict: Verdict::new(),
            now: Instant::START,
        }
    }

    /// Runs a frame that arrives at port 1, and returns the verdict.
    ///
    /// # Panics
    /// If the frame is longer than a buffer.
    pub fn run<'a>(&mut self, tables: impl Into<LookupTables<'a>>, bytes: &[u8]) -> &Verdict {
        self.verdict
            .frames
            .drain(..)
            .for_each(|frame| self.pool.put(frame));
        let mut frame = self.pool.take().expect("all were put back");
        frame.copy_from(bytes).expect("it is short");
        self.now = Instant::from_nanos(self.now.as_nanos() + 1000);
        let input = InputFrame {
            frame,
            in_port: PortNo(1),
            now: self.now,
        };
        let (tables, pool) = (tables.into(), &mut self.pool);
        self.interpreter
            .run(tables, input, pool, &mut (), &mut self.verdict);
        &self.verdict
    }
}

impl Default for InterpreterRunner {
    fn default() -> Self {
        Self::new()
    }
}

/// A worker without ports that runs whole batches through compiled tables. Output frames are the
/// input of the next batch.
pub struct BatchRunner {
    pool: Pool,
    runner: fastpath::Runner,
    view: fastpath::View,
    frames: Vec<Frame>,
    /// Frames that were output, for the next batch.
    output_frames: Vec<Frame>,
    now: Instant,
}

impl BatchRunner {
    /// Frames in a batch, as many as a port returns at most.
    pub const BATCH: usize = 64;

    /// Returns a runner with the first [`BatchRunner::BATCH`] of these frames.
    ///
    /// # Panics
    /// If a frame is longer than a buffer.
    #[must_use]
    pub fn new<'a>(view: fastpath::View, frames: impl IntoIterator<Item = &'a Vec<u8>>) -> Self {
        let mut pool = Pool::new(2 * Self::BATCH);
        let frames = frames.into_iter().take(Self::BATCH).map(|bytes| {
            let mut frame = pool.take().expect("there are as many");
            frame.copy_from(bytes).expect("it is short");
            frame
        });
        Self {
            frames: frames.collect(),
            output_frames: Vec::with_capacity(Self::BATCH),
            pool,
            runner: fastpath::Runner::new(0),
            view,
            now: Instant::START,
        }
    }

    /// Runs all frames as one batch that arrives at port 1. Returns the number of frames that the
    /// fast path forwarded without a verdict.
    pub fn run(&mut self, pipeline: &Pipeline) -> usize {
        self.now = Instant::from_nanos(self.now.as_nanos() + 1000);
        let context = BatchContext {
            pipeline,
            view: &self.view,
            in_port: PortNo(1),
            now: self.now,
        };
        let (mut forwarded, count) = (0, self.frames.len());
        {
            let mut batch = self.runner.begin(context, &mut self.frames);
            if batch.forward_all().is_some() {
                return count;
            }
            while let Some(outcome) = batch.next(&mut self.pool) {
                match outcome {
                    FrameOutcome::Forward(frames, _) => {
                        forwarded += frames.len();
                        match frames {
                            [frame] => self.output_frames.push(std::mem::take(frame)),
                            frames => self
                                .output_frames
                                .extend(frames.iter_mut().map(std::mem::take)),
                        }
                    }
                    FrameOutcome::Verdict(verdict) => {
                        self.output_frames.extend(verdict.frames.pop())
                    }
                }
            }
        }
        self.frames.clear();
        std::mem::swap(&mut self.frames, &mut self.output_frames);
        forwarded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workload_frames_are_output_to_one_port() {
        for workload in [
            Workload::one_rule(),
            Workload::twelve_fields(),
            Workload::tcp_port_rule(),
            Workload::mac_addresses("some", 300),
            Workload::normal(),
            Workload::rewritten(),
            Workload::ten_tables(),
            Workload::ten_tables_with_registers(),
            Workload::group(),
            Workload::meter(),
            Workload::exact("some", 300),
            Workload::ten_masks(),
            Workload::last_of_many(),
            Workload::networks("some", 300),
            Workload::access_list("some", 300, TrafficPattern::Fitting),
            Workload::access_list("some", 300, TrafficPattern::Zipf),
            Workload::access_list("some", 300, TrafficPattern::Attack),
            Workload::three_rules("three", TrafficPattern::Same),
            Workload::three_rules("three", TrafficPattern::Fitting),
            Workload::three_rules("three", TrafficPattern::Zipf),
            Workload::routed("routed", TrafficPattern::Same, 10),
            Workload::routed("routed", TrafficPattern::Fitting, 300),
            Workload::routed("routed", TrafficPattern::Random, 300),
        ] {
            let (loaded, mut runner) = (workload.load(), InterpreterRunner::new());
            assert_eq!(loaded.changes.len(), workload.flows());
            for bytes in &loaded.frames {
                let verdict = runner.run(&loaded.pipeline, bytes);
                assert_eq!(verdict.egress.len(), 1, "{}", workload.name);
            }
        }
    }
}
