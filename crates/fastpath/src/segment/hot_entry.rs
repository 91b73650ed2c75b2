//! Hot entry: the part of an entry that most packets need, in one cache line: the words to
//! compare, the ages between which it is valid, the inline program of the rule, and its counters.
//! So neither the entry nor the rule is read, which are elsewhere in memory.
//!
//! A hot entry is valid or says nothing: where the rule is not yet or no longer visible, the lookup
//! continues with the entries. If several entries have the same match, buckets name the one that is
//! tried first.

use base::sync::OnceLock;
use base::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};
use pipeline::{Counters, Rule};

use crate::mask::HOT_WORDS_MAX;

/// A hot entry. It is written once, except `until`.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct HotEntry {
    words: [AtomicU64; HOT_WORDS_MAX],
    counters: OnceLock<Counters>,
    inline_program: AtomicU32,
    /// Age from which the entry is visible.
    born: AtomicU16,
    /// Age from which the hot entry is not valid.
    until: AtomicU16,
}

#[cfg(not(feature = "model"))]
const _: () = assert!(size_of::<HotEntry>() == 64, "a cache line");

impl HotEntry {
    /// A hot entry that is not valid at any age.
    pub(super) const fn empty() -> Self {
        Self {
            words: [const { AtomicU64::new(0) }; HOT_WORDS_MAX],
            counters: OnceLock::new(),
            inline_program: AtomicU32::new(0),
            born: AtomicU16::new(0),
            until: AtomicU16::new(0),
        }
    }

    /// Writes it, valid from age `born` until `until`. For the one writer, before a reader can
    /// find it.
    pub(super) fn write(&self, words: impl Iterator<Item = u64>, rule: &Rule, ages: (u16, u16)) {
        for (own, word) in self.words.iter().zip(words) {
            own.store(word, Ordering::Relaxed);
        }
        let written = self.counters.set(rule.counters.clone());
        written.expect("a hot entry is written once");
        self.inline_program.store(
            rule.instructions.program_slot().inline_program(),
            Ordering::Relaxed,
        );
        let (born, until) = ages;
        self.born.store(born, Ordering::Relaxed);
        self.until.store(until, Ordering::Relaxed);
    }

    /// Ends its validity at this age. For the one writer.
    pub(super) fn end(&self, age: u16) {
        let until = self.until.load(Ordering::Relaxed);
        self.until.store(until.min(age), Ordering::Relaxed);
    }

    /// The masked words of the match.
    #[inline]
    pub(crate) fn words(&self) -> impl Iterator<Item = u64> {
        self.words.iter().map(|word| word.load(Ordering::Relaxed))
    }

    /// True if a packet with these masked words matches the rule, for a reader of this age.
    #[inline]
    pub(super) fn is_hit<const N: usize>(&self, words: [u64; N], age: u64) -> bool {
        let both = self.words().zip(words);
        let differing = both.fold(0, |differing, (own, word)| differing | own ^ word);
        let [born, until] =
            [&self.born, &self.until].map(|age| u64::from(age.load(Ordering::Relaxed)));
        differing == 0 && born <= age && age < until
    }

    /// Encoded [`InlineProgram`](crate::action_program::InlineProgram) of the rule.
    #[inline]
    pub(crate) fn inline_program(&self) -> u32 {
        self.inline_program.load(Ordering::Relaxed)
    }

    /// Counters of the rule, or `None` if the entry was not written.
    #[inline]
    pub(crate) fn counters(&self) -> Option<&Counters> {
        self.counters.get()
    }
}
