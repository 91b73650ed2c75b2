//! The text form of a flow.

use std::hint::black_box;

use flow::FlowMod;
use flow::text::parse_flow_line;
use gungraun::{library_benchmark, library_benchmark_group};
use testkit::workload::TWELVE_FIELDS;

const ACTIONS: &str = "table=3,tcp,reg0=7,\
     actions=push_vlan:0x8100,mod_vlan_vid:5,load:1->NXM_NX_REG1[],output:2,resubmit(,4)";

/// A flow that was printed once before.
fn printed(line: &str) -> FlowMod {
    let flow = flow(line);
    drop(flow.to_string());
    flow
}

fn flow(line: &str) -> FlowMod {
    parse_flow_line(line).unwrap()
}

/// A line that was parsed once before: the allocator has the memory for the second time.
fn line(line: &str) -> &str {
    drop(flow(line));
    line
}

#[library_benchmark]
#[bench::twelve_fields(line(TWELVE_FIELDS))]
#[bench::actions(line(ACTIONS))]
fn read(line: &str) -> FlowMod {
    parse_flow_line(black_box(line)).unwrap()
}

#[library_benchmark]
#[bench::twelve_fields(printed(TWELVE_FIELDS))]
#[bench::actions(printed(ACTIONS))]
fn print(flow: FlowMod) -> (FlowMod, String) {
    let text = black_box(&flow).to_string();
    (flow, text)
}

library_benchmark_group!(name = words, benchmarks = [read, print]);
