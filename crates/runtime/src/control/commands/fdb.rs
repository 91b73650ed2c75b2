//! Commands of the forwarding and multicast databases: `fdb/*` and `mdb/*` of ovs-vswitchd(8).

use std::fmt::Write;
use std::time::Duration;

use base::PortNo;
use packet::MacAddr;
use serde_json::{Value, json};

use super::Answer::Immediate;
use super::{Command, named};
use crate::control::{BridgeRuntime, Control};
use config::VID_MAX;
use l2::fdb::{FdbFull, FdbKey};

#[rustfmt::skip]
pub(super) const COMMANDS: [Command; 8] = [
    Command { name: "fdb/add", usage: "bridge port vlan mac", least: 4, most: 4, answer: Immediate(fdb_add) },
    Command { name: "fdb/del", usage: "bridge vlan mac", least: 3, most: 3, answer: Immediate(fdb_del) },
    Command { name: "fdb/flush", usage: "[bridge]", least: 0, most: 1, answer: Immediate(fdb_flush) },
    Command { name: "fdb/show", usage: "bridge", least: 1, most: 1, answer: Immediate(fdb_show) },
    Command { name: "fdb/stats-clear", usage: "[bridge]", least: 0, most: 1, answer: Immediate(stats_clear) },
    Command { name: "fdb/stats-show", usage: "bridge", least: 1, most: 1, answer: Immediate(stats_show) },
    Command { name: "mdb/flush", usage: "[bridge]", least: 0, most: 1, answer: Immediate(mdb_flush) },
    Command { name: "mdb/show", usage: "bridge", least: 1, most: 1, answer: Immediate(mdb_show) },
];

/// The error for a bridge without multicast snooping.
const SNOOPING_DISABLED: &str = "multicast snooping is disabled";

fn fdb_add(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let now = control.now();
    let site = named(control, arguments)?;
    let [bridge, port, vlan, mac] = arguments else {
        return Ok(String::new());
    };
    let port = site.bridge.port_named(port);
    let port =
        port.ok_or_else(|| format!("{bridge} has no such port: use the name of an interface"))?;
    let address = address(vlan, mac)?;
    if address.mac.is_multicast() {
        let mac = address.mac;
        return Err(format!(
            "{mac} is a multicast address: use a unicast address"
        ));
    }
    match site.bridge.add_static_entry(address, port, now) {
        Ok(None) => Ok(String::new()),
        Ok(Some(before)) => {
            let (port, entry_type) = (before.port(), entry_type(before.is_static()));
            Ok(format!(
                "Overriding already existing {entry_type} entry on {port}\n"
            ))
        }
        Err(FdbFull) => Err("the table is full of static entries: delete some, or set \
             other_config:mac-table-size of the bridge"
            .to_owned()),
    }
}

/// Returns Open vSwitch's words for static and dynamic entries.
const fn entry_type(is_static: bool) -> &'static str {
    match is_static {
        true => "static",
        false => "dynamic",
    }
}

fn fdb_del(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let site = named(control, arguments)?;
    let [_, vlan, mac] = arguments else {
        return Ok(String::new());
    };
    match site.bridge.remove_static_entry(address(vlan, mac)?) {
        true => Ok(String::new()),
        false => Err("could not find static mac entry".to_owned()),
    }
}

/// Parses a VLAN and a MAC address.
fn address(vlan: &str, mac: &str) -> Result<FdbKey, String> {
    let vid = vlan.parse().ok().filter(|vid| *vid <= VID_MAX);
    let vid = vid.ok_or_else(|| format!("{vlan} is no VLAN: 0 to {VID_MAX}"))?;
    let mac: Option<MacAddr> = mac.parse().ok();
    let mac = mac.ok_or("bad MAC address")?;
    Ok(FdbKey { vid, mac })
}

