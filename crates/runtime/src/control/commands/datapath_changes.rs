//! Changes of a datapath by ovs-dpctl(8): added datapaths, their ports, and flows.
//!
//! A datapath that `dpctl/add-dp` adds exists in memory, with dummy ports alone: it has no bridge,
//! and the workers forward nothing for it. Flows that an operator adds are listed by
//! `dpctl/dump-flows` and match no frame: the bridges' rules decide about all of them. In the
//! datapath of the bridges, `dpctl/del-if` closes a port until the next change of the configuration.

use std::collections::BTreeMap;

use base::PortNo;

use super::dpctl::named;
use crate::control::Control;
use crate::control::datapath_ports::DatapathName;
use dataplane::program::BridgeId;

/// The prefix of error messages, as in Open vSwitch.
const PREFIX: &str = crate::PROGRAM;

/// The limits of added datapaths, of ports in one, and of flows in one.
const DATAPATHS_MAX: usize = 64;
const PORTS_MAX: usize = 1024;
const FLOWS_MAX: usize = 65_536;

/// The largest number of a port.
const NUMBER_MAX: u32 = u16::MAX as u32;

/// A flow that an operator has added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AddedFlow {
    /// The key with its masks.
    pub(super) key: String,
    pub(super) actions: String,
}

/// A datapath that an operator has added.
#[derive(Clone, Debug, Default)]
pub(super) struct AddedDatapath {
    /// Ports by number: name and type.
    ports: BTreeMap<u32, (String, String)>,
}

/// The changes of datapaths.
#[derive(Debug, Default)]
pub(in crate::control) struct DatapathChanges {
    added: BTreeMap<String, AddedDatapath>,
    /// Flows by the name of the datapath.
    flows: BTreeMap<String, Vec<AddedFlow>>,
    /// Ports of bridges that are closed until the next change of the configuration.
    closed: Vec<(BridgeId, PortNo)>,
}

impl DatapathChanges {
    /// Returns the names of added datapaths.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.added.keys().map(String::as_str)
    }

    /// Returns an added datapath.
    pub(super) fn datapath(&self, name: &str) -> Option<&AddedDatapath> {
        self.added.get(name)
    }

    /// Returns the ports of an added datapath, as `dpctl/show` lists them.
    pub(super) fn show(&self, name: &str) -> Option<String> {
        let added = self.added.get(name)?;
        let flows = self.flows.get(name).map_or(0, Vec::len);
        let ports = added.ports.iter();
        let ports =
            ports.map(|(number, (name, kind))| format!("  port {number}: {name} ({kind})\n"));
        Some(format!(
            "{name}:\n  lookups: hit:0 missed:0 lost:0\n  flows: {flows}\n{}",
            ports.collect::<String>()
        ))
    }

    /// Returns the added flows of a datapath, one per line.
    pub(super) fn flows(&self, name: &str) -> String {
        let flows = self.flows.get(name).into_iter().flatten();
        let lines = flows.map(|AddedFlow { key, actions }| {
            format!("{key}, packets:0, bytes:0, used:never, actions:{actions}\n")
        });
        lines.collect()
    }

    /// Removes all added flows of a datapath.
    pub(super) fn clear_flows(&mut self, name: &str) {
        self.flows.remove(name);
    }

    /// Adds a flow, or changes its actions.
    pub(super) fn put(
        &mut self,
        datapath: &str,
        flow: AddedFlow,
        is_new: bool,
    ) -> Result<(), &'static str> {
        let flows = self.flows.entry(datapath.to_owned()).or_default();
        let is_full = flows.len() >= FLOWS_MAX;
        match flows.iter_mut().find(|known| known.key == flow.key) {
            Some(_) if is_new => return Err("File exists"),
            Some(known) => *known = flow,
            None if !is_new => return Err("No such file or directory"),
            None if is_full => return Err("Argument list too long"),
            None => flows.push(flow),
        }
        Ok(())
    }

    /// Deletes a flow; returns false if the datapath has no flow with this key.
    pub(super) fn delete(&mut self, datapath: &str, key: &str) -> bool {
        let flows = self.flows.get_mut(datapath);
        let place = flows
            .as_ref()
            .and_then(|flows| flows.iter().position(|flow| flow.key == key));
        let found = place.zip(flows);
        found.map(|(place, flows)| flows.remove(place)).is_some()
    }
}

impl AddedDatapath {
    /// Returns the number of a port.
    pub(super) fn number_of(&self, name: &str) -> Option<u32> {
        let mut ports = self.ports.iter();
        let found = ports.find(|(_, (known, _))| known == name);
        found.map(|(number, _)| *number)
    }
}

