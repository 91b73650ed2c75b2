//! The entry of a connection in a steady state: eight atomic words in a cache line. Connections over
//! IPv6, with a label or with other ends after a translation have a second line.
//!
//! ```text
//!  line 0   sequence | addresses | ports, zone, protocol | expiry
//!           mark, policy, kind | numbers of both ends of TCP | windows
//!  line 1   label (2) | addresses of IPv6 (4) | reply key of NAT (2)
//! ```
//!
//! The first word is a sequence lock (Lameter, "Effective synchronization on Linux/NUMA systems",
//! 2005): odd while a writer changes the others. A reader copies the words that it needs and compares
//! the sequence before and after; a writer makes the sequence odd by compare-and-swap, so that there
//! is one writer at a time. The words are atomic, so a reader that overlaps with a writer reads
//! numbers that belong to different states, never memory that is not there, and discards them.

use base::Instant;
use base::sync::atomic::{AtomicU64, Ordering, fence};
use base::sync::thread;

use super::key_words::{KeyWords, KeyWordsV4};
use crate::key::TrafficDirection;
use crate::nat::NatSide;
use crate::protocol::tcp::{TcpConnection, TcpWords};
use crate::timeout::{CtPolicyId, CtTimeout};

/// Attempts to lock an entry before the thread yields.
const SPINS: u32 = 64;

/// Indices of the words.
mod word {
    pub(super) const SEQUENCE: usize = 0;
    pub(super) const ADDRESSES: usize = 1;
    pub(super) const PORTS: usize = 2;
    pub(super) const EXPIRES: usize = 3;
    pub(super) const DETAILS: usize = 4;
    pub(super) const TCP: usize = 5;
    // The second line.
    pub(super) const LABEL: usize = 0;
    pub(super) const ADDRESSES_V6: usize = 2;
    pub(super) const REPLY_ADDRESSES: usize = 6;
    pub(super) const REPLY_PORTS: usize = 7;
}

/// A state that packets do not leave, apart from those that end the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum SteadyKind {
    /// Both ends of a TCP connection are established.
    Tcp = 1,
    /// Packets of both directions.
    Datagrams = 2,
    /// Several packets, all of the original direction.
    OneWay = 3,
}

impl SteadyKind {
    /// Timeout that each packet restarts.
    pub(crate) const fn timeout(self) -> CtTimeout {
        match self {
            Self::Tcp => CtTimeout::TcpEstablished,
            Self::Datagrams => CtTimeout::UdpMultiple,
            Self::OneWay => CtTimeout::UdpSingle,
        }
    }
}

/// Fields of a connection in a steady state that its entry in the table has too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SteadyState {
    pub(crate) key: KeyWords,
    pub(crate) kind: SteadyKind,
    pub(crate) expires: Instant,
    pub(crate) mark: u32,
    pub(crate) label: [u64; 2],
    pub(crate) policy: CtPolicyId,
    /// The ends of a TCP connection.
    pub(crate) tcp: Option<TcpConnection>,
    /// Side and reply key of a translation.
    pub(crate) nat: Option<(NatSide, KeyWords)>,
}

impl SteadyState {
    /// True if the entry needs a second line.
    pub(crate) const fn is_wide(&self) -> bool {
        let [high, low] = self.label;
        self.key.is_v6() || self.has_reply_key() || high | low != 0
    }

    /// True if the reply key is not the reversed key: a translation has changed it.
    const fn has_reply_key(&self) -> bool {
        match &self.nat {
            Some((_, reply)) => !reply.v4().reversed().are(&self.key),
            None => false,
        }
    }
}

/// Fields that a packet reads, and the sequence at which they were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SteadySnapshot {
    pub(crate) sequence: u64,
    pub(crate) direction: TrafficDirection,
    pub(crate) kind: SteadyKind,
    pub(crate) expires: Instant,
    pub(crate) mark: u32,
    pub(crate) label: u128,
    pub(crate) policy: CtPolicyId,
    /// Side of a translation, and the key of the other direction.
    pub(crate) nat: Option<(NatSide, KeyWordsV4)>,
}

/// A line of an entry.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct SteadyLine {
    words: [AtomicU64; 8],
}

impl SteadyLine {
    /// Sets all words to zero. The line belongs to no entry.
    pub(crate) fn reset(&self) {
        for word in &self.words {
            word.store(0, Ordering::Relaxed);
        }
    }

    #[inline]
    fn load(&self, word: usize) -> u64 {
        self.words[word].load(Ordering::Relaxed)
    }

    #[inline]
    fn store(&self, word: usize, value: u64) {
        self.words[word].store(value, Ordering::Relaxed);
    }
}

