//! The runner agrees with the interpreter, its oracle, for random tables, events and frames.

use std::cell::Cell;
use std::time::Duration;

use base::PortNo;
use fastpath::{Runner, SlowPathReason};
use flow::{FlowModCommand, FragmentHandling, PortConfig};
use pipeline::{MissPolicy, TableMiss};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use testkit::oracle::lists::{
    ACTIONS, CHAIN_ACTIONS, CHAIN_MATCHES, CLAUSES, MATCHES, OTHER_INSTRUCTIONS, PORT_MATCHES,
};
use testkit::oracle::{OracleBench, OracleEvent, PORTS, ReceivedFrame, compared_frames};

fn received_frame() -> impl Strategy<Value = ReceivedFrame> {
    any::<u64>().prop_map(ReceivedFrame::of_seed)
}

fn event(matches: &'static [&'static str]) -> impl Strategy<Value = OracleEvent> {
    let config = select(
        &[
            PortConfig(0),
            PortConfig(0),
            PortConfig::DOWN,
            PortConfig::NO_FWD,
            PortConfig::NO_RECV,
            PortConfig::NO_RECV_STP,
            PortConfig::NO_FLOOD,
            PortConfig::NO_PACKET_IN,
        ][..],
    );
    let fragments = select(
        &[
            FragmentHandling::Normal,
            FragmentHandling::Drop,
            FragmentHandling::NxMatch,
        ][..],
    );
    let miss = select(&[MissPolicy::Drop, MissPolicy::Controller][..]);
    let table_miss = select(
        &[
            TableMiss::Default,
            TableMiss::Default,
            TableMiss::Default,
            TableMiss::Continue,
            TableMiss::Controller,
            TableMiss::Drop,
        ][..],
    );
    prop_oneof![
        30 => flow(matches),
        6 => clause(),
        3 => (1..=PORTS, config).prop_map(|(port, config)| OracleEvent::Port(port, config)),
        1 => (1..=PORTS, any::<bool>()).prop_map(|(port, on)| OracleEvent::StpBlocked(port, on)),
        2 => (1..=PORTS, any::<bool>()).prop_map(|(port, on)| OracleEvent::Protected(port, on)),
        1 => fragments.prop_map(OracleEvent::Fragments),
        1 => miss.prop_map(OracleEvent::Miss),
        1 => (0..4_u8, table_miss).prop_map(|(table, miss)| OracleEvent::TableMiss(table, miss)),
        1 => prop::bool::weighted(0.2).prop_map(OracleEvent::Standalone),
    ]
}

fn clause() -> impl Strategy<Value = OracleEvent> {
    let flow = (0..4_u8, 0..4_u16, select(MATCHES), select(CLAUSES));
    flow.prop_map(|(table, priority, matching, clauses)| {
        let line = format!("table={table},priority={priority},{matching},actions={clauses}");
        OracleEvent::Flow(FlowModCommand::Add, line.replace(",,", ","))
    })
}

fn flow(matches: &'static [&'static str]) -> impl Strategy<Value = OracleEvent> {
    let commands = prop_oneof![
        10 => Just(FlowModCommand::Add),
        1 => Just(FlowModCommand::ModifyStrict),
        1 => Just(FlowModCommand::DeleteStrict),
    ];
    let actions = vec(select(ACTIONS), 0..5);
    let meter = prop_oneof![6 => Just(""), 1 => select(&["meter:1", "meter:2"][..])];
    let flow = (
        0..4_u8,
        0..4_u16,
        select(matches),
        meter,
        actions,
        select(OTHER_INSTRUCTIONS),
    );
    (commands, flow).prop_map(
        |(command, (table, priority, matching, meter, actions, end))| {
            let matching = match matching {
                "" => String::new(),
                some => format!(",{some}"),
            };
            let mut done: Vec<_> = [meter].into_iter().chain(actions).chain([end]).collect();
            done.retain(|word| !word.is_empty());
            let done = match done.is_empty() {
                true => "drop".to_owned(),
                false => done.join(","),
            };
            let actions = match command {
                FlowModCommand::DeleteStrict => String::new(),
                _ => format!(",actions={done}"),
            };
            let line = format!("table={table},priority={priority}{matching}{actions}");
            OracleEvent::Flow(command, line)
        },
    )
}