impl Control {
    /// Opens the ports again that an operator has closed: the configuration has changed.
    pub(in crate::control) fn reopen_deleted_ports(&mut self) {
        for (bridge, port) in std::mem::take(&mut self.commands.changes.closed) {
            let runtime = self
                .sites
                .get(&bridge)
                .and_then(|site| site.ports.get(&port));
            if runtime.is_some_and(|port| port.device.is_none())
                && let Err(error) = self.open_port(bridge, port)
            {
                tracing::warn!(%port, "{error}");
            }
        }
    }
}

/// A port in an argument: `vif1.0,type=dummy,port_no=5`.
struct PortArgument<'a> {
    name: &'a str,
    kind: Option<&'a str>,
    number: Option<u32>,
}

impl<'a> PortArgument<'a> {
    fn parse(text: &'a str) -> Result<Self, String> {
        let mut words = text.split(',').filter(|word| !word.is_empty());
        let name = words.next();
        let name =
            name.ok_or_else(|| failure(&format!("{text} is not a valid network device name")))?;
        let mut port = Self {
            name,
            kind: None,
            number: None,
        };
        for word in words {
            match word.split_once('=') {
                Some(("type", kind)) => port.kind = Some(kind),
                Some(("port_no", number)) => port.number = Some(number.parse().unwrap_or(0)),
                _ => {}
            }
        }
        Ok(port)
    }
}

/// Returns the text of an error.
pub(super) fn failure(what: &str) -> String {
    format!("{PREFIX}: {what}")
}

/// The error of a name that no datapath has.
pub(super) fn missing() -> String {
    failure("opening datapath (No such device)")
}

pub(super) fn add_datapath(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let (name, ports) = arguments.split_first().ok_or_else(missing)?;
    if named(control, name).is_some() || control.commands.changes.added.contains_key(name) {
        return Err(failure("add_dp (File exists)"));
    }
    let short = name
        .strip_prefix("dummy@")
        .filter(|short| !short.is_empty());
    let short = short.filter(|_| control.tools.dummies.is_enabled());
    // A datapath of another type would have devices, which only a bridge can have.
    let short = short.ok_or_else(|| failure("add_dp (Operation not supported)"))?;
    if control.commands.changes.added.len() >= DATAPATHS_MAX {
        return Err(failure("add_dp (No space left on device)"));
    }
    let mut added = AddedDatapath::default();
    let local = (short.to_owned(), "dummy-internal".to_owned());
    added.ports.insert(0, local);
    control.commands.changes.added.insert(name.clone(), added);
    for port in ports {
        add_port(control, name, port)?;
    }
    Ok(String::new())
}

pub(super) fn delete_datapath(
    control: &mut Control,
    arguments: &[String],
) -> Result<String, String> {
    let name = arguments.first().ok_or_else(missing)?;
    if named(control, name).is_some() {
        return Err(failure("del_dp (Device or resource busy)"));
    }
    control
        .commands
        .changes
        .added
        .remove(name)
        .ok_or_else(missing)?;
    control.commands.changes.clear_flows(name);
    Ok(String::new())
}

pub(super) fn add_ports(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let (name, ports) = arguments.split_first().ok_or_else(missing)?;
    if named(control, name).is_some() {
        return Err(failure(
            "changing ports: they are the bridges': use ovs-vsctl (Operation not supported)",
        ));
    }
    for port in ports {
        add_port(control, name, port)?;
    }
    Ok(String::new())
}

fn add_port(control: &mut Control, datapath: &str, text: &str) -> Result<(), String> {
    let added = control.commands.changes.added.get_mut(datapath);
    let added = added.ok_or_else(missing)?;
    let port = PortArgument::parse(text)?;
    let kind = port.kind.unwrap_or("system");
    if !kind.starts_with("dummy") {
        let name = port.name;
        return Err(failure(&format!(
            "{name}: failed to open network device (Operation not supported)"
        )));
    }
    let refused = |why: &str| {
        Err(failure(&format!(
            "adding {} to {datapath} failed ({why})",
            port.name
        )))
    };
    if added.number_of(port.name).is_some() {
        return refused("File exists");
    }
    let free = |number: &u32| *number <= NUMBER_MAX && !added.ports.contains_key(number);
    let number = match port.number {
        Some(number) => Some(number).filter(free),
        None => (1..=NUMBER_MAX).find(free),
    };
    match number {
        Some(number) if added.ports.len() < PORTS_MAX => {
            added
                .ports
                .insert(number, (port.name.to_owned(), kind.to_owned()));
            Ok(())
        }
        _ => refused("Device or resource busy"),
    }
}

