//! Whatever is added, changed and taken out, and whatever the frame: what is
//! found is what a walk along the list of rules finds. And a view goes on showing
//! what it showed.

use std::sync::mpsc;
use std::thread;

use base::{Instant, PortNo};
use flow::{FlowKey, FlowModCommand, PipelineFields, text};
use packet::build::Stack;
use packet::{Depth, Frame, Headers};
use pipeline::{Limits, Pipeline};
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::lanes::Lanes;

/// Conditions, of which every one stands by itself or behind its prerequisites.
const LINK: &[&str] = &[
    "in_port=1",
    "in_port=2",
    "dl_dst=02:00:00:00:00:02",
    "dl_src=02:00:00:00:00:00/fe:00:00:00:00:00",
    "dl_dst=01:00:00:00:00:00/01:00:00:00:00:00",
    "dl_vlan=5",
    "dl_vlan=5,dl_vlan_pcp=3",
    "vlan_tci=0x1000/0x1000",
    "vlan_tci=0",
    "metadata=7",
    "metadata=0x100/0x300",
    "reg0=1",
    "reg5=0x10/0xf0",
    "xxreg1=0x20",
    "tun_id=9",
    "pkt_mark=3",
    "actset_output=unset",
    "conj_id=0",
];
const NETWORK: &[&str] = &[
    "",
    "ip",
    "ip,nw_src=10.0.0.1",
    "ip,nw_src=10.0.0.0/24",
    "ip,nw_src=10.0.0.1,nw_dst=10.0.0.2",
    "ip,nw_dst=10.0.0.0/8",
    "ip,nw_tos=0xb8",
    "ip,nw_ecn=1",
    "ip,nw_ttl=64",
    "ip,nw_frag=later",
    "ip,nw_frag=no",
    "tcp",
    "tcp,tp_dst=80",
    "tcp,tp_dst=0x50/0xfff0",
    "tcp,tp_src=1000,tp_dst=80",
    "tcp,tcp_flags=+syn-ack",
    "udp,tp_dst=2000",
    "udp,tp_dst=0",
    "udp,nw_frag=first",
    "sctp,tp_dst=2000",
    "icmp,icmp_type=8,icmp_code=0",
    "arp",
    "arp,arp_op=1",
    "arp,arp_spa=10.0.0.1,arp_tpa=10.0.0.2",
    "arp,arp_tpa=0.0.0.0",
    "arp,arp_sha=02:00:00:00:00:01",
    "ipv6",
    "ipv6,ipv6_dst=fd00::/8",
    "ipv6,ipv6_src=fd00::1,ipv6_dst=fd00::2",
    "ipv6,ipv6_label=0x12345",
    "tcp6,tp_dst=80",
    "icmp6,icmp_type=135",
    "icmp6,icmp_type=135,nd_target=fd00::2",
    "icmp6,icmp_type=135,nd_target=::",
    "icmp6,icmp_type=135,nd_sll=02:00:00:00:00:01",
    "icmp6,icmp_type=136,nd_tll=02:00:00:00:00:01",
    "mpls",
    "mpls,mpls_label=16,mpls_bos=1",
    "dl_type=0x88e7",
    "dl_type=0x88e7,pbb_isid=1",
    "dl_type=0x88e7,pbb_uca=1",
];
const FRAMES: &[&str] = &[
    "eth",
    "eth(dst=ff:ff:ff:ff:ff:ff)",
    "eth / vlan(vid=5,pcp=3) / ipv4 / tcp",
    "eth / vlan(vid=5) / arp",
    "eth / vlan(vid=0) / ipv6 / udp",
    "eth / arp",
    "eth / mpls",
    "eth / mpls / mpls",
    "eth / pbb / eth / ipv4 / tcp",
    "eth / ipv4 / tcp",
    "eth / ipv4(tos=0xb9,ttl=64) / tcp(flags=S)",
    "eth / ipv4 / tcp(src=1000,dst=80)",
    "eth / ipv4(src=10.0.0.1,dst=10.1.2.3) / tcp(dst=81)",
    "eth / ipv4(src=10.0.0.77) / udp",
    "eth / ipv4 / udp(dst=0)",
    "eth / ipv4(mf) / udp / data(8)",
    "eth / ipv4(offset=1,proto=17) / data(8)",
    "eth / ipv4(offset=1,proto=6) / data(8)",
    "eth / ipv4 / sctp",
    "eth / ipv4 / icmp",
    "eth / ipv6 / tcp(dst=80)",
    "eth / ipv6 / sctp",
    "eth / ipv6 / icmpv6",
    "eth / ipv6 / nd",
    "eth / ipv6 / nd(sll=02:00:00:00:00:01)",
    "eth / ipv6 / nd(type=136,tll=02:00:00:00:00:01)",
];

