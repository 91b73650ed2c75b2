//! How long a worker goes on looking for frames before it sleeps: as long as that pays.

use std::time::Duration;

/// How long a worker looks after the last frame, if it does. A round trip through this
/// switch takes some 20 us, a request and its answer in a host some 50 us more: a
/// conversation never pays for waking the worker, and a lone frame a second costs a
/// five-thousandth of a core.
const SPIN: Duration = Duration::from_micros(200);

/// What a look that a frame ended is worth, in looks in vain. A conversation's frames come in
/// pairs, and a look is in vain behind each pair.
const REWARD: u8 = 3;

/// So many looks in vain, one after the other, and no more are taken at first.
const CREDIT_MAX: u8 = 16;

/// Of so many times that it would not look, it does once, to see whether that pays again.
const TRIAL: u8 = 250;

/// Whether it pays to look. It does not where who sends has to wait for the core that the
/// worker looks on, or where frames are alone and far apart.
#[derive(Debug)]
pub(super) struct Patience {
    credit: u8,
    /// How often it has slept at once since the last look.
    declined: u8,
}

impl Patience {
    pub(super) const fn new() -> Self {
        Self {
            credit: CREDIT_MAX,
            declined: 0,
        }
    }

    /// How long to look after the last frame.
    #[inline]
    pub(super) const fn span(&self) -> Duration {
        if self.credit > 0 || self.declined >= TRIAL {
            SPIN
        } else {
            Duration::ZERO
        }
    }

    /// A frame came after so long a look. One that ended later than it should was ended by
    /// others, who have had the core meanwhile.
    pub(super) fn rewarded(&mut self, after: Duration) {
        if after < self.span() {
            self.declined = 0;
            self.credit = self.credit.saturating_add(REWARD).min(CREDIT_MAX);
        }
    }

    /// No frame came, and it sleeps.
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

    /// How many of so many looks were taken, when each has this end.
    fn looks(patience: &mut Patience, times: u32, mut end: impl FnMut(&mut Patience)) -> u32 {
        let mut taken = 0;
        for _ in 0..times {
            taken += u32::from(!patience.span().is_zero());
            end(patience);
        }
        taken
    }

    #[test]
    fn looks_are_given_up_where_they_are_in_vain_and_tried_now_and_then() {
        let mut patience = Patience::new();
        let taken = looks(&mut patience, 25_000, Patience::in_vain);
        let trials = 25_000 / u32::from(TRIAL);
        assert!((trials..=trials + u32::from(CREDIT_MAX)).contains(&taken));
    }

    #[test]
    fn a_conversation_is_always_waited_for() {
        let mut patience = Patience::new();
        looks(&mut patience, 1_000, Patience::in_vain);
        let soon = Duration::from_micros(5);
        let mut is_reply = false;
        let pairs = |patience: &mut Patience| {
            is_reply = !is_reply;
            match is_reply {
                true => patience.rewarded(soon),
                false => patience.in_vain(),
            }
        };
        looks(&mut patience, 2 * u32::from(TRIAL), Patience::in_vain);
        while patience.span().is_zero() {
            patience.in_vain();
        }
        assert_eq!(looks(&mut patience, 1_000, pairs), 1_000);
    }

    #[test]
    fn frames_that_others_sent_in_its_stead_are_no_reward() {
        let mut patience = Patience::new();
        let late = |patience: &mut Patience| {
            patience.rewarded(Duration::from_millis(3));
            patience.in_vain();
        };
        looks(&mut patience, u32::from(CREDIT_MAX), late);
        assert!(patience.span().is_zero());
    }
}
