//! Flows of a bridge with every frame counted: the tables that workers keep between two reports to
//! the control thread.
//!
//! The module is independent of the export format; [`netflow`](crate::netflow) encodes the flows.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use base::{Instant, PortNo};
use foldhash::fast::RandomState;
use packet::wire::ipv4::Ipv4;
use packet::{Depth, Frame, Headers, Network, Transport};

/// The maximum number of flows of a bridge in a worker between two reports: less than a megabyte.
pub const FLOWS_MAX: usize = 8192;

/// The output of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FlowOutput {
    /// No output: the frames are dropped.
    #[default]
    Nowhere,
    /// One port.
    Port(PortNo),
    /// Several ports, or one port several times.
    Several,
    /// All ports to which a learning switch floods.
    Flood,
}

impl FlowOutput {
    /// Adds `count` more output ports, the last of which is `last`.
    pub const fn and(self, count: usize, last: PortNo) -> Self {
        match (self, count) {
            (_, 0) => self,
            (Self::Nowhere, 1) => Self::Port(last),
            (Self::Flood, _) => Self::Flood,
            (Self::Nowhere | Self::Port(_) | Self::Several, _) => Self::Several,
        }
    }
}

/// The key of an IPv4 flow, from the frames as received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ipv4FlowKey {
    /// The ingress port.
    pub input: PortNo,
    /// The output.
    pub output: FlowOutput,
    /// The source and destination address.
    pub(crate) addresses: [Ipv4Addr; 2],
    /// The source and destination port of TCP, UDP and SCTP; zero, and type and code, of ICMP.
    pub ports: [u16; 2],
    /// The protocol above IPv4.
    pub(crate) protocol: u8,
    /// The type of service, without the two ECN bits.
    pub(crate) tos: u8,
}

/// The counters of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4FlowCounts {
    /// The arrival times of its first and last frame.
    pub(crate) seen: [Instant; 2],
    /// Frames.
    pub packets: u64,
    /// Their bytes, from the Ethernet header on.
    pub bytes: u64,
    /// The union of the TCP flags of its frames, without the ninth flag.
    pub(crate) flags: u8,
}

impl Ipv4FlowCounts {
    /// Adds counters of the same flow.
    pub(crate) fn add(&mut self, other: &Self) {
        let [first, last] = other.seen;
        self.seen = [self.seen[0].min(first), self.seen[1].max(last)];
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.flags |= other.flags;
    }
}

/// A flow: key and counters.
pub type Ipv4Flow = (Ipv4FlowKey, Ipv4FlowCounts);

/// Returns a frame as a flow of its own, without output yet; none for a frame other than IPv4.
pub fn flow_of_frame(frame: &Frame, input: PortNo, now: Instant) -> Option<Ipv4Flow> {
    // A malformed transport header hides the ports; the addresses are still valid.
    let headers = Headers::parse(frame, Depth::Transport)
        .or_else(|_| Headers::parse(frame, Depth::Network))
        .ok()?;
    let Network::Ipv4(Ipv4 {
        src,
        dst,
        protocol,
        tos,
        ..
    }) = headers.network
    else {
        return None;
    };
    let (ports, flags) = match headers.transport {
        Transport::Tcp(tcp) => ([tcp.src, tcp.dst], tcp.flags.to_be_bytes()[1]),
        Transport::Udp(udp) => ([udp.src, udp.dst], 0),
        Transport::Sctp(sctp) => ([sctp.src, sctp.dst], 0),
        Transport::Icmpv4(icmp) => ([0, u16::from_be_bytes([icmp.kind, icmp.code])], 0),
        Transport::Icmpv6(_) | Transport::None => ([0; 2], 0),
    };
    let key = Ipv4FlowKey {
        input,
        output: FlowOutput::Nowhere,
        addresses: [src, dst],
        ports,
        protocol: protocol.0,
        tos: tos & !3,
    };
    let counts = Ipv4FlowCounts {
        seen: [now; 2],
        packets: frame.wire_frames(),
        bytes: frame.wire_bytes(),
        flags,
    };
    Some((key, counts))
}

/// The flows of one bridge in one worker. Its memory is allocated at the start.
pub struct Ipv4FlowTable {
    indices: HashMap<Ipv4FlowKey, usize, RandomState>,
    flows: Vec<Ipv4Flow>,
}

impl Default for Ipv4FlowTable {
    fn default() -> Self {
        Self {
            indices: HashMap::with_capacity_and_hasher(FLOWS_MAX, RandomState::default()),
            flows: Vec::with_capacity(FLOWS_MAX),
        }
    }
}

