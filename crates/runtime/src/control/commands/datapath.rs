//! Commands of the datapath: `dpif/*` of ovs-vswitchd(8). One datapath serves all bridges of every
//! `datapath_type`.
//!
//! Open vSwitch lists flows there that traffic has set up. This datapath contains the compiled
//! rules, and these commands list them, with OpenFlow actions, and with table and priority, which a
//! flow of Open vSwitch does not have.

use std::fmt::Write;
use std::sync::Arc;

use base::{Instant, PortNo, TableId};
use pipeline::{Pipeline, Rule};
use ports::Counter;

use super::Answer::{Deferred, Immediate};
use super::{Command, DeferredAnswer, named, options};
use crate::control::Control;
use crate::control::bridge_runtime::{BridgeRuntime, PortRuntime};
use config::PortKind;
use dataplane::counters::WorkerDrop;
use dataplane::program::BridgeId;
use switch::odp;

/// The OpenFlow 1.0 number of the local port, which the answers print.
const LOCAL: u32 = 0xfffe;

/// The datapath's name: that of Open vSwitch's userspace datapath, which scripts use.
pub(super) const NAME: &str = "netdev@ovs-netdev";

#[rustfmt::skip]
pub(super) const COMMANDS: [Command; 5] = [
    Command { name: "dpif/dump-dps", usage: "", least: 0, most: 0, answer: Immediate(data_paths) },
    Command { name: "dpif/dump-flows", usage: "[-m] [--names | --no-names] bridge", least: 1, most: MANY_OPTIONS, answer: Deferred(dump_flows) },
    Command { name: "dpif/set-dp-features", usage: "bridge", least: 1, most: 1, answer: Immediate(set_features) },
    Command { name: "dpif/show", usage: "", least: 0, most: 0, answer: Immediate(show) },
    Command { name: "dpif/show-dp-features", usage: "bridge", least: 1, most: 1, answer: Immediate(features) },
];

/// The limit of options, as in Open vSwitch.
const MANY_OPTIONS: usize = super::MANY;

/// Lookup counters in the terms of a datapath.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LookupCounts {
    /// Frames that the fast path handled.
    pub(super) hit: u64,
    /// Frames that continued in the interpreter.
    pub(super) missed: u64,
    /// Packet-ins dropped because the control thread's queue was full.
    pub(super) lost: u64,
}

/// Returns the counters since the start.
pub(super) fn lookups(control: &Control) -> LookupCounts {
    let workers = &control.tools.workers;
    let missed = workers
        .iter()
        .map(|worker| worker.counters.slow_path_packets())
        .sum();
    let lost = workers.iter();
    let lost = lost
        .map(|worker| worker.counters.dropped(WorkerDrop::PacketInQueueFull))
        .sum();
    let entries = control.sites.values().flat_map(|site| site.bridge.ports());
    let received: u64 = entries
        .map(|(_, entry)| entry.counts()[Counter::RxPackets])
        .sum();
    LookupCounts {
        hit: received.saturating_sub(missed),
        missed,
        lost,
    }
}

/// Returns the number of rules of all bridges.
pub(super) fn rules(control: &Control) -> u64 {
    let sites = control.sites.values();
    let active = |site: &BridgeRuntime| -> u64 {
        let rules = site.bridge.rules();
        rules
            .table_stats()
            .map(|table| u64::from(table.active))
            .sum()
    };
    sites.map(active).sum()
}

/// Returns the type of a port.
pub(super) fn kind(port: &PortRuntime) -> String {
    match &port.spec.kind {
        PortKind::Interface => "system".to_owned(),
        PortKind::Xdp(_) => "afxdp".to_owned(),
        PortKind::Dpdk(_) => "dpdk".to_owned(),
        PortKind::Tap => "tap".to_owned(),
        PortKind::Replay(_) => "replay".to_owned(),
        PortKind::Dummy(_) if port.spec.number == PortNo::LOCAL => "dummy-internal".to_owned(),
        PortKind::Dummy(_) => "dummy".to_owned(),
        PortKind::Patch(peer) => format!("patch: peer={peer}"),
        PortKind::Tunnel(tunnel) => format!("{}: {}", tunnel.type_name(), tunnel.identity()),
    }
}

/// Returns the bridges, sorted by name.
pub(super) fn sites_of(control: &Control) -> Vec<(BridgeId, &BridgeRuntime)> {
    let sites = control.sites.iter();
    let mut sites: Vec<_> = sites.map(|(id, site)| (*id, site)).collect();
    sites.sort_by_key(|(_, site)| site.bridge.name());
    sites
}

fn show(control: &mut Control, _: &[String]) -> Result<String, String> {
    if control.sites.is_empty() {
        return Ok(String::new());
    }
    let LookupCounts { hit, missed, .. } = lookups(control);
    let mut text = format!("{NAME}: hit:{hit} missed:{missed}\n");
    control.datapath_ports();
    for (id, site) in sites_of(control) {
        writeln!(text, "  {}:", site.bridge.name()).expect("a string has room");
        let mut ports: Vec<_> = site.ports.iter().collect();
        ports.sort_by_key(|(_, port)| &port.spec.name);
        for (number, port) in ports {
            let own = match *number {
                PortNo::LOCAL => LOCAL,
                PortNo(number) => number,
            };
            let of_path = control.devices.datapath_ports.number((id, *number));
            let is_inner = matches!(port.spec.kind, PortKind::Patch(_) | PortKind::Tunnel(_));
            let open = of_path.filter(|_| port.device.is_some() && !is_inner);
            let of_path = open.map_or_else(|| "none".to_owned(), |number| number.to_string());
            let (name, kind) = (&port.spec.name, kind(port));
            writeln!(text, "    {name} {own}/{of_path}: ({kind})").expect("a string has room");
        }
    }
    Ok(text)
}

