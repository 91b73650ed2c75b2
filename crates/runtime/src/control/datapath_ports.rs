//! The datapaths by Open vSwitch's names, and the datapath numbers of ports: one number space for
//! all bridges. An open port keeps its number. Tunnels of one type and UDP port share a number;
//! patch ports have none.

use std::collections::{BTreeMap, BTreeSet};

use base::PortNo;

use super::Control;
use super::bridge_runtime::{BridgeRuntime, PortRuntime};
use config::PortKind;
use dataplane::program::BridgeId;

/// A datapath, which serves the bridges of a type. All have the same workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DatapathName {
    /// The datapath of bridges of type `dummy`.
    Dummy,
    /// The datapath of all other bridges.
    Netdev,
}

impl DatapathName {
    /// Parses a datapath's name, with or without the type. The kernel's datapath is the userspace
    /// datapath here.
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text {
            "dummy@ovs-dummy" | "ovs-dummy" => Some(Self::Dummy),
            "netdev@ovs-netdev" | "ovs-netdev" | "system@ovs-system" | "ovs-system" => {
                Some(Self::Netdev)
            }
            _ => None,
        }
    }

    /// Returns the datapath of a type.
    pub(super) fn of_type(datapath_type: &str) -> Option<Self> {
        match datapath_type {
            "dummy" => Some(Self::Dummy),
            "netdev" | "system" => Some(Self::Netdev),
            _ => None,
        }
    }

    /// Returns the name with the type.
    pub(super) const fn full(self) -> &'static str {
        match self {
            Self::Dummy => "dummy@ovs-dummy",
            Self::Netdev => "netdev@ovs-netdev",
        }
    }

    /// Returns the name without the type.
    pub(super) const fn backer(self) -> &'static str {
        match self {
            Self::Dummy => "ovs-dummy",
            Self::Netdev => "ovs-netdev",
        }
    }

    /// Returns the type.
    pub(super) const fn datapath_type(self) -> &'static str {
        match self {
            Self::Dummy => "dummy",
            Self::Netdev => "netdev",
        }
    }
}

impl BridgeRuntime {
    /// Returns the datapath of the bridge.
    pub(super) fn datapath(&self) -> DatapathName {
        let local = self.ports.get(&PortNo::LOCAL);
        match local.map(|port| &port.spec.kind) {
            Some(PortKind::Dummy(_)) => DatapathName::Dummy,
            _ => DatapathName::Netdev,
        }
    }
}

/// A port of a bridge.
pub(super) type BridgePortNo = (BridgeId, PortNo);

/// The number of the first bridge's local port if numbers follow names, to keep low numbers for
/// ports with a number in their name.
const BRIDGES_FROM: u32 = 100;

/// The largest number.
const NUMBER_MAX: u32 = u16::MAX as u32;

/// The datapath numbers.
#[derive(Debug, Default)]
pub(super) struct DatapathPorts {
    by_port: BTreeMap<BridgePortNo, (u32, String)>,
    /// True if a port gets the number in its name, if that is free, like the ports of Open
    /// vSwitch's dummy datapath: this simplifies tests.
    by_name: bool,
}

impl DatapathPorts {
    /// Returns an empty map.
    pub(super) fn new(by_name: bool) -> Self {
        Self {
            by_name,
            ..Self::default()
        }
    }

    /// Updates the map to the open ports, each with its name in the datapath. New ports get
    /// numbers in their order, the local port of a bridge first.
    fn follow(&mut self, ports: impl Iterator<Item = (BridgePortNo, String)>) {
        let ports: BTreeMap<_, _> = ports.collect();
        self.by_port
            .retain(|port, (_, name)| ports.get(port) == Some(name));
        let mut ports: Vec<_> = ports.into_iter().collect();
        ports.sort_by_key(|((bridge, port), _)| (*bridge, *port != PortNo::LOCAL, *port));
        let taken = self.by_port.values();
        let mut taken: BTreeSet<_> = taken.map(|(number, _)| *number).collect();
        for (port, name) in ports {
            if self.by_port.contains_key(&port) {
                continue;
            }
            let number = self.number_of(&name).or_else(|| self.choose(&name, &taken));
            if let Some(number) = number {
                taken.insert(number);
                self.by_port.insert(port, (number, name));
            }
        }
    }

