//! Reassembly of fragments for tracking (RFC 815; Open vSwitch's `ipf`).
//!
//! A fragment without the transport header belongs to no connection that a table could find. The
//! fragments of a packet are held until all of them are present. Then the reassembled packet is
//! tracked, and the fragments are sent in the order in which they were received, with its tracking
//! fields:
//!
//! ```text
//!  fragments    3 1 2  --> | key: spans by offset, packets by arrival |  --> reassembled packet
//!                                                                       '-> 3 1 2
//! ```
//!
//! A fragment that overlaps another one, that is too small, or that no packet can have, is refused,
//! and the others stay: an attacker that knows the identification of a packet cannot replace a part
//! of it. Fragments of a packet that is not complete after 15 s are returned as invalid.
//!
//! Cost: the search trees take a logarithm of the packets in progress, and a list one move per later
//! fragment. Memory: at most [`IpfSettings::fragments_max`] packets, and one reassembled packet
//! while it is tracked.

mod layout;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use base::Instant;

use crate::extract::ChecksumCheck;
use crate::key::{AddressFamily, CtZone};

use layout::{FragmentKey, FragmentLayout};

/// Fragments of different scopes are never of one packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FragmentScope {
    /// The zone.
    pub zone: CtZone,
    /// Number of the user of the table, which processes the fragments that it releases.
    pub owner: u32,
}

impl From<CtZone> for FragmentScope {
    fn from(zone: CtZone) -> Self {
        Self { zone, owner: 0 }
    }
}

/// Time for which a fragment waits for others, as in Open vSwitch.
const TIMEOUT: Duration = Duration::from_secs(15);
/// Time after which expired fragments that were not polled are freed, as in Open vSwitch.
const PURGE_DELAY: Duration = Duration::from_secs(10);
/// Fragments of a packet: the longest packet in fragments of 400 bytes has 175.
const FRAGMENTS_OF_PACKET_MAX: usize = 192;
/// Smallest value of [`IpfFamilySettings::len_min`] that [`IpfSettings::check`] accepts.
const LEN_MIN_LOWEST: usize = 400;
/// Largest value of [`IpfSettings::fragments_max`] that [`IpfSettings::check`] accepts.
const FRAGMENTS_MAX_HIGHEST: usize = 5_000;

/// A packet that the table can hold.
pub trait FragmentPacket {
    /// Returns the packet from its IP header. Padding may follow.
    fn ip_bytes(&self) -> &[u8];
}

impl FragmentPacket for Vec<u8> {
    fn ip_bytes(&self) -> &[u8] {
        self
    }
}

/// Settings of one version of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpfFamilySettings {
    /// True if fragments are reassembled.
    pub is_enabled: bool,
    /// Least length of a fragment that is not the last one, with its IP header.
    pub len_min: usize,
}

/// Settings, with the defaults of Open vSwitch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpfSettings {
    /// Fragments that are held.
    pub fragments_max: usize,
    /// IPv4.
    pub v4: IpfFamilySettings,
    /// IPv6.
    pub v6: IpfFamilySettings,
}

impl Default for IpfSettings {
    fn default() -> Self {
        let family = |len_min| IpfFamilySettings {
            is_enabled: true,
            len_min,
        };
        Self {
            fragments_max: 1_000,
            v4: family(1_200),
            v6: family(1_280),
        }
    }
}

/// Setting that Open vSwitch refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpfSettingError {
    /// More than 5,000 fragments.
    FragmentsMax,
    /// A least length below 400 bytes.
    LenMin,
}

impl IpfSettings {
    /// Returns the settings of one version of IP.
    #[must_use]
    pub const fn family(&self, family: AddressFamily) -> &IpfFamilySettings {
        match family {
            AddressFamily::V4 => &self.v4,
            AddressFamily::V6 => &self.v6,
        }
    }

