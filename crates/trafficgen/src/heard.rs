//! A stream that another instrument sends: what its frames' numbers tell, without knowing what was sent.

use super::Signature;
use super::sequence::{Seen, Sequence};

/// So many frames in a row that are older than anything that is kept: the stream has begun anew.
const ANEW: u32 = 64;
/// Numbers are reckoned from here, so that those before the first that came have room.
const START: u64 = 1 << 32;

/// A stream as it was heard.
#[derive(Debug, Default)]
pub struct Heard {
    book: Option<Book>,
    /// What was found of streams of the same number before.
    before: Found,
}

#[derive(Debug)]
struct Book {
    sequence: Sequence,
    /// The highest number so far.
    highest: u64,
    strays: u32,
    /// The last frame's age by a clock that is not ours: only differences mean something.
    age_ns: u64,
    jitter_ns: f64,
}

/// What there is to say of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Found {
    /// Different frames that came.
    pub received: u64,
    /// Frames that did not, between the first that came and the last.
    pub lost: u64,
    /// Frames that came again.
    pub duplicated: u64,
    /// Frames that came after one sent later (RFC 4737).
    pub reordered: u64,
    /// Smoothed jitter at the end (RFC 3550, 6.4.1), in nanoseconds.
    pub jitter_ns: f64,
}

impl Heard {
    /// Books a frame that came at `at_ns`.
    pub fn book(&mut self, signature: Signature, at_ns: u64) {
        let age_ns = at_ns.wrapping_sub(signature.time_ns);
        let book = self
            .book
            .get_or_insert_with(|| Book::from(signature, age_ns));
        if !book.take(signature, age_ns) {
            self.before = self.found();
            let mut book = Book::from(signature, age_ns);
            book.take(signature, age_ns);
            self.book = Some(book);
        }
    }

    /// What there is to say of it so far.
    #[must_use]
    pub fn found(&self) -> Found {
        let now = self.book.as_ref().map(Book::found).unwrap_or_default();
        Found {
            received: self.before.received + now.received,
            lost: self.before.lost + now.lost,
            duplicated: self.before.duplicated + now.duplicated,
            reordered: self.before.reordered + now.reordered,
            jitter_ns: now.jitter_ns,
        }
    }
}

impl Book {
    fn from(signature: Signature, age_ns: u64) -> Self {
        let first = START + u64::from(signature.sequence);
        Self {
            sequence: Sequence::new(first),
            highest: first,
            strays: 0,
            age_ns,
            jitter_ns: 0.0,
        }
    }

    /// Books a frame; false if it is one of a stream that has begun anew.
    fn take(&mut self, signature: Signature, age_ns: u64) -> bool {
        let [.., a, b, c, d] = self.highest.to_be_bytes();
        let ahead = signature
            .sequence
            .wrapping_sub(u32::from_be_bytes([a, b, c, d]));
        let number = self
            .highest
            .wrapping_add_signed(i64::from(ahead.cast_signed()));
        if number < self.sequence.first() || self.sequence.book(number) == Seen::TooLate {
            self.strays += 1;
            return self.strays < ANEW;
        }
        self.strays = 0;
        self.highest = self.highest.max(number);
        let difference = age_ns
            .wrapping_sub(self.age_ns)
            .cast_signed()
            .unsigned_abs();
        self.jitter_ns += (difference as f64 - self.jitter_ns) / 16.0;
        self.age_ns = age_ns;
        true
    }

    fn found(&self) -> Found {
        let sequence = &self.sequence;
        let span = self.highest + 1 - sequence.first();
        Found {
            received: sequence.received,
            lost: span.saturating_sub(sequence.received),
            duplicated: sequence.duplicates,
            reordered: sequence.reordered,
            jitter_ns: self.jitter_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hear(heard: &mut Heard, sequence: u32, at_ns: u64) {
        let signature = Signature {
            stream: 0,
            sequence,
            time_ns: 1_000 * u64::from(sequence),
        };
        heard.book(signature, at_ns);
    }

    #[test]
    fn losses_copies_and_overtaking_are_told_by_numbers_alone() {
        let mut heard = Heard::default();
        let start = u32::MAX - 2;
        for step in [0, 1, 2, 4, 3, 3, 5, 8_u32] {
            let sequence = start.wrapping_add(step);
            hear(&mut heard, sequence, 7_000 + 1_000 * u64::from(sequence));
        }
        let found = heard.found();
        assert_eq!((found.received, found.lost), (7, 2));
        assert_eq!((found.duplicated, found.reordered), (1, 1));
        assert_eq!(found.jitter_ns, 0.0);
    }

    #[test]
    fn a_stream_that_begins_anew_is_another_of_the_same_number() {
        let mut heard = Heard::default();
        for sequence in 0..500_000 {
            hear(&mut heard, sequence, 0);
        }
        for sequence in 0..1_000 {
            hear(&mut heard, sequence, 0);
        }
        let found = heard.found();
        // The first of the new ones are taken for late ones of the old.
        assert_eq!(found.received, 500_000 + 1_000 - u64::from(ANEW) + 1);
        assert_eq!(found.lost, 0);
    }

    #[test]
    fn nothing_heard_is_nothing_found() {
        assert_eq!(Heard::default().found(), Found::default());
    }
}