/// Checks the settings of ports against those that they have: neither type nor number can change.
pub(super) fn set_ports(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let (datapath, ports) = arguments.split_first().ok_or_else(missing)?;
    for text in ports {
        let port = PortArgument::parse(text)?;
        let added = control.commands.changes.added.get(datapath);
        let added = added.ok_or_else(missing)?;
        let name = port.name;
        let number = added.number_of(name);
        let known = number.and_then(|number| Some((number, added.ports.get(&number)?)));
        let (number, (_, kind)) = known.ok_or_else(|| {
            failure(&format!(
                "{name}: failed to query port in {datapath} (No such device)"
            ))
        })?;
        if let Some(wanted) = port.kind.filter(|wanted| *wanted != kind.as_str()) {
            return Err(failure(&format!(
                "{name}: can't change type from {kind} to {wanted}"
            )));
        }
        if let Some(wanted) = port.number.filter(|wanted| *wanted != number) {
            return Err(failure(&format!(
                "{name}: can't change port number from {number} to {wanted}"
            )));
        }
    }
    Ok(String::new())
}

pub(super) fn delete_ports(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let (datapath, ports) = arguments.split_first().ok_or_else(missing)?;
    let of_bridges = named(control, datapath);
    for port in ports {
        match of_bridges {
            Some(of_bridges) => close_port(control, of_bridges, datapath, port)?,
            None => delete_port(control, datapath, port)?,
        }
    }
    Ok(String::new())
}

fn delete_port(control: &mut Control, datapath: &str, port: &str) -> Result<(), String> {
    let added = control.commands.changes.added.get_mut(datapath);
    let added = added.ok_or_else(missing)?;
    let number = port.parse().ok().or_else(|| added.number_of(port));
    let number = number.ok_or_else(|| failure(&format!("no port named {port}")))?;
    let refused = |why: &str| {
        failure(&format!(
            "deleting port {port} from {datapath} failed ({why})"
        ))
    };
    match number {
        0 => Err(refused("Invalid argument")),
        number => match added.ports.remove(&number) {
            Some(_) => Ok(()),
            None => Err(refused("No such device")),
        },
    }
}

/// Closes a port of a bridge.
fn close_port(
    control: &mut Control,
    of: DatapathName,
    datapath: &str,
    text: &str,
) -> Result<(), String> {
    let ports = control.datapath_ports();
    let found = ports.find(text);
    let (bridge, port) = found.ok_or_else(|| failure(&format!("no port named {text}")))?;
    let is_of = control
        .sites
        .get(&bridge)
        .is_some_and(|site| site.datapath() == of);
    if !is_of || port == PortNo::LOCAL {
        return Err(failure(&format!(
            "deleting port {text} from {datapath} failed (Invalid argument)"
        )));
    }
    control.close_port(bridge, port);
    control.commands.changes.closed.push((bridge, port));
    Ok(())
}

/// Returns the datapath with this name, or the only one.
pub(super) fn datapath_of(control: &Control, name: Option<&String>) -> Result<String, String> {
    let Some(name) = name else {
        let names = control.datapaths();
        let added = control.commands.changes.names().map(str::to_owned);
        let mut all: Vec<_> = names
            .iter()
            .map(|name| name.full().to_owned())
            .chain(added)
            .collect();
        return match (all.pop(), all.is_empty()) {
            (Some(only), true) => Ok(only),
            _ => Err(failure("datapath not found (Invalid argument)")),
        };
    };
    match named(control, name) {
        Some(known) => Ok(known.full().to_owned()),
        None if control.commands.changes.added.contains_key(name) => Ok(name.clone()),
        None => Err(missing()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(key: &str, actions: &str) -> AddedFlow {
        AddedFlow {
            key: key.to_owned(),
            actions: actions.to_owned(),
        }
    }

    #[test]
    fn added_flows_are_changed_and_listed() {
        let mut changes = DatapathChanges::default();
        assert_eq!(changes.put("d", flow("in_port(1)", "2"), true), Ok(()));
        assert_eq!(
            changes.put("d", flow("in_port(1)", "2"), true),
            Err("File exists")
        );
        let missing = changes.put("d", flow("in_port(2)", "2"), false);
        assert_eq!(missing, Err("No such file or directory"));
        assert_eq!(changes.put("d", flow("in_port(1)", "3"), false), Ok(()));
        assert_eq!(
            changes.flows("d"),
            "in_port(1), packets:0, bytes:0, used:never, actions:3\n"
        );
        assert!(changes.delete("d", "in_port(1)") && !changes.delete("d", "in_port(1)"));
        assert_eq!(changes.flows("d"), "");
    }
}
