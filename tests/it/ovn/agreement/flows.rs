//! Random flows of a topology: a router between two switches with three hosts each.
//!
//! ```text
//!   host 1   host 2   host 3          host 4   host 5   host 6
//!     |p1      |p2      |p3             |p4      |p5      |p6
//!   +------------------------+        +------------------------+
//!   | sw0      10.1.0.0/24   |---r0---| sw1      10.2.0.0/24   |
//!   +------------------------+        +------------------------+
//! ```
//!
//! Ports 1, 2, 4 and 5 have port security. Port 6 has the address `unknown`.

use std::net::Ipv4Addr;

use base::SplitMix64;

use super::packets::{Content, Mac, Packet, TcpFlags, Transport, number_of};

/// Hosts of the topology.
pub(super) const HOSTS: [u8; 6] = [1, 2, 3, 4, 5, 6];

/// Hosts whose ports refuse other source addresses.
pub(super) const SECURED: [u8; 4] = [1, 2, 4, 5];

/// Virtual address and port of the load balancer.
pub(super) const VIRTUAL: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 100);
pub(super) const VIRTUAL_PORT: u16 = 8080;

/// An address that no router has a route to.
const WITHOUT_ROUTE: Ipv4Addr = Ipv4Addr::new(172, 30, 0, 1);

/// An Ethernet address and an IPv4 address of no host.
const FOREIGN_MAC: Mac = Mac([2, 0, 0, 0, 9, 9]);
const FOREIGN_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 8, 0, 9);

/// First host part of unknown addresses; each is the destination of one flow.
const FIRST_UNKNOWN: u8 = 100;

/// State of the connection of a packet, in each zone that it passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ConnectionState {
    New,
    Established,
    Reply,
    Invalid,
}

impl ConnectionState {
    /// Flags as options of `ovn-trace` and `ofproto/trace`.
    pub(super) const fn flags(self) -> &'static str {
        match self {
            Self::New => "trk,new",
            Self::Established => "trk,est",
            Self::Reply => "trk,est,rpl",
            Self::Invalid => "trk,inv",
        }
    }
}

/// Kind of a flow, by its destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FlowKind {
    /// Host of the same switch.
    Switched,
    /// Host of the other switch.
    Routed,
    /// The router's own address.
    Router,
    /// Ethernet address of no host.
    UnknownMac,
    /// Address of no host in the other subnet.
    UnknownAddress,
    /// Address outside all subnets.
    WithoutRoute,
    /// The load balancer.
    Virtual,
    /// All hosts.
    Broadcast,
    /// ARP request.
    Arp,
}

impl FlowKind {
    /// Number of kinds.
    pub(super) const COUNT: usize = 9;
}

/// Kinds, and their shares: more for those that have more variants.
const KINDS: [(FlowKind, usize); FlowKind::COUNT] = [
    (FlowKind::Switched, 4),
    (FlowKind::Routed, 6),
    (FlowKind::Router, 2),
    (FlowKind::UnknownMac, 1),
    (FlowKind::UnknownAddress, 1),
    (FlowKind::WithoutRoute, 1),
    (FlowKind::Virtual, 2),
    (FlowKind::Broadcast, 1),
    (FlowKind::Arp, 2),
];

/// A flow: one packet, and the packets that its connection needs before.
#[derive(Debug)]
pub(super) struct TestFlow {
    pub(super) kind: FlowKind,
    /// Host that sends the packet.
    pub(super) from: u8,
    pub(super) packet: Packet,
    pub(super) state: ConnectionState,
    /// Host that receives the packet if nothing refuses it.
    to: Option<u8>,
}

/// Generator of flows.
pub(super) struct FlowGenerator {
    random: SplitMix64,
    next_unknown: u8,
}

pub(super) fn mac(host: u8) -> Mac {
    Mac([2, 0, 0, 0, 0, host])
}

/// Number of the switch of a host.
const fn switch(host: u8) -> u8 {
    if host <= 3 { 1 } else { 2 }
}

pub(super) const fn address(host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, switch(host), 0, host)
}

/// The router's addresses in the subnet of a host.
fn gateway(host: u8) -> (Mac, Ipv4Addr) {
    let number = switch(host);
    (
        Mac([2, 0, 0, 0, 1, number]),
        Ipv4Addr::new(10, number, 0, 254),
    )
}

