//! Answers to what operators and scripts ask ovs-vswitchd (ovs-vswitchd(8), runtime
//! management commands), in its words as far as they have a meaning here.

use std::fmt::Write;

use base::{PortNo, TableId};

use super::Control;
use super::questions::{Told, named};
use crate::config::PortKind;
use crate::config::STATIONS_MAX;
use crate::logging::Logging;

/// What the number `LOCAL` is in OpenFlow 1.0, by which it is told.
const LOCAL: u32 = 0xfffe;

/// The bridges.
pub(super) fn bridges(control: &mut Control, _: &[String]) -> Result<String, String> {
    let names = control.sites.values().map(|site| site.bridge.name());
    let mut names: Vec<_> = names.map(|name| format!("{name}\n")).collect();
    names.sort();
    Ok(names.concat())
}

/// All rules of a bridge, of all its tables.
pub(super) fn dump_flows(control: &mut Control, arguments: &[String]) -> Result<Told, String> {
    let now = control.now();
    let pipeline = named(control, arguments)?.bridge.rules();
    Ok(Box::new(move || {
        let mut text = String::new();
        for table in (0..=TableId::LAST.0).map(TableId) {
            for rule in pipeline.rules(table) {
                writeln!(text, "{}", rule.statistics(now)).expect("a string has room");
            }
        }
        text
    }))
}

/// The data path: one for all bridges, whatever type they ask for.
pub(super) fn data_path(control: &mut Control, _: &[String]) -> Result<String, String> {
    let mut text = "netdev@comporta:\n".to_owned();
    let mut sites: Vec<_> = control.sites.values().collect();
    sites.sort_by_key(|site| site.bridge.name());
    for site in sites {
        writeln!(text, "  {}:", site.bridge.name()).expect("a string has room");
        for (number, port) in &site.ports {
            let number = match *number {
                PortNo::LOCAL => LOCAL,
                PortNo(number) => number,
            };
            let kind = match port.wanted.kind {
                PortKind::Interface => "system",
                PortKind::Xdp(_) => "afxdp",
                PortKind::Dpdk(_) => "dpdk",
                PortKind::Tap => "tap",
                PortKind::Replay(_) => "replay",
            };
            let index = port
                .index
                .map_or_else(|| "-".to_owned(), |index| index.to_string());
            let name = &port.wanted.name;
            writeln!(text, "    {name} {number}/{index}: ({kind})").expect("a string has room");
        }
    }
    Ok(text)
}

/// How many of what there is.
pub(super) fn memory(control: &mut Control, _: &[String]) -> Result<String, String> {
    let (mut ports, mut rules) = (0, 0);
    for site in control.sites.values() {
        ports += site.ports.len();
        let pipeline = site.bridge.rules();
        let tables = (0..=TableId::LAST.0).map(TableId);
        rules += tables
            .map(|table| pipeline.rules(table).count())
            .sum::<usize>();
    }
    let (peers, workers) = (control.peers.len(), control.tools.workers.len());
    Ok(format!(
        "ofconns:{peers} ports:{ports} rules:{rules} workers:{workers}\n"
    ))
}

/// What the table of stations of a bridge holds.
pub(super) fn stations(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let site = named(control, arguments)?;
    let stations = site.bridge.stations();
    let (name, present) = (site.bridge.name(), stations.view().iter().count());
    Ok(format!(
        "Statistics for bridge \"{name}\":\n  Current/maximum MAC entries in the table: \
         {present}/{STATIONS_MAX}\n  Total number of evicted MAC entries       : {}\n",
        stations.evicted()
    ))
}

/// How much is said where.
pub(super) fn log_list(control: &mut Control, _: &[String]) -> Result<String, String> {
    Ok(logging(control)?.table())
}

/// Opens the log file again.
pub(super) fn log_reopen(control: &mut Control, _: &[String]) -> Result<String, String> {
    logging(control)?.reopen()?;
    Ok(String::new())
}

/// Says more or less from now on.
pub(super) fn log_set(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let logging = logging(control)?;
    arguments.iter().try_for_each(|spec| logging.set(spec))?;
    Ok(String::new())
}

fn logging(control: &Control) -> Result<&Logging, String> {
    let logging = control.tools.logging.as_deref();
    logging.ok_or_else(|| "how much this switch says was settled by --log".to_owned())
}
