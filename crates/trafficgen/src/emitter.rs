//! The sender of one stream: takes due frames from the schedule, signs them and hands them to the
//! test port.

use std::io;

use hdrhistogram::Histogram;

use super::delays::nanoseconds;
use super::measure::Length;
use super::outcome::Rates;
use super::source::PrebuiltFrames;
use super::stream_state::StreamState;
use super::template::{BadTemplate, FrameStamp};
use super::{Pace, Schedule, Stream, Time, Transmit};

/// The most frames that one call hands over.
const BURST: usize = 64;
/// A stream that is late at its end may continue for 1/50 of its duration.
const GRACE: u64 = 50;
/// The idle time after which a stream with a fixed number of frames ends because the test port
/// accepts none.
const STALL_NS: u64 = 1_000_000_000;

/// The state of a stream during transmission.
pub(super) struct Emitter<'a> {
    number: u8,
    shared: &'a StreamState,
    frames: PrebuiltFrames,
    schedule: Schedule,
    flat_out: bool,
    limit: StreamEnd,
    /// Frame buffers, each slot as long as the longest frame.
    slots: Vec<u8>,
    stride: usize,
    /// The index of the pattern in each slot.
    patterns_held: [usize; BURST],
    lengths: [usize; BURST],
    /// The frames that are due but not yet sent.
    dues: [Due; BURST],
    pending: usize,
    /// The number of the next signed frame, and the position of the next frame in the round.
    next: u64,
    place: usize,
    /// The number of frames scheduled before the end of the warm-up.
    first: Option<u64>,
    /// Frames taken from the schedule.
    scheduled: u64,
    exhausted: bool,
    stats: TransmitStats,
}

/// The end of a stream, in nanoseconds or frames from its start.
#[derive(Clone, Copy, Debug)]
struct StreamEnd {
    warm_up_ns: u64,
    length: Length,
}

/// A frame that is due.
#[derive(Clone, Copy, Debug, Default)]
struct Due {
    at_ns: u64,
    part: usize,
    /// `None` for a frame without space for a signature.
    number: Option<u64>,
    /// True after the warm-up.
    counts: bool,
}

/// Transmit statistics after the warm-up.
#[derive(Debug)]
struct TransmitStats {
    frames: u64,
    unsigned: u64,
    bytes: u64,
    lateness: Histogram<u64>,
    /// The due time of the first counted frame, and the due time of the frame after the last.
    first_due_ns: u64,
    end_due_ns: u64,
    intended: u64,
    /// The send time of the last frame.
    last_sent_ns: u64,
}

