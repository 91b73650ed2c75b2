//! In-band control: `NORMAL` forwards frames between a bridge and its controllers independently of
//! the tables, if that traffic passes through the bridge itself (ovs-vswitchd.conf.db(5),
//! Controller, `connection_mode`; Open vSwitch's "Design Decisions", in-band control).
//!
//! The rules rank above all others, and controllers can neither see nor delete them. They precede
//! the tables instead of being part of them: rules of tables have priorities of 16 bits, are
//! counted, and are subject to all that OpenFlow specifies for rules, and these are not.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::{Instant, PortNo, QueueId};
use packet::MacAddr;

/// The addresses of in-band control.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InBandConfig {
    /// The address of the bridge's local interface.
    pub local: MacAddr,
    /// The Ethernet addresses of the next hops to the controllers.
    pub next_hops: Vec<MacAddr>,
    /// The controllers. Without any, in-band control is disabled.
    pub remotes: Vec<SocketAddrV4>,
    /// The egress queue of in-band frames; the default queue, if absent.
    pub queue: Option<QueueId>,
}

/// The match of an in-band rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InBandKind {
    DhcpOfLocal(MacAddr),
    ReplyToLocal(MacAddr),
    RequestOfLocal(MacAddr),
    ReplyToNextHop(MacAddr),
    RequestOfNextHop(MacAddr),
    ReplyToRemote(Ipv4Addr),
    RequestOfRemote(Ipv4Addr),
    ToRemote(SocketAddrV4),
    OfRemote(SocketAddrV4),
}

/// The priority of the lowest kind, as Open vSwitch shows it.
const PRIORITY: u32 = 180_000;

impl InBandKind {
    fn priority(self) -> u32 {
        PRIORITY
            + match self {
                Self::DhcpOfLocal(_) => 0,
                Self::ReplyToLocal(_) => 1,
                Self::RequestOfLocal(_) => 2,
                Self::ReplyToNextHop(_) => 3,
                Self::RequestOfNextHop(_) => 4,
                Self::ReplyToRemote(_) => 5,
                Self::RequestOfRemote(_) => 6,
                Self::ToRemote(_) => 7,
                Self::OfRemote(_) => 8,
            }
    }

    /// Returns whether a frame is of this kind.
    fn matches(self, from: PortNo, fields: &InBandFields) -> bool {
        match (self, fields.payload) {
            (Self::DhcpOfLocal(local), InBandPayload::Udp(ports)) => {
                from == PortNo::LOCAL && fields.src == local && ports == DHCP
            }
            (
                Self::ReplyToLocal(mac) | Self::ReplyToNextHop(mac),
                InBandPayload::Arp { op, .. },
            ) => op == REPLY && fields.dst == mac,
            (
                Self::RequestOfLocal(mac) | Self::RequestOfNextHop(mac),
                InBandPayload::Arp { op, .. },
            ) => op == REQUEST && fields.src == mac,
            (Self::ReplyToRemote(host), InBandPayload::Arp { op, target, .. }) => {
                op == REPLY && target == host
            }
            (Self::RequestOfRemote(host), InBandPayload::Arp { op, sender, .. }) => {
                op == REQUEST && sender == host
            }
            (Self::ToRemote(remote), InBandPayload::Tcp { to, .. }) => to == remote,
            (Self::OfRemote(remote), InBandPayload::Tcp { of, .. }) => of == remote,
            _ => false,
        }
    }
}

impl fmt::Display for InBandKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DhcpOfLocal(mac) => {
                write!(f, "udp,in_port=LOCAL,dl_src={mac},tp_src=68,tp_dst=67")
            }
            Self::ReplyToLocal(mac) | Self::ReplyToNextHop(mac) => {
                write!(f, "arp,dl_dst={mac},arp_op=2")
            }
            Self::RequestOfLocal(mac) | Self::RequestOfNextHop(mac) => {
                write!(f, "arp,dl_src={mac},arp_op=1")
            }
            Self::ReplyToRemote(host) => write!(f, "arp,arp_tpa={host},arp_op=2"),
            Self::RequestOfRemote(host) => write!(f, "arp,arp_spa={host},arp_op=1"),
            Self::ToRemote(to) => write!(f, "tcp,nw_dst={},tp_dst={}", to.ip(), to.port()),
            Self::OfRemote(of) => write!(f, "tcp,nw_src={},tp_src={}", of.ip(), of.port()),
        }
    }
}

