//! Policers: rate limits of a port's ingress and egress, and of packet-ins. Packet-ins have one
//! token bucket for frames without a matching rule and one for frames that a rule sends, so that a
//! storm of one kind does not block the other.
//!
//! A bucket is the time at which it will be full again, a single number, as for meters
//! (`pipeline`). Workers and the control thread change it by compare-and-exchange; a check of an
//! empty bucket only reads.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::ArcSwap;
use base::{Instant, Priority, QueueId};
use packet::{Depth, Frame, Packet};
use pipeline::Cause;
use ports::shaping::QosConfig;

use config::{EgressLimit, IngressLimit, PacketRate, PolicerRate};

const NANOS_PER_SEC: u64 = 1_000_000_000;

/// A fixed limit of events by frames of one port.
struct EventLimit {
    per_second: u32,
    burst: u32,
}

impl EventLimit {
    fn rate(&self) -> Option<PacketRate> {
        PacketRate::new(self.per_second, Some(self.burst))
    }
}

/// The limit of addresses and rules to learn. A burst leaves a quarter of the event ring to other
/// ports; the control thread learns several times the rate.
const LEARNING: EventLimit = EventLimit {
    per_second: 200_000,
    burst: 768,
};

/// The limit of multicast membership messages: hosts of a large segment answer a query at random
/// times within ten seconds.
const MEMBERSHIPS: EventLimit = EventLimit {
    per_second: 1000,
    burst: 128,
};

/// The limit of protocol frames: BFD with an interval of a millisecond. The ring holds the bursts
/// of 64 ports.
const PROTOCOLS: EventLimit = EventLimit {
    per_second: 1000,
    burst: 64,
};

/// The rate limits of one port, or of packet-ins to one controller.
#[derive(Debug)]
pub struct Policer {
    misses: PacketBucket,
    others: PacketBucket,
    /// Events that frames of the port cause in the control thread.
    learning: PacketBucket,
    memberships: PacketBucket,
    protocols: PacketBucket,
    /// Ingress in bits and in packets.
    kilobits: SizeBucket,
    kilopackets: SizeBucket,
    /// Egress in bytes.
    egress: SizeBucket,
    /// The DSCP marks on egress, and whether there are any.
    marks: ArcSwap<DscpMarks>,
    has_marks: AtomicBool,
}

/// DSCP marks of IP packets on egress, by queue.
#[derive(Debug, Default, PartialEq, Eq)]
struct DscpMarks {
    of: BTreeMap<Priority, Option<u8>>,
    /// The mark of queue 0, which carries the frames of unconfigured queues.
    otherwise: Option<u8>,
}

impl DscpMarks {
    fn new(shape: &QosConfig) -> Self {
        let queues = shape.queues.iter();
        let marks = queues.filter_map(|(id, queue)| Some((Priority::for_queue(*id)?, queue.dscp)));
        let default = shape.queues.get(&QueueId(0));
        Self {
            of: marks.collect(),
            otherwise: default.and_then(|queue| queue.dscp),
        }
    }

    fn has_any(&self) -> bool {
        self.of.values().any(Option::is_some)
    }
}

impl Policer {
    /// Returns a policer that admits packet-ins of either kind at `rate`; without a rate, all.
    pub fn new(rate: Option<PacketRate>) -> Arc<Self> {
        let policer = Self {
            misses: PacketBucket::default(),
            others: PacketBucket::default(),
            learning: PacketBucket::default(),
            memberships: PacketBucket::default(),
            protocols: PacketBucket::default(),
            kilobits: SizeBucket::default(),
            kilopackets: SizeBucket::default(),
            egress: SizeBucket::default(),
            marks: ArcSwap::default(),
            has_marks: AtomicBool::new(false),
        };
        policer.set(rate);
        policer.learning.set(LEARNING.rate());
        policer.memberships.set(MEMBERSHIPS.rate());
        policer.protocols.set(PROTOCOLS.rate());
        Arc::new(policer)
    }

    /// Returns whether an address or a rule to learn from a frame of the port is within the limit.
    pub(crate) fn admits_learning(&self, now: Instant) -> bool {
        self.learning.take(now)
    }

    /// Returns whether a multicast membership message of the port is within the limit.
    pub(crate) fn admits_membership(&self, now: Instant) -> bool {
        self.memberships.take(now)
    }

    /// Returns whether a protocol frame (LACP, BPDU, BFD, CFM, LLDP) of the port is within the
    /// limit.
    pub(crate) fn admits_protocol(&self, now: Instant) -> bool {
        self.protocols.take(now)
    }

    /// Sets the packet-in rate.
    pub fn set(&self, rate: Option<PacketRate>) {
        self.misses.set(rate);
        self.others.set(rate);
    }

