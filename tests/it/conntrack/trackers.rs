//! Three connection trackers, each between two hosts: Comporta, Open vSwitch's userspace data path,
//! and the kernel's `nf_conntrack` in a Linux bridge with nftables.
//!
//! The bridge passes its packets to the kernel's IP hooks (`br_netfilter`), so that all three have
//! the same position in the network: no tracker is a hop, and a frame leaves with the addresses and
//! the TTL with which it arrived.

use std::fmt;
use std::path::Path;

use testbed::{Failure, Process, Requirement};

use crate::support::command::program;
use crate::support::context::TestError;
use crate::support::deployment::Deployment;
use crate::support::network::TestNetwork;
use crate::support::open_vswitch::{appctl, start_ovs_vswitchd};

/// Programs in addition to those of a deployment.
const REQUIREMENTS: [Requirement; 3] = [
    Requirement::Bridge,
    Requirement::Program {
        program: "nft",
        package: "nftables",
    },
    Requirement::Program {
        program: "conntrack",
        package: "conntrack",
    },
];

/// Setting that passes bridged IPv4 packets to the IP hooks, per namespace.
const BRIDGE_HOOKS: &str = "/proc/sys/net/bridge/bridge-nf-call-iptables";

/// Rule that floods the frames that end a step.
const END_OF_STEP_RULE: &str = "table=0,priority=65535,dl_type=0x88b6,actions=all";

/// One of the three trackers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TrackerKind {
    Comporta,
    OpenVswitch,
    Kernel,
}

impl TrackerKind {
    /// Every kind.
    pub(crate) const ALL: [Self; 3] = [Self::Comporta, Self::OpenVswitch, Self::Kernel];
}

/// The same policy for the switches and for the kernel.
#[derive(Clone, Copy)]
pub(crate) struct TrackerPolicy {
    /// Rules of a switch, as `ovs-ofctl add-flow` reads them.
    pub(crate) flows: &'static [&'static str],
    /// The kernel's rules, as `nft -f` reads them.
    pub(crate) ruleset: &'static str,
}

/// A connection as its tracker lists it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ListedConnection {
    /// Name of the protocol, or its number.
    pub(crate) protocol: String,
    /// Tuple of the original direction, as Open vSwitch writes it.
    pub(crate) original: String,
    /// Tuple of the reply direction.
    pub(crate) reply: String,
    /// State of TCP or SCTP, in the words of the tracker; empty for other protocols.
    pub(crate) state: String,
}

impl fmt::Display for ListedConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            protocol,
            original,
            reply,
            state,
        } = self;
        write!(f, "{protocol} {original} | {reply} {state}")
    }
}

impl ListedConnection {
    /// Parses a line of `dpctl/dump-conntrack`.
    fn of_dpctl(line: &str) -> Option<Self> {
        let (protocol, rest) = line.split_once(',')?;
        let part = |key: &str| Some(rest.split_once(key)?.1.split_once(')')?.0.to_owned());
        let state = rest.split_once("state=").map(|(_, state)| state);
        let state = state.and_then(|state| state.split([',', ')']).next());
        Some(Self {
            protocol: protocol.to_owned(),
            original: part("orig=(")?,
            reply: part("reply=(")?,
            state: state.unwrap_or_default().to_owned(),
        })
    }

    /// Parses a line of `conntrack -L`, such as `tcp 6 117 SYN_SENT src=10.0.0.1 dst=10.0.0.2
    /// sport=1 dport=2 [UNREPLIED] src=10.0.0.2 dst=10.0.0.1 sport=2 dport=1 mark=0 use=1`.
    fn of_conntrack(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (name, number) = (*words.first()?, *words.get(1)?);
        let protocol = if name == "unknown" { number } else { name };
        let starts = |word: &&str| word.starts_with("src=");
        let first = words.iter().position(starts)?;
        let second = first + 1 + words[first + 1..].iter().position(starts)?;
        let state = words.get(3).filter(|word| !word.contains('='));
        Some(Self {
            protocol: protocol.to_owned(),
            original: tuple(&words[first..second]),
            reply: tuple(&words[second..]),
            state: state.copied().unwrap_or_default().to_owned(),
        })
    }
}

