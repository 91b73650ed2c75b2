//! The text form against Open vSwitch's own, against itself, and against nonsense.

use std::time::Duration;

use super::*;
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
        flags: command.flags,
        duration: Duration::ZERO,
        idle_age: Duration::ZERO,
        hard_age: Duration::ZERO,
        packets: 0,
        bytes: 0,
    }
}

#[test]
fn flows_are_read_and_printed_as_by_open_vswitch() {
    let vectors = include_str!("../../vectors/flows.txt");
    let mut question = None;
    let mut count = 0;
    for line in vectors.lines() {
        if let Some(text) = line.strip_prefix("< ") {
            question = Some(text);
        } else if let Some(expected) = line.strip_prefix("> ") {
            let text = question.take().expect("each answer has its question");
            let flow =
                parse_flow(FlowModCommand::Add, text).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(Brief(&rule(&flow)).to_string(), expected, "{text}");
            count += 1;
        }
    }
    assert!(count > 200, "only {count} vectors");
}
