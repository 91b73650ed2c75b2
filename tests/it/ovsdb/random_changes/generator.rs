//! Random changes to a database, each one that can be made where things stand: what is there
//! is kept in mind. The same seed makes the same changes.
//!
//! `br0` and `br1`, with the ports `p1` to `p4`, are somebody's: they keep what they have, and
//! have other ports beside it. Everything else is there to be changed.

use std::collections::{BTreeMap, BTreeSet};

/// Bridges that come and go.
const BRIDGES: [&str; 4] = ["s0", "s1", "s2", "s3"];

/// Bridges that stay, whose other ports come and go.
const LASTING: [&str; 2] = ["br0", "br1"];

/// Ports that come and go, at any bridge, and how they are asked for.
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

/// Patch ports, each at one bridge: so they are a chain, and no frame goes round for ever.
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

/// What may be said of a port, in turn or in vain.
const OF_PORTS: [&str; 13] = [
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

/// Columns that are emptied again.
const CLEARED: [&str; 4] = ["tag", "trunks", "vlan_mode", "other_config"];

/// What may be said of an interface, its number apart.
const OF_INTERFACES: [&str; 13] = [
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

/// What may be said of a bridge that comes and goes.
const OF_BRIDGES: [&str; 17] = [
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

/// Rows that hang on a bridge, by the column that has them.
const ATTACHED: [(&str, &str); 4] = [
    ("flow_tables", "flow_table name=first flow_limit=100"),
    ("netflow", "netflow targets=\"127.0.0.1:5001\""),
    (
        "sflow",
        "sflow agent=lo targets=\"127.0.0.1:5002\" header=128 sampling=64 polling=10",
    ),
    ("ipfix", "ipfix targets=\"127.0.0.1:5003\" obs_domain_id=1"),
];

/// Controllers of a bridge: nobody is there. Some of them are the bridge's that has rules, which
/// would go if it had none for a moment.
const CONTROLLERS: [&str; 4] = [
    "tcp:127.0.0.1:1",
    "tcp:127.0.0.1:1 tcp:127.0.0.1:2",
    "tcp:127.0.0.1:2 ptcp:7001:127.0.0.1",
    "ssl:127.0.0.1:3",
];

/// What there is, and what is to come of it.
pub(super) struct World {
    state: u64,
    bridges: BTreeSet<&'static str>,
    /// Names that were given to rows.
    named: u32,
    /// Ports, with their bridges.
    ports: BTreeMap<&'static str, &'static str>,
}

impl World {
    /// A world in which only what stays is there.
    pub(super) fn new(seed: u64) -> Self {
        Self {
            // Zero is where it would stay.
            state: seed.max(1),
            bridges: BTreeSet::new(),
            named: 0,
            ports: BTreeMap::new(),
        }
    }

    /// A number below `limit`.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        // xorshift64*
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        let random = self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(random).expect("31 bits") % limit
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// A change, as `ovs-vsctl` is told of it.
    pub(super) fn change(&mut self) -> String {
        loop {
            let change = match self.below(25) {
                0..=2 => self.come_or_go(),
                3..=8 => self.plug(),
                9 => self.patch(),
                10 => self.bond(),
                11..=13 => self.tell_port(),
                14 | 15 => self.tell_interface(),
                16 | 17 => self.number(),
                18 | 19 => self.tell_bridge(),
                20 => self.meet(),
                21 => self.mirror(),
                22 => self.attach(),
                _ => self.shape(),
            };
            if let Some(change) = change {
                return change;
            }
        }
    }

    /// All that came goes.
    pub(super) fn reset(&mut self) -> String {
        let ports = std::mem::take(&mut self.ports);
        let bridges = std::mem::take(&mut self.bridges);
        let lasting = ports.iter().filter(|(_, bridge)| LASTING.contains(bridge));
        let ports = lasting.map(|(port, _)| format!("del-port {port}"));
        let bridges = bridges.into_iter().map(|bridge| format!("del-br {bridge}"));
        let rest = LASTING.map(|bridge| format!("clear bridge {bridge} mirrors"));
        let rest = rest
            .into_iter()
            .chain([format!("set-controller br0 {}", CONTROLLERS[0])]);
        ports
            .chain(bridges)
            .chain(rest)
            .collect::<Vec<_>>()
            .join(" -- ")
    }

    /// The bridges that there are.
    pub(super) fn bridges(&self) -> impl Iterator<Item = &'static str> {
        LASTING.into_iter().chain(self.bridges.iter().copied())
    }

    fn come_or_go(&mut self) -> Option<String> {
        let bridge = self.one(&BRIDGES);
        if self.bridges.remove(bridge) {
            self.ports.retain(|_, of| *of != bridge);
            return Some(format!("del-br {bridge}"));
        }
        self.bridges.insert(bridge);
        Some(format!("add-br {bridge}"))
    }

    fn plug(&mut self) -> Option<String> {
        let (port, words) = self.one(&PORTS);
        if self.is_bonded(port) {
            return None;
        }
        if self.ports.remove(port).is_some() {
            return Some(format!("del-port {port}"));
        }
        let bridges: Vec<_> = self.bridges().collect();
        let bridge = self.one(&bridges);
        self.ports.insert(port, bridge);
        Some(if words.is_empty() {
            format!("add-port {bridge} {port}")
        } else {
            format!("add-port {bridge} {port} -- set interface {port} {words}")
        })
    }

    fn patch(&mut self) -> Option<String> {
        let (port, bridge, controller) = self.one(&PATCHES);
        if self.ports.remove(port).is_some() {
            return Some(format!("del-port {port}"));
        }
        self.bridges.contains(bridge).then_some(())?;
        self.ports.insert(port, bridge);
        Some(format!(
            "add-port {bridge} {port} -- set interface {port} type=patch options:peer={controller}"
        ))
    }

    fn bond(&mut self) -> Option<String> {
        let (bond, members) = BOND;
        if self.ports.remove(bond).is_some() {
            return Some(format!("del-port {bond}"));
        }
        if members.iter().any(|member| self.ports.contains_key(member)) {
            return None;
        }
        let bridges: Vec<_> = self.bridges().collect();
        let bridge = self.one(&bridges);
        self.ports.insert(bond, bridge);
        Some(format!("add-bond {bridge} {bond} {}", members.join(" ")))
    }

    fn is_bonded(&self, port: &str) -> bool {
        let (bond, members) = BOND;
        members.contains(&port) && self.ports.contains_key(bond)
    }

    fn some_port(&mut self) -> Option<&'static str> {
        let ports: Vec<_> = self.ports.keys().copied().collect();
        (!ports.is_empty()).then(|| self.one(&ports))
    }

    fn some_bridge(&mut self) -> Option<&'static str> {
        let bridges: Vec<_> = self.bridges.iter().copied().collect();
        (!bridges.is_empty()).then(|| self.one(&bridges))
    }

    fn tell_port(&mut self) -> Option<String> {
        let port = self.some_port()?;
        Some(match self.below(3) {
            0 => format!("clear port {port} {}", self.one(&CLEARED)),
            _ => format!("set port {port} {}", self.one(&OF_PORTS)),
        })
    }

    fn tell_interface(&mut self) -> Option<String> {
        let port = self.some_port().filter(|port| *port != BOND.0)?;
        Some(format!("set interface {port} {}", self.one(&OF_INTERFACES)))
    }

    /// Each port asks for a number of its own: of two that ask for one, who has it depends on
    /// who came first.
    fn number(&mut self) -> Option<String> {
        let port = self.some_port()?;
        let place = PORTS.iter().position(|(name, _)| *name == port)?;
        Some(match self.below(2) {
            0 => format!("clear interface {port} ofport_request"),
            _ => format!("set interface {port} ofport_request={}", 100 + place),
        })
    }

    fn tell_bridge(&mut self) -> Option<String> {
        let bridge = self.some_bridge()?;
        Some(match self.below(4) {
            0 => format!("clear bridge {bridge} other_config"),
            1 => format!("clear bridge {bridge} protocols"),
            _ => format!("set bridge {bridge} {}", self.one(&OF_BRIDGES)),
        })
    }

    fn meet(&mut self) -> Option<String> {
        let some = self.some_bridge().filter(|_| self.below(2) == 0);
        let Some(bridge) = some else {
            return Some(format!(
                "set-controller {} {}",
                LASTING[0],
                self.one(&CONTROLLERS)
            ));
        };
        // Of two bridges that wait at one place, one has it.
        let places: Vec<_> = CONTROLLERS
            .into_iter()
            .filter(|of| !of.contains("ptcp"))
            .collect();
        Some(match self.below(2) {
            0 => format!("del-controller {bridge}"),
            _ => format!("set-controller {bridge} {}", self.one(&places)),
        })
    }

    fn mirror(&mut self) -> Option<String> {
        let port = self.some_port()?;
        let bridge = self.ports[port];
        let own = self.own_name();
        Some(match self.below(2) {
            0 => format!("clear bridge {bridge} mirrors"),
            _ => format!(
                "--id=@p{own} get port {port} -- --id=@m{own} create mirror name=m select-all=true \
                 output-port=@p{own} -- set bridge {bridge} mirrors=@m{own}"
            ),
        })
    }

    /// Rows that hang on a bridge: what tells others of its frames, and what limits its tables.
    fn attach(&mut self) -> Option<String> {
        let bridge = self.some_bridge()?;
        let (column, words) = self.one(&ATTACHED);
        let own = self.own_name();
        let key = match column {
            "flow_tables" => ":0",
            _ => "",
        };
        Some(match self.below(3) {
            0 => format!("clear bridge {bridge} {column}"),
            _ => {
                format!("--id=@a{own} create {words} -- set bridge {bridge} {column}{key}=@a{own}")
            }
        })
    }

    /// A name for rows of one change: those of a transaction have each their own.
    fn own_name(&mut self) -> u32 {
        self.named += 1;
        self.named
    }

    fn shape(&mut self) -> Option<String> {
        let port = self.some_port()?;
        let own = self.own_name();
        Some(match self.below(2) {
            0 => format!("clear port {port} qos"),
            _ => format!(
                "--id=@q{own} create qos type=linux-htb other-config:max-rate=100000000 queues:0=@e{own} -- \
                 --id=@e{own} create queue other-config:max-rate=50000000 -- set port {port} qos=@q{own}"
            ),
        })
    }
}
