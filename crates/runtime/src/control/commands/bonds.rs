//! Commands of bonds: `bond/*` of ovs-vswitchd(8). A bond is found by the name of its port,
//! whichever bridge it is of.

use std::collections::BTreeMap;
use std::fmt::Write;

use base::{Instant, PortNo};
use packet::MacAddr;

use super::Answer::Immediate;
use super::Command;
use crate::control::Control;
use config::BondMemberConfig;
use dataplane::program::BridgeId;
use l2::bond::{BondMember, BondMode, bucket, hash_source};
use l2::lacp::LacpStatus;
use switch::bridge::{Bridge, BridgeBond};

#[rustfmt::skip]
pub(super) const COMMANDS: [Command; 7] = [
    Command { name: "bond/disable-member", usage: "port member", least: 2, most: 2, answer: Immediate(disable) },
    Command { name: "bond/enable-member", usage: "port member", least: 2, most: 2, answer: Immediate(enable) },
    Command { name: "bond/hash", usage: "mac [vlan] [basis]", least: 1, most: 3, answer: Immediate(hash) },
    Command { name: "bond/list", usage: "", least: 0, most: 0, answer: Immediate(list) },
    Command { name: "bond/migrate", usage: "port hash member", least: 3, most: 3, answer: Immediate(migrate) },
    Command { name: "bond/set-active-member", usage: "port member", least: 2, most: 2, answer: Immediate(set_active) },
    Command { name: "bond/show", usage: "[port]", least: 0, most: 1, answer: Immediate(show) },
];

/// Names that commands had, and that are not listed any more.
pub(super) const FORMER: [(&str, &str); 3] = [
    ("bond/disable-slave", "bond/disable-member"),
    ("bond/enable-slave", "bond/enable-member"),
    ("bond/set-active-slave", "bond/set-active-member"),
];

const NO_BOND: &str = "no such bond";
const NO_MEMBER: &str = "no such member";

fn list(control: &mut Control, _: &[String]) -> Result<String, String> {
    let mut text = "bond\ttype\trecircID\tmembers\n".to_owned();
    for (number, (name, bonded, _)) in (1..).zip(bonds(control)) {
        let config = bonded.config();
        let members: Vec<_> = config.members.iter().map(|of| of.name.as_str()).collect();
        let (mode, members) = (config.mode.name(), members.join(", "));
        let id = recirculation_id(bonded, number).unwrap_or_default();
        writeln!(text, "{name}\t{mode}\t{id}\t{members}").expect("a string has room");
    }
    Ok(text)
}

fn show(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let now = control.now();
    for site in control.sites.values_mut() {
        site.bridge.take_loads();
    }
    let mut all = (1..).zip(bonds(control));
    let Some(wanted) = arguments.first() else {
        return Ok(all.map(|bond| describe(bond, now)).collect());
    };
    let found = all.find(|(_, (name, ..))| *name == wanted);
    Ok(describe(found.ok_or(NO_BOND)?, now))
}

/// Returns the id that names the flows behind a balance-tcp bond, which Open vSwitch recirculates;
/// none for other bonds. The workers of this switch select the member in the same pass.
fn recirculation_id(bonded: &BridgeBond, number: u32) -> Option<u32> {
    let (bond, config) = (bonded.bond(), bonded.config());
    let falls_back = config.lacp_fallback && bond.lacp() == LacpStatus::Configured;
    (config.mode == BondMode::BalanceTcp && !falls_back).then_some(number)
}

/// Returns the id of a balance-tcp bond whose outputs are shown as `lb_output`; none for other bonds.
fn lb_output_id(bonded: &BridgeBond, number: u32) -> Option<u32> {
    recirculation_id(bonded, number).filter(|_| bonded.config().lb_output)
}

/// Returns the bonds whose outputs are shown as `lb_output`, with their bridges and ids.
pub(super) fn lb_outputs(control: &Control) -> Vec<(BridgeId, u32, &BridgeBond)> {
    let site_of = |bridge: &Bridge| {
        let mut sites = control.sites.iter();
        let site = sites.find(|(_, site)| site.bridge.name() == bridge.name());
        site.map(|(id, _)| *id)
    };
    let numbered = (1..).zip(bonds(control));
    let chosen = numbered.filter_map(|(number, (_, bonded, bridge))| {
        Some((site_of(bridge)?, lb_output_id(bonded, number)?, bonded))
    });
    chosen.collect()
}

