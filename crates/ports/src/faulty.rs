//! A queue with seeded impairments: the same seed repeats the same faults.

use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use base::SplitMix64;
use packet::{Frame, Pool};

use crate::{Batch, Queue, QueueCounters};

/// Probabilities of faults. Each is drawn for every frame, in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueFaults {
    /// Seed of the random generator.
    pub seed: u64,
    /// Lost frames per thousand.
    pub lost_permille: u16,
    /// Frames with one inverted bit per thousand.
    pub corrupted_permille: u16,
    /// Duplicated frames per thousand.
    pub duplicated_permille: u16,
    /// Frames per thousand that are delivered after their successor.
    pub reordered_permille: u16,
}

/// A queue that impairs received frames. Sent frames are not impaired: wrap the other end for that.
pub struct FaultyQueue<Q> {
    queue: Q,
    faults: QueueFaults,
    random: SplitMix64,
    /// Frames received from the wrapped queue, before impairment.
    arrived: Batch,
    /// Impaired frames, ready to be received.
    deliverable: VecDeque<Frame>,
    /// A frame that its successor overtakes.
    delayed: Option<Frame>,
}

impl<Q: Queue> FaultyQueue<Q> {
    /// Wraps `queue` with these faults.
    ///
    /// ```
    /// use packet::{Frame, Pool};
    /// use ports::{Batch, FaultyQueue, Queue, QueueFaults, memory};
    ///
    /// let [mut left, right] = memory::pair(["left", "right"], 64).map(|mut port| port.take_queue().unwrap());
    /// let mut right = FaultyQueue::new(right, QueueFaults { seed: 1, lost_permille: 1000, ..QueueFaults::default() });
    /// let (mut pool, mut batch) = (Pool::new(64), Batch::new());
    /// batch.push(Frame::from_bytes(&[0; 60])).unwrap();
    /// left.send(&mut batch, &mut pool).unwrap();
    /// right.receive(&mut pool, &mut batch).unwrap();
    /// assert!(batch.is_empty());
    /// ```
    #[must_use]
    pub fn new(queue: Q, faults: QueueFaults) -> Self {
        Self {
            queue,
            random: SplitMix64::new(faults.seed),
            faults,
            arrived: Batch::new(),
            deliverable: VecDeque::new(),
            delayed: None,
        }
    }

    /// Impairs one frame.
    fn impair(&mut self, mut frame: Frame, pool: &mut Pool) {
        if occurs(&mut self.random, self.faults.lost_permille) {
            return pool.put(frame);
        }
        if occurs(&mut self.random, self.faults.corrupted_permille) && !frame.is_empty() {
            let bit = self.random.below(8 * frame.len());
            frame.bytes_mut()[bit / 8] ^= 1 << (bit % 8);
        }
        if occurs(&mut self.random, self.faults.duplicated_permille) {
            self.deliverable.extend(pool.duplicate(&frame));
        }
        if self.delayed.is_none() && occurs(&mut self.random, self.faults.reordered_permille) {
            self.delayed = Some(frame);
        } else {
            self.deliverable.push_back(frame);
            self.deliverable.extend(self.delayed.take());
        }
    }
}

