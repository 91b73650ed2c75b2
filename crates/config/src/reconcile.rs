//! Reconciliation: the difference of two configurations as steps that can be printed and executed
//! one by one.
//!
//! Pure: nothing is opened, nothing can fail. Removals precede additions, so that a name or a
//! number can be reused.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use base::{DatapathId, PortNo, TableId};
use openflow::VersionSet;

use crate::{
    Affinity, BridgeConfig, Config, ControllerConfig, Exporters, FailMode, InBandSettings,
    InterfaceConfig, ListenAddress, MirrorConfig, Policing, PortKind, PortSpec, SpanningTreeConfig,
    SwitchingConfig, TableConfig, number_ports,
};

/// A port with its final number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NumberedPort {
    /// The port number.
    pub number: PortNo,
    /// The name of the interface.
    pub name: String,
    /// The kind of the port.
    pub kind: PortKind,
}

/// A step towards the desired configuration. The first value of each step is the bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigStep {
    /// Removes a bridge with all its parts.
    RemoveBridge(String),
    /// Adds a bridge without ports, controllers or sockets.
    AddBridge(Box<BridgeConfig>),
    /// Removes a port.
    RemovePort(String, NumberedPort),
    /// Adds a port.
    AddPort(String, NumberedPort),
    /// Disconnects from a controller.
    RemoveController(String, ControllerConfig),
    /// Connects to a controller.
    AddController(String, ControllerConfig),
    /// Sets the timing of a controller's probes and connection attempts. Connections remain.
    SetControllerTiming(String, ControllerConfig),
    /// Closes a listening socket.
    RemoveListener(String, ListenAddress),
    /// Opens a listening socket.
    AddListener(String, ListenAddress),
    /// Sets the fail mode.
    SetFailMode(String, FailMode),
    /// Sets the datapath id; `None` derives it from the address. Controllers reconnect.
    SetDatapathId(String, Option<DatapathId>),
    /// Sets the protocol versions. Peers reconnect.
    SetProtocols(String, VersionSet),
    /// Sets the settings of an interface.
    SetInterface(String, String, Box<InterfaceConfig>),
    /// Sets the configuration of a table.
    SetTable(String, TableId, TableConfig),
    /// Sets the limits of packet-ins.
    SetPolicing(String, Policing),
    /// Sets the workers that receive from ports; all workers receive from other ports.
    SetAffinity(String, Vec<Affinity>),
    /// Sets the flow exporters.
    SetExporters(String, Box<Exporters>),
    /// Sets the configuration of `NORMAL`.
    SetSwitching(String, Box<SwitchingConfig>),
    /// Replaces all mirrors.
    SetMirrors(String, Vec<MirrorConfig>),
    /// Sets the peer of a patch port, which remains.
    SetPatchPeer(String, NumberedPort),
    /// Sets in-band control.
    SetInBand(String, InBandSettings),
    /// Sets or disables the spanning tree.
    SetSpanningTree(String, Option<Box<SpanningTreeConfig>>),
}