/// The in-band treatment of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InBandPath {
    /// `NORMAL` forwards it, and no table sees it.
    Normal,
    /// The tables process it, and the bridge's local interface receives it in any case: it is a
    /// reply of a DHCP server, possibly to the bridge.
    AlsoLocal,
}

/// An in-band rule and its counters.
#[derive(Debug)]
struct InBandRule {
    kind: InBandKind,
    since: Instant,
    packets: AtomicU64,
    bytes: AtomicU64,
}

/// The in-band rules of a bridge.
#[derive(Debug)]
pub struct InBand {
    config: InBandConfig,
    /// Highest priority first.
    rules: Vec<Arc<InBandRule>>,
}

impl InBand {
    /// Compiles the rules; none without controllers. Rules that `before` had too keep their
    /// counters.
    pub fn compile(config: InBandConfig, before: Option<&Self>, now: Instant) -> Option<Arc<Self>> {
        if config.remotes.is_empty() {
            return None;
        }
        let local = (config.local != MacAddr::default()).then_some(config.local);
        let of_local = [
            InBandKind::DhcpOfLocal,
            InBandKind::ReplyToLocal,
            InBandKind::RequestOfLocal,
        ];
        let of_hop = [InBandKind::ReplyToNextHop, InBandKind::RequestOfNextHop];
        let of_host = [InBandKind::ReplyToRemote, InBandKind::RequestOfRemote];
        let of_remote = [InBandKind::ToRemote, InBandKind::OfRemote];
        let mut hosts: Vec<_> = config.remotes.iter().map(|remote| *remote.ip()).collect();
        hosts.sort_unstable();
        hosts.dedup();
        let local = local
            .into_iter()
            .flat_map(|mac| of_local.map(|kind| kind(mac)));
        let hops = config.next_hops.iter();
        let hops = hops.flat_map(|mac| of_hop.map(|kind| kind(*mac)));
        let hosts = hosts
            .into_iter()
            .flat_map(|host| of_host.map(|kind| kind(host)));
        let remotes = config.remotes.iter();
        let remotes = remotes.flat_map(|remote| of_remote.map(|kind| kind(*remote)));
        let previous = |kind: InBandKind| {
            let mut previous = before.iter().flat_map(|before| &before.rules);
            previous.find(|rule| rule.kind == kind).cloned()
        };
        let new = |kind| {
            Arc::new(InBandRule {
                kind,
                since: now,
                packets: AtomicU64::new(0),
                bytes: AtomicU64::new(0),
            })
        };
        let kinds = local.chain(hops).chain(hosts).chain(remotes);
        let rules = kinds.map(|kind| previous(kind).unwrap_or_else(|| new(kind)));
        let mut rules: Vec<_> = rules.collect();
        rules.sort_by_key(|rule| std::cmp::Reverse(rule.kind.priority()));
        Some(Arc::new(Self { config, rules }))
    }

    /// Returns the configuration.
    pub const fn config(&self) -> &InBandConfig {
        &self.config
    }

    /// Returns the in-band treatment of a frame that was received on `from`; none if only the
    /// tables process it.
    #[inline]
    pub fn path(&self, from: PortNo, frame: &[u8]) -> Option<InBandPath> {
        let fields = parse(frame)?;
        if from != PortNo::LOCAL && fields.payload == InBandPayload::Udp(DHCP_ANSWER) {
            return Some(InBandPath::AlsoLocal);
        }
        let mut rules = self.rules.iter();
        let is_found = rules.any(|rule| rule.kind.matches(from, &fields));
        is_found.then_some(InBandPath::Normal)
    }

    /// Counts an in-band frame.
    pub fn count(&self, from: PortNo, frame: &[u8]) {
        if let Some(rule) = self.find(from, frame) {
            rule.packets.fetch_add(1, Ordering::Relaxed);
            rule.bytes.fetch_add(frame.len() as u64, Ordering::Relaxed);
        }
    }

    fn find(&self, from: PortNo, frame: &[u8]) -> Option<&InBandRule> {
        let fields = parse(frame)?;
        let rules = self.rules.iter();
        let mut rules = rules.filter(|rule| rule.kind.matches(from, &fields));
        rules.next().map(Arc::as_ref)
    }

