//! For any sequence of changes and any packet, a lookup returns the same rule as a scan of all
//! rules; and a view is not affected by later changes.

use std::cell::Cell;
use std::sync::mpsc;
use std::thread;

use base::{Instant, PortNo};
use flow::{FlowKey, FlowModCommand, PipelineFields, TlvCommand, TlvMapping, TlvTableMod, text};
use packet::build::Stack;
use packet::{Depth, Frame, Headers};
use pipeline::{Limits, Pipeline};
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::batch_mask::BatchMask;
use crate::mask::masked_words;
use crate::packed_key::PackedKey;

/// Matches, each complete with its prerequisites.
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

/// A packet to look up.
#[derive(Clone, Debug)]
struct ProbePacket {
    stack: &'static str,
    registers: PipelineFields,
}

fn packet() -> impl Strategy<Value = ProbePacket> {
    let numbers = (1..4_u32, select(&[0, 7, 0x100][..]), 0..3_u32, 0..2_u64);
    (select(FRAMES), numbers).prop_map(|(stack, (port, metadata, register, tunnel))| ProbePacket {
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

/// A change in the syntax of `ovs-ofctl`.
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

/// The rule that a scan of all rules finds.
fn scanned(pipeline: &Pipeline, packet: &ProbePacket, frame: &Frame) -> Option<Arc<Rule>> {
    let headers = Headers::parse(frame, Depth::Transport).expect("well formed");
    let mut key = FlowKey::new();
    key.fill(&headers, &packet.registers);
    let mut rules = pipeline.rules(TableId(0));
    rules.find(|rule| rule.matching().accepts(&key)).cloned()
}

fn looked_up(view: &View, packet: &ProbePacket, frame: &Frame) -> Option<Arc<Rule>> {
    let headers = Headers::parse(frame, Depth::Transport).expect("well formed");
    let table = view.table(TableId(0))?;
    let mut key = PackedKey::new();
    key.fill(table.parts, &headers, &packet.registers);
    assert_eq!(table.fallback, None);
    view.look_up(table, &key).cloned()
}

fn assert_same_rule(view: &View, pipeline: &Pipeline, packet: &ProbePacket) {
    let frame = packet.stack.parse::<Stack>().expect("a stack").build();
    let expected = scanned(pipeline, packet, &frame);
    let found = looked_up(view, packet, &frame);
    let is_same = match (&expected, &found) {
        (Some(expected), Some(found)) => Arc::ptr_eq(expected, found),
        (None, None) => true,
        _ => false,
    };
    assert!(is_same, "the scan finds {expected:?}, the lookup {found:?}");
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
    fn lookup_finds_same_rule_as_scan(
        bursts in prop::collection::vec(prop::collection::vec(change(), 1..12), 1..8),
        packets in prop::collection::vec(packet(), 40),
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
            for packet in &packets {
                assert_same_rule(view, pipeline, packet);
            }
        }
    }
}

/// So many rules of one mask that segments grow and split, and are compacted again.
#[test]
fn rules_of_one_mask_are_added_and_removed() {
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
        let packet = ProbePacket {
            stack: "",
            registers: PipelineFields::new(PortNo(1)),
        };
        assert!(looked_up(&before, &packet, &frame).is_none());
        let found = looked_up(&full, &packet, &frame).expect("the rule was added");
        assert_eq!(u32::from(found.priority()), port % 7);
        assert_eq!(looked_up(&third, &packet, &frame).is_some(), port % 3 == 0);
    }
}

/// A rule that a controller rewrites in a loop does not make its packets pass all former versions.
#[test]
fn rule_that_is_rewritten_in_a_loop_has_a_short_list() {
    let mut pipeline = Pipeline::new(Limits::default(), 1);
    let mut classifier = Classifier::new();
    for port in 0..900 {
        let flow = format!("udp,tp_dst={port},actions=drop");
        apply(&mut pipeline, &mut classifier, FlowModCommand::Add, &flow);
    }
    for version in 0..1000 {
        let flow = format!("udp,tp_dst=7,actions=output:{}", version % 5 + 1);
        apply(&mut pipeline, &mut classifier, FlowModCommand::Add, &flow);
        classifier.publish(&pipeline);
        if version < 900 {
            continue;
        }
        let tuples = classifier.tables[&TableId(0)].tuples.values();
        let longest = tuples.map(Tuple::longest_list).max().unwrap_or(0);
        assert!(longest <= 20, "{longest} entries after {version} changes");
    }
}

/// Rules that differ only in their priority are not compared one by one, whatever the order in which
/// they were added, and after the removal of the highest.
#[test]
fn lookup_passes_few_of_many_priorities() {
    const COUNT: u16 = 900;
    let stack: Stack = "eth / ipv4 / udp(dst=7)".parse().expect("a frame");
    let headers = Headers::parse(&stack.build(), Depth::Transport).expect("well formed");
    let ascending: Vec<u16> = (1..=COUNT).collect();
    let descending: Vec<u16> = (1..=COUNT).rev().collect();
    // The numbers below 901, which has no factor in common with 7, in another order.
    let scattered: Vec<u16> = (1..=COUNT).map(|number| 7 * number % (COUNT + 1)).collect();
    for priorities in [ascending, descending, scattered] {
        let mut pipeline = Pipeline::new(Limits::default(), 1);
        let mut classifier = Classifier::new();
        for priority in priorities {
            let flow = format!("priority={priority},udp,tp_dst=7,actions=drop");
            apply(&mut pipeline, &mut classifier, FlowModCommand::Add, &flow);
        }
        for highest in (COUNT - 20..=COUNT).rev() {
            let view = classifier.publish(&pipeline);
            let table = view.table(TableId(0)).expect("it has rules");
            let mut key = PackedKey::new();
            key.fill(table.parts, &headers, &PipelineFields::new(PortNo(1)));
            let passed = Cell::new(0);
            let found = view.look_up_eligible(table, &key, |_| {
                passed.set(passed.get() + 1);
                true
            });
            assert_eq!(found.map(|rule| rule.priority()), Some(highest));
            assert!(passed.get() <= 2, "{} rules of one match", passed.get());
            let flow = format!("priority={highest},udp,tp_dst=7");
            let command = FlowModCommand::DeleteStrict;
            apply(&mut pipeline, &mut classifier, command, &flow);
        }
    }
}

/// Of rules that differ only in their priority, the hot entry of the one that is tried first decides,
/// whatever the order in which they were added; older views keep theirs.
#[test]
fn hot_entry_decides_among_many_priorities() {
    let stack: Stack = "eth / ipv4 / udp(dst=7)".parse().expect("a frame");
    let headers = Headers::parse(&stack.build(), Depth::Transport).expect("well formed");
    let ascending: Vec<u16> = (1..=100).collect();
    let descending: Vec<u16> = (1..=100).rev().collect();
    let scattered: Vec<u16> = (1..=100).map(|number| 7 * number % 101).collect();
    for priorities in [ascending, descending, scattered] {
        let mut pipeline = Pipeline::new(Limits::default(), 1);
        let mut classifier = Classifier::new();
        let mut views = Vec::new();
        let mut highest = 0;
        for (count, priority) in (1..).zip(priorities) {
            let flow = format!("priority={priority},udp,tp_dst=7,actions=drop");
            apply(&mut pipeline, &mut classifier, FlowModCommand::Add, &flow);
            highest = priority.max(highest);
            let view = classifier.publish(&pipeline);
            // Fewer are compared one by one.
            if count > crate::linear::RULES_MAX {
                views.push((view, highest));
            }
        }
        for (view, highest) in views {
            let table = view.table(TableId(0)).expect("it has rules");
            let mut key = PackedKey::new();
            key.fill(table.parts, &headers, &PipelineFields::new(PortNo(1)));
            let tuple = &table.tuples[0];
            let [a, b, c] = *tuple.mask() else {
                panic!("three words: {:?}", tuple.mask());
            };
            let keys = std::array::from_fn(|_| key.clone());
            let packet = BatchMask::single(0);
            let lookups = tuple.begin_hot_lookups(view.hasher, &keys, packet, [a, b, c]);
            let ((segment, hash), hot) = (lookups.segments[0], lookups.hot[0]);
            let entry = view.look_up_in(tuple, &key).map(|rule| rule.priority());
            assert_eq!(entry, Some(highest));
            let words = masked_words(&key, [a, b, c]);
            let hot = hot.filter(|hot| segment.is_hot_hit(hot, words, view.epoch()));
            // A view that is older than a later first rule of the list is decided by entries.
            if let Some(hot) = hot {
                assert_eq!(tuple.priority_of((segment, hash), hot), Some(highest));
                let rule = segment.rule_of_hot_entry(hash, hot);
                assert_eq!(rule.map(|rule| rule.priority()), Some(highest));
            } else {
                assert_ne!(highest, 100, "the latest views have a hot entry");
            }
        }
    }
}

/// A packet without tunnel options, or of a rule that precedes all rules on them, is looked up
/// without the interpreter.
#[test]
fn rules_on_options_leave_other_packets_to_compiled_rules() {
    let mut pipeline = Pipeline::new(Limits::default(), 1);
    let mut classifier = Classifier::new();
    let option = TlvTableMod {
        command: TlvCommand::Add,
        mappings: vec![TlvMapping {
            class: 0xffff,
            kind: 1,
            length: 4,
            index: 0,
        }],
    };
    let mapped = pipeline.tlv_table_mod(&option);
    mapped.expect("the table of options is empty");
    for flow in [
        "priority=9,udp,tp_dst=7,actions=drop",
        "priority=8,tun_metadata0=7,actions=drop",
        "priority=7,ip,actions=drop",
    ] {
        apply(&mut pipeline, &mut classifier, FlowModCommand::Add, flow);
    }
    let view = classifier.publish(&pipeline);
    let table = view.table(TableId(0)).expect("it has rules");
    assert_eq!(table.fallback, Some(LookupFallback::Interpreter));
    let results = [
        (7, true, Some(Some(9))),
        (8, true, None),
        (7, false, Some(Some(9))),
        (8, false, Some(Some(7))),
    ];
    for (port, has_options, expected) in results {
        let stack = format!("eth / ipv4 / udp(dst={port})");
        let frame = stack.parse::<Stack>().expect("a stack").build();
        let headers = Headers::parse(&frame, Depth::Transport).expect("well formed");
        let mut key = PackedKey::new();
        key.fill(table.parts, &headers, &PipelineFields::new(PortNo(1)));
        let found = view.look_up_compiled(table, &key, has_options);
        let found = found.map(|found| found.map(|rule| rule.priority()));
        assert_eq!(found, expected, "port {port}, options: {has_options}");
    }
}

/// A packet in more conjunctions than are recorded without an allocation, and more clauses than a
/// word has bits.
#[test]
fn packet_in_many_conjunctions_needs_no_scan() {
    let mut pipeline = Pipeline::new(Limits::default(), 1);
    let mut classifier = Classifier::new();
    let clause = |number: u32| {
        let actions = (1..=100).map(|id| format!("conjunction({id},{number}/2)"));
        actions.collect::<Vec<_>>().join(",")
    };
    let (first, second) = (clause(1), clause(2));
    let mut rules = vec![
        format!("priority=9,ip,nw_src=10.0.0.1,actions={first}"),
        format!("priority=9,tcp,tp_dst=80,actions={second}"),
        "priority=5,conj_id=77,actions=output:2".to_owned(),
    ];
    for number in 0..90 {
        let (priority, id) = (10 + number, 1000 + number);
        rules.push(format!(
            "priority={priority},ip,actions=conjunction({id},1/2)"
        ));
    }
    for rule in &rules {
        apply(&mut pipeline, &mut classifier, FlowModCommand::Add, rule);
    }
    let view = classifier.publish(&pipeline);
    let stack: Stack = "eth / ipv4(src=10.0.0.1) / tcp(dst=80)"
        .parse()
        .expect("a frame");
    let headers = Headers::parse(&stack.build(), Depth::Transport).expect("well formed");
    let table = view.table(TableId(0)).expect("it has rules");
    let mut key = PackedKey::new();
    key.fill(table.parts, &headers, &PipelineFields::new(PortNo(1)));
    let found = view.look_up_conjunctive(table, &key);
    assert!(
        matches!(found, ConjunctiveMatch::Conjunction(rule, 77) if rule.priority() == 5),
        "{found:?}"
    );
}

/// Segments share entries with their predecessors: an older view is unaffected by rules with the
/// same match that are added and removed later.
#[test]
fn views_are_unaffected_while_table_grows() {
    const RULES: u32 = 6_000;
    const PUBLISHED: u32 = 500;
    const LIFETIME: u32 = 1_000;
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
        if let Some(old) = port.checked_sub(LIFETIME).filter(|old| is_doubled(*old)) {
            change(
                FlowModCommand::DeleteStrict,
                &format!("priority=2,udp,tp_dst={old}"),
            );
        }
        if port.is_multiple_of(PUBLISHED) {
            views.push((port, classifier.publish(&pipeline)));
        }
    }
    let packet = ProbePacket {
        stack: "",
        registers: PipelineFields::new(PortNo(1)),
    };
    for (last, view) in &views {
        for port in (0..RULES).step_by(7).chain(0..50) {
            let stack = format!("eth / ipv4 / udp(dst={port})");
            let frame = stack.parse::<Stack>().expect("a stack").build();
            let found = looked_up(view, &packet, &frame).map(|rule| rule.priority());
            let above = is_doubled(port) && port + LIFETIME > *last;
            let expected = (port <= *last).then_some(if above { 2 } else { 1 });
            assert_eq!(found, expected, "port {port} in the view of {last}");
        }
    }
}

