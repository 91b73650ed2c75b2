//! The reconnect timer of an active connection. The first attempt is immediate; the interval
//! doubles from 100 ms with each failure, and starts anew after a connection that outlived it, as in
//! Open vSwitch's `reconnect`.

use std::time::Duration;

use base::Instant;

/// The first interval.
const FIRST: Duration = Duration::from_millis(100);

/// The limit of the interval; Open vSwitch has none.
const MAX: Duration = Duration::from_secs(1 << 20);

/// The reconnect timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReconnectTimer {
    interval: Duration,
    state: TimerState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimerState {
    /// The next attempt is due at this time.
    Waiting(Instant),
    /// Connected since this time.
    Connected(Instant),
}

impl ReconnectTimer {
    /// Returns a timer whose first attempt is due.
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            interval: Duration::ZERO,
            state: TimerState::Waiting(now),
        }
    }

    /// Returns the time of the next attempt; none while connected.
    pub(super) const fn due(&self) -> Option<Instant> {
        match self.state {
            TimerState::Waiting(due) => Some(due),
            TimerState::Connected(_) => None,
        }
    }

    /// Records a successful attempt.
    pub(super) const fn handle_connected(&mut self, now: Instant) {
        self.state = TimerState::Connected(now);
    }

    /// Records a failed attempt, or the end of a connection.
    pub(super) fn handle_failure(&mut self, now: Instant) {
        let outlived = match self.state {
            TimerState::Connected(since) => now - since >= self.interval,
            TimerState::Waiting(_) => false,
        };
        self.interval = match outlived {
            true => FIRST,
            false => (self.interval * 2).clamp(FIRST, MAX),
        };
        self.state = TimerState::Waiting(now + self.interval);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reconnect_interval_doubles_until_connection_lasts() {
        let at = |millis| Instant::START + Duration::from_millis(millis);
        let mut timer = ReconnectTimer::new(at(0));
        assert_eq!(timer.due(), Some(at(0)));
        timer.handle_failure(at(0));
        assert_eq!(timer.due(), Some(at(100)));
        timer.handle_failure(at(100));
        assert_eq!(timer.due(), Some(at(300)));
        timer.handle_connected(at(300));
        assert_eq!(timer.due(), None);
        // Shorter than the interval.
        timer.handle_failure(at(350));
        assert_eq!(timer.due(), Some(at(750)));
        timer.handle_connected(at(750));
        timer.handle_failure(at(5000));
        assert_eq!(timer.due(), Some(at(5100)));
    }
}
