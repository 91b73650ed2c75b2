//! Why a device is silent, in words: whether it is connected, by which version, what it
//! said last, what it complained of, and which counter moved last.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use base::{DatapathId, Instant};
use openflow::Version;

use super::link::Backlog;
use super::tally::Tally;

/// What each says of the last message.
const LAST: &str = "; its last message: ";
/// See there.
const NONE: &str = "; it has sent no message";

/// How a connection is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnosis {
    /// The version agreed on, if there is one.
    pub version: Option<Version>,
    /// Who the device is, if it has said so.
    pub datapath: Option<DatapathId>,
    /// How long ago it was connected.
    pub age: Duration,
    /// Messages that were said to it.
    pub said: u64,
    /// What is on its way to it.
    pub backlog: Backlog,
    /// What it said last, and how long ago.
    pub last: Option<(&'static str, Duration)>,
    /// Its latest errors, the last one first.
    pub errors: Vec<String>,
    /// Which counter moved last, what it stands at, and how long ago that was.
    pub moved: Option<(String, u64, Duration)>,
    /// Why the connection is over, if it is.
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
            said: tally.said(),
            backlog,
            last: tally.last().map(|(what, at)| (what, now.since(at))),
            errors: tally.errors().to_vec(),
            moved: movements.last(now),
            over: None,
        }
    }

    /// True if `text` contains a diagnosis in words.
    #[must_use]
    pub fn is_in(text: &str) -> bool {
        [LAST, NONE].iter().any(|words| text.contains(words))
    }

    /// The same, with what other counters say: the device's ports', its rules', the
    /// tester's own.
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
            Some((what, ago)) => write!(f, "{LAST}{what}, {} ago", seconds(ago))?,
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

/// Counters by name, and when each was last seen to move.
#[derive(Clone, Debug, Default)]
pub struct Movements {
    counters: BTreeMap<String, (u64, Option<Instant>)>,
}

impl Movements {
    /// Takes note of a counter's value. The first that is seen is no movement, unless it is
    /// more than nothing.
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

    /// The counter that moved last, its value, and how long ago.
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
    fn the_counter_that_moved_last_is_told() {
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
    fn a_silent_device_is_diagnosed_in_words() {
        let mut diagnosis = Diagnosis {
            version: Some(Version::V13),
            datapath: Some(DatapathId(0x2a)),
            age: Duration::from_millis(12_340),
            said: 7,
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