    /// Formats the rules as `bridge/dump-flows` does; `between` follows the counters.
    pub fn format_rules(&self, now: Instant, between: &str) -> String {
        let by = self
            .config
            .queue
            .map(|QueueId(queue)| format!("set_queue:{queue},"));
        let by = by.unwrap_or_default();
        let lines = self.rules.iter().map(|rule| {
            let (packets, bytes) = (
                rule.packets.load(Ordering::Relaxed),
                rule.bytes.load(Ordering::Relaxed),
            );
            let age = now.since(rule.since).as_secs();
            let (priority, kind) = (rule.kind.priority(), rule.kind);
            format!(
                "duration={age}s, n_packets={packets}, n_bytes={bytes}, {between}priority={priority},{kind},actions={by}NORMAL\n"
            )
        });
        lines.collect()
    }
}

/// The UDP ports of a DHCP client and of a server (RFC 2131, 4.1).
const DHCP: (u16, u16) = (68, 67);
const DHCP_ANSWER: (u16, u16) = (67, 68);

/// ARP opcodes (RFC 826).
const REQUEST: u16 = 1;
const REPLY: u16 = 2;

/// The fields of a frame that the rules match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct InBandFields {
    src: MacAddr,
    dst: MacAddr,
    payload: InBandPayload,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InBandPayload {
    Arp {
        op: u16,
        sender: Ipv4Addr,
        target: Ipv4Addr,
    },
    Tcp {
        of: SocketAddrV4,
        to: SocketAddrV4,
    },
    /// Source and destination ports.
    Udp((u16, u16)),
}

/// Parses a frame; none if no rule can match it.
fn parse(frame: &[u8]) -> Option<InBandFields> {
    /// The maximum number of tags between addresses and type (IEEE 802.1Q, 9.5).
    const TAGS_MAX: usize = 2;
    let (dst, rest) = frame.split_first_chunk::<6>()?;
    let (src, mut rest) = rest.split_first_chunk::<6>()?;
    let mut kind = number(rest, 0)?;
    for _ in 0..TAGS_MAX {
        if matches!(kind, 0x8100 | 0x88a8) {
            rest = rest.get(4..)?;
            kind = number(rest, 0)?;
        }
    }
    let rest = rest.get(2..)?;
    let payload = match kind {
        0x0806 => parse_arp(rest)?,
        0x0800 => parse_ipv4(rest)?,
        _ => return None,
    };
    Some(InBandFields {
        src: MacAddr(*src),
        dst: MacAddr(*dst),
        payload,
    })
}

/// Parses ARP over Ethernet and IPv4 (RFC 826).
fn parse_arp(bytes: &[u8]) -> Option<InBandPayload> {
    const ETHERNET_AND_IPV4: [u8; 6] = [0, 1, 8, 0, 6, 4];
    bytes.starts_with(&ETHERNET_AND_IPV4).then_some(())?;
    Some(InBandPayload::Arp {
        op: number(bytes, 6)?,
        sender: host(bytes, 14)?,
        target: host(bytes, 24)?,
    })
}

/// Parses TCP and UDP over IPv4, except later fragments (RFC 791, 3.1).
fn parse_ipv4(bytes: &[u8]) -> Option<InBandPayload> {
    let length = usize::from(bytes.first()? & 0x0f) * 4;
    if number(bytes, 6)? & 0x1fff != 0 {
        return None;
    }
    let ports = bytes.get(length..)?;
    let (from, to) = (number(ports, 0)?, number(ports, 2)?);
    match bytes.get(9)? {
        6 => Some(InBandPayload::Tcp {
            of: SocketAddrV4::new(host(bytes, 12)?, from),
            to: SocketAddrV4::new(host(bytes, 16)?, to),
        }),
        17 => Some(InBandPayload::Udp((from, to))),
        _ => None,
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..)?.first_chunk::<2>()?;
    Some(u16::from_be_bytes(*bytes))
}

