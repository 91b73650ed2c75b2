//! What leaves by a device, and when: queues of a queueing discipline, each with its rates, as
//! Open vSwitch has them made (ovs-vswitchd.conf.db(5), "Configuration for linux-htb and
//! linux-hfsc QoS").
//!
//! What is asked for is of bits a second; what the kernel is told, [`ClassRates`], of bytes.

use std::collections::BTreeMap;
use std::io;

use base::{Priority, QueueId};
use sys::interface::Ifindex;
pub use sys::traffic_control::{ClassCounts, ClassRates, Qdisc};
use sys::traffic_control::{ClassMinor, TrafficControl};

/// What a device's queues are to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// What serves them.
    pub discipline: Qdisc,
    /// Bits a second of all together; as many as the device has, if nobody has said.
    pub max_rate: Option<u64>,
    /// The queues. Frames that are for none of them are for queue 0, which is there in any case.
    pub queues: BTreeMap<QueueId, QueueShape>,
}

/// What a queue is to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueShape {
    /// Bits a second that it has in any case.
    pub min_rate: Option<u64>,
    /// Bits a second that it has at most.
    pub max_rate: Option<u64>,
    /// Bits at once, after a pause.
    pub burst: Option<u64>,
    /// Who is served first of what others leave: the lower.
    pub priority: u32,
    /// What the IP packets among its frames are marked with, by who hands them over.
    pub dscp: Option<u8>,
}

/// What was made of a shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shaped {
    /// What serves the queues.
    pub discipline: Qdisc,
    /// What all have together.
    pub whole: ClassRates,
    /// The queues.
    pub queues: BTreeMap<QueueId, ClassRates>,
}

/// What of a device its queues depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    /// The longest payload of a frame, in bytes.
    pub(crate) mtu: u32,
    /// Its speed in Mbit/s, if it knows one.
    pub(crate) speed_mbps: Option<u32>,
}

/// The speed of a device that knows none, in Mbit/s (`NETDEV_DEFAULT_BPS` of Open vSwitch).
const SPEED_MBPS: u32 = 100;

/// What stands around a payload, and some more (`htb_parse_class_details__` of Open vSwitch).
const AROUND: u64 = 64;

impl Shape {
    /// What the kernel is to be told for a device that is so.
    pub(crate) fn on(&self, line: Line) -> Shaped {
        let speed = || u64::from(line.speed_mbps.unwrap_or(SPEED_MBPS)) * 1_000_000;
        let all = self.max_rate.filter(|rate| *rate > 0).unwrap_or_else(speed) / 8;
        let mtu = u64::from(line.mtu);
        // Token buckets let a frame through that is no longer than what comes in a second.
        let (least, burst) = match self.discipline {
            Qdisc::Htb => (mtu, mtu + AROUND),
            Qdisc::Hfsc => (1, 0),
        };
        let service = |queue: &QueueShape| {
            let min = (queue.min_rate.unwrap_or_default() / 8).max(least).min(all);
            let max = queue.max_rate.filter(|rate| *rate > 0);
            ClassRates {
                min,
                max: max.map_or(all, |rate| rate / 8).max(min).min(all),
                burst: (queue.burst.unwrap_or_default() / 8).max(burst),
                priority: queue.priority,
            }
        };
        let mut queues: BTreeMap<_, _> = self
            .queues
            .iter()
            .map(|(id, queue)| (*id, service(queue)))
            .collect();
        queues
            .entry(QueueId(0))
            .or_insert_with(|| service(&QueueShape::default()));
        Shaped {
            discipline: self.discipline,
            whole: ClassRates {
                min: all,
                max: all,
                burst: 0,
                priority: 0,
            },
            queues,
        }
    }
}

impl Shaped {
    /// Has the interface's queues be these: classes are made, changed and taken away, and the
    /// discipline is made if it is not there. One that somebody else has put there makes way.
    pub(crate) fn make(&self, of: Ifindex, line: Line) -> io::Result<()> {
        let control = TrafficControl::open()?;
        let kind = self.discipline;
        if !control.has_root(of, kind)? {
            control.remove_root(of)?;
            control.add_root(of, kind)?;
        }
        let done = self.make_classes(&control, of, line);
        if done.is_err() {
            // Half a discipline would drop frames by rates that nobody has asked for.
            control.remove_root(of)?;
        }
        done
    }

