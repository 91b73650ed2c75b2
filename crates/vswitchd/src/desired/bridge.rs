//! A row of the table `Bridge`.

use std::collections::BTreeSet;

use ovsdb::{Database, Uuid};
use packet::MacAddr;
use ports::dummy::DummyType;

use super::dummy::read_dummy;
use super::exporters::read_exporters;
use super::interface::{PlannedPort, fake_interface, is_reserved, read_interface, unsupported};
use super::known_keys::{self, is_meant};
use super::mirrors::read_mirrors;
use super::monitoring::{read_auto_attach, read_monitoring};
use super::numbers::{NumberCandidates, number};
use super::settings::{read_qos, read_settings};
use super::tables::read_tables;
use super::{
    BridgeOutcome, Claims, DesiredState, InterfaceOutcome, ONLY_LOGGED, bond, by_name, spanning,
    switching,
};
use crate::desired::controller::read_controllers;
use crate::rows::Record;
use base::{PortNo, QueueId};
use config::{
    BridgeAddress, BridgeConfig, Config, FailMode, InterfaceConfig, LogicalPort, PortSpec,
    SnoopingConfig, TunnelType, check_name, parse_datapath_id, parse_protocols,
};

/// Reads a bridge with its ports and settings into `desired`.
pub(super) fn read_bridge<'a>(
    database: &'a Database,
    row: Record<'a>,
    current: &Config,
    claims: &mut Claims<'a>,
    desired: &mut DesiredState,
) {
    let name = row.text("name").unwrap_or_default();
    let mut outcome = BridgeOutcome {
        name: name.to_owned(),
        ..BridgeOutcome::default()
    };
    let twice = desired
        .config
        .bridges
        .iter()
        .any(|bridge| bridge.name == name);
    // Sockets have the name; it must not lead into other directories.
    let is_path = name.contains(['/', '\\']);
    if is_path {
        let warning = format!("ignoring bridge with invalid name \"{name}\"");
        desired.warnings.insert(warning);
    }
    let refused = match check_name("name", name) {
        Err(error) => Some(error.problem),
        Ok(()) => twice.then(|| format!("there is another bridge {name}")),
    };
    let before = current.bridges.iter().find(|bridge| bridge.name == name);
    let mut config = read_columns(row, &mut outcome);
    let kind = row.text("datapath_type").unwrap_or_default();
    config.is_dummy = current.dummies.includes_bridge(kind);
    match &refused {
        None => {
            read_tables(database, row, &mut config, &mut outcome);
            let bridges = &desired.config.bridges;
            let agents = bridges
                .iter()
                .filter(|other| other.exporters.sflow.is_some());
            let sub_agent = u32::try_from(agents.count()).unwrap_or(u32::MAX);
            read_exporters(database, row, sub_agent, &mut config, &mut outcome);
            read_ports(database, row, &mut config, before, claims, desired);
            read_auto_attach(database, row, &mut config);
            read_mirrors(database, row, &mut config, &mut outcome, desired);
            spanning::read_spanning(database, row, &mut config, &mut outcome, desired);
            read_controllers(database, row, &mut config, desired);
            desired.config.bridges.push(config);
        }
        Some(problem) => {
            let why = match is_path {
                true => ONLY_LOGGED.to_owned(),
                false => format!("bridge {name}: {problem}"),
            };
            for port in row.named_by(database, "ports", "Port") {
                refuse(database, port, &why, desired);
            }
        }
    }
    outcome.refused = refused;
    desired.bridges.insert(row.uuid, outcome);
}

