//! The sending side of one stream: frames that are due, stamped and handed over.

use std::io;

use hdrhistogram::Histogram;

use super::delays::nanoseconds;
use super::measure::Length;
use super::outcome::Rates;
use super::shared::Shared;
use super::source::Prepared;
use super::template::{BadTemplate, Stamp};
use super::{Pace, Schedule, Stream, Time, Transmit};

/// Frames that are handed over by one call.
const BURST: usize = 64;
/// A stream that has fallen behind at its end is given that share of its time to catch up, and no more.
const GRACE: u64 = 50;
/// A stream of a number of frames, of which none was taken for so long, ends.
const STALL_NS: u64 = 1_000_000_000;

/// A stream being sent.
pub(super) struct Emitter<'a> {
    number: u8,
    shared: &'a Shared,
    frames: Prepared,
    schedule: Schedule,
    flat_out: bool,
    limit: Limit,
    /// Bytes of frames under way, each slot long enough for the longest.
    slots: Vec<u8>,
    stride: usize,
    /// Which pattern each slot holds.
    holds: [usize; BURST],
    lengths: [usize; BURST],
    /// The frames that are due and not sent.
    dues: [Due; BURST],
    pending: usize,
    /// The next signed frame's number, and the next frame's place in the round.
    next: u64,
    place: usize,
    /// How many frames had been scheduled when they began to count.
    first: Option<u64>,
    /// Frames whose time has been taken off the schedule.
    scheduled: u64,
    exhausted: bool,
    book: Book,
}

/// When a stream ends, in nanoseconds and frames from its start.
#[derive(Clone, Copy, Debug)]
struct Limit {
    warm_up_ns: u64,
    length: Length,
}

/// A frame that is due.
#[derive(Clone, Copy, Debug, Default)]
struct Due {
    at_ns: u64,
    part: usize,
    /// None of one that has no room for a signature.
    number: Option<u64>,
    /// Whether it is behind the warm-up.
    counts: bool,
}

/// What was sent behind the warm-up.
#[derive(Debug)]
struct Book {
    frames: u64,
    unsigned: u64,
    bytes: u64,
    lateness: Histogram<u64>,
    /// When the first frame that counts was due, and when the one behind the last would have been.
    first_due_ns: u64,
    end_due_ns: u64,
    intended: u64,
    /// When the last was sent.
    last_sent_ns: u64,
}

impl<'a> Emitter<'a> {
    pub(super) fn new(
        number: u8,
        stream: &Stream,
        length: Length,
        warm_up_ns: u64,
        shared: &'a Shared,
    ) -> Result<Self, BadTemplate> {
        let frames = stream.source.prepare()?;
        let longest = frames.patterns.iter().map(|one| one.bytes().len()).max();
        let stride = longest.unwrap_or(0).next_multiple_of(64);
        Ok(Self {
            number,
            shared,
            schedule: stream.source.schedule(stream.pace, &frames),
            flat_out: stream.pace == Pace::FlatOut,
            limit: Limit { warm_up_ns, length },
            slots: vec![0; stride * BURST],
            stride,
            holds: [usize::MAX; BURST],
            lengths: [0; BURST],
            dues: [Due::default(); BURST],
            pending: 0,
            next: 0,
            place: 0,
            first: None,
            scheduled: 0,
            exhausted: false,
            book: Book {
                frames: 0,
                unsigned: 0,
                bytes: 0,
                lateness: nanoseconds(),
                first_due_ns: 0,
                end_due_ns: 0,
                intended: 0,
                last_sent_ns: 0,
            },
            frames,
        })
    }

    /// Whether everything has been sent, or given up.
    pub(super) const fn is_done(&self) -> bool {
        self.exhausted && self.pending == 0
    }

    /// Sends what is due, in one call. All times are counted from `start_ns`.
    #[inline]
    pub(super) fn pump(
        &mut self,
        start_ns: u64,
        time: &dyn Time,
        transmit: &mut dyn Transmit,
    ) -> io::Result<()> {
        let now = time.now_ns();
        let elapsed = now.saturating_sub(start_ns);
        self.collect(elapsed);
        if self.pending == 0 {
            return Ok(());
        }
        self.give_up(elapsed);
        if self.pending == 0 {
            return Ok(());
        }
        self.stamp(now, elapsed);
        let frames: [&[u8]; BURST] = std::array::from_fn(|slot| {
            let start = slot * self.stride;
            &self.slots[start..start + self.lengths[slot]]
        });
        let taken = transmit.send(&frames[..self.pending])?.min(self.pending);
        self.book(taken, elapsed);
        Ok(())
    }

    /// Ends the stream now, as if it had been asked for no longer.
    pub(super) fn end(&mut self, elapsed: u64) {
        if self.exhausted {
            return;
        }
        let length = elapsed.saturating_sub(self.limit.warm_up_ns);
        if matches!(self.limit.length, Length::Nanoseconds(until) if until <= length) {
            return;
        }
        self.limit.length = Length::Nanoseconds(length);
        let due = match self.flat_out {
            true => elapsed,
            false => self.schedule.due_ns(),
        };
        // What was due before and is not sent yet still goes out.
        self.is_over(due);
    }

    /// Frames that were sent behind the warm-up, and their bytes.
    pub(super) const fn so_far(&self) -> (u64, u64) {
        (self.book.frames, self.book.bytes)
    }

