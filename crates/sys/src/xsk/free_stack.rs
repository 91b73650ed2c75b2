//! Lock-free stack of free chunks (Treiber 1986), with operations on several chunks at once.
//!
//! ```text
//!  top: | version | chunk 7 |     below[7] = 2, below[2] = 9, below[9] = EMPTY
//! ```
//!
//! The links are indices in an array that is never freed, so a reader may follow a stale link
//! safely; the version in the top word, which every change increments, makes its exchange fail then
//! (the ABA problem). Taking or returning n chunks costs n plain stores or loads and one
//! compare-and-exchange of 64 bits.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// End of the stack.
const EMPTY: u32 = u32::MAX;

/// Stack of chunk numbers, each at most once.
pub(super) struct FreeStack {
    /// Top chunk in the low half; in the high half a version, by which a thread detects that the
    /// stack has changed since it read the top.
    top: AtomicU64,
    /// Chunk below each chunk.
    below: Box<[AtomicU32]>,
}

impl FreeStack {
    /// Creates a stack of all `chunks`.
    pub(super) fn full(chunks: u32) -> Self {
        let below = (0..chunks).map(|chunk| match chunk + 1 {
            next if next < chunks => AtomicU32::new(next),
            _ => AtomicU32::new(EMPTY),
        });
        Self {
            below: below.collect(),
            top: AtomicU64::new(if chunks > 0 { 0 } else { EMPTY.into() }),
        }
    }

    /// Pops up to `count` chunks, appends them to `to`, and returns their number.
    pub(super) fn pop(&self, count: usize, to: &mut Vec<u32>) -> usize {
        let before = to.len();
        let mut top = self.top.load(Ordering::Acquire);
        loop {
            to.truncate(before);
            let (version, mut chunk) = split(top);
            while to.len() - before < count && chunk != EMPTY {
                to.push(chunk);
                // If the stack has changed this may be any chunk; the exchange below then fails.
                chunk = self.below[chunk as usize].load(Ordering::Relaxed);
            }
            if to.len() == before {
                return 0;
            }
            match self.exchange(top, next_top(version, chunk)) {
                Ok(()) => return to.len() - before,
                Err(now) => top = now,
            }
        }
    }

    /// Pushes chunks that are neither in the stack nor owned.
    ///
    /// # Panics
    /// If a chunk does not exist.
    pub(super) fn push(&self, chunks: &[u32]) {
        let Some((last, others)) = chunks.split_last() else {
            return;
        };
        for (chunk, next) in others.iter().zip(&chunks[1..]) {
            self.below[*chunk as usize].store(*next, Ordering::Relaxed);
        }
        let mut top = self.top.load(Ordering::Relaxed);
        loop {
            let (version, under) = split(top);
            self.below[*last as usize].store(under, Ordering::Relaxed);
            match self.exchange(top, next_top(version, chunks[0])) {
                Ok(()) => return,
                Err(now) => top = now,
            }
        }
    }

    /// Replaces the top if it is still `from`.
    fn exchange(&self, from: u64, to: u64) -> Result<(), u64> {
        // Release: writes to a chunk before its push are visible to the thread that pops it.
        let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
        self.top
            .compare_exchange_weak(from, to, success, failure)
            .map(drop)
    }
}

/// Splits the top word into version and chunk.
#[expect(clippy::cast_possible_truncation, reason = "the halves of a number")]
const fn split(top: u64) -> (u32, u32) {
    ((top >> 32) as u32, top as u32)
}

/// Composes the top word with the next version.
fn next_top(version: u32, chunk: u32) -> u64 {
    u64::from(version.wrapping_add(1)) << 32 | u64::from(chunk)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_stack_is_last_in_first_out() {
        let free = FreeStack::full(4);
        let mut popped = Vec::new();
        assert_eq!(free.pop(3, &mut popped), 3);
        assert_eq!(popped, [0, 1, 2]);
        free.push(&[2, 0]);
        free.push(&[]);
        assert_eq!(free.pop(9, &mut popped), 3);
        assert_eq!(popped, [0, 1, 2, 2, 0, 3]);
        assert_eq!(free.pop(1, &mut popped), 0);
        assert_eq!(FreeStack::full(0).pop(1, &mut popped), 0);
    }

    #[test]
    fn free_stack_is_consistent_under_concurrent_use() {
        const CHUNKS: u32 = 64;
        // Miri is slow, but it shows each thread old values as a processor may.
        const TURNS: u32 = if cfg!(miri) { 40 } else { 20_000 };
        let free = FreeStack::full(CHUNKS);
        let owners: Vec<_> = (0..CHUNKS).map(|_| AtomicU32::new(0)).collect();
        // The contents of chunks, in two words: a pop must see both of the last push.
        let words = || (0..CHUNKS).map(|_| AtomicU32::new(0)).collect::<Vec<_>>();
        let contents = [words(), words()];
        std::thread::scope(|scope| {
            for count in [1, 3, 7] {
                let (free, owners, contents) = (&free, &owners, &contents);
                scope.spawn(move || {
                    let mut own = Vec::new();
                    for turn in 0..TURNS {
                        free.pop(count, &mut own);
                        for chunk in &own {
                            let before = owners[*chunk as usize].fetch_add(1, Ordering::Relaxed);
                            assert_eq!(before, 0, "chunk {chunk} has two owners");
                            let seen = contents
                                .each_ref()
                                .map(|words| words[*chunk as usize].load(Ordering::Relaxed));
                            assert_eq!(seen[0], seen[1], "chunk {chunk} has old contents");
                            for words in contents {
                                words[*chunk as usize].store(turn, Ordering::Relaxed);
                            }
                        }
                        for chunk in &own {
                            owners[*chunk as usize].fetch_sub(1, Ordering::Relaxed);
                        }
                        free.push(&own);
                        own.clear();
                    }
                });
            }
        });
        let mut remaining = Vec::new();
        free.pop(usize::MAX, &mut remaining);
        remaining.sort_unstable();
        assert_eq!(remaining, (0..CHUNKS).collect::<Vec<_>>());
    }
}