/// A rule in a chain of tables.
fn chain_rule() -> impl Strategy<Value = OracleEvent> {
    let flow = (
        0..20_u8,
        0..3_u16,
        select(CHAIN_MATCHES),
        select(CHAIN_ACTIONS),
        2..5_u8,
    );
    flow.prop_map(|(table, priority, matching, actions, further)| {
        let next = actions.replace("NEXT", &(table + 1).to_string());
        let actions = next.replace("LATER", &(table + further).to_string());
        let line = format!("table={table},priority={priority},{matching},actions={actions}");
        OracleEvent::Flow(FlowModCommand::Add, line.replace(",,", ","))
    })
}

/// Runs the cases of a test, and asserts that they compare at least so many frames.
fn compare_at_least(frames: u64, cases: impl FnOnce()) {
    let before = compared_frames();
    cases();
    let compared = compared_frames() - before;
    assert!(compared >= frames, "{compared} frames were compared");
}

/// Ingress ports that are tried one after the other.
const TURNS: u32 = 4;

/// Plays steps: events, then frames from one ingress port and some others.
fn play(steps: &[OracleStep]) {
    play_on(OracleBench::new(), steps);
}

/// Events, an ingress port and its frames.
type OracleStep = (Vec<OracleEvent>, u32, Vec<ReceivedFrame>);

