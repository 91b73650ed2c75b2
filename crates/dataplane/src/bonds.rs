//! Bonds in `NORMAL`: several interfaces are one port. The forwarding database knows addresses
//! behind a bond under the lowest port number of its members. A frame leaves by one member, and is
//! accepted only from the member on which the other end does not send a duplicate.
//!
//! The control thread decides which member carries which hash bucket (`bond`); workers look it up
//! here.

mod recent_sources;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::{Instant, PortNo};
use packet::wire::Fragment;
use packet::wire::arp::Arp;
use packet::wire::ethernet::EtherType;
use packet::{Depth, Frame, Headers, Link, Network, Transport};

pub use recent_sources::RecentSources;

use super::normal::{NormalContext, NormalTarget};
use super::switching::SwitchingView;
use super::vlans::FrameVlans;
use l2::bond::{self, BUCKETS, BondEgress, BondVerdict, BondView};
use l2::fdb::FdbKey;

/// ARP opcodes (RFC 826).
const ARP_REQUEST: u16 = 1;
const ARP_ANSWER: u16 = 2;

/// The state of a bond for the workers.
#[derive(Clone, Debug)]
pub struct BondState {
    /// The port number under which the forwarding database knows addresses behind the bond.
    pub fdb_port: PortNo,
    /// The egress members and the ingress rules.
    pub view: BondView,
    /// Bytes sent by the bond.
    pub loads: Arc<BondLoads>,
    /// Sources that sent on other ports within the last second.
    pub recent_sources: Arc<RecentSources>,
    /// Sources that sent a gratuitous ARP on other ports: the same ARP from the bond is an echo.
    pub announced: Arc<RecentSources>,
}

/// Bytes sent by a bond, by hash bucket.
#[derive(Debug)]
pub struct BondLoads(Vec<WorkerLoads>);

/// The bytes of one worker, by bucket, in cache lines that no other worker writes to.
#[derive(Debug)]
#[repr(align(64))]
struct WorkerLoads([AtomicU64; BUCKETS]);

impl BondLoads {
    /// Returns zero counters for this number of sending threads.
    pub fn new(writers: usize) -> Arc<Self> {
        let row = || WorkerLoads(std::array::from_fn(|_| AtomicU64::new(0)));
        Arc::new(Self((0..writers).map(|_| row()).collect()))
    }

    /// Adds bytes. Called by the thread `writer` only.
    fn add(&self, writer: usize, hash: u32, bytes: usize) {
        if let Some(WorkerLoads(cells)) = self.0.get(writer) {
            let cell = &cells[bond::bucket(hash)];
            cell.store(
                cell.load(Ordering::Relaxed) + bytes as u64,
                Ordering::Relaxed,
            );
        }
    }

    /// Returns the bytes of all threads, by bucket.
    pub fn read(&self) -> [u64; BUCKETS] {
        std::array::from_fn(|place| {
            let cells = self.0.iter().map(|WorkerLoads(cells)| &cells[place]);
            cells.map(|cell| cell.load(Ordering::Relaxed)).sum()
        })
    }
}

/// A frame on egress with the inputs of the member selection.
#[derive(Clone, Copy)]
pub struct EgressFrame<'a> {
    /// The frame.
    pub frame: &'a Frame,
    /// Its link layer.
    pub link: &'a Link,
    /// The VLANs of the frame.
    pub within: FrameVlans,
    /// The thread that sends the frame and counts its bytes; none for a trace.
    pub writer: Option<usize>,
}

impl EgressFrame<'_> {
    fn hash(&self, view: &BondView) -> u32 {
        match view.egress {
            BondEgress::None | BondEgress::One(_) => 0,
            BondEgress::BySource(_) => {
                bond::hash_source(self.link.src, self.within.vid, view.basis)
            }
            BondEgress::ByFlow(_) => {
                hash_of_flow(self.frame, self.link, self.within.vid, view.basis)
            }
        }
    }
}

