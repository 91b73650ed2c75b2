//! The identifiers of OpenFlow, each a type of its own, so that a port number cannot be mistaken
//! for a table or a queue. Values are those of OpenFlow 1.1 and later; the codec widens the
//! narrower numbers of 1.0.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

/// The number of a switch port, or a reserved port (OF 1.3.5, A.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortNo(pub u32);

impl PortNo {
    /// The highest number that OpenFlow 1.0 can give to a physical port.
    pub const MAX_V10: Self = Self(0xff00);
    /// One past the highest number that a physical or logical port may have.
    pub const MAX: Self = Self(0xffff_ff00);
    /// No value: the content of `actset_output` before an output is written (OF 1.5.1).
    pub const UNSET: Self = Self(0xffff_fff7);
    /// The ingress port; the only output that sends a frame back there.
    pub const IN_PORT: Self = Self(0xffff_fff8);
    /// Submits the frame to the first table: packet-out only.
    pub const TABLE: Self = Self(0xffff_fff9);
    /// Forwards as an ordinary learning switch does.
    pub const NORMAL: Self = Self(0xffff_fffa);
    /// All ports except the ingress port and those with `no_flood`.
    pub const FLOOD: Self = Self(0xffff_fffb);
    /// All ports except the ingress port.
    pub const ALL: Self = Self(0xffff_fffc);
    /// The controllers, by packet-in.
    pub const CONTROLLER: Self = Self(0xffff_fffd);
    /// The switch's own network stack.
    pub const LOCAL: Self = Self(0xffff_fffe);
    /// No port in particular: a wildcard in requests, never an output.
    pub const ANY: Self = Self(0xffff_ffff);

    /// Every reserved port with the name that `ovs-ofctl` and this project give it.
    pub const RESERVED: [(Self, &'static str); 10] = [
        (Self::UNSET, "UNSET"),
        (Self::IN_PORT, "IN_PORT"),
        (Self::TABLE, "TABLE"),
        (Self::NORMAL, "NORMAL"),
        (Self::FLOOD, "FLOOD"),
        (Self::ALL, "ALL"),
        (Self::CONTROLLER, "CONTROLLER"),
        (Self::LOCAL, "LOCAL"),
        (Self::ANY, "ANY"),
        (Self::ANY, "NONE"),
    ];

    /// Returns whether a port of the switch may have this number: physical ports from 1, and
    /// `LOCAL`.
    #[must_use]
    pub const fn is_assignable(self) -> bool {
        (self.0 >= 1 && self.0 < Self::MAX.0) || self.0 == Self::LOCAL.0
    }

    /// Returns the name of a reserved port, and none for an ordinary number.
    #[must_use]
    pub fn reserved_name(self) -> Option<&'static str> {
        Self::RESERVED
            .iter()
            .find(|(port, _)| *port == self)
            .map(|(_, name)| *name)
    }
}

impl fmt::Display for PortNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reserved_name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{}", self.0),
        }
    }
}

impl FromStr for PortNo {
    type Err = ParseIntError;

    /// Parses a decimal or `0x` number, or a reserved name in any case. The 16-bit reserved numbers
    /// of OpenFlow 1.0 are converted to their 32-bit equivalents.
    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        let named = Self::RESERVED
            .iter()
            .find(|(_, name)| name.eq_ignore_ascii_case(text));
        if let Some((port, _)) = named {
            return Ok(*port);
        }
        let (digits, radix) = match text.strip_prefix("0x") {
            Some(hex) => (hex, 16),
            None => (text, 10),
        };
        // The standard library accepts a sign; port numbers have none.
        let unsigned = digits.strip_prefix('+').map_or(digits, |_| "");
        let number = u32::from_str_radix(unsigned, radix)?;
        Ok(match number {
            0xfff7..=0xffff => Self(number | 0xffff_0000),
            _ => Self(number),
        })
    }
}

/// The number of a flow table, 0 to 253 in this switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub u8);

impl TableId {
    /// The table at which processing of every frame starts.
    pub const FIRST: Self = Self(0);
    /// The highest table of this switch. 254 is `OFPTT_MAX`, which Open vSwitch reserves for
    /// itself; this switch does the same, so that users' pipelines fit both.
    pub const LAST: Self = Self(253);
    /// Every table: deletion and statistics only (`OFPTT_ALL`).
    pub const ALL: Self = Self(0xff);
}

impl fmt::Display for TableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The number of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u32);

impl GroupId {
    /// The highest number that a group may have (`OFPG_MAX`).
    pub const MAX: Self = Self(0xffff_ff00);
    /// Every group: deletion and requests only (`OFPG_ALL`).
    pub const ALL: Self = Self(0xffff_fffc);
    /// No group in particular: a wildcard in requests (`OFPG_ANY`).
    pub const ANY: Self = Self(0xffff_ffff);
}

/// The number of a bucket of a group (OF 1.5.1, 7.3.4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BucketId(pub u32);

