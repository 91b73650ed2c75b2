//! Rules of a test setup: one rule for each direction between port 1 (client) and port 2 (server),
//! for each set of matched fields of OpenFlow 1.0.

use std::fmt;
use std::str::FromStr;

use base::{Cookie, PortNo};
use flow::{Action, Field, FlowMod, FlowModCommand, Instructions, Match, Refusal};
use packet::MacAddr;
use record::UnknownName;
use testbed::{Bench, Host, HostAttachment};

use crate::probe::{CLIENT_PORT, SERVER_PORT};

/// Cookie of the rule towards the server.
pub(crate) const TOWARDS_SERVER: Cookie = Cookie(1);
/// Cookie of the rule towards the client.
pub(crate) const TOWARDS_CLIENT: Cookie = Cookie(2);

/// Priority of the rules: the middle of the range, the default of `ovs-ofctl`.
const PRIORITY: u16 = 0x8000;

/// Fields that the rules match (OpenFlow 1.0).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MatchSet {
    /// The ingress port.
    Port,
    /// Both Ethernet addresses.
    Mac,
    /// The Ethernet type and both IPv4 addresses.
    Ip,
    /// The fields of `Ip`, the protocol and both UDP ports.
    Udp,
    /// All twelve fields.
    Exact,
}

impl MatchSet {
    /// Every set, in the order of the published table.
    pub const ALL: [Self; 5] = [Self::Port, Self::Mac, Self::Ip, Self::Udp, Self::Exact];
    /// Names of all sets.
    pub const NAMES: [&str; 5] = ["port", "mac", "ip", "udp", "exact"];

    /// Returns the name on the command line and in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

impl fmt::Display for MatchSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for MatchSet {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        let found = Self::ALL.into_iter().find(|set| set.name() == text);
        found.ok_or_else(|| UnknownName::new("match set", text, Self::NAMES))
    }
}

/// Side of the device: a host, its switch port, and its UDP port.
#[derive(Clone, Copy)]
struct Side<'a> {
    host: &'a Host,
    port: PortNo,
    udp_port: u16,
}

/// Returns the rules of each bridge of `bench`, which forward between pairs of hosts: the first and
/// the second, the third and the fourth, and so on. Every bridge of a chain has the rules of both
/// hosts.
pub(crate) fn rules_of_bridges(bench: &Bench, set: MatchSet) -> Vec<Vec<FlowMod>> {
    let topology = bench.topology();
    let hosts: Vec<_> = bench.hosts().iter().zip(topology.attachments()).collect();
    let between = |bridge: usize| -> Vec<FlowMod> {
        if topology.is_chain() {
            return rules_between([(bench.client(), 1), (bench.server(), 2)], set).to_vec();
        }
        let here: Vec<_> = hosts.iter().filter(|(_, at)| at.bridge == bridge).collect();
        let pairs = here.chunks_exact(2);
        let of_pair = |pair: &[&(&Host, HostAttachment)]| {
            rules_between([pair[0], pair[1]].map(|(host, at)| (*host, at.port)), set)
        };
        pairs.flat_map(of_pair).collect()
    };
    (0..topology.bridges().len()).map(between).collect()
}

/// Returns the two rules between two hosts at these ports.
fn rules_between([one, other]: [(&Host, u32); 2], set: MatchSet) -> [FlowMod; 2] {
    let side = |(host, port), udp_port| Side {
        host,
        port: PortNo(port),
        udp_port,
    };
    let (client, server) = (side(one, CLIENT_PORT), side(other, SERVER_PORT));
    [
        rule(set, client, server, TOWARDS_SERVER),
        rule(set, server, client, TOWARDS_CLIENT),
    ]
}

fn rule(set: MatchSet, from: Side<'_>, to: Side<'_>, cookie: Cookie) -> FlowMod {
    let matching = matching(set, from, to).expect("fields follow their prerequisites");
    let actions = Instructions::apply(vec![Action::output(to.port)]);
    let mut rule = FlowMod::new(FlowModCommand::Add, PRIORITY, matching, actions);
    rule.cookie = cookie;
    rule
}

fn matching(set: MatchSet, from: Side<'_>, to: Side<'_>) -> Result<Match, Refusal> {
    let any = Match::any();
    match set {
        MatchSet::Port => with_port(any, from),
        MatchSet::Mac => with_mac(any, from, to),
        MatchSet::Ip => with_ip(any, from, to),
        MatchSet::Udp => with_ip(any, from, to).and_then(|m| with_udp(m, from, to)),
        // All twelve fields. Untagged frames match the VLAN "none", which has no priority
        // (OF 1.0.1, 5.2.3).
        MatchSet::Exact => with_port(any, from)
            .and_then(|m| with_mac(m, from, to))
            .and_then(|m| m.with(Field::VlanVid, 0))
            .and_then(|m| with_ip(m, from, to))
            .and_then(|m| m.with(Field::IpDscp, 0))
            .and_then(|m| with_udp(m, from, to)),
    }
}

fn with_port(base: Match, from: Side<'_>) -> Result<Match, Refusal> {
    base.with(Field::InPort, from.port.0.into())
}

fn with_mac(base: Match, from: Side<'_>, to: Side<'_>) -> Result<Match, Refusal> {
    let mac = |side: Side<'_>| u128::from(MacAddr(side.host.mac).to_u64());
    base.with(Field::EthSrc, mac(from))?
        .with(Field::EthDst, mac(to))
}

fn with_ip(base: Match, from: Side<'_>, to: Side<'_>) -> Result<Match, Refusal> {
    let address = |side: Side<'_>| u128::from(side.host.address.to_bits());
    base.with(Field::EthType, 0x0800)?
        .with(Field::Ipv4Src, address(from))?
        .with(Field::Ipv4Dst, address(to))
}

fn with_udp(base: Match, from: Side<'_>, to: Side<'_>) -> Result<Match, Refusal> {
    base.with(Field::IpProto, 17)?
        .with(Field::UdpSrc, from.udp_port.into())?
        .with(Field::UdpDst, to.udp_port.into())
}
