//! Topologies of hosts and bridges: a star around one bridge, several parallel bridges in one
//! device, or a chain of bridges between two hosts.
//!
//! This is only the plan: names and links. [`Bench`](crate::Bench) creates them.

use std::fmt;

/// A device's ports, in the order of hosts.
pub(crate) const PORTS: [&str; HOSTS_MAX] = [
    "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9", "p10", "p11", "p12", "p13", "p14", "p15",
    "p16",
];

/// The most hosts of a test setup: each is a namespace, and each has the addresses of all others.
pub const HOSTS_MAX: usize = 16;

/// The most bridges of a device: a chain of this length still fits into the memory of small
/// machines.
pub const BRIDGES_MAX: usize = 16;

/// The MTUs that all of the kernel's own devices support (`ETH_MIN_MTU`, `ETH_MAX_MTU` of veth).
const MTU: std::ops::RangeInclusive<u32> = 68..=65_535;

/// The MTU of Ethernet, in bytes above its header (IEEE 802.3, 3.2.7).
pub const MTU_ETHERNET: u32 = 1_500;

/// The arrangement of bridges and hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Arrangement {
    /// One bridge between all hosts.
    Star { hosts: usize },
    /// Bridges of one device, each between two separate hosts.
    Parallel { bridges: usize },
    /// Bridges in a row between two hosts.
    Chain { bridges: usize },
}

/// The kind of a device's ports, unless it creates them itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PortKind {
    /// The far end of the link to each host.
    #[default]
    Veth,
    /// The VLAN interface `vlanN` of a Linux bridge in front of the device. Each host's link is an
    /// access port of a separate VLAN there.
    Vlan,
}

/// A plan of hosts, bridges and links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Topology {
    shape: Arrangement,
    ports: PortKind,
    mtu: u32,
}

/// A topology that cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadTopology(String);

/// A bridge of the device: its name, and its ports in the order of their OpenFlow numbers, from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BridgePlan {
    /// `br0`, `br1` and so on.
    pub name: String,
    /// Interfaces in the device's namespace.
    pub ports: Vec<String>,
}

/// The port at which a host is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostAttachment {
    /// The bridge's index, from 0.
    pub bridge: usize,
    /// The port's OpenFlow number.
    pub port: u32,
}

impl Default for Topology {
    /// One bridge between two hosts, with veth pairs of Ethernet's MTU.
    fn default() -> Self {
        Self::of(Arrangement::Star { hosts: 2 })
    }
}

impl Topology {
    const fn of(shape: Arrangement) -> Self {
        Self {
            shape,
            ports: PortKind::Veth,
            mtu: MTU_ETHERNET,
        }
    }

    /// One bridge between `hosts` hosts.
    ///
    /// # Errors
    /// Fewer than two hosts, or more than [`HOSTS_MAX`].
    pub fn star(hosts: usize) -> Result<Self, BadTopology> {
        within(hosts, 2, HOSTS_MAX, "hosts around one bridge")?;
        Ok(Self::of(Arrangement::Star { hosts }))
    }

    /// `bridges` bridges of one device, each between two separate hosts.
    ///
    /// # Errors
    /// Zero bridges, or more than half of [`HOSTS_MAX`].
    pub fn parallel(bridges: usize) -> Result<Self, BadTopology> {
        within(bridges, 1, HOSTS_MAX / 2, "bridges side by side")?;
        Ok(Self::of(Arrangement::Parallel { bridges }))
    }

    /// `bridges` bridges in a row between two hosts.
    ///
    /// # Errors
    /// Zero bridges, or more than [`BRIDGES_MAX`].
    pub fn chain(bridges: usize) -> Result<Self, BadTopology> {
        within(bridges, 1, BRIDGES_MAX, "bridges in a row")?;
        Ok(Self::of(Arrangement::Chain { bridges }))
    }

