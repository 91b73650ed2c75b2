//! Packet capture in a bridge: filters, and the record of each captured frame. A bridge without
//! captures has none of this.
//!
//! The control thread owns the captures and their lifetimes.

use std::sync::Arc;

use base::sync::atomic::{AtomicU64, Ordering};
use base::{Cookie, Instant, PortNo, TableId};
use flow::field::Depth;
use flow::{FlowKey, Match};
use packet::Frame;
use pipeline::{Destination, DropReason, Rule, Trace};

use super::slots::PortKey;

/// The number of a capture, unique for the lifetime of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CaptureId(pub u64);

/// A capture: a filter on arriving frames.
#[derive(Debug)]
pub struct Capture {
    /// The number.
    pub id: CaptureId,
    filter: Match,
    /// The parse depth that the filter needs.
    depth: Depth,
    /// The maximum number of bytes recorded of each frame.
    pub snaplen: usize,
    /// Frames that were not recorded because the event ring was full.
    missed: AtomicU64,
}

impl Capture {
    /// Returns a capture of the arriving frames that the filter accepts.
    pub fn new(id: CaptureId, filter: Match, snaplen: usize) -> Self {
        let depths = filter.terms().map(|term| term.field.depth());
        Self {
            id,
            depth: depths.max().unwrap_or_default(),
            filter,
            snaplen,
            missed: AtomicU64::new(0),
        }
    }

    /// Counts a lost record. Called by workers.
    pub(crate) fn miss(&self) {
        self.missed.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of lost records.
    pub fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }
}

/// The captures of a bridge, at least one.
#[derive(Clone, Debug)]
pub struct Captures(Vec<Arc<Capture>>);

impl Captures {
    /// Returns the set of these captures; none if there are none.
    pub fn of(captures: impl IntoIterator<Item = Arc<Capture>>) -> Option<Arc<Self>> {
        let captures: Vec<_> = captures.into_iter().collect();
        (!captures.is_empty()).then(|| Arc::new(Self(captures)))
    }

    /// Returns the parse depth that the filters need.
    pub(crate) fn depth(&self) -> Depth {
        let depths = self.0.iter().map(|capture| capture.depth);
        depths.max().unwrap_or_default()
    }

    /// Returns the captures that select this flow key; for an unreadable frame those without a
    /// filter.
    pub(crate) fn of_frame(&self, key: Option<&FlowKey>) -> Vec<Arc<Capture>> {
        let watches = |capture: &&Arc<Capture>| match key {
            Some(key) => capture.filter.accepts(key),
            None => capture.filter.is_any(),
        };
        self.0.iter().filter(watches).cloned().collect()
    }
}

/// A copy of a frame at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameSnapshot {
    /// The first bytes. A checksum that was left to the device is incomplete.
    pub bytes: Vec<u8>,
    /// The length of the frame in bytes.
    pub length: usize,
    /// The number of frames on the wire after segmentation.
    pub segments: u64,
}

impl FrameSnapshot {
    /// Copies a frame.
    pub(crate) fn of(frame: &Frame, snaplen: usize) -> Self {
        let bytes = frame.bytes();
        Self {
            bytes: bytes[..bytes.len().min(snaplen)].to_vec(),
            length: bytes.len(),
            segments: frame.wire_frames(),
        }
    }
}

/// A table lookup and its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableVisit {
    /// The table.
    pub table: TableId,
    /// The rule that matched; none for a miss.
    pub rule: Option<VisitedRule>,
}

/// A rule that matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VisitedRule {
    /// The priority.
    pub priority: u16,
    /// The cookie.
    pub cookie: Cookie,
    /// The match.
    pub matching: Match,
}

/// An output of a captured frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedOutput {
    /// The port; [`PortNo::CONTROLLER`] for a packet-in.
    pub port: PortNo,
    /// The frame on egress.
    pub frame: FrameSnapshot,
    /// The number of table lookups before the output.
    pub lookups: usize,
}

/// The record of a captured frame.
#[derive(Debug)]
pub struct CaptureRecord {
    /// The captures that selected it.
    pub captures: Vec<Arc<Capture>>,
    /// The time at which the worker received it.
    pub at: Instant,
    /// The ingress port.
    pub from: PortKey,
    /// The frame on ingress.
    pub ingress: FrameSnapshot,
    /// The table lookups, in order.
    pub lookups: Vec<TableVisit>,
    /// The outputs.
    pub outputs: Vec<CapturedOutput>,
    /// The drop reasons.
    pub drops: Vec<DropReason>,
}

impl CaptureRecord {
    /// Returns the largest snapshot length of the captures.
    pub fn snaplen(&self) -> usize {
        let wanted = self.captures.iter().map(|capture| capture.snaplen);
        wanted.max().unwrap_or_default()
    }
}

/// A trace that records lookups and outputs.
#[derive(Debug, Default)]
pub(crate) struct CaptureTrace {
    /// The table lookups.
    pub(crate) lookups: Vec<TableVisit>,
    /// The number of lookups before each output.
    pub(crate) sent: Vec<usize>,
}

impl Trace for CaptureTrace {
    fn on_lookup(&mut self, table: TableId, found: Option<&Rule>) {
        let rule = found.map(|rule| VisitedRule {
            priority: rule.priority(),
            cookie: rule.cookie,
            matching: rule.matching().clone(),
        });
        self.lookups.push(TableVisit { table, rule });
    }

    fn on_output(&mut self, _: &Destination) {
        self.sent.push(self.lookups.len());
    }
}

#[cfg(test)]
mod tests {
    use flow::{Field, PipelineFields};

    use super::*;

    fn key_of(kind: [u8; 2]) -> FlowKey {
        let frame = [&[0; 12][..], &kind, &[0; 46]].concat();
        let mut key = FlowKey::new();
        let frame = Frame::from_bytes(&frame);
        assert!(key.read(&frame, Depth::Link, &PipelineFields::new(PortNo(3))));
        key
    }

    #[test]
    fn frame_is_selected_by_all_matching_captures() {
        let capture = |id, filter| Arc::new(Capture::new(CaptureId(id), filter, 64));
        let arp = Match::any().with(Field::EthType, 0x806).expect("legal");
        let other = Match::any().with(Field::InPort, 4).expect("legal");
        let captures = Captures::of([capture(1, arp), capture(2, Match::any()), capture(3, other)]);
        let captures = captures.expect("there are some");
        let selected = |key: Option<&FlowKey>| -> Vec<_> {
            let selected = captures.of_frame(key).into_iter();
            selected.map(|capture| capture.id.0).collect()
        };
        assert_eq!(selected(Some(&key_of([8, 6]))), [1, 2]);
        assert_eq!(selected(Some(&key_of([8, 7]))), [2]);
        assert_eq!(selected(None), [2]);
        assert!(Captures::of([]).is_none());
    }

    #[test]
    fn capture_parse_depth_follows_the_filters() {
        let of = |text: &str| {
            let read = flow::text::NameMap::default().parse_flow_stats_request(text);
            Capture::new(CaptureId(0), read.expect("it is a match").matching, 64).depth
        };
        assert_eq!(of(""), Depth::Link);
        assert_eq!(of("arp,arp_spa=10.0.0.1"), Depth::Network);
        assert_eq!(of("udp,tp_dst=53"), Depth::Transport);
    }

    #[test]
    fn snapshot_truncates_and_keeps_the_length() {
        let snap = FrameSnapshot::of(&Frame::from_bytes(&[7; 100]), 10);
        assert_eq!(
            (snap.bytes, snap.length, snap.segments),
            (vec![7; 10], 100, 1)
        );
    }
}