    /// Checks the bounds that Open vSwitch's commands have.
    ///
    /// # Errors
    /// A setting is out of its bounds.
    pub const fn check(&self) -> Result<(), IpfSettingError> {
        if self.fragments_max > FRAGMENTS_MAX_HIGHEST {
            return Err(IpfSettingError::FragmentsMax);
        }
        if self.v4.len_min < LEN_MIN_LOWEST || self.v6.len_min < LEN_MIN_LOWEST {
            return Err(IpfSettingError::LenMin);
        }
        Ok(())
    }
}

/// Numbers of fragments of one version of IP (`dpctl/ipf-get-status`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IpfStatistics {
    /// Held fragments.
    pub accepted: u64,
    /// Fragments of packets that were complete.
    pub completed: u64,
    /// Fragments of packets that were not complete in time, or were longer than a packet can be.
    pub expired: u64,
    /// Refused: below the least length.
    pub too_small: u64,
    /// Refused: overlaps another fragment.
    pub overlapped: u64,
    /// Expired fragments that were freed because they were not polled.
    pub purged: u64,
    /// Refused: no packet can have this fragment, or its checksum is wrong.
    pub malformed: u64,
    /// Refused: the table, or the packet's list, is full.
    pub full: u64,
}

/// Reason for which a fragment is not held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FragmentRefusal {
    /// Below the least length.
    TooSmall,
    /// Overlaps another fragment.
    Overlap,
    /// No packet can have this fragment, or its checksum is wrong.
    Malformed,
    /// The table, or the packet's list, is full.
    Full,
}

/// A complete packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReassembledPacket<P> {
    /// The packet from its IP header.
    pub bytes: Vec<u8>,
    /// Its fragments in the order in which they were received.
    pub fragments: Vec<P>,
    /// Index of the fragment with the transport header.
    pub first: usize,
}

/// Result for a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FragmentOutcome<P> {
    /// The packet is no fragment, or its version of IP is not reassembled: it is tracked as it is.
    NotHeld(P),
    /// The packet is held until others arrive or it expires.
    Held,
    /// The packet was the last missing fragment.
    Complete(ReassembledPacket<P>),
    /// The packet is invalid.
    Invalid(P, FragmentRefusal),
}

/// Payload of a held fragment.
#[derive(Clone, Copy, Debug)]
struct FragmentSpan {
    start: usize,
    end: usize,
    header_len: usize,
    /// Index of its packet.
    packet: usize,
}

/// Fragments of a packet.
#[derive(Debug)]
struct FragmentList<P> {
    /// In the order in which they were received.
    packets: Vec<P>,
    /// In the order of their offsets; none overlaps another.
    spans: Vec<FragmentSpan>,
    /// Header of the fragment with offset zero.
    first: Option<FragmentLayout>,
    /// Length of the packet's payload, if the last fragment is present.
    end: Option<usize>,
    deadline: FragmentDeadline,
}

/// Time at which a list expires, and its number: several lists may have one time.
type FragmentDeadline = (Instant, u64);

/// Fragments that wait for others.
#[derive(Debug)]
pub struct FragmentTable<P> {
    settings: IpfSettings,
    lists: BTreeMap<FragmentKey, FragmentList<P>>,
    deadlines: BTreeMap<FragmentDeadline, FragmentKey>,
    /// Packets of lists that expired.
    expired: VecDeque<P>,
    /// Packets in lists and in `expired`.
    held: usize,
    /// Number of lists that were created.
    created: u64,
    statistics: [IpfStatistics; 2],
}

impl<P: FragmentPacket> FragmentTable<P> {
    /// Returns an empty table.
    #[must_use]
    pub fn new(settings: IpfSettings) -> Self {
        Self {
            settings,
            lists: BTreeMap::new(),
            deadlines: BTreeMap::new(),
            expired: VecDeque::new(),
            held: 0,
            created: 0,
            statistics: [IpfStatistics::default(); 2],
        }
    }