/// The entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SteadyEntry<'a> {
    first: &'a SteadyLine,
    second: Option<&'a SteadyLine>,
}

/// The right to write an entry, which ends when it is dropped.
#[derive(Debug)]
pub(crate) struct SteadyWriter<'a> {
    entry: SteadyEntry<'a>,
    /// Odd.
    sequence: u64,
}

impl<'a> SteadyEntry<'a> {
    #[inline]
    pub(crate) const fn new(first: &'a SteadyLine, second: Option<&'a SteadyLine>) -> Self {
        Self { first, second }
    }

    /// Reads the connection, if the entry is that of `key`; `reversed` is its reversed key. Returns
    /// none if it belongs to another connection or is being written.
    #[inline]
    pub(crate) fn read(&self, key: &KeyWords) -> Option<SteadySnapshot> {
        let sequence = self.first.words[word::SEQUENCE].load(Ordering::Acquire);
        let details = self.load(word::DETAILS);
        let (direction, nat) = match nat_of(details) {
            None => (self.direction_of(key)?, None),
            Some(side) => {
                let original = self.original_v4();
                let reply = match has_reply_key(details) {
                    true => self.reply_v4(),
                    false => original.reversed(),
                };
                let (direction, other) = match (reply.are(key), original.are(key)) {
                    (true, _) => (TrafficDirection::Reply, original),
                    (_, true) => (TrafficDirection::Original, reply),
                    _ => return None,
                };
                (direction, Some((side, other)))
            }
        };
        let label = match has_label(details) {
            true => {
                let [high, low] = [0, 1].map(|at| self.load_second(word::LABEL + at));
                u128::from(high) << 64 | u128::from(low)
            }
            false => 0,
        };
        let snapshot = SteadySnapshot {
            sequence,
            direction,
            kind: kind_of(details)?,
            expires: Instant::from_nanos(self.load(word::EXPIRES)),
            mark: mark_of(details),
            label,
            policy: policy_of(details),
            nat,
        };
        fence(Ordering::Acquire);
        let is_same = self.load(word::SEQUENCE) == sequence;
        (is_same && sequence & 1 == 0).then_some(snapshot)
    }

    /// Returns the direction of packets with a key, unless the connection is translated.
    #[inline]
    fn direction_of(&self, key: &KeyWords) -> Option<TrafficDirection> {
        if key.is_v6() {
            return self.direction_of_v6(key);
        }
        let (original, key) = (self.original_v4(), key.v4());
        if original == key {
            return Some(TrafficDirection::Original);
        }
        (original == key.reversed()).then_some(TrafficDirection::Reply)
    }

    fn direction_of_v6(&self, key: &KeyWords) -> Option<TrafficDirection> {
        let has_key = |key: &KeyWords| {
            self.load(word::PORTS) == key.ports
                && (0..4).all(|at| self.load_second(word::ADDRESSES_V6 + at) == key.addresses[at])
        };
        if has_key(key) {
            return Some(TrafficDirection::Original);
        }
        has_key(&key.reversed()).then_some(TrafficDirection::Reply)
    }

    #[inline]
    fn original_v4(&self) -> KeyWordsV4 {
        KeyWordsV4 {
            addresses: self.load(word::ADDRESSES),
            ports: self.load(word::PORTS),
        }
    }

    #[inline]
    fn reply_v4(&self) -> KeyWordsV4 {
        KeyWordsV4 {
            addresses: self.load_second(word::REPLY_ADDRESSES),
            ports: self.load_second(word::REPLY_PORTS),
        }
    }

    /// The end of the connection's life. Exact only for a writer.
    pub(crate) fn expires(&self) -> Instant {
        Instant::from_nanos(self.load(word::EXPIRES))
    }

    /// Becomes the writer if nothing was written since `sequence` was read.
    #[inline]
    pub(crate) fn try_write(&self, sequence: u64) -> Option<SteadyWriter<'a>> {
        let word = &self.first.words[word::SEQUENCE];
        let odd = sequence | 1;
        let locked = word.compare_exchange(sequence, odd, Ordering::Acquire, Ordering::Relaxed);
        locked.ok()?;
        // Readers that see one of the writes see that the sequence is odd.
        fence(Ordering::Release);
        Some(SteadyWriter {
            entry: *self,
            sequence: odd,
        })
    }

    /// Becomes the writer, after another one has finished.
    pub(crate) fn write(&self) -> SteadyWriter<'a> {
        loop {
            for _ in 0..SPINS {
                let sequence = self.load(word::SEQUENCE) & !1;
                if let Some(writer) = self.try_write(sequence) {
                    return writer;
                }
                std::hint::spin_loop();
            }
            thread::yield_now();
        }
    }

    #[inline]
    fn load(&self, word: usize) -> u64 {
        self.first.load(word)
    }

    /// Zero, if there is no second line.
    #[inline]
    fn load_second(&self, word: usize) -> u64 {
        self.second.map_or(0, |line| line.load(word))
    }

    #[inline]
    fn store(&self, word: usize, value: u64) {
        self.first.store(word, value);
    }

    fn store_second(&self, word: usize, value: u64) {
        if let Some(line) = self.second {
            line.store(word, value);
        }
    }
}

