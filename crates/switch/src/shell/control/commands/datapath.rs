//! Commands of the data path: `dpif/*` of ovs-vswitchd(8).

use std::fmt::Write;

use base::PortNo;

use super::Answer::AtOnce;
use super::Command;
use crate::config::PortKind;
use crate::shell::control::Control;

/// What the number `LOCAL` is in OpenFlow 1.0, by which it is told.
const LOCAL: u32 = 0xfffe;

#[rustfmt::skip]
pub(super) const COMMANDS: [Command; 1] = [
    Command { name: "dpif/show", usage: "", least: 0, most: 0, answer: AtOnce(data_path) },
];

/// The data path: one for all bridges, whatever type they ask for.
fn data_path(control: &mut Control, _: &[String]) -> Result<String, String> {
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
            let kind = match &port.wanted.kind {
                PortKind::Interface => "system",
                PortKind::Xdp(_) => "afxdp",
                PortKind::Dpdk(_) => "dpdk",
                PortKind::Tap => "tap",
                PortKind::Replay(_) => "replay",
                PortKind::Patch(_) => "patch",
                PortKind::Tunnel(tunnel) => tunnel.type_name(),
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
