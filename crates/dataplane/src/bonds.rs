//! Bonds in `NORMAL`: several interfaces are one port. Stations behind it are known under the
//! lowest of their numbers, a frame leaves by one of them, and is taken only where the other end
//! does not send it twice.
//!
//! Which member carries what, the control thread says (`bond`); here that is looked up.

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

/// What an ARP packet is (RFC 826).
const ARP_REQUEST: u16 = 1;
const ARP_ANSWER: u16 = 2;

/// A bond, as workers know it.
#[derive(Clone, Debug)]
pub struct BondState {
    /// Under which number its stations are known.
    pub home: PortNo,
    /// By whom frames leave, and which are taken.
    pub view: BondView,
    /// What has left by it.
    pub loads: Arc<BondLoads>,
    /// Who spoke at other ports a moment ago.
    pub recent_sources: Arc<RecentSources>,
    /// Who announced itself at other ports: that such news comes by the bond, too, says nothing.
    pub announced: Arc<RecentSources>,
}

/// What has left by a bond.
#[derive(Debug)]
pub struct BondLoads(Vec<WorkerLoads>);

/// Bytes by bucket, of one worker, in cache lines that no other writes to.
#[derive(Debug)]
#[repr(align(64))]
struct WorkerLoads([AtomicU64; BUCKETS]);

impl BondLoads {
    /// Nothing yet, of so many who send.
    pub fn new(writers: usize) -> Arc<Self> {
        let row = || WorkerLoads(std::array::from_fn(|_| AtomicU64::new(0)));
        Arc::new(Self((0..writers).map(|_| row()).collect()))
    }

    /// The one who sends: so many bytes more. Nobody else writes there.
    fn add(&self, writer: usize, hash: u32, bytes: usize) {
        if let Some(WorkerLoads(cells)) = self.0.get(writer) {
            let cell = &cells[bond::bucket(hash)];
            cell.store(
                cell.load(Ordering::Relaxed) + bytes as u64,
                Ordering::Relaxed,
            );
        }
    }

    /// All of it, by bucket.
    pub fn read(&self) -> [u64; BUCKETS] {
        std::array::from_fn(|place| {
            let cells = self.0.iter().map(|WorkerLoads(cells)| &cells[place]);
            cells.map(|cell| cell.load(Ordering::Relaxed)).sum()
        })
    }
}

