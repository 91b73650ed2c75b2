//! What a frame needs that finds an entry, side by side in one cache line: what it is
//! compared with, how long that is all there is to know, what its rule does if that is
//! little, and where the frame is counted. So neither the entry nor its rule is touched,
//! which lie elsewhere.
//!
//! A line is right or says nothing: where several entries want the same, where none is there
//! any more or not yet, the entries tell.

use base::sync::OnceLock;
use base::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};
use pipeline::{Counters, Rule};

use crate::shape::KEPT_MAX;

/// See the top of this file. It is written once, but for its end.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Line {
    words: [AtomicU64; KEPT_MAX],
    counters: OnceLock<Counters>,
    gist: AtomicU32,
    /// The age from which on the entry is there.
    born: AtomicU16,
    /// The age from which on the line says nothing.
    until: AtomicU16,
}

#[cfg(not(feature = "model"))]
const _: () = assert!(size_of::<Line>() == 64, "a cache line");

impl Line {
    /// One that says nothing.
    pub(super) const fn empty() -> Self {
        Self {
            words: [const { AtomicU64::new(0) }; KEPT_MAX],
            counters: OnceLock::new(),
            gist: AtomicU32::new(0),
            born: AtomicU16::new(0),
            until: AtomicU16::new(0),
        }
    }

    /// Writes it, to be read from age `born` until `until`. By the one writer only, before
    /// others can find it.
    pub(super) fn write(&self, words: impl Iterator<Item = u64>, rule: &Rule, ages: (u16, u16)) {
        for (kept, word) in self.words.iter().zip(words) {
            kept.store(word, Ordering::Relaxed);
        }
        let fresh = self.counters.set(rule.counters.clone());
        fresh.expect("a line is written once");
        self.gist
            .store(rule.instructions.inline_program(), Ordering::Relaxed);
        let (born, until) = ages;
        self.born.store(born, Ordering::Relaxed);
        self.until.store(until, Ordering::Relaxed);
    }

    /// From this age on it says nothing. By the one writer only.
    pub(super) fn end(&self, age: u16) {
        let before = self.until.load(Ordering::Relaxed);
        self.until.store(before.min(age), Ordering::Relaxed);
    }

    /// The words that a frame must have.
    #[inline]
    pub(crate) fn words(&self) -> impl Iterator<Item = u64> {
        self.words.iter().map(|word| word.load(Ordering::Relaxed))
    }

    /// Whether it tells a reader of this age what a frame of these words finds.
    #[inline]
    pub(super) fn tells<const N: usize>(&self, words: [u64; N], age: u64) -> bool {
        let both = self.words().zip(words);
        let differing = both.fold(0, |differing, (kept, word)| differing | kept ^ word);
        let [born, until] =
            [&self.born, &self.until].map(|age| u64::from(age.load(Ordering::Relaxed)));
        differing == 0 && born <= age && age < until
    }

    /// What the rule does, if that is little.
    #[inline]
    pub(crate) fn gist(&self) -> u32 {
        self.gist.load(Ordering::Relaxed)
    }

    /// Where its frames are counted, if it was written.
    #[inline]
    pub(crate) fn counters(&self) -> Option<&Counters> {
        self.counters.get()
    }
}
