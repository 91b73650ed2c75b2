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
const TRIAL: u8 = 250;

/// The decision to poll or to sleep at once. Polling does not pay if the sender waits for the core
/// that the worker polls on, or if frames are single and far apart.
#[derive(Debug)]
pub(super) struct BusyPoll {
    credit: u8,
    /// The number of sleeps without polling since the last poll.
    declined: u8,
}

impl BusyPoll {
    pub(super) const fn new() -> Self {
        Self {
            credit: CREDIT_MAX,
            declined: 0,
        }
    }

    /// Returns the time to poll after the last frame.
    #[inline]
    pub(super) const fn span(&self) -> Duration {
        if self.credit > 0 || self.declined >= TRIAL {
            SPIN
        } else {
            Duration::ZERO
        }
    }

    /// Records a frame that arrived after this time of polling. A poll that lasted longer than its
    /// span earns nothing: another thread had the core meanwhile.
    pub(super) fn rewarded(&mut self, after: Duration) {
        if after < self.span() {
            self.declined = 0;
            self.credit = self.credit.saturating_add(REWARD).min(CREDIT_MAX);
        }
    }

    /// Records that no frame arrived and the worker sleeps.
    pub(super) const fn in_vain(&mut self) {
        if self.span().is_zero() {
            self.declined += 1;
        } else {
            self.declined = 0;
            self.credit = self.credit.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of polls out of `times` opportunities that all end with `end`.
    fn looks(patience: &mut BusyPoll, times: u32, mut end: impl FnMut(&mut BusyPoll)) -> u32 {
        let mut taken = 0;
        for _ in 0..times {
            taken += u32::from(!patience.span().is_zero());
            end(patience);
        }
        taken
    }

    #[test]
    fn polling_stops_without_success_and_is_retried() {
        let mut patience = BusyPoll::new();
        let taken = looks(&mut patience, 25_000, BusyPoll::in_vain);
        let trials = 25_000 / u32::from(TRIAL);
        assert!((trials..=trials + u32::from(CREDIT_MAX)).contains(&taken));
    }

    #[test]
    fn conversation_is_always_polled() {
        let mut patience = BusyPoll::new();
        looks(&mut patience, 1_000, BusyPoll::in_vain);
        let soon = Duration::from_micros(5);
        let mut is_reply = false;
        let pairs = |patience: &mut BusyPoll| {
            is_reply = !is_reply;
            match is_reply {
                true => patience.rewarded(soon),
                false => patience.in_vain(),
            }
        };
        looks(&mut patience, 2 * u32::from(TRIAL), BusyPoll::in_vain);
        while patience.span().is_zero() {
            patience.in_vain();
        }
        assert_eq!(looks(&mut patience, 1_000, pairs), 1_000);
    }

    #[test]
    fn late_frames_earn_no_credit() {
        let mut patience = BusyPoll::new();
        let late = |patience: &mut BusyPoll| {
            patience.rewarded(Duration::from_millis(3));
            patience.in_vain();
        };
        looks(&mut patience, u32::from(CREDIT_MAX), late);
        assert!(patience.span().is_zero());
    }
}
