//! Generator of random changes of a database: each change is valid for the configuration that the
//! earlier ones created. The same seed yields the same changes.
//!
//! `br0` and `br1`, with the ports `p1` to `p4`, are permanent: their settings stay, and other
//! ports are added beside them. Everything else changes.

use std::collections::{BTreeMap, BTreeSet};

use base::SplitMix64;

/// Bridges that are added and removed.
const BRIDGES: [&str; 4] = ["s0", "s1", "s2", "s3"];

/// Permanent bridges, whose other ports are added and removed.
const PERMANENT_BRIDGES: [&str; 2] = ["br0", "br1"];

/// Ports that are added to any bridge and removed, and their settings.
const PORTS: [(&str, &str); 14] = [
    ("p5", ""),
    ("p6", ""),
    ("p7", ""),
    ("p8", ""),
    ("nope", ""),
    ("t0", "type=tap"),
    ("t1", "type=tap"),
    ("i0", "type=internal"),
    ("i1", "type=internal"),
    ("i2", "type=internal"),
    ("v0", "type=vxlan options:remote_ip=10.9.0.1 options:key=7"),
    ("v1", "type=vxlan options:remote_ip=flow options:key=flow"),
    ("g0", "type=geneve options:remote_ip=10.9.0.2"),
    ("g1", "type=gre options:remote_ip=10.9.0.3 options:key=5"),
];

/// Patch ports, each on one bridge: they form a chain, so that no frame loops.
const PATCHES: [(&str, &str, &str); 6] = [
    ("q0a", "s0", "q0b"),
    ("q0b", "s1", "q0a"),
    ("q1a", "s1", "q1b"),
    ("q1b", "s2", "q1a"),
    ("q2a", "s2", "q2b"),
    ("q2b", "s3", "q2a"),
];

/// A bond and its interfaces.
const BOND: (&str, [&str; 2]) = ("bond0", ["p7", "p8"]);

/// Settings of ports, valid and invalid ones.
const PORT_SETTINGS: [&str; 13] = [
    "tag=5",
    "tag=6 vlan_mode=access",
    "trunks=5,6,7 vlan_mode=trunk",
    "tag=5 trunks=6,7 vlan_mode=native-untagged",
    "tag=5 trunks=6,7 vlan_mode=native-tagged",
    "protected=true",
    "protected=false",
    "other_config:priority-tags=always",
    "external_ids:who=me",
    "bond_mode=active-backup",
    "bond_mode=balance-slb",
    "lacp=active",
    "lacp=off",
];

/// Columns that are cleared.
const CLEARED_COLUMNS: [&str; 4] = ["tag", "trunks", "vlan_mode", "other_config"];

/// Settings of interfaces, except for the port number.
const INTERFACE_SETTINGS: [&str; 13] = [
    "mtu_request=1400",
    "mtu_request=1500",
    "ingress_policing_rate=10000 ingress_policing_burst=1000",
    "ingress_policing_rate=0 ingress_policing_burst=0",
    "external_ids:iface-id=me",
    "lldp:enable=false",
    "bfd:enable=false",
    "other_config:diffserv=true",
    "mac=\"02:00:00:00:bb:01\"",
    "bfd:enable=true",
    "cfm_mpid=7",
    "lldp:enable=true",
    "options:nonsense=1",
];

/// Settings of bridges that are added and removed.
const BRIDGE_SETTINGS: [&str; 17] = [
    "fail_mode=secure",
    "fail_mode=standalone",
    "protocols=OpenFlow13",
    "protocols=OpenFlow10,OpenFlow13,OpenFlow14",
    "other_config:datapath-id=00000000000000aa",
    "other_config:hwaddr=02:00:00:00:aa:01",
    "other_config:mac-aging-time=60",
    "other_config:mac-table-size=1000",
    "other_config:forward-bpdu=true",
    "mcast_snooping_enable=true",
    "mcast_snooping_enable=false",
    "stp_enable=false",
    "stp_enable=true",
    "rstp_enable=true",
    "rstp_enable=false",
    "flood_vlans=5",
    "external_ids:who=me",
];

/// Rows that a bridge refers to, by the column of the reference.
const REFERENCED_ROWS: [(&str, &str); 4] = [
    ("flow_tables", "flow_table name=first flow_limit=100"),
    ("netflow", "netflow targets=\"127.0.0.1:5001\""),
    (
        "sflow",
        "sflow agent=lo targets=\"127.0.0.1:5002\" header=128 sampling=64 polling=10",
    ),
    ("ipfix", "ipfix targets=\"127.0.0.1:5003\" obs_domain_id=1"),
];