/// A frame that is to leave, as bonds look at it.
#[derive(Clone, Copy)]
pub struct EgressFrame<'a> {
    /// The frame.
    pub frame: &'a Frame,
    /// Its link layer.
    pub link: &'a Link,
    /// The VLANs it is in.
    pub within: FrameVlans,
    /// Who sends it, and counts that; nobody, if it is only asked about.
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
    /// By which of its members a frame leaves, and its hash.
    fn choose(&self, leaving: &EgressFrame<'_>) -> Option<(PortNo, u32)> {
        let hash = leaving.hash(&self.view);
        Some((self.view.egress_port(hash)?, hash))
    }

    /// The same, of one that does leave: it is counted.
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
    /// The bond that an interface belongs to, if it does.
    fn bond(&self, port: PortNo) -> Option<&'a BondState> {
        self.switching.and_then(|switching| switching.bond(port))
    }

    /// Under which number the stations behind an interface are known.
    pub fn home(&self, port: PortNo) -> PortNo {
        self.bond(port).map_or(port, |bond| bond.home)
    }

    /// Has bonds know of a station that the table does not know behind `from` yet.
    pub(super) fn note_heard(&self, station: FdbKey, from: PortNo, now: Instant) {
        let home = self.home(from);
        let bonds = self.switching.into_iter().flat_map(SwitchingView::bonds);
        for bond in bonds.filter(|bond| bond.home != home) {
            bond.recent_sources.note(station, now);
        }
    }

    /// Has bonds know of a station that announces itself by a port that is no bond.
    pub(super) fn note_announced(
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

    /// Why a frame of the VLAN `vid` that came in by `from` is not taken, if it is not. `now` is
    /// none of one that is only asked about.
    pub(super) fn bar(
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
                let station = self.stations.find(sender);
                let is_known_elsewhere = station.is_some_and(|station| station.port() != bond.home);
                if !is_heard_elsewhere && !is_known_elsewhere {
                    return None;
                }
                // One that says that it has moved is believed, unless it said so elsewhere just now.
                let is_echo = || now.is_some_and(|now| bond.announced.has(sender, now));
                let is_believed = announces(link, bytes) && !is_echo();
                (!is_believed).then_some(NormalTarget::Looped)
            }
        }
    }

    /// By which interface a frame leaves that goes to the station behind `port`.
    pub fn exit(&self, port: PortNo, leaving: &EgressFrame<'_>) -> Option<PortNo> {
        match self.bond(port) {
            None => Some(port),
            Some(bond) => bond.exit(leaving),
        }
    }

    /// The interfaces by which a frame leaves of those that flood it: one of each bond, but none of
    /// that by which it came.
    pub(super) fn one_of_each(
        &self,
        from: PortNo,
        leaving: EgressFrame<'_>,
    ) -> impl FnMut(&PortNo) -> bool {
        let home = self.home(from);
        // The bond that was met last, and its exit: members stand near together.
        let mut last = None;
        move |port| {
            let Some(bond) = self.bond(*port) else {
                return true;
            };
            if bond.home == home {
                return false;
            }
            let chosen = match last {
                Some((of, chosen)) if of == bond.home => chosen,
                _ => bond.choose(&leaving),
            };
            last = Some((bond.home, chosen));
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

/// Whether a frame says to all where its sender is now: an ARP request for its own address or, as
/// some systems have it, an answer to nobody (RFC 5227, 3).
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

/// A hash of a flow: of addresses and ports, as far as all frames of the flow have them.
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
    // Only the first of several fragments has ports.
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

    /// Ports 2 and 3 as one, beside others.
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
            home: BOND[0],
            view: bond.view(),
            loads: BondLoads::new(1),
            recent_sources: Arc::default(),
            announced: RecentSources::announced().into(),
        };
        view.with_bonds(|name| (name == "bond0").then(|| state.clone()))
    }

    /// A station behind the host's port, and one behind the bond.
    fn stations() -> FdbView {
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

    /// By which of ports 1 to 4 a frame leaves that is flooded.
    fn flooded(view: &SwitchingView, from: PortNo, frame: &Frame) -> Vec<u32> {
        let (stations, link) = (stations(), Link::parse(frame.bytes()).expect("well formed"));
        let knowledge = NormalContext {
            mirrors: None,
            stations: &stations,
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
        let exits = ports.filter(knowledge.one_of_each(from, leaving));
        exits.map(|port| port.0).collect()
    }

    #[test]
    fn what_is_flooded_leaves_by_one_member_and_never_by_its_own_bond() {
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
    fn what_comes_is_known_at_the_bond_and_taken_once() {
        let many = MacAddr::BROADCAST.to_u64();
        let stations = stations();
        for (mode, [first, second]) in [
            (BondMode::ActiveBackup, [None, Some(NormalTarget::Surplus)]),
            (BondMode::BalanceSlb, [None, Some(NormalTarget::Surplus)]),
        ] {
            let view = switching(mode);
            let knowledge = NormalContext {
                mirrors: None,
                stations: &stations,
                switching: Some(&view),
                multicast: None,
            };
            let bar = |port, dst, src| {
                let frame = frame(dst, src);
                let link = Link::parse(frame.bytes()).expect("well formed");
                knowledge.bar((&link, frame.bytes()), port, 0, Some(Instant::START))
            };
            assert_eq!(BOND.map(|port| bar(port, many, 2)), [first, second]);
            // One of ours that came back, be it before it is known.
            assert_eq!(bar(BOND[0], many, 9), None);
            let station = FdbKey {
                vid: 0,
                mac: MacAddr::from_u64(9),
            };
            knowledge.note_heard(station, HOST, Instant::START);
            let looped = (mode == BondMode::BalanceSlb).then_some(NormalTarget::Looped);
            assert_eq!(bar(BOND[0], 2, 1), looped);
            assert_eq!(bar(BOND[0], many, 9), looped);
            assert_eq!(bar(HOST, many, 1), None);
            assert_eq!(BOND.map(|port| knowledge.home(port)), [BOND[0]; 2]);
        }
    }

    #[test]
    fn who_announces_itself_behind_the_bond_is_believed_unless_that_is_an_echo() {
        let stations = stations();
        let view = switching(BondMode::BalanceSlb);
        let knowledge = NormalContext {
            mirrors: None,
            stations: &stations,
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
            knowledge.bar((&link, frame.bytes()), BOND[0], 0, Some(now))
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
        // What it says at the host's port comes back; what others say there is no news of it.
        let [(request, _), (answer, _), (question, _), ..] = &cases;
        let note = |frame: &Frame, from, now| {
            let link = Link::parse(frame.bytes()).expect("well formed");
            knowledge.note_announced((&link, frame.bytes()), from, 0, now);
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
    fn datagrams_of_a_flow_go_one_way_and_flows_many() {
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
