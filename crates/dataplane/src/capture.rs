//! Frames that somebody watches on their way through a bridge: which they are, and what is told
//! of each. A bridge that nobody watches has none of this.
//!
//! Who watches, and for how long, is the control thread's business.

use std::sync::Arc;

use base::sync::atomic::{AtomicU64, Ordering};
use base::{Cookie, Instant, PortNo, TableId};
use flow::field::Depth;
use flow::{FlowKey, Match};
use packet::Frame;
use pipeline::{Destination, DropReason, Rule, Trace};

use super::slots::PortKey;

/// A capture's number. Not used again while the process lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CaptureId(pub u64);

/// Which frames somebody watches.
#[derive(Debug)]
pub struct Capture {
    /// Its number.
    pub id: CaptureId,
    filter: Match,
    /// How deep a frame must be read to tell.
    depth: Depth,
    /// How many bytes of each frame are told.
    pub snaplen: usize,
    /// Frames that it was not told of, since the control thread had more to do than it could.
    missed: AtomicU64,
}

impl Capture {
    /// Those that the filter accepts as they come in.
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

    /// A worker: it was not told of a frame.
    pub(crate) fn miss(&self) {
        self.missed.fetch_add(1, Ordering::Relaxed);
    }

    /// How many it was not told of.
    pub fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }
}

/// The captures of a bridge, one at least.
#[derive(Clone, Debug)]
pub struct Captures(Vec<Arc<Capture>>);

impl Captures {
    /// These; none if there are none.
    pub fn of(captures: impl IntoIterator<Item = Arc<Capture>>) -> Option<Arc<Self>> {
        let captures: Vec<_> = captures.into_iter().collect();
        (!captures.is_empty()).then(|| Arc::new(Self(captures)))
    }

    /// How deep frames must be read to tell whether they are watched.
    pub(crate) fn depth(&self) -> Depth {
        let depths = self.0.iter().map(|capture| capture.depth);
        depths.max().unwrap_or_default()
    }

    /// Who watches the frame with these fields; of one that cannot be read, who watches all.
    pub(crate) fn of_frame(&self, key: Option<&FlowKey>) -> Vec<Arc<Capture>> {
        let watches = |capture: &&Arc<Capture>| match key {
            Some(key) => capture.filter.accepts(key),
            None => capture.filter.is_any(),
        };
        self.0.iter().filter(watches).cloned().collect()
    }
}

/// A frame as it was at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameSnapshot {
    /// Its first bytes. A checksum that a device was to finish is not finished.
    pub bytes: Vec<u8>,
    /// How many there were.
    pub length: usize,
    /// For how many frames on the wire it stands.
    pub segments: u64,
}

impl FrameSnapshot {
    /// The frame as it is now.
    pub(crate) fn of(frame: &Frame, snaplen: usize) -> Self {
        let bytes = frame.bytes();
        Self {
            bytes: bytes[..bytes.len().min(snaplen)].to_vec(),
            length: bytes.len(),
            segments: frame.wire_frames(),
        }
    }
}

/// A table that a frame came to, and what it found there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableVisit {
    /// The table.
    pub table: TableId,
    /// The rule; none if there was none for it.
    pub rule: Option<VisitedRule>,
}

/// A rule that took a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VisitedRule {
    /// Its priority.
    pub priority: u16,
    /// Its cookie.
    pub cookie: Cookie,
    /// Its match.
    pub matching: Match,
}

/// A frame that left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedOutput {
    /// By this port; [`PortNo::CONTROLLER`] if it went to the controllers.
    pub port: PortNo,
    /// As it left.
    pub frame: FrameSnapshot,
    /// How many tables it had come to until then.
    pub met: usize,
}

/// What is told of a frame.
#[derive(Debug)]
pub struct CaptureRecord {
    /// Who is told.
    pub captures: Vec<Arc<Capture>>,
    /// When the worker took it.
    pub at: Instant,
    /// Where it came in.
    pub from: PortKey,
    /// As it came.
    pub came: FrameSnapshot,
    /// The tables that it came to, one after the other.
    pub met: Vec<TableVisit>,
    /// What left.
    pub left: Vec<CapturedOutput>,
    /// What was not done.
    pub drops: Vec<DropReason>,
}

impl CaptureRecord {
    /// As much of each frame as the one who wants most wants.
    pub fn snaplen(&self) -> usize {
        let wanted = self.captures.iter().map(|capture| capture.snaplen);
        wanted.max().unwrap_or_default()
    }
}

/// What is noted on a frame's way.
#[derive(Debug, Default)]
pub(crate) struct CaptureTrace {
    /// The tables that it came to.
    pub(crate) met: Vec<TableVisit>,
    /// For each exit, how many tables it had come to.
    pub(crate) sent: Vec<usize>,
}

impl Trace for CaptureTrace {
    fn on_lookup(&mut self, table: TableId, found: Option<&Rule>) {
        let rule = found.map(|rule| VisitedRule {
            priority: rule.priority(),
            cookie: rule.cookie,
            matching: rule.matching().clone(),
        });
        self.met.push(TableVisit { table, rule });
    }

    fn on_output(&mut self, _: &Destination) {
        self.sent.push(self.met.len());
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
    fn a_frame_is_told_to_all_who_watch_it() {
        let capture = |id, filter| Arc::new(Capture::new(CaptureId(id), filter, 64));
        let arp = Match::any().with(Field::EthType, 0x806).expect("legal");
        let other = Match::any().with(Field::InPort, 4).expect("legal");
        let captures = Captures::of([capture(1, arp), capture(2, Match::any()), capture(3, other)]);
        let captures = captures.expect("there are some");
        let told = |key: Option<&FlowKey>| -> Vec<_> {
            let told = captures.of_frame(key).into_iter();
            told.map(|capture| capture.id.0).collect()
        };
        assert_eq!(told(Some(&key_of([8, 6]))), [1, 2]);
        assert_eq!(told(Some(&key_of([8, 7]))), [2]);
        assert_eq!(told(None), [2]);
        assert!(Captures::of([]).is_none());
    }

    #[test]
    fn frames_are_read_as_deep_as_filters_ask() {
        let of = |text: &str| {
            let read = flow::text::NameMap::default().parse_flow_stats_request(text);
            Capture::new(CaptureId(0), read.expect("it is a match").matching, 64).depth
        };
        assert_eq!(of(""), Depth::Link);
        assert_eq!(of("arp,arp_spa=10.0.0.1"), Depth::Network);
        assert_eq!(of("udp,tp_dst=53"), Depth::Transport);
    }

    #[test]
    fn a_long_frame_is_cut_and_says_how_long_it_was() {
        let snap = FrameSnapshot::of(&Frame::from_bytes(&[7; 100]), 10);
        assert_eq!(
            (snap.bytes, snap.length, snap.segments),
            (vec![7; 10], 100, 1)
        );
    }
}
