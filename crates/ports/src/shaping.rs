//! QoS of an interface: egress queues with rates, as Open vSwitch configures them
//! (ovs-vswitchd.conf.db(5), "Configuration for linux-htb and linux-hfsc QoS").
//!
//! ```text
//!  QosConfig (bits/s, optional)  --LinkProperties-->  EffectiveQos (bytes/s)  -->  kernel
//!
//!    total rate   max_rate, else the link speed, else 100 Mbit/s     class 1:fffe
//!    queue q      min_rate .. max_rate, at most the total            class 1:(q + 1)
//!    queue 0      always exists: frames without a queue use it       class 1:1
//! ```
//!
//! HTB requires that a frame fits the burst, so each class has a burst of at least MTU + 64 bytes
//! and a rate of at least one MTU per second; HFSC has no such minimum. The configuration is in
//! bits per second, [`ClassRates`] is in bytes per second.

use std::collections::BTreeMap;
use std::io;

use base::{Priority, QueueId};
use sys::interface::Ifindex;
pub use sys::traffic_control::{ClassCounts, ClassRates, Qdisc};
use sys::traffic_control::{ClassMinor, TrafficControl};

/// Requested QoS of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QosConfig {
    /// Kind of the queueing discipline.
    pub qdisc: Qdisc,
    /// Total rate in bits per second; `None`: the speed of the interface.
    pub max_rate: Option<u64>,
    /// Queues. Frames without one of these queues use queue 0, which always exists.
    pub queues: BTreeMap<QueueId, QosQueue>,
}

/// Requested parameters of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QosQueue {
    /// Guaranteed rate in bits per second.
    pub min_rate: Option<u64>,
    /// Maximum rate in bits per second.
    pub max_rate: Option<u64>,
    /// Burst in bits.
    pub burst: Option<u64>,
    /// Priority for excess bandwidth: the lowest value is served first.
    pub priority: u32,
    /// DSCP written to IP packets of this queue, by the caller of the port.
    pub dscp: Option<u8>,
}

/// QoS in effect, as passed to the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectiveQos {
    /// Kind of the queueing discipline.
    pub qdisc: Qdisc,
    /// Rates of the root class.
    pub total: ClassRates,
    /// Rates of each queue.
    pub queues: BTreeMap<QueueId, ClassRates>,
}

/// Properties of an interface that the rates depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkProperties {
    /// MTU in bytes.
    pub(crate) mtu: u32,
    /// Speed in Mbit/s, if the interface reports one.
    pub(crate) speed_mbps: Option<u32>,
}

/// Speed assumed for interfaces that report none, in Mbit/s (`NETDEV_DEFAULT_BPS` of Open vSwitch).
const DEFAULT_SPEED_MBPS: u32 = 100;

/// Headers around a payload, rounded up, in bytes (`htb_parse_class_details__` of Open vSwitch).
const BURST_HEADROOM: u64 = 64;

impl QosConfig {
    /// Computes the rates for an interface.
    pub(crate) fn effective(&self, link: LinkProperties) -> EffectiveQos {
        let speed = || u64::from(link.speed_mbps.unwrap_or(DEFAULT_SPEED_MBPS)) * 1_000_000;
        let total = self.max_rate.filter(|rate| *rate > 0).unwrap_or_else(speed) / 8;
        let mtu = u64::from(link.mtu);
        // HTB sends only frames that are no longer than what its rate yields in one second.
        let (min_rate_floor, burst) = match self.qdisc {
            Qdisc::Htb => (mtu, mtu + BURST_HEADROOM),
            Qdisc::Hfsc => (1, 0),
        };
        let rates = |queue: &QosQueue| {
            let min = (queue.min_rate.unwrap_or_default() / 8)
                .max(min_rate_floor)
                .min(total);
            let max = queue.max_rate.filter(|rate| *rate > 0);
            ClassRates {
                min,
                max: max.map_or(total, |rate| rate / 8).max(min).min(total),
                burst: (queue.burst.unwrap_or_default() / 8).max(burst),
                priority: queue.priority,
            }
        };
        let mut queues: BTreeMap<_, _> = self
            .queues
            .iter()
            .map(|(id, queue)| (*id, rates(queue)))
            .collect();
        queues
            .entry(QueueId(0))
            .or_insert_with(|| rates(&QosQueue::default()));
        EffectiveQos {
            qdisc: self.qdisc,
            total: ClassRates {
                min: total,
                max: total,
                burst: 0,
                priority: 0,
            },
            queues,
        }
    }
}

impl EffectiveQos {
    /// Applies these rates to the interface: creates, changes and deletes classes. A root qdisc of
    /// another kind or program is replaced.
    pub(crate) fn apply(&self, interface: Ifindex, link: LinkProperties) -> io::Result<()> {
        let control = TrafficControl::open()?;
        let kind = self.qdisc;
        if !control.has_root(interface, kind)? {
            control.remove_root(interface)?;
            control.add_root(interface, kind)?;
        }
        let applied = self.apply_classes(&control, interface, link);
        if applied.is_err() {
            // A partial configuration would drop frames by rates that are not configured.
            control.remove_root(interface)?;
        }
        applied
    }