impl BondState {
    /// Returns the egress member of a frame, and its hash.
    fn choose(&self, leaving: &EgressFrame<'_>) -> Option<(PortNo, u32)> {
        let hash = leaving.hash(&self.view);
        Some((self.view.egress_port(hash)?, hash))
    }

    /// Returns the egress member of a frame, and counts its bytes.
    pub fn exit(&self, leaving: &EgressFrame<'_>) -> Option<PortNo> {
        let (exit, hash) = self.choose(leaving)?;
        self.count(leaving, hash);
        Some(exit)
    }

    fn count(&self, leaving: &EgressFrame<'_>, hash: u32) {
        if let Some(writer) = leaving.writer {
            self.loads.add(writer, hash, leaving.frame.len());
        }
    }
}

impl<'a> NormalContext<'a> {
    /// Returns the bond of an interface, if it is a member of one.
    fn bond(&self, port: PortNo) -> Option<&'a BondState> {
        self.switching.and_then(|switching| switching.bond(port))
    }

    /// Returns the port under which the forwarding database knows addresses behind an interface.
    pub fn fdb_port(&self, port: PortNo) -> PortNo {
        self.bond(port).map_or(port, |bond| bond.fdb_port)
    }

    /// Records a source on `from` for all other bonds, before the forwarding database learns it.
    pub(super) fn record_source(&self, station: FdbKey, from: PortNo, now: Instant) {
        let fdb_port = self.fdb_port(from);
        let bonds = self.switching.into_iter().flat_map(SwitchingView::bonds);
        for bond in bonds.filter(|bond| bond.fdb_port != fdb_port) {
            bond.recent_sources.note(station, now);
        }
    }

    /// Records a gratuitous ARP that was received on a port outside any bond.
    pub(super) fn record_announcement(
        &self,
        (link, bytes): (&Link, &[u8]),
        from: PortNo,
        vid: u16,
        now: Instant,
    ) {
        let Some(switching) = self.switching.filter(|_| announces(link, bytes)) else {
            return;
        };
        if switching.bond(from).is_none() {
            let station = FdbKey { vid, mac: link.src };
            let bonds = switching.bonds();
            bonds.for_each(|bond| bond.announced.note(station, now));
        }
    }

    /// Returns the reason why the bond of `from` drops a frame of the VLAN `vid`, if it does. `now`
    /// is none for a trace.
    pub(super) fn ingress_drop(
        &self,
        (link, bytes): (&Link, &[u8]),
        from: PortNo,
        vid: u16,
        now: Option<Instant>,
    ) -> Option<NormalTarget> {
        let bond = self.bond(from)?;
        match bond.view.verdict(from, link.dst) {
            BondVerdict::Accept => None,
            BondVerdict::Drop => Some(NormalTarget::Surplus),
            BondVerdict::DropIfMoved => {
                let sender = FdbKey { vid, mac: link.src };
                let is_heard_elsewhere =
                    now.is_some_and(|now| bond.recent_sources.has(sender, now));
                let station = self.fdb.find(sender);
                let is_known_elsewhere =
                    station.is_some_and(|station| station.port() != bond.fdb_port);
                if !is_heard_elsewhere && !is_known_elsewhere {
                    return None;
                }
                // A gratuitous ARP proves a move, unless another port received the same within the
                // last seconds.
                let is_echo = || now.is_some_and(|now| bond.announced.has(sender, now));
                let is_believed = announces(link, bytes) && !is_echo();
                (!is_believed).then_some(NormalTarget::Looped)
            }
        }
    }

    /// Returns the egress interface for an address behind `port`.
    pub fn exit(&self, port: PortNo, leaving: &EgressFrame<'_>) -> Option<PortNo> {
        match self.bond(port) {
            None => Some(port),
            Some(bond) => bond.exit(leaving),
        }
    }

    /// Returns a filter over the interfaces of a flood: one member of each bond, but none of the
    /// bond that received the frame.
    pub(super) fn one_per_bond(
        &self,
        from: PortNo,
        leaving: EgressFrame<'_>,
    ) -> impl FnMut(&PortNo) -> bool {
        let fdb_port = self.fdb_port(from);
        // A cache of the last bond and its egress member: the numbers of members are often
        // adjacent.
        let mut last = None;
        move |port| {
            let Some(bond) = self.bond(*port) else {
                return true;
            };
            if bond.fdb_port == fdb_port {
                return false;
            }
            let chosen = match last {
                Some((of, chosen)) if of == bond.fdb_port => chosen,
                _ => bond.choose(&leaving),
            };
            last = Some((bond.fdb_port, chosen));
            match chosen {
                Some((exit, hash)) if exit == *port => {
                    bond.count(&leaving, hash);
                    true
                }
                _ => false,
            }
        }
    }
}

