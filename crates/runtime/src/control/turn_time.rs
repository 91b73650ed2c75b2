//! The time of the control thread's turns. A long turn delays barriers, LACP and BPDUs of every
//! bridge, so it is counted, and reported with the work that took most of it.
//!
//! The line in the log is that of Open vSwitch, whose tools search for it.

use std::fmt;
use std::time::Duration;

use base::Instant;
use switch::connection::ConnectionId;

use crate::inbox::Input;

/// The time above which a turn is slow.
const SLOW: Duration = Duration::from_millis(100);

/// The minimum interval between two warnings.
const WARNING_INTERVAL: Duration = Duration::from_secs(1);

/// A part of a turn, as warnings name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TurnWork {
    /// A burst of messages of a connection.
    Messages(ConnectionId, usize),
    /// A command of a control socket.
    Command(String),
    /// Other work.
    Other(&'static str),
}

impl TurnWork {
    /// Returns the work for an input.
    pub(super) fn of(input: &Input) -> Self {
        Self::Other(match input {
            Input::Messages(id, messages, _) => return Self::Messages(*id, messages.len()),
            Input::CommandRequest(request) => return Self::Command(request.command.clone()),
            Input::Up { .. } | Input::Missed { .. } | Input::Drained(_) | Input::Down(_) => {
                "a connection"
            }
            Input::Refused => "a malformed message",
            Input::Garbage(_) => "garbage",
            Input::Link(_) => "a change of an interface",
            Input::Underlay(_) => "the kernel's routes and neighbours",
            Input::Learned(..) => "a learned address",
            Input::Configure(..) => "a configuration",
            Input::Facts(_) => "a report of the state",
            Input::Telemetry(_) => "telemetry",
            Input::Reload => "the configuration file",
            Input::Stop => "the end",
        })
    }
}

impl fmt::Display for TurnWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Messages(id, count) => write!(f, "{count} messages of connection {}", id.0),
            Self::Command(name) => write!(f, "the command {name:?}"),
            Self::Other(name) => f.write_str(name),
        }
    }
}

/// A slow turn.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SlowTurn {
    /// The time of the turn.
    pub(super) total: Duration,
    /// The longest part, and its time.
    pub(super) longest: (Duration, TurnWork),
    /// The number of slow turns since the last warning that were not reported.
    pub(super) suppressed: u64,
}

/// Measures turns in real time.
#[derive(Debug, Default)]
pub(super) struct TurnTimer {
    began: Instant,
    /// The end of the last part.
    mark: Instant,
    /// The longest part of the turn.
    longest: Option<(Duration, TurnWork)>,
    longest_turn: Duration,
    slow_turns: u64,
    warned: Option<Instant>,
    suppressed: u64,
}

impl TurnTimer {
    /// Begins a turn.
    pub(super) fn begin(&mut self, now: Instant) {
        (self.began, self.mark, self.longest) = (now, now, None);
    }

    /// Ends a part of the turn.
    pub(super) fn lap(&mut self, now: Instant, work: TurnWork) {
        let took = now - self.mark;
        self.mark = now;
        if self
            .longest
            .as_ref()
            .is_none_or(|(longest, _)| took > *longest)
        {
            self.longest = Some((took, work));
        }
    }

    /// Ends the turn with its last part. Returns it if it was slow and must be reported.
    pub(super) fn end(&mut self) -> Option<SlowTurn> {
        let total = self.mark - self.began;
        self.longest_turn = self.longest_turn.max(total);
        if total <= SLOW {
            return None;
        }
        self.slow_turns += 1;
        let last = self.warned;
        if last.is_some_and(|last| self.mark - last < WARNING_INTERVAL) {
            self.suppressed += 1;
            return None;
        }
        self.warned = Some(self.mark);
        Some(SlowTurn {
            total,
            longest: self.longest.take()?,
            suppressed: std::mem::take(&mut self.suppressed),
        })
    }

    /// Returns the number of slow turns.
    pub(super) const fn slow_turns(&self) -> u64 {
        self.slow_turns
    }

    /// Returns the time of the longest turn, in microseconds.
    pub(super) fn longest_us(&self) -> u64 {
        u64::try_from(self.longest_turn.as_micros()).unwrap_or(u64::MAX)
    }
}

impl SlowTurn {
    /// Logs the turn.
    pub(super) fn warn(&self) {
        let (part, work) = &self.longest;
        tracing::warn!(
            target: "timeval",
            "Unreasonably long {}ms poll interval ({}ms for {work}; {} more not logged)",
            self.total.as_millis(),
            part.as_millis(),
            self.suppressed,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn slow_turn_is_reported_with_its_longest_part() {
        let mut timer = TurnTimer::default();
        timer.begin(at(1000));
        timer.lap(at(1010), TurnWork::Other("timers"));
        timer.lap(at(1090), TurnWork::Command("fdb/show".to_owned()));
        timer.lap(at(1101), TurnWork::Messages(ConnectionId(7), 3));
        let turn = timer.end().expect("101 ms");
        assert_eq!(turn.total, Duration::from_millis(101));
        assert_eq!(turn.longest.1.to_string(), "the command \"fdb/show\"");
        assert_eq!(turn.longest.0, Duration::from_millis(80));
        assert_eq!((timer.slow_turns(), timer.longest_us()), (1, 101_000));
        assert_eq!(
            TurnWork::Messages(ConnectionId(7), 3).to_string(),
            "3 messages of connection 7"
        );
    }

    #[test]
    fn turn_of_100_ms_is_not_slow() {
        let mut timer = TurnTimer::default();
        timer.begin(at(0));
        timer.lap(at(100), TurnWork::Other("timers"));
        assert_eq!(timer.end(), None);
        assert_eq!((timer.slow_turns(), timer.longest_us()), (0, 100_000));
    }

    #[test]
    fn slow_turns_are_reported_once_a_second_and_all_counted() {
        let mut timer = TurnTimer::default();
        let mut suppressed = Vec::new();
        for turn in 0..12 {
            timer.begin(at(turn * 200));
            timer.lap(at(turn * 200 + 150), TurnWork::Other("timers"));
            suppressed.extend(timer.end().map(|turn| turn.suppressed));
        }
        assert_eq!(suppressed, [0, 4, 4]);
        assert_eq!(timer.slow_turns(), 12);
    }
}
