//! Frames of tunnels that differ in nothing but what the tunnels tell of them: each goes by the
//! rule of its own, whether or not others that look alike have gone before, and whoever knows
//! of a tunnel's words that the batch before had.

use base::{Instant, PortNo};
use fastpath::{BatchContext, Classifier, FrameOutcome, Runner};
use flow::text::parse_flow;
use flow::{FlowModCommand, PipelineFields, PortDesc, PortState};
use packet::build::Stack;
use packet::{Frame, Pool};
use pipeline::{Destination, Limits, Pipeline};

const RULES: [&str; 12] = [
    "table=0,actions=resubmit(,1)",
    "table=1,priority=1,udp,actions=write_metadata:5,goto_table:2",
    "table=2,udp,actions=goto_table:3",
    "table=3,ip,nw_src=10.0.0.1,actions=goto_table:4",
    "table=4,udp,actions=goto_table:5",
    "table=5,priority=9,tun_id=1,actions=output:2",
    "table=5,priority=9,tun_id=2,tun_src=10.9.9.9,actions=output:3",
    "table=5,priority=8,tun_id=2,actions=output:4",
    "table=5,priority=7,tun_id=3,actions=set_field:7->tun_id,output:5",
    "table=5,priority=6,tun_gbp_id=4,actions=goto_table:6",
    "table=6,priority=6,metadata=5,tun_gbp_id=4,actions=output:6",
    "table=5,priority=0,actions=output:7",
];

/// The port by which frames leave with which this goes, and their key then if that is told.
fn leaves(
    runner: &mut Runner,
    (pipeline, classifier): (&Pipeline, &mut Classifier),
    words: Option<&PipelineFields>,
) -> Vec<(PortNo, Option<u64>)> {
    let view = classifier.publish(pipeline);
    let ground = BatchContext {
        pipeline,
        view: &view,
        in_port: PortNo(1),
        now: Instant::from_secs(1),
    };
    let stack: Stack = "eth / ipv4(src=10.0.0.1) / udp".parse().expect("a frame");
    let mut frames: Vec<Frame> = (0..40).map(|_| stack.build()).collect();
    let mut pool = Pool::new(64);
    let mut batch = runner.begin_with_registers(ground, words, &mut frames);
    let mut left = Vec::new();
    while let Some(fate) = batch.next(&mut pool) {
        match fate {
            FrameOutcome::Forward(frames, port) => left.extend(frames.iter().map(|_| (port, None))),
            FrameOutcome::Verdict(verdict) => left.extend(verdict.egress.iter().map(|egress| {
                let Destination::Port(port) = egress.to else {
                    panic!("{egress:?}")
                };
                let key = egress.registers.as_ref().map(|words| words.tunnel_id);
                (port, key)
            })),
        }
    }
    assert_eq!(left.len(), 40);
    left.dedup();
    left
}

#[test]
fn frames_of_tunnels_that_look_alike_go_each_their_own_way() {
    let mut pipeline = Pipeline::new(Limits::default(), 1);
    let mut classifier = Classifier::new();
    for port in 1..8 {
        pipeline.set_port(&PortDesc {
            state: PortState::LIVE,
            ..PortDesc::new(PortNo(port))
        });
    }
    pipeline.set_tunnel(PortNo(5), true);
    for rule in RULES {
        let rule = parse_flow(FlowModCommand::Add, rule).expect(rule);
        let changes = pipeline.flow_mod(&rule, Instant::START).expect("legal");
        classifier.queue_changes(&changes);
    }
    let words = |key: u64, source: u32, group: u16| {
        let mut words = PipelineFields::new(PortNo::ANY);
        (words.tunnel_id, words.tunnel_v4[0], words.gbp_id) = (key, source, group);
        Some(words)
    };
    let wanted = [
        (words(1, 0, 0), 2, None),
        (None, 7, None),
        (words(2, 0x0a09_0909, 0), 3, None),
        (words(2, 0x0a09_0908, 0), 4, None),
        // What a rule has written goes with it into a tunnel.
        (words(3, 0, 0), 5, Some(7)),
        (words(9, 0, 4), 6, None),
        (words(9, 0, 5), 7, None),
    ];
    for mut runner in [Runner::new(0), Runner::with_flow_cache(0)] {
        for _ in 0..40 {
            for (words, port, key) in &wanted {
                let tables = (&pipeline, &mut classifier);
                let left = leaves(&mut runner, tables, words.as_ref());
                assert_eq!(left, [(PortNo(*port), *key)], "{words:?}");
            }
        }
    }
}
