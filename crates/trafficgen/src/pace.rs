//! Schedules: the due times of frames. They are absolute, so that lateness does not accumulate.

use base::SplitMix64;

use super::Rate;
use super::rate::Gap;

/// The distribution of the gaps between frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Equal gaps.
    Constant(Rate),
    /// Exponentially distributed gaps with this mean rate: independent arrivals, which do not
    /// synchronize with a period of the device.
    Poisson {
        /// The mean rate.
        rate: Rate,
        /// The seed of the gaps.
        seed: u64,
    },
    /// Bursts of frames, separated by pauses.
    Bursts {
        /// Frames in a burst.
        frames: u32,
        /// The rate within a burst; back to back if `None`.
        within: Option<Rate>,
        /// The mean rate, pauses included.
        rate: Rate,
    },
    /// Equal gaps at one rate until a given time, then at another rate.
    Stepped {
        /// The first rate.
        before: Rate,
        /// The due time of the first frame at the second rate, in nanoseconds from the stream's
        /// start.
        at_ns: u64,
        /// The second rate.
        after: Rate,
    },
    /// The gaps of a recording, scaled: 200 % is twice as fast.
    Recorded {
        /// The speed in per cent of the recording's.
        percent: u32,
    },
    /// No gaps: as fast as the sender can.
    FlatOut,
}

/// The due times of a stream's frames in order, in nanoseconds from its start.
#[derive(Clone, Debug)]
pub struct Schedule {
    pace: Pace,
    /// The size of each frame of a round, with FCS.
    sizes: Vec<u16>,
    /// The gap after each of them at the mean rate.
    gaps: Vec<Gap>,
    /// The gaps in nanoseconds, for random gaps.
    means: Vec<f64>,
    place: usize,
    main: DueTime,
    /// The remaining frames of a burst, and the due time of the next.
    left: u32,
    inner: DueTime,
    /// True until the rate has changed.
    changes: bool,
    random: SplitMix64,
}

/// Nanoseconds with an exact remainder, which never drift.
#[derive(Clone, Copy, Debug)]
struct DueTime {
    ns: u64,
    remainder: u64,
    denominator: u64,
}

impl DueTime {
    const fn new(denominator: u64) -> Self {
        Self {
            ns: 0,
            remainder: 0,
            denominator,
        }
    }

    #[inline]
    const fn add(&mut self, gap: Gap) {
        self.ns = self.ns.saturating_add(gap.ns);
        self.remainder += gap.remainder;
        if self.remainder >= self.denominator {
            self.remainder -= self.denominator;
            self.ns = self.ns.saturating_add(1);
        }
    }
}

/// The resolution of random gaps, in fractions of a nanosecond.
const FRACTIONS: u64 = 1 << 16;

impl Schedule {
    /// The schedule of frames of these sizes, repeated in order.
    ///
    /// # Panics
    /// If there are no sizes.
    #[must_use]
    pub fn new(pace: Pace, sizes: Vec<u16>) -> Self {
        assert!(!sizes.is_empty(), "frames have sizes");
        let (rate, seed) = match pace {
            Pace::Constant(rate) | Pace::Bursts { rate, .. } => (rate, 0),
            Pace::Stepped { before, .. } => (before, 0),
            Pace::Poisson { rate, seed } => (rate, seed),
            Pace::FlatOut | Pace::Recorded { .. } => (Rate::Frames(1), 0),
        };
        let gaps: Vec<Gap> = sizes.iter().map(|&size| rate.gap(size)).collect();
        let mean = |gap: &Gap| gap.ns as f64 + gap.remainder as f64 / rate.denominator() as f64;
        let denominator = match pace {
            Pace::Poisson { .. } => FRACTIONS,
            Pace::Constant(_) | Pace::Bursts { .. } | Pace::Stepped { .. } => rate.denominator(),
            Pace::FlatOut | Pace::Recorded { .. } => 1,
        };
        let within = match pace {
            Pace::Bursts { within, .. } => within,
            _ => None,
        };
        let mut schedule = Self {
            pace,
            sizes,
            means: gaps.iter().map(mean).collect(),
            gaps,
            place: 0,
            main: DueTime::new(denominator),
            left: 0,
            inner: DueTime::new(within.map_or(1, Rate::denominator)),
            changes: matches!(pace, Pace::Stepped { .. }),
            random: SplitMix64::new(seed),
        };
        schedule.step();
        schedule
    }