impl Ipv4FlowTable {
    /// Counts a frame. Returns false if the table is full.
    #[inline]
    pub fn count(&mut self, (key, counts): &Ipv4Flow) -> bool {
        match self.indices.get(key) {
            Some(index) => self.flows[*index].1.add(counts),
            None if self.flows.len() >= FLOWS_MAX => return false,
            None => {
                self.indices.insert(*key, self.flows.len());
                self.flows.push((*key, *counts));
            }
        }
        true
    }

    /// Returns whether the table has no flows.
    pub const fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// Returns whether the table has no room for another flow.
    pub const fn is_full(&self) -> bool {
        self.flows.len() >= FLOWS_MAX
    }

    /// Removes and returns all flows, in the order in which they began.
    pub fn drain(&mut self) -> Vec<Ipv4Flow> {
        self.indices.clear();
        let flows = self.flows.clone();
        self.flows.clear();
        flows
    }
}

#[cfg(test)]
mod tests {
    use packet::wire::tcp;

    use super::*;

    fn key(number: u32) -> Ipv4FlowKey {
        Ipv4FlowKey {
            input: PortNo(1),
            output: FlowOutput::Port(PortNo(2)),
            addresses: [Ipv4Addr::from(number), Ipv4Addr::LOCALHOST],
            ports: [1, 2],
            protocol: 17,
            tos: 0,
        }
    }

    fn counts(at: u64, flags: u16) -> Ipv4FlowCounts {
        Ipv4FlowCounts {
            seen: [Instant::from_secs(at); 2],
            packets: 1,
            bytes: 60,
            flags: flags.to_be_bytes()[1],
        }
    }

    #[test]
    fn flow_table_adds_up_frames_and_drains_flows_once() {
        let mut flows = Ipv4FlowTable::default();
        assert!(flows.is_empty());
        assert!(flows.count(&(key(1), counts(1, tcp::SYN))));
        assert!(flows.count(&(key(2), counts(2, 0))));
        assert!(flows.count(&(key(1), counts(5, tcp::ACK))));
        let drained = flows.drain();
        assert_eq!((drained.len(), drained[0].0), (2, key(1)));
        let added = Ipv4FlowCounts {
            seen: [1, 5].map(Instant::from_secs),
            packets: 2,
            bytes: 120,
            flags: 0x12,
        };
        assert_eq!(drained[0].1, added);
        assert!(flows.is_empty() && flows.drain().is_empty());
    }

    #[test]
    fn full_flow_table_counts_only_known_flows() {
        let mut flows = Ipv4FlowTable::default();
        for number in 0..FLOWS_MAX {
            assert!(!flows.is_full());
            let number = u32::try_from(number).expect("few");
            assert!(flows.count(&(key(number), counts(1, 0))));
        }
        assert!(flows.is_full());
        assert!(!flows.count(&(key(u32::MAX), counts(2, 0))));
        assert!(flows.count(&(key(7), counts(2, 0))));
        assert_eq!(flows.drain().len(), FLOWS_MAX);
        assert!(flows.count(&(key(u32::MAX), counts(2, 0))));
    }

    #[test]
    fn flow_output_combines_all_exits() {
        let [one, two] = [1, 2].map(PortNo);
        let none = FlowOutput::Nowhere;
        assert_eq!(none.and(0, PortNo::ANY), none);
        assert_eq!(none.and(1, one), FlowOutput::Port(one));
        assert_eq!(none.and(1, one).and(1, two), FlowOutput::Several);
        assert_eq!(none.and(3, two), FlowOutput::Several);
        assert_eq!(FlowOutput::Flood.and(1, two), FlowOutput::Flood);
    }

    #[test]
    fn flow_key_exists_only_for_ipv4() {
        let parse = |text: &str| {
            let stack: packet::build::Stack = text.parse().expect("a stack");
            flow_of_frame(&stack.build(), PortNo(3), Instant::from_secs(1))
        };
        let (key, counts) =
            parse("eth / ipv4(src=10.0.0.1,dst=10.0.0.2,tos=0xbb) / tcp(src=5,dst=80,flags=SA)")
                .expect("a flow");
        assert_eq!(
            key.addresses.map(|it| it.to_string()),
            ["10.0.0.1", "10.0.0.2"]
        );
        assert_eq!((key.ports, key.protocol, key.tos), ([5, 80], 6, 0xb8));
        assert_eq!((key.input, key.output), (PortNo(3), FlowOutput::Nowhere));
        assert_eq!((counts.flags, counts.packets), (0x12, 1));
        let (key, _) = parse("eth / ipv4 / icmp(type=8,code=3)").expect("a flow");
        assert_eq!((key.ports, key.protocol), ([0, 0x803], 1));
        assert!(parse("eth / ipv6 / udp(src=1,dst=2)").is_none());
        assert!(parse("eth / arp").is_none());
    }
}