impl SteadyWriter<'_> {
    /// Writes a connection. One that is wide needs both lines.
    pub(crate) fn fill(&self, state: &SteadyState) {
        let entry = self.entry;
        debug_assert!(!state.is_wide() || entry.second.is_some(), "both lines");
        let has_label = state.label != [0; 2];
        entry.store(word::ADDRESSES, state.key.addresses[0]);
        if state.key.is_v6() {
            for (at, word) in state.key.addresses.into_iter().enumerate() {
                entry.store_second(word::ADDRESSES_V6 + at, word);
            }
        }
        entry.store(word::PORTS, state.key.ports);
        entry.store(word::EXPIRES, state.expires.as_nanos());
        entry.store(
            word::DETAILS,
            u64::from(state.mark) << 32
                | u64::from(state.policy.number()) << 16
                | nat_bits(state.nat.map(|(side, _)| side))
                | u64::from(state.has_reply_key()) << 11
                | u64::from(has_label) << 8
                | state.kind as u64,
        );
        if has_label {
            entry.store_second(word::LABEL, state.label[0]);
            entry.store_second(word::LABEL + 1, state.label[1]);
        }
        if let Some((_, reply)) = state.nat.as_ref().filter(|_| state.has_reply_key()) {
            entry.store_second(word::REPLY_ADDRESSES, reply.addresses[0]);
            entry.store_second(word::REPLY_PORTS, reply.ports);
        }
        if let Some(tcp) = &state.tcp {
            self.set_tcp(&tcp.to_words());
        }
    }

    /// Removes the connection: no key is that of the entry any more.
    pub(crate) fn clear(&self) {
        self.entry.store(word::PORTS, 0);
        self.entry.store(word::DETAILS, 0);
    }

    pub(crate) fn expires(&self) -> Instant {
        self.entry.expires()
    }

    pub(crate) fn set_expires(&self, expires: Instant) {
        self.entry.store(word::EXPIRES, expires.as_nanos());
    }

    /// Returns the ends of a TCP connection.
    #[inline]
    pub(crate) fn tcp(&self) -> TcpConnection {
        TcpConnection::from_words([0, 1, 2].map(|at| self.entry.load(word::TCP + at)))
    }

    #[inline]
    pub(crate) fn set_tcp(&self, words: &TcpWords) {
        for (at, word) in words.iter().enumerate() {
            self.entry.store(word::TCP + at, *word);
        }
    }
}

impl Drop for SteadyWriter<'_> {
    #[inline]
    fn drop(&mut self) {
        let next = self.sequence.wrapping_add(1);
        self.entry.first.words[word::SEQUENCE].store(next, Ordering::Release);
    }
}

#[inline]
const fn has_label(details: u64) -> bool {
    details >> 8 & 1 == 1
}

#[inline]
const fn nat_of(details: u64) -> Option<NatSide> {
    match details >> 9 & 3 {
        1 => Some(NatSide::Source),
        2 => Some(NatSide::Destination),
        _ => None,
    }
}

#[inline]
const fn has_reply_key(details: u64) -> bool {
    details >> 11 & 1 == 1
}

const fn nat_bits(side: Option<NatSide>) -> u64 {
    match side {
        None => 0,
        Some(NatSide::Source) => 1 << 9,
        Some(NatSide::Destination) => 2 << 9,
    }
}

#[inline]
const fn kind_of(details: u64) -> Option<SteadyKind> {
    match details & 0xff {
        1 => Some(SteadyKind::Tcp),
        2 => Some(SteadyKind::Datagrams),
        3 => Some(SteadyKind::OneWay),
        _ => None,
    }
}

#[inline]
const fn mark_of(details: u64) -> u32 {
    let [a, b, c, d, ..] = details.to_be_bytes();
    u32::from_be_bytes([a, b, c, d])
}