/// Lists the datapath of each bridge.
fn data_paths(control: &mut Control, _: &[String]) -> Result<String, String> {
    let sites = sites_of(control).into_iter();
    Ok(sites
        .map(|(_, site)| format!("netdev@{}\n", site.bridge.name()))
        .collect())
}

/// The supported features, in the terms of `dpif/show-dp-features`.
#[rustfmt::skip]
const FEATURES: [(&str, &str); 22] = [
    ("Masked set action",            "Yes"),
    ("Tunnel push pop",              "No"),
    ("Ufid",                         "No"),
    ("Truncate action",              "Yes"),
    ("Clone action",                 "Yes"),
    ("Sample nesting",               "0"),
    ("Conntrack eventmask",          "No"),
    ("Conntrack clear",              "No"),
    ("Max dp_hash algorithm",        "0"),
    ("Check pkt length action",      "Yes"),
    ("Conntrack timeout policy",     "No"),
    ("Explicit Drop action",         "No"),
    ("Optimized Balance TCP mode",   "No"),
    ("Conntrack all-zero IP SNAT",   "No"),
    ("MPLS Label add",               "No"),
    ("Max VLAN headers",             "2"),
    ("Max MPLS depth",               "3"),
    ("Recirc",                       "No"),
    ("CT state",                     "No"),
    ("CT zone",                      "No"),
    ("CT mark",                      "No"),
    ("IPv6 ND Extension",            "Yes"),
];

fn features(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    named(control, arguments)?;
    let lines = FEATURES.iter();
    Ok(lines
        .map(|(what, how)| format!("{what}: {how}\n"))
        .collect())
}

fn set_features(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    named(control, arguments)?;
    Err("the features of the datapath cannot be changed".to_owned())
}

fn dump_flows(control: &mut Control, arguments: &[String]) -> Result<DeferredAnswer, String> {
    let (options, rest) = options(arguments);
    let selected = rest.first().copied().unwrap_or_default();
    let (id, _) = control.site_named(selected).ok_or("no such bridge")?;
    let flows = DatapathFlows::of(control, Some(id), options.contains(&"--names"));
    Ok(Box::new(move || flows.to_text()))
}

/// Rules to print as datapath flows.
pub(super) struct DatapathFlows {
    bridges: Vec<Rules>,
    names: bool,
    now: Instant,
}

struct Rules {
    pipeline: Pipeline,
    /// The names of ports.
    ports: Vec<(PortNo, String, String)>,
}

impl DatapathFlows {
    /// Returns the rules of one bridge, or of all.
    pub(super) fn of(control: &mut Control, selected: Option<BridgeId>, names: bool) -> Self {
        control.datapath_ports();
        let sites = sites_of(control).into_iter();
        let sites = sites.filter(|(id, _)| selected.is_none_or(|selected| *id == selected));
        let rules = sites.map(|(id, site)| {
            let ports = site.ports.iter().map(|(number, port)| {
                let of_path = control.devices.datapath_ports.number((id, *number));
                let of_path = of_path.map_or_else(|| "none".to_owned(), |of| of.to_string());
                (*number, of_path, port.spec.name.clone())
            });
            Rules {
                pipeline: site.bridge.rules(),
                ports: ports.collect(),
            }
        });
        Self {
            bridges: rules.collect(),
            names,
            now: control.now(),
        }
    }

    /// Formats one line per rule.
    pub(super) fn to_text(&self) -> String {
        let mut text = String::new();
        for bridge in &self.bridges {
            for table in (0..=TableId::LAST.0).map(TableId) {
                for rule in bridge.pipeline.rules(table) {
                    self.write_rule(&mut text, bridge, rule);
                }
            }
        }
        text
    }

    fn write_rule(&self, text: &mut String, bridge: &Rules, rule: &Arc<Rule>) {
        let statistics = rule.statistics(self.now);
        let port = |number: PortNo| {
            let found = bridge.ports.iter().find(|(port, ..)| *port == number);
            match found {
                Some((_, _, name)) if self.names => name.clone(),
                Some((_, of_path, _)) => of_path.clone(),
                None => format!("none:{number}"),
            }
        };
        let matching = odp::write(&statistics.matching, port);
        let comma = if matching.is_empty() { "" } else { "," };
        let used = match statistics.packets {
            0 => "never".to_owned(),
            _ => format!("{:.3}s", statistics.idle_age.as_secs_f64()),
        };
        writeln!(
            text,
            "table({}),priority({}){comma}{matching}, packets:{}, bytes:{}, used:{used}, actions:{}",
            statistics.table.0, statistics.priority, statistics.packets, statistics.bytes, statistics.instructions
        )
        .expect("a string has room");
    }
}
