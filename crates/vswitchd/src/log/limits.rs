//! Rate limits of log messages, one for each place in the program that logs: what a peer repeats
//! does not fill a disk. The next message of the place has the number of those that were
//! suppressed, as in Open vSwitch.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The number of messages of one place that are logged at once: some for each of a few thousand
/// ports.
const BURST: u64 = 4096;

/// The time after which a place may log another message: 17,280 messages a day.
const INTERVAL: Duration = Duration::from_secs(5);

/// The messages of one place.
#[derive(Clone, Copy, Debug)]
struct CallSite {
    /// Messages that may be logged.
    tokens: u64,
    /// The time of the last token.
    refilled: Duration,
    /// Messages that were not logged since the last one that was.
    suppressed: u64,
}

/// The rate limits of all places, by a number of each place.
#[derive(Debug, Default)]
pub(super) struct LogLimits(Mutex<BTreeMap<usize, CallSite>>);

impl LogLimits {
    /// Returns the number of messages that were suppressed before this one, or `None` if this one
    /// is suppressed. `now` is the time since 1970, which may be set back.
    pub(super) fn admit(&self, place: usize, now: Duration) -> Option<u64> {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = places.entry(place).or_insert(CallSite {
            tokens: BURST,
            refilled: now,
            suppressed: 0,
        });
        let elapsed = now.saturating_sub(place.refilled).as_secs();
        let earned = elapsed / INTERVAL.as_secs();
        if earned > 0 || now < place.refilled {
            place.tokens = place.tokens.saturating_add(earned).min(BURST);
            place.refilled = now;
        }
        let Some(left) = place.tokens.checked_sub(1) else {
            place.suppressed += 1;
            return None;
        };
        place.tokens = left;
        Some(std::mem::take(&mut place.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_a_place_are_limited_and_counted() {
        let limits = LogLimits::default();
        let at = |seconds: u64| Duration::from_secs(1_000_000 + seconds);
        let admitted = (0..10_000).filter(|_| limits.admit(1, at(0)).is_some());
        assert_eq!(admitted.count() as u64, BURST);
        // Another place has its own limit.
        assert_eq!(limits.admit(2, at(0)), Some(0));
        assert_eq!(limits.admit(1, at(4)), None);
        assert_eq!(limits.admit(1, at(5)), Some(10_000 - BURST + 1));
        assert_eq!(limits.admit(1, at(5)), None);
        // A clock that is set back stops nothing.
        assert_eq!(limits.admit(1, at(0)), None);
        assert_eq!(limits.admit(1, at(5)), Some(2));
    }
}