/// Writes the words of a tuple in the order of Open vSwitch. The tuple of a protocol without ports
/// has the ports zero there.
fn tuple(words: &[&str]) -> String {
    let has = |key: &str| words.iter().any(|word| word.starts_with(key));
    let rest = if has("type=") {
        ["id", "type", "code"].as_slice()
    } else {
        &["sport", "dport"]
    };
    let keys = ["src", "dst"].iter().chain(rest);
    let parts = keys.map(|key| {
        let word = words
            .iter()
            .find(|word| word.split_once('=').is_some_and(|(name, _)| name == *key));
        word.map_or_else(|| format!("{key}=0"), |word| (*word).to_owned())
    });
    parts.collect::<Vec<_>>().join(",")
}

/// A running tracker between hosts 1 and 2 of a network.
pub(crate) struct Tracker<'n, 'g> {
    pub(crate) kind: TrackerKind,
    pub(crate) network: &'n TestNetwork<'g>,
    // Dropped in this order: the daemon before its database.
    _daemon: Option<Process>,
    deployment: Option<Deployment<'n, 'g>>,
}

impl<'n, 'g> Tracker<'n, 'g> {
    /// Starts a tracker with this policy.
    pub(crate) fn start(
        kind: TrackerKind,
        network: &'n TestNetwork<'g>,
        policy: &TrackerPolicy,
    ) -> Result<Self, TestError> {
        if let Err(missing) = testbed::check(&REQUIREMENTS) {
            return Err(TestError::Skip(missing.to_string()));
        }
        network.add_static_neighbours(1, 2)?;
        let mut tracker = Self {
            kind,
            network,
            _daemon: None,
            deployment: None,
        };
        match kind {
            TrackerKind::Comporta => tracker.start_switch("comporta", policy)?,
            TrackerKind::OpenVswitch => tracker.start_switch("ovs", policy)?,
            TrackerKind::Kernel => tracker.start_bridge(policy)?,
        }
        Ok(tracker)
    }

    fn start_switch(&mut self, directory: &str, policy: &TrackerPolicy) -> Result<(), TestError> {
        let deployment = Deployment::in_directory(self.network, directory)?;
        let daemon = match self.kind {
            TrackerKind::OpenVswitch => {
                // Userspace ports of Open vSwitch do not complete the checksums of local senders.
                for host in &self.network.hosts {
                    host.run("ethtool -K eth0 tx off")?.expect_success()?;
                }
                start_ovs_vswitchd(&deployment, "")?
            }
            _ => deployment.start_daemon()?.process,
        };
        deployment.vsctl(
            "add-br br0 -- set Bridge br0 datapath_type=netdev fail_mode=secure \
             -- add-port br0 p1 -- set Interface p1 ofport_request=1 \
             -- add-port br0 p2 -- set Interface p2 ofport_request=2",
        )?;
        for flow in policy.flows.iter().chain(&[END_OF_STEP_RULE]) {
            deployment.run_tool(&format!("ovs-ofctl add-flow br0 {flow}"))?;
        }
        self._daemon = Some(daemon);
        self.deployment = Some(deployment);
        Ok(())
    }

    /// Creates a bridge whose packets pass the kernel's IP hooks. Its addresses and neighbours
    /// serve packets whose destination is translated.
    fn start_bridge(&self, policy: &TrackerPolicy) -> Result<(), TestError> {
        let inside = &self.network.switch_namespace;
        if !inside.run(|| Path::new(BRIDGE_HOOKS).exists())? {
            let missing = "bridged packets cannot pass nftables: load the module br_netfilter";
            return Err(TestError::Skip(missing.to_owned()));
        }
        for family in ["iptables", "ip6tables"] {
            inside.set_sysctl(&format!("net/bridge/bridge-nf-call-{family}"), "1")?;
        }
        // The kernel forwards a packet with a translated destination by a route.
        inside.set_sysctl("net/ipv4/ip_forward", "1")?;
        inside.bridge("br0", &["p1", "p2"])?;
        inside.set_up("br0")?;
        for third in [1, 2] {
            inside.add_address("br0", [10, third, 0, 254].into(), 24)?;
        }
        for (number, host) in (1..).zip(&self.network.hosts) {
            inside.add_neighbour("br0", host.address, host.mac)?;
            let scripted = [2, 0, 0, 0, 1, number];
            inside.add_neighbour("br0", [10, 2, 0, number].into(), scripted)?;
        }
        let file = self.network.context.unique_path("ruleset.nft");
        std::fs::write(&file, policy.ruleset)?;
        let load = format!("nft -f {}", file.display());
        self.network.run(&load)?.expect_success()?;
        Ok(())
    }