    fn apply_classes(
        &self,
        control: &TrafficControl,
        interface: Ifindex,
        link: LinkProperties,
    ) -> io::Result<()> {
        let kind = self.qdisc;
        control.set_class(interface, (kind, ClassMinor::ROOT), self.total, link.mtu)?;
        for (minor, _) in control.classes(interface)? {
            let queue = queue_of(minor);
            if queue.is_some_and(|queue| !self.queues.contains_key(&queue)) {
                control.remove_class(interface, minor)?;
            }
        }
        let queues = self.queues.iter();
        let mut classes = queues.filter_map(|(queue, rates)| Some((minor_of(*queue)?, rates)));
        classes.try_for_each(|(minor, rates)| {
            control.set_class(interface, (kind, minor), *rates, link.mtu)
        })
    }
}

/// Deletes the root qdisc that [`EffectiveQos::apply`] has created.
pub(crate) fn clear(interface: Ifindex) -> io::Result<()> {
    TrafficControl::open()?.remove_root(interface)
}

/// Returns the counters of each queue.
pub(crate) fn counts(interface: Ifindex) -> io::Result<BTreeMap<QueueId, ClassCounts>> {
    let classes = TrafficControl::open()?.classes(interface)?;
    let queues = classes.into_iter();
    Ok(queues
        .filter_map(|(minor, counts)| Some((queue_of(minor)?, counts)))
        .collect())
}

fn minor_of(queue: QueueId) -> Option<ClassMinor> {
    Priority::for_queue(queue).map(|priority| ClassMinor(priority.minor()))
}

fn queue_of(minor: ClassMinor) -> Option<QueueId> {
    let queue = QueueId(u32::from(minor.0).checked_sub(1)?);
    Priority::for_queue(queue).map(|_| queue)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: LinkProperties = LinkProperties {
        mtu: 1500,
        speed_mbps: Some(10_000),
    };

    fn check(qos: QosQueue, (min, max, burst): (u64, u64, u64)) {
        let requested = QosConfig {
            qdisc: Qdisc::Htb,
            max_rate: Some(8_000_000),
            queues: [(QueueId(7), qos)].into(),
        };
        let effective = requested.effective(LINK);
        let expected = ClassRates {
            min,
            max,
            burst,
            priority: qos.priority,
        };
        assert_eq!(effective.queues[&QueueId(7)], expected);
        assert_eq!(effective.total.max, 1_000_000);
    }

    #[test]
    fn queue_rates_match_open_vswitch() {
        let queue = QosQueue::default;
        // As `ovs-appctl qos/show` of Open vSwitch 3.1 prints, divided by eight.
        check(queue(), (1500, 1_000_000, 1564));
        let full = QosQueue {
            min_rate: Some(1_000_000),
            max_rate: Some(2_000_000),
            burst: Some(800_000),
            priority: 3,
            dscp: None,
        };
        check(full, (125_000, 250_000, 100_000));
        // At most the total, and at least the guaranteed rate.
        let greedy = QosQueue {
            min_rate: Some(80_000_000),
            max_rate: Some(1),
            ..queue()
        };
        check(greedy, (1_000_000, 1_000_000, 1564));
        let zero = QosQueue {
            max_rate: Some(0),
            ..queue()
        };
        check(zero, (1500, 1_000_000, 1564));
    }

    #[test]
    fn total_rate_defaults_to_link_speed_and_queue_0_exists() {
        let mut qos = QosConfig {
            qdisc: Qdisc::Htb,
            max_rate: None,
            queues: BTreeMap::new(),
        };
        assert_eq!(qos.effective(LINK).total.max, 1_250_000_000);
        assert_eq!(qos.effective(LINK).queues.len(), 1);
        let unknown = LinkProperties {
            speed_mbps: None,
            ..LINK
        };
        assert_eq!(qos.effective(unknown).total.max, 12_500_000);
        qos.qdisc = Qdisc::Hfsc;
        assert_eq!(qos.effective(LINK).queues[&QueueId(0)].min, 1);
    }

    #[test]
    fn queue_ids_map_to_class_minors() {
        assert_eq!(minor_of(QueueId(0)), Some(ClassMinor::DEFAULT));
        assert_eq!(minor_of(QueueId(0xefff)), Some(ClassMinor(0xf000)));
        assert_eq!(minor_of(QueueId(0xf000)), None);
        assert_eq!(queue_of(ClassMinor(0)), None);
        assert_eq!(queue_of(ClassMinor::ROOT), None);
        assert_eq!(queue_of(ClassMinor(8)), Some(QueueId(7)));
    }
}