impl BucketId {
    /// The highest number that a bucket may have (`OFPG_BUCKET_MAX`).
    pub const MAX: Self = Self(0xffff_ff00);
    /// The first bucket of the list, or the position before it: commands only.
    pub const FIRST: Self = Self(0xffff_fffd);
    /// The last bucket of the list, or the position after it: commands only.
    pub const LAST: Self = Self(0xffff_fffe);
    /// Every bucket; in a command that names no bucket, no position.
    pub const ALL: Self = Self(0xffff_ffff);
}

/// The number of a meter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MeterId(pub u32);

impl MeterId {
    /// The highest number of a meter that rules can use (`OFPM_MAX`).
    pub const MAX: Self = Self(0xffff_0000);
    /// The virtual meter of frames that the fast path sends to the slow path (`OFPM_SLOWPATH`).
    pub const SLOWPATH: Self = Self(0xffff_fffd);
    /// The virtual meter of frames for the controllers (`OFPM_CONTROLLER`).
    pub const CONTROLLER: Self = Self(0xffff_fffe);
    /// Every meter: deletion and requests only (`OFPM_ALL`).
    pub const ALL: Self = Self(0xffff_ffff);

    /// Returns whether rules can use this meter.
    #[must_use]
    pub const fn is_ordinary(self) -> bool {
        self.0 >= 1 && self.0 <= Self::MAX.0
    }

    /// Returns whether this is a virtual meter, which the switch itself applies and no rule can
    /// use.
    #[must_use]
    pub const fn is_virtual(self) -> bool {
        matches!(self, Self::SLOWPATH | Self::CONTROLLER)
    }
}

/// The number of an egress queue of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueId(pub u32);

impl QueueId {
    /// Every queue: requests only (`OFPQ_ALL`).
    pub const ALL: Self = Self(0xffff_ffff);

    /// The most queues of a port, numbered from zero: the number of classes in Open vSwitch
    /// (`HTB_N_QUEUES`).
    pub const COUNT: u32 = 61_440;
}

/// The class of a port's queueing discipline for a frame: the minor number of the class, as in the
/// kernel's `skb->priority`; zero if unset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(u16);

impl Priority {
    /// Unset: the discipline's default class.
    pub const NONE: Self = Self(0);

    /// Returns the class of a queue: class 1 for queue 0, and so on. Returns none if the number of
    /// the queue is too high for a class.
    #[must_use]
    pub const fn for_queue(queue: QueueId) -> Option<Self> {
        if queue.0 >= QueueId::COUNT {
            return None;
        }
        let [low, high, ..] = (queue.0 + 1).to_le_bytes();
        Some(Self(u16::from_le_bytes([low, high])))
    }

    /// Returns the queue of this class.
    #[must_use]
    pub const fn queue(self) -> Option<QueueId> {
        match self.0 {
            0 => None,
            minor => Some(QueueId(minor as u32 - 1)),
        }
    }

    /// Returns the minor number of the class; zero for none.
    #[must_use]
    pub const fn minor(self) -> u16 {
        self.0
    }

    /// Returns the kernel's handle: the class of the root discipline `1:`; zero for none.
    #[must_use]
    pub const fn handle(self) -> u32 {
        match self.0 {
            0 => 0,
            minor => 0x0001_0000 | minor as u32,
        }
    }
}

/// The number of a frame that the switch buffers for the controller. This switch buffers none (its
/// features reply says so), so the number occurs only in requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BufferId(pub u32);

impl BufferId {
    /// The number for "no buffer" in messages (`OFP_NO_BUFFER`).
    pub const NONE: Self = Self(0xffff_ffff);
}

/// The transaction id, which pairs a request with its replies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Xid(pub u32);

/// The identifier that a controller gives to a rule; the switch only compares it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cookie(pub u64);

impl Cookie {
    /// The cookie of a packet-in that no rule caused.
    pub const NONE: Self = Self(u64::MAX);
}

/// The 64-bit identifier of a switch: the lower 48 bits are a MAC address, the upper 16 bits are
/// chosen by the implementer (OF 1.3.5, A.3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DatapathId(pub u64);

impl fmt::Display for DatapathId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_port_parses_by_name_and_both_numbers() {
        assert_eq!("local".parse(), Ok(PortNo::LOCAL));
        assert_eq!("65534".parse(), Ok(PortNo::LOCAL));
        assert_eq!("0xfffffffe".parse(), Ok(PortNo::LOCAL));
        assert_eq!("NONE".parse(), Ok(PortNo::ANY));
        assert_eq!("7".parse(), Ok(PortNo(7)));
        for text in ["eth0", "+5", "0x+5", "-1", ""] {
            assert!(text.parse::<PortNo>().is_err(), "{text}");
        }
    }

    #[test]
    fn port_numbers_of_real_ports_are_assignable() {
        assert!(PortNo(1).is_assignable() && PortNo::LOCAL.is_assignable());
        assert!(!PortNo(0).is_assignable() && !PortNo::FLOOD.is_assignable());
    }
}
