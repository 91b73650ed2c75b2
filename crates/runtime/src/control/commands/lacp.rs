//! Commands of LACP: `lacp/*` of ovs-vswitchd(8).

use std::fmt::Write;

use packet::wire::slow::{LacpInfo, LacpState};

use super::Answer::Immediate;
use super::Command;
use crate::control::Control;
use config::BondMemberConfig;
use l2::lacp::{LacpActivity, LacpGroup, LacpPort, LacpStatus};
use switch::bridge::BridgeBond;

#[rustfmt::skip]
pub(super) const COMMANDS: [Command; 2] = [
    Command { name: "lacp/show", usage: "[port]", least: 0, most: 1, answer: Immediate(show) },
    Command { name: "lacp/show-stats", usage: "[port]", least: 0, most: 1, answer: Immediate(statistics) },
];

fn show(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    format_ports(control, arguments, describe)
}

fn statistics(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    format_ports(control, arguments, format_counters)
}

/// Formats the port that the argument names, or all LACP ports.
fn format_ports(
    control: &Control,
    arguments: &[String],
    format: fn(&str, &BridgeBond, &LacpGroup) -> String,
) -> Result<String, String> {
    let bridges = control.sites.values().map(|site| &site.bridge);
    let mut groups: Vec<_> = bridges.flat_map(|bridge| bridge.lacp_ports()).collect();
    groups.sort_by_key(|(name, ..)| *name);
    if let Some(wanted) = arguments.first() {
        groups.retain(|(name, ..)| name == wanted);
        if groups.is_empty() {
            return Err("no such lacp object".to_owned());
        }
    }
    let groups = groups.into_iter();
    Ok(groups
        .map(|(name, bonded, group)| format(name, bonded, group))
        .collect())
}

/// Returns the active members, sorted by name.
fn members<'a>(
    bonded: &'a BridgeBond,
    group: &'a LacpGroup,
) -> impl Iterator<Item = (&'a BondMemberConfig, &'a LacpPort)> {
    let mut members: Vec<_> = bonded.config().members.iter().collect();
    members.sort_by_key(|of| &of.name);
    let port = |of: &'a BondMemberConfig| Some((of, group.port(of.port)?));
    members.into_iter().filter_map(port)
}

fn describe(name: &str, bonded: &BridgeBond, group: &LacpGroup) -> String {
    let settings = group.settings();
    let activity = match settings.activity {
        LacpActivity::Active => "active",
        LacpActivity::Passive => "passive",
    };
    let negotiated = match group.status() {
        LacpStatus::Negotiated => " negotiated",
        LacpStatus::Off | LacpStatus::Configured => "",
    };
    let time = if settings.is_fast { "fast" } else { "slow" };
    let key = group.ports().map(|(_, port)| port.actor(settings).key);
    let mut text = format!(
        "---- {name} ----\n  status: {activity}{negotiated}\n  sys_id: {}\n  sys_priority: {}\n  \
         aggregation key: {}\n  lacp_time: {time}\n",
        settings.system.address,
        settings.system.priority,
        key.min().unwrap_or_default(),
    );
    for (of, port) in members(bonded, group) {
        let attached = match port.is_attached() {
            true => "attached",
            false => "detached",
        };
        let actor = port.actor(settings);
        write!(
            text,
            "\nmember: {}: {} {attached}\n  port_id: {}\n  port_priority: {}\n  may_enable: {}\n\n{}\n{}",
            of.name,
            port.receive().word(),
            actor.port,
            actor.port_priority,
            group.may_enable(of.port),
            end("actor", &actor),
            end("partner", port.partner()),
        )
        .expect("a string has room");
    }
    text
}

/// Formats the actor's or the partner's information.
fn end(end_name: &str, info: &LacpInfo) -> String {
    let names = LacpState::NAMES.into_iter();
    let state = names.filter(|(bit, _)| info.state.has(*bit));
    let state: String = state.map(|(_, name)| format!(" {name}")).collect();
    format!(
        "  {end_name} sys_id: {}\n  {end_name} sys_priority: {}\n  {end_name} port_id: {}\n  {end_name} port_priority: {}\n  \
         {end_name} key: {}\n  {end_name} state:{state}\n",
        info.system.address, info.system.priority, info.port, info.port_priority, info.key,
    )
}

fn format_counters(name: &str, bonded: &BridgeBond, group: &LacpGroup) -> String {
    let mut text = format!("---- {name} statistics ----\n");
    for (of, port) in members(bonded, group) {
        let counts = port.counters();
        write!(
            text,
            "\nmember: {}:\n  TX PDUs: {}\n  RX PDUs: {}\n  RX Bad PDUs: {}\n  \
             RX Marker Request PDUs: {}\n  Link Expired: {}\n  Link Defaulted: {}\n  \
             Carrier Status Changed: {}\n",
            of.name,
            counts.sent,
            counts.received,
            counts.malformed,
            counts.markers,
            counts.expired,
            counts.defaulted,
            counts.carrier_changes,
        )
        .expect("a string has room");
    }
    text
}