    fn make_classes(&self, control: &TrafficControl, of: Ifindex, line: Line) -> io::Result<()> {
        let kind = self.discipline;
        control.set_class(of, (kind, ClassMinor::ROOT), self.whole, line.mtu)?;
        for (minor, _) in control.classes(of)? {
            let queue = queue_of(minor);
            if queue.is_some_and(|queue| !self.queues.contains_key(&queue)) {
                control.remove_class(of, minor)?;
            }
        }
        let queues = self.queues.iter();
        let mut classes = queues.filter_map(|(queue, service)| Some((minor_of(*queue)?, service)));
        classes.try_for_each(|(minor, service)| {
            control.set_class(of, (kind, minor), *service, line.mtu)
        })
    }
}

/// Takes away what [`Shaped::make`] has made.
pub(crate) fn unmake(of: Ifindex) -> io::Result<()> {
    TrafficControl::open()?.remove_root(of)
}

/// What each queue has sent.
pub(crate) fn counts(of: Ifindex) -> io::Result<BTreeMap<QueueId, ClassCounts>> {
    let classes = TrafficControl::open()?.classes(of)?;
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

    const LINE: Line = Line {
        mtu: 1500,
        speed_mbps: Some(10_000),
    };

    fn check(shape: QueueShape, (min, max, burst): (u64, u64, u64)) {
        let asked = Shape {
            discipline: Qdisc::Htb,
            max_rate: Some(8_000_000),
            queues: [(QueueId(7), shape)].into(),
        };
        let shaped = asked.on(LINE);
        let wanted = ClassRates {
            min,
            max,
            burst,
            priority: shape.priority,
        };
        assert_eq!(shaped.queues[&QueueId(7)], wanted);
        assert_eq!(shaped.whole.max, 1_000_000);
    }

    #[test]
    fn a_queue_has_what_open_vswitch_gives_it() {
        let queue = QueueShape::default;
        // As `ovs-appctl qos/show` of 3.1 tells, divided by eight.
        check(queue(), (1500, 1_000_000, 1564));
        let full = QueueShape {
            min_rate: Some(1_000_000),
            max_rate: Some(2_000_000),
            burst: Some(800_000),
            priority: 3,
            dscp: None,
        };
        check(full, (125_000, 250_000, 100_000));
        // No more than all together, and at least what is granted.
        let greedy = QueueShape {
            min_rate: Some(80_000_000),
            max_rate: Some(1),
            ..queue()
        };
        check(greedy, (1_000_000, 1_000_000, 1564));
        let zero = QueueShape {
            max_rate: Some(0),
            ..queue()
        };
        check(zero, (1500, 1_000_000, 1564));
    }

    #[test]
    fn without_a_rate_it_is_the_devices_and_queue_0_is_always_there() {
        let mut shape = Shape {
            discipline: Qdisc::Htb,
            max_rate: None,
            queues: BTreeMap::new(),
        };
        assert_eq!(shape.on(LINE).whole.max, 1_250_000_000);
        assert_eq!(shape.on(LINE).queues.len(), 1);
        let unknown = Line {
            speed_mbps: None,
            ..LINE
        };
        assert_eq!(shape.on(unknown).whole.max, 12_500_000);
        shape.discipline = Qdisc::Hfsc;
        assert_eq!(shape.on(LINE).queues[&QueueId(0)].min, 1);
    }

    #[test]
    fn queues_are_classes_from_one_on() {
        assert_eq!(minor_of(QueueId(0)), Some(ClassMinor::DEFAULT));
        assert_eq!(minor_of(QueueId(0xefff)), Some(ClassMinor(0xf000)));
        assert_eq!(minor_of(QueueId(0xf000)), None);
        assert_eq!(queue_of(ClassMinor(0)), None);
        assert_eq!(queue_of(ClassMinor::ROOT), None);
        assert_eq!(queue_of(ClassMinor(8)), Some(QueueId(7)));
    }
}