/// Dead rules are released although segments share entries with their predecessors.
#[test]
fn removed_rules_are_released() {
    const RULES: u32 = 20_000;
    let mut pipeline = Pipeline::new(Limits::default(), 1);
    let mut classifier = Classifier::new();
    let mut rules = Vec::new();
    for port in 0..RULES {
        // Each is removed after 2,000 others were added, more than a segment has entries.
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
            .expect("the table has room");
        classifier.queue_changes(&changes);
        classifier.publish(&pipeline);
        rules.extend(changes.added.iter().map(Arc::downgrade));
    }
    let in_memory = rules.iter().filter(|rule| rule.strong_count() > 0).count();
    assert!(
        in_memory < 3 * pipeline.len(),
        "{in_memory} of {} rules",
        pipeline.len()
    );
}

/// A reader in another thread sees its view as published while the tables are written: in each
/// step a third of the rules are added or removed.
#[test]
fn views_are_unaffected_while_tables_are_written() {
    const RULES: u32 = 300;
    const STEPS: u32 = 200;
    let (views, to_read) = mpsc::sync_channel::<(u32, View)>(4);
    let exists = |port: u32, step: u32| !(port + step).is_multiple_of(3);
    let reader = thread::spawn(move || {
        let frames: Vec<_> = (0..RULES)
            .map(|port| format!("eth / ipv4 / udp(dst={port})"))
            .map(|stack| stack.parse::<Stack>().expect("a stack").build())
            .collect();
        let packet = ProbePacket {
            stack: "",
            registers: PipelineFields::new(PortNo(1)),
        };
        let mut read = 0;
        for (step, view) in to_read {
            for (port, frame) in (0..).zip(&frames) {
                let found = looked_up(&view, &packet, frame).is_some();
                assert_eq!(found, exists(port, step), "port {port} in step {step}");
            }
            read += 1;
        }
        read
    });
    let mut pipeline = Pipeline::new(Limits::default(), 1);
    let mut classifier = Classifier::new();
    for step in 0..STEPS {
        for port in 0..RULES {
            let (command, actions) = if exists(port, step) {
                (FlowModCommand::Add, ",actions=drop")
            } else {
                (FlowModCommand::DeleteStrict, "")
            };
            let flow = format!("priority=1,udp,tp_dst={port}{actions}");
            apply(&mut pipeline, &mut classifier, command, &flow);
        }
        let view = classifier.publish(&pipeline);
        views
            .send((step, view))
            .expect("the reader receives all views");
    }
    drop(views);
    assert_eq!(reader.join().expect("the reader found all rules"), STEPS);
}

