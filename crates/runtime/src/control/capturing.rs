//! Captures: the frames of a bridge that pass a filter, until a client reads them. A capture
//! without a reader expires, and workers only receive the running ones.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use base::Instant;
use flow::Match;

use super::Control;
use super::commands::DeferredAnswer;
use control_api::capture::{
    CaptureReading, CapturedFrame, Exit, RuleName, SILENCE_MAX, TableMatch, TruncatedFrame,
};
use dataplane::capture::{Capture, CaptureId, CaptureRecord, Captures, FrameSnapshot};
use dataplane::program::BridgeId;

/// The limit of concurrent captures: each costs workers a check of every frame of its bridge.
const CAPTURES_MAX: usize = 4;

/// The limit of unread bytes of each capture: some tenths of a second of a fast link.
const UNREAD_MAX: usize = 16 << 20;

/// The limit of frame bytes in one answer.
const ANSWER_MAX: usize = 1 << 20;

/// The size of a record without its frames.
const RECORD_COST: usize = 256;

/// A running capture.
struct RunningCapture {
    bridge: BridgeId,
    capture: Arc<Capture>,
    /// The unread records.
    unread: VecDeque<Arc<CaptureRecord>>,
    /// The size of the unread records, in bytes.
    size: usize,
    /// Records dropped because the queue was full.
    missed: u64,
    last_read: Instant,
}

/// The running captures.
#[derive(Default)]
pub(super) struct Capturing {
    sessions: BTreeMap<CaptureId, RunningCapture>,
    next: u64,
    /// The captures of each bridge, as published to workers.
    published: BTreeMap<BridgeId, Arc<Captures>>,
    /// True if workers do not have the latest captures yet.
    pub(super) is_unpublished: bool,
}

impl Capturing {
    /// Returns the captures of a bridge, if any.
    pub(super) fn of(&self, bridge: BridgeId) -> Option<&Arc<Captures>> {
        self.published.get(&bridge)
    }

    /// Starts a capture of the frames of a bridge that pass a filter. Returns its number.
    pub(super) fn start(
        &mut self,
        bridge: BridgeId,
        filter: Match,
        snaplen: usize,
        now: Instant,
    ) -> Result<CaptureId, String> {
        if self.sessions.len() >= CAPTURES_MAX {
            return Err(format!(
                "{CAPTURES_MAX} captures are running, which is the limit: stop one of them first"
            ));
        }
        self.next += 1;
        let id = CaptureId(self.next);
        let session = RunningCapture {
            bridge,
            capture: Arc::new(Capture::new(id, filter, snaplen)),
            unread: VecDeque::new(),
            size: 0,
            missed: 0,
            last_read: now,
        };
        self.sessions.insert(id, session);
        self.publish_captures();
        Ok(id)
    }

    /// Stops a capture. Returns false if there is none with this number.
    pub(super) fn stop(&mut self, id: CaptureId) -> bool {
        let existed = self.sessions.remove(&id).is_some();
        if existed {
            self.publish_captures();
        }
        existed
    }

    /// Stops captures without a reader, and those of removed bridges.
    pub(super) fn expire(&mut self, now: Instant, exists: impl Fn(BridgeId) -> bool) {
        let before = self.sessions.len();
        self.sessions
            .retain(|_, session| now < session.due() && exists(session.bridge));
        if self.sessions.len() < before {
            self.publish_captures();
        }
    }

    /// Returns the time of the first expiry if no client reads.
    pub(super) fn next_expiry(&self) -> Option<Instant> {
        self.sessions.values().map(RunningCapture::due).min()
    }

    /// Queues a worker's record. If the reader is too slow, the latest records are dropped.
    pub(super) fn take(&mut self, record: CaptureRecord) {
        let record = Arc::new(record);
        for capture in &record.captures {
            if let Some(session) = self.sessions.get_mut(&capture.id) {
                session.take(&record);
            }
        }
    }

    fn publish_captures(&mut self) {
        let mut of_bridges: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for session in self.sessions.values() {
            let captures = of_bridges.entry(session.bridge).or_default();
            captures.push(Arc::clone(&session.capture));
        }
        let published = of_bridges.into_iter().filter_map(|(bridge, captures)| {
            Captures::of(captures).map(|captures| (bridge, captures))
        });
        self.published = published.collect();
        self.is_unpublished = true;
    }
}

impl RunningCapture {
    fn due(&self) -> Instant {
        self.last_read + SILENCE_MAX
    }

    fn take(&mut self, record: &Arc<CaptureRecord>) {
        let size = size(record);
        if self.size + size > UNREAD_MAX {
            self.missed += 1;
            return;
        }
        self.size += size;
        self.unread.push_back(Arc::clone(record));
    }

    /// Returns the records of the next answer.
    fn read(&mut self, now: Instant) -> Vec<Arc<CaptureRecord>> {
        self.last_read = now;
        let (mut describe_record, mut bytes) = (Vec::new(), 0);
        while bytes < ANSWER_MAX
            && let Some(record) = self.unread.pop_front()
        {
            bytes += size(&record);
            describe_record.push(record);
        }
        self.size -= bytes;
        describe_record
    }
}

fn size(record: &CaptureRecord) -> usize {
    let output = record.outputs.iter().map(|output| output.frame.bytes.len());
    RECORD_COST + record.ingress.bytes.len() + output.sum::<usize>()
}

impl Control {
    /// Stops captures without a reader, and those of removed bridges.
    pub(super) fn end_unread_captures(&mut self, now: Instant) {
        let sites = &self.sites;
        self.capturing.expire(now, |id| sites.contains_key(&id));
    }

    /// Returns the time of the next port check or capture expiry.
    pub(super) fn next_upkeep(&self) -> Option<Instant> {
        let due = [self.next_poll(), self.capturing.next_expiry()];
        due.into_iter().flatten().min()
    }