impl fmt::Display for ConfigStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RemoveBridge(bridge) => write!(f, "remove bridge {bridge}"),
            Self::AddBridge(bridge) => write!(f, "add bridge {}", bridge.name),
            Self::RemovePort(bridge, port) => {
                write!(f, "{bridge}: remove port {} ({})", port.name, port.number)
            }
            Self::AddPort(bridge, port) => {
                write!(f, "{bridge}: add port {} ({})", port.name, port.number)
            }
            Self::SetPatchPeer(bridge, port) => {
                let peer = patch_peer(port).unwrap_or_default();
                write!(f, "{bridge}: {}: peer {peer}", port.name)
            }
            Self::RemoveController(bridge, target) => {
                write!(f, "{bridge}: disconnect from controller {target}")
            }
            Self::AddController(bridge, target) => {
                write!(f, "{bridge}: connect to controller {target}")
            }
            Self::SetControllerTiming(bridge, target) => {
                write!(f, "{bridge}: timing of controller {target}")
            }
            Self::RemoveListener(bridge, listen) => {
                write!(f, "{bridge}: stop listening on {listen}")
            }
            Self::AddListener(bridge, listen) => write!(f, "{bridge}: listen on {listen}"),
            Self::SetFailMode(bridge, mode) => write!(f, "{bridge}: fail mode {mode}"),
            Self::SetDatapathId(bridge, Some(DatapathId(id))) => {
                write!(f, "{bridge}: datapath id {id:016x}")
            }
            Self::SetDatapathId(bridge, None) => {
                write!(f, "{bridge}: datapath id from its address")
            }
            Self::SetProtocols(bridge, versions) => write!(f, "{bridge}: protocols {versions}"),
            Self::SetInterface(bridge, port, settings) => {
                write!(f, "{bridge}: {port}: {settings}")
            }
            Self::SetTable(bridge, table, config) => {
                write!(f, "{bridge}: table {}: {config}", table.0)
            }
            Self::SetPolicing(bridge, policing) => write!(f, "{bridge}: {policing}"),
            Self::SetAffinity(bridge, affinity) => {
                let words: Vec<_> = affinity.iter().map(ToString::to_string).collect();
                write!(f, "{bridge}: affinity of ports [{}]", words.join(" "))
            }
            Self::SetExporters(bridge, exporters) => write!(f, "{bridge}: {exporters}"),
            Self::SetSwitching(bridge, switching) => {
                let names: Vec<_> = switching.ports.iter().map(|port| &*port.name).collect();
                write!(f, "{bridge}: switching of ports [{}]", names.join(" "))
            }
            Self::SetMirrors(bridge, mirrors) => write!(f, "{bridge}: {} mirrors", mirrors.len()),
            Self::SetInBand(bridge, in_band) => write!(f, "{bridge}: {in_band}"),
            Self::SetSpanningTree(bridge, None) => write!(f, "{bridge}: no spanning tree"),
            Self::SetSpanningTree(bridge, Some(tree)) => {
                let ports = tree.ports.values();
                let names: Vec<_> = ports.map(|port| &*port.name).collect();
                let (protocol, names) = (tree.protocol, names.join(" "));
                write!(f, "{bridge}: spanning tree {protocol:?} of ports [{names}]")
            }
        }
    }
}

/// Returns the steps from `old` to `new`. All removals of bridges and ports precede all additions.
/// A bridge is recreated if its address, auxiliary connections or table limits change, since all of
/// them were announced to controllers.
///
/// Both configurations must have passed [`Config::check`].
#[must_use]
pub fn reconcile(old: &Config, new: &Config) -> Vec<ConfigStep> {
    let (old, new) = (by_name(old), by_name(new));
    let is_kept = |name: &str| match (old.get(name), new.get(name)) {
        (Some(old), Some(new)) => {
            old.address == new.address
                && old.is_dummy == new.is_dummy
                && old.auxiliary == new.auxiliary
                && old.flow_limits == new.flow_limits
        }
        _ => false,
    };
    let mut steps: Vec<ConfigStep> = old
        .keys()
        .filter(|name| !is_kept(name))
        .map(|name| ConfigStep::RemoveBridge((*name).to_owned()))
        .collect();
    for (name, bridge) in old.iter().filter(|(name, _)| is_kept(name)) {
        let desired = Parts::of(new[name]);
        Parts::of(bridge)
            .without(&desired)
            .into_steps(name, &mut steps, Direction::Remove);
    }
    for (name, bridge) in &new {
        let present = if is_kept(name) {
            steps.extend(in_place(old[name], bridge));
            Parts::of(old[name])
        } else {
            steps.push(ConfigStep::AddBridge(Box::new((*bridge).clone())));
            Parts::default()
        };
        let before = old.get(name).filter(|_| is_kept(name));
        steps.extend(table_and_interface_steps(before.copied(), bridge));
        let desired = Parts::of(bridge);
        steps.extend(desired.patch_peer_steps(&present, name));
        steps.extend(desired.controller_timing_steps(&present, name));
        desired
            .without(&present)
            .into_steps(name, &mut steps, Direction::Add);
    }
    steps
}

