//! The text form compared with Open vSwitch's, read back, and with invalid input.

mod bad;
mod cases;
mod groups;
mod manual;
pub(crate) mod random;

use std::time::Duration;

use base::{Cookie, GroupId, PortNo, TableId};
use proptest::prelude::*;

use super::*;
use crate::field::Field;
use crate::statistics::FlowStats;

/// A rule as `add-flow` makes it, without counts.
fn rule(command: &FlowMod) -> FlowStats {
    FlowStats {
        table: command.table,
        priority: command.priority,
        cookie: command.cookie,
        matching: command.matching.clone(),
        instructions: command.instructions.clone(),
        idle_timeout_s: command.idle_timeout_s,
        hard_timeout_s: command.hard_timeout_s,
        importance: command.importance,
        flags: command.flags,
        duration: Duration::ZERO,
        idle_age: Duration::ZERO,
        hard_age: Duration::ZERO,
        packets: 0,
        bytes: 0,
    }
}

fn add(line: &str) -> FlowMod {
    parse_flow(FlowModCommand::Add, line).unwrap_or_else(|error| panic!("{line}: {error}"))
}

#[test]
fn flows_are_read_and_printed_as_by_open_vswitch() {
    let vectors = include_str!("../../vectors/flows.txt");
    let mut question = None;
    let mut count = 0;
    for line in vectors.lines() {
        if let Some(text) = line.strip_prefix("< ") {
            assert_eq!(question, None, "a question without an answer");
            question = Some(text);
        } else if let Some(expected) = line.strip_prefix("> ") {
            let text = question.take().expect("each answer has its question");
            assert_eq!(
                FlowWithoutStats(&rule(&add(text))).to_string(),
                expected,
                "{text}"
            );
            assert_eq!(
                FlowWithoutStats(&rule(&add(expected))).to_string(),
                expected,
                "{text}"
            );
            count += 1;
        }
    }
    assert!(count > 200, "only {count} vectors");
}

/// Lines of `ovs-ofctl dump-flows` 3.1.0, by the Nicira form, of a switch with traffic.
#[test]
fn statistics_are_printed_as_by_open_vswitch() {
    let mut stats = rule(&add(
        "cookie=5,idle_timeout=50,hard_timeout=900,priority=10,tcp,in_port=1,tp_dst=80 actions=output:1,output:2",
    ));
    stats.duration = Duration::from_millis(3_251);
    stats.idle_age = Duration::from_millis(2_021);
    stats.hard_age = Duration::from_millis(2_014);
    (stats.packets, stats.bytes) = (78, 7_644);
    assert_eq!(
        stats.to_string(),
        "cookie=0x5, duration=3.251s, table=0, n_packets=78, n_bytes=7644, idle_timeout=50, \
         hard_timeout=900, idle_age=2, hard_age=2, priority=10,tcp,in_port=1,tp_dst=80 \
         actions=output:1,output:2"
    );
    stats = rule(&add("table=2,send_flow_rem actions=drop"));
    stats.duration = Duration::new(4, 100_000_001);
    stats.hard_age = stats.duration;
    assert_eq!(
        stats.to_string(),
        "cookie=0x0, duration=4.100000001s, table=2, n_packets=0, n_bytes=0, send_flow_rem \
         idle_age=0, actions=drop"
    );
}

#[test]
fn flow_file_line_may_begin_with_command() {
    for (line, command) in [
        ("in_port=1 actions=drop", FlowModCommand::Add),
        ("add in_port=1 actions=drop", FlowModCommand::Add),
        (" modify, in_port=1 actions=drop", FlowModCommand::Modify),
        (
            "modify_strict in_port=1 actions=drop",
            FlowModCommand::ModifyStrict,
        ),
        ("delete in_port=1", FlowModCommand::Delete),
        (
            "delete_strict\tpriority=3,in_port=1",
            FlowModCommand::DeleteStrict,
        ),
        ("delete", FlowModCommand::Delete),
    ] {
        assert_eq!(
            parse_flow_line(line).map(|flow| flow.command),
            Ok(command),
            "{line}"
        );
    }
}

#[test]
fn defaults_equal_those_of_ovs_ofctl() {
    let flow = add("actions=drop");
    let bare = FlowMod::new(
        FlowModCommand::Add,
        0x8000,
        Match::any(),
        Instructions::default(),
    );
    assert_eq!(flow, bare);
    let flow = parse_flow(FlowModCommand::Delete, "").expect("all rules of all tables");
    assert_eq!(flow.table, TableId::ALL);
}

