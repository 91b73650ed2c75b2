//! Pseudorandom numbers from a seed: the same seed gives the same sequence on every machine.
//!
//! Not for secrets. The workspace has its own generator, because recorded orders of trials and
//! injected faults must not change with a library's version.

/// The finalizer of SplitMix64: a permutation of 64-bit words in which every bit of the input affects
/// every bit of the result.
#[inline]
#[must_use]
pub const fn mix64(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
#[derive(Clone, Debug)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// A generator with this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Returns the next 64 bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix64(self.state)
    }

    /// Returns a number below `bound`, which must not be zero.
    pub fn below(&mut self, bound: usize) -> usize {
        // The high half of a 128-bit product: a bias of 2^-64 at most per unit of `bound`.
        let product = u128::from(self.next_u64()) * bound as u128;
        usize::try_from(product >> 64).expect("the product's high half is below the bound")
    }

    /// Returns a number from 0 inclusive to 1 exclusive, uniformly distributed.
    pub const fn unit(&mut self) -> f64 {
        // As many bits as an `f64` holds exactly.
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns an approximately standard normal number, for simulations: the sum of twelve
    /// uniform ones, whose variance is one, less their mean.
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }

    /// Puts `items` in a random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix64_returns_the_published_sequence() {
        // The first outputs of the reference implementation for the seed 1234567
        // (prng.di.unimi.it/splitmix64.c).
        let mut random = SplitMix64::new(1_234_567);
        assert_eq!(
            [random.next_u64(), random.next_u64()],
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]
        );
    }

    #[test]
    fn shuffle_permutes_items_by_its_seed() {
        let shuffled = |seed| {
            let mut items: Vec<u32> = (0..100).collect();
            SplitMix64::new(seed).shuffle(&mut items);
            items
        };
        assert_eq!(shuffled(1), shuffled(1));
        assert_ne!(shuffled(1), shuffled(2));
        let mut sorted = shuffled(1);
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..100));
    }
}
