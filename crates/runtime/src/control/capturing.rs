//! Captures: who watches which frames of which bridge, and what they have not read yet. One
//! whose reader has gone ends by itself, and workers hear of no more than there is.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use base::Instant;
use flow::Match;

use super::Control;
use super::commands::Told;
use control_api::capture::{
    CaptureReading, CapturedFrame, Exit, RuleName, SILENCE_MAX, TableMatch, TruncatedFrame,
};
use dataplane::capture::{Capture, CaptureId, CaptureRecord, Captures, FrameSnapshot};
use dataplane::program::BridgeId;

/// Captures at once: each costs workers a look at every frame of its bridge.
const CAPTURES_MAX: usize = 4;

/// Bytes of frames that wait to be read, of each capture: some tenths of a second of a fast link.
const KEPT_MAX: usize = 16 << 20;

/// Bytes of frames that one answer tells.
const TOLD_MAX: usize = 1 << 20;

/// What a record takes beside its frames.
const RECORD_COST: usize = 256;

/// A capture that runs.
struct Session {
    bridge: BridgeId,
    capture: Arc<Capture>,
    /// What has come and was not read.
    kept: VecDeque<Arc<CaptureRecord>>,
    /// Bytes of that.
    size: usize,
    /// Records for which there was no room here.
    missed: u64,
    last_read: Instant,
}

/// All that run.
#[derive(Default)]
pub(super) struct Capturing {
    sessions: BTreeMap<CaptureId, Session>,
    next: u64,
    /// Those of each bridge, as workers are told of them.
    published: BTreeMap<BridgeId, Arc<Captures>>,
    /// Whether workers do not know the latest yet.
    pub(super) is_unpublished: bool,
}

impl Capturing {
    /// Those of a bridge; none if there are none.
    pub(super) fn of(&self, bridge: BridgeId) -> Option<&Arc<Captures>> {
        self.published.get(&bridge)
    }

    /// Watches the frames of a bridge that a filter accepts. Answers the capture's number.
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
        let session = Session {
            bridge,
            capture: Arc::new(Capture::new(id, filter, snaplen)),
            kept: VecDeque::new(),
            size: 0,
            missed: 0,
            last_read: now,
        };
        self.sessions.insert(id, session);
        self.tell_workers();
        Ok(id)
    }

    /// Ends one. Tells whether there was such a one.
    pub(super) fn stop(&mut self, id: CaptureId) -> bool {
        let was_there = self.sessions.remove(&id).is_some();
        if was_there {
            self.tell_workers();
        }
        was_there
    }

    /// Ends those that nobody reads any more, and those of bridges that are gone.
    pub(super) fn expire(&mut self, now: Instant, is_there: impl Fn(BridgeId) -> bool) {
        let before = self.sessions.len();
        self.sessions
            .retain(|_, session| now < session.due() && is_there(session.bridge));
        if self.sessions.len() < before {
            self.tell_workers();
        }
    }

    /// When the first of them ends if nobody reads it.
    pub(super) fn next_expiry(&self) -> Option<Instant> {
        self.sessions.values().map(Session::due).min()
    }

    /// Takes what a worker tells. A reader who is too slow misses what comes last.
    pub(super) fn take(&mut self, record: CaptureRecord) {
        let record = Arc::new(record);
        for capture in &record.captures {
            if let Some(session) = self.sessions.get_mut(&capture.id) {
                session.take(&record);
            }
        }
    }

    fn tell_workers(&mut self) {
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

impl Session {
    fn due(&self) -> Instant {
        self.last_read + SILENCE_MAX
    }

    fn take(&mut self, record: &Arc<CaptureRecord>) {
        let size = size(record);
        if self.size + size > KEPT_MAX {
            self.missed += 1;
            return;
        }
        self.size += size;
        self.kept.push_back(Arc::clone(record));
    }

    /// What is to be told now.
    fn read(&mut self, now: Instant) -> Vec<Arc<CaptureRecord>> {
        self.last_read = now;
        let (mut told, mut bytes) = (Vec::new(), 0);
        while bytes < TOLD_MAX
            && let Some(record) = self.kept.pop_front()
        {
            bytes += size(&record);
            told.push(record);
        }
        self.size -= bytes;
        told
    }
}

fn size(record: &CaptureRecord) -> usize {
    let outputs = record.outputs.iter().map(|output| output.frame.bytes.len());
    RECORD_COST + record.ingress.bytes.len() + outputs.sum::<usize>()
}

impl Control {
    /// Ends captures that nobody reads any more, or whose bridge is gone.
    pub(super) fn end_unread_captures(&mut self, now: Instant) {
        let sites = &self.sites;
        self.capturing.expire(now, |id| sites.contains_key(&id));
    }

    /// When ports are to be looked after, or a capture ends that nobody reads.
    pub(super) fn next_upkeep(&self) -> Option<Instant> {
        let due = [self.next_look(), self.capturing.next_expiry()];
        due.into_iter().flatten().min()
    }

    /// What has come of a capture since it was read last.
    pub(super) fn read_capture(&mut self, id: CaptureId) -> Result<Told, String> {
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
            more: !session.kept.is_empty(),
            ..CaptureReading::default()
        };
        if let Some(site) = self.sites.get(&session.bridge) {
            let ports = site.ports.iter();
            let ports = ports.map(|(port, of)| (port.to_string(), of.wanted.name.to_string()));
            reading.ports = ports.collect();
        }
        Ok(Box::new(move || {
            let told = records.iter().map(|record| told(record, started, snaplen));
            reading.frames = told.collect();
            serde_json::to_string(&reading).expect("it is made of names and numbers")
        }))
    }
}

/// A record in words; the clock on the wall showed `started` at the start.
fn told(record: &CaptureRecord, started: Duration, snaplen: usize) -> CapturedFrame {
    let snap = |snap: &FrameSnapshot| {
        let bytes = &snap.bytes[..snap.bytes.len().min(snaplen)];
        TruncatedFrame::new(bytes, snap.length, snap.segments)
    };
    let rules = record.lookups.iter().map(|lookup| TableMatch {
        table: lookup.table.0,
        rule: lookup.rule.as_ref().map(|rule| RuleName {
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
        assert_eq!((session.kept.len(), session.missed), (15, 5));
        assert_eq!(session.read(Instant::START).len(), 1);
        while !session.read(Instant::START).is_empty() {}
        assert_eq!(session.size, 0);
    }
}
