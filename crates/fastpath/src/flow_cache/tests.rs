//! The cache is used where it pays, and statistics are complete. The oracle tests compare its
//! results with the interpreter.

use base::{Instant, PortNo, TableId};
use flow::PortDesc;
use flow::text::parse_flow_line;
use packet::build::Stack;
use packet::{Frame, Pool};
use pipeline::{Limits, Pipeline};

use super::entries::ENTRIES;
use super::pending_stats::{FLUSH_INTERVAL, FLUSHED_PER_BATCH};
use super::*;
use crate::batch_state::BatchContext;
use crate::cache_policy::{CacheState, DISABLED_MIN};
use crate::classifier::Classifier;
use crate::exec::FrameOutcome;
use crate::runner::Runner;

const BATCH: u32 = 64;

/// A chain of tables, the last of which matches on the source address.
struct TableChain {
    pipeline: Pipeline,
    classifier: Classifier,
    now: Instant,
    /// Number of frames that were run.
    frames: u64,
}

impl TableChain {
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

    /// Runs the batches of so many windows and one more, with frames of these hosts.
    fn run(&mut self, runner: &mut Runner, windows: u32, host: impl Fn(u32) -> u32) {
        self.run_batches(runner, windows * WINDOW / 2 + 1, host);
    }

    /// Packets counted by the rule that outputs them, and by table 0.
    fn counts(&self) -> [u64; 2] {
        let rules = self.pipeline.rules(TableId::ALL);
        let counts = rules.map(|rule| rule.statistics(self.now).packets);
        let (matched, _) = self.pipeline.table_counters(TableId::FIRST);
        [counts.max().unwrap_or(0), matched.totals().packets]
    }

    /// Runs so many batches, with frames of these hosts.
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
fn cache_is_enabled_for_few_flows_in_many_tables() {
    let (mut tables, mut runner) = (TableChain::new(6), Runner::new(0));
    tables.run(&mut runner, 3, |number| number % 100);
    assert_eq!(runner.memory.flow_cache.policy.state, CacheState::Enabled);
    let before = runner.memory.flow_cache.window;
    tables.run(&mut runner, 0, |number| number % 100);
    let after = runner.memory.flow_cache.window;
    assert_eq!(after.hits - before.hits, u64::from(BATCH));
    let (hits, frames) = (runner.flow_cache_hits(), tables.frames);
    tables.run(&mut runner, 2, |number| number % 100);
    let lookups = tables.frames - frames;
    assert_eq!(runner.flow_cache_hits() - hits, lookups, "of all windows");
}

#[test]
fn table_change_empties_cache_and_releases_rules() {
    let (mut tables, mut runner) = (TableChain::new(6), Runner::with_flow_cache(0));
    tables.run(&mut runner, 1, |number| number % 100);
    tables.add("table=3,priority=9,tcp,actions=drop");
    let before = runner.memory.flow_cache.window;
    tables.run(&mut runner, 0, |_| 7);
    let after = runner.memory.flow_cache.window;
    assert_eq!(
        after.hits - before.hits,
        u64::from(BATCH) / 2,
        "the first lookup batch missed"
    );
    let windows = ENTRIES.div_ceil(WINDOW as usize / 2);
    tables.run(&mut runner, u32::try_from(windows).expect("few"), |_| 7);
    let entries = runner.memory.flow_cache.entries.as_ref();
    assert_eq!(entries.map(CacheEntries::len), Some(1));
}

#[test]
fn cache_is_disabled_ever_longer_for_unique_flows() {
    let (mut tables, mut runner) = (TableChain::new(6), Runner::new(0));
    tables.run(&mut runner, 3, |number| number);
    assert!(matches!(
        runner.memory.flow_cache.policy.state,
        CacheState::Disabled(_)
    ));
    assert_eq!(
        runner.memory.flow_cache.policy.disabled_windows,
        2 * DISABLED_MIN
    );
    assert!(runner.memory.flow_cache.enabled().is_none());
}

#[test]
fn cache_is_not_used_for_few_tables() {
    let (mut tables, mut runner) = (TableChain::new(3), Runner::new(0));
    tables.run(&mut runner, 3, |_| 0);
    assert_eq!(
        runner.memory.flow_cache.policy.state,
        CacheState::Disabled(0)
    );
    assert!(runner.memory.flow_cache.entries.is_none());
}

#[test]
fn cache_is_disabled_while_tables_change() {
    let (mut tables, mut runner) = (TableChain::new(6), Runner::new(0));
    tables.run(&mut runner, 3, |_| 0);
    assert_eq!(runner.memory.flow_cache.policy.state, CacheState::Enabled);
    for port in 0..=CHANGES_MAX {
        tables.add(&format!(
            "table=3,priority=9,tcp,tp_dst={port},actions=drop"
        ));
        tables.run(&mut runner, 0, |_| 0);
    }
    assert!(matches!(
        runner.memory.flow_cache.policy.state,
        CacheState::Disabled(_)
    ));
}

#[test]
fn frames_of_more_flows_than_entries_are_counted_once() {
    let (mut tables, mut runner) = (TableChain::new(6), Runner::with_flow_cache(0));
    // Every other host has its own rule, so an entry and its replacement often differ in their rules.
    tables.add("table=5,priority=3,udp,nw_src=0.0.0.1/0.0.0.1,actions=output:2");
    let flows = 2 * u32::try_from(ENTRIES).expect("few");
    tables.run(&mut runner, 8, |number| number % flows);
    assert!(
        runner.memory.flow_cache.window.hits > 0,
        "some packets hit the cache"
    );
    let counts_by_rule = |tables: &TableChain| {
        let rules = tables.pipeline.rules(TableId(5));
        let counts = rules.map(|rule| rule.statistics(tables.now).packets);
        counts.filter(|count| *count > 0).collect::<Vec<_>>()
    };
    let all = tables.frames;
    assert!(
        counts_by_rule(&tables).iter().sum::<u64>() < all,
        "some packets are pending"
    );
    for _ in 0..2 {
        runner.flush_stats();
        assert_eq!(counts_by_rule(&tables), [all / 2; 2]);
        assert_eq!(tables.counts(), [all; 2]);
    }
}

#[test]
fn pending_statistics_are_flushed_when_due() {
    let (mut tables, mut runner) = (TableChain::new(6), Runner::with_flow_cache(0));
    tables.run(&mut runner, 8, |number| number % 1000);
    let before = tables.frames;
    tables.now += FLUSH_INTERVAL;
    let batches = 1000_usize.div_ceil(FLUSHED_PER_BATCH);
    let batches = u32::try_from(batches).expect("few");
    tables.run_batches(&mut runner, batches - 1, |_| 2000);
    assert!(tables.counts().iter().all(|count| *count < before));
    tables.run_batches(&mut runner, 1, |_| 2000);
    assert!(tables.counts().iter().all(|count| *count >= before));
}

#[test]
fn pending_statistics_are_flushed_before_tables_change() {
    let (mut tables, mut runner) = (TableChain::new(6), Runner::with_flow_cache(0));
    tables.run(&mut runner, 1, |number| number % 1000);
    let before = tables.frames;
    tables.add("table=3,priority=9,tcp,actions=drop");
    tables.run_batches(&mut runner, 1, |_| 7);
    assert!(tables.counts().iter().all(|count| *count >= before));
    let frames = tables.frames;
    drop(runner);
    assert_eq!(tables.counts(), [frames; 2]);
}