#[inline]
fn policy_of(details: u64) -> CtPolicyId {
    let [_, _, _, _, high, low, ..] = details.to_be_bytes();
    CtPolicyId::new(u16::from_be_bytes([high, low])).unwrap_or(CtPolicyId::DEFAULT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::CtZone;
    use crate::test_packets::{udp_key, udp_v6};

    fn state(key: KeyWords, label: [u64; 2]) -> SteadyState {
        SteadyState {
            key,
            kind: SteadyKind::Datagrams,
            expires: Instant::from_secs(9),
            mark: 0xaabb_ccdd,
            label,
            policy: CtPolicyId::new(77).expect("below the count"),
            tcp: None,
            nat: None,
        }
    }

    #[test]
    fn line_of_an_entry_takes_a_cache_line() {
        assert_eq!(size_of::<SteadyLine>(), 64);
    }

    #[test]
    fn plain_connections_over_ipv4_need_one_line() {
        let key = KeyWords::of(&udp_key(1, 2)).expect("UDP");
        let (first, label) = (SteadyLine::default(), [0; 2]);
        let entry = SteadyEntry::new(&first, None);
        let plain = state(key, label);
        assert!(!plain.is_wide() && state(key, [0, 1]).is_wide());
        let nat = |reply| Some((NatSide::Source, reply));
        let translated = SteadyState {
            nat: nat(key),
            ..plain
        };
        assert!(translated.is_wide());
        // The translation has found the ends of the packet free.
        let same_ends = SteadyState {
            nat: nat(key.reversed()),
            ..plain
        };
        assert!(!same_ends.is_wide());
        entry.write().fill(&same_ends);
        for (key, other) in [(key, key.reversed()), (key.reversed(), key)] {
            let read = entry.read(&key).expect("its key");
            assert_eq!(read.nat, Some((NatSide::Source, other.v4())));
        }
        entry.write().fill(&plain);
        assert_eq!(entry.read(&key).map(|read| read.label), Some(0));
        first.reset();
        assert_eq!(entry.read(&key), None);
    }

    #[test]
    fn entry_is_read_in_both_directions() {
        let lines = [SteadyLine::default(), SteadyLine::default()];
        let entry = SteadyEntry::new(&lines[0], lines.get(1));
        let v6 = udp_v6(1, 2).tuple.in_zone(CtZone(3));
        for (key, label) in [(udp_key(1, 2), [0; 2]), (v6, [5, 6])] {
            let read_label = u128::from(label[0]) << 64 | u128::from(label[1]);
            let key = KeyWords::of(&key).expect("UDP");
            let state = state(key, label);
            assert_eq!(entry.read(&key), None);
            entry.write().fill(&state);
            let read = entry.read(&key).expect("its key");
            assert_eq!(
                (read.mark, read.label, read.policy),
                (state.mark, read_label, state.policy)
            );
            assert_eq!((read.expires, read.kind), (state.expires, state.kind));
            assert_eq!(read.direction, TrafficDirection::Original);
            let reply = entry.read(&key.reversed()).expect("its key");
            assert_eq!(reply.direction, TrafficDirection::Reply);
            entry.write().clear();
            assert_eq!(entry.read(&key), None);
        }
    }

    #[test]
    fn entry_of_a_translated_connection_has_both_keys() {
        let lines = [SteadyLine::default(), SteadyLine::default()];
        let entry = SteadyEntry::new(&lines[0], lines.get(1));
        let [key, reply] = [udp_key(1, 2), udp_key(2, 3)].map(|key| KeyWords::of(&key));
        let (key, reply) = (key.expect("UDP"), reply.expect("UDP"));
        let nat = Some((NatSide::Source, reply));
        entry.write().fill(&SteadyState {
            nat,
            ..state(key, [0; 2])
        });
        let read = entry.read(&reply).expect("its reply key");
        assert_eq!(read.direction, TrafficDirection::Reply);
        assert_eq!(read.nat, Some((NatSide::Source, key.v4())));
        let read = entry.read(&key).expect("its key");
        assert_eq!(read.direction, TrafficDirection::Original);
        assert_eq!(read.nat, Some((NatSide::Source, reply.v4())));
        assert_eq!(entry.read(&key.reversed()), None);
        entry.write().clear();
        assert_eq!((entry.read(&key), entry.read(&reply)), (None, None));
    }

    #[test]
    fn entry_is_not_read_while_it_is_written() {
        let lines = [SteadyLine::default(), SteadyLine::default()];
        let entry = SteadyEntry::new(&lines[0], lines.get(1));
        let key = KeyWords::of(&udp_key(1, 2)).expect("UDP");
        entry.write().fill(&state(key, [0; 2]));
        let sequence = entry.read(&key).expect("its key").sequence;
        let writer = entry.try_write(sequence).expect("no writer");
        assert_eq!(entry.read(&key), None);
        assert!(entry.try_write(sequence).is_none());
        drop(writer);
        assert!(entry.try_write(sequence).is_none(), "the sequence is older");
        assert!(entry.read(&key).is_some());
    }
}
