//! Commands of the datapaths: `dpif/*` of ovs-vswitchd(8). The datapaths of dummy bridges and of
//! others have the same workers, so both answers have the counters of all.
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
use super::flow_list::{self, ListForm};
use super::port_config::describe;
use super::{Command, DeferredAnswer, options};
use crate::control::Control;
use crate::control::bridge_runtime::BridgeRuntime;
use crate::control::datapath_ports::DatapathName;
use dataplane::counters::WorkerDrop;
use dataplane::program::BridgeId;
use switch::odp;

/// The OpenFlow 1.0 number of the local port, which the answers print.
const LOCAL: u32 = 0xfffe;

#[rustfmt::skip]
pub(super) const COMMANDS: [Command; 3] = [
    Command { name: "dpif/dump-dps", usage: "", least: 0, most: 0, answer: Immediate(data_paths) },
    Command { name: "dpif/dump-flows", usage: "[-m] [--names | --no-names] bridge", least: 1, most: MANY_OPTIONS, answer: Deferred(dump_flows) },
    Command { name: "dpif/show", usage: "", least: 0, most: 0, answer: Immediate(show) },
];

const ROOM: &str = "a string has room";

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
    if control.tools.dummies.is_enabled() {
        return LookupCounts {
            hit: control.flows.hits,
            missed: control.flows.misses,
            lost: 0,
        };
    }
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

/// Returns the number of flows of a datapath: active flows of dummies, and rules of others.
pub(super) fn flows(control: &Control, datapath: DatapathName) -> u64 {
    match datapath {
        DatapathName::Dummy => control.flows.len() as u64,
        DatapathName::Netdev => rules(control),
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

/// Returns the bridges, sorted by name.
pub(super) fn sites_of(control: &Control) -> Vec<(BridgeId, &BridgeRuntime)> {
    let sites = control.sites.iter();
    let mut sites: Vec<_> = sites.map(|(id, site)| (*id, site)).collect();
    sites.sort_by_key(|(_, site)| site.bridge.name());
    sites
}

/// Lists the datapaths, their bridges, and the open ports of each with the OpenFlow number and the
/// number in the datapath.
fn show(control: &mut Control, _: &[String]) -> Result<String, String> {
    let LookupCounts { hit, missed, .. } = lookups(control);
    let mut text = String::new();
    control.datapath_ports();
    for datapath in control.datapaths() {
        writeln!(text, "{}: hit:{hit} missed:{missed}", datapath.full()).expect(ROOM);
        let sites = sites_of(control).into_iter();
        for (id, site) in sites.filter(|(_, site)| site.datapath() == datapath) {
            writeln!(text, "  {}:", site.bridge.name()).expect(ROOM);
            let mut ports: Vec<_> = site.ports.iter().collect();
            ports.retain(|(_, port)| port.device.is_some());
            ports.sort_by_key(|(_, port)| &port.spec.name);
            for (number, port) in ports {
                let openflow = match *number {
                    PortNo::LOCAL => LOCAL,
                    PortNo(number) => number,
                };
                let of_path = control.devices.datapath_ports.number((id, *number));
                let of_path = of_path.map_or_else(|| "none".to_owned(), |of| of.to_string());
                let (name, kind) = (&port.spec.name, describe(port));
                writeln!(text, "    {name} {openflow}/{of_path}: ({kind})").expect(ROOM);
            }
        }
    }
    Ok(text)
}

/// Lists the datapath of each bridge.
fn data_paths(control: &mut Control, _: &[String]) -> Result<String, String> {
    let sites = sites_of(control).into_iter();
    let line = |site: &BridgeRuntime| {
        let datapath_type = site.datapath().datapath_type();
        format!("{datapath_type}@{}\n", site.bridge.name())
    };
    Ok(sites.map(|(_, site)| line(site)).collect())
}

fn dump_flows(control: &mut Control, arguments: &[String]) -> Result<DeferredAnswer, String> {
    let (options, rest) = options(arguments);
    let selected = rest.first().copied().unwrap_or_default();
    let (id, site) = control.site_named(selected).ok_or("no such bridge")?;
    if site.datapath() == DatapathName::Dummy {
        let form = ListForm::of_dpif(&options);
        let text = flow_list::list(control, id, form);
        return Ok(Box::new(move || text));
    }
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
