//! Two ports connected in memory: each receives what the other sends. For tests and benchmarks; the
//! ends may be on different threads.
//!
//! No device: the kernel does not know the ports, and nothing wakes a reader.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use packet::{Frame, MacAddr, Pool};

use crate::counters::{Counter, QueueCounters};
use crate::{Batch, Port, Queue, Status, error};

/// One of two connected ports, with one queue.
pub struct MemoryPort {
    status: Status,
    queue: Option<MemoryQueue>,
}

/// The queue of a [`MemoryPort`].
#[repr(align(128))]
pub struct MemoryQueue {
    name: String,
    tx: Arc<MemoryLink>,
    rx: Arc<MemoryLink>,
    counters: Arc<QueueCounters>,
}

/// One direction of the connection.
struct MemoryLink {
    /// Maximum number of frames in flight.
    limit: usize,
    state: Mutex<MemoryLinkState>,
}

#[derive(Default)]
struct MemoryLinkState {
    in_flight: VecDeque<Frame>,
    /// Buffers of pool size for frames in flight.
    spare_buffers: Vec<Frame>,
}

/// Creates two connected ports with these names; each direction holds `limit` frames.
///
/// ```
/// use packet::{Frame, Pool};
/// use ports::{Batch, Queue, memory};
///
/// let [mut left, mut right] = memory::pair(["left", "right"], 8).map(|mut port| port.take_queue().unwrap());
/// let (mut pool, mut batch) = (Pool::new(8), Batch::new());
/// batch.push(Frame::from_bytes(&[7; 60])).unwrap();
/// left.send(&mut batch, &mut pool).unwrap();
/// right.receive(&mut pool, &mut batch).unwrap();
/// assert_eq!(batch[0].bytes(), [7; 60]);
/// ```
#[must_use]
pub fn pair(names: [&str; 2], limit: usize) -> [MemoryPort; 2] {
    let link = || {
        Arc::new(MemoryLink {
            limit,
            state: Mutex::default(),
        })
    };
    let (first_to_second, rx) = (link(), link());
    let [first, second] = names;
    [
        port(first, 1, Arc::clone(&first_to_second), Arc::clone(&rx)),
        port(second, 2, rx, first_to_second),
    ]
}

fn port(name: &str, number: u64, tx: Arc<MemoryLink>, rx: Arc<MemoryLink>) -> MemoryPort {
    MemoryPort {
        status: Status {
            name: name.to_owned(),
            address: MacAddr::from_u64(0x0200_0000_0000 | number),
            mtu: 1500,
            up: true,
            carrier: true,
            ..Status::default()
        },
        queue: Some(MemoryQueue {
            name: name.to_owned(),
            tx,
            rx,
            counters: Arc::default(),
        }),
    }
}

impl MemoryPort {
    /// Takes the queue as a concrete type, without `dyn`; `None` on the second call.
    pub fn take_queue(&mut self) -> Option<MemoryQueue> {
        self.queue.take()
    }
}

impl Port for MemoryPort {
    fn status(&self) -> Status {
        self.status.clone()
    }

    fn take_queues(&mut self) -> Vec<Box<dyn Queue>> {
        let queue = self.take_queue();
        queue
            .into_iter()
            .map(|queue| Box::new(queue) as _)
            .collect()
    }

    fn set_up(&mut self, up: bool) -> io::Result<()> {
        self.status.up = up;
        self.status.carrier = up;
        Ok(())
    }
}

impl MemoryLink {
    fn lock(&self) -> MutexGuard<'_, MemoryLinkState> {
        let state = self.state.lock();
        state.expect("no code panics with this lock")
    }
}

