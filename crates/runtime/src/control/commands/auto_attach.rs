//! Commands of LLDP and auto-attach: `autoattach/*` of ovs-vswitchd(8). As in Open vSwitch, the
//! answers have the interfaces of all bridges.

use std::fmt::Write;

use super::Answer::Immediate;
use super::Command;
use crate::control::Control;
use l2::lldp::LldpAgent;

#[rustfmt::skip]
pub(super) const COMMANDS: [Command; 3] = [
    Command { name: "autoattach/show-isid", usage: "[bridge]", least: 0, most: 1, answer: Immediate(show_mappings) },
    Command { name: "autoattach/statistics", usage: "[bridge]", least: 0, most: 1, answer: Immediate(statistics) },
    Command { name: "autoattach/status", usage: "[bridge]", least: 0, most: 1, answer: Immediate(status) },
];

const ROOM: &str = "a string has room";

/// Returns all agents with the names of their interfaces, sorted by name.
fn agents(control: &Control) -> Vec<(&str, &LldpAgent)> {
    let sites = control.sites.values();
    let monitors = sites.flat_map(|site| site.bridge.port_monitors());
    let agents = monitors.filter_map(|monitor| Some((monitor.name(), monitor.lldp()?)));
    let mut agents: Vec<_> = agents.collect();
    agents.sort_by_key(|(name, _)| *name);
    agents
}

/// Shows the auto-attach servers among the neighbours.
fn status(control: &mut Control, _: &[String]) -> Result<String, String> {
    let mut text = String::new();
    for (name, agent) in agents(control) {
        writeln!(text, "LLDP: {name}").expect(ROOM);
        for unit in agent.neighbors() {
            let Some(element) = unit.element.filter(|of| of.system_id != [0; 10]) else {
                continue;
            };
            let description = unit.system_description.as_deref();
            let description = description.map(String::from_utf8_lossy);
            write!(
                text,
                "  Auto Attach Primary Server Id: {}\n  Auto Attach Primary Server Descr: {}\n  \
                 Auto Attach Primary Server System Id: {}\n",
                hexadecimal(&unit.chassis.bytes),
                description.as_deref().unwrap_or("<None>"),
                hexadecimal(&element.system_id),
            )
            .expect(ROOM);
        }
    }
    Ok(text)
}

/// Shows the mappings of services to VLANs.
fn show_mappings(control: &mut Control, _: &[String]) -> Result<String, String> {
    let mut text = String::new();
    for (name, agent) in agents(control) {
        writeln!(text, "LLDP: {name}").expect(ROOM);
        text.push_str("I-SID    VLAN Source      Status  \n");
        text.push_str("-------- ---- ----------- --------\n");
        for mapping in agent.mappings() {
            let (isid, vlan) = (mapping.isid, mapping.vlan);
            let status = status_name(mapping.status);
            writeln!(text, "{isid:<8} {vlan:<4} {:<11} {status:<11}", "Switch").expect(ROOM);
        }
    }
    Ok(text)
}

fn statistics(control: &mut Control, _: &[String]) -> Result<String, String> {
    let mut text = String::new();
    for (name, agent) in agents(control) {
        let counters = agent.counters();
        writeln!(text, "Statistics: {name}").expect(ROOM);
        let lines = [
            ("tx", counters.sent),
            ("rx", counters.received),
            ("rx discarded", counters.discarded),
            ("rx unrecognized", counters.unrecognized),
            ("ageout", counters.expired),
            ("insert", counters.inserted),
            ("delete", counters.deleted),
            ("drop", counters.dropped),
        ];
        for (name, count) in lines {
            writeln!(text, "  {name} cnt: {count}").expect(ROOM);
        }
    }
    Ok(text)
}

/// Returns the name of the status of a mapping.
const fn status_name(status: u8) -> &'static str {
    match status {
        2 => "Active",
        3 => "Reject (Generic)",
        4 => "Reject (AA resources unavailable)",
        6 => "Reject (Invalid)",
        8 => "Reject (VLAN resources unavailable)",
        9 => "Reject (Application interaction issue)",
        255 => "Pending",
        _ => "Undefined",
    }
}

/// Returns bytes in hexadecimal, with colons.
fn hexadecimal(bytes: &[u8]) -> String {
    let bytes: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    bytes.join(":")
}