/// Returns the ids of the bonds whose outputs are shown as `lb_output`, by bridge and member.
pub(super) fn lb_output_ids(control: &Control) -> BTreeMap<BridgeId, BTreeMap<PortNo, u32>> {
    let mut ids: BTreeMap<BridgeId, BTreeMap<PortNo, u32>> = BTreeMap::new();
    for (bridge, id, bonded) in lb_outputs(control) {
        let members = bonded.config().members.iter();
        let members = members.map(|member| (member.port, id));
        ids.entry(bridge).or_default().extend(members);
    }
    ids
}

/// All bonds, by name, with their bridges.
fn bonds(control: &Control) -> Vec<(&str, &BridgeBond, &Bridge)> {
    let bridges = control.sites.values().map(|site| &site.bridge);
    let all = bridges.flat_map(|bridge| {
        let bonds = bridge.bonds();
        bonds.map(move |(name, bonded)| (name, bonded, bridge))
    });
    let mut all: Vec<_> = all.collect();
    all.sort_by_key(|(name, ..)| *name);
    all
}

/// Describes a bond and its members, as `bond/show` prints them, with its number among all bonds.
fn describe(
    (number, (name, bonded, bridge)): (u32, (&str, &BridgeBond, &Bridge)),
    now: Instant,
) -> String {
    let (bond, config) = (bonded.bond(), bonded.config());
    let recirculation = match recirculation_id(bonded, number) {
        Some(id) => format!("yes, Recirc-ID : {id}"),
        None => "no, Recirc-ID : -1".to_owned(),
    };
    let lb_output = match lb_output_id(bonded, number) {
        Some(id) => format!("enabled, bond-id: {id}"),
        None => "disabled, bond-id: -1".to_owned(),
    };
    let mut lines = vec![
        format!("---- {name} ----"),
        format!("bond_mode: {}", config.mode.name()),
        format!("bond may use recirculation: {recirculation}"),
        format!("bond-hash-basis: {}", config.hash_basis),
        format!("lb_output action: {lb_output}"),
    ];
    if config.mode == BondMode::BalanceSlb {
        lines.push(format!("all members active: {}", config.all_members_active));
    }
    let (updelay, downdelay) = (config.updelay.as_millis(), config.downdelay.as_millis());
    lines.push(format!("updelay: {updelay} ms"));
    lines.push(format!("downdelay: {downdelay} ms"));
    lines.extend(bond.next_rebalance().map(|due| {
        let left = (due - now).as_millis();
        format!("next rebalance: {left} ms")
    }));
    lines.push(format!("lacp_status: {}", bond.lacp().word()));
    lines.push(format!("lacp_fallback_ab: {}", config.lacp_fallback));
    lines.push(format!("active-backup primary: {}", primary(bonded)));
    lines.push(format!("active member mac: {}", active(bonded, bridge)));
    lines.push(String::new());
    let members: BTreeMap<_, _> = bond.members().collect();
    for (of, member) in by_name(bonded, &members) {
        lines.extend(describe_member(bonded, of, member, now));
        lines.push(String::new());
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn by_name<'a>(
    bonded: &'a BridgeBond,
    members: &'a BTreeMap<PortNo, &'a BondMember>,
) -> impl Iterator<Item = (&'a BondMemberConfig, &'a BondMember)> {
    let mut all: Vec<_> = bonded.config().members.iter().collect();
    all.sort_by_key(|of| &of.name);
    all.into_iter()
        .filter_map(|of| Some((of, *members.get(&of.port)?)))
}

fn primary(bonded: &BridgeBond) -> String {
    let config = bonded.config();
    let is_member = |name: &String| config.members.iter().any(|of| of.name == *name);
    match &config.primary {
        None => "<none>".to_owned(),
        Some(name) if is_member(name) => name.clone(),
        Some(name) => format!("{name} (no such member)"),
    }
}

fn active(bonded: &BridgeBond, bridge: &Bridge) -> String {
    let active = bonded.bond().active();
    let mut ports = bridge.ports();
    match ports.find(|(number, _)| Some(*number) == active) {
        Some((_, entry)) => format!("{}({})", entry.desc.hw_addr, entry.desc.name),
        None => format!("{}(none)", MacAddr::default()),
    }
}

fn describe_member(
    bonded: &BridgeBond,
    of: &BondMemberConfig,
    member: &BondMember,
    now: Instant,
) -> Vec<String> {
    let bond = bonded.bond();
    let state = if member.is_enabled() {
        "enabled"
    } else {
        "disabled"
    };
    let mut lines = vec![format!("member {}: {state}", of.name)];
    if bond.active() == Some(of.port) {
        lines.push("  active member".to_owned());
    }
    let delay = if member.is_enabled() {
        "downdelay"
    } else {
        "updelay"
    };
    lines.extend(member.delay_expires().map(|due| {
        let left = (due - now).as_millis();
        format!("  {delay} expires in {left} ms")
    }));
    lines.push(format!("  may_enable: {}", member.may_enable()));
    if bond.next_rebalance().is_some() {
        let loads = bond
            .loads_of(of.port)
            .map(|(place, load)| (place, load / 1024));
        let loads = loads.filter(|(_, load)| *load > 0);
        lines.extend(loads.map(|(place, load)| format!("  hash {place}: {load} kB load")));
    }
    lines
}

/// The bond and the member that the arguments name first and last.
fn find<'a>(control: &'a mut Control, name: &str) -> Result<&'a mut BridgeBond, String> {
    let mut sites = control.sites.values_mut();
    let bonded = sites.find_map(|site| site.bridge.bond_mut(name));
    bonded.ok_or_else(|| NO_BOND.to_owned())
}