    /// Takes off the schedule what is due.
    #[inline]
    fn collect(&mut self, elapsed: u64) {
        while self.pending < BURST && !self.exhausted {
            let due = if self.flat_out {
                elapsed
            } else {
                self.schedule.due_ns()
            };
            if due > elapsed {
                break;
            }
            if self.is_over(due) {
                break;
            }
            let part = self.frames.round[self.place];
            let is_signed = self.frames.patterns[part].is_signed();
            self.dues[self.pending] = Due {
                at_ns: due,
                part,
                number: is_signed.then_some(self.next),
                counts: self.first.is_some(),
            };
            self.next += u64::from(is_signed);
            self.place = if self.place + 1 == self.frames.round.len() {
                0
            } else {
                self.place + 1
            };
            self.pending += 1;
            self.scheduled += 1;
            self.schedule.advance();
        }
    }

    /// Whether a frame that is due then is behind the last.
    #[inline]
    fn is_over(&mut self, due: u64) -> bool {
        let Limit { warm_up_ns, length } = self.limit;
        if self.first.is_none() && due >= warm_up_ns {
            self.first = Some(self.scheduled);
            self.shared.begin(self.next);
            self.book.first_due_ns = due;
        }
        let over = match length {
            Length::Nanoseconds(length) => due >= warm_up_ns + length,
            Length::Frames(frames) => self
                .first
                .is_some_and(|first| self.scheduled - first >= frames),
        };
        if over {
            self.exhausted = true;
            self.book.end_due_ns = due;
            self.book.intended = self.scheduled - self.first.unwrap_or(self.scheduled);
        }
        over
    }

    /// Ends a stream that cannot keep its time.
    fn give_up(&mut self, elapsed: u64) {
        let behind = match self.limit.length {
            Length::Nanoseconds(length) => {
                let end = self.limit.warm_up_ns + length;
                elapsed >= end + length / GRACE
            }
            Length::Frames(_) => {
                elapsed.saturating_sub(self.book.last_sent_ns) > STALL_NS
                    && elapsed.saturating_sub(self.dues[0].at_ns) > STALL_NS
            }
        };
        if !behind {
            return;
        }
        while !self.exhausted {
            let due = match self.flat_out {
                true => elapsed,
                false => self.schedule.due_ns(),
            };
            if !self.is_over(due) {
                self.scheduled += 1;
                self.schedule.advance();
            }
        }
        // Their numbers have not been seen by anybody.
        let first = self.dues[..self.pending].iter().find_map(|due| due.number);
        self.next = first.unwrap_or(self.next);
        self.pending = 0;
    }

    /// Writes the frames that are due, and publishes what of them others must know.
    #[inline]
    fn stamp(&mut self, now: u64, elapsed: u64) {
        for (slot, due) in self.dues[..self.pending].iter().enumerate() {
            let pattern = &self.frames.patterns[due.part];
            let length = pattern.bytes().len();
            let frame = &mut self.slots[slot * self.stride..][..length];
            if self.holds[slot] != due.part {
                frame.copy_from_slice(pattern.bytes());
                self.holds[slot] = due.part;
                self.lengths[slot] = length;
            }
            let Some(number) = due.number else {
                continue;
            };
            let stamp = Stamp {
                stream: self.number,
                number,
                time_ns: now,
            };
            pattern.write(frame, stamp);
            self.shared.note(number, elapsed.saturating_sub(due.at_ns));
        }
        self.shared.publish(self.next);
    }

    /// Books the first `taken` of the frames that were due.
    #[inline]
    fn book(&mut self, taken: usize, elapsed: u64) {
        if taken == 0 {
            return;
        }
        // Frames that were due together are equally late, and booked together.
        let mut alike = 0;
        for (slot, due) in self.dues[..taken].iter().enumerate() {
            if !due.counts {
                continue;
            }
            self.book.frames += 1;
            self.book.unsigned += u64::from(due.number.is_none());
            self.book.bytes += u64::from(self.frames.sizes[due.part]);
            alike += 1;
            if slot + 1 == taken || self.dues[slot + 1].at_ns != due.at_ns {
                let lateness = elapsed.saturating_sub(due.at_ns);
                self.book.lateness.saturating_record_n(lateness, alike);
                alike = 0;
            }
        }
        self.dues.copy_within(taken..self.pending, 0);
        self.pending -= taken;
        self.book.last_sent_ns = elapsed;
    }

    /// Behind the last number that was sent, once all are sent or given up.
    pub(super) const fn sent(&self) -> u64 {
        self.next
    }

    /// How many frames with numbers were sent behind the warm-up.
    pub(super) const fn counted(&self) -> u64 {
        self.book.frames - self.book.unsigned
    }

    /// How many without.
    pub(super) const fn unsigned(&self) -> u64 {
        self.book.unsigned
    }

    /// What was intended and what was done, and how late frames were.
    pub(super) fn finish(self, mean_bytes: f64) -> (Rates, Rates, Histogram<u64>) {
        let book = self.book;
        let seconds = |ns: u64| ns as f64 / 1e9;
        let due_ns = match self.limit.length {
            Length::Nanoseconds(length) => length,
            Length::Frames(_) => book.end_due_ns.saturating_sub(book.first_due_ns),
        };
        let began = match self.limit.length {
            Length::Nanoseconds(_) => self.limit.warm_up_ns,
            Length::Frames(_) => book.first_due_ns,
        };
        let took_ns = book
            .last_sent_ns
            .saturating_sub(began)
            .max(match self.flat_out {
                true => 0,
                false => due_ns,
            });
        let achieved = Rates {
            frames: book.frames,
            bytes: book.bytes,
            seconds: seconds(took_ns),
        };
        if self.flat_out {
            return (achieved, achieved, book.lateness);
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "bytes of frames are positive and fewer than 2^52"
        )]
        let bytes = (book.intended as f64 * mean_bytes).round() as u64;
        let intended = Rates {
            frames: book.intended,
            bytes,
            seconds: seconds(due_ns),
        };
        (intended, achieved, book.lateness)
    }
}
