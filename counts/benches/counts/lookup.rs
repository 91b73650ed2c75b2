//! One table: the lookup of a frame in its compiled form, and the addition of rules.

use std::hint::black_box;

use base::{Instant, PortNo, TableId};
use fastpath::{Classifier, LookupScratch, View, ViewLookup};
use flow::text::parse_flow_line;
use flow::{FlowMod, PipelineFields};
use gungraun::{library_benchmark, library_benchmark_group};
use packet::{Depth, Frame, Headers};
use pipeline::{Changes, Lookup, LookupResult, Pipeline};
use testkit::workload::{TWELVE_FIELDS, TrafficPattern, Workload, frame};

use crate::frames::SEED;

/// The frame that no specific rule matches.
const UNMATCHED_FRAME: &str = "eth / ipv6 / udp(dst=9)";

/// A compiled table and a parsed frame. Boxed, so that passing it copies nothing.
struct LookupCase {
    view: View,
    scratch: LookupScratch,
    headers: Headers,
    registers: PipelineFields,
}

/// A table and a frame that matches a rule in it.
fn hit(workload: &Workload) -> Box<LookupCase> {
    let bytes = workload.load().frames.swap_remove(0);
    case(workload, &bytes)
}

fn miss(workload: &Workload) -> Box<LookupCase> {
    case(workload, &frame(UNMATCHED_FRAME))
}

fn case(workload: &Workload, bytes: &[u8]) -> Box<LookupCase> {
    let (_, _, view) = compiled(workload);
    let headers = Headers::parse(&Frame::from_bytes(bytes), Depth::Transport).unwrap();
    let case = Box::new(LookupCase {
        view,
        scratch: LookupScratch::new(),
        headers,
        registers: PipelineFields::new(PortNo(1)),
    });
    // The first lookup detects the processor's features, which are cached; the counted one does
    // not.
    look_up(&case);
    case
}

fn look_up(case: &LookupCase) {
    let lookup = ViewLookup::new(&case.view, &case.scratch);
    let found = lookup.look_up(TableId(0), &case.headers, &case.registers);
    assert!(matches!(black_box(found), LookupResult::Rule(_)));
}

fn compiled(workload: &Workload) -> (Pipeline, Classifier, View) {
    let loaded = workload.load();
    let mut classifier = Classifier::with_seed(SEED);
    for changes in &loaded.changes {
        classifier.queue_changes(changes);
    }
    let view = classifier.publish(&loaded.pipeline);
    (loaded.pipeline, classifier, view)
}

fn thousand() -> Workload {
    Workload::exact("1,000 exact flows", 1000)
}

fn list(count: u64) -> Workload {
    Workload::access_list("an access list", count, TrafficPattern::Fitting)
}

fn networks(count: u64) -> Workload {
    Workload::networks("networks", count)
}

fn one_shape() -> Workload {
    Workload::new("one shape", &[TWELVE_FIELDS])
}

#[library_benchmark]
#[bench::one_shape_hit(hit(&one_shape()))]
#[bench::one_shape_miss(miss(&one_shape()))]
#[bench::ten_shapes_hit(hit(&Workload::ten_masks()))]
#[bench::ten_shapes_miss(miss(&Workload::ten_masks()))]
#[bench::thousand_rules_hit(hit(&thousand()))]
#[bench::thousand_rules_miss(miss(&thousand()))]
#[bench::list_of_ten_hit(hit(&list(10)))]
#[bench::list_of_ten_miss(miss(&list(10)))]
#[bench::list_of_thousand_hit(hit(&list(1000)))]
#[bench::list_of_thousand_miss(miss(&list(1000)))]
#[bench::list_of_ten_thousand_hit(hit(&list(10_000)))]
#[bench::list_of_ten_thousand_miss(miss(&list(10_000)))]
#[bench::thousand_networks_hit(hit(&networks(1000)))]
#[bench::ten_thousand_networks_hit(hit(&networks(10_000)))]
#[bench::ten_thousand_networks_miss(miss(&networks(10_000)))]
fn find(case: Box<LookupCase>) -> Box<LookupCase> {
    look_up(&case);
    case
}

/// Tables of a thousand rules, and the commands for a hundred more.
struct RuleAdditions {
    pipeline: Pipeline,
    classifier: Classifier,
    commands: Vec<FlowMod>,
    changes: Vec<Changes>,
    view: Option<View>,
}

fn more() -> Box<RuleAdditions> {
    let (pipeline, classifier, view) = compiled(&thousand());
    let flow = |n| format!("udp,nw_src=10.1.0.{n},tp_dst={n},actions=output:2");
    let flows = (0..100).map(flow);
    Box::new(RuleAdditions {
        pipeline,
        classifier,
        commands: flows.map(|flow| parse_flow_line(&flow).unwrap()).collect(),
        changes: Vec::with_capacity(100),
        view: Some(view),
    })
}

/// The same after the pipeline has applied the commands.
fn added() -> Box<RuleAdditions> {
    hundred_added(more())
}

fn hundred_added(mut more: Box<RuleAdditions>) -> Box<RuleAdditions> {
    for command in &more.commands {
        let changes = more.pipeline.flow_mod(command, Instant::START).unwrap();
        more.changes.push(changes);
    }
    more
}

#[library_benchmark]
#[bench::to_the_tables(more())]
fn add_hundred(more: Box<RuleAdditions>) -> Box<RuleAdditions> {
    hundred_added(more)
}

#[library_benchmark]
#[bench::hundred(added())]
fn publish(mut more: Box<RuleAdditions>) -> Box<RuleAdditions> {
    for changes in &more.changes {
        more.classifier.queue_changes(changes);
    }
    more.view = Some(more.classifier.publish(&more.pipeline));
    more
}

library_benchmark_group!(name = tables, benchmarks = [find, add_hundred, publish]);