    /// The same topology with this MTU on all links, in bytes above Ethernet.
    ///
    /// # Errors
    /// Fewer than 68 bytes, or more than 65,535.
    pub fn with_mtu(self, bytes: u32) -> Result<Self, BadTopology> {
        if !MTU.contains(&bytes) {
            let (least, most) = (MTU.start(), MTU.end());
            return Err(BadTopology(format!(
                "invalid MTU of {bytes} bytes: expected {least} to {most}"
            )));
        }
        Ok(Self { mtu: bytes, ..self })
    }

    /// The same topology with another kind of ports towards the hosts.
    #[must_use]
    pub const fn with_ports(self, ports: PortKind) -> Self {
        Self { ports, ..self }
    }

    /// The kind of the ports towards the hosts.
    #[must_use]
    pub const fn ports(&self) -> PortKind {
        self.ports
    }

    /// The MTU of all links, in bytes above Ethernet.
    #[must_use]
    pub const fn mtu(&self) -> u32 {
        self.mtu
    }

    /// The number of hosts.
    #[must_use]
    pub const fn hosts(&self) -> usize {
        match self.shape {
            Arrangement::Star { hosts } => hosts,
            Arrangement::Parallel { bridges } => 2 * bridges,
            Arrangement::Chain { .. } => 2,
        }
    }

    /// Returns true if frames pass more than one bridge.
    #[must_use]
    pub const fn is_chain(&self) -> bool {
        matches!(self.shape, Arrangement::Chain { bridges } if bridges > 1)
    }

    /// Returns true if each host can reach exactly one other.
    #[must_use]
    pub const fn is_of_pairs(&self) -> bool {
        !matches!(self.shape, Arrangement::Star { hosts } if hosts > 2)
    }

    /// The port of each host, in the order of hosts.
    #[must_use]
    pub fn attachments(&self) -> Vec<HostAttachment> {
        let place = |bridge, port| HostAttachment { bridge, port };
        match self.shape {
            Arrangement::Star { hosts } => (1..).take(hosts).map(|port| place(0, port)).collect(),
            Arrangement::Parallel { bridges } => (0..bridges)
                .flat_map(|bridge| [place(bridge, 1), place(bridge, 2)])
                .collect(),
            Arrangement::Chain { bridges } => vec![place(0, 1), place(bridges - 1, 2)],
        }
    }

    /// All bridges of the device, with their ports.
    #[must_use]
    pub fn bridges(&self) -> Vec<BridgePlan> {
        let name = |bridge: usize| format!("br{bridge}");
        let outside: Vec<String> = (0..self.hosts()).map(|host| self.port_name(host)).collect();
        let plan = |bridge, ports: &[String]| BridgePlan {
            name: name(bridge),
            ports: ports.to_vec(),
        };
        match self.shape {
            Arrangement::Star { .. } => vec![plan(0, &outside)],
            Arrangement::Parallel { .. } => outside
                .chunks(2)
                .enumerate()
                .map(|(bridge, pair)| plan(bridge, pair))
                .collect(),
            Arrangement::Chain { bridges } => {
                let links = self.links();
                let far = links.iter().map(|(_, far)| far.clone());
                let near = links.iter().map(|(near, _)| near.clone());
                let first = [outside[0].clone()].into_iter().chain(far);
                let second = near.chain([outside[1].clone()]);
                (0..bridges)
                    .zip(first.zip(second))
                    .map(|(bridge, (first, second))| plan(bridge, &[first, second]))
                    .collect()
            }
        }
    }

    /// The links between bridges, both ends in the device's namespace.
    #[must_use]
    pub fn links(&self) -> Vec<(String, String)> {
        match self.shape {
            Arrangement::Chain { bridges } => (1..bridges)
                .map(|link| (format!("l{link}a"), format!("l{link}b")))
                .collect(),
            Arrangement::Star { .. } | Arrangement::Parallel { .. } => Vec::new(),
        }
    }