/// Returns the steps for tables and interfaces. They precede the addition of ports, which apply the
/// settings when they are opened.
fn table_and_interface_steps(old: Option<&BridgeConfig>, new: &BridgeConfig) -> Vec<ConfigStep> {
    let bare = BridgeConfig::new(&new.name);
    let old = old.unwrap_or(&bare);
    let name = || new.name.clone();
    let tables: BTreeSet<_> = old.tables.keys().chain(new.tables.keys()).collect();
    let tables = tables.into_iter().filter_map(|table| {
        let desired = new.tables.get(table).cloned().unwrap_or_default();
        let changed = old.tables.get(table).cloned().unwrap_or_default() != desired;
        changed.then(|| ConfigStep::SetTable(name(), *table, desired))
    });
    let ports: BTreeSet<_> = old.interfaces.keys().chain(new.interfaces.keys()).collect();
    let ports = ports.into_iter().filter_map(|port| {
        let desired = new.interfaces.get(port).cloned().unwrap_or_default();
        let changed = old.interfaces.get(port).cloned().unwrap_or_default() != desired;
        changed.then(|| ConfigStep::SetInterface(name(), port.clone(), Box::new(desired)))
    });
    tables.chain(ports).collect()
}

/// Returns the steps for settings that can change on an existing bridge.
fn in_place(old: &BridgeConfig, new: &BridgeConfig) -> Vec<ConfigStep> {
    let name = || new.name.clone();
    let mut steps = Vec::new();
    if old.fail_mode != new.fail_mode {
        steps.push(ConfigStep::SetFailMode(name(), new.fail_mode));
    }
    if old.datapath_id != new.datapath_id {
        steps.push(ConfigStep::SetDatapathId(name(), new.datapath_id));
    }
    if old.protocols != new.protocols {
        steps.push(ConfigStep::SetProtocols(name(), new.protocols));
    }
    if old.policing() != new.policing() {
        steps.push(ConfigStep::SetPolicing(name(), new.policing()));
    }
    if old.affinity != new.affinity {
        steps.push(ConfigStep::SetAffinity(name(), new.affinity.clone()));
    }
    if old.switching != new.switching {
        steps.push(ConfigStep::SetSwitching(
            name(),
            Box::new(new.switching.clone()),
        ));
    }
    if old.mirrors != new.mirrors {
        steps.push(ConfigStep::SetMirrors(name(), new.mirrors.clone()));
    }
    if old.in_band != new.in_band {
        steps.push(ConfigStep::SetInBand(name(), new.in_band.clone()));
    }
    if old.spanning != new.spanning {
        let spanning = new.spanning.clone().map(Box::new);
        steps.push(ConfigStep::SetSpanningTree(name(), spanning));
    }
    if old.exporters != new.exporters {
        steps.push(ConfigStep::SetExporters(
            name(),
            Box::new(new.exporters.clone()),
        ));
    }
    steps
}

fn by_name(config: &Config) -> BTreeMap<&str, &BridgeConfig> {
    config
        .bridges
        .iter()
        .map(|bridge| (bridge.name.as_str(), bridge))
        .collect()
}

/// The parts of a port that cannot change while it remains: all but the peer of a patch port.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct PortIdentity<'a> {
    number: PortNo,
    name: &'a str,
    /// None for a patch port.
    kind: Option<&'a PortKind>,
}

impl<'a> PortIdentity<'a> {
    fn of(port: &'a NumberedPort) -> Self {
        Self {
            number: port.number,
            name: &port.name,
            kind: patch_peer(port).is_none().then_some(&port.kind),
        }
    }
}

/// Returns the name of a patch port's peer.
fn patch_peer(port: &NumberedPort) -> Option<&str> {
    match &port.kind {
        PortKind::Patch(peer) => Some(peer),
        _ => None,
    }
}

enum Direction {
    Add,
    Remove,
}

/// Parts that can be added and removed on an existing bridge.
#[derive(Default)]
struct Parts {
    ports: Vec<NumberedPort>,
    controllers: Vec<ControllerConfig>,
    listen: Vec<ListenAddress>,
}

impl Parts {
    fn of(bridge: &BridgeConfig) -> Self {
        let numbers =
            number_ports(&bridge.ports).expect("a checked configuration has numbers for its ports");
        let numbered = |(number, port): (PortNo, &PortSpec)| NumberedPort {
            number,
            name: port.name.clone(),
            kind: port.kind.clone(),
        };
        Self {
            ports: numbers
                .into_iter()
                .zip(&bridge.ports)
                .map(numbered)
                .collect(),
            controllers: bridge.controllers.clone(),
            listen: bridge.listen.clone(),
        }
    }

