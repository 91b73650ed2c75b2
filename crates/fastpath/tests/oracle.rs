//! The interpreter as oracle: for any tables, any events between batches and any frames, the outcome
//! of the runner is that of the interpreter, and afterwards all counters are equal.

use std::cell::Cell;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use base::{GroupId, Instant, MeterId, PortNo};
use conntrack::{Conntrack, HashSeed};
use fastpath::{BatchContext, Classifier, FrameOutcome, Runner, SlowPathReason};
use flow::text::{parse_flow, parse_group_line, parse_meter_line};
use flow::{FlowMod, FlowModCommand, FragmentHandling, PortConfig, PortDesc};
use packet::{Checksum, Frame, Offload, Pool, Segmentation, SegmentationKind};
use pipeline::{
    Changes, Destination, Egress, InputFrame, Interpreter, LearnRequest, Limits, MissPolicy,
    Pipeline, Rule, TableMiss, Verdict,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use testkit::workload::{frame, splitmix64};

/// Matches; some are on fields that only some frames have.
const MATCHES: &[&str] = &[
    "",
    "",
    "in_port=1",
    "in_port=2",
    "dl_dst=02:00:00:00:00:02",
    "dl_vlan=5",
    "vlan_tci=0",
    "metadata=0x70/0xf0",
    "reg0=1",
    "reg1=0x700/0xff00",
    "actset_output=2",
    "conj_id=1",
    "conj_id=2",
    "ip",
    "ip,nw_dst=10.0.0.9",
    "ip,nw_src=10.0.0.0/24",
    "ip,nw_ttl=63",
    "ip,nw_frag=later",
    "tcp",
    "tcp,tp_dst=80",
    "tcp,tp_dst=7",
    "udp",
    "udp,tp_src=53",
    "sctp",
    "arp",
    "ipv6",
    "tcp6,tp_dst=80",
    "icmp6,icmp_type=135",
    "mpls",
    "ct_state=-trk,ip",
    "ct_state=+trk+est,ip",
    "ct_mark=0x0/0x3",
    "ct_state=+trk+new,ip",
    "ct_state=+trk+inv,ct_zone=7",
    "ct_mark=0x1,ip",
    "ct_label=0x1/0x1",
    "tcp,tp_dst=0",
];

/// Matches, most of which are on the ingress port only.
const PORT_MATCHES: &[&str] = &[
    "",
    "in_port=1",
    "in_port=2",
    "",
    "in_port=1",
    "in_port=2",
    "tcp",
];

/// Actions of `apply_actions`.
const ACTIONS: &[&str] = &[
    "output:1",
    "output:2",
    "output:3",
    "output:4",
    "output:9",
    "in_port",
    "normal",
    "flood",
    "all",
    "controller",
    "controller(max_len=20,id=3,userdata=01.02)",
    "enqueue:2:1",
    "set_queue:1",
    "set_queue:7",
    "pop_queue",
    "dec_ttl",
    "dec_ttl(1,2)",
    "mod_dl_src:02:00:00:00:00:aa",
    "set_field:02:00:00:00:00:02->eth_dst",
    "set_field:00:00:00:00:00:02/00:00:00:00:00:0f->eth_dst",
    "mod_vlan_vid:5",
    "mod_vlan_pcp:3",
    "strip_vlan",
    "push_vlan:0x8100",
    "push_vlan:0x88a8",
    "mod_nw_dst:10.0.0.9",
    "mod_nw_src:10.0.0.8",
    "mod_nw_tos:184",
    "mod_nw_ecn:1",
    "mod_nw_ttl:2",
    "mod_tp_dst:7",
    "mod_tp_src:53",
    "push_mpls:0x8847",
    "load:1->NXM_NX_REG0[]",
    "load:7->NXM_NX_REG1[8..15]",
    "load:9->OXM_OF_METADATA[0..3]",
    "set_field:0x70->metadata",
    "set_field:5->xreg1",
    "move:NXM_NX_REG1[8..15]->NXM_NX_REG0[0..7]",
    "load:3->NXM_OF_IN_PORT[]",
    "group:1",
    "group:2",
    "group:3",
    "group:4",
    "group:5",
    "group:6",
    "group:7",
    "group:8",
    "resubmit(,1)",
    "resubmit(,2)",
    "resubmit(,3)",
    "resubmit(,3)",
    "ct(commit,zone=7)",
    "ct(table=2)",
    "ct(table=3,nat)",
    "ct(commit,table=2,nat(src=10.0.0.77))",
    "ct(commit,table=3,zone=NXM_NX_REG0[0..15],exec(set_field:1->ct_mark))",
    "ct(commit,table=2,exec(move:NXM_NX_REG1[0..7]->NXM_NX_CT_LABEL[0..7]))",
    "ct_clear",
    "controller(pause)",
    "move:OXM_OF_METADATA[4..7]->NXM_NX_REG0[0..3]",
    "move:NXM_NX_REG0[0..3]->OXM_OF_METADATA[0..3]",
    "resubmit(2,3)",
    "clone(dec_ttl,output:3)",
    "note:01.02",
    "sample(probability=65535,collector_set_id=1,sampling_port=2)",
    "push:NXM_NX_REG0[]",
    "pop:NXM_NX_REG2[]",
    "output:NXM_NX_REG0[]",
    "output(port=2,max_len=30)",
    "learn(table=1,priority=2,NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],output:NXM_OF_IN_PORT[])",
    "exit",
    "check_pkt_larger(40)->reg0[0]",
    "multipath(symmetric_l4,1,modulo_n,3,0,NXM_NX_REG0[])",
    "bundle(eth_src,0,hrw,ofport,members:2,3)",
];

/// Actions of a conjunction clause, which has no others.
const CLAUSES: &[&str] = &[
    "conjunction(1,1/2)",
    "conjunction(1,2/2)",
    "conjunction(2,1/3),conjunction(1,2/2)",
    "conjunction(2,2/3)",
    "conjunction(2,3/3)",
];

/// Instructions after `apply_actions`.
const OTHER_INSTRUCTIONS: &[&str] = &[
    "",
    "",
    "",
    "goto_table:1",
    "goto_table:2",
    "goto_table:3",
    "write_actions(output:2),goto_table:2",
    "write_actions(output:3)",
    "write_actions(in_port)",
    "write_actions(dec_ttl,output:2),goto_table:3",
    "write_actions(group:1)",
    "clear_actions,goto_table:2",
    "clear_actions,write_actions(output:4)",
    "write_metadata:0x70/0xf0,goto_table:1",
    "write_actions(output:1),write_metadata:0x9,goto_table:3",
];

/// Actions of rules in a chain of tables: most continue in table `NEXT` or `LATER`.
const CHAIN_ACTIONS: &[&str] = &[
    "goto_table:NEXT",
    "goto_table:LATER",
    "load:1->NXM_NX_REG0[],goto_table:NEXT",
    "load:2->NXM_NX_REG0[0..3],write_metadata:0x70/0xf0,goto_table:NEXT",
    "write_metadata:0x1/0x3,goto_table:LATER",
    "write_actions(output:2),goto_table:NEXT",
    "write_actions(in_port),goto_table:NEXT",
    "clear_actions,goto_table:NEXT",
    "resubmit(,NEXT)",
    "resubmit(,NEXT)",
    "resubmit(,NEXT)",
    "load:1->NXM_NX_REG0[],resubmit(,NEXT)",
    "load:7->NXM_NX_REG1[8..15],resubmit(,NEXT)",
    "move:NXM_NX_REG1[8..15]->NXM_NX_REG0[0..7],resubmit(,LATER)",
    "move:NXM_NX_REG0[0..3]->OXM_OF_METADATA[4..7],resubmit(,NEXT)",
    "set_field:5->xreg1,note:01.02,resubmit(,NEXT)",
    "resubmit(,NEXT),output:3",
    "resubmit(,NEXT),load:9->NXM_NX_REG0[]",
    "output:2,resubmit(,NEXT)",
    "resubmit(,0)",
    "dec_ttl,resubmit(,NEXT)",
    "mod_tp_dst:80,goto_table:NEXT",
    "output:2",
    "output:3",
    "in_port",
    "controller",
    "controller(pause),output:2",
    "exit",
    "group:5",
    "write_actions(output:3)",
    "write_actions(group:1,output:3)",
];

/// Matches of rules in a chain of tables.
const CHAIN_MATCHES: &[&str] = &[
    "",
    "",
    "",
    "in_port=1",
    "reg0=1",
    "reg0=2/0xf",
    "reg1=0x700/0xff00",
    "metadata=0x70/0xf0",
    "actset_output=2",
    "tcp",
    "tcp,tp_dst=80",
    "ip,nw_ttl=63",
];

const GROUPS: &[&str] = &[
    "group_id=1,type=all,bucket=output:2,bucket=dec_ttl,output:3",
    "group_id=2,type=select,bucket=weight:1,output:2,bucket=weight:3,output:3",
    "group_id=3,type=indirect,bucket=mod_vlan_vid:5,output:4",
    "group_id=4,type=ff,bucket=watch_port:2,output:2,bucket=watch_port:3,output:3",
    "group_id=5,type=all,bucket=group:1,bucket=dec_ttl,controller,bucket=output:2",
    "group_id=6,type=ff,bucket=watch_group:4,mod_nw_dst:10.0.0.9,output:3,bucket=watch_port:1,flood",
    "group_id=7,type=select,bucket=dec_ttl,normal,bucket=weight:2,watch_port:3,in_port",
    "group_id=8,type=all,bucket=set_queue:2,output:2,bucket=output:3,bucket=dec_ttl,enqueue:4:3,set_queue:1,output:2",
];

/// A meter that passes one frame in a hundred milliseconds, one that remarks, and that of the
/// controllers.
const METERS: &[&str] = &[
    "meter=1,pktps,burst,stats,bands=type=drop,rate=10,burst_size=1",
    "meter=2,pktps,burst,bands=type=dscp_remark,rate=10,burst_size=1,prec_level=1",
    "meter=controller,pktps,burst,bands=type=drop,rate=20,burst_size=2",
];

const STACKS: &[&str] = &[
    "eth",
    "eth(dst=01:80:c2:00:00:00)",
    "eth(dst=02:00:00:00:00:02) / ipv4 / tcp(dst=80)",
    "eth / ipv4(ttl=1) / tcp(dst=7)",
    "eth / ipv4(tos=40) / udp(src=53)",
    "eth / ipv4(src=10.0.1.1) / udp / data(40)",
    "eth / ipv4 / sctp",
    "eth / ipv4 / icmp",
    "eth / ipv4(mf) / udp / data(8)",
    "eth / ipv4(id=1,mf) / udp(checksum=0) / data(1192)",
    "eth / ipv4(id=1,offset=150,proto=17) / data(8)",
    "eth / ipv6 / fragment(id=5,more,next=89) / data(1256)",
    "eth / ipv6 / fragment(id=5,offset=157,next=89) / data(8)",
    "eth / ipv4(offset=1,proto=17) / data(8)",
    "eth / vlan(vid=5,pcp=3) / ipv4 / tcp(dst=80)",
    "eth / vlan(vid=5) / vlan(vid=6) / ipv4 / udp",
    "eth / vlan(vid=0) / arp",
    "eth / arp",
    "eth / ipv6 / tcp(dst=80)",
    "eth / vlan(vid=5) / ipv6(hlim=1) / udp",
    "eth / ipv6 / icmpv6",
    "eth / ipv6 / nd(sll=02:00:00:00:00:01)",
    "eth / mpls / mpls",
];

/// Number of ports, numbered from 1.
const PORTS: u32 = 4;

/// Connections of a run: few, so that the table is full at times.
const CONNECTIONS_MAX: u32 = 50;

/// Buffers of runs that track connections: enough for all copies.
const BUFFERS_TRACKING: usize = 16_384;

/// Buffers: so few that some frames cannot be copied.
const BUFFERS: usize = 3;

/// An event between two batches.
#[derive(Clone, Debug)]
enum OracleEvent {
    Flow(FlowModCommand, String),
    Port(u32, PortConfig),
    StpBlocked(u32, bool),
    Protected(u32, bool),
    Fragments(FragmentHandling),
    Miss(MissPolicy),
    TableMiss(u8, TableMiss),
    Standalone(bool),
}

/// A received frame.
#[derive(Clone, Debug)]
struct ReceivedFrame {
    stack: &'static str,
    bytes: Vec<u8>,
    offload: Offload,
}

/// Frames of `STACKS`.
static BUILT: LazyLock<Vec<Vec<u8>>> =
    LazyLock::new(|| STACKS.iter().copied().map(frame).collect());

impl ReceivedFrame {
    /// A well-formed frame.
    fn plain(stack: &'static str) -> Self {
        Self {
            stack,
            bytes: frame(stack),
            offload: Offload::default(),
        }
    }

    /// A frame selected by `seed`: one in five has a wrong byte, one in ten is truncated, one in ten
    /// is to be segmented, and two in ten have a partial checksum. The lowest seeds select
    /// well-formed frames, to which a failing case shrinks.
    fn of_seed(seed: u64) -> Self {
        if let Some(stack) = usize::try_from(seed)
            .ok()
            .and_then(|place| STACKS.get(place))
        {
            return Self::plain(stack);
        }
        let number = |place: u64, count: usize| {
            let number = splitmix64(seed.wrapping_mul(8).wrapping_add(place)) % count as u64;
            usize::try_from(number).expect("the number is less than a count")
        };
        let stack = number(0, STACKS.len());
        let mut bytes = BUILT[stack].clone();
        if number(1, 5) == 0 {
            let at = number(2, bytes.len());
            bytes[at] = number(3, 256).to_le_bytes()[0];
        }
        if number(4, 10) == 0 {
            bytes.truncate(number(5, bytes.len() + 1));
        }
        let checksum = match number(6, 10) {
            0 => Checksum::Partial {
                start: 34,
                offset: 16,
            },
            1 => Checksum::Partial {
                start: 34,
                offset: 6,
            },
            _ => Checksum::Complete,
        };
        let size = number(7, 300);
        let segmentation = (size < 30).then(|| Segmentation {
            kind: SegmentationKind::Tcp4,
            size: u16::try_from(size).expect("the size is less than 30"),
            header_len: 54,
        });
        Self {
            stack: STACKS[stack],
            bytes,
            offload: Offload {
                checksum,
                segmentation,
            },
        }
    }

    fn frame(&self) -> Frame {
        let mut frame = Frame::from_bytes(&self.bytes);
        frame.offload = self.offload;
        frame
    }
}

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

/// Tables, and the engine that runs frames through them.
struct OracleSide<R> {
    pipeline: Pipeline,
    pool: Pool,
    engine: R,
    /// Removed rules.
    removed: Vec<Arc<Rule>>,
}

/// The interpreter and the runner with the same tables.
struct OracleBench {
    expected: OracleSide<Interpreter>,
    tested: OracleSide<Runner>,
    classifier: Classifier,
    now: Instant,
}

fn tables() -> Pipeline {
    let mut pipeline = Pipeline::new(Limits::default(), 1);
    for number in 1..=PORTS {
        pipeline.set_port(&PortDesc::new(PortNo(number)));
    }
    for line in GROUPS {
        let command = parse_group_line(line).expect(line);
        pipeline.group_mod(&command, Instant::START).expect(line);
    }
    for line in METERS {
        let command = parse_meter_line(line).expect(line);
        pipeline.meter_mod(&command, Instant::START).expect(line);
    }
    pipeline
}

impl<R> OracleSide<R> {
    fn new(engine: R) -> Self {
        Self {
            pipeline: tables(),
            pool: Pool::new(BUFFERS),
            engine,
            removed: Vec::new(),
        }
    }

    /// Tracks connections. The interpreter copies a tracked packet, so that both sides get buffers
    /// for all copies.
    fn with_tracker(mut self) -> Self {
        let tracker = Conntrack::new(HashSeed([1, 2]), CONNECTIONS_MAX);
        self.pipeline.set_tracker(Arc::new(tracker));
        self.pipeline.set_fragment_store(Arc::default());
        self.pool = Pool::new(BUFFERS_TRACKING);
        self
    }

    /// Applies an event. A flow that is refused changes nothing.
    fn change(&mut self, event: &OracleEvent, flow: Option<&FlowMod>, now: Instant) -> Changes {
        match event {
            OracleEvent::Flow(..) => {
                let flow = flow.expect("the flow was parsed");
                let changes = self.pipeline.flow_mod(flow, now).unwrap_or_default();
                let removed = changes.removed.iter();
                self.removed
                    .extend(removed.map(|removal| Arc::clone(&removal.rule)));
                return changes;
            }
            OracleEvent::Port(port, config) => self.pipeline.set_port(&PortDesc {
                config: *config,
                ..PortDesc::new(PortNo(*port))
            }),
            OracleEvent::StpBlocked(port, on) => self.pipeline.set_stp_blocked(PortNo(*port), *on),
            OracleEvent::Protected(port, on) => self.pipeline.set_protected(PortNo(*port), *on),
            OracleEvent::Fragments(how) => self
                .pipeline
                .set_fragments(*how)
                .expect("fragment handling is supported"),
            OracleEvent::TableMiss(table, miss) => self
                .pipeline
                .set_table_miss(base::TableId(*table), *miss)
                .expect("the table exists"),
            OracleEvent::Miss(miss) => self.pipeline.set_miss_policy(*miss),
            OracleEvent::Standalone(on) => self.pipeline.set_standalone(*on),
        }
        Changes::default()
    }

    /// Asserts that all counters are equal, those of removed rules included.
    fn assert_same_counts<O>(&self, other: &OracleSide<O>, now: Instant) {
        let rules = self.pipeline.rules(base::TableId::ALL).chain(&self.removed);
        let others = other.pipeline.rules(base::TableId::ALL);
        let others = others.chain(&other.removed);
        let counted = |rule: &Arc<Rule>| rule.statistics(now);
        assert_eq!(
            rules.map(counted).collect::<Vec<_>>(),
            others.map(counted).collect::<Vec<_>>()
        );
        let (own, other) = (&self.pipeline, &other.pipeline);
        for (own, other) in own.table_stats().zip(other.table_stats()) {
            assert_eq!(own, other);
        }
        let groups = |of: &Pipeline| of.group_stats(GroupId::ALL, now).collect::<Vec<_>>();
        assert_eq!(groups(own), groups(other));
        let meters = |of: &Pipeline| of.meter_stats(MeterId::ALL, now);
        assert_eq!(meters(own), meters(other));
    }

    fn put_back(&mut self, verdict: &mut Verdict) {
        let frames = verdict.frames.drain(..);
        frames.for_each(|frame| self.pool.put(frame));
    }
}

impl OracleSide<Interpreter> {
    /// Runs the frame and compares the verdict.
    fn compare(
        &mut self,
        received: &ReceivedFrame,
        (from, now): (PortNo, Instant),
        actual: &Verdict,
    ) {
        let mut expected = Verdict::new();
        let arrival = InputFrame {
            frame: received.frame(),
            in_port: from,
            now,
        };
        let (tables, pool) = (&self.pipeline, &mut self.pool);
        self.engine
            .run(tables, arrival, pool, &mut (), &mut expected);
        assert!(
            actual.frames == expected.frames
                && actual.egress == expected.egress
                && actual.drops == expected.drops
                && has_same_requests(&actual.learn_requests, &expected.learn_requests),
            "the runner returns {actual:?}, the interpreter {expected:?}, for '{}' as {received:?}",
            received.stack
        );
        COMPARED.set(COMPARED.get() + 1);
        self.put_back(&mut expected);
    }
}

/// True if both have the same requests to learn; mostly there are none.
fn has_same_requests(actual: &[LearnRequest], expected: &[LearnRequest]) -> bool {
    actual.len() == expected.len()
        && (actual.is_empty() || format!("{actual:?}") == format!("{expected:?}"))
}

impl OracleBench {
    fn new() -> Self {
        Self {
            expected: OracleSide::new(Interpreter::new(0)),
            tested: OracleSide::new(Runner::new(0)),
            classifier: Classifier::new(),
            now: Instant::START,
        }
    }

    /// A bench whose runner uses its flow cache from the first batch on.
    fn with_flow_cache() -> Self {
        Self {
            tested: OracleSide::new(Runner::with_flow_cache(0)),
            ..Self::new()
        }
    }

    /// A bench that tracks connections.
    fn with_tracker() -> Self {
        let bench = Self::new();
        Self {
            expected: bench.expected.with_tracker(),
            tested: bench.tested.with_tracker(),
            ..Self::new()
        }
    }

    fn change(&mut self, event: &OracleEvent) {
        let flow = match event {
            OracleEvent::Flow(command, line) => Some(parse_flow(*command, line).expect(line)),
            _ => None,
        };
        self.expected.change(event, flow.as_ref(), self.now);
        let changes = self.tested.change(event, flow.as_ref(), self.now);
        self.classifier.queue_changes(&changes);
    }

    /// Lets both sides learn.
    fn learn(&mut self, learned: &[LearnRequest]) {
        for learned in learned {
            let now = self.now;
            let _ = self.expected.pipeline.learn(learned, now);
            if let Ok(changes) = self.tested.pipeline.learn(learned, now) {
                self.classifier.queue_changes(&changes);
            }
        }
    }

    /// Runs the frames through both sides, and compares verdicts and counters.
    fn run(&mut self, from: PortNo, frames: &[ReceivedFrame]) {
        self.run_after(Duration::from_millis(30), from, frames);
        self.flush_and_compare();
    }

    /// Flushes the statistics of the runner, and compares counters.
    fn flush_and_compare(&mut self) {
        self.tested.engine.flush_stats();
        self.compare_counts();
    }

    fn compare_counts(&self) {
        self.tested.assert_same_counts(&self.expected, self.now);
    }

    /// Runs the frames through both sides after a pause. Statistics may stay pending.
    fn run_after(&mut self, pause: Duration, from: PortNo, frames: &[ReceivedFrame]) {
        self.now += pause;
        let classifier = &mut self.classifier;
        let view = classifier.current();
        let view = view.unwrap_or_else(|| classifier.publish(&self.tested.pipeline));
        let OracleSide {
            pipeline,
            pool,
            engine,
            ..
        } = &mut self.tested;
        let context = BatchContext {
            pipeline,
            view: &view,
            in_port: from,
            now: self.now,
        };
        let mut learned = Vec::new();
        let mut built: Vec<_> = frames.iter().map(ReceivedFrame::frame).collect();
        let mut batch = engine.begin(context, &mut built);
        // Every other batch uses `forward_all`.
        let tries_all = frames.len().is_multiple_of(2);
        let common_port = tries_all.then(|| batch.forward_all()).flatten();
        let mut waiting = frames.iter();
        let mut compare = |verdict: &Verdict| {
            let received = waiting.next().expect("each outcome has a frame");
            self.expected.compare(received, (from, self.now), verdict);
        };
        while let Some(outcome) = batch.next(pool) {
            match outcome {
                FrameOutcome::Verdict(verdict) => {
                    compare(verdict);
                    verdict.frames.drain(..).for_each(|frame| pool.put(frame));
                    learned.append(&mut verdict.learn_requests);
                }
                FrameOutcome::Forward(frames, port) => {
                    for frame in frames {
                        let verdict = forwarded(std::mem::take(frame), port);
                        compare(&verdict);
                        verdict.frames.into_iter().for_each(|frame| pool.put(frame));
                    }
                }
            }
        }
        drop(batch);
        if let Some(port) = common_port {
            for frame in built {
                let verdict = forwarded(frame, port);
                compare(&verdict);
                verdict.frames.into_iter().for_each(|frame| pool.put(frame));
            }
        }
        assert!(waiting.next().is_none());
        self.learn(&learned);
        assert_eq!(
            (
                self.tested.pool.outstanding(),
                self.expected.pool.outstanding()
            ),
            (0, 0)
        );
    }
}

fn forwarded(frame: Frame, port: PortNo) -> Verdict {
    let to = Destination::Port(port);
    Verdict {
        frames: vec![frame],
        egress: vec![Egress::new(0, to)],
        ..Verdict::new()
    }
}

thread_local! {
    /// Number of frames that this thread has compared.
    static COMPARED: Cell<u64> = const { Cell::new(0) };
}

/// Runs the cases of a test, and asserts that they compare at least so many frames.
fn compare_at_least(frames: u64, cases: impl FnOnce()) {
    let before = COMPARED.get();
    cases();
    let compared = COMPARED.get() - before;
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
        let mut bench = OracleBench::with_tracker();
        for line in FIREWALL {
            bench.change(&OracleEvent::Flow(FlowModCommand::Add, (*line).to_owned()));
        }
        for (stacks, seconds) in batches {
            let frames: Vec<_> = stacks.into_iter().map(ReceivedFrame::plain).collect();
            bench.run_after(Duration::from_secs(seconds), PortNo(1), &frames);
            bench.flush_and_compare();
        }
    }
}