    /// Limits the ingress of the port.
    pub fn limit_ingress(&self, limit: IngressLimit) {
        let thousands = |allowance: PolicerRate| EgressLimit {
            rate: u64::from(allowance.rate) * 1000,
            burst: u64::from(allowance.burst) * 1000,
        };
        self.kilobits.set(thousands(limit.kilobits));
        self.kilopackets.set(thousands(limit.kilopackets));
    }

    /// Returns whether there is an ingress limit.
    pub(crate) fn limits_ingress(&self) -> bool {
        self.kilobits.is_set() || self.kilopackets.is_set()
    }

    /// Returns whether a frame is within the ingress limit. Its size is given in frames and bytes
    /// on the wire.
    pub(crate) fn admits(&self, (frames, bytes): (u64, u64), now: Instant) -> bool {
        self.kilobits.take(bytes * 8, now) && self.kilopackets.take(frames, now)
    }

    /// Limits the egress of the port; none removes the limit.
    pub fn limit_egress(&self, limit: Option<EgressLimit>) {
        self.egress.set(limit.unwrap_or_default());
    }

    /// Sets the DSCP marks on egress by queue; none removes them.
    pub fn mark(&self, shape: Option<&QosConfig>) {
        let marks = shape.map(DscpMarks::new).unwrap_or_default();
        let has_any = marks.has_any();
        self.marks.store(Arc::new(marks));
        self.has_marks.store(has_any, Ordering::Relaxed);
    }

    /// Returns whether there is an egress limit or a mark.
    pub(crate) fn has_egress_policy(&self) -> bool {
        self.egress.is_set() || self.has_marks.load(Ordering::Relaxed)
    }

    /// Sets the DSCP of an IP packet to the mark of its queue.
    pub fn mark_out(&self, frame: &mut Frame) {
        if !self.has_marks.load(Ordering::Relaxed) {
            return;
        }
        let marks = self.marks.load();
        let mark = marks.of.get(&frame.priority).copied();
        if let Some(dscp) = mark.unwrap_or(marks.otherwise)
            && let Ok(mut packet) = Packet::parse(frame, Depth::Network)
        {
            packet.set_ip_dscp(dscp);
        }
    }

    /// Returns whether a frame of this number of bytes is within the egress limit.
    pub(crate) fn admits_egress(&self, (_, bytes): (u64, u64), now: Instant) -> bool {
        self.egress.take(bytes, now)
    }

    /// Returns whether a packet-in of this cause is within the limit.
    pub fn admits_packet_in(&self, cause: Cause, now: Instant) -> bool {
        let bucket = match cause {
            Cause::Miss | Cause::MissRule => &self.misses,
            Cause::Action
            | Cause::ActionSet
            | Cause::PacketOut
            | Cause::Group
            | Cause::InvalidTtl
            | Cause::Explicit(_) => &self.others,
        };
        bucket.take(now)
    }
}

/// A token bucket from which a frame takes tokens by its size.
#[derive(Debug, Default)]
struct SizeBucket {
    /// Tokens per second; zero for no limit.
    rate: AtomicU64,
    /// Nanoseconds in which an empty bucket fills.
    burst: AtomicU64,
    /// The time at which it is full, in nanoseconds since the start; in the past if it is full.
    full_at: AtomicU64,
}

impl SizeBucket {
    fn set(&self, limit: EgressLimit) {
        let burst = time_for(limit.burst, limit.rate).unwrap_or_default();
        self.burst.store(burst, Ordering::Relaxed);
        self.rate.store(limit.rate, Ordering::Relaxed);
    }

    fn is_set(&self) -> bool {
        self.rate.load(Ordering::Relaxed) > 0
    }

    fn take(&self, tokens: u64, now: Instant) -> bool {
        let rate = self.rate.load(Ordering::Relaxed);
        let Some(cost) = time_for(tokens, rate) else {
            return true;
        };
        let burst = self.burst.load(Ordering::Relaxed);
        let last = now.as_nanos().saturating_add(burst);
        let more = |full_at: u64| {
            let then = full_at.max(now.as_nanos()).saturating_add(cost);
            (then <= last).then_some(then)
        };
        let (set, read) = (Ordering::Relaxed, Ordering::Relaxed);
        self.full_at.fetch_update(set, read, more).is_ok()
    }
}

/// Returns the nanoseconds of this number of tokens at a rate; none without a rate.
fn time_for(tokens: u64, rate: u64) -> Option<u64> {
    let nanos = u128::from(tokens) * u128::from(NANOS_PER_SEC);
    let time = nanos.checked_div(rate.into())?;
    Some(u64::try_from(time).unwrap_or(u64::MAX))
}