/// Logs the refusal of an interface, in the words of `ovs-vswitchd`.
fn warn_of_refusal(interface: Record<'_>, why: &str, desired: &mut DesiredState) {
    let name = interface.text("name").unwrap_or_default();
    let kind = interface.text("type").unwrap_or_default();
    if is_reserved(name) {
        let warning = format!("could not create interface {name}, name is reserved");
        desired.warnings.insert(warning);
    } else if kind == "patch" || TunnelType::named(kind).is_some() {
        desired.warnings.insert(why.to_owned());
        let warning = format!("{name}: could not set configuration (Invalid argument)");
        desired.warnings.insert(warning);
    } else {
        let warning = format!("could not open network device {name} ({why})");
        desired.warnings.insert(warning);
    }
}

/// Returns the default address of a bridge: that of Open vSwitch on a little-endian machine. It
/// survives restarts, and differs between bridges of the same name on one machine, or on copies of
/// a machine.
fn default_address(row: Uuid) -> MacAddr {
    const LOCAL: u8 = 0x02;
    const MULTICAST: u8 = 0x01;
    // The UUID is an array of 32-bit words there.
    let [a, b, c, d, _, _, g, h, ..] = row.0.to_be_bytes();
    MacAddr([d & !MULTICAST | LOCAL, c, b, a, h, g])
}

/// Reads the bridge's own columns.
fn read_columns(row: Record<'_>, outcome: &mut BridgeOutcome) -> BridgeConfig {
    let mut config = BridgeConfig::new(row.text("name").unwrap_or_default());
    config.address = BridgeAddress::Given(default_address(row.uuid));
    let mut note = |column: &str, why: String| {
        outcome.notes.insert(column.to_owned(), why);
    };
    if row.text("fail_mode") == Some("secure") {
        config.fail_mode = FailMode::Secure;
    }
    let protocols: Vec<_> = row.texts("protocols").collect();
    if !protocols.is_empty() {
        match parse_protocols(&protocols.join(",")) {
            Ok(versions) => config.protocols = versions,
            Err(error) => note("protocols", error.problem),
        }
    }
    match switching::read_flood_vlans(row) {
        Ok(vlans) => config.switching.flood_vlans = vlans,
        Err(why) => note("flood_vlans", why),
    }
    if row.is_true("mcast_snooping_enable") {
        config.switching.snooping = Some(SnoopingConfig::default());
    }
    for (key, value) in row.map("other_config") {
        let heeded = match key {
            "datapath-id" => parse_datapath_id(value)
                .map(|id| config.datapath_id = Some(id))
                .map_err(|error| error.problem),
            "hwaddr" => {
                read_address(value).map(|address| config.address = BridgeAddress::Given(address))
            }
            key if spanning::BRIDGE_KEYS.contains(&key) => Ok(()),
            "rstp-ageing-time" => Err("ignored: mac-aging-time is the age limit".to_owned()),
            "disable-in-band" => Ok(()),
            // As in Open vSwitch, a negative number means none.
            "in-band-queue" => value
                .parse::<i64>()
                .map(|queue| config.in_band.queue = u32::try_from(queue).ok().map(QueueId))
                .map_err(|_| format!("'{value}' is no number")),
            _ => switching::read_key(&mut config.switching, key, value).unwrap_or_else(|| {
                match is_meant(key, &known_keys::BRIDGE) {
                    true => Err(unsupported(key)),
                    false => Ok(()),
                }
            }),
        };
        if let Err(why) = heeded {
            note(&format!("other_config:{key}"), why);
        }
    }
    config
}

/// Parses a unicast MAC address.
pub(super) fn read_address(text: &str) -> Result<MacAddr, String> {
    let address: Option<MacAddr> = text.parse().ok();
    let usable = |address: &MacAddr| !address.is_multicast() && *address != MacAddr::default();
    let wrong = || format!("'{text}' is no unicast MAC address, as in 02:00:00:00:00:01");
    address.filter(usable).ok_or_else(wrong)
}