impl FlowGenerator {
    pub(super) const fn new(seed: u64) -> Self {
        Self {
            random: SplitMix64::new(seed),
            next_unknown: FIRST_UNKNOWN,
        }
    }

    fn choose<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.random.below(values.len())]
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.random.below(count) == 0
    }

    /// A host other than `from`, of the same switch or of the other one.
    fn peer(&mut self, from: u8, is_same_switch: bool) -> u8 {
        let hosts = HOSTS.into_iter();
        let hosts: Vec<_> = hosts
            .filter(|host| *host != from && (switch(*host) == switch(from)) == is_same_switch)
            .collect();
        self.choose(&hosts)
    }

    /// The flow with this index.
    pub(super) fn flow(&mut self, index: usize) -> TestFlow {
        let kinds = KINDS.map(|(kind, share)| vec![kind; share]).concat();
        let (kind, from) = (self.choose(&kinds), self.choose(&HOSTS));
        if kind == FlowKind::Arp {
            return self.arp_flow(index, from);
        }
        let (router, router_address) = gateway(from);
        let (eth_dst, dst, to) = match kind {
            FlowKind::Switched => {
                let to = self.peer(from, true);
                (mac(to), address(to), Some(to))
            }
            FlowKind::Routed => {
                let to = self.peer(from, false);
                (router, address(to), Some(to))
            }
            FlowKind::Router => (router, router_address, None),
            FlowKind::UnknownMac => (FOREIGN_MAC, FOREIGN_ADDRESS, None),
            FlowKind::UnknownAddress => {
                let other = self.peer(from, false);
                let number = self.next_unknown;
                self.next_unknown += 1;
                (router, Ipv4Addr::new(10, switch(other), 0, number), None)
            }
            FlowKind::WithoutRoute => (router, WITHOUT_ROUTE, None),
            FlowKind::Virtual => (router, VIRTUAL, None),
            FlowKind::Broadcast | FlowKind::Arp => (Mac::BROADCAST, Ipv4Addr::BROADCAST, None),
        };
        let mut flow = TestFlow {
            kind,
            from,
            packet: Packet {
                eth_src: mac(from),
                eth_dst,
                content: Content::Ip {
                    src: address(from),
                    dst,
                    ttl: if self.one_in(6) { 1 } else { 64 },
                    transport: self.transport(index, kind),
                },
            },
            state: ConnectionState::New,
            to,
        };
        if !self.spoof(&mut flow) {
            self.choose_state(&mut flow);
        }
        flow
    }

    fn arp_flow(&mut self, index: usize, from: u8) -> TestFlow {
        let (router, router_address) = gateway(from);
        let (near, far) = (self.peer(from, true), self.peer(from, false));
        let [a, b, c, _] = router_address.octets();
        let unknown = Ipv4Addr::new(a, b, c, FIRST_UNKNOWN - 1);
        let tpa = self.choose(&[address(near), address(far), router_address, unknown]);
        let mut flow = TestFlow {
            kind: FlowKind::Arp,
            from,
            packet: Packet {
                eth_src: mac(from),
                eth_dst: self.choose(&[Mac::BROADCAST, Mac::BROADCAST, router]),
                content: Content::Arp {
                    sha: mac(from),
                    spa: address(from),
                    tpa,
                    number: number_of(index),
                },
            },
            state: ConnectionState::New,
            to: None,
        };
        self.spoof(&mut flow);
        flow
    }

    /// Replaces a source address in one of four flows. Port 6 is spared: the logical switch would
    /// learn its other Ethernet addresses.
    fn spoof(&mut self, flow: &mut TestFlow) -> bool {
        let spoofed = self.random.below(8);
        let packet = &mut flow.packet;
        match (spoofed, &mut packet.content) {
            _ if flow.from == 6 => return false,
            (0, _) => packet.eth_src = FOREIGN_MAC,
            (1, Content::Arp { sha, .. }) if flow.from == 2 || flow.from == 4 => *sha = FOREIGN_MAC,
            (1, Content::Arp { spa: source, .. } | Content::Ip { src: source, .. }) => {
                *source = FOREIGN_ADDRESS;
            }
            _ => return false,
        }
        true
    }

    fn transport(&mut self, index: usize, kind: FlowKind) -> Transport {
        let src = number_of(index);
        let tcp = match kind {
            FlowKind::Virtual => [VIRTUAL_PORT, VIRTUAL_PORT, VIRTUAL_PORT, 80],
            _ => [80, 81, 82, 22],
        };
        match self.random.below(5) {
            0 | 1 => Transport::Tcp {
                src,
                dst: self.choose(&tcp),
                flags: TcpFlags::Syn,
            },
            2 | 3 => Transport::Udp {
                src,
                dst: self.choose(&[53, 123, 5000]),
            },
            _ => Transport::Icmp {
                is_reply: false,
                id: src,
            },
        }
    }

    /// Chooses the state of a connection between two hosts, and the packet for it.
    fn choose_state(&mut self, flow: &mut TestFlow) {
        use ConnectionState::{Established, Invalid, New, Reply};
        let state = self.choose(&[New, New, Established, Reply, Invalid]);
        let Some(to) = flow.to.filter(|_| flow.packet.ttl() != Some(1)) else {
            return;
        };
        let flags = match state {
            New => return,
            Established => TcpFlags::Ack,
            Invalid | Reply => TcpFlags::SynAck,
        };
        let is_tcp = flow.packet.set_flags(flags);
        match state {
            Invalid if !is_tcp => return,
            // The peer's packet, so that the number is the port of the client.
            Reply => {
                flow.packet = reverse(&flow.packet, flow.from, to);
                (flow.from, flow.to) = (to, Some(flow.from));
            }
            _ => {}
        }
        flow.state = state;
    }
}