    /// The interface at the far end of each host's link.
    pub(crate) fn cable_ends(&self) -> &'static [&'static str] {
        &PORTS[..self.hosts()]
    }

    /// The VLAN of a host's access port, with [`PortKind::Vlan`].
    pub(crate) fn vlan(host: usize) -> u16 {
        u16::try_from(10 * (host + 1)).expect("a bench has few hosts")
    }

    fn port_name(&self, host: usize) -> String {
        match self.ports {
            PortKind::Veth => PORTS[host].to_owned(),
            PortKind::Vlan => format!("vlan{}", Self::vlan(host)),
        }
    }
}

fn within(count: usize, least: usize, most: usize, what: &str) -> Result<(), BadTopology> {
    match (least..=most).contains(&count) {
        true => Ok(()),
        false => Err(BadTopology(format!(
            "invalid number of {what}: {count}; expected {least} to {most}"
        ))),
    }
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.shape {
            Arrangement::Star { hosts } => write!(f, "star-{hosts}")?,
            Arrangement::Parallel { bridges } => write!(f, "parallel-{bridges}")?,
            Arrangement::Chain { bridges } => write!(f, "chain-{bridges}")?,
        }
        if self.ports == PortKind::Vlan {
            f.write_str("-vlan")?;
        }
        match self.mtu {
            MTU_ETHERNET => Ok(()),
            mtu => write!(f, "-mtu-{mtu}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ports(topology: Topology) -> Vec<Vec<String>> {
        let bridges = topology.bridges().into_iter();
        bridges.map(|bridge| bridge.ports).collect()
    }

    #[test]
    fn star_has_a_port_for_each_host() {
        let star = Topology::star(4).unwrap();
        assert_eq!(ports(star), [["p1", "p2", "p3", "p4"]]);
        assert_eq!(star.attachments()[3], HostAttachment { bridge: 0, port: 4 });
        assert_eq!(Topology::default(), Topology::star(2).unwrap());
    }

    #[test]
    fn parallel_bridges_have_two_hosts_each() {
        let three = Topology::parallel(3).unwrap();
        assert_eq!(ports(three), [["p1", "p2"], ["p3", "p4"], ["p5", "p6"]]);
        assert_eq!((three.hosts(), three.attachments().len()), (6, 6));
        assert_eq!(
            three.attachments()[5],
            HostAttachment { bridge: 2, port: 2 }
        );
    }

    #[test]
    fn chain_connects_its_two_hosts() {
        let chain = Topology::chain(3).unwrap();
        let expected = [["p1", "l1a"], ["l1b", "l2a"], ["l2b", "p2"]];
        assert_eq!(ports(chain), expected);
        assert_eq!(ports(Topology::chain(1).unwrap()), [["p1", "p2"]]);
        for length in [1, 2, 4, 8] {
            let chain = Topology::chain(length).unwrap();
            let last = HostAttachment {
                bridge: length - 1,
                port: 2,
            };
            assert_eq!(
                chain.attachments(),
                [HostAttachment { bridge: 0, port: 1 }, last]
            );
            assert_eq!(chain.links().len() + 1, chain.bridges().len());
        }
    }

    #[test]
    fn vlan_interfaces_are_named_by_their_vlan() {
        let vlans = Topology::default().with_ports(PortKind::Vlan);
        assert_eq!(ports(vlans), [["vlan10", "vlan20"]]);
        assert_eq!(vlans.to_string(), "star-2-vlan");
    }

    #[test]
    fn impossible_topologies_are_refused_with_the_possible_range() {
        let error = Topology::star(1).unwrap_err().to_string();
        assert_eq!(
            error,
            "invalid number of hosts around one bridge: 1; expected 2 to 16"
        );
        assert!(Topology::parallel(9).is_err() && Topology::chain(17).is_err());
        let mtu = Topology::default().with_mtu(9_216).unwrap();
        assert_eq!(
            (mtu.mtu(), mtu.to_string()),
            (9_216, "star-2-mtu-9216".to_owned())
        );
        assert!(Topology::default().with_mtu(65_536).is_err());
    }
}
