//! Datapath numbers of ports: one number space for all bridges. A port keeps its number as long as
//! it is configured.

use std::collections::{BTreeMap, BTreeSet};

use base::PortNo;

use super::Control;
use dataplane::program::BridgeId;

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

    /// Updates the map to the existing ports.
    fn follow(&mut self, ports: impl Iterator<Item = (BridgePortNo, String)>) {
        let ports: BTreeMap<_, _> = ports.collect();
        self.by_port
            .retain(|port, (_, name)| ports.get(port) == Some(name));
        let mut taken: BTreeSet<_> = self.by_port.values().map(|(number, _)| *number).collect();
        for (port, name) in ports {
            if self.by_port.contains_key(&port) {
                continue;
            }
            let named = self.by_name.then(|| number_in(&name)).flatten();
            let free = |number: &u32| !taken.contains(number);
            let number = named.filter(free).or_else(|| (1..=NUMBER_MAX).find(free));
            if let Some(number) = number {
                taken.insert(number);
                self.by_port.insert(port, (number, name));
            }
        }
    }

    /// Returns the number of a port.
    pub(super) fn number(&self, port: BridgePortNo) -> Option<u32> {
        self.by_port.get(&port).map(|(number, _)| *number)
    }

    /// Returns the port with this number or name.
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

impl Control {
    /// Returns the datapath numbers of the existing ports.
    pub(super) fn datapath_ports(&mut self) -> &DatapathPorts {
        let sites = self.sites.iter();
        let ports = sites.flat_map(|(bridge, site)| {
            let ports = site.ports.iter();
            ports.map(|(number, port)| ((*bridge, *number), port.spec.name.clone()))
        });
        self.devices.datapath_ports.follow(ports);
        &self.devices.datapath_ports
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
}
