//! Commands of the datapaths: `dpif/*` of ovs-vswitchd(8). The datapaths of dummy bridges and of
//! others have the same workers, so both answers have the counters of all.
//!
//! Open vSwitch lists flows there that traffic has set up. This datapath contains the compiled
//! rules; the flows are those that packets would have set up.

use std::fmt::Write;

use base::PortNo;
use ports::Counter;

use super::Answer::{Immediate, Pending};
use super::flow_list::{self, ListForm, ListedFlows};
use super::port_config::describe;
use super::{Command, options};
use crate::control::Control;
use crate::control::bridge_runtime::BridgeRuntime;
use crate::control::datapath_ports::DatapathName;
use crate::inbox::CommandRequest;
use dataplane::counters::WorkerDrop;
use dataplane::program::BridgeId;

/// The OpenFlow 1.0 number of the local port, which the answers print.
const LOCAL: u32 = 0xfffe;

#[rustfmt::skip]
pub(super) const COMMANDS: [Command; 3] = [
    Command { name: "dpif/dump-dps", usage: "", least: 0, most: 0, answer: Immediate(data_paths) },
    Command { name: "dpif/dump-flows", usage: "[-m] [--names | --no-names] bridge", least: 1, most: MANY_OPTIONS, answer: Pending(answer_dump) },
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

fn answer_dump(control: &mut Control, request: CommandRequest) {
    flow_list::answer(control, request, dump_flows);
}

fn dump_flows(control: &mut Control, arguments: &[String]) -> Result<ListedFlows, String> {
    let (options, rest) = options(arguments);
    let selected = rest.first().copied().unwrap_or_default();
    let (id, site) = control.site_named(selected).ok_or("no such bridge")?;
    if site.datapath() == DatapathName::Netdev
        && let Some(wait) = control.watch_flows()
    {
        return Ok(ListedFlows::After(wait));
    }
    let form = ListForm::of_dpif(&options);
    Ok(ListedFlows::Text(flow_list::list(control, id, form)))
}
