//! Commands without an Open vSwitch counterpart, `comporta/*`, and the counters.

use crate::control::telemetry::telemetry;
use control_api::counters::older_name;
use control_api::telemetry::TELEMETRY;
use std::collections::BTreeMap;

use ports::Counter;

use super::Answer::{Deferred, Immediate};
use super::{Command, DeferredAnswer, named};
use crate::control::lookups::LookupReport;
use crate::control::{Control, bridge_counters};
use config::parse_cores;

#[rustfmt::skip]
pub(super) const COMMANDS: [Command; 5] = [
    Command { name: "comporta/affinity", usage: "bridge port core[,core]..", least: 3, most: 3, answer: Immediate(affinity) },
    Command { name: "comporta/counters", usage: "[bridge]", least: 0, most: 1, answer: Immediate(counters) },
    Command { name: "comporta/tables", usage: "bridge", least: 1, most: 1, answer: Deferred(tables) },
    Command { name: TELEMETRY, usage: "[rules]", least: 0, most: 1, answer: Deferred(telemetry) },
    Command { name: "comporta/workers", usage: "", least: 0, most: 0, answer: Immediate(workers) },
];

/// Lists the lookup form and the measured lookup time of each table.
fn tables(control: &mut Control, arguments: &[String]) -> Result<DeferredAnswer, String> {
    let name = arguments.first().ok_or("name a bridge")?;
    let program = control.tools.publication.load_full();
    let clock = control.tools.clock;
    let named = control.site_named(name);
    let (bridge, site) = named.ok_or_else(|| format!("no such bridge: {name}"))?;
    let lookups = LookupReport {
        program,
        bridge,
        tables: site.bridge.describe_tables(),
        clock,
    };
    Ok(Box::new(move || lookups.report()))
}

/// Lists the ports of each worker.
fn workers(control: &mut Control, _: &[String]) -> Result<String, String> {
    Ok(control.describe_workers())
}

/// Assigns a port to other workers.
fn affinity(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let [bridge, port, cores] = arguments else {
        return Err("name a bridge, a port and cores, as in br0 eth1 2,3".to_owned());
    };
    let cores = parse_cores(cores).ok_or_else(|| format!("{cores}: not cores, each once"))?;
    let (id, _) = control
        .site_named(bridge)
        .ok_or_else(|| format!("no such bridge: {bridge}"))?;
    control.assign_to(id, port, &cores)?;
    Ok(String::new())
}

/// Lists every counter that is not zero, by object and name.
fn counters(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    if !arguments.is_empty() {
        named(control, arguments)?;
    }
    let mut lines = BTreeMap::new();
    for (name, count) in control.counters.read() {
        lines.insert(format!("control {name}"), count);
    }
    for (name, count) in control.trackers.counters() {
        lines.insert(format!("conntrack {name}"), count);
    }
    for worker in &control.tools.workers {
        for (name, count) in worker.counters.read() {
            *lines.entry(format!("worker {name}")).or_default() += count;
        }
    }
    for site in control.sites.values() {
        let bridge = site.bridge.name();
        if arguments.first().is_some_and(|wanted| wanted != bridge) {
            continue;
        }
        for (name, count) in bridge_counters(&site.bridge) {
            lines.insert(format!("{bridge} {name}"), count);
        }
        for (port, of) in &site.ports {
            for (name, count) in of.packet_in_counts() {
                *lines
                    .entry(format!("{bridge} port {port} {name}"))
                    .or_default() += count;
            }
        }
        for (port, entry) in site.bridge.ports() {
            let counts = entry.counts();
            for (counter, name) in Counter::ALL {
                lines.insert(format!("{bridge} port {port} {name}"), counts[counter]);
            }
        }
    }
    lines.retain(|_, count| *count != 0);
    let renamed: Vec<_> = lines
        .iter()
        .filter_map(|(name, count)| Some((under_older_name(name)?, *count)))
        .collect();
    lines.extend(renamed);
    Ok(lines
        .iter()
        .map(|(name, count)| format!("{name} {count}\n"))
        .collect())
}

/// Returns a counter's line prefix with its older name, if it was renamed.
fn under_older_name(line: &str) -> Option<String> {
    let (owner, name) = line.rsplit_once(' ')?;
    Some(format!("{owner} {}", older_name(name)?))
}