#[test]
fn deletion_selects_by_cookie_port_and_group() {
    let line = "table=3,cookie=0x1f/0xf,out_port=LOCAL,out_group=9,ip";
    let flow = parse_flow(FlowModCommand::Delete, line).expect("well formed");
    assert_eq!((flow.cookie, flow.cookie_mask), (Cookie(0xf), 0xf));
    assert_eq!((flow.out_port, flow.out_group), (PortNo::LOCAL, GroupId(9)));
    let request = parse_flow_stats_request(line).expect("the same filter");
    assert_eq!((request.cookie, request.cookie_mask), (Cookie(0xf), 0xf));
    assert_eq!(
        (request.table, request.out_port),
        (TableId(3), PortNo::LOCAL)
    );
    assert_eq!(request.matching, flow.matching);
    assert_eq!(parse_flow_stats_request(""), Ok(FlowStatsRequest::all()));
}

#[test]
fn modification_selects_by_cookie_and_sets_cookie() {
    let line = "modify table=0,cookie=0x3/0xf,cookie=0x7,ip actions=drop";
    let flow = parse_flow_line(line).expect("well formed");
    assert_eq!((flow.cookie, flow.cookie_mask), (Cookie(3), 0xf));
    assert_eq!(flow.new_cookie, Some(Cookie(7)));
    assert_eq!(flow.to_string(), line);
    let flow = parse_flow_line("modify ip actions=drop").expect("well formed");
    assert_eq!((flow.new_cookie, flow.cookie_mask), (None, 0));
}

/// Syntax that `ovs-ofctl` lacks.
#[test]
fn additional_syntax_covers_rest_of_openflow() {
    let line = "ip,in_port=70000,in_phy_port=5 actions=copy_ttl_out,copy_ttl_in,output:70001";
    assert_eq!(FlowWithoutStats(&rule(&add(line))).to_string(), line);
    let line = "ipv6,ipv6_exthdr=0x6/0x1f actions=meter:7,group:8";
    assert_eq!(FlowWithoutStats(&rule(&add(line))).to_string(), line);
    assert_eq!(
        add("ip,nw_frag=2/3 actions=drop").matching.to_string(),
        "ip,nw_frag=0x2/0x3"
    );
}

#[test]
fn tp_src_is_what_the_protocol_has_there() {
    for (protocol, field) in [
        ("tcp", Field::TcpSrc),
        ("udp6", Field::UdpSrc),
        ("sctp", Field::SctpSrc),
        ("icmp", Field::Icmpv4Type),
        ("icmp6", Field::Icmpv6Type),
    ] {
        let matching: Match = format!("tp_src=5,{protocol}").parse().expect("well formed");
        assert_eq!(matching.exact(field), Some(5), "{protocol}");
    }
}

#[test]
fn actions_alone_are_read_without_instructions() {
    let actions = parse_actions("pop_vlan,2,controller").expect("well formed");
    assert_eq!(actions.len(), 3);
    assert_eq!(parse_actions("drop"), Ok(Vec::new()));
    assert_eq!(parse_actions(""), Ok(Vec::new()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn random_match_round_trips(matching in random::matching()) {
        prop_assert_eq!(matching.to_string().parse(), Ok(matching));
    }

    #[test]
    fn random_action_round_trips(action in random::action()) {
        prop_assert_eq!(parse_actions(&action.to_string()), Ok(vec![action]));
    }

    #[test]
    fn random_instructions_round_trip(instructions in random::instructions()) {
        prop_assert_eq!(instructions.to_string().parse(), Ok(instructions));
    }

    #[test]
    fn random_flow_mod_round_trips(flow in random::flow_mod()) {
        prop_assert_eq!(flow.to_string().parse(), Ok(flow));
    }

    #[test]
    fn printed_rule_reads_as_its_flow_mod(flow in random::flow_mod()) {
        let mut flow = FlowMod { command: FlowModCommand::Add, ..flow };
        (flow.cookie_mask, flow.new_cookie) = (0, None);
        (flow.out_port, flow.out_group) = (PortNo::ANY, GroupId::ANY);
        let stats = rule(&flow);
        prop_assert_eq!(stats.to_string().parse(), Ok(flow.clone()));
        prop_assert_eq!(FlowWithoutStats(&stats).to_string().parse(), Ok(flow));
    }
}
