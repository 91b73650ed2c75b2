//! Diagnosis of a silent device in words: connection state, version, last message, errors, and the
//! counter that changed last.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use base::{DatapathId, Instant};
use openflow::Version;

use super::link::Backlog;
use super::tally::Tally;

/// Introduces the last message in each diagnosis.
const LAST: &str = "; its last message: ";
/// Replaces `LAST` if there is no message.
const NONE: &str = "; it has sent no message";

/// The state of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnosis {
    /// The negotiated version, if any.
    pub version: Option<Version>,
    /// The datapath id of the device, if known.
    pub datapath: Option<DatapathId>,
    /// The time since the connection was opened.
    pub age: Duration,
    /// Number of messages sent to the device.
    pub sent: u64,
    /// Bytes that the device has not received yet.
    pub backlog: Backlog,
    /// The last received message and its age.
    pub last: Option<(&'static str, Duration)>,
    /// The latest errors, the newest first.
    pub errors: Vec<String>,
    /// The counter that changed last, its value, and the time since.
    pub moved: Option<(String, u64, Duration)>,
    /// The reason for the end of the connection, if it is closed.
    pub over: Option<String>,
}

impl Diagnosis {
    pub(super) fn of(
        tally: &Tally,
        version: Option<Version>,
        backlog: Backlog,
        now: Instant,
    ) -> Self {
        let mut movements = Movements::default();
        for (kind, count, at) in tally.kinds() {
            movements.note(kind.name(), count, at);
        }
        Self {
            version,
            datapath: None,
            age: now.since(tally.began()),
            sent: tally.sent(),
            backlog,
            last: tally.last().map(|(name, at)| (name, now.since(at))),
            errors: tally.errors().to_vec(),
            moved: movements.last(now),
            over: None,
        }
    }

    /// Returns whether `text` contains a diagnosis.
    #[must_use]
    pub fn is_in(text: &str) -> bool {
        [LAST, NONE].iter().any(|words| text.contains(words))
    }

    /// Adds other counters: of the device's ports and rules, and of the tester.
    #[must_use]
    pub fn with(mut self, movements: &Movements, now: Instant) -> Self {
        let theirs = movements.last(now);
        self.moved = match (self.moved.take(), theirs) {
            (Some(own), Some(theirs)) if own.2 <= theirs.2 => Some(own),
            (own, None) => own,
            (_, theirs) => theirs,
        };
        self
    }
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |time: &Duration| format!("{:.1} s", time.as_secs_f64());
        match (self.version, &self.over) {
            (_, Some(reason)) => write!(f, "no longer connected ({reason})")?,
            (Some(version), None) => {
                write!(f, "connected for {} by {version}", seconds(&self.age))?;
            }
            (None, None) => write!(
                f,
                "connected for {}, no version agreed on yet",
                seconds(&self.age)
            )?,
        }
        if let Some(DatapathId(id)) = self.datapath {
            write!(f, ", datapath {id:016x}")?;
        }
        match &self.last {
            Some((name, ago)) => write!(f, "{LAST}{name}, {} ago", seconds(ago))?,
            None => f.write_str(NONE)?,
        }
        if self.backlog.waiting > 0 {
            let waiting = self.backlog.waiting;
            write!(f, "; it does not read: {waiting} bytes wait to be sent")?;
        }
        match self.errors.as_slice() {
            [] => f.write_str("; no errors")?,
            [only] => write!(f, "; an error: {only}")?,
            [last, others @ ..] => {
                write!(f, "; the last of {} errors: {last}", others.len() + 1)?;
            }
        }
        if let Some((name, value, ago)) = &self.moved {
            write!(f, "; moved last: {name} ({value}), {} ago", seconds(ago))?;
        }
        Ok(())
    }
}

/// Counters by name, and the time of their last change.
#[derive(Clone, Debug, Default)]
pub struct Movements {
    counters: BTreeMap<String, (u64, Option<Instant>)>,
}

impl Movements {
    /// Records the value of a counter. The first value counts as a change only if it is not zero.
    pub fn note(&mut self, name: &str, value: u64, now: Instant) {
        match self.counters.get_mut(name) {
            Some((before, moved)) if *before != value => {
                *before = value;
                *moved = Some(now);
            }
            Some(_) => {}
            None => {
                let moved = (value > 0).then_some(now);
                self.counters.insert(name.to_owned(), (value, moved));
            }
        }
    }

    /// Returns the counter that changed last, its value, and the time since.
    #[must_use]
    pub fn last(&self, now: Instant) -> Option<(String, u64, Duration)> {
        let moved = self.counters.iter();
        let moved = moved.filter_map(|(name, (value, at))| Some((name, *value, (*at)?)));
        let (name, value, at) = moved.max_by_key(|(_, _, at)| *at)?;
        Some((name.clone(), value, now.since(at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_changed_counter_is_reported() {
        let mut movements = Movements::default();
        assert_eq!(movements.last(Instant::START), None);
        movements.note("frames into port 1", 5, Instant::from_secs(1));
        movements.note("frames out of port 2", 5, Instant::from_secs(1));
        movements.note("frames into port 1", 9, Instant::from_secs(2));
        movements.note("frames out of port 2", 5, Instant::from_secs(2));
        movements.note("errors", 0, Instant::from_secs(3));
        let last = movements.last(Instant::from_secs(5));
        let expected = ("frames into port 1".to_owned(), 9, Duration::from_secs(3));
        assert_eq!(last, Some(expected));
    }

    #[test]
    fn silent_device_is_diagnosed_in_words() {
        let mut diagnosis = Diagnosis {
            version: Some(Version::V13),
            datapath: Some(DatapathId(0x2a)),
            age: Duration::from_millis(12_340),
            sent: 7,
            backlog: Backlog {
                waiting: 300,
                held: 4_000,
            },
            last: Some(("barrier reply", Duration::from_secs(10))),
            errors: vec!["OFPFMFC_TABLE_FULL (type 5, code 1)".to_owned()],
            moved: Some(("packet-in".to_owned(), 3, Duration::from_secs(11))),
            over: None,
        };
        assert_eq!(
            diagnosis.to_string(),
            "connected for 12.3 s by OpenFlow13, datapath 000000000000002a; \
             its last message: barrier reply, 10.0 s ago; \
             it does not read: 300 bytes wait to be sent; \
             an error: OFPFMFC_TABLE_FULL (type 5, code 1); \
             moved last: packet-in (3), 11.0 s ago"
        );
        diagnosis = Diagnosis {
            over: Some("the device closed it".to_owned()),
            ..Diagnosis::default()
        };
        assert_eq!(
            diagnosis.to_string(),
            "no longer connected (the device closed it); it has sent no message; no errors"
        );
        assert!(Diagnosis::is_in(&diagnosis.to_string()));
        assert!(!Diagnosis::is_in("the device refused a rule"));
        let mut movements = Movements::default();
        movements.note("frames into port 1", 5, Instant::from_secs(1));
        let words = diagnosis
            .with(&movements, Instant::from_secs(2))
            .to_string();
        assert!(
            words.ends_with("moved last: frames into port 1 (5), 1.0 s ago"),
            "{words}"
        );
    }
}
