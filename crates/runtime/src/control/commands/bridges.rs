//! Commands of bridges and their rules: `bridge/*` and `ofproto/*` of ovs-vswitchd(8).

use std::fmt::Write;

use base::{Instant, TableId};
use pipeline::Rule;

use super::Answer::{Deferred, Immediate};
use super::{Command, DeferredAnswer, site_of};
use crate::control::Control;

#[rustfmt::skip]
pub(super) const COMMANDS: [Command; 3] = [
    Command { name: "bridge/dump-flows", usage: "[--offload-stats] bridge", least: 1, most: 2, answer: Deferred(dump_flows) },
    Command { name: "bridge/reconnect", usage: "[bridge]", least: 0, most: 1, answer: Immediate(reconnect) },
    Command { name: "ofproto/list", usage: "", least: 0, most: 0, answer: Immediate(bridges) },
];

/// The error for an unknown bridge.
const UNKNOWN: &str = "Unknown bridge";

/// The default priority, which is not printed.
const DEFAULT_PRIORITY: u16 = 0x8000;

/// Lists the bridges.
fn bridges(control: &mut Control, _: &[String]) -> Result<String, String> {
    let names = control.sites.values().map(|site| site.bridge.name());
    let mut names: Vec<_> = names.map(|name| format!("{name}\n")).collect();
    names.sort();
    Ok(names.concat())
}

/// The counters of hardware offload, which is not supported.
const OFFLOADED: &str = "n_offload_packets=0, n_offload_bytes=0, ";

/// Lists all rules of all tables of a bridge; hidden rules are first.
fn dump_flows(control: &mut Control, arguments: &[String]) -> Result<DeferredAnswer, String> {
    let now = control.now();
    let (options, rest) = super::options(arguments);
    let offload = options.contains(&"--offload-stats");
    let name = rest.first().ok_or(UNKNOWN)?;
    let bridge = &site_of(control, name).ok_or(UNKNOWN)?.bridge;
    let (pipeline, in_band) = (bridge.rules(), bridge.in_band().cloned());
    Ok(Box::new(move || {
        let between = if offload { OFFLOADED } else { "" };
        let hidden = in_band.map(|in_band| in_band.format_rules(now, between));
        let mut text = hidden.unwrap_or_default();
        for table in (0..=TableId::LAST.0).map(TableId) {
            for rule in pipeline.rules(table) {
                write_rule(&mut text, rule, offload, now).expect("a string has room");
            }
        }
        text
    }))
}

fn write_rule(text: &mut String, rule: &Rule, offload: bool, now: Instant) -> std::fmt::Result {
    let statistics = rule.statistics(now);
    if statistics.table != TableId(0) {
        write!(text, "table_id={}, ", statistics.table.0)?;
    }
    let (age, packets, bytes) = (
        statistics.duration.as_secs(),
        statistics.packets,
        statistics.bytes,
    );
    write!(
        text,
        "duration={age}s, n_packets={packets}, n_bytes={bytes}, "
    )?;
    if offload {
        text.push_str(OFFLOADED);
    }
    if statistics.priority != DEFAULT_PRIORITY {
        write!(text, "priority={},", statistics.priority)?;
    }
    if !statistics.matching.is_any() {
        write!(text, "{},", statistics.matching)?;
    }
    writeln!(text, "actions={}", statistics.instructions)
}

/// Reconnects the controllers of a bridge, or of all.
fn reconnect(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let names: Vec<_> = match arguments {
        [name, ..] => {
            site_of(control, name).ok_or(UNKNOWN)?;
            vec![name.clone()]
        }
        [] => {
            let sites = control.sites.values();
            sites.map(|site| site.bridge.name().to_owned()).collect()
        }
    };
    names
        .iter()
        .for_each(|name| control.reconnect_controllers(name));
    Ok(String::new())
}
