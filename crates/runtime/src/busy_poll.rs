//! Adaptive busy polling: the time that a worker polls empty queues before it sleeps.

use std::time::Duration;

/// The time that a worker polls after the last frame. A round trip through this switch takes about
/// 20 us, and a request with its answer in a host about 50 us more: within a conversation the
/// worker never has to be woken, and one frame per second costs a five-thousandth of a core.
const SPIN: Duration = Duration::from_micros(200);

/// The credit that a successful poll earns, in unsuccessful polls. The frames of a conversation
/// arrive in pairs, and the poll after each pair is unsuccessful.
const REWARD: u8 = 3;

/// The largest credit, and the initial one: the number of consecutive unsuccessful polls until the
/// worker stops polling.
const CREDIT_MAX: u8 = 16;

/// Without credit the worker polls once after this many sleeps, to test if polling pays again.
const RETRY_INTERVAL: u8 = 250;

/// The decision to poll or to sleep at once. Polling does not pay if the sender waits for the core
/// that the worker polls on, or if frames are single and far apart.
#[derive(Debug)]
pub(super) struct BusyPoll {
    credit: u8,
    /// The number of sleeps without polling since the last poll.
    sleeps: u8,
}

impl BusyPoll {
    pub(super) const fn new() -> Self {
        Self {
            credit: CREDIT_MAX,
            sleeps: 0,
        }
    }

    /// Returns the time to poll after the last frame.
    #[inline]
    pub(super) const fn span(&self) -> Duration {
        if self.credit > 0 || self.sleeps >= RETRY_INTERVAL {
            SPIN
        } else {
            Duration::ZERO
        }
    }

    /// Records a frame that arrived after this time of polling. A poll that lasted longer than its
    /// span earns nothing: another thread had the core meanwhile.
    pub(super) fn record_success(&mut self, after: Duration) {
        if after < self.span() {
            self.sleeps = 0;
            self.credit = self.credit.saturating_add(REWARD).min(CREDIT_MAX);
        }
    }

    /// Records that no frame arrived and the worker sleeps.
    pub(super) const fn record_failure(&mut self) {
        if self.span().is_zero() {
            self.sleeps += 1;
        } else {
            self.sleeps = 0;
            self.credit = self.credit.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of polls out of `times` opportunities that all end with `end`.
    fn polls(patience: &mut BusyPoll, times: u32, mut end: impl FnMut(&mut BusyPoll)) -> u32 {
        let mut polled = 0;
        for _ in 0..times {
            polled += u32::from(!patience.span().is_zero());
            end(patience);
        }
        polled
    }

    #[test]
    fn polling_stops_without_success_and_is_retried() {
        let mut patience = BusyPoll::new();
        let polled = polls(&mut patience, 25_000, BusyPoll::record_failure);
        let trials = 25_000 / u32::from(RETRY_INTERVAL);
        assert!((trials..=trials + u32::from(CREDIT_MAX)).contains(&polled));
    }

    #[test]
    fn conversation_is_always_polled() {
        let mut patience = BusyPoll::new();
        polls(&mut patience, 1_000, BusyPoll::record_failure);
        let soon = Duration::from_micros(5);
        let mut is_reply = false;
        let pairs = |patience: &mut BusyPoll| {
            is_reply = !is_reply;
            match is_reply {
                true => patience.record_success(soon),
                false => patience.record_failure(),
            }
        };
        polls(
            &mut patience,
            2 * u32::from(RETRY_INTERVAL),
            BusyPoll::record_failure,
        );
        while patience.span().is_zero() {
            patience.record_failure();
        }
        assert_eq!(polls(&mut patience, 1_000, pairs), 1_000);
    }

    #[test]
    fn late_frames_earn_no_credit() {
        let mut patience = BusyPoll::new();
        let late = |patience: &mut BusyPoll| {
            patience.record_success(Duration::from_millis(3));
            patience.record_failure();
        };
        polls(&mut patience, u32::from(CREDIT_MAX), late);
        assert!(patience.span().is_zero());
    }
}