/// Returns whether a frame is a gratuitous ARP: a broadcast ARP request for the sender's own
/// address or, from some systems, a broadcast reply (RFC 5227, 3).
fn announces(link: &Link, bytes: &[u8]) -> bool {
    if link.eth_type != EtherType::ARP || !link.dst.is_broadcast() {
        return false;
    }
    let arp = bytes.get(link.payload_at()..).map(Arp::parse);
    let Some(Ok(Arp {
        op,
        addresses: Some(addresses),
    })) = arp
    else {
        return false;
    };
    op == ARP_ANSWER || (op == ARP_REQUEST && addresses.spa == addresses.tpa)
}

/// Returns the hash of a flow: of the addresses and ports that all frames of the flow have.
fn hash_of_flow(frame: &Frame, link: &Link, vid: u16, basis: u32) -> u32 {
    let hash = bond::hash_source(link.src, vid, basis);
    let hash = bond::hash_source(link.dst, link.eth_type.0, hash);
    let Some(headers) = [Depth::Transport, Depth::Network]
        .into_iter()
        .find_map(|depth| Headers::parse(frame, depth).ok())
    else {
        return hash;
    };
    let (addresses, fragment) = match &headers.network {
        Network::Ipv4(ip) => ([IpAddr::V4(ip.src), IpAddr::V4(ip.dst)], ip.fragment),
        Network::Ipv6(ip) => ([IpAddr::V6(ip.src), IpAddr::V6(ip.dst)], ip.fragment),
        _ => return hash,
    };
    // Only the first fragment has ports.
    let (src, dst) = match &headers.transport {
        _ if fragment != Fragment::No => (0, 0),
        Transport::Tcp(tcp) => (tcp.src, tcp.dst),
        Transport::Udp(udp) => (udp.src, udp.dst),
        Transport::Sctp(sctp) => (sctp.src, sctp.dst),
        _ => (0, 0),
    };
    let octets = |address: IpAddr| match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    };
    let [one, two] = addresses.map(octets);
    let protocol = headers.ip_proto().map_or(0, |protocol| protocol.0);
    let words = [one, two].concat();
    let words = words.chunks_exact(4).map(|word| {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(word);
        u32::from_be_bytes(bytes)
    });
    let ports = u32::from(src) << 16 | u32::from(dst);
    bond::hash_words(words.chain([ports, protocol.into()]), hash)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use packet::MacAddr;
    use packet::wire::arp::ArpAddresses;

    use super::*;
    use config::{AGEING_TIME, BondConfig, LogicalPort, SwitchingConfig};
    use l2::bond::{Bond, BondMode, BondSettings};
    use l2::fdb::{FdbView, ForwardingDatabase};

    const BOND: [PortNo; 2] = [PortNo(2), PortNo(3)];
    const HOST: PortNo = PortNo(1);

    /// Returns a configuration with ports 2 and 3 as a bond, beside others.
    fn switching(mode: BondMode) -> Arc<SwitchingView> {
        let settings = BondSettings {
            mode,
            ..BondSettings::default()
        };
        let mut bond = Bond::new(settings);
        bond.configure(settings, &BOND, Instant::START);
        for port in BOND {
            bond.handle_carrier(port, true, Instant::START);
        }
        let config = SwitchingConfig {
            ports: vec![LogicalPort {
                name: "bond0".to_owned(),
                members: BOND.to_vec(),
                bond: Some(BondConfig::default()),
                ..LogicalPort::default()
            }],
            ..SwitchingConfig::default()
        };
        let view = SwitchingView::compile(&config).expect("a bond is more than a plain port");
        let state = BondState {
            fdb_port: BOND[0],
            view: bond.view(),
            loads: BondLoads::new(1),
            recent_sources: Arc::default(),
            announced: RecentSources::announced().into(),
        };
        view.with_bonds(|name| (name == "bond0").then(|| state.clone()))
    }

    /// Returns a forwarding database with one entry on the host port and one on the bond.
    fn fdb() -> FdbView {
        let mut table = ForwardingDatabase::new(8, AGEING_TIME);
        for (number, port) in [(1, HOST), (2, BOND[0])] {
            let mac = MacAddr::from_u64(number);
            table.learn(FdbKey { vid: 0, mac }, port, Instant::START);
        }
        table.view()
    }

    fn frame(dst: u64, src: u64) -> Frame {
        let [dst, src] = [dst, src].map(|number| MacAddr::from_u64(number).0);
        Frame::from_bytes(&[&dst[..], &src, &[0x88, 0xb5], &[0; 46]].concat())
    }

    /// Returns those of ports 1 to 4 that send a flooded frame.
    fn flooded(view: &SwitchingView, from: PortNo, frame: &Frame) -> Vec<u32> {
        let (fdb, link) = (fdb(), Link::parse(frame.bytes()).expect("well formed"));
        let normal_context = NormalContext {
            mirrors: None,
            fdb: &fdb,
            switching: Some(view),
            multicast: None,
        };
        let leaving = EgressFrame {
            frame,
            link: &link,
            within: FrameVlans::of_vlan(0),
            writer: Some(0),
        };
        let ports = (1..=4).map(PortNo).filter(|port| *port != from);
        let exits = ports.filter(normal_context.one_per_bond(from, leaving));
        exits.map(|port| port.0).collect()
    }

    #[test]
    fn flood_uses_one_member_and_never_the_ingress_bond() {
        let view = switching(BondMode::BalanceSlb);
        let exits = (0..64).map(|src| flooded(&view, HOST, &frame(99, src)));
        let mut seen: Vec<_> = exits.collect();
        seen.sort();
        seen.dedup();
        assert_eq!(seen, [[2, 4], [3, 4]]);
        assert_eq!(flooded(&view, BOND[1], &frame(99, 2)), [1, 4]);
        let bytes = |view: &SwitchingView| {
            let bond = view.bond(BOND[1]).expect("it is of the bond");
            bond.loads.read().iter().sum::<u64>()
        };
        assert_eq!(bytes(&view), 64 * 60, "each is counted once");
    }

    #[test]
    fn bond_learns_addresses_and_accepts_a_frame_once() {
        let many = MacAddr::BROADCAST.to_u64();
        let fdb = fdb();
        for (mode, [first, second]) in [
            (BondMode::ActiveBackup, [None, Some(NormalTarget::Surplus)]),
            (BondMode::BalanceSlb, [None, Some(NormalTarget::Surplus)]),
        ] {
            let view = switching(mode);
            let normal_context = NormalContext {
                mirrors: None,
                fdb: &fdb,
                switching: Some(&view),
                multicast: None,
            };
            let bar = |port, dst, src| {
                let frame = frame(dst, src);
                let link = Link::parse(frame.bytes()).expect("well formed");
                normal_context.ingress_drop((&link, frame.bytes()), port, 0, Some(Instant::START))
            };
            assert_eq!(BOND.map(|port| bar(port, many, 2)), [first, second]);
            // A frame of a local source that returns, even before the forwarding database has the
            // source.
            assert_eq!(bar(BOND[0], many, 9), None);
            let station = FdbKey {
                vid: 0,
                mac: MacAddr::from_u64(9),
            };
            normal_context.record_source(station, HOST, Instant::START);
            let looped = (mode == BondMode::BalanceSlb).then_some(NormalTarget::Looped);
            assert_eq!(bar(BOND[0], 2, 1), looped);
            assert_eq!(bar(BOND[0], many, 9), looped);
            assert_eq!(bar(HOST, many, 1), None);
            assert_eq!(BOND.map(|port| normal_context.fdb_port(port)), [BOND[0]; 2]);
        }
    }

    #[test]
    fn gratuitous_arp_on_a_bond_moves_the_address_unless_it_is_an_echo() {
        let fdb = fdb();
        let view = switching(BondMode::BalanceSlb);
        let normal_context = NormalContext {
            mirrors: None,
            fdb: &fdb,
            switching: Some(&view),
            multicast: None,
        };
        let arp = |dst: u64, op: u16, target: u8| {
            let addresses = ArpAddresses {
                sha: MacAddr::from_u64(1),
                spa: [10, 0, 0, 1].into(),
                tha: MacAddr::default(),
                tpa: [10, 0, 0, target].into(),
            };
            let [dst, src] = [dst, 1].map(|number| MacAddr::from_u64(number).0);
            Frame::from_bytes(&[&dst[..], &src, &[8, 6], &addresses.emit(op)].concat())
        };
        let bar = |frame: &Frame, now| {
            let link = Link::parse(frame.bytes()).expect("well formed");
            normal_context.ingress_drop((&link, frame.bytes()), BOND[0], 0, Some(now))
        };
        let many = MacAddr::BROADCAST.to_u64();
        let now = Instant::from_secs(9);
        let looped = Some(NormalTarget::Looped);
        let cases = [
            (arp(many, 1, 1), None),
            (arp(many, 2, 9), None),
            (arp(many, 1, 9), looped),
            (arp(2, 2, 1), looped),
            (arp(many, 3, 1), looped),
            (frame(many, 1), looped),
        ];
        for (frame, wanted) in &cases {
            assert_eq!(bar(frame, now), *wanted, "{:?}", frame.bytes());
        }
        // An announcement on the host port returns by the bond; frames of other kinds are none.
        let [(request, _), (answer, _), (question, _), ..] = &cases;
        let note = |frame: &Frame, from, now| {
            let link = Link::parse(frame.bytes()).expect("well formed");
            normal_context.record_announcement((&link, frame.bytes()), from, 0, now);
        };
        note(request, BOND[1], now);
        note(question, HOST, now);
        assert_eq!(bar(request, now), None);
        note(answer, HOST, now);
        let lock = Duration::from_secs(5);
        assert_eq!(bar(request, now + lock / 2), looped);
        assert_eq!(bar(request, now + lock), None);
    }

    #[test]
    fn flow_hash_is_constant_per_flow_and_spreads_flows() {
        let hash = |port: u16, text: &str| {
            let stack = format!(
                "eth(dst=02:00:00:00:00:02,src=02:00:00:00:00:01)/ipv4(src=10.0.0.1,dst=10.0.0.2{text})/udp(src={port},dst=9)"
            );
            let stack: packet::build::Stack = stack.parse().expect("a stack");
            let frame = stack.build();
            let link = Link::parse(frame.bytes()).expect("well formed");
            hash_of_flow(&frame, &link, 0, 0)
        };
        assert_eq!(hash(1, ""), hash(1, ",ttl=9"));
        let buckets: std::collections::BTreeSet<_> =
            (0..256).map(|port| bond::bucket(hash(port, ""))).collect();
        assert!(buckets.len() > 100, "{}", buckets.len());
    }
}