fn fdb_show(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let now = control.now();
    let view = named(control, arguments)?.bridge.fdb().view();
    let mut text = " port  VLAN  MAC                Age\n".to_owned();
    for (address, station) in view.by_activity() {
        let age = match station.is_static() {
            true => entry_type(true).to_owned(),
            false => (now - station.last_seen()).as_secs().to_string(),
        };
        let (port, vid, mac) = (station.port().to_string(), address.vid, address.mac);
        writeln!(text, "{port:>5}  {vid:>4}  {mac}  {age:>3}").expect("a string has room");
    }
    Ok(text)
}

/// Does the same in JSON, with the OpenFlow 1.0 number of the local port.
pub(super) fn show_json(control: &mut Control, arguments: &[String]) -> Result<Value, String> {
    const LOCAL: u32 = 0xfffe;
    let now = control.now();
    let view = named(control, arguments)?.bridge.fdb().view();
    let entries = view.by_activity().into_iter().map(|(address, station)| {
        let age = match station.is_static() {
            true => json!(entry_type(true)),
            false => json!((now - station.last_seen()).as_secs()),
        };
        let port = match station.port() {
            PortNo::LOCAL => LOCAL,
            PortNo(number) => number,
        };
        let mac = address.mac.to_string();
        json!({"port": port, "vlan": address.vid, "mac": mac, "age": age})
    });
    Ok(entries.collect::<Vec<_>>().into())
}

/// Returns the named bridge, or all if none is named.
fn selected<'a>(
    control: &'a mut Control,
    arguments: &[String],
) -> Result<Vec<&'a mut BridgeRuntime>, String> {
    match arguments.is_empty() {
        true => Ok(control.sites.values_mut().collect()),
        false => Ok(vec![named(control, arguments)?]),
    }
}

fn fdb_flush(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let sites = selected(control, arguments)?;
    sites.into_iter().for_each(|site| site.bridge.flush_fdb());
    Ok("table successfully flushed\n".to_owned())
}

fn stats_clear(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let sites = selected(control, arguments)?;
    sites
        .into_iter()
        .for_each(|site| site.bridge.clear_fdb_counters());
    Ok("statistics successfully cleared\n".to_owned())
}

/// Formats the size and the counters of a bridge's forwarding database.
fn stats_show(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let site = named(control, arguments)?;
    let stations = site.bridge.fdb();
    let (name, counts) = (site.bridge.name(), stations.counts());
    let (present, limit) = (stations.len(), stations.limit());
    let rows = [
        (
            "Current static MAC entries in the table",
            stations.static_count() as u64,
        ),
        ("Total number of learned MAC entries", counts.learned),
        ("Total number of expired MAC entries", counts.expired),
        ("Total number of evicted MAC entries", counts.evicted),
        ("Total number of port moved MAC entries", counts.moved),
    ];
    let mut text = format!(
        "Statistics for bridge \"{name}\":\n  Current/maximum MAC entries in the table: \
         {present}/{limit}\n"
    );
    for (what, count) in rows {
        writeln!(text, "  {what:<40}: {count}").expect("a string has room");
    }
    Ok(text)
}

fn mdb_flush(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let sites = selected(control, arguments)?.into_iter();
    let listened: Vec<_> = sites.map(|site| site.bridge.flush_multicast()).collect();
    match arguments.is_empty() || listened.contains(&true) {
        true => Ok("table successfully flushed\n".to_owned()),
        false => Err(SNOOPING_DISABLED.to_owned()),
    }
}

fn mdb_show(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let now = control.now();
    let table = named(control, arguments)?.bridge.multicast();
    let table = table.ok_or(SNOOPING_DISABLED)?;
    let mut text = " port  VLAN  GROUP                Age\n".to_owned();
    let mut row = |port: PortNo, vid: u16, address_text: String, silent: Duration| {
        let (port, age) = (port.to_string(), silent.as_secs());
        writeln!(text, "{port:>5}  {vid:>4}  {address_text}         {age:>3}")
            .expect("a string has room");
    };
    for (group, port, silent) in table.members(now) {
        row(port, group.vid, group.address.to_string(), silent);
    }
    for (vid, port, silent) in table.routers(now) {
        // In the column that Open vSwitch uses.
        row(port, vid, "querier    ".to_owned(), silent);
    }
    Ok(text)
}