impl<Q: Queue> Queue for FaultyQueue<Q> {
    fn receive(&mut self, pool: &mut Pool, batch: &mut Batch) -> io::Result<()> {
        let mut outcome = Ok(());
        if self.deliverable.len() < batch.remaining_capacity() {
            let mut arrived = std::mem::take(&mut self.arrived);
            outcome = self.queue.receive(pool, &mut arrived);
            if arrived.is_empty() {
                // No successor has arrived to overtake it.
                self.deliverable.extend(self.delayed.take());
            }
            arrived.drain().for_each(|frame| self.impair(frame, pool));
            self.arrived = arrived;
        }
        let count = batch.remaining_capacity().min(self.deliverable.len());
        for frame in self.deliverable.drain(..count) {
            batch.push(frame).expect("the batch has space");
        }
        outcome
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> io::Result<()> {
        self.queue.send(batch, pool)
    }

    fn maintain(&mut self) -> io::Result<()> {
        self.queue.maintain()
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        self.queue.readiness()
    }

    fn is_expensive_to_poll(&self) -> bool {
        self.queue.is_expensive_to_poll()
    }

    fn counters(&self) -> Arc<QueueCounters> {
        self.queue.counters()
    }
}

/// Draws whether a fault of this probability occurs.
fn occurs(random: &mut SplitMix64, permille: u16) -> bool {
    permille > 0 && random.below(1000) < usize::from(permille)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory;

    /// Sends 1,000 numbered frames through these faults and returns the received numbers.
    fn received_numbers(faults: QueueFaults) -> Vec<u16> {
        let [mut a, b] = memory::pair(["a", "b"], 64).map(|mut port| port.take_queue().unwrap());
        let mut b = FaultyQueue::new(b, faults);
        let (mut tx_pool, mut rx_pool) = (Pool::new(64), Pool::new(256));
        let (mut batch, mut numbers) = (Batch::new(), Vec::new());
        for number in 0..1000u16 {
            let mut frame = tx_pool.take().unwrap();
            frame.copy_from(&number.to_be_bytes().repeat(30)).unwrap();
            batch.push(frame).unwrap();
            if number % 8 == 7 {
                a.send(&mut batch, &mut tx_pool).unwrap();
                b.receive(&mut rx_pool, &mut batch).unwrap();
                numbers.extend(batch.iter().map(number_of));
                batch.release(batch.len(), &mut rx_pool);
            }
        }
        b.receive(&mut rx_pool, &mut batch).unwrap();
        numbers.extend(batch.iter().map(number_of));
        batch.release(batch.len(), &mut rx_pool);
        assert_eq!((tx_pool.outstanding(), rx_pool.outstanding()), (0, 0));
        numbers
    }

    /// The number that most of the frame's words contain.
    fn number_of(frame: &Frame) -> u16 {
        let bytes = frame.bytes();
        let words: Vec<_> = bytes.chunks(2).map(|word| [word[0], word[1]]).collect();
        let repeated = words
            .iter()
            .find(|word| words.iter().filter(|w| w == word).count() > 1);
        u16::from_be_bytes(*repeated.unwrap())
    }

    const NO_FAULTS: QueueFaults = QueueFaults {
        seed: 1,
        lost_permille: 0,
        corrupted_permille: 0,
        duplicated_permille: 0,
        reordered_permille: 0,
    };

    #[test]
    fn queue_without_faults_changes_nothing() {
        assert_eq!(received_numbers(NO_FAULTS), (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn fault_kinds_act_independently() {
        let mut numbers = received_numbers(QueueFaults {
            lost_permille: 100,
            ..NO_FAULTS
        });
        assert!((850..950).contains(&numbers.len()) && numbers.is_sorted());
        numbers = received_numbers(QueueFaults {
            duplicated_permille: 100,
            ..NO_FAULTS
        });
        assert!((1050..1150).contains(&numbers.len()) && numbers.is_sorted());
        numbers.dedup();
        assert_eq!(numbers.len(), 1000);
        numbers = received_numbers(QueueFaults {
            corrupted_permille: 1000,
            ..NO_FAULTS
        });
        assert_eq!(numbers, (0..1000).collect::<Vec<_>>());
        numbers = received_numbers(QueueFaults {
            reordered_permille: 100,
            ..NO_FAULTS
        });
        assert!(!numbers.is_sorted());
        numbers.sort_unstable();
        assert_eq!(numbers, (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn seed_determines_faults() {
        let faults = |seed| QueueFaults {
            seed,
            lost_permille: 200,
            reordered_permille: 200,
            ..NO_FAULTS
        };
        assert_eq!(received_numbers(faults(7)), received_numbers(faults(7)));
        assert_ne!(received_numbers(faults(7)), received_numbers(faults(8)));
    }
}