    fn without(mut self, other: &Self) -> Self {
        // A bridge may have thousands of ports, but only a few controllers and sockets.
        let ports: BTreeSet<_> = other.ports.iter().map(PortIdentity::of).collect();
        self.ports
            .retain(|port| !ports.contains(&PortIdentity::of(port)));
        self.controllers
            .retain(|target| target.counterpart(other.controllers.iter()).is_none());
        self.listen.retain(|listen| !other.listen.contains(listen));
        self
    }

    /// Returns the steps for patch ports with other peers than in `present`.
    fn patch_peer_steps(&self, present: &Self, bridge: &str) -> Vec<ConfigStep> {
        let before = present.ports.iter();
        let before: BTreeMap<_, _> = before.map(|port| (port.number, port)).collect();
        let changed = self.ports.iter().filter(|port| {
            let before = before.get(&port.number);
            before.is_some_and(|before| {
                PortIdentity::of(before) == PortIdentity::of(port) && before != port
            })
        });
        let step = |port: &NumberedPort| ConfigStep::SetPatchPeer(bridge.to_owned(), port.clone());
        changed.map(step).collect()
    }

    /// Returns the steps for controllers whose connections have another timing in `present`.
    fn controller_timing_steps(&self, present: &Self, bridge: &str) -> Vec<ConfigStep> {
        let changed = self.controllers.iter().filter(|controller| {
            let before = controller.counterpart(present.controllers.iter());
            before.is_some_and(|before| before != *controller)
        });
        let step = |controller: &ControllerConfig| {
            ConfigStep::SetControllerTiming(bridge.to_owned(), controller.clone())
        };
        changed.map(step).collect()
    }

    fn into_steps(self, bridge: &str, steps: &mut Vec<ConfigStep>, direction: Direction) {
        let name = || bridge.to_owned();
        match direction {
            Direction::Remove => {
                steps.extend(
                    self.controllers
                        .into_iter()
                        .map(|target| ConfigStep::RemoveController(name(), target)),
                );
                steps.extend(
                    self.listen
                        .into_iter()
                        .map(|listen| ConfigStep::RemoveListener(name(), listen)),
                );
                steps.extend(
                    self.ports
                        .into_iter()
                        .map(|port| ConfigStep::RemovePort(name(), port)),
                );
            }
            Direction::Add => {
                steps.extend(
                    self.ports
                        .into_iter()
                        .map(|port| ConfigStep::AddPort(name(), port)),
                );
                steps.extend(
                    self.listen
                        .into_iter()
                        .map(|listen| ConfigStep::AddListener(name(), listen)),
                );
                steps.extend(
                    self.controllers
                        .into_iter()
                        .map(|target| ConfigStep::AddController(name(), target)),
                );
            }
        }
    }
}