/// A frame as it is looked up.
#[derive(Clone, Debug)]
struct Seen {
    stack: &'static str,
    registers: PipelineFields,
}

fn seen() -> impl Strategy<Value = Seen> {
    let numbers = (1..4_u32, select(&[0, 7, 0x100][..]), 0..3_u32, 0..2_u64);
    (select(FRAMES), numbers).prop_map(|(stack, (port, metadata, register, tunnel))| Seen {
        stack,
        registers: PipelineFields {
            metadata,
            tunnel_id: tunnel * 9,
            mark: register,
            general: std::array::from_fn(|number| match number {
                0 => register,
                5 | 7 => 0x10 * register,
                _ => 0,
            }),
            ..PipelineFields::new(PortNo(port))
        },
    })
}

/// A change, as `ovs-ofctl` writes it.
fn change() -> impl Strategy<Value = (FlowModCommand, String)> {
    let commands = prop_oneof![
        8 => Just(FlowModCommand::Add),
        1 => Just(FlowModCommand::ModifyStrict),
        2 => Just(FlowModCommand::DeleteStrict),
        1 => Just(FlowModCommand::Delete),
    ];
    let link = prop_oneof![2 => Just(""), 3 => select(LINK)];
    (commands, 0..4_u16, link, select(NETWORK)).prop_map(|(command, priority, link, network)| {
        let actions = match command {
            FlowModCommand::Delete | FlowModCommand::DeleteStrict => "",
            _ => ",actions=output:1",
        };
        let priority = match command {
            FlowModCommand::Delete => String::new(),
            _ => format!("priority={priority}"),
        };
        let words = [priority.as_str(), link, network];
        let words: Vec<_> = words.into_iter().filter(|word| !word.is_empty()).collect();
        (command, format!("{}{actions}", words.join(",")))
    })
}

/// What a walk along the list finds.
fn walked(pipeline: &Pipeline, seen: &Seen, frame: &Frame) -> Option<Arc<Rule>> {
    let headers = Headers::parse(frame, Depth::Transport).expect("well formed");
    let mut key = FlowKey::new();
    key.fill(&headers, &seen.registers);
    let mut rules = pipeline.rules(TableId(0));
    rules.find(|rule| rule.matching().accepts(&key)).cloned()
}

fn looked_up(view: &View, seen: &Seen, frame: &Frame) -> Option<Arc<Rule>> {
    let headers = Headers::parse(frame, Depth::Transport).expect("well formed");
    let table = view.table(TableId(0))?;
    let mut lanes = Lanes::new();
    lanes.fill(table.parts, &headers, &seen.registers);
    assert_eq!(table.uncompiled, None);
    view.look_up(table, &lanes).cloned()
}

fn same(view: &View, pipeline: &Pipeline, seen: &Seen) {
    let frame = seen.stack.parse::<Stack>().expect("a stack").build();
    let (wanted, found) = (
        walked(pipeline, seen, &frame),
        looked_up(view, seen, &frame),
    );
    let same = match (&wanted, &found) {
        (Some(wanted), Some(found)) => Arc::ptr_eq(wanted, found),
        (None, None) => true,
        _ => false,
    };
    assert!(
        same,
        "{wanted:?} is found by walking, {found:?} by looking up"
    );
}

fn apply(
    pipeline: &mut Pipeline,
    classifier: &mut Classifier,
    command: FlowModCommand,
    flow: &str,
) {
    let flow_mod = text::parse_flow(command, flow).expect(flow);
    let changes = pipeline.flow_mod(&flow_mod, Instant::START);
    classifier.queue_changes(&changes.expect(flow));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn what_is_looked_up_is_what_a_walk_finds(
        bursts in prop::collection::vec(prop::collection::vec(change(), 1..12), 1..8),
        frames in prop::collection::vec(seen(), 40),
    ) {
        let mut pipeline = Pipeline::new(Limits::default(), 1);
        let mut classifier = Classifier::new();
        let mut history = Vec::new();
        for burst in &bursts {
            for (command, flow) in burst {
                apply(&mut pipeline, &mut classifier, *command, flow);
            }
            history.push((classifier.publish(&pipeline), pipeline.clone()));
        }
        for (view, pipeline) in &history {
            for seen in &frames {
                same(view, pipeline, seen);
            }
        }
    }
}