/// Packets of connections that are established, translated and reset.
#[test]
fn runner_agrees_with_interpreter_for_steady_connections() {
    compare_at_least(25_000, connections_of_a_firewall);
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
        bench.tested.engine = Runner::new(0);
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
    bench.classifier.request_compaction();
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
        let counts = bench.tested.engine.take_slow_path_packets();
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
    check("output:2,group:5", &[(SlowPathReason::Group, 2)]);
    check("meter:1,output:2", &[]);
    check("output:2,controller", &[]);
    check("dec_ttl,output:2", &[]);
    check("resubmit(,1),output:2", &[]);
    check("move:NXM_NX_REG0[]->NXM_NX_REG1[]", &[]);
    check("resubmit(,0)", &[(SlowPathReason::Resubmit, 2)]);
    check("resubmit(3,1)", &[(SlowPathReason::Resubmit, 2)]);
    check("controller(id=2)", &[(SlowPathReason::Controller, 2)]);
    check(
        "move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[]",
        &[(SlowPathReason::Action, 2)],
    );
    // Packets without an Ethernet header are the interpreter's.
    check("decap,output:2", &[(SlowPathReason::Action, 2)]);
    check("encap(mpls),output:2", &[(SlowPathReason::Action, 2)]);
    check("load:1->NXM_OF_VLAN_TCI[]", &[(SlowPathReason::Field, 2)]);
    check(
        "write_actions(dec_ttl,output:2)",
        &[(SlowPathReason::ActionSet, 2)],
    );
    check("conjunction(1,1/2)", &[]);
    check("conjunction(1,1/2)\npriority=9,tcp,actions=drop", &[]);
    let whole = "conjunction(1,1/2),conjunction(1,2/2)\nconj_id=1,actions=output:2";
    check(whole, &[(SlowPathReason::Conjunction, 2)]);
}