    /// The schedule of a recording with these gaps in nanoseconds, at this speed in per cent.
    ///
    /// # Panics
    /// If there are no gaps.
    #[must_use]
    pub fn recorded(gaps_ns: &[u64], percent: u32) -> Self {
        let percent = u64::from(percent.max(1));
        let scaled = |&ns: &u64| Gap {
            ns: (ns / percent)
                .saturating_mul(100)
                .saturating_add(ns % percent * 100 / percent),
            remainder: ns % percent * 100 % percent,
        };
        let sizes = vec![0; gaps_ns.len()];
        Self {
            gaps: gaps_ns.iter().map(scaled).collect(),
            main: DueTime::new(percent),
            ..Self::new(Pace::Recorded { percent: 100 }, sizes)
        }
    }

    /// The due time of the next frame.
    #[must_use]
    #[inline]
    pub const fn due_ns(&self) -> u64 {
        if self.left > 0 {
            self.inner.ns
        } else {
            self.main.ns
        }
    }

    /// Advances to the next frame.
    #[inline]
    pub fn advance(&mut self) {
        let place = self.place;
        self.place = if place + 1 == self.sizes.len() {
            0
        } else {
            place + 1
        };
        match self.pace {
            Pace::Constant(_) | Pace::Recorded { .. } => self.main.add(self.gaps[place]),
            Pace::Stepped { .. } => {
                self.main.add(self.gaps[place]);
                self.step();
            }
            Pace::Poisson { .. } => self.advance_poisson(place),
            Pace::Bursts { frames, within, .. } => self.burst(frames, within, place),
            Pace::FlatOut => {}
        }
    }

    /// The due time of the frame `number`, counted from 0. Steps through all frames before it.
    #[must_use]
    pub fn nth_ns(mut self, number: u64) -> u64 {
        for _ in 0..number {
            self.advance();
        }
        self.due_ns()
    }

    /// Switches to the second rate when its time is reached.
    fn step(&mut self) {
        let Pace::Stepped { at_ns, after, .. } = self.pace else {
            return;
        };
        if self.changes && self.main.ns >= at_ns {
            self.changes = false;
            self.gaps = self.sizes.iter().map(|&size| after.gap(size)).collect();
            self.main = DueTime {
                ns: at_ns,
                ..DueTime::new(after.denominator())
            };
        }
    }

    fn advance_poisson(&mut self, place: usize) {
        // Uniform in (0, 1], so that the logarithm is finite.
        let uniform = ((self.random.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        let gap = -uniform.ln() * self.means[place];
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a gap is positive; one of more than 78 hours ends the schedule anyway"
        )]
        let fractions = (gap * FRACTIONS as f64) as u64;
        self.main.add(Gap {
            ns: fractions / FRACTIONS,
            remainder: fractions % FRACTIONS,
        });
    }

