//! Helpers for protocols that announce connections in their payload: FTP (RFC 959, 2428) and TFTP
//! (RFC 1350).
//!
//! A control message announces the address and port of a data connection. The helper stores an
//! expectation: a key with any source port. The first packet with that key is related to the control
//! connection, inherits its mark and label, and is translated as its parent is:
//!
//! ```text
//!  control   client:4000 -> server:21      PORT 10,0,0,1,19,137
//!  expected  server:any  -> client:5001    related to the control connection
//! ```
//!
//! With NAT the announced address is replaced in the payload. If its length changes, sequence and
//! acknowledgment numbers of later segments are shifted.
//!
//! Messages are **not** reassembled: one that is split over segments is invalid, as in Open vSwitch.
//! An announcement of an address that is no end of the control connection is invalid too, so that a
//! client cannot open a connection to a third host.

mod ftp;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Range;
use std::sync::PoisonError;

use base::mix64;
use base::sync::atomic::{AtomicUsize, Ordering};
use base::sync::{Mutex, MutexGuard};

use crate::entry::ConnectionEntry;
use crate::key::{ConnectionKey, CtAddress, Endpoint, KeyProtocol, TrafficDirection};
use crate::nat::NatSide;
use crate::protocol::tcp::is_before;

use ftp::{FtpAddress, FtpMessage, FtpMode};

/// Parts of the table of expectations, each with a lock.
const PARTS: usize = 64;
/// Expectations of a part: 16,384 in total, more than control connections of a large server.
const PART_MAX: usize = 256;

/// A helper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AlgHelper {
    /// FTP, control port 21.
    Ftp,
    /// TFTP, port 69.
    Tftp,
}

impl AlgHelper {
    /// Returns the helper of a port, the argument `alg` of `ct`.
    #[must_use]
    pub const fn for_port(port: u16) -> Option<Self> {
        match port {
            21 => Some(Self::Ftp),
            69 => Some(Self::Tftp),
            _ => None,
        }
    }

    /// Returns the helper's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ftp => "ftp",
            Self::Tftp => "tftp",
        }
    }

    /// True if the helper can read packets of a connection.
    pub(crate) fn fits(self, original: &ConnectionKey) -> bool {
        match self {
            Self::Ftp => original.protocol == KeyProtocol::TCP && original.dst.port == 21,
            Self::Tftp => original.protocol == KeyProtocol::UDP && original.dst.port == 69,
        }
    }
}

/// Shift of the sequence numbers of one direction: segments after the last one that grew are shifted
/// by more than those before it, which may be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SequenceSkew {
    pub(crate) direction: TrafficDirection,
    /// Sequence number of the last segment that grew, as its sender has it.
    position: u32,
    /// Octets by which payloads before it grew.
    before: i32,
    /// Octets by which they and its own payload grew.
    after: i32,
}

impl SequenceSkew {
    pub(crate) const NONE: Self = Self {
        direction: TrafficDirection::Original,
        position: 0,
        before: 0,
        after: 0,
    };

    /// Records that a segment grew. A segment that is sent again changes nothing.
    pub(crate) const fn grow(&mut self, direction: TrafficDirection, sequence: u32, growth: i32) {
        let is_first = self.before == self.after;
        if is_first || is_before(self.position, sequence) {
            *self = Self {
                direction,
                position: sequence,
                before: self.after,
                after: self.after.wrapping_add(growth),
            };
        }
    }

    /// Returns the shift of a sequence number, as the sender has it.
    pub(crate) const fn of_sequence(&self, sequence: u32) -> i32 {
        if is_before(self.position, sequence) {
            self.after
        } else {
            self.before
        }
    }

    /// Returns the shift of the sequence number that an acknowledgment names, as the receiver of the
    /// shifted segments has it.
    pub(crate) const fn of_acknowledgment(&self, acknowledgment: u32) -> i32 {
        self.of_sequence(acknowledgment.wrapping_add_signed(self.before.wrapping_neg()))
    }
}

/// A shift of a segment's numbers, which the caller applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SequenceAdjust {
    /// Added to the sequence number.
    pub sequence: i32,
    /// Added to the acknowledgment number, and to the edges of SACK blocks.
    pub acknowledgment: i32,
}

/// A replacement in the payload, which the caller applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PayloadRewrite {
    /// Bytes that are replaced.
    pub range: Range<usize>,
    /// Their replacement.
    pub text: String,
}