/// Enough of one shape that segments grow and split, and then go again.
#[test]
fn many_rules_of_one_shape_come_and_go() {
    let mut pipeline = Pipeline::new(Limits::default(), 1);
    let mut classifier = Classifier::new();
    let before = classifier.publish(&pipeline);
    let flow = |port: u32| {
        format!(
            "priority={},udp,tp_src={},tp_dst={}",
            port % 7,
            port % 251,
            port
        )
    };
    for port in 0..20_000 {
        let flow = format!("{},actions=output:1", flow(port));
        apply(&mut pipeline, &mut classifier, FlowModCommand::Add, &flow);
    }
    let full = classifier.publish(&pipeline);
    for port in (0..20_000).filter(|port| port % 3 != 0) {
        apply(
            &mut pipeline,
            &mut classifier,
            FlowModCommand::DeleteStrict,
            &flow(port),
        );
    }
    let third = classifier.publish(&pipeline);
    for port in 0..20_000_u32 {
        let stack = format!("eth / ipv4 / udp(src={},dst={port})", port % 251);
        let frame = stack.parse::<Stack>().expect("a stack").build();
        let seen = Seen {
            stack: "",
            registers: PipelineFields::new(PortNo(1)),
        };
        assert!(looked_up(&before, &seen, &frame).is_none());
        let found = looked_up(&full, &seen, &frame).expect("it was there");
        assert_eq!(u32::from(found.priority()), port % 7);
        assert_eq!(looked_up(&third, &seen, &frame).is_some(), port % 3 == 0);
    }
}

/// Segments go on with the entries of those before them: what an older view shows stays,
/// though rules of the same match come behind them, and go.
#[test]
fn views_stand_while_a_table_grows() {
    const RULES: u32 = 6_000;
    const PUBLISHED: u32 = 500;
    const STAYS: u32 = 1_000;
    let mut pipeline = Pipeline::new(Limits::default(), 1);
    let mut classifier = Classifier::new();
    let mut views = Vec::new();
    let is_doubled = |port: u32| port.is_multiple_of(5);
    for port in 0..RULES {
        let mut change = |command, flow: &str| apply(&mut pipeline, &mut classifier, command, flow);
        change(
            FlowModCommand::Add,
            &format!("priority=1,udp,tp_dst={port},actions=drop"),
        );
        if is_doubled(port) {
            change(
                FlowModCommand::Add,
                &format!("priority=2,udp,tp_dst={port},actions=drop"),
            );
        }
        if let Some(old) = port.checked_sub(STAYS).filter(|old| is_doubled(*old)) {
            change(
                FlowModCommand::DeleteStrict,
                &format!("priority=2,udp,tp_dst={old}"),
            );
        }
        if port.is_multiple_of(PUBLISHED) {
            views.push((port, classifier.publish(&pipeline)));
        }
    }
    let seen = Seen {
        stack: "",
        registers: PipelineFields::new(PortNo(1)),
    };
    for (last, view) in &views {
        for port in (0..RULES).step_by(7).chain(0..50) {
            let stack = format!("eth / ipv4 / udp(dst={port})");
            let frame = stack.parse::<Stack>().expect("a stack").build();
            let found = looked_up(view, &seen, &frame).map(|rule| rule.priority());
            let above = is_doubled(port) && port + STAYS > *last;
            let wanted = (port <= *last).then_some(if above { 2 } else { 1 });
            assert_eq!(found, wanted, "port {port} when {last} came");
        }
    }
}

/// What has died is let go of, though segments go on with the entries of those before.
#[test]
fn rules_that_went_are_not_kept() {
    const RULES: u32 = 20_000;
    let mut pipeline = Pipeline::new(Limits::default(), 1);
    let mut classifier = Classifier::new();
    let mut rules = Vec::new();
    for port in 0..RULES {
        // Each goes when as many have come behind it as a segment has entries.
        if let Some(old) = port.checked_sub(2_000) {
            let flow = format!("priority=32768,udp,tp_dst={old}");
            apply(
                &mut pipeline,
                &mut classifier,
                FlowModCommand::DeleteStrict,
                &flow,
            );
        }
        let flow = format!("udp,tp_dst={port},actions=drop");
        let flow_mod = text::parse_flow(FlowModCommand::Add, &flow).expect("a flow");
        let changes = pipeline
            .flow_mod(&flow_mod, Instant::START)
            .expect("there is room");
        classifier.queue_changes(&changes);
        classifier.publish(&pipeline);
        rules.extend(changes.added.iter().map(Arc::downgrade));
    }
    let kept = rules.iter().filter(|rule| rule.strong_count() > 0).count();
    assert!(
        kept < 3 * pipeline.len(),
        "{kept} of {} rules",
        pipeline.len()
    );
}