    /// Handles a packet before it is tracked in a zone.
    pub fn handle(
        &mut self,
        packet: P,
        scope: impl Into<FragmentScope>,
        family: AddressFamily,
        check: ChecksumCheck,
        now: Instant,
    ) -> FragmentOutcome<P> {
        let is_enabled = self.settings.family(family).is_enabled;
        let layout = FragmentLayout::read(packet.ip_bytes(), scope.into(), family);
        let Some(layout) = layout.filter(|_| is_enabled) else {
            return FragmentOutcome::NotHeld(packet);
        };
        let list = self.lists.get(&layout.key);
        if list.is_some_and(|list| list.deadline.0 <= now) {
            self.expire_list(&layout.key, now);
        }
        let is_possible = layout.is_possible(packet.ip_bytes(), check);
        if let Err(refusal) = self.admit(&layout, is_possible) {
            self.count_refusal(family, refusal);
            return FragmentOutcome::Invalid(packet, refusal);
        }
        self.held += 1;
        self.statistics[family as usize].accepted += 1;
        if self.insert(packet, &layout, now) {
            self.complete(&layout.key)
        } else {
            FragmentOutcome::Held
        }
    }

    /// Returns the next fragment that expired. Such fragments are invalid.
    pub fn poll_expired(&mut self, now: Instant) -> Option<P> {
        while self.expired.is_empty() {
            let deadline = self.deadlines.first_entry()?;
            if deadline.key().0 > now {
                return None;
            }
            let key = deadline.remove();
            self.expire_list(&key, now);
        }
        let packet = self.expired.pop_front()?;
        self.held -= 1;
        Some(packet)
    }

    /// Frees fragments that expired and were not polled in time, so that they need no memory if no
    /// other fragment arrives.
    pub fn purge(&mut self, now: Instant) {
        self.held -= self.expired.len();
        self.expired.clear();
        while let Some(deadline) = self.deadlines.first_entry() {
            if deadline.key().0 + PURGE_DELAY > now {
                break;
            }
            let key = deadline.remove();
            self.expire_list(&key, now);
        }
    }

    /// Returns the time at which [`Self::poll_expired`] has a fragment, unless the packet is complete
    /// before.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        if !self.expired.is_empty() {
            return Some(Instant::START);
        }
        let (deadline, _) = self.deadlines.first_key_value()?;
        Some(deadline.0)
    }

    /// Number of held fragments, those included that expired and were not polled.
    #[must_use]
    pub const fn held(&self) -> usize {
        self.held
    }

    /// Returns the settings.
    #[must_use]
    pub const fn settings(&self) -> &IpfSettings {
        &self.settings
    }

    /// Changes the settings. Held fragments stay.
    pub const fn set_settings(&mut self, settings: IpfSettings) {
        self.settings = settings;
    }

    /// Returns the numbers of one version of IP.
    #[must_use]
    pub const fn statistics(&self, family: AddressFamily) -> &IpfStatistics {
        &self.statistics[family as usize]
    }

    /// Checks that a fragment may be held.
    fn admit(&self, layout: &FragmentLayout, is_possible: bool) -> Result<(), FragmentRefusal> {
        if !is_possible {
            return Err(FragmentRefusal::Malformed);
        }
        let len_min = self.settings.family(layout.key.family).len_min;
        if !layout.is_last && layout.len() < len_min {
            return Err(FragmentRefusal::TooSmall);
        }
        if self.held >= self.settings.fragments_max {
            return Err(FragmentRefusal::Full);
        }
        self.lists
            .get(&layout.key)
            .map_or(Ok(()), |list| list.admit(layout))
    }

    /// Inserts a fragment. Returns true if its packet is complete.
    fn insert(&mut self, packet: P, layout: &FragmentLayout, now: Instant) -> bool {
        let list = self.lists.entry(layout.key).or_insert_with(|| {
            let deadline = (now + TIMEOUT, self.created);
            self.created += 1;
            self.deadlines.insert(deadline, layout.key);
            FragmentList {
                packets: Vec::new(),
                spans: Vec::new(),
                first: None,
                end: None,
                deadline,
            }
        });
        list.insert(packet, layout);
        list.is_complete()
    }

    fn complete(&mut self, key: &FragmentKey) -> FragmentOutcome<P> {
        let Some(list) = self.take_list(key) else {
            return FragmentOutcome::Held;
        };
        let count = list.packets.len();
        let statistics = &mut self.statistics[key.family as usize];
        if let Some((bytes, first)) = list.assemble() {
            statistics.completed += count as u64;
            self.held -= count;
            FragmentOutcome::Complete(ReassembledPacket {
                bytes,
                fragments: list.packets,
                first,
            })
        } else {
            statistics.expired += count as u64;
            self.expired.extend(list.packets);
            FragmentOutcome::Held
        }
    }

    /// Moves the packets of a list to those that expired, or frees them if they are too old.
    fn expire_list(&mut self, key: &FragmentKey, now: Instant) {
        let Some(list) = self.take_list(key) else {
            return;
        };
        let count = list.packets.len();
        let statistics = &mut self.statistics[key.family as usize];
        if list.deadline.0 + PURGE_DELAY <= now {
            statistics.purged += count as u64;
            self.held -= count;
        } else {
            statistics.expired += count as u64;
            self.expired.extend(list.packets);
        }
    }

    fn take_list(&mut self, key: &FragmentKey) -> Option<FragmentList<P>> {
        let list = self.lists.remove(key)?;
        self.deadlines.remove(&list.deadline);
        Some(list)
    }

    const fn count_refusal(&mut self, family: AddressFamily, refusal: FragmentRefusal) {
        let statistics = &mut self.statistics[family as usize];
        let count = match refusal {
            FragmentRefusal::TooSmall => &mut statistics.too_small,
            FragmentRefusal::Overlap => &mut statistics.overlapped,
            FragmentRefusal::Malformed => &mut statistics.malformed,
            FragmentRefusal::Full => &mut statistics.full,
        };
        *count += 1;
    }
}

