//! Trails are looked for where they are of use, and nowhere else. That they lead where
//! lookups do is for the oracle to tell.

use base::{Instant, PortNo, TableId};
use flow::PortDesc;
use flow::text::parse_flow_line;
use packet::build::Stack;
use packet::{Frame, Pool};
use pipeline::{Limits, Pipeline};

use super::kept::TRAILS;
use super::unsettled::{EVERY, SETTLED_A_BATCH};
use super::*;
use crate::classifier::Classifier;
use crate::runner::{BatchContext, FrameOutcome, Runner};

const BATCH: u32 = 64;

/// Tables, one after the other, the last but one of which tells hosts apart.
struct Tables {
    pipeline: Pipeline,
    classifier: Classifier,
    now: Instant,
    /// Frames that have been run.
    frames: u64,
}

impl Tables {
    fn new(count: u32) -> Self {
        let mut tables = Self {
            pipeline: Pipeline::new(Limits::default(), 1),
            classifier: Classifier::new(),
            now: Instant::START,
            frames: 0,
        };
        for port in 1..=2 {
            tables.pipeline.set_port(&PortDesc::new(PortNo(port)));
        }
        for table in 0..count - 1 {
            tables.add(&format!(
                "table={table},udp,actions=goto_table:{}",
                table + 1
            ));
        }
        let last = count - 1;
        tables.add(&format!(
            "table={last},priority=2,udp,nw_src=10.0.0.1,actions=drop"
        ));
        tables.add(&format!("table={last},priority=1,udp,actions=output:2"));
        tables
    }

    fn add(&mut self, line: &str) {
        let command = parse_flow_line(line).expect(line);
        let changes = self.pipeline.flow_mod(&command, Instant::START);
        self.classifier.queue_changes(&changes.expect(line));
    }

    /// Runs as many batches of frames of these hosts as windows have, and more.
    fn run(&mut self, runner: &mut Runner, windows: u32, host: impl Fn(u32) -> u32) {
        self.run_batches(runner, windows * WINDOW / 2 + 1, host);
    }

    /// Frames that the rule counts by which they leave, and table 0.
    fn counted(&self) -> [u64; 2] {
        let rules = self.pipeline.rules(TableId::ALL);
        let counts = rules.map(|rule| rule.statistics(self.now).packets);
        let (matched, _) = self.pipeline.table_counters(TableId::FIRST);
        [counts.max().unwrap_or(0), matched.totals().packets]
    }

    /// The same of so many batches.
    fn run_batches(&mut self, runner: &mut Runner, batches: u32, host: impl Fn(u32) -> u32) {
        let pipeline = &self.pipeline;
        let current = self.classifier.current();
        let view = current.unwrap_or_else(|| self.classifier.publish(pipeline));
        let ground = BatchContext {
            pipeline,
            view: &view,
            in_port: PortNo(1),
            now: self.now,
        };
        let mut pool = Pool::new(1);
        let mut frames: Vec<Frame> = (0..BATCH).map(|_| frame(host(0))).collect();
        let (mut number, count) = (0, frames.len());
        for _ in 0..batches {
            self.frames += u64::from(BATCH);
            for frame in &mut frames {
                let source = (0x0b00_0000 + host(number)).to_be_bytes();
                frame.bytes_mut()[26..30].copy_from_slice(&source);
                number += 1;
            }
            let mut batch = runner.begin(ground, &mut frames);
            let mut left = 0;
            while let Some(FrameOutcome::Forward(frames, PortNo(2))) = batch.next(&mut pool) {
                left += frames.len();
            }
            assert_eq!(left, count);
        }
    }
}

fn frame(host: u32) -> Frame {
    let stack = format!("eth / ipv4(src={}) / udp", std::net::Ipv4Addr::from(host));
    stack.parse::<Stack>().expect("a frame").build()
}

#[test]
fn few_flows_go_trails_where_tables_are_many() {
    let (mut tables, mut runner) = (Tables::new(6), Runner::new(0));
    tables.run(&mut runner, 3, |number| number % 100);
    assert_eq!(runner.trails.stage, Stage::Used);
    let before = runner.trails.window;
    tables.run(&mut runner, 0, |number| number % 100);
    let after = runner.trails.window;
    assert_eq!(after.hits - before.hits, u64::from(BATCH));
}

