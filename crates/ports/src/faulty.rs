//! A queue behind a bad line: seeded, so that a failure can be repeated.

use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use packet::{Frame, Pool};

use crate::{Batch, Queue, QueueCounters};

/// How bad the line is. Each is rolled for every frame, in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Where the dice start: the same seed, the same faults.
    pub seed: u64,
    /// Of a thousand frames, how many are lost.
    pub lost_permille: u16,
    /// Of a thousand frames, in how many a bit is flipped.
    pub corrupted_permille: u16,
    /// Of a thousand frames, how many come twice.
    pub duplicated_permille: u16,
    /// Of a thousand frames, how many come after the frame behind them.
    pub overtaken_permille: u16,
}

/// A queue that receives by a bad line. It sends by a good one: wrap the other end.
pub struct Faulty<Q> {
    queue: Q,
    faults: Faults,
    dice: Dice,
    /// What has come, and not yet been through the line.
    came: Batch,
    /// What has been through the line, and not yet been asked for.
    through: VecDeque<Frame>,
    /// What the next frame overtakes.
    overtaken: Option<Frame>,
}

impl<Q: Queue> Faulty<Q> {
    /// Puts a line with these faults before `queue`.
    #[must_use]
    pub fn new(queue: Q, faults: Faults) -> Self {
        Self {
            queue,
            dice: Dice(faults.seed),
            faults,
            came: Batch::new(),
            through: VecDeque::new(),
            overtaken: None,
        }
    }

    /// Sends one frame through the line.
    fn pass(&mut self, mut frame: Frame, pool: &mut Pool) {
        if self.dice.falls(self.faults.lost_permille) {
            return pool.put(frame);
        }
        if self.dice.falls(self.faults.corrupted_permille) && !frame.is_empty() {
            let bit = self.dice.below(8 * frame.len());
            frame.bytes_mut()[bit / 8] ^= 1 << (bit % 8);
        }
        if self.dice.falls(self.faults.duplicated_permille) {
            self.through.extend(pool.duplicate(&frame));
        }
        if self.overtaken.is_none() && self.dice.falls(self.faults.overtaken_permille) {
            self.overtaken = Some(frame);
        } else {
            self.through.push_back(frame);
            self.through.extend(self.overtaken.take());
        }
    }
}

impl<Q: Queue> Queue for Faulty<Q> {
    fn receive(&mut self, pool: &mut Pool, batch: &mut Batch) -> io::Result<()> {
        let mut outcome = Ok(());
        if self.through.len() < batch.room() {
            let mut came = std::mem::take(&mut self.came);
            outcome = self.queue.receive(pool, &mut came);
            if came.is_empty() {
                // Nothing comes to overtake it.
                self.through.extend(self.overtaken.take());
            }
            came.drain().for_each(|frame| self.pass(frame, pool));
            self.came = came;
        }
        let count = batch.room().min(self.through.len());
        for frame in self.through.drain(..count) {
            batch.push(frame).expect("room was asked for");
        }
        outcome
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> io::Result<()> {
        self.queue.send(batch, pool)
    }

    fn tend(&mut self) -> io::Result<()> {
        self.queue.tend()
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        self.queue.readiness()
    }

    fn is_dear(&self) -> bool {
        self.queue.is_dear()
    }

    fn counters(&self) -> Arc<QueueCounters> {
        self.queue.counters()
    }
}

/// SplitMix64 (Steele, Lea and Flood, 2014): small, and good enough for faults.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        let rest = self.next() % limit as u64;
        usize::try_from(rest).expect("less than a usize")
    }

    fn falls(&mut self, permille: u16) -> bool {
        permille > 0 && self.below(1000) < usize::from(permille)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory;

    /// What comes of 1,000 numbered frames over a line with these faults.
    fn line(faults: Faults) -> Vec<u16> {
        let [mut a, b] = memory::pair(["a", "b"], 64).map(|mut port| port.take_queue().unwrap());
        let mut b = Faulty::new(b, faults);
        let (mut here, mut there) = (Pool::new(64), Pool::new(256));
        let (mut batch, mut numbers) = (Batch::new(), Vec::new());
        for number in 0..1000u16 {
            let mut frame = here.take().unwrap();
            frame.copy_from(&number.to_be_bytes().repeat(30)).unwrap();
            batch.push(frame).unwrap();
            if number % 8 == 7 {
                a.send(&mut batch, &mut here).unwrap();
                b.receive(&mut there, &mut batch).unwrap();
                numbers.extend(batch.iter().map(number_of));
                batch.release(batch.len(), &mut there);
            }
        }
        b.receive(&mut there, &mut batch).unwrap();
        numbers.extend(batch.iter().map(number_of));
        batch.release(batch.len(), &mut there);
        assert_eq!((here.outstanding(), there.outstanding()), (0, 0));
        numbers
    }

    /// The number that most of the frame's bytes say.
    fn number_of(frame: &Frame) -> u16 {
        let bytes = frame.bytes();
        let words: Vec<_> = bytes.chunks(2).map(|word| [word[0], word[1]]).collect();
        let good = words
            .iter()
            .find(|word| words.iter().filter(|w| w == word).count() > 1);
        u16::from_be_bytes(*good.unwrap())
    }

    const GOOD: Faults = Faults {
        seed: 1,
        lost_permille: 0,
        corrupted_permille: 0,
        duplicated_permille: 0,
        overtaken_permille: 0,
    };

    #[test]
    fn a_good_line_changes_nothing() {
        assert_eq!(line(GOOD), (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn each_fault_does_only_what_it_says() {
        let mut numbers = line(Faults {
            lost_permille: 100,
            ..GOOD
        });
        assert!((850..950).contains(&numbers.len()) && numbers.is_sorted());
        numbers = line(Faults {
            duplicated_permille: 100,
            ..GOOD
        });
        assert!((1050..1150).contains(&numbers.len()) && numbers.is_sorted());
        numbers.dedup();
        assert_eq!(numbers.len(), 1000);
        numbers = line(Faults {
            corrupted_permille: 1000,
            ..GOOD
        });
        assert_eq!(numbers, (0..1000).collect::<Vec<_>>());
        numbers = line(Faults {
            overtaken_permille: 100,
            ..GOOD
        });
        assert!(!numbers.is_sorted());
        numbers.sort_unstable();
        assert_eq!(numbers, (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn the_seed_decides() {
        let faults = |seed| Faults {
            seed,
            lost_permille: 200,
            overtaken_permille: 200,
            ..GOOD
        };
        assert_eq!(line(faults(7)), line(faults(7)));
        assert_ne!(line(faults(7)), line(faults(8)));
    }
}