    /// Returns a free number for a new port.
    fn choose(&self, name: &str, taken: &BTreeSet<u32>) -> Option<u32> {
        let free = |number: &u32| !taken.contains(number);
        let named = self.by_name.then(|| number_in(name)).flatten();
        named.filter(free).or_else(|| (1..=NUMBER_MAX).find(free))
    }

    /// Returns the number of the port with this name in the datapath.
    fn number_of(&self, name: &str) -> Option<u32> {
        let mut ports = self.by_port.values();
        let found = ports.find(|(_, known)| known == name);
        found.map(|(number, _)| *number)
    }

    /// Returns the number of a port; none for a patch port and for a port that is not open.
    pub(super) fn number(&self, port: BridgePortNo) -> Option<u32> {
        self.by_port.get(&port).map(|(number, _)| *number)
    }

    /// Changes the number of the port with this name.
    ///
    /// # Errors
    /// There is no such port, or another port has the number.
    pub(super) fn renumber(&mut self, name: &str, number: u32) -> Result<(), &'static str> {
        if number > NUMBER_MAX {
            return Err("bad port number");
        }
        if self.number_of(name).is_none() {
            return Err("unknown port");
        }
        if self.by_port.values().any(|(other, _)| *other == number) {
            return Err("port number already in use");
        }
        let ports = self.by_port.values_mut();
        let of_name = ports.filter(|(_, known)| known == name);
        of_name.for_each(|(old, _)| *old = number);
        Ok(())
    }

    /// Returns the name of a port.
    pub(super) fn name(&self, port: BridgePortNo) -> Option<&str> {
        self.by_port.get(&port).map(|(_, name)| name.as_str())
    }

    /// Returns the first port with this number or name.
    pub(super) fn find(&self, text: &str) -> Option<BridgePortNo> {
        let number = text.parse::<u32>().ok();
        let mut ports = self.by_port.iter();
        let found = ports.find(|(_, (of, name))| Some(*of) == number || name == text);
        found.map(|(port, _)| *port)
    }

    /// Returns all ports, sorted by number.
    pub(super) fn all(&self) -> Vec<(u32, &str, BridgePortNo)> {
        let ports = self.by_port.iter();
        let mut all: Vec<_> = ports
            .map(|(port, (number, name))| (*number, name.as_str(), *port))
            .collect();
        all.sort_unstable();
        all
    }
}

/// Returns the number in a name.
fn number_in(name: &str) -> Option<u32> {
    let start = name.find(|letter: char| letter.is_ascii_digit())?;
    let figures = name[start..].split(|letter: char| !letter.is_ascii_digit());
    let number: u32 = figures.into_iter().next()?.parse().ok()?;
    let from = if name.starts_with("br") {
        BRIDGES_FROM
    } else {
        0
    };
    from.checked_add(number)
        .filter(|number| (1..=NUMBER_MAX).contains(number))
}

/// Returns the name of an open port in the datapath; none for a patch port and for a port that is
/// not open.
fn name_in_datapath(port: &PortRuntime) -> Option<String> {
    port.device.as_ref()?;
    match &port.spec.kind {
        PortKind::Patch(_) => None,
        PortKind::Tunnel(tunnel) => Some(tunnel.datapath_port()),
        _ => Some(port.spec.name.clone()),
    }
}

impl Control {
    /// Returns the datapath numbers of the open ports.
    pub(super) fn datapath_ports(&mut self) -> &DatapathPorts {
        let sites = self.sites.iter();
        let ports = sites.flat_map(|(bridge, site)| {
            let ports = site.ports.iter();
            ports.filter_map(|(number, port)| Some(((*bridge, *number), name_in_datapath(port)?)))
        });
        self.devices.datapath_ports.follow(ports);
        &self.devices.datapath_ports
    }