    /// Advances the mean schedule with each frame; it determines the start of the next burst.
    fn burst(&mut self, frames: u32, within: Option<Rate>, place: usize) {
        if self.left == 0 {
            self.left = frames.max(1);
            let DueTime { denominator, .. } = self.inner;
            self.inner = DueTime {
                ns: self.main.ns,
                ..DueTime::new(denominator)
            };
        }
        self.left -= 1;
        self.main.add(self.gaps[place]);
        if let Some(within) = within {
            self.inner.add(within.gap(self.sizes[place]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dues(pace: Pace, sizes: &[u16], count: usize) -> Vec<u64> {
        let mut schedule = Schedule::new(pace, sizes.to_vec());
        let mut next = || {
            let due = schedule.due_ns();
            schedule.advance();
            due
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn equal_gaps_never_drift() {
        for pps in [1_000, 3, 700_001, 1_488_095, 7_999_999] {
            let pace = Pace::Constant(Rate::Frames(pps));
            let mut schedule = Schedule::new(pace, vec![64]);
            for frame in 0..1_000_000_u64 {
                let exact = u128::from(frame) * 1_000_000_000 / u128::from(pps);
                assert_eq!(u128::from(schedule.due_ns()), exact, "{frame} of {pps}");
                schedule.advance();
            }
        }
    }

    #[test]
    fn line_rate_equals_the_published_value() {
        // Frames of 64 bytes on 1 Gbit/s: 1,488,095.24 a second.
        let pace = Pace::Constant(Rate::Line(1_000_000_000));
        let dues = dues(pace, &[64], 1_488_097);
        assert!(dues[1_488_095] < 1_000_000_000 && dues[1_488_096] >= 1_000_000_000);
        assert_eq!(dues[1], 672);
    }

    #[test]
    fn frames_of_a_mix_take_their_own_line_time() {
        let pace = Pace::Constant(Rate::Line(1_000_000_000));
        assert_eq!(dues(pace, &[64, 1518], 4), [0, 672, 12_976, 13_648]);
    }

    #[test]
    fn poisson_gaps_have_the_expected_mean_and_deviation() {
        let rate = Rate::Frames(1_000_000);
        let dues = dues(Pace::Poisson { rate, seed: 1 }, &[64], 100_001);
        let gaps: Vec<f64> = dues
            .windows(2)
            .map(|two| (two[1] - two[0]) as f64)
            .collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let square = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>();
        let deviation = (square / gaps.len() as f64).sqrt();
        // Five standard errors of 100,000 gaps.
        assert!((mean - 1_000.0).abs() < 16.0, "{mean}");
        assert!((deviation / mean - 1.0).abs() < 0.03, "{deviation}");
    }

    #[test]
    fn recorded_gaps_are_kept_or_scaled() {
        let dues = |percent| {
            let mut schedule = Schedule::recorded(&[1_000, 10, 7], percent);
            let mut next = || {
                let due = schedule.due_ns();
                schedule.advance();
                due
            };
            [next(), next(), next(), next(), next()]
        };
        assert_eq!(dues(100), [0, 1_000, 1_010, 1_017, 2_017]);
        assert_eq!(dues(50), [0, 2_000, 2_020, 2_034, 4_034]);
        // A third of 1017, and of 2017.
        assert_eq!(dues(300), [0, 333, 336, 339, 672]);
    }

    #[test]
    fn rate_changes_exactly_at_its_time() {
        let stepped = |at_ns| Pace::Stepped {
            before: Rate::Frames(1_000_000),
            at_ns,
            after: Rate::Frames(300_000),
        };
        assert_eq!(
            dues(stepped(2_500), &[64], 6),
            [0, 1_000, 2_000, 2_500, 5_833, 9_166]
        );
        // A frame due exactly at the change belongs to the second rate.
        assert_eq!(dues(stepped(2_000), &[64], 4), [0, 1_000, 2_000, 5_333]);
        assert_eq!(dues(stepped(0), &[64], 3), [0, 3_333, 6_666]);
        let schedule = Schedule::new(stepped(2_500), vec![64]);
        assert_eq!(schedule.nth_ns(4), 5_833);
    }

    #[test]
    fn bursts_are_due_at_the_mean_rate() {
        let rate = Rate::Frames(1_000);
        let at_once = Pace::Bursts {
            frames: 3,
            within: None,
            rate,
        };
        let three = 3_000_000;
        assert_eq!(
            dues(at_once, &[64], 7),
            [0, 0, 0, three, three, three, 2 * three]
        );
        let spaced = Pace::Bursts {
            frames: 2,
            within: Some(Rate::Line(1_000_000_000)),
            rate,
        };
        assert_eq!(dues(spaced, &[64], 4), [0, 672, 2_000_000, 2_000_672]);
    }
}