fn host(bytes: &[u8], at: usize) -> Option<Ipv4Addr> {
    let bytes = bytes.get(at..)?.first_chunk::<4>()?;
    Some(Ipv4Addr::from(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCAL: [u8; 6] = [2, 0, 0, 0, 0, 0xaa];
    const HOP: [u8; 6] = [2, 0, 0, 0, 0, 0xfe];
    const OTHER: [u8; 6] = [2, 0, 0, 0, 0, 1];
    const REMOTE: [u8; 4] = [10, 0, 0, 9];
    const STRANGER: [u8; 4] = [10, 0, 0, 7];

    fn in_band() -> Arc<InBand> {
        let config = InBandConfig {
            local: MacAddr(LOCAL),
            next_hops: vec![MacAddr(HOP)],
            remotes: vec![SocketAddrV4::new(REMOTE.into(), 6653)],
            queue: None,
        };
        InBand::compile(config, None, Instant::START).expect("there is a controller")
    }

    fn arp(dst: [u8; 6], src: [u8; 6], op: u8, sender: [u8; 4], target: [u8; 4]) -> Vec<u8> {
        let head = [8, 6, 0, 1, 8, 0, 6, 4, 0, op];
        [&dst[..], &src, &head, &src, &sender, &dst, &target].concat()
    }

    fn ip(protocol: u8, src: [u8; 4], dst: [u8; 4], ports: (u16, u16)) -> Vec<u8> {
        let head = [8, 0, 0x45, 0, 0, 40, 0, 0, 0, 0, 64, protocol, 0, 0];
        let (from, to) = (ports.0.to_be_bytes(), ports.1.to_be_bytes());
        [&OTHER[..], &LOCAL, &head, &src, &dst, &from, &to, &[0; 16]].concat()
    }

    #[test]
    fn rules_in_band_match_controller_traffic_only() {
        let in_band = in_band();
        let (local, one) = (PortNo::LOCAL, PortNo(1));
        let mut tagged = arp([255; 6], LOCAL, 1, STRANGER, REMOTE);
        tagged.splice(12..12, [0x81, 0, 0, 5]);
        let taken = [
            (local, ip(17, [0; 4], [255; 4], (68, 67))),
            (one, arp(LOCAL, OTHER, 2, STRANGER, STRANGER)),
            (local, arp([255; 6], LOCAL, 1, STRANGER, STRANGER)),
            (one, tagged),
            (one, arp(HOP, OTHER, 2, STRANGER, STRANGER)),
            (one, arp([255; 6], HOP, 1, STRANGER, STRANGER)),
            (one, arp(OTHER, OTHER, 2, STRANGER, REMOTE)),
            (one, arp([255; 6], OTHER, 1, REMOTE, STRANGER)),
            (one, ip(6, STRANGER, REMOTE, (4000, 6653))),
            (one, ip(6, REMOTE, STRANGER, (6653, 4000))),
        ];
        for (from, frame) in &taken {
            assert_eq!(
                in_band.path(*from, frame),
                Some(InBandPath::Normal),
                "{frame:x?}"
            );
            in_band.count(*from, frame);
        }
        let mut fragment = ip(6, REMOTE, STRANGER, (6653, 4000));
        fragment[21] = 9;
        let left = [
            (one, ip(17, [0; 4], [255; 4], (68, 67))),
            (local, ip(17, [0; 4], [255; 4], (67, 68))),
            (one, arp(OTHER, OTHER, 2, REMOTE, STRANGER)),
            (one, arp([255; 6], OTHER, 1, STRANGER, REMOTE)),
            (one, arp(LOCAL, OTHER, 1, STRANGER, STRANGER)),
            (one, ip(6, STRANGER, REMOTE, (6653, 4000))),
            (one, ip(6, STRANGER, STRANGER, (6653, 6653))),
            (one, ip(17, STRANGER, REMOTE, (4000, 6653))),
            (one, fragment),
            (one, taken[8].1[..36].to_vec()),
            (one, Vec::new()),
        ];
        for (from, frame) in left {
            assert_eq!(in_band.path(from, &frame), None, "{frame:x?}");
        }
        let answer = ip(17, REMOTE, [255; 4], (67, 68));
        assert_eq!(in_band.path(one, &answer), Some(InBandPath::AlsoLocal));
        let rules = in_band.format_rules(Instant::START, "");
        assert_eq!(rules.lines().count(), 9);
        let wanted = "duration=0s, n_packets=1, n_bytes=54, priority=180007,tcp,nw_dst=10.0.0.9,tp_dst=6653,actions=NORMAL";
        assert!(rules.lines().any(|line| line == wanted), "{rules}");
    }

    #[test]
    fn rules_in_band_need_controllers_and_keep_counters() {
        let no_controllers = InBandConfig::default();
        assert!(InBand::compile(no_controllers, None, Instant::START).is_none());
        let before = in_band();
        let frame = ip(6, STRANGER, REMOTE, (4000, 6653));
        before.count(PortNo(1), &frame);
        let mut config = before.config().clone();
        config.next_hops.clear();
        let after = InBand::compile(config, Some(&before), Instant::START);
        let rules = after
            .expect("there is a controller")
            .format_rules(Instant::START, "");
        assert_eq!(rules.lines().count(), 7);
        assert!(
            rules.contains("n_packets=1, n_bytes=54, priority=180007,"),
            "{rules}"
        );
    }
}
