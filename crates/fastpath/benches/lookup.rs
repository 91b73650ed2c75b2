//! What a frame costs when the interpreter walks along the lists, and when its
//! lookups are compiled: nanoseconds a frame, the best of several rounds, turn
//! and turn about. `cargo bench -p fastpath`.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measurement reads the clock, prints, and may fail"
)]

use std::hint::black_box;
use std::time::Instant as Clock;

use base::{Instant, PortNo};
use fastpath::{Classifier, Looker, Scratch};
use flow::PortDesc;
use flow::text::parse_flow_line;
use packet::Pool;
use packet::build::Stack;
use pipeline::{Arrival, Interpreter, Limits, Pipeline, Tables, Verdict};

const ROUNDS: usize = 10;

fn port(number: u32) -> PortDesc {
    PortDesc::new(PortNo(number))
}

/// Rules, and frames that find them.
struct Bench {
    name: &'static str,
    flows: Vec<String>,
    frames: Vec<String>,
}

fn measure(bench: &Bench) {
    let mut pipeline = Pipeline::new(Limits::default(), 1);
    let mut classifier = Classifier::new();
    for number in 1..=4 {
        pipeline.set_port(&port(number));
    }
    for flow in &bench.flows {
        let command = parse_flow_line(flow).unwrap();
        let changes = pipeline.flow_mod(&command, Instant::START).unwrap();
        classifier.note(&changes);
    }
    let view = classifier.publish(&pipeline);
    let frames: Vec<_> = bench
        .frames
        .iter()
        .map(|frame| frame.parse::<Stack>().unwrap().build().bytes().to_vec())
        .collect();
    let scratch = Scratch::new();
    let looker = Looker::new(&view, &scratch);
    let walked = Tables::from(&pipeline);
    let compiled = Tables {
        pipeline: &pipeline,
        lookup: &looker,
    };
    let count = if bench.flows.len() > 2000 {
        500
    } else {
        50_000
    };
    let mut best = [f64::MAX; 2];
    for _ in 0..ROUNDS {
        for (best, (tables, count)) in best.iter_mut().zip([(walked, count), (compiled, 100_000)]) {
            *best = best.min(round(tables, &frames, count));
        }
    }
    let [walked, compiled] = best;
    println!(
        "{:40} walk {walked:10.1} ns   compiled {compiled:7.1} ns",
        bench.name
    );
}

fn round(tables: Tables<'_>, frames: &[Vec<u8>], count: usize) -> f64 {
    let mut pool = Pool::new(64);
    let mut interpreter = Interpreter::new(0);
    let mut verdict = Verdict::new();
    let start = Clock::now();
    for (nanos, bytes) in (0..).zip(frames.iter().cycle()).take(count) {
        let mut frame = pool.take().unwrap();
        frame.copy_from(bytes).unwrap();
        let arrival = Arrival {
            frame,
            from: PortNo(1),
            now: Instant::from_nanos(nanos),
        };
        interpreter.run(tables, arrival, &mut pool, &mut (), &mut verdict);
        assert_eq!(black_box(&verdict).egress.len(), 1);
        verdict.frames.drain(..).for_each(|frame| pool.put(frame));
    }
    start.elapsed().as_secs_f64() * 1e9 / count as f64
}

fn main() {
    let exact = "priority=10,in_port=1,dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:02,\
                 dl_vlan=0xffff,tcp,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_tos=0,\
                 tp_src=1000,tp_dst=80,actions=output:2";
    let tcp = || vec!["eth / ipv4 / tcp / data(6)".to_owned()];
    let one = |flow: &str| vec![flow.to_owned()];
    measure(&Bench {
        name: "one rule, in_port",
        flows: one("in_port=1,actions=output:2"),
        frames: tcp(),
    });
    measure(&Bench {
        name: "one rule, twelve fields",
        flows: one(exact),
        frames: tcp(),
    });
    for (name, count) in [
        ("1,000 exact flows", 1000_u32),
        ("100,000 exact flows", 100_000),
    ] {
        measure(&Bench {
            name,
            flows: (0..count)
                .map(|n| {
                    format!(
                        "udp,nw_src=10.0.{}.{},tp_dst={},actions=output:2",
                        n >> 8 & 255,
                        n & 255,
                        n >> 16
                    )
                })
                .collect(),
            frames: (0..count)
                .step_by(if count > 1000 { 50 } else { 1 })
                .map(|n| {
                    format!(
                        "eth / ipv4(src=10.0.{}.{}) / udp(dst={})",
                        n >> 8 & 255,
                        n & 255,
                        n >> 16
                    )
                })
                .collect(),
        });
    }
    measure(&Bench {
        name: "ten tables",
        flows: (0..9)
            .map(|n| format!("table={n},in_port=1,actions=goto_table:{}", n + 1))
            .chain(one("table=9,in_port=1,actions=output:2"))
            .collect(),
        frames: tcp(),
    });
}
