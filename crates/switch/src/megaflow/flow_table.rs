//! The flows that are active: the megaflows of the packets that crossed recently, with counters.
//! This is the data path's flow table as Open vSwitch's users see it.
//!
//! - The first packet of a flow sets it up and does not count, as in Open vSwitch, where it takes the slow path.
//! - A flow without packets for [`ActiveFlowTable::max_idle`] expires.
//! - After a change of the tables, the packet that set up a flow is translated again. A flow that would count more bits now is removed, and a flow with other actions is changed.
//! - The table is bounded: packets that would set up more flows are not counted.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use base::Instant;
use packet::Frame;

use super::key::{KeyBits, KeyField};
use super::{KeyDetail, Megaflow};
use crate::trace::ArrivalTunnel;

/// The default of the maximum number of flows: more than a test needs; a dump of them takes milliseconds.
const FLOWS_MAX: usize = 4096;

/// The default time after which an idle flow expires, as in Open vSwitch.
const MAX_IDLE: Duration = Duration::from_secs(10);

/// The identity of a flow: a hash of its key, which does not depend on the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowUfid(pub u128);

/// Packets with the same fields that cross the data path, as they count in a flow.
pub struct PacketSummary<'a> {
    /// Their fields, all of which count.
    pub exact: &'a Megaflow,
    /// The number of packets.
    pub packets: u64,
    /// The number of their bytes.
    pub bytes: u64,
    /// The time of the last packet.
    pub now: Instant,
}

/// An active flow. `P` identifies the ingress port.
#[derive(Clone, Debug)]
pub struct ActiveFlow<P> {
    /// The ingress port.
    pub port: P,
    /// The packet that set up the flow.
    pub frame: Frame,
    /// The tunnel by which it arrived.
    pub tunnel: Option<ArrivalTunnel>,
    /// The flow.
    pub megaflow: Megaflow,
    /// The datapath actions.
    pub actions: String,
    /// The number of packets.
    pub packets: u64,
    /// The number of their bytes.
    pub bytes: u64,
    /// The time of the last packet; none without packets.
    pub used: Option<Instant>,
    /// All TCP flags of the packets.
    pub tcp_flags: u128,
    /// The time at which the flow was set up.
    pub created: Instant,
}

/// The result of a second translation of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Revalidation {
    /// The flow is as before.
    Keep,
    /// The flow has other actions.
    Modify(String),
    /// The flow is removed.
    Delete,
}

/// The active flows.
#[derive(Clone, Debug)]
pub struct ActiveFlowTable<P> {
    flows: BTreeMap<FlowUfid, ActiveFlow<P>>,
    /// The flows by the bits that count: first the mask, then their values.
    by_mask: BTreeMap<KeyBits, BTreeMap<KeyBits, FlowUfid>>,
    /// The time without packets after which a flow expires.
    pub max_idle: Duration,
    /// Flows are exact: every bit of a packet counts.
    pub is_exact: bool,
    /// The maximum number of flows.
    pub capacity: usize,
}

impl<P> Default for ActiveFlowTable<P> {
    fn default() -> Self {
        Self {
            flows: BTreeMap::new(),
            by_mask: BTreeMap::new(),
            max_idle: MAX_IDLE,
            is_exact: false,
            capacity: FLOWS_MAX,
        }
    }
}

impl<P> ActiveFlowTable<P> {
    /// Returns true if packets set up no further flow.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.flows.len() >= self.capacity
    }

    /// Counts packets in their flow. Returns false if they have no flow.
    pub fn count(&mut self, packet: &PacketSummary<'_>) -> bool {
        let bits = &packet.exact.packet;
        let mut masks = self.by_mask.iter();
        let found = masks.find_map(|(mask, flows)| flows.get(&bits.masked(mask)).copied());
        let Some(flow) = found.and_then(|ufid| self.flows.get_mut(&ufid)) else {
            return false;
        };
        flow.packets += packet.packets;
        flow.bytes += packet.bytes;
        flow.used = Some(packet.now);
        if bits.get(KeyField::NW_PROTO) == 6 {
            flow.tcp_flags |= bits.get(KeyField::TCP_FLAGS);
        }
        true
    }

    /// Adds a flow, unless the table is full. Returns its identity.
    pub fn insert(&mut self, flow: ActiveFlow<P>) -> Option<FlowUfid> {
        if self.is_full() {
            return None;
        }
        let ufid = FlowUfid::of(&flow.megaflow);
        let mask = flow.megaflow.mask.clone();
        let values = flow.megaflow.packet.masked(&mask);
        self.by_mask.entry(mask).or_default().insert(values, ufid);
        self.flows.insert(ufid, flow);
        Some(ufid)
    }

    /// Removes a flow.
    pub fn remove(&mut self, ufid: FlowUfid) -> Option<ActiveFlow<P>> {
        let flow = self.flows.remove(&ufid)?;
        let Megaflow { packet, mask, .. } = &flow.megaflow;
        if let Some(values) = self.by_mask.get_mut(mask) {
            values.remove(&packet.masked(mask));
            if values.is_empty() {
                self.by_mask.remove(mask);
            }
        }
        Some(flow)
    }

    /// Removes all flows.
    pub fn clear(&mut self) -> Vec<(FlowUfid, ActiveFlow<P>)> {
        self.by_mask.clear();
        std::mem::take(&mut self.flows).into_iter().collect()
    }

    /// Removes the flows that were idle for too long.
    pub fn expire(&mut self, now: Instant) -> Vec<(FlowUfid, ActiveFlow<P>)> {
        let is_idle = |flow: &ActiveFlow<P>| {
            let last = flow.used.unwrap_or(flow.created);
            now - last > self.max_idle
        };
        let idle = self.flows.iter().filter(|(_, flow)| is_idle(flow));
        let idle: Vec<_> = idle.map(|(ufid, _)| *ufid).collect();
        idle.into_iter()
            .filter_map(|ufid| Some((ufid, self.remove(ufid)?)))
            .collect()
    }

    /// Returns the flow with this identity.
    #[must_use]
    pub fn get(&self, ufid: FlowUfid) -> Option<&ActiveFlow<P>> {
        self.flows.get(&ufid)
    }

    /// Returns all flows.
    pub fn iter(&self) -> impl Iterator<Item = (FlowUfid, &ActiveFlow<P>)> {
        self.flows.iter().map(|(ufid, flow)| (*ufid, flow))
    }

    /// Returns the number of flows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// Returns true without flows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// Gives a flow other actions.
    pub fn modify(&mut self, ufid: FlowUfid, actions: String) {
        if let Some(flow) = self.flows.get_mut(&ufid) {
            flow.actions = actions;
        }
    }
}

