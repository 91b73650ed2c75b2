//! Random decisions from a seed: the same seed gives the same decisions everywhere.

use base::SplitMix64;

use super::Chance;

/// The random decisions for one kind of fault. There is one decision for each frame, independent of
/// other faults, so that the kinds of faults are independent.
#[derive(Clone, Debug)]
pub(super) struct FaultSampler {
    chance: Chance,
    random: SplitMix64,
    sampled: u64,
}

impl FaultSampler {
    pub(super) const fn new(chance: Chance, seed: u64) -> Self {
        Self {
            chance,
            random: SplitMix64::new(seed),
            sampled: 0,
        }
    }

    /// Returns true if this frame is affected.
    pub(super) fn sample(&mut self) -> bool {
        self.sampled += 1;
        match self.chance {
            Chance::Never => false,
            Chance::Share(share) => self.random.unit() < share,
            Chance::Every(count) => self.sampled.is_multiple_of(count.get()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fault_share_is_within_five_standard_deviations() {
        let mut sampler = FaultSampler::new(Chance::Share(0.1), 7);
        let affected = (0..100_000).filter(|_| sampler.sample()).count();
        // Five standard deviations, sqrt(100000 * 0.1 * 0.9) = 95.
        assert!(affected.abs_diff(10_000) < 475, "{affected}");
        let mut never = FaultSampler::new(Chance::Share(0.0), 7);
        let mut always = FaultSampler::new(Chance::Share(1.0), 7);
        assert!((0..1_000).all(|_| !never.sample() && always.sample()));
    }
}
