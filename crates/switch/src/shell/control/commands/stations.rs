//! Commands of what bridges have learned: `fdb/*` of ovs-vswitchd(8).

use std::fmt::Write;

use super::Answer::AtOnce;
use super::{Command, named};
use crate::config::STATIONS_MAX;
use crate::shell::control::Control;

#[rustfmt::skip]
pub(super) const COMMANDS: [Command; 3] = [
    Command { name: "fdb/flush", usage: "bridge", least: 1, most: 1, answer: AtOnce(fdb_flush) },
    Command { name: "fdb/show", usage: "bridge", least: 1, most: 1, answer: AtOnce(fdb_show) },
    Command { name: "fdb/stats-show", usage: "bridge", least: 1, most: 1, answer: AtOnce(stations) },
];

fn fdb_show(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let now = control.now();
    let view = named(control, arguments)?.bridge.stations().view();
    let mut text = " port  VLAN  MAC                Age\n".to_owned();
    for (address, station) in view.iter() {
        let age = (now - station.last_seen()).as_secs();
        let (port, vid, mac) = (station.port().to_string(), address.vid, address.mac);
        writeln!(text, "{port:>5}  {vid:>4}  {mac}  {age:>3}").expect("a string has room");
    }
    Ok(text)
}

fn fdb_flush(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    named(control, arguments)?.bridge.flush_stations();
    Ok("table successfully flushed\n".to_owned())
}

/// What the table of stations of a bridge holds.
fn stations(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let site = named(control, arguments)?;
    let stations = site.bridge.stations();
    let (name, present) = (site.bridge.name(), stations.view().iter().count());
    Ok(format!(
        "Statistics for bridge \"{name}\":\n  Current/maximum MAC entries in the table: \
         {present}/{STATIONS_MAX}\n  Total number of evicted MAC entries       : {}\n",
        stations.evicted()
    ))
}
