//! Choices that the input of a fuzz target makes.

/// A generator of values that the input drives.
pub(super) struct Draw<'a>(pub(super) &'a [u8]);

impl Draw<'_> {
    /// Returns a number below `count`; zero at the end of the input.
    pub(super) fn below(&mut self, count: u8) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        first % count
    }

    /// Returns one of `choices`.
    pub(super) fn choose<T: Copy>(&mut self, choices: &[T]) -> T {
        let count = u8::try_from(choices.len()).expect("there are few");
        choices[usize::from(self.below(count))]
    }

    /// Returns a list of up to `max` elements.
    pub(super) fn list<T>(&mut self, max: u8, mut one: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(max + 1)).map(|_| one(self)).collect()
    }

    /// Returns a 64-bit number; bytes after the end of the input are zero.
    pub(super) fn number(&mut self) -> u64 {
        (0..8).fold(0, |number, _| number << 8 | u64::from(self.below(255)))
    }
}