fn member(bonded: &BridgeBond, name: &str) -> Result<PortNo, String> {
    let mut members = bonded.config().members.iter();
    let member = members.find(|of| of.name == name);
    member.map(|of| of.port).ok_or_else(|| NO_MEMBER.to_owned())
}

fn set_active(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let bonded = find(control, &arguments[0])?;
    let port = member(bonded, &arguments[1])?;
    let before = bonded.bond().active();
    match bonded.bond_mut().set_active_member(port) {
        false => Err("cannot make disabled member active".to_owned()),
        true if before == Some(port) => Ok("no change\n".to_owned()),
        true => Ok("done\n".to_owned()),
    }
}

fn enable(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    force(control, arguments, true)
}

fn disable(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    force(control, arguments, false)
}

fn force(control: &mut Control, arguments: &[String], enabled: bool) -> Result<String, String> {
    let now = control.now();
    let bonded = find(control, &arguments[0])?;
    let port = member(bonded, &arguments[1])?;
    bonded.bond_mut().set_enabled(port, enabled, now);
    let done = if enabled { "enabled\n" } else { "disabled\n" };
    Ok(done.to_owned())
}

fn migrate(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let bonded = find(control, &arguments[0])?;
    let (mode, status) = (bonded.config().mode, bonded.bond().lacp());
    let lacp_fallback = status == LacpStatus::Configured && bonded.config().lacp_fallback;
    if mode != BondMode::BalanceSlb || lacp_fallback {
        return Err("not an SLB bond".to_owned());
    }
    let hash: u32 = arguments[1].parse().map_err(|_| "bad hash")?;
    let port = member(bonded, &arguments[2])?;
    match bonded.bond_mut().migrate(bucket(hash), port) {
        true => Ok("migrated\n".to_owned()),
        false => Err("cannot migrate to disabled member".to_owned()),
    }
}

/// The bucket of a station's frames.
fn hash(_: &mut Control, arguments: &[String]) -> Result<String, String> {
    let number = |place: usize, wrong: &str| {
        let text = arguments.get(place).map_or("0", String::as_str);
        text.parse::<u32>().map_err(|_| wrong.to_owned())
    };
    let vid = number(1, "invalid vlan")?;
    let basis = number(2, "invalid basis")?;
    let address: MacAddr = arguments[0].parse().map_err(|_| "invalid mac")?;
    let vid = u16::try_from(vid % (1 << 16)).unwrap_or_default();
    let hash = hash_source(address, vid, basis);
    Ok(format!("{}\n", bucket(hash)))
}
