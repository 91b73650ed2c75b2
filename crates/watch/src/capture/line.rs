//! Capture output as lines, one for each received and each sent frame: time, direction, port,
//! frame, and matching rules.

use std::collections::BTreeMap;
use std::fmt::Write;

use control_api::capture::{Captured, Snapped};

use super::{port_told, rules_told};

/// Seconds in a day.
const DAY: u64 = 24 * 60 * 60;

/// Formats all lines of a frame.
pub(super) fn lines(captured: &Captured, names: &BTreeMap<String, String>) -> String {
    let at = time(captured.time_ns);
    let mut text = String::new();
    let mut line = |way: &str, port: &str, what: &str, rules: &str| {
        let port = port_told(port, names);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{at} {way:<4} {port:<8} {what} | {rules}");
    };
    let rules = rules_told(&captured.rules);
    line("in", &captured.port, &frame(&captured.frame), &rules);
    for exit in &captured.exits {
        let until = captured.rules.get(..exit.rules);
        let rules = rules_told(until.unwrap_or(&captured.rules));
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
fn frame(snapped: &Snapped) -> String {
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
        let told = lines(&captured(), &names());
        let told: Vec<_> = told.lines().collect();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(
            told[0].starts_with("22:13:20.000000 in   eth1     60 bytes arp,"),
            "{told:?}"
        );
        assert!(told[0].contains("dl_dst=00:00:00:00:00:01"), "{told:?}");
        assert!(told[0].ends_with(" | table=0,cookie=0x2a,priority=9,arp -> table=4,priority=0"));
        assert!(
            told[1].starts_with("22:13:20.000000 out  eth2     60 bytes arp,"),
            "{told:?}"
        );
        assert!(told[1].contains("dl_dst=00:00:00:00:00:02"), "{told:?}");
        // The second table had not processed it at that point.
        assert!(
            told[1].ends_with(" | table=0,cookie=0x2a,priority=9,arp"),
            "{told:?}"
        );
    }

    #[test]
    fn dropped_frame_prints_line_with_reason() {
        let mut dropped = captured();
        dropped.exits.clear();
        let told = lines(&dropped, &names());
        assert!(
            told.contains("drop eth1     normal forwarding has no port for it | "),
            "{told}"
        );
        dropped.drops.push("no_output".to_owned());
        let told = lines(&dropped, &names());
        assert!(told.contains("drop eth1     no_output | table=0"), "{told}");
    }
}