impl<P> ActiveFlow<P> {
    /// Compares the flow with a second translation of its packet.
    #[must_use]
    pub fn revalidate(&self, megaflow: &Megaflow, actions: &str) -> Revalidation {
        if megaflow.is_narrower_than(&self.megaflow) {
            return Revalidation::Delete;
        }
        match self.actions == actions {
            true => Revalidation::Keep,
            false => Revalidation::Modify(actions.to_owned()),
        }
    }

    /// Formats the counters: `packets:1, bytes:98, used:0.100s, flags:S`.
    #[must_use]
    pub fn counters(&self, now: Instant) -> String {
        let used = match self.used {
            None => "never".to_owned(),
            Some(used) => format!("{:.3}s", (now - used).as_secs_f64()),
        };
        let (packets, bytes) = (self.packets, self.bytes);
        let mut text = format!("packets:{packets}, bytes:{bytes}, used:{used}");
        if self.tcp_flags != 0 {
            text += ", flags:";
            text += &flag_letters(self.tcp_flags);
        }
        text
    }

    /// Formats the flow with its counters and actions, as `dpctl/dump-flows` lists it.
    #[must_use]
    pub fn line(&self, port: &str, actions: &str, detail: KeyDetail, now: Instant) -> String {
        let (key, counters) = (self.megaflow.to_odp(port, detail), self.counters(now));
        format!("{key}, {counters}, actions:{actions}")
    }
}

/// Formats TCP flags as letters, in the order of tcpdump; flags without a letter in brackets.
fn flag_letters(flags: u128) -> String {
    const LETTERS: [(u128, &str); 12] = [
        (0x002, "S"),
        (0x001, "F"),
        (0x008, "P"),
        (0x004, "R"),
        (0x020, "U"),
        (0x010, "."),
        (0x040, "E"),
        (0x080, "C"),
        (0x100, "N"),
        (0x200, "[200]"),
        (0x400, "[400]"),
        (0x800, "[800]"),
    ];
    let set = LETTERS.iter().filter(|(bit, _)| flags & bit != 0);
    set.map(|(_, letter)| *letter).collect()
}

impl FlowUfid {
    /// Returns the identity of a flow: FNV-1a of its key and mask, twice with different starts.
    #[must_use]
    pub fn of(megaflow: &Megaflow) -> Self {
        const PRIME: u64 = 0x0000_0100_0000_01b3;
        let starts: [u64; 2] = [0xcbf2_9ce4_8422_2325, 0x8422_2325_cbf2_9ce4];
        let masked = megaflow.packet.masked(&megaflow.mask);
        let halves = starts.map(|start| {
            let bytes = masked.bytes().chain(megaflow.mask.bytes());
            bytes.fold(start, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(PRIME)
            })
        });
        Self(u128::from(halves[0]) << 64 | u128::from(halves[1]))
    }

    /// Parses `ufid:01234567-89ab-cdef-0123-456789abcdef`, also without dashes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("ufid:")?;
        let digits = digits.strip_prefix("0x").unwrap_or(digits).replace('-', "");
        let is_hex = |byte: u8| byte.is_ascii_hexdigit();
        if digits.is_empty() || digits.len() > 32 || !digits.bytes().all(is_hex) {
            return None;
        }
        u128::from_str_radix(&digits, 16).ok().map(Self)
    }
}

impl fmt::Display for FlowUfid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{:032x}", self.0);
        let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|range| &digits[range]);
        write!(f, "ufid:{}", parts.join("-"))
    }
}

#[cfg(test)]
mod tests;