impl<'a> Emitter<'a> {
    pub(super) fn new(
        number: u8,
        stream: &Stream,
        length: Length,
        warm_up_ns: u64,
        shared: &'a StreamState,
    ) -> Result<Self, BadTemplate> {
        let frames = stream.source.prepare()?;
        let longest = frames.patterns.iter().map(|one| one.bytes().len()).max();
        let stride = longest.unwrap_or(0).next_multiple_of(64);
        Ok(Self {
            number,
            shared,
            schedule: stream.source.schedule(stream.pace, &frames),
            flat_out: stream.pace == Pace::FlatOut,
            limit: StreamEnd { warm_up_ns, length },
            slots: vec![0; stride * BURST],
            stride,
            patterns_held: [usize::MAX; BURST],
            lengths: [0; BURST],
            dues: [Due::default(); BURST],
            pending: 0,
            next: 0,
            place: 0,
            first: None,
            scheduled: 0,
            exhausted: false,
            stats: TransmitStats {
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

    /// Returns true if all frames have been sent or abandoned.
    pub(super) const fn is_done(&self) -> bool {
        self.exhausted && self.pending == 0
    }

    /// Sends the due frames in one call. All times are relative to `start_ns`.
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
        self.record_sent(taken, elapsed);
        Ok(())
    }

    /// Ends the stream now, as if the request had this duration.
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
        // Frames that were due before and are still pending are sent.
        self.is_over(due);
    }

    /// The frames sent after the warm-up, and their bytes.
    pub(super) const fn so_far(&self) -> (u64, u64) {
        (self.stats.frames, self.stats.bytes)
    }

    /// Takes the due frames from the schedule.
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

    /// Returns true if a frame due at `due` lies after the end of the stream.
    #[inline]
    fn is_over(&mut self, due: u64) -> bool {
        let StreamEnd { warm_up_ns, length } = self.limit;
        if self.first.is_none() && due >= warm_up_ns {
            self.first = Some(self.scheduled);
            self.shared.begin(self.next);
            self.stats.first_due_ns = due;
        }
        let over = match length {
            Length::Nanoseconds(length) => due >= warm_up_ns + length,
            Length::Frames(frames) => self
                .first
                .is_some_and(|first| self.scheduled - first >= frames),
        };
        if over {
            self.exhausted = true;
            self.stats.end_due_ns = due;
            self.stats.intended = self.scheduled - self.first.unwrap_or(self.scheduled);
        }
        over
    }

    /// Ends a stream that cannot keep its schedule.
    fn give_up(&mut self, elapsed: u64) {
        let behind = match self.limit.length {
            Length::Nanoseconds(length) => {
                let end = self.limit.warm_up_ns + length;
                elapsed >= end + length / GRACE
            }
            Length::Frames(_) => {
                elapsed.saturating_sub(self.stats.last_sent_ns) > STALL_NS
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
        // These numbers were never sent, so they are returned.
        let first = self.dues[..self.pending].iter().find_map(|due| due.number);
        self.next = first.unwrap_or(self.next);
        self.pending = 0;
    }

    /// Writes the due frames, and publishes their numbers to the receiver.
    #[inline]
    fn stamp(&mut self, now: u64, elapsed: u64) {
        for (slot, due) in self.dues[..self.pending].iter().enumerate() {
            let pattern = &self.frames.patterns[due.part];
            let length = pattern.bytes().len();
            let frame = &mut self.slots[slot * self.stride..][..length];
            if self.patterns_held[slot] != due.part {
                frame.copy_from_slice(pattern.bytes());
                self.patterns_held[slot] = due.part;
                self.lengths[slot] = length;
            }
            let Some(number) = due.number else {
                continue;
            };
            let stamp = FrameStamp {
                stream: self.number,
                number,
                time_ns: now,
            };
            pattern.write(frame, stamp);
            self.shared.note(number, elapsed.saturating_sub(due.at_ns));
        }
        self.shared.publish(self.next);
    }

    /// Records the first `taken` of the due frames as sent.
    #[inline]
    fn record_sent(&mut self, taken: usize, elapsed: u64) {
        if taken == 0 {
            return;
        }
        // Frames with the same due time have the same lateness and are recorded together.
        let mut same_due = 0;
        for (slot, due) in self.dues[..taken].iter().enumerate() {
            if !due.counts {
                continue;
            }
            self.stats.frames += 1;
            self.stats.unsigned += u64::from(due.number.is_none());
            self.stats.bytes += u64::from(self.frames.sizes[due.part]);
            same_due += 1;
            if slot + 1 == taken || self.dues[slot + 1].at_ns != due.at_ns {
                let lateness = elapsed.saturating_sub(due.at_ns);
                self.stats.lateness.saturating_record_n(lateness, same_due);
                same_due = 0;
            }
        }
        self.dues.copy_within(taken..self.pending, 0);
        self.pending -= taken;
        self.stats.last_sent_ns = elapsed;
    }

    /// The number after the last sent one, once all frames are sent or abandoned.
    pub(super) const fn sent(&self) -> u64 {
        self.next
    }

    /// The signed frames sent after the warm-up.
    pub(super) const fn counted(&self) -> u64 {
        self.stats.frames - self.stats.unsigned
    }

    /// The unsigned frames sent after the warm-up.
    pub(super) const fn unsigned(&self) -> u64 {
        self.stats.unsigned
    }

    /// Returns the intended rate, the achieved rate and the lateness of frames.
    pub(super) fn finish(self, mean_bytes: f64) -> (Rates, Rates, Histogram<u64>) {
        let stats = self.stats;
        let seconds = |ns: u64| ns as f64 / 1e9;
        let due_ns = match self.limit.length {
            Length::Nanoseconds(length) => length,
            Length::Frames(_) => stats.end_due_ns.saturating_sub(stats.first_due_ns),
        };
        let began = match self.limit.length {
            Length::Nanoseconds(_) => self.limit.warm_up_ns,
            Length::Frames(_) => stats.first_due_ns,
        };
        let took_ns = stats
            .last_sent_ns
            .saturating_sub(began)
            .max(match self.flat_out {
                true => 0,
                false => due_ns,
            });
        let achieved = Rates {
            frames: stats.frames,
            bytes: stats.bytes,
            seconds: seconds(took_ns),
        };
        if self.flat_out {
            return (achieved, achieved, stats.lateness);
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "bytes of frames are positive and fewer than 2^52"
        )]
        let bytes = (stats.intended as f64 * mean_bytes).round() as u64;
        let intended = Rates {
            frames: stats.intended,
            bytes,
            seconds: seconds(due_ns),
        };
        (intended, achieved, stats.lateness)
    }
}