fn play_on(mut bench: OracleBench, steps: &[OracleStep]) {
    for (events, from, frames) in steps {
        events.iter().for_each(|event| bench.change(event));
        for turn in 0..TURNS {
            bench.run(PortNo((from - 1 + turn) % (PORTS + 1) + 1), frames);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    fn rules_of_all_kinds(
        steps in vec((vec(event(MATCHES), 1..25), 1..=PORTS + 1, vec(received_frame(), 1..160)), 1..4),
    ) {
        play(&steps);
    }

    fn rules_of_ports(
        steps in vec((vec(event(PORT_MATCHES), 1..12), 1..=PORTS + 1, vec(received_frame(), 1..160)), 1..4),
    ) {
        play(&steps);
    }
}

#[test]
fn runner_agrees_with_interpreter_for_all_rules() {
    compare_at_least(1_700_000, rules_of_all_kinds);
}

/// An event of a run that tracks connections. Rules push no tags in circles: the interpreter tracks
/// a copy of the packet, whose headroom is larger.
fn tracking_event() -> impl Strategy<Value = OracleEvent> {
    event(MATCHES).prop_map(|event| match event {
        OracleEvent::Flow(command, line) => {
            let line = line.replace("push_vlan:0x8100", "mod_vlan_vid:6");
            OracleEvent::Flow(command, line.replace("push_vlan:0x88a8", "mod_vlan_vid:7"))
        }
        other => other,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    fn rules_that_track(
        steps in vec((vec(tracking_event(), 1..25), 1..=PORTS + 1, vec(received_frame(), 1..160)), 1..4),
    ) {
        play_on(OracleBench::with_tracker(), &steps);
    }
}

/// Rules that track connections and match their states.
#[test]
fn runner_agrees_with_interpreter_for_tracked_packets() {
    compare_at_least(500_000, rules_that_track);
}

/// A firewall with a zone in a register, NAT, marks, and a second zone.
const FIREWALL: &[&str] = &[
    "table=0,priority=1,ip,actions=load:7->NXM_NX_REG0[],resubmit(,1)",
    "table=0,priority=1,ipv6,actions=goto_table:1",
    "table=1,priority=2,ip,actions=ct(table=2,zone=NXM_NX_REG0[0..15],nat)",
    "table=1,priority=1,ipv6,actions=load:3->NXM_NX_REG1[],ct(table=2,zone=7)",
    "table=2,priority=3,ct_state=+trk+new,udp,tp_dst=99,\
     actions=ct(commit,table=3,zone=7,nat(src=10.0.0.77))",
    "table=2,priority=2,ct_state=+trk+new,actions=ct(commit,zone=7,\
     exec(set_field:0x5->ct_mark,set_field:0x900000000000000000009->ct_label)),output:2",
    "table=2,priority=1,ct_state=+est-rpl,tcp,actions=ct(table=3,zone=8)",
    "table=2,priority=0,ct_state=+est,ct_mark=5,ct_label=0x9/0xff,ip,nw_src=10.0.0.2,actions=output:3",
    "table=2,priority=0,ct_state=+est,ipv6,ct_ipv6_src=fd00::1,actions=dec_ttl,output:2",
    "table=2,priority=0,ct_state=+est+snat,udp,ct_tp_dst=99,nw_src=10.0.0.77,actions=output:2",
    "table=2,priority=0,ct_state=+est+dnat,udp,ct_nw_src=10.0.0.1,nw_dst=10.0.0.1,actions=output:4",
    "table=3,priority=1,ct_zone=7,actions=output:4",
    "table=3,priority=1,ct_zone=8,ct_state=+new,actions=ct(commit,zone=8),output:3",
    "table=3,priority=0,actions=controller",
];

/// Packets of its connections.
const FIREWALL_STACKS: &[&str] = &[
    "eth / ipv4(src=10.0.0.1,dst=10.0.0.2) / udp(src=1000,dst=53) / data(9)",
    "eth / ipv4(src=10.0.0.2,dst=10.0.0.1) / udp(src=53,dst=1000) / data(40)",
    "eth / vlan(vid=5) / ipv4(src=10.0.0.2,dst=10.0.0.1) / udp(src=53,dst=1000)",
    "eth / ipv4(src=10.0.0.1,dst=10.0.0.2) / udp(src=1001,dst=99) / data(3)",
    "eth / ipv4(src=10.0.0.2,dst=10.0.0.77) / udp(src=99,dst=1001) / data(4)",
    "eth / vlan(vid=5) / ipv4(src=10.0.0.1,dst=10.0.0.2) / udp(src=1001,dst=99)",
    "eth / ipv6(src=fd00::1,dst=fd00::2) / udp(src=7,dst=8) / data(5)",
    "eth / ipv6(src=fd00::2,dst=fd00::1) / udp(src=8,dst=7) / data(6)",
    "eth / ipv4(src=10.0.0.1,dst=10.0.0.2) / tcp(src=1000,dst=80,flags=S)",
    "eth / ipv4(src=10.0.0.2,dst=10.0.0.1) / tcp(src=80,dst=1000,flags=SA)",
    "eth / ipv4(src=10.0.0.1,dst=10.0.0.2) / tcp(src=1000,dst=80,flags=A)",
    "eth / ipv4(src=10.0.0.1,dst=10.0.0.2) / tcp(src=1000,dst=80,flags=PA) / data(11)",
    "eth / ipv4(src=10.0.0.2,dst=10.0.0.1) / tcp(src=80,dst=1000,flags=PA) / data(1000)",
    "eth / ipv4(src=10.0.0.2,dst=10.0.0.1) / tcp(src=80,dst=1000,flags=R)",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    fn connections_of_a_firewall(
        batches in vec((vec(select(FIREWALL_STACKS), 1..100), 0_u64..3), 1..12),
    ) {
        play_firewall(&mut OracleBench::with_tracker(), batches);
    }
}

/// Packets of a firewall's connections, in batches with pauses of so many seconds.
fn play_firewall(bench: &mut OracleBench, batches: Vec<(Vec<&'static str>, u64)>) {
    for line in FIREWALL {
        bench.change(&OracleEvent::Flow(FlowModCommand::Add, (*line).to_owned()));
    }
    for (stacks, seconds) in batches {
        let frames: Vec<_> = stacks.into_iter().map(ReceivedFrame::plain).collect();
        bench.run_after(Duration::from_secs(seconds), PortNo(1), &frames);
        bench.flush_and_compare();
    }
}

/// Packets of connections that are established, translated and reset.
#[test]
fn runner_agrees_with_interpreter_for_steady_connections() {
    compare_at_least(25_000, connections_of_a_firewall);
}

/// Frames of few flows, again and again, with events in between.
fn play_few_flows(
    bench: &mut OracleBench,
    flows: &[ReceivedFrame],
    batches: &[(Vec<OracleEvent>, u32, Vec<prop::sample::Index>)],
) {
    for (events, from, frames) in batches {
        events.iter().for_each(|event| bench.change(event));
        let frames = frames.iter().map(|flow| flow.get(flows).clone());
        let frames: Vec<_> = frames.collect();
        for _ in 0..3 {
            bench.run(PortNo(*from), &frames);
        }
    }
}

/// Rules that are examined one by one for a walk: with few, tables are examined as large ones.
const EXAMINED_RULES: &[usize] = &[0, 3, 1024];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    fn walks_of_all_rules(
        events in vec(tracking_event(), 1..30),
        flows in vec(received_frame(), 1..6),
        batches in vec((
            prop_oneof![3 => Just(Vec::new()), 1 => vec(tracking_event(), 1..3)],
            1..=PORTS,
            vec(any::<prop::sample::Index>(), 1..40),
        ), 1..5),
        examined in select(EXAMINED_RULES),
    ) {
        let mut bench = OracleBench::with_walk_cache();
        bench.runner_mut().limit_examined_rules(examined);
        events.iter().for_each(|event| bench.change(event));
        play_few_flows(&mut bench, &flows, &batches);
        WALK_HITS.with(|hits| hits.set(hits.get() + bench.runner_mut().walk_cache_hits()));
    }

    fn walks_of_chains(
        events in vec(chain_rule(), 15..90),
        flows in vec(received_frame(), 1..6),
        batches in vec((rare_events(), 1..=3_u32, vec(any::<prop::sample::Index>(), 1..60)), 1..5),
        examined in select(EXAMINED_RULES),
    ) {
        let mut bench = OracleBench::with_walk_cache();
        bench.runner_mut().limit_examined_rules(examined);
        events.iter().for_each(|event| bench.change(event));
        play_few_flows(&mut bench, &flows, &batches);
        WALK_HITS.with(|hits| hits.set(hits.get() + bench.runner_mut().walk_cache_hits()));
    }

    fn walks_of_a_firewall(
        batches in vec((vec(select(FIREWALL_STACKS), 1..100), 0_u64..3), 1..12),
    ) {
        let mut bench = OracleBench::with_walk_cache();
        play_firewall(&mut bench, batches);
        WALK_HITS.with(|hits| hits.set(hits.get() + bench.runner_mut().walk_cache_hits()));
    }
}

thread_local! {
    /// Packets of this thread's cases that hit the walk cache.
    static WALK_HITS: Cell<u64> = const { Cell::new(0) };
}

/// Packets of few flows, with the walk cache.
#[test]
fn runner_agrees_with_interpreter_with_walk_cache() {
    compare_at_least(120_000, walks_of_all_rules);
    compare_at_least(200_000, walks_of_chains);
    compare_at_least(25_000, walks_of_a_firewall);
    let hits = WALK_HITS.with(Cell::get);
    assert!(hits >= 200_000, "{hits} packets hit the walk cache");
}

/// Tables that match only on the ingress port.
#[test]
fn runner_agrees_with_interpreter_for_ingress_tables() {
    compare_at_least(1_700_000, rules_of_ports);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    fn table_chains(
        steps in vec((vec(chain_rule(), 15..90), 1..=3_u32, vec(received_frame(), 1..160)), 1..3),
    ) {
        play(&steps);
    }
}

/// Rules that lead from table to table, and write pipeline fields.
#[test]
fn runner_agrees_with_interpreter_for_table_chains() {
    compare_at_least(860_000, table_chains);
}

/// Events before a batch: mostly none.
fn rare_events() -> impl Strategy<Value = Vec<OracleEvent>> {
    prop_oneof![
        3 => Just(Vec::new()),
        1 => vec(prop_oneof![chain_rule(), event(CHAIN_MATCHES)], 1..3),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    fn few_flows(
        events in vec(chain_rule(), 15..90),
        flows in vec(received_frame(), 1..6),
        batches in vec((rare_events(), 1..=3_u32, vec(any::<u8>(), 1..250)), 2..15),
    ) {
        let mut bench = OracleBench::with_flow_cache();
        events.iter().for_each(|event| bench.change(event));
        for (events, from, frames) in &batches {
            events.iter().for_each(|event| bench.change(event));
            let frames = frames.iter().map(|flow| flows[usize::from(*flow) % flows.len()].clone());
            bench.run(PortNo(*from), &frames.collect::<Vec<_>>());
        }
    }
}

/// Few flows with many frames each, with the flow cache.
#[test]
fn runner_agrees_with_interpreter_with_flow_cache() {
    compare_at_least(1_800_000, few_flows);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Counters agree when pending statistics are flushed: when they are due, when the tables change,
    /// on request, and when the runner is dropped.
    #[test]
    fn deferred_statistics_agree_with_interpreter(
        events in vec(chain_rule(), 15..90),
        flows in vec(received_frame(), 1..6),
        batches in vec((
            (rare_events(), prop::bool::weighted(0.2), select(&[1_u64, 3000, 5000, 300_000][..])),
            (1..=3_u32, vec(any::<prop::sample::Index>(), 1..80)),
        ), 2..9),
    ) {
        let mut bench = OracleBench::with_flow_cache();
        events.iter().for_each(|event| bench.change(event));
        for ((events, flushes, pause), (from, frames)) in &batches {
            events.iter().for_each(|event| bench.change(event));
            let frames = frames.iter().map(|index| index.get(&flows).clone());
            let (pause, frames) = (Duration::from_micros(*pause), frames.collect::<Vec<_>>());
            bench.run_after(pause, PortNo(*from), &frames);
            if *flushes {
                bench.flush_and_compare();
            }
        }
        *bench.runner_mut() = Runner::new(0);
        bench.compare_counts();
    }
}

/// A table of prefixes.
#[test]
fn runner_agrees_with_interpreter_for_prefix_tables() {
    let network = |n: u32| format!("10.{}.{}.0", n / 64, n % 64 * 4);
    let mut bench = OracleBench::new();
    for n in 0..3000 {
        let (bits, port) = (18 + n % 7, 2 + n % 3);
        let network = network(n);
        let line = format!("priority={bits},ip,nw_dst={network}/{bits},actions=output:{port}");
        bench.change(&OracleEvent::Flow(FlowModCommand::Add, line));
    }
    bench.request_compaction();
    let stack = |n: u32| format!("eth / ipv4(dst={}) / udp", network(n * 53 % 3500));
    let frames: Vec<_> = (0..160)
        .map(|n| ReceivedFrame::plain(stack(n).leak()))
        .collect();
    bench.run(PortNo(1), &frames);
}

/// A table so large that its memory is prefetched stage by stage.
#[test]
fn runner_agrees_with_interpreter_for_large_tuples() {
    const RULES: u32 = 9000;
    let add = |line: String| OracleEvent::Flow(FlowModCommand::Add, line);
    let source = |n: u32| {
        let [_, _, upper, lower] = n.to_be_bytes();
        format!("10.0.{upper}.{lower}")
    };
    let mut bench = OracleBench::new();
    for n in 0..RULES {
        let (source, port) = (source(n), 2 + n % 3);
        bench.change(&add(format!(
            "priority=1,udp,nw_src={source},actions=output:{port}"
        )));
        if n % 7 == 0 {
            bench.change(&add(format!(
                "priority=2,udp,nw_src={source},actions=load:{n}->NXM_NX_REG0[],resubmit(,1)"
            )));
        }
    }
    bench.change(&add("table=1,reg0=7,actions=output:4".to_owned()));
    let stack = |n: u32| format!("eth / ipv4(src={}) / udp", source(n * 71 % (RULES + 999)));
    let frames: Vec<_> = (0..160)
        .map(|n| ReceivedFrame::plain(stack(n).leak()))
        .collect();
    bench.run(PortNo(1), &frames);
    for n in (0..RULES).step_by(3) {
        let line = format!("priority=1,udp,nw_src={}", source(n));
        bench.change(&OracleEvent::Flow(FlowModCommand::DeleteStrict, line));
    }
    bench.run(PortNo(1), &frames);
}

/// Tuples of clauses only, to which other rules come and from which they go.
#[test]
fn runner_agrees_with_interpreter_for_tuples_of_clauses() {
    let change = |bench: &mut OracleBench, command, line: &str| {
        bench.change(&OracleEvent::Flow(command, line.to_owned()));
    };
    let stack = |n: u32| {
        format!(
            "eth / ipv4(src=10.0.0.{}) / udp(dst={})",
            n % 50,
            1000 + n % 70
        )
    };
    let frames: Vec<_> = (0..160)
        .map(|n| ReceivedFrame::plain(stack(n).leak()))
        .collect();
    let mut bench = OracleBench::new();
    for n in 0..40 {
        for line in [
            format!("priority=9,ip,nw_src=10.0.0.{n},actions=conjunction(1,1/2)"),
            format!(
                "priority=9,udp,tp_dst={},actions=conjunction(1,2/2)",
                1000 + n
            ),
        ] {
            change(&mut bench, FlowModCommand::Add, &line);
        }
    }
    change(
        &mut bench,
        FlowModCommand::Add,
        "priority=5,conj_id=1,actions=output:2",
    );
    bench.run(PortNo(1), &frames);
    for priority in [7, 9, 11] {
        let matches = [
            format!("priority={priority},ip,nw_src=10.0.0.3"),
            format!("priority={priority},udp,tp_dst=1003"),
        ];
        for each in &matches {
            let line = format!("{each},actions=output:3");
            change(&mut bench, FlowModCommand::Add, &line);
            bench.run(PortNo(1), &frames);
        }
        for each in &matches {
            change(&mut bench, FlowModCommand::DeleteStrict, each);
            bench.run(PortNo(1), &frames);
        }
    }
}

/// Packets enter the slow path only for actions that are not compiled, and are counted by reason.
#[test]
fn slow_path_packets_are_counted_by_reason() {
    let check = |flow: &str, expected: &[(SlowPathReason, u64)]| {
        let mut bench = OracleBench::new();
        let mut lines = flow.lines();
        let first = format!("priority=1,ip,actions={}", lines.next().expect("a line"));
        for line in lines.map(str::to_owned).chain([first]) {
            bench.change(&OracleEvent::Flow(FlowModCommand::Add, line));
        }
        let frame = ReceivedFrame::plain("eth / ipv4(ttl=1) / tcp");
        bench.run(PortNo(1), &[frame.clone(), frame]);
        let counts = bench.runner_mut().take_slow_path_packets();
        let counted = SlowPathReason::ALL.iter().zip(counts);
        let counted = counted.filter(|(_, count)| *count > 0);
        let counted: Vec<_> = counted
            .map(|((reason, _), count)| (*reason, count))
            .collect();
        assert_eq!(counted, expected, "{flow}");
    };
    check("output:2,flood,in_port,normal", &[]);
    check(
        "mod_nw_dst:10.0.0.9,mod_tp_dst:7,push_vlan:0x8100,output:2",
        &[],
    );
    check("write_actions(output:2),goto_table:1", &[]);
    check("load:1->NXM_NX_REG0[],write_metadata:1", &[]);
    check("output:2,group:1,group:2,group:3,group:4", &[]);
    check("output:2,group:5", &[]);
    check("meter:1,output:2", &[]);
    check("output:2,controller", &[]);
    check("dec_ttl,output:2", &[]);
    check("resubmit(,1),output:2", &[]);
    check("move:NXM_NX_REG0[]->NXM_NX_REG1[]", &[]);
    check("resubmit(,0)", &[]);
    check("resubmit(3,1)", &[]);
    check("controller(id=2)", &[]);
    check("controller(pause,id=2)", &[]);
    check("move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[]", &[]);
    check(
        "clone(move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[],resubmit(,0)),output:2",
        &[],
    );
    // Packets without an Ethernet header are the interpreter's.
    check("decap,output:2", &[(SlowPathReason::Action, 2)]);
    check("encap(mpls),output:2", &[(SlowPathReason::Action, 2)]);
    check("load:1->NXM_OF_VLAN_TCI[]", &[]);
    check("write_actions(dec_ttl,output:2)", &[]);
    check("debug_slow,output:2", &[(SlowPathReason::Action, 2)]);
    check("conjunction(1,1/2)", &[]);
    check("conjunction(1,1/2)\npriority=9,tcp,actions=drop", &[]);
    let whole = "conjunction(1,1/2),conjunction(1,2/2)\nconj_id=1,actions=output:2";
    check(whole, &[]);
}