    /// Returns the datapaths that have a bridge, sorted by name.
    pub(super) fn datapaths(&self) -> BTreeSet<DatapathName> {
        self.sites.values().map(BridgeRuntime::datapath).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(number: u32, name: &str) -> (BridgePortNo, String) {
        ((BridgeId(0), PortNo(number)), name.to_owned())
    }

    fn numbers(ports: &DatapathPorts) -> Vec<(u32, &str)> {
        let all = ports.all().into_iter();
        all.map(|(number, name, _)| (number, name)).collect()
    }

    #[test]
    fn datapath_ports_keep_numbers_and_take_lowest_free() {
        let mut ports = DatapathPorts::new(false);
        ports.follow([port(1, "a"), port(2, "b")].into_iter());
        ports.follow([port(2, "b"), port(3, "c"), port(4, "d")].into_iter());
        assert_eq!(numbers(&ports), [(1, "c"), (2, "b"), (3, "d")]);
        assert_eq!(ports.find("2"), ports.find("b"));
        assert_eq!(ports.find("c"), Some((BridgeId(0), PortNo(3))));
        assert_eq!((ports.find("7"), ports.find("a")), (None, None));
        // Another device with the same OpenFlow number is another port.
        ports.follow([port(2, "e")].into_iter());
        assert_eq!(numbers(&ports), [(1, "e")]);
    }

    #[test]
    fn port_is_renumbered_unless_number_is_taken() {
        let mut ports = DatapathPorts::new(false);
        ports.follow([port(1, "a"), port(2, "b")].into_iter());
        assert_eq!(ports.renumber("a", 2), Err("port number already in use"));
        assert_eq!(ports.renumber("c", 5), Err("unknown port"));
        assert_eq!(ports.renumber("a", 5), Ok(()));
        ports.follow([port(1, "a"), port(2, "b")].into_iter());
        assert_eq!(numbers(&ports), [(2, "b"), (5, "a")]);
    }

    #[test]
    fn dummy_port_number_follows_its_name() {
        let mut ports = DatapathPorts::new(true);
        let wanted = [
            (1, "p7"),
            (2, "br0"),
            (3, "br2"),
            (4, "p07"),
            (5, "x"),
            (6, "p99999"),
        ];
        ports.follow(wanted.into_iter().map(|(number, name)| port(number, name)));
        assert_eq!(
            numbers(&ports),
            [
                (1, "p07"),
                (2, "x"),
                (3, "p99999"),
                (7, "p7"),
                (100, "br0"),
                (102, "br2")
            ]
        );
    }

    #[test]
    fn tunnels_of_one_type_and_udp_port_share_a_number() {
        let mut ports = DatapathPorts::new(true);
        let tunnels = [(1, "gre_sys"), (2, "gre_sys"), (3, "genev_sys_6081")];
        let local = port(PortNo::LOCAL.0, "int");
        let tunnels = tunnels.into_iter().map(|(number, name)| port(number, name));
        ports.follow(tunnels.chain([local]));
        let expected = [
            (1, "int"),
            (2, "gre_sys"),
            (2, "gre_sys"),
            (6081, "genev_sys_6081"),
        ];
        assert_eq!(numbers(&ports), expected);
    }

    #[test]
    fn datapath_is_found_with_and_without_its_type() {
        for name in [DatapathName::Dummy, DatapathName::Netdev] {
            assert_eq!(DatapathName::parse(name.full()), Some(name));
            let (datapath_type, short) = name.full().split_once('@').expect("a type");
            assert_eq!(DatapathName::parse(short), Some(name));
            assert_eq!(datapath_type, name.datapath_type());
        }
        assert_eq!(DatapathName::parse("dummy@br0"), None);
    }
}