    /// Returns the connections, sorted.
    pub(crate) fn connections(&self) -> Result<Vec<ListedConnection>, Failure> {
        let mut listed = match &self.deployment {
            Some(deployment) => {
                let text = appctl(deployment, "dpctl/dump-conntrack")?;
                let lines = text.lines().filter_map(ListedConnection::of_dpctl);
                lines.collect::<Vec<_>>()
            }
            None => {
                let mut listed = Vec::new();
                for family in ["ipv4", "ipv6"] {
                    let words = format!("conntrack -L -f {family}");
                    let text = self.network.run(&words)?.expect_success()?;
                    listed.extend(text.lines().filter_map(ListedConnection::of_conntrack));
                }
                listed
            }
        };
        // The kernel's bridge sends reports of multicast groups (IGMP).
        listed.retain(|one| one.protocol != "2");
        listed.sort();
        Ok(listed)
    }

    /// Starts a program in the namespace of host `number`, with its output in a new file.
    pub(crate) fn start_program(&self, number: usize, words: &str) -> Result<Process, Failure> {
        let context = self.network.context;
        let name = words.split(' ').next().unwrap_or(words).replace('/', "-");
        let log = context.unique_path(&format!("{name}.log"));
        let namespace = &self.network.host(number).namespace;
        context
            .spawner
            .start(program(words).inside(namespace).log(log))
    }
}

/// Returns true if a state of the kernel's tracker and one of Open vSwitch's have the same meaning.
///
/// | kernel | Open vSwitch | reason |
/// |---|---|---|
/// | `SYN_RECV` | `ESTABLISHED` | the first side is established by the acknowledgement of its SYN |
/// | `FIN_WAIT` | `CLOSING` | one word for all states after the first FIN |
/// | `CLOSE_WAIT` | `CLOSING`, `TIME_WAIT` | an acknowledged FIN is `FIN_WAIT_2`, which is listed so |
/// | `LAST_ACK` | `CLOSING`, `TIME_WAIT` | the second FIN is sent; its acknowledgement is not |
/// | `CLOSE` | `TIME_WAIT`, `CLOSED` | a reset ends both sides |
///
/// States of SCTP, of which Open vSwitch has none:
///
/// | kernel | Comporta | reason |
/// |---|---|---|
/// | `CLOSED` | `COOKIE_WAIT` | the kernel leaves the first state with the second chunk |
/// | `COOKIE_ECHOED` | `COOKIE_WAIT` | one phase until the cookie is acknowledged |
/// | `SHUTDOWN_RECD`, `SHUTDOWN_ACK_SENT` | `SHUTDOWN_SENT` | one phase of closing |
pub(crate) fn is_same_state(kernel: &str, switch: &str) -> bool {
    let same: &[&str] = match kernel {
        "SYN_RECV" => &["ESTABLISHED"],
        "SYN_SENT2" => &["SYN_SENT", "ESTABLISHED"],
        "FIN_WAIT" => &["CLOSING"],
        "CLOSE_WAIT" | "LAST_ACK" => &["CLOSING", "TIME_WAIT"],
        "CLOSED" | "COOKIE_ECHOED" => &["COOKIE_WAIT", "CLOSED"],
        "SHUTDOWN_RECD" | "SHUTDOWN_ACK_SENT" => &["SHUTDOWN_SENT"],
        "CLOSE" => &["TIME_WAIT", "CLOSED"],
        _ => return kernel == switch,
    };
    same.contains(&switch)
}

/// Hosts behind port 1 open connections; hosts behind port 2 only reply.
pub(crate) const FIREWALL: TrackerPolicy = TrackerPolicy {
    flows: &[
        "table=0,priority=100,ip,actions=ct(table=1)",
        "table=0,priority=100,ipv6,actions=ct(table=1)",
        "table=1,priority=300,ct_state=+trk+inv,actions=drop",
        "table=1,priority=200,ct_state=+trk+est,actions=resubmit(,2)",
        "table=1,priority=200,ct_state=+trk+rel-new,actions=resubmit(,2)",
        "table=1,priority=100,ip,in_port=1,ct_state=+trk+new,actions=ct(commit),resubmit(,2)",
        "table=1,priority=100,ipv6,in_port=1,ct_state=+trk+new,actions=ct(commit),resubmit(,2)",
        "table=2,in_port=1,actions=output:2",
        "table=2,in_port=2,actions=output:1",
    ],
    ruleset: "table inet firewall {
        chain forward {
            type filter hook forward priority filter; policy drop;
            ct state invalid drop
            ct state established,related accept
            ct state new ip saddr { 10.1.0.1, 10.2.0.1 } accept
            ct state new ip6 saddr fd00::1 accept
        }
    }
    ",
};