/// A connection that a helper expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AlgExpectation {
    /// Original key of the control connection.
    pub(crate) parent: ConnectionKey,
    pub(crate) mark: u32,
    pub(crate) label: [u64; 2],
    /// Side that is translated, and its address in the reply direction.
    pub(crate) side: NatSide,
    pub(crate) address: CtAddress,
}

impl AlgExpectation {
    /// Returns the reply key of the connection if it is translated.
    pub(crate) fn reply_key(&self, original: &ConnectionKey) -> ConnectionKey {
        let mut reply = original.reversed();
        match self.side {
            NatSide::Source => reply.dst.address = self.address,
            NatSide::Destination => reply.src.address = self.address,
        }
        reply
    }
}

/// Result of a helper for one packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HelperResult {
    /// The packet announces nothing.
    Nothing,
    /// The message is malformed, or announces a third host.
    Invalid,
    /// A connection is expected.
    Expect(Box<AnnouncedConnection>),
}

/// A connection that a control message announces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AnnouncedConnection {
    pub(crate) key: ConnectionKey,
    pub(crate) expectation: AlgExpectation,
    /// Change of the payload, with NAT.
    pub(crate) rewrite: Option<PayloadRewrite>,
}

/// Reads a packet of a control connection.
pub(crate) fn read_packet(
    entry: &ConnectionEntry,
    direction: TrafficDirection,
    payload: &[u8],
) -> HelperResult {
    match entry.helper() {
        Some(AlgHelper::Tftp) if direction == TrafficDirection::Original => {
            let (key, expectation) = expect(entry, direction, entry.original().src.port);
            HelperResult::Expect(Box::new(AnnouncedConnection {
                key,
                expectation,
                rewrite: None,
            }))
        }
        Some(AlgHelper::Ftp) => match ftp::parse(payload, entry.original().family) {
            FtpMessage::Other => HelperResult::Nothing,
            FtpMessage::Malformed => HelperResult::Invalid,
            FtpMessage::Announcement {
                mode,
                address,
                port,
            } => read_announcement(entry, direction, mode, address, port),
        },
        Some(AlgHelper::Tftp) | None => HelperResult::Nothing,
    }
}

fn read_announcement(
    entry: &ConnectionEntry,
    direction: TrafficDirection,
    mode: FtpMode,
    address: Option<FtpAddress>,
    port: u16,
) -> HelperResult {
    let (sender, own, translated) = match mode {
        FtpMode::Active => (
            TrafficDirection::Original,
            entry.original().src.address,
            entry.reply().dst.address,
        ),
        FtpMode::Passive => (
            TrafficDirection::Reply,
            entry.reply().src.address,
            entry.original().dst.address,
        ),
    };
    if direction != sender {
        // Neither end reads the other one's messages from its own.
        return HelperResult::Nothing;
    }
    let mut rewrite = None;
    if let Some(FtpAddress {
        address,
        form,
        range,
    }) = address
    {
        let announced = match address {
            IpAddr::V4(address) => CtAddress::from(address),
            IpAddr::V6(address) => CtAddress::from(address),
        };
        if announced != own && announced != translated {
            return HelperResult::Invalid;
        }
        if announced != translated && entry.nat().is_some() {
            let text = form.text(translated.to_ip(entry.original().family));
            rewrite = Some(PayloadRewrite { range, text });
        }
    }
    let (key, expectation) = expect(entry, direction, port);
    HelperResult::Expect(Box::new(AnnouncedConnection {
        key,
        expectation,
        rewrite,
    }))
}

/// Returns the expectation of a connection to `port` of the end that sent the message.
fn expect(
    entry: &ConnectionEntry,
    direction: TrafficDirection,
    port: u16,
) -> (ConnectionKey, AlgExpectation) {
    let is_destination_nat = entry.nat() == Some(NatSide::Destination);
    let (original, reply) = (&entry.original(), &entry.reply());
    let (from, side, address) = match direction {
        TrafficDirection::Reply if is_destination_nat => {
            (original, NatSide::Destination, reply.src.address)
        }
        TrafficDirection::Reply => (original, NatSide::Source, reply.dst.address),
        TrafficDirection::Original if is_destination_nat => {
            (reply, NatSide::Source, original.dst.address)
        }
        TrafficDirection::Original => (reply, NatSide::Destination, original.src.address),
    };
    let key = ConnectionKey {
        src: Endpoint {
            address: from.src.address,
            ..Endpoint::default()
        },
        dst: Endpoint {
            address: from.dst.address,
            port,
            message_type: 0,
        },
        ..*original
    };
    let expectation = AlgExpectation {
        parent: *original,
        mark: entry.mark,
        label: entry.label_words(),
        side,
        address,
    };
    (key, expectation)
}