/// Reads the ports of a bridge and assigns their numbers.
fn read_ports<'a>(
    database: &'a Database,
    row: Record<'a>,
    config: &mut BridgeConfig,
    before: Option<&BridgeConfig>,
    claims: &mut Claims<'a>,
    desired: &mut DesiredState,
) {
    let mut planned: Vec<(PlannedPort, NumberCandidates)> = Vec::new();
    let (dummies, is_dummy) = (desired.config.dummies, config.is_dummy);
    for port in by_name(row.named_by(database, "ports", "Port").collect()) {
        let own_name = port.text("name").unwrap_or_default();
        let names = (config.name.clone(), own_name.to_owned());
        desired.ports.insert(port.uuid, names);
        let interfaces = port.named_by(database, "interfaces", "Interface");
        let interfaces = by_name(interfaces.collect());
        let is_own = |interface: &Record<'_>| interface.text("name") == Some(&config.name);
        match &interfaces[..] {
            [own] if is_own(own) => {
                read_local(port, *own, config, desired);
                continue;
            }
            several if several.iter().any(is_own) => {
                let why = "the bridge's own interface is no member of a bond";
                refuse(database, port, why, desired);
                continue;
            }
            _ => {}
        }
        let is_dummy = |kind: &str| dummies.includes_interface(kind, is_dummy);
        let fake_interface = fake_interface(port, is_dummy);
        let fake_interface = fake_interface.filter(|_| claims.claim(port.uuid, own_name).is_ok());
        for interface in interfaces {
            let name = interface.text("name").unwrap_or_default();
            let read = claims
                .claim(interface.uuid, name)
                .and_then(|()| read_interface(port, interface, is_dummy));
            match read {
                Ok(mut read) => {
                    let egress = read_qos(database, port, &mut read.notes);
                    read.apply_qos(egress);
                    let current_number =
                        before.and_then(|before| current_number(before, &read.spec));
                    planned.push((read, NumberCandidates::of(interface, current_number)));
                }
                Err(why) => {
                    warn_of_refusal(interface, &why, desired);
                    let outcome = InterfaceOutcome::Refused(why);
                    desired.interfaces.entry(interface.uuid).or_insert(outcome);
                }
            }
        }
        planned.extend(fake_interface.map(|fake| {
            let current = before.and_then(|before| current_number(before, &fake.spec));
            let candidates = NumberCandidates {
                current,
                ..NumberCandidates::default()
            };
            (fake, candidates)
        }));
    }
    number_all(planned, config, before, desired);
    let before = before.map_or(&[][..], |before| &before.switching.ports);
    bond::keep_active_members(&mut config.switching.ports, before);
}

/// Adds a port with a number for each interface.
fn number_all(
    planned: Vec<(PlannedPort, NumberCandidates)>,
    config: &mut BridgeConfig,
    before: Option<&BridgeConfig>,
    desired: &mut DesiredState,
) {
    if let Some(before) = before {
        config.numbering = before.numbering.clone();
    }
    let candidates: Vec<_> = planned.iter().map(|(_, candidate)| *candidate).collect();
    let numbers = number(&candidates, &mut config.numbering);
    for ((mut read, candidate), number) in planned.into_iter().zip(numbers) {
        let outcome = match number {
            None => InterfaceOutcome::Refused("the bridge has no number left for it".to_owned()),
            Some(number) => {
                if let Some(requested) =
                    candidate.requested.filter(|requested| *requested != number)
                {
                    read.notes
                        .push(format!("ofport_request: {requested} is another port's"));
                }
                read.spec.number = Some(number);
                set_interface(config, &read.spec.name, read.settings);
                add_logical_port(config, read.logical, number);
                config.ports.push(read.spec);
                InterfaceOutcome::Port {
                    bridge: config.name.clone(),
                    number,
                    notes: read.notes,
                }
            }
        };
        let uuid = read.uuid.into_iter();
        desired
            .interfaces
            .extend(uuid.map(|uuid| (uuid, outcome.clone())));
    }
    if let Some(before) = before {
        let (earlier, now) = (port_numbers(before), port_numbers(config));
        config.numbering.replace(earlier.into_iter(), &now);
    }
}

