//! Commands of what limits the frames that leave by a port: `qos/*` of ovs-vswitchd(8).

use super::Answer::AtOnce;
use super::Command;
use crate::shell::control::Control;

#[rustfmt::skip]
pub(super) const COMMANDS: [Command; 2] = [
    Command { name: "qos/show", usage: "interface", least: 1, most: 1, answer: AtOnce(show) },
    Command { name: "qos/show-types", usage: "interface", least: 1, most: 1, answer: AtOnce(types) },
];

/// The one type that there is.
const TYPE: &str = "egress-policer";

fn show(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let name = &arguments[0];
    check(control, name)?;
    let mut sites = control.sites.values();
    let equipment = sites.find_map(|site| site.equipment.get(name));
    Ok(match equipment.and_then(|equipment| equipment.egress) {
        Some(limit) => {
            let (cir, cbs) = (limit.rate, limit.burst);
            format!("QoS: {name} {TYPE}\ncbs: {cbs}\ncir: {cir}\n")
        }
        None => format!("QoS not configured on {name}\n"),
    })
}

fn types(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    check(control, &arguments[0])?;
    Ok(format!("QoS type: {TYPE}\n"))
}

/// Whether there is a port of this name.
fn check(control: &Control, name: &str) -> Result<(), String> {
    let mut ports = control.sites.values().flat_map(|site| site.ports.values());
    let is_there = ports.any(|port| port.wanted.name == name);
    is_there
        .then_some(())
        .ok_or_else(|| "no such interface".to_owned())
}
