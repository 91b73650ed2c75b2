//! Numbers that look like chance and are not: how frames are shared
//! out. The same on every machine and in every run, so that a test can name them
//! and a restart moves nobody.

use std::hash::{Hash, Hasher};

/// A hash function in the manner of FNV-1a, a word at a time, with the end mixed
/// as by SplitMix64 so that all bits are as good as any.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StableHasher(u64);

impl StableHasher {
    /// One that has seen nothing.
    pub(crate) const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// The hash of `value`, behind what was seen before.
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
        self.0 = mixed(self.0 ^ word).wrapping_mul(0x0000_0100_0000_01b3);
    }

    fn finish(&self) -> u64 {
        mixed(self.0)
    }
}

/// SplitMix64's last steps: every bit of the word moves every bit of the result.
const fn mixed(word: u64) -> u64 {
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}