/// A reader sees what its view showed when it was published, however much is
/// written meanwhile: in each step a third of the rules come or go.
#[test]
fn views_stand_while_the_tables_are_written() {
    const RULES: u32 = 300;
    const STEPS: u32 = 200;
    let (views, to_read) = mpsc::sync_channel::<(u32, View)>(4);
    let there = |port: u32, step: u32| !(port + step).is_multiple_of(3);
    let reader = thread::spawn(move || {
        let frames: Vec<_> = (0..RULES)
            .map(|port| format!("eth / ipv4 / udp(dst={port})"))
            .map(|stack| stack.parse::<Stack>().expect("a stack").build())
            .collect();
        let seen = Seen {
            stack: "",
            registers: PipelineFields::new(PortNo(1)),
        };
        let mut read = 0;
        for (step, view) in to_read {
            for (port, frame) in (0..).zip(&frames) {
                let found = looked_up(&view, &seen, frame).is_some();
                assert_eq!(found, there(port, step), "port {port} in step {step}");
            }
            read += 1;
        }
        read
    });
    let mut pipeline = Pipeline::new(Limits::default(), 1);
    let mut classifier = Classifier::new();
    for step in 0..STEPS {
        for port in 0..RULES {
            let (command, actions) = if there(port, step) {
                (FlowModCommand::Add, ",actions=drop")
            } else {
                (FlowModCommand::DeleteStrict, "")
            };
            let flow = format!("priority=1,udp,tp_dst={port}{actions}");
            apply(&mut pipeline, &mut classifier, command, &flow);
        }
        let view = classifier.publish(&pipeline);
        views.send((step, view)).expect("the reader reads");
    }
    drop(views);
    assert_eq!(reader.join().expect("all was as it should be"), STEPS);
}

/// Entries keep their epochs as ages of sixteen bits: more publications than that, with
/// a rule that comes and goes and one that stays, and views that are kept all the while.
#[test]
fn views_stand_however_many_publications_follow() {
    const PUBLICATIONS: u32 = 200_000;
    let mut pipeline = Pipeline::new(Limits::default(), 1);
    let mut classifier = Classifier::new();
    let seen = Seen {
        stack: "",
        registers: PipelineFields::new(PortNo(1)),
    };
    let frame = |port: u32| {
        let stack = format!("eth / ipv4 / udp(dst={port})");
        stack.parse::<Stack>().expect("a stack").build()
    };
    let (staying, moving) = (frame(1), frame(2));
    let stays = "udp,tp_dst=1,actions=output:1";
    apply(&mut pipeline, &mut classifier, FlowModCommand::Add, stays);
    let mut kept = Vec::new();
    for step in 0..PUBLICATIONS {
        let (command, flow) = match step % 2 {
            0 => (FlowModCommand::Add, "udp,tp_dst=2,actions=output:1"),
            _ => (FlowModCommand::DeleteStrict, "priority=32768,udp,tp_dst=2"),
        };
        // Mostly nothing is written at all, and so nothing is remade in time.
        if step % 1000 < 2 {
            apply(&mut pipeline, &mut classifier, command, flow);
        } else {
            classifier.publish(&pipeline);
            continue;
        }
        let view = classifier.publish(&pipeline);
        kept.push((view, step % 2 == 0));
    }
    for (view, is_there) in &kept {
        assert!(looked_up(view, &seen, &staying).is_some());
        assert_eq!(looked_up(view, &seen, &moving).is_some(), *is_there);
    }
}

#[test]
fn tables_come_and_go_and_the_others_stay() {
    let mut pipeline = Pipeline::new(Limits::default(), 1);
    let mut classifier = Classifier::new();
    let mut change = |command, flow| {
        apply(&mut pipeline, &mut classifier, command, flow);
        classifier.publish(&pipeline)
    };
    let there = |view: &View| {
        let tables = (0..=TableId::LAST.0).map(TableId);
        let found = tables.filter(|table| view.table(*table).is_some());
        found.map(|table| table.0).collect::<Vec<_>>()
    };
    let low = change(FlowModCommand::Add, "table=3,actions=drop");
    let both = change(FlowModCommand::Add, "table=253,actions=drop");
    let high = change(FlowModCommand::Delete, "table=3");
    let none = change(FlowModCommand::Delete, "table=253");
    let views = [low, both, high, none];
    let wanted: [&[u8]; 4] = [&[3], &[3, 253], &[253], &[]];
    assert_eq!(views.each_ref().map(there), wanted);
}
