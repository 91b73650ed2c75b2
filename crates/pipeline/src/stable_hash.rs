//! A hash that is equal on every machine and in every run, so that a test can name a bucket and a
//! restart does not move a flow.

use std::hash::{Hash, Hasher};

use base::mix64;

/// FNV-1a over 64-bit words, with the finalizer of SplitMix64 so that all bits of the result are
/// usable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StableHasher(u64);

impl StableHasher {
    /// Creates the hasher of the empty input.
    pub(crate) const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// Returns the hash of the previous input and `value`.
    pub(crate) fn of(mut self, value: impl Hash) -> u64 {
        value.hash(&mut self);
        self.finish()
    }
}

impl Hasher for StableHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_u8(&mut self, word: u8) {
        self.write_u64(word.into());
    }

    fn write_u16(&mut self, word: u16) {
        self.write_u64(word.into());
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn write_u128(&mut self, words: u128) {
        let [a, b, c, d, e, f, g, h, low @ ..] = words.to_be_bytes();
        self.write_u64(u64::from_be_bytes([a, b, c, d, e, f, g, h]));
        self.write_u64(u64::from_be_bytes(low));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = mix64(self.0 ^ word).wrapping_mul(0x0000_0100_0000_01b3);
    }

    fn finish(&self) -> u64 {
        mix64(self.0)
    }
}
