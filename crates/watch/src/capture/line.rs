//! Capture output as lines, one for each received and each sent frame: time, direction, port,
//! frame, and matching rules.

use std::collections::BTreeMap;
use std::fmt::Write;

use control_api::capture::{CapturedFrame, TruncatedFrame};

use super::{format_rules, port_name};

/// Seconds in a day.
const DAY: u64 = 24 * 60 * 60;

/// Formats all lines of a frame.
pub(super) fn lines(captured: &CapturedFrame, names: &BTreeMap<String, String>) -> String {
    let at = time(captured.time_ns);
    let mut text = String::new();
    let mut line = |direction: &str, port: &str, content: &str, rules: &str| {
        let port = port_name(port, names);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{at} {direction:<4} {port:<8} {content} | {rules}");
    };
    let rules = format_rules(&captured.rules);
    line("in", &captured.port, &frame(&captured.frame), &rules);
    for exit in &captured.exits {
        let until = captured.rules.get(..exit.rules);
        let rules = format_rules(until.unwrap_or(&captured.rules));
        line("out", &exit.port, &frame(&exit.frame), &rules);
    }
    for reason in &captured.drops {
        line("drop", &captured.port, reason, &rules);
    }
    if captured.exits.is_empty() && captured.drops.is_empty() {
        line(
            "drop",
            &captured.port,
            "normal forwarding has no port for it",
            &rules,
        );
    }
    text
}

/// Formats a frame: its length, and its fields in the syntax of matches.
fn frame(snapped: &TruncatedFrame) -> String {
    let fields = openflow::describe_frame(&snapped.bytes());
    let length = snapped.length;
    match snapped.segments {
        0 | 1 => format!("{length} bytes {fields}"),
        segments => format!("{length} bytes for {segments} frames {fields}"),
    }
}

/// Formats the time of day (UTC) in microseconds.
fn time(ns: u64) -> String {
    let (seconds, micros) = (ns / 1_000_000_000 % DAY, ns / 1000 % 1_000_000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{hour:02}:{minute:02}:{second:02}.{micros:06}")
}

#[cfg(test)]
mod tests {
    use super::super::tests::{captured, names};
    use super::*;

    #[test]
    fn frame_prints_line_on_receive_and_on_send() {
        let output = lines(&captured(), &names());
        let output: Vec<_> = output.lines().collect();
        assert_eq!(output.len(), 2, "{output:?}");
        assert!(
            output[0].starts_with("22:13:20.000000 in   eth1     60 bytes arp,"),
            "{output:?}"
        );
        assert!(output[0].contains("dl_dst=00:00:00:00:00:01"), "{output:?}");
        assert!(output[0].ends_with(" | table=0,cookie=0x2a,priority=9,arp -> table=4,priority=0"));
        assert!(
            output[1].starts_with("22:13:20.000000 out  eth2     60 bytes arp,"),
            "{output:?}"
        );
        assert!(output[1].contains("dl_dst=00:00:00:00:00:02"), "{output:?}");
        // The second table had not processed it at that point.
        assert!(
            output[1].ends_with(" | table=0,cookie=0x2a,priority=9,arp"),
            "{output:?}"
        );
    }

    #[test]
    fn dropped_frame_prints_line_with_reason() {
        let mut dropped = captured();
        dropped.exits.clear();
        let output = lines(&dropped, &names());
        assert!(
            output.contains("drop eth1     normal forwarding has no port for it | "),
            "{output}"
        );
        dropped.drops.push("no_output".to_owned());
        let output = lines(&dropped, &names());
        assert!(
            output.contains("drop eth1     no_output | table=0"),
            "{output}"
        );
    }
}