/// Controllers of a bridge, none of which runs. Some belong to the permanent bridge, which would
/// lose its rules without a controller.
const CONTROLLERS: [&str; 4] = [
    "tcp:127.0.0.1:1",
    "tcp:127.0.0.1:1 tcp:127.0.0.1:2",
    "tcp:127.0.0.1:2 ptcp:7001:127.0.0.1",
    "ssl:127.0.0.1:3",
];

/// Current configuration and random state.
pub(super) struct ChangeGenerator {
    random: SplitMix64,
    bridges: BTreeSet<&'static str>,
    /// Number of row names used so far.
    name_count: u32,
    /// Ports and their bridges.
    ports: BTreeMap<&'static str, &'static str>,
}

impl ChangeGenerator {
    /// Creates a generator for the permanent configuration.
    pub(super) fn new(seed: u64) -> Self {
        Self {
            random: SplitMix64::new(seed),
            bridges: BTreeSet::new(),
            name_count: 0,
            ports: BTreeMap::new(),
        }
    }

    /// Returns a random number below `limit`.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.random.below(limit)
    }

    fn choose<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    /// Returns the next change as arguments of `ovs-vsctl`.
    pub(super) fn change(&mut self) -> String {
        loop {
            let change = match self.below(25) {
                0..=2 => self.change_bridge(),
                3..=8 => self.change_port(),
                9 => self.change_patch(),
                10 => self.change_bond(),
                11..=13 => self.set_port(),
                14 | 15 => self.set_interface(),
                16 | 17 => self.set_port_number(),
                18 | 19 => self.set_bridge(),
                20 => self.set_controllers(),
                21 => self.set_mirrors(),
                22 => self.set_reference(),
                _ => self.set_qos(),
            };
            if let Some(change) = change {
                return change;
            }
        }
    }

    /// Returns the removal of everything that is not permanent.
    pub(super) fn reset(&mut self) -> String {
        let ports = std::mem::take(&mut self.ports);
        let bridges = std::mem::take(&mut self.bridges);
        let permanent = ports
            .iter()
            .filter(|(_, bridge)| PERMANENT_BRIDGES.contains(bridge));
        let ports = permanent.map(|(port, _)| format!("del-port {port}"));
        let bridges = bridges.into_iter().map(|bridge| format!("del-br {bridge}"));
        let clears = PERMANENT_BRIDGES.map(|bridge| format!("clear bridge {bridge} mirrors"));
        let clears = clears
            .into_iter()
            .chain([format!("set-controller br0 {}", CONTROLLERS[0])]);
        ports
            .chain(bridges)
            .chain(clears)
            .collect::<Vec<_>>()
            .join(" -- ")
    }

    /// Bridges of the current configuration.
    pub(super) fn bridges(&self) -> impl Iterator<Item = &'static str> {
        PERMANENT_BRIDGES
            .into_iter()
            .chain(self.bridges.iter().copied())
    }

    fn change_bridge(&mut self) -> Option<String> {
        let bridge = self.choose(&BRIDGES);
        if self.bridges.remove(bridge) {
            self.ports.retain(|_, items| *items != bridge);
            return Some(format!("del-br {bridge}"));
        }
        self.bridges.insert(bridge);
        Some(format!("add-br {bridge}"))
    }

    fn change_port(&mut self) -> Option<String> {
        let (port, words) = self.choose(&PORTS);
        if self.is_bonded(port) {
            return None;
        }
        if self.ports.remove(port).is_some() {
            return Some(format!("del-port {port}"));
        }
        let bridges: Vec<_> = self.bridges().collect();
        let bridge = self.choose(&bridges);
        self.ports.insert(port, bridge);
        Some(if words.is_empty() {
            format!("add-port {bridge} {port}")
        } else {
            format!("add-port {bridge} {port} -- set interface {port} {words}")
        })
    }

    fn change_patch(&mut self) -> Option<String> {
        let (port, bridge, peer) = self.choose(&PATCHES);
        if self.ports.remove(port).is_some() {
            return Some(format!("del-port {port}"));
        }
        self.bridges.contains(bridge).then_some(())?;
        self.ports.insert(port, bridge);
        Some(format!(
            "add-port {bridge} {port} -- set interface {port} type=patch options:peer={peer}"
        ))
    }

    fn change_bond(&mut self) -> Option<String> {
        let (change_bond, members) = BOND;
        if self.ports.remove(change_bond).is_some() {
            return Some(format!("del-port {change_bond}"));
        }
        if members.iter().any(|member| self.ports.contains_key(member)) {
            return None;
        }
        let bridges: Vec<_> = self.bridges().collect();
        let bridge = self.choose(&bridges);
        self.ports.insert(change_bond, bridge);
        Some(format!(
            "add-bond {bridge} {change_bond} {}",
            members.join(" ")
        ))
    }

    fn is_bonded(&self, port: &str) -> bool {
        let (change_bond, members) = BOND;
        members.contains(&port) && self.ports.contains_key(change_bond)
    }

    fn existing_port(&mut self) -> Option<&'static str> {
        let ports: Vec<_> = self.ports.keys().copied().collect();
        (!ports.is_empty()).then(|| self.choose(&ports))
    }

    fn existing_bridge(&mut self) -> Option<&'static str> {
        let bridges: Vec<_> = self.bridges.iter().copied().collect();
        (!bridges.is_empty()).then(|| self.choose(&bridges))
    }

    fn set_port(&mut self) -> Option<String> {
        let port = self.existing_port()?;
        Some(match self.below(3) {
            0 => format!("clear port {port} {}", self.choose(&CLEARED_COLUMNS)),
            _ => format!("set port {port} {}", self.choose(&PORT_SETTINGS)),
        })
    }

    fn set_interface(&mut self) -> Option<String> {
        let port = self.existing_port().filter(|port| *port != BOND.0)?;
        Some(format!(
            "set interface {port} {}",
            self.choose(&INTERFACE_SETTINGS)
        ))
    }

    /// Each port requests another number: which of two ports gets the same number would depend on
    /// their order.
    fn set_port_number(&mut self) -> Option<String> {
        let port = self.existing_port()?;
        let index = PORTS.iter().position(|(name, _)| *name == port)?;
        Some(match self.below(2) {
            0 => format!("clear interface {port} ofport_request"),
            _ => format!("set interface {port} ofport_request={}", 100 + index),
        })
    }

    fn set_bridge(&mut self) -> Option<String> {
        let bridge = self.existing_bridge()?;
        Some(match self.below(4) {
            0 => format!("clear bridge {bridge} other_config"),
            1 => format!("clear bridge {bridge} protocols"),
            _ => format!("set bridge {bridge} {}", self.choose(&BRIDGE_SETTINGS)),
        })
    }

    fn set_controllers(&mut self) -> Option<String> {
        let selected = self.existing_bridge().filter(|_| self.below(2) == 0);
        let Some(bridge) = selected else {
            return Some(format!(
                "set-controller {} {}",
                PERMANENT_BRIDGES[0],
                self.choose(&CONTROLLERS)
            ));
        };
        // Two bridges cannot listen on the same port.
        let targets: Vec<_> = CONTROLLERS
            .into_iter()
            .filter(|items| !items.contains("ptcp"))
            .collect();
        Some(match self.below(2) {
            0 => format!("del-controller {bridge}"),
            _ => format!("set-controller {bridge} {}", self.choose(&targets)),
        })
    }

    fn set_mirrors(&mut self) -> Option<String> {
        let port = self.existing_port()?;
        let bridge = self.ports[port];
        let name = self.new_name();
        Some(match self.below(2) {
            0 => format!("clear bridge {bridge} mirrors"),
            _ => format!(
                "--id=@p{name} get port {port} -- --id=@m{name} create mirror name=m select-all=true \
                 output-port=@p{name} -- set bridge {bridge} mirrors=@m{name}"
            ),
        })
    }

    /// Rows that a bridge refers to: flow exporters and table limits.
    fn set_reference(&mut self) -> Option<String> {
        let bridge = self.existing_bridge()?;
        let (column, words) = self.choose(&REFERENCED_ROWS);
        let name = self.new_name();
        let key = match column {
            "flow_tables" => ":0",
            _ => "",
        };
        Some(match self.below(3) {
            0 => format!("clear bridge {bridge} {column}"),
            _ => {
                format!(
                    "--id=@a{name} create {words} -- set bridge {bridge} {column}{key}=@a{name}"
                )
            }
        })
    }

    /// Returns a new name for the rows of a change, so that names in a transaction differ.
    fn new_name(&mut self) -> u32 {
        self.name_count += 1;
        self.name_count
    }

    fn set_qos(&mut self) -> Option<String> {
        let port = self.existing_port()?;
        let name = self.new_name();
        Some(match self.below(2) {
            0 => format!("clear port {port} qos"),
            _ => format!(
                "--id=@q{name} create qos type=linux-htb other-config:max-rate=100000000 queues:0=@e{name} -- \
                 --id=@e{name} create queue other-config:max-rate=50000000 -- set port {port} qos=@q{name}"
            ),
        })
    }
}
