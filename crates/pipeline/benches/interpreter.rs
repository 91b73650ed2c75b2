//! What the interpreter costs a worker, in nanoseconds a frame: three set-ups,
//! each the best of several rounds. `cargo bench -p pipeline`.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measurement reads the clock, prints, and may fail"
)]

use std::hint::black_box;
use std::time::Instant as Clock;

use base::{Instant, PortNo};
use flow::PortDesc;
use flow::text::parse_flow_line;
use packet::Pool;
use packet::build::Stack;
use pipeline::{Arrival, Interpreter, Limits, Pipeline, Verdict};

const ROUNDS: usize = 20;
const FRAMES: u64 = 200_000;

fn port(number: u32) -> PortDesc {
    PortDesc::new(PortNo(number))
}

fn pipeline(flows: &[String]) -> Pipeline {
    let mut pipeline = Pipeline::new(Limits::default(), 1);
    for number in 1..=4 {
        pipeline.set_port(&port(number));
    }
    for flow in flows {
        let command = parse_flow_line(flow).unwrap();
        pipeline.flow_mod(&command, Instant::START).unwrap();
    }
    pipeline
}

fn measure(name: &str, flows: &[String], frame: &str) {
    let pipeline = pipeline(flows);
    let bytes = frame.parse::<Stack>().unwrap().build().bytes().to_vec();
    let mut pool = Pool::new(64);
    let mut interpreter = Interpreter::new(0);
    let mut verdict = Verdict::new();
    let mut round = || {
        let start = Clock::now();
        for nanos in 0..FRAMES {
            let mut frame = pool.take().unwrap();
            frame.copy_from(&bytes).unwrap();
            let arrival = Arrival {
                frame,
                from: PortNo(1),
                now: Instant::from_nanos(nanos),
            };
            interpreter.run(&pipeline, arrival, &mut pool, &mut (), &mut verdict);
            assert_eq!(black_box(&verdict).egress.len(), 1);
            verdict.frames.drain(..).for_each(|frame| pool.put(frame));
        }
        start.elapsed().as_secs_f64() * 1e9 / FRAMES as f64
    };
    let best = (0..ROUNDS).map(|_| round()).fold(f64::MAX, f64::min);
    println!("{name:32} {best:6.1} ns");
}

fn main() {
    let exact = "priority=10,in_port=1,dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:02,\
                 dl_vlan=0xffff,tcp,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_tos=0,\
                 tp_src=1000,tp_dst=80,actions=output:2";
    let tcp = "eth / ipv4 / tcp / data(6)";
    let flows = |flows: &[&str]| flows.iter().map(ToString::to_string).collect::<Vec<_>>();
    measure(
        "one rule, in_port",
        &flows(&["in_port=1,actions=output:2"]),
        tcp,
    );
    measure("one rule, twelve fields", &flows(&[exact]), tcp);
    measure(
        "one rule, NORMAL",
        &flows(&["priority=0,actions=NORMAL"]),
        tcp,
    );
    measure(
        "one rule, two fields rewritten",
        &flows(&["tcp,actions=mod_nw_dst:10.0.0.9,mod_tp_dst:7,output:2"]),
        tcp,
    );
    let many: Vec<_> = (0..100)
        .map(|n| format!("priority=10,tcp,tp_dst={},actions=output:2", 1000 + n))
        .chain(flows(&["priority=1,in_port=1,actions=output:2"]))
        .collect();
    measure("the last of 101 rules", &many, tcp);
    let chain: Vec<_> = (0..9)
        .map(|n| format!("table={n},in_port=1,actions=goto_table:{}", n + 1))
        .chain(flows(&["table=9,in_port=1,actions=output:2"]))
        .collect();
    measure("ten tables", &chain, tcp);
}