#[derive(Debug, Default)]
struct PacketBucket {
    /// Nanoseconds for one token; zero for no limit.
    cost: AtomicU64,
    /// Nanoseconds in which an empty bucket fills.
    burst: AtomicU64,
    /// The time at which it is full, in nanoseconds since the start; in the past if it is full.
    full_at: AtomicU64,
}

impl PacketBucket {
    fn set(&self, rate: Option<PacketRate>) {
        let cost = rate.map_or(0, |rate| NANOS_PER_SEC / u64::from(rate.per_second().get()));
        let burst = rate.map_or(0, |rate| cost * u64::from(rate.burst().get()));
        // A reader between the two stores applies a mixture of the old and the new rate.
        self.burst.store(burst, Ordering::Relaxed);
        self.cost.store(cost, Ordering::Relaxed);
    }

    fn take(&self, now: Instant) -> bool {
        let cost = self.cost.load(Ordering::Relaxed);
        if cost == 0 {
            return true;
        }
        let last = now.as_nanos() + self.burst.load(Ordering::Relaxed);
        let more = |full_at: u64| {
            let then = full_at.max(now.as_nanos()) + cost;
            (then <= last).then_some(then)
        };
        let (set, read) = (Ordering::Relaxed, Ordering::Relaxed);
        self.full_at.fetch_update(set, read, more).is_ok()
    }
}

/// Packet-in counters of a port on one worker: plain loads and stores of the worker, added up by
/// readers.
#[derive(Debug, Default)]
pub struct PacketInCounters {
    sent: AtomicU64,
    policed: AtomicU64,
    /// Packet-ins in the event ring: the worker adds, the control thread subtracts.
    queued: AtomicU64,
}

/// A packet-in of a port in the event ring. Its drop releases the place.
#[derive(Debug)]
pub struct QueuedPacketIn(Arc<PacketInCounters>);

impl QueuedPacketIn {
    /// Takes a place in the event ring for a packet-in.
    pub(crate) fn new(counters: &Arc<PacketInCounters>) -> Self {
        counters.queued.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(counters))
    }
}

impl Drop for QueuedPacketIn {
    fn drop(&mut self) {
        self.0.queued.fetch_sub(1, Ordering::Relaxed);
    }
}

impl PacketInCounters {
    /// Returns true if the port's share of the event ring is used up: it has more packet-ins in the
    /// ring than there are free places. This is the dynamic threshold of Choudhury and Hahne
    /// ("Dynamic queue length thresholds for shared-memory packet switches", 1998) with the factor
    /// one: a port alone fills half of the ring, and n flooding ports leave the (n + 1)th part to
    /// others.
    pub(crate) fn exceeds_share(&self, free: usize) -> bool {
        self.queued.load(Ordering::Relaxed) > free as u64
    }

    /// Adds sent packet-ins. Called by the worker only.
    pub(crate) fn add_sent(&self, count: u64) {
        add(&self.sent, count);
    }

    /// Adds packet-ins above the rate. Called by the worker only.
    pub(crate) fn add_policed(&self, count: u64) {
        add(&self.policed, count);
    }

    /// Returns both counters by name.
    pub fn read(&self) -> [(&'static str, u64); 2] {
        [
            ("packet_in_sent", self.sent.load(Ordering::Relaxed)),
            ("packet_in_policed", self.policed.load(Ordering::Relaxed)),
        ]
    }
}

fn add(cell: &AtomicU64, count: u64) {
    cell.store(cell.load(Ordering::Relaxed) + count, Ordering::Relaxed);
}

/// The policer of a port and the packet-in counters of one worker.
#[derive(Clone, Debug)]
pub struct PortPolicing {
    /// Shared by all workers that serve the port.
    pub policer: Arc<Policer>,
    /// The worker's own counters.
    pub counters: Arc<PacketInCounters>,
}

#[cfg(test)]
mod tests {
    use ports::shaping::{Qdisc, QosQueue};

    use super::*;

    fn passed(policer: &Policer, cause: Cause, count: usize, at_millis: u64) -> usize {
        let now = Instant::from_nanos(at_millis * 1_000_000);
        (0..count)
            .filter(|_| policer.admits_packet_in(cause, now))
            .count()
    }

    #[test]
    fn policer_admits_a_burst_and_then_the_rate() {
        let policer = Policer::new(PacketRate::new(1000, Some(20)));
        assert_eq!(passed(&policer, Cause::Miss, 100, 5000), 20);
        assert_eq!(passed(&policer, Cause::Miss, 100, 5000), 0);
        assert_eq!(passed(&policer, Cause::Miss, 100, 5007), 7);
        assert_eq!(passed(&policer, Cause::Miss, 100, 9000), 20);
    }