/// Expectations by key.
type ExpectationMap = BTreeMap<ConnectionKey, AlgExpectation>;

/// All expectations. While there is none, a new connection reads one number.
#[derive(Debug)]
pub(crate) struct ExpectationTable {
    parts: Box<[Mutex<ExpectationMap>]>,
    count: AtomicUsize,
}

impl ExpectationTable {
    pub(crate) fn new() -> Self {
        Self {
            parts: (0..PARTS)
                .map(|_| Mutex::new(ExpectationMap::new()))
                .collect(),
            count: AtomicUsize::new(0),
        }
    }

    /// True if no connection is expected.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Returns the expectation of a new connection.
    pub(crate) fn find(&self, key: &ConnectionKey) -> Option<AlgExpectation> {
        if self.is_empty() {
            return None;
        }
        let mut key = *key;
        key.src.port = 0;
        self.part(&key).get(&key).copied()
    }

    /// Adds an expectation, unless the key has one; returns false if there is no room.
    pub(crate) fn insert(&self, key: ConnectionKey, expectation: AlgExpectation) -> bool {
        let mut part = self.part(&key);
        if part.contains_key(&key) {
            return true;
        }
        if part.len() >= PART_MAX {
            return false;
        }
        part.insert(key, expectation);
        self.count.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Removes the expectations of a control connection.
    pub(crate) fn remove_children(&self, parent: &ConnectionKey) {
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        for part in &self.parts {
            let mut part = part.lock().unwrap_or_else(PoisonError::into_inner);
            let before = part.len();
            part.retain(|_, expectation| expectation.parent != *parent);
            let removed = before - part.len();
            self.count.fetch_sub(removed, Ordering::Relaxed);
        }
    }

    fn part(&self, key: &ConnectionKey) -> MutexGuard<'_, ExpectationMap> {
        let [.., word] = key.symmetric_words();
        let [.., low] = mix64(word).to_be_bytes();
        let at = usize::from(low) % PARTS;
        self.parts[at]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_packets::tcp_key;

    #[test]
    fn skew_shifts_segments_after_those_that_grew() {
        let mut skew = SequenceSkew::NONE;
        assert_eq!((skew.of_sequence(7), skew.of_acknowledgment(7)), (0, 0));
        skew.grow(TrafficDirection::Reply, u32::MAX, 3);
        skew.grow(TrafficDirection::Reply, u32::MAX, 3);
        assert_eq!((skew.of_sequence(u32::MAX), skew.of_sequence(9)), (0, 3));
        assert_eq!(skew.of_acknowledgment(u32::MAX), 0);
        skew.grow(TrafficDirection::Reply, 40, -2);
        assert_eq!((skew.of_sequence(40), skew.of_sequence(60)), (3, 1));
        // The segment begins at 43 for its receiver.
        assert_eq!(skew.of_acknowledgment(43), 3);
        assert_eq!(skew.of_acknowledgment(61), 1);
    }

    fn expectation(parent: &ConnectionKey) -> AlgExpectation {
        AlgExpectation {
            parent: *parent,
            mark: 1,
            label: [0; 2],
            side: NatSide::Source,
            address: parent.src.address,
        }
    }

    #[test]
    fn expectations_end_with_their_control_connection() {
        let table = ExpectationTable::new();
        let parent = tcp_key(1, 2);
        let mut key = tcp_key(2, 1);
        assert_eq!(table.find(&key), None);
        key.src.port = 0;
        assert!(table.insert(key, expectation(&parent)));
        key.src.port = 20;
        assert_eq!(table.find(&key), Some(expectation(&parent)));
        key.dst.port += 1;
        assert_eq!(table.find(&key), None);
        key.dst.port -= 1;
        table.remove_children(&parent);
        assert_eq!(table.find(&key), None);
    }

    #[test]
    fn expectations_are_bounded() {
        let table = ExpectationTable::new();
        let parent = tcp_key(1, 2);
        let mut key = tcp_key(2, 1);
        key.src.port = 0;
        let mut refused = 0;
        for port in 1..=u16::MAX {
            key.dst.port = port;
            refused += u32::from(!table.insert(key, expectation(&parent)));
        }
        assert!(refused > 65_535 - 64 * 256 - 1);
        assert_eq!(AlgHelper::for_port(21), Some(AlgHelper::Ftp));
        assert_eq!(AlgHelper::for_port(22), None);
    }
}