/// More publications than ages of sixteen bits count, with one rule that is added and removed and
/// one that stays, and all views in use.
#[test]
fn views_are_unaffected_by_more_publications_than_ages_count() {
    const PUBLICATIONS: u32 = 200_000;
    let mut pipeline = Pipeline::new(Limits::default(), 1);
    let mut classifier = Classifier::new();
    let packet = ProbePacket {
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
    let mut views = Vec::new();
    for step in 0..PUBLICATIONS {
        let (command, flow) = match step % 2 {
            0 => (FlowModCommand::Add, "udp,tp_dst=2,actions=output:1"),
            _ => (FlowModCommand::DeleteStrict, "priority=32768,udp,tp_dst=2"),
        };
        // Most publications write nothing, so that segments are replaced only when they are too old.
        if step % 1000 < 2 {
            apply(&mut pipeline, &mut classifier, command, flow);
        } else {
            classifier.publish(&pipeline);
            continue;
        }
        let view = classifier.publish(&pipeline);
        views.push((view, step % 2 == 0));
    }
    for (view, exists) in &views {
        assert!(looked_up(view, &packet, &staying).is_some());
        assert_eq!(looked_up(view, &packet, &moving).is_some(), *exists);
    }
}

#[test]
fn tables_are_added_and_removed_independently() {
    let mut pipeline = Pipeline::new(Limits::default(), 1);
    let mut classifier = Classifier::new();
    let mut change = |command, flow| {
        apply(&mut pipeline, &mut classifier, command, flow);
        classifier.publish(&pipeline)
    };
    let tables_of = |view: &View| {
        let tables = (0..=TableId::LAST.0).map(TableId);
        let found = tables.filter(|table| view.table(*table).is_some());
        found.map(|table| table.0).collect::<Vec<_>>()
    };
    let low = change(FlowModCommand::Add, "table=3,actions=drop");
    let both = change(FlowModCommand::Add, "table=253,actions=drop");
    let high = change(FlowModCommand::Delete, "table=3");
    let none = change(FlowModCommand::Delete, "table=253");
    let views = [low, both, high, none];
    let expected: [&[u8]; 4] = [&[3], &[3, 253], &[253], &[]];
    assert_eq!(views.each_ref().map(tables_of), expected);
}