impl Queue for MemoryQueue {
    fn receive(&mut self, pool: &mut Pool, batch: &mut Batch) -> io::Result<()> {
        let before = batch.len();
        let mut link = self.rx.lock();
        while batch.remaining_capacity() > 0 && !link.in_flight.is_empty() {
            let Some(empty) = pool.take() else {
                self.counters.add(Counter::RxNoBuffer, 1);
                break;
            };
            // One buffer is exchanged for another: the bytes are not copied.
            link.spare_buffers.push(empty);
            let frame = link.in_flight.pop_front().expect("the queue is not empty");
            batch.push(frame).expect("the batch has space");
        }
        self.counters.count_received(&batch[before..]);
        // The wire is ours alone once the other end is dropped.
        let is_closed = link.in_flight.is_empty() && Arc::strong_count(&self.rx) == 1;
        if is_closed && batch.len() == before {
            return Err(error::removed(&self.name));
        }
        Ok(())
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> io::Result<()> {
        if Arc::strong_count(&self.tx) == 1 {
            return Err(error::removed(&self.name));
        }
        let mut link = self.tx.lock();
        let mut done = 0;
        while done < batch.len() && link.in_flight.len() < self.tx.limit {
            let mut buffer = link
                .spare_buffers
                .pop()
                .unwrap_or_else(Frame::with_full_capacity);
            let frame = &batch[done];
            if buffer.copy_from(frame.bytes()).is_ok() {
                buffer.offload = frame.offload;
                link.in_flight.push_back(buffer);
                self.counters.count_sent(&batch[done..=done]);
            } else {
                link.spare_buffers.push(buffer);
                self.counters.add(Counter::TxTooLong, 1);
            }
            done += 1;
        }
        batch.release(done, pool);
        Ok(())
    }

    fn counters(&self) -> Arc<QueueCounters> {
        Arc::clone(&self.counters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packet::Checksum;

    fn queues(limit: usize) -> [MemoryQueue; 2] {
        pair(["a", "b"], limit).map(|mut port| port.take_queue().unwrap())
    }

    fn batch(frames: &[Frame]) -> Batch {
        let mut batch = Batch::new();
        for frame in frames {
            batch.push(frame.clone()).unwrap();
        }
        batch
    }

    #[test]
    fn frames_arrive_in_order_with_offload_metadata() {
        let [mut a, mut b] = queues(8);
        let (mut pool, mut arrived) = (Pool::new(8), Batch::new());
        let mut frames = [1, 2, 3].map(|i| Frame::from_bytes(&[i; 60]));
        frames[1].offload.checksum = Checksum::Partial {
            start: 34,
            offset: 6,
        };
        a.send(&mut batch(&frames), &mut pool).unwrap();
        b.receive(&mut pool, &mut arrived).unwrap();
        assert_eq!(arrived[..], frames);
        assert_eq!(a.counters().read()[Counter::TxBytes], 180);
        assert_eq!(b.counters().read()[Counter::RxPackets], 3);
    }

    #[test]
    fn frames_beyond_limit_stay_in_batch() {
        let [mut a, mut b] = queues(2);
        let (mut pool, mut arrived) = (Pool::new(8), Batch::new());
        let frames = [1, 2, 3].map(|i| Frame::from_bytes(&[i; 60]));
        let mut pending = batch(&frames);
        a.send(&mut pending, &mut pool).unwrap();
        assert_eq!(pending[..], frames[2..]);
        b.receive(&mut pool, &mut arrived).unwrap();
        a.send(&mut pending, &mut pool).unwrap();
        b.receive(&mut pool, &mut arrived).unwrap();
        assert_eq!(arrived[..], frames);
    }

    #[test]
    fn buffers_return_to_both_pools() {
        let [mut a, mut b] = queues(4);
        let (mut tx_pool, mut first_to_second) = (Pool::new(4), Pool::new(4));
        let mut batch = Batch::new();
        for _ in 0..100 {
            for _ in 0..4 {
                let mut frame = tx_pool.take().unwrap();
                frame.copy_from(&[0; 60]).unwrap();
                batch.push(frame).unwrap();
            }
            a.send(&mut batch, &mut tx_pool).unwrap();
            b.receive(&mut first_to_second, &mut batch).unwrap();
            assert_eq!(
                (tx_pool.outstanding(), first_to_second.outstanding()),
                (0, 4)
            );
            batch.release(4, &mut first_to_second);
        }
        assert_eq!(first_to_second.outstanding(), 0);
    }

    #[test]
    fn empty_pool_leaves_frames_in_link() {
        let [mut a, mut b] = queues(4);
        let (mut pool, mut arrived) = (Pool::new(1), Batch::new());
        let frames = [1, 2].map(|i| Frame::from_bytes(&[i; 60]));
        a.send(&mut batch(&frames), &mut Pool::new(4)).unwrap();
        b.receive(&mut pool, &mut arrived).unwrap();
        assert_eq!(
            (arrived.len(), b.counters().read()[Counter::RxNoBuffer]),
            (1, 1)
        );
        arrived.release(1, &mut pool);
        b.receive(&mut pool, &mut arrived).unwrap();
        assert_eq!(arrived[..], frames[1..]);
    }

    #[test]
    fn closed_link_is_an_error_after_last_frame() {
        let [mut a, mut b] = queues(4);
        let (mut pool, mut arrived) = (Pool::new(4), Batch::new());
        a.send(&mut batch(&[Frame::from_bytes(&[1; 60])]), &mut pool)
            .unwrap();
        drop(a);
        b.receive(&mut pool, &mut arrived).unwrap();
        assert_eq!(arrived.len(), 1);
        b.receive(&mut pool, &mut arrived).unwrap_err();
        b.send(&mut arrived, &mut pool).unwrap_err();
    }
}