impl TestFlow {
    /// The hosts and packets that begin the connection, in order, and the receiver of the first.
    pub(super) fn opening(&self) -> Option<(Vec<(u8, Packet)>, u8)> {
        let to = self.to?;
        let forward = self.packet.with_flags(TcpFlags::Syn);
        let backward = reverse(&self.packet, self.from, to);
        match self.state {
            ConnectionState::New | ConnectionState::Invalid => None,
            ConnectionState::Established => Some((
                vec![
                    (self.from, forward),
                    (to, backward.with_flags(TcpFlags::SynAck)),
                ],
                to,
            )),
            ConnectionState::Reply => {
                let first = backward.with_flags(TcpFlags::Syn);
                Some((vec![(to, first)], self.from))
            }
        }
    }

    /// Makes the packet the first of its connection. A reply to an ICMP request begins none.
    pub(super) fn become_first(&mut self) {
        self.packet.set_flags(TcpFlags::Syn);
        self.state = match self.packet.is_icmp_reply() {
            true => ConnectionState::Invalid,
            false => ConnectionState::New,
        };
    }
}

/// The answer of host `to` to a packet of host `from`.
fn reverse(packet: &Packet, from: u8, to: u8) -> Packet {
    let mut packet = *packet;
    packet.eth_src = mac(to);
    packet.eth_dst = match switch(from) == switch(to) {
        true => mac(from),
        false => gateway(to).0,
    };
    packet.swap_ends();
    packet
}

/// Index of the first [`mark`].
pub(super) const FIRST_MARK: usize = 9_000;

/// A packet of a host that its neighbours receive: an ARP request for an address of no host.
pub(super) fn mark(host: u8, index: usize) -> Packet {
    Packet {
        eth_src: mac(host),
        eth_dst: Mac::BROADCAST,
        content: Content::Arp {
            sha: mac(host),
            spa: address(host),
            tpa: Ipv4Addr::new(10, switch(host), 0, FIRST_UNKNOWN - 1),
            number: number_of(index),
        },
    }
}

/// Index of [`controller_probe`].
pub(super) const PROBE: usize = 9_999;

/// A packet of host 1 that the controller answers.
pub(super) fn controller_probe() -> Packet {
    Packet {
        eth_src: mac(1),
        eth_dst: gateway(1).0,
        content: Content::Ip {
            src: address(1),
            dst: address(4),
            ttl: 1,
            transport: Transport::Udp {
                src: number_of(PROBE),
                dst: 123,
            },
        },
    }
}
