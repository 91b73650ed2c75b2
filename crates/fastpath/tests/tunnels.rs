//! Frames of tunnels that differ only in their tunnel fields: each matches the rule on its fields,
//! whatever the flow cache and the previous batch hold.

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

/// Ports by which frames with these tunnel fields leave, and their tunnel keys if the verdict has
/// them.
fn outputs(
    runner: &mut Runner,
    (pipeline, classifier): (&Pipeline, &mut Classifier),
    registers: Option<&PipelineFields>,
) -> Vec<(PortNo, Option<u64>)> {
    let view = classifier.publish(pipeline);
    let context = BatchContext {
        pipeline,
        view: &view,
        in_port: PortNo(1),
        now: Instant::from_secs(1),
    };
    let stack: Stack = "eth / ipv4(src=10.0.0.1) / udp".parse().expect("a frame");
    let mut frames: Vec<Frame> = (0..40).map(|_| stack.build()).collect();
    let mut pool = Pool::new(64);
    let mut batch = runner.begin_with_fields(context, registers, &mut frames);
    let mut outputs = Vec::new();
    while let Some(outcome) = batch.next(&mut pool) {
        match outcome {
            FrameOutcome::Forward(frames, port) => {
                outputs.extend(frames.iter().map(|_| (port, None)))
            }
            FrameOutcome::Verdict(verdict) => outputs.extend(verdict.egress.iter().map(|egress| {
                let Destination::Port(port) = egress.to else {
                    panic!("{egress:?}")
                };
                let key = egress
                    .registers
                    .as_ref()
                    .map(|registers| registers.tunnel_id);
                (port, key)
            })),
        }
    }
    assert_eq!(outputs.len(), 40);
    outputs.dedup();
    outputs
}

/// Returns a pipeline with these rules, of which port 5 is a tunnel, and its classifier.
fn tables(rules: &[String]) -> (Pipeline, Classifier) {
    let mut pipeline = Pipeline::new(Limits::default(), 1);
    let mut classifier = Classifier::new();
    for port in 1..8 {
        pipeline.set_port(&PortDesc {
            state: PortState::LIVE,
            ..PortDesc::new(PortNo(port))
        });
    }
    pipeline.set_tunnel(PortNo(5), true);
    for line in rules {
        let rule = parse_flow(FlowModCommand::Add, line).expect(line);
        let changes = pipeline
            .flow_mod(&rule, Instant::START)
            .expect("the rule is legal");
        classifier.queue_changes(&changes);
    }
    (pipeline, classifier)
}

#[test]
fn frames_of_gtpu_match_compiled_rules_by_its_fields() {
    let mut rules = [
        "table=0,priority=9,tun_gtpu_flags=0x30,tun_gtpu_msgtype=255,actions=output:2",
        "table=0,priority=8,tun_gtpu_flags=0x20/0x20,actions=output:3",
        "table=0,priority=7,tun_gtpu_msgtype=1,actions=output:4",
        "table=0,priority=6,packet_type=(1,0x800),actions=output:6",
        "table=0,priority=0,actions=output:7",
    ]
    .map(str::to_owned)
    .to_vec();
    // The limit of rules without a compiled form is 64.
    rules.extend((0..200).map(|number| {
        format!("table=0,priority=5,tun_gtpu_msgtype=7,tun_id={number},actions=drop")
    }));
    let (pipeline, mut classifier) = tables(&rules);
    let gtpu = |flags, message| {
        let mut registers = PipelineFields::new(PortNo::ANY);
        (registers.gtpu.flags, registers.gtpu.message) = (flags, message);
        Some(registers)
    };
    let expected = [
        (gtpu(0x30, 255), 2),
        (gtpu(0x30, 254), 3),
        (None, 7),
        (gtpu(0, 1), 4),
        // The flags and the message type of this packet have the bits of a packet type.
        (gtpu(8, 0), 7),
        (gtpu(0x10, 9), 7),
    ];
    for mut runner in [Runner::new(0), Runner::with_flow_cache(0)] {
        for (registers, port) in &expected {
            let tables = (&pipeline, &mut classifier);
            let outputs = outputs(&mut runner, tables, registers.as_ref());
            assert_eq!(outputs, [(PortNo(*port), None)], "{registers:?}");
        }
        let interpreted: u64 = runner.take_slow_path_packets().iter().sum();
        assert_eq!(interpreted, 0, "no packet left the compiled path");
    }
}

#[test]
fn frames_of_tunnels_with_equal_headers_match_by_tunnel_fields() {
    let (pipeline, mut classifier) = tables(&RULES.map(str::to_owned));
    let tunnel = |key: u64, source: u32, group: u16| {
        let mut registers = PipelineFields::new(PortNo::ANY);
        registers.tunnel_id = key;
        registers.tunnel_v4[0] = source;
        registers.gbp_id = group;
        Some(registers)
    };
    let expected = [
        (tunnel(1, 0, 0), 2, None),
        (None, 7, None),
        (tunnel(2, 0x0a09_0909, 0), 3, None),
        (tunnel(2, 0x0a09_0908, 0), 4, None),
        // A field that a rule has written is in the verdict.
        (tunnel(3, 0, 0), 5, Some(7)),
        (tunnel(9, 0, 4), 6, None),
        (tunnel(9, 0, 5), 7, None),
    ];
    for mut runner in [Runner::new(0), Runner::with_flow_cache(0)] {
        for _ in 0..40 {
            for (registers, port, key) in &expected {
                let tables = (&pipeline, &mut classifier);
                let outputs = outputs(&mut runner, tables, registers.as_ref());
                assert_eq!(outputs, [(PortNo(*port), *key)], "{registers:?}");
            }
        }
    }
}