impl<P: FragmentPacket> FragmentList<P> {
    /// Checks that a fragment fits the others: none overlaps it, and all end within the last one.
    fn admit(&self, layout: &FragmentLayout) -> Result<(), FragmentRefusal> {
        let at = self.position(layout.start);
        let is_after_previous = at == 0 || self.spans[at - 1].end <= layout.start;
        let is_before_next = self
            .spans
            .get(at)
            .is_none_or(|next| layout.end <= next.start);
        if !is_after_previous || !is_before_next {
            return Err(FragmentRefusal::Overlap);
        }
        let is_beyond_end = self.end.is_some_and(|end| layout.end > end);
        if is_beyond_end || (layout.is_last && at < self.spans.len()) {
            return Err(FragmentRefusal::Malformed);
        }
        if self.packets.len() >= FRAGMENTS_OF_PACKET_MAX {
            return Err(FragmentRefusal::Full);
        }
        Ok(())
    }

    fn insert(&mut self, packet: P, layout: &FragmentLayout) {
        let at = self.position(layout.start);
        self.spans.insert(
            at,
            FragmentSpan {
                start: layout.start,
                end: layout.end,
                header_len: layout.header_len,
                packet: self.packets.len(),
            },
        );
        self.packets.push(packet);
        if layout.start == 0 {
            self.first = Some(*layout);
        }
        if layout.is_last {
            self.end = Some(layout.end);
        }
    }

    /// Returns the index of the first span that does not begin before `start`.
    fn position(&self, start: usize) -> usize {
        self.spans.partition_point(|span| span.start < start)
    }

    /// True if the spans cover the packet. They do not overlap and end within it, so that the sum of
    /// their lengths suffices.
    fn is_complete(&self) -> bool {
        let covered: usize = self.spans.iter().map(|span| span.end - span.start).sum();
        self.end == Some(covered)
    }

    /// Returns the reassembled packet, and the index of its first fragment.
    fn assemble(&self) -> Option<(Vec<u8>, usize)> {
        let layout = self.first.as_ref()?;
        let first = self.spans.first()?.packet;
        let payloads = self.spans.iter().map(|span| {
            let bytes = self.packets[span.packet].ip_bytes();
            let end = span.header_len + span.end - span.start;
            bytes.get(span.header_len..end).unwrap_or(&[])
        });
        let bytes = layout.assemble(self.packets[first].ip_bytes(), payloads)?;
        Some((bytes, first))
    }
}

#[cfg(test)]
mod tests;