    /// Returns the records of a capture since the last read.
    pub(super) fn read_capture(&mut self, id: CaptureId) -> Result<DeferredAnswer, String> {
        let now = self.now();
        let started = self.tools.clock.started().0;
        let session = self.capturing.sessions.get_mut(&id);
        let session = session.ok_or_else(|| {
            let seconds = SILENCE_MAX.as_secs();
            format!(
                "no capture {}: it was stopped, not read for {seconds} seconds, or its bridge was removed",
                id.0
            )
        })?;
        let records = session.read(now);
        let (snaplen, missed) = (session.capture.snaplen, session.missed);
        let mut reading = CaptureReading {
            missed: missed + session.capture.missed(),
            more: !session.unread.is_empty(),
            ..CaptureReading::default()
        };
        if let Some(site) = self.sites.get(&session.bridge) {
            let ports = site.ports.iter();
            let ports = ports.map(|(port, of)| (port.to_string(), of.spec.name.to_string()));
            reading.ports = ports.collect();
        }
        Ok(Box::new(move || {
            let describe_record = records
                .iter()
                .map(|record| describe_record(record, started, snaplen));
            reading.frames = describe_record.collect();
            serde_json::to_string(&reading).expect("it is made of names and numbers")
        }))
    }
}

/// Converts a record for the client; `started` is the wall-clock time of the start.
fn describe_record(record: &CaptureRecord, started: Duration, snaplen: usize) -> CapturedFrame {
    let snap = |snap: &FrameSnapshot| {
        let bytes = &snap.bytes[..snap.bytes.len().min(snaplen)];
        TruncatedFrame::new(bytes, snap.length, snap.segments)
    };
    let rules = record.lookups.iter().map(|lookups| TableMatch {
        table: lookups.table.0,
        rule: lookups.rule.as_ref().map(|rule| RuleName {
            priority: rule.priority,
            cookie: rule.cookie.0,
            matching: rule.matching.to_string(),
        }),
    });
    let exits = record.outputs.iter().map(|output| Exit {
        port: output.port.to_string(),
        frame: snap(&output.frame),
        rules: output.lookups,
    });
    let at = started + record.at.since(Instant::START);
    CapturedFrame {
        time_ns: u64::try_from(at.as_nanos()).unwrap_or(u64::MAX),
        port: record.from.port.to_string(),
        frame: snap(&record.ingress),
        rules: rules.collect(),
        exits: exits.collect(),
        drops: record
            .drops
            .iter()
            .map(|drop| drop.name().to_owned())
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use base::PortNo;

    use super::*;
    use dataplane::slots::PortKey;

    const BRIDGE: BridgeId = BridgeId(7);

    fn record(capturing: &Capturing, bytes: usize) -> CaptureRecord {
        let sessions = capturing.sessions.values();
        CaptureRecord {
            captures: sessions.map(|of| Arc::clone(&of.capture)).collect(),
            at: Instant::START,
            from: PortKey {
                bridge: BRIDGE,
                port: PortNo(1),
            },
            ingress: FrameSnapshot {
                bytes: vec![0; bytes],
                length: bytes,
                segments: 1,
            },
            lookups: Vec::new(),
            outputs: Vec::new(),
            drops: Vec::new(),
        }
    }

    fn start(capturing: &mut Capturing) -> Result<CaptureId, String> {
        capturing.start(BRIDGE, Match::any(), 100, Instant::START)
    }

    #[test]
    fn capture_expires_without_reader() {
        let mut capturing = Capturing::default();
        let id = start(&mut capturing).expect("there is room");
        assert!(capturing.is_unpublished && capturing.of(BRIDGE).is_some());
        assert!(capturing.of(BridgeId(8)).is_none());
        let due = capturing.next_expiry().expect("it ends some time");
        assert_eq!(due, Instant::START + SILENCE_MAX);
        capturing.expire(Instant::from_secs(4), |_| true);
        assert!(capturing.of(BRIDGE).is_some());
        let session = capturing.sessions.get_mut(&id).expect("it runs");
        session.read(Instant::from_secs(4));
        capturing.expire(due, |_| true);
        assert!(capturing.of(BRIDGE).is_some(), "it was read");
        capturing.is_unpublished = false;
        capturing.expire(due + SILENCE_MAX, |_| true);
        assert!(capturing.of(BRIDGE).is_none() && capturing.is_unpublished);
        assert!(!capturing.stop(id));
        start(&mut capturing).expect("there is room");
        capturing.expire(Instant::START, |bridge| bridge != BRIDGE);
        assert_eq!(capturing.next_expiry(), None, "the bridge is gone");
    }

    #[test]
    fn captures_are_limited_to_four() {
        let mut capturing = Capturing::default();
        let ids: Vec<_> = (0..CAPTURES_MAX)
            .map(|_| start(&mut capturing).expect("there is room"))
            .collect();
        assert!(start(&mut capturing).is_err());
        assert!(capturing.stop(ids[0]));
        let again = start(&mut capturing).expect("there is room again");
        assert!(!ids.contains(&again), "no number is used again");
    }

    #[test]
    fn capture_counts_overflow_and_is_read_in_parts() {
        let mut capturing = Capturing::default();
        let id = start(&mut capturing).expect("there is room");
        for _ in 0..20 {
            let record = record(&capturing, 1 << 20);
            capturing.take(record);
        }
        let session = capturing.sessions.get_mut(&id).expect("it runs");
        assert_eq!((session.unread.len(), session.missed), (15, 5));
        assert_eq!(session.read(Instant::START).len(), 1);
        while !session.read(Instant::START).is_empty() {}
        assert_eq!(session.size, 0);
    }
}