#[cfg(test)]
mod properties;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LogicalPort;

    fn config(text: &str) -> Config {
        Config::from_toml(text).expect("legal")
    }

    fn steps(old: &str, new: &str) -> Vec<String> {
        let old = if old.is_empty() {
            Config::default()
        } else {
            config(old)
        };
        let new = if new.is_empty() {
            Config::default()
        } else {
            config(new)
        };
        reconcile(&old, &new)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    const BEFORE: &str =
        "[[bridge]]\nname='br0'\nports=['a','b']\ncontrollers=['tcp:10.0.0.1']\nlisten=['ptcp:1']";

    #[test]
    fn bridge_creation_adds_ports_first_and_controllers_last() {
        let expected = [
            "add bridge br0",
            "br0: add port a (1)",
            "br0: add port b (2)",
            "br0: listen on ptcp:1:0.0.0.0",
            "br0: connect to controller tcp:10.0.0.1:6653",
        ];
        assert_eq!(steps("", BEFORE), expected);
        assert_eq!(steps(BEFORE, BEFORE), [""; 0]);
        assert_eq!(steps(BEFORE, ""), ["remove bridge br0"]);
    }

    #[test]
    fn steps_cover_only_changes_and_begin_with_removals() {
        let after = "[[bridge]]\nname='br0'\nports=['b=2','c']\ncontrollers=['tcp:10.0.0.2']\nlisten=['ptcp:1']";
        let expected = [
            "br0: disconnect from controller tcp:10.0.0.1:6653",
            "br0: remove port a (1)",
            "br0: add port c (1)",
            "br0: connect to controller tcp:10.0.0.2:6653",
        ];
        assert_eq!(steps(BEFORE, after), expected);
    }

    #[test]
    fn controller_remains_when_its_timing_changes() {
        let (before, mut after) = (config(BEFORE), config(BEFORE));
        let options = &mut after.bridges[0].controllers[0].options;
        options.inactivity_probe = None;
        options.max_backoff *= 2;
        let printed = |steps: Vec<ConfigStep>| -> Vec<String> {
            steps.iter().map(ToString::to_string).collect()
        };
        let expected = ["br0: timing of controller tcp:10.0.0.1:6653"];
        assert_eq!(printed(reconcile(&before, &after)), expected);
        after.bridges[0].controllers[0].options.dscp = Some(1);
        let expected = [
            "br0: disconnect from controller tcp:10.0.0.1:6653",
            "br0: connect to controller tcp:10.0.0.1:6653",
        ];
        assert_eq!(printed(reconcile(&before, &after)), expected);
    }

    #[test]
    fn rate_change_sets_only_the_policing() {
        let after = format!("{BEFORE}\npacket-in-rate='100:5'\ncontroller-rate-limit=200");
        let expected = ["br0: packet-in limit per port 100:5, per controller 200:50"];
        assert_eq!(steps(BEFORE, &after), expected);
        let expected = ["br0: packet-in limit per port none, per controller none"];
        assert_eq!(steps(&after, BEFORE), expected);
    }

    #[test]
    fn affinity_changes_on_existing_ports() {
        let after = format!("{BEFORE}\naffinity=['a=1','b=0,1']");
        assert_eq!(
            steps(BEFORE, &after),
            ["br0: affinity of ports [a=1 b=0,1]"]
        );
        assert_eq!(steps(&after, BEFORE), ["br0: affinity of ports []"]);
    }

    #[test]
    fn fail_mode_id_and_versions_change_on_an_existing_bridge() {
        let after = format!(
            "{BEFORE}\nfail-mode='secure'\ndatapath-id='00000000000000cd'\nprotocols=['OpenFlow13']"
        );
        let expected = [
            "br0: fail mode secure",
            "br0: datapath id 00000000000000cd",
            "br0: protocols 0x04",
        ];
        assert_eq!(steps(BEFORE, &after), expected);
        let back = steps(&after, BEFORE);
        assert_eq!(
            back[..2],
            [
                "br0: fail mode standalone",
                "br0: datapath id from its address"
            ]
        );
        assert!(back[2].starts_with("br0: protocols 0x01"), "{back:?}");
    }

    #[test]
    fn switching_changes_on_existing_ports() {
        let plain = config(BEFORE);
        let mut other = plain.clone();
        other.bridges[0].switching.ports.push(LogicalPort {
            name: "a".to_owned(),
            members: vec![PortNo(1)],
            is_protected: true,
            ..LogicalPort::default()
        });
        let steps = |old, new| -> Vec<_> {
            let steps = reconcile(old, new);
            steps.iter().map(ToString::to_string).collect()
        };
        assert_eq!(steps(&plain, &other), ["br0: switching of ports [a]"]);
        assert_eq!(steps(&other, &plain), ["br0: switching of ports []"]);
    }

    #[test]
    fn patch_port_stays_when_its_peer_changes() {
        let patch = |peer| format!("[[bridge]]\nname='br0'\nports=['patch:a,{peer}','b']");
        let expected = ["br0: a: peer d"];
        assert_eq!(steps(&patch("c"), &patch("d")), expected);
        let plain = "[[bridge]]\nname='br0'\nports=['a','b']";
        let expected = ["br0: remove port a (1)", "br0: add port a (1)"];
        assert_eq!(steps(&patch("c"), plain), expected);
    }

    #[test]
    fn auxiliary_count_change_recreates_the_bridge() {
        let after = "[[bridge]]\nname='br0'\nauxiliary=1";
        assert_eq!(
            steps(BEFORE, after),
            ["remove bridge br0", "add bridge br0"]
        );
    }
}