    #[test]
    fn events_of_a_port_are_limited_by_kind() {
        let policer = Policer::new(None);
        let now = Instant::from_secs(5);
        let count = |admits: &dyn Fn() -> bool| (0..10_000).filter(|_| admits()).count();
        assert_eq!(count(&|| policer.admits_learning(now)), 768);
        assert_eq!(count(&|| policer.admits_membership(now)), 128);
        assert_eq!(count(&|| policer.admits_protocol(now)), 64);
        let later = Instant::from_nanos(5_010_000_000);
        assert_eq!(count(&|| policer.admits_protocol(later)), 10);
        assert_eq!(passed(&policer, Cause::Miss, 10_000, 5000), 10_000);
    }

    #[test]
    fn ingress_policer_limits_bits_and_frames() {
        let policer = Policer::new(None);
        let admitted = |bytes: u64, count: usize, at_millis: u64| {
            let now = Instant::from_millis(at_millis);
            (0..count)
                .filter(|_| policer.admits((1, bytes), now))
                .count()
        };
        assert!(!policer.limits_ingress());
        assert_eq!(admitted(1500, 100_000, 1), 100_000);
        let of = |rate, burst| PolicerRate { rate, burst };
        policer.limit_ingress(IngressLimit {
            kilobits: of(1000, 120),
            kilopackets: PolicerRate::default(),
        });
        assert!(policer.limits_ingress());
        // 120 kbit are ten frames of 1500 bytes, and 12 ms at 1 Mbit/s are one.
        assert_eq!(admitted(1500, 100, 5000), 10);
        assert_eq!(admitted(1500, 100, 5036), 3);
        policer.limit_ingress(IngressLimit {
            kilobits: PolicerRate::default(),
            kilopackets: of(1, 2),
        });
        assert_eq!(admitted(1500, 10_000, 9000), 2000);
        assert_eq!(admitted(64, 10_000, 9005), 5);
        // Egress has its own limit: 3000 bytes are two such frames.
        assert!(!policer.has_egress_policy());
        let limit = EgressLimit {
            rate: 1500,
            burst: 3000,
        };
        policer.limit_egress(Some(limit));
        let out = |at_millis| policer.admits_egress((1, 1500), Instant::from_millis(at_millis));
        assert_eq!(
            [out(1), out(1), out(1), out(1001), out(1001)],
            [true, true, false, true, false]
        );
    }

    #[test]
    fn dscp_marks_follow_the_queue_and_skip_other_frames() {
        let policer = Policer::new(None);
        let queue = |dscp| QosQueue {
            dscp,
            ..QosQueue::default()
        };
        let shape = |marks: &[(u32, Option<u8>)]| QosConfig {
            qdisc: Qdisc::Htb,
            max_rate: None,
            queues: marks
                .iter()
                .map(|(id, dscp)| (QueueId(*id), queue(*dscp)))
                .collect(),
        };
        let tos = |id: Option<u32>| {
            // An IPv4 header without options behind an Ethernet header.
            let mut bytes = [0; 34];
            bytes[12..16].copy_from_slice(&[8, 0, 0x45, 1]);
            bytes[17] = 20;
            let mut frame = Frame::from_bytes(&bytes);
            frame.priority = id
                .and_then(|id| Priority::for_queue(QueueId(id)))
                .unwrap_or_default();
            policer.mark_out(&mut frame);
            frame.bytes()[15]
        };
        let all = || [None, Some(0), Some(1), Some(7), Some(9)].map(tos);
        policer.mark(Some(&shape(&[(1, None), (7, None)])));
        assert!(!policer.has_egress_policy());
        policer.mark(Some(&shape(&[(1, None), (7, Some(10))])));
        assert!(policer.has_egress_policy());
        assert_eq!(all(), [1, 1, 1, 41, 1]);
        // Frames of an unconfigured queue leave by queue 0.
        policer.mark(Some(&shape(&[(0, Some(8)), (1, None), (7, Some(10))])));
        assert_eq!(all(), [33, 33, 1, 41, 33]);
        policer.mark(None);
        assert!(!policer.has_egress_policy());
        assert_eq!(all(), [1; 5]);
    }

    #[test]
    fn packet_in_misses_do_not_consume_the_rate_of_rules() {
        let policer = Policer::new(PacketRate::new(1000, Some(20)));
        assert_eq!(passed(&policer, Cause::MissRule, 100, 1), 20);
        assert_eq!(passed(&policer, Cause::Action, 100, 1), 20);
    }

    #[test]
    fn policer_without_rate_admits_all_and_accepts_a_rate() {
        let policer = Policer::new(None);
        assert_eq!(passed(&policer, Cause::Miss, 100_000, 1), 100_000);
        policer.set(PacketRate::new(1, Some(3)));
        assert_eq!(passed(&policer, Cause::Miss, 100, 1), 3);
        policer.set(None);
        assert_eq!(passed(&policer, Cause::Miss, 100, 1), 100);
    }
}