#[test]
fn all_begin_anew_when_tables_change_and_none_is_kept_for_ever() {
    let (mut tables, mut runner) = (Tables::new(6), Runner::with_flow_cache(0));
    tables.run(&mut runner, 1, |number| number % 100);
    tables.add("table=3,priority=9,tcp,actions=drop");
    let before = runner.trails.window;
    tables.run(&mut runner, 0, |_| 7);
    let after = runner.trails.window;
    assert_eq!(after.hits - before.hits, u64::from(BATCH) / 2, "once read");
    let windows = TRAILS.div_ceil(WINDOW as usize / 2);
    tables.run(&mut runner, u32::try_from(windows).expect("few"), |_| 7);
    let kept = runner.trails.kept.as_ref().map(Kept::len);
    assert_eq!(kept, Some(1));
}

#[test]
fn flows_that_never_come_again_go_none_and_it_is_tried_ever_more_seldom() {
    let (mut tables, mut runner) = (Tables::new(6), Runner::new(0));
    tables.run(&mut runner, 3, |number| number);
    assert!(matches!(runner.trails.stage, Stage::Resting(_)));
    assert_eq!(runner.trails.rest, 2 * REST_MIN);
    assert!(runner.trails.used().is_none());
}

#[test]
fn few_tables_have_none() {
    let (mut tables, mut runner) = (Tables::new(3), Runner::new(0));
    tables.run(&mut runner, 3, |_| 0);
    assert_eq!(runner.trails.stage, Stage::Resting(0));
    assert!(runner.trails.kept.is_none());
}

#[test]
fn tables_that_always_change_have_none() {
    let (mut tables, mut runner) = (Tables::new(6), Runner::new(0));
    tables.run(&mut runner, 3, |_| 0);
    assert_eq!(runner.trails.stage, Stage::Used);
    for port in 0..=CHANGES_MAX {
        tables.add(&format!(
            "table=3,priority=9,tcp,tp_dst={port},actions=drop"
        ));
        tables.run(&mut runner, 0, |_| 0);
    }
    assert!(matches!(runner.trails.stage, Stage::Resting(_)));
}

#[test]
fn each_frame_is_counted_once_though_there_are_more_flows_than_trails() {
    let (mut tables, mut runner) = (Tables::new(6), Runner::with_flow_cache(0));
    // Every other host has a rule of its own: who takes another's place has not always its rules.
    tables.add("table=5,priority=3,udp,nw_src=0.0.0.1/0.0.0.1,actions=output:2");
    let flows = 2 * u32::try_from(TRAILS).expect("few");
    tables.run(&mut runner, 8, |number| number % flows);
    assert!(runner.trails.window.hits > 0, "some go a trail");
    let by_host = |tables: &Tables| {
        let rules = tables.pipeline.rules(TableId(5));
        let counts = rules.map(|rule| rule.statistics(tables.now).packets);
        counts.filter(|count| *count > 0).collect::<Vec<_>>()
    };
    let all = tables.frames;
    assert!(by_host(&tables).iter().sum::<u64>() < all, "some later");
    for _ in 0..2 {
        runner.flush_stats();
        assert_eq!(by_host(&tables), [all / 2; 2]);
        assert_eq!(tables.counted(), [all; 2]);
    }
}

#[test]
fn what_was_counted_is_written_down_when_it_is_due_while_batches_come() {
    let (mut tables, mut runner) = (Tables::new(6), Runner::with_flow_cache(0));
    tables.run(&mut runner, 8, |number| number % 1000);
    let before = tables.frames;
    tables.now += EVERY;
    let batches = 1000_usize.div_ceil(SETTLED_A_BATCH);
    let batches = u32::try_from(batches).expect("few");
    tables.run_batches(&mut runner, batches - 1, |_| 2000);
    assert!(tables.counted().iter().all(|counted| *counted < before));
    tables.run_batches(&mut runner, 1, |_| 2000);
    assert!(tables.counted().iter().all(|counted| *counted >= before));
}

#[test]
fn what_was_counted_is_written_down_before_other_tables_are_used() {
    let (mut tables, mut runner) = (Tables::new(6), Runner::with_flow_cache(0));
    tables.run(&mut runner, 1, |number| number % 1000);
    let before = tables.frames;
    tables.add("table=3,priority=9,tcp,actions=drop");
    tables.run_batches(&mut runner, 1, |_| 7);
    assert!(tables.counted().iter().all(|counted| *counted >= before));
    let frames = tables.frames;
    drop(runner);
    assert_eq!(tables.counted(), [frames; 2]);
}
