//! Chance by a seed: the same seed throws the same dice everywhere.

use super::Chance;

/// A generator of random numbers (SplitMix64: Steele, Lea and Flood, "Fast splittable
/// pseudorandom number generators", 2014).
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to 1, 1 never.
    pub(super) fn share(&mut self) -> f64 {
        // As many bits as an `f64` holds exactly.
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// A die for one kind of fault. It is thrown once a frame, whatever else becomes of that, so
/// that one kind's faults do not depend on another's.
#[derive(Clone, Debug)]
pub(super) struct Die {
    chance: Chance,
    random: Random,
    thrown: u64,
}

impl Die {
    pub(super) const fn new(chance: Chance, seed: u64) -> Self {
        Self {
            chance,
            random: Random::new(seed),
            thrown: 0,
        }
    }

    /// Whether this frame is struck.
    pub(super) fn throw(&mut self) -> bool {
        self.thrown += 1;
        match self.chance {
            Chance::Never => false,
            Chance::Share(share) => self.random.share() < share,
            Chance::Every(count) => self.thrown.is_multiple_of(count.get()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_numbers_come() {
        // The reference's first outputs for the seed 1234567 (prng.di.unimi.it/splitmix64.c).
        let mut random = Random::new(1_234_567);
        let first = [random.next(), random.next()];
        assert_eq!(
            first,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]
        );
    }

    #[test]
    fn a_share_is_met_within_what_chance_allows() {
        let mut die = Die::new(Chance::Share(0.1), 7);
        let struck = (0..100_000).filter(|_| die.throw()).count();
        // Five standard deviations, sqrt(100000 * 0.1 * 0.9) = 95.
        assert!(struck.abs_diff(10_000) < 475, "{struck}");
        let mut never = Die::new(Chance::Share(0.0), 7);
        let mut always = Die::new(Chance::Share(1.0), 7);
        assert!((0..1_000).all(|_| !never.throw() && always.throw()));
    }
}