/// Returns the numbers of a bridge's ports.
fn port_numbers(bridge: &BridgeConfig) -> BTreeSet<PortNo> {
    bridge.ports.iter().filter_map(|port| port.number).collect()
}

/// Reads the bridge's own interface.
fn read_local(
    port: Record<'_>,
    interface: Record<'_>,
    config: &mut BridgeConfig,
    desired: &mut DesiredState,
) {
    let mut notes = super::interface::local_notes(port, interface);
    match switching::read_port(port) {
        Ok((mut logical, unapplied)) => {
            notes.extend(unapplied);
            if logical.bond.take().is_some() {
                notes.push("lacp: ignored: of the bridge's own interface".to_owned());
            }
            add_logical_port(config, logical, PortNo::LOCAL);
        }
        Err(why) => notes.push(why),
    }
    let (mut settings, unapplied) = read_settings(interface, Some(PortNo::LOCAL));
    notes.extend(unapplied);
    if config.is_dummy {
        let mut options = interface.map("options");
        let dummy = DummyType::Internal;
        read_dummy(dummy, interface, &mut options, &mut settings, &mut notes);
    }
    settings.monitoring = read_monitoring(interface, &mut notes);
    if port.has("qos") {
        notes.push("qos: ignored: of the bridge's own interface".to_owned());
    }
    let name = config.name.clone();
    set_interface(config, &name, settings);
    let outcome = InterfaceOutcome::Port {
        bridge: name,
        number: PortNo::LOCAL,
        notes,
    };
    desired.interfaces.insert(interface.uuid, outcome);
}

/// Adds the settings of an interface, unless they are the defaults.
fn set_interface(config: &mut BridgeConfig, name: &str, settings: InterfaceConfig) {
    if settings != InterfaceConfig::default() {
        config.interfaces.insert(name.to_owned(), settings);
    }
}

/// Adds a port to the configuration of `NORMAL`, unless it has the defaults. The members of a bond
/// arrive one at a time.
fn add_logical_port(config: &mut BridgeConfig, mut logical: LogicalPort, number: PortNo) {
    logical.members.push(number);
    if let Some(bond) = &mut logical.bond {
        bond.members
            .iter_mut()
            .for_each(|member| member.port = number);
        let mut ports = config.switching.ports.iter_mut();
        let same = ports.find(|port| port.name == logical.name);
        if let Some((same, others)) =
            same.and_then(|same| Some((&mut same.members, same.bond.as_mut()?)))
        {
            same.push(number);
            same.sort_unstable();
            others.members.append(&mut bond.members);
            return;
        }
    }
    if !logical.is_plain() {
        config.switching.ports.push(logical);
    }
}

/// Returns the existing number of this interface's port.
fn current_number(before: &BridgeConfig, planned: &PortSpec) -> Option<PortNo> {
    let port = before.ports.iter().find(|port| port.name == planned.name);
    port.and_then(|port| port.number)
}

/// Refuses all interfaces of a port.
fn refuse(database: &Database, port: Record<'_>, why: &str, desired: &mut DesiredState) {
    let uuids: Vec<Uuid> = port
        .named_by(database, "interfaces", "Interface")
        .map(|row| row.uuid)
        .collect();
    for uuid in uuids {
        let outcome = InterfaceOutcome::Refused(why.to_owned());
        desired.interfaces.entry(uuid).or_insert(outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_address_of_a_bridge_is_that_of_open_vswitch() {
        let row = |text: &str| default_address(text.parse().expect("a UUID"));
        assert_eq!(
            row("01234567-89ab-cdef-0123-456789abcdef"),
            MacAddr([0x66, 0x45, 0x23, 0x01, 0xef, 0xcd])
        );
        assert_ne!(
            row("01234567-89ab-cdef-0123-456789abcdef"),
            row("11234567-89ab-cdef-0123-456789abcdef")
        );
    }
}
