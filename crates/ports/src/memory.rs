//! Two ports joined in memory: what one sends, the other receives. For tests and
//! benchmarks; the two ends may live on different threads.
//!
//! Not a device: no kernel knows of it, and nothing wakes who sleeps on it.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use packet::{Frame, MacAddr, Pool};

use crate::counters::{Counter, QueueCounters};
use crate::{Batch, Port, Queue, Status, error};

/// A port whose other end is a port, too. It has one queue.
pub struct MemoryPort {
    status: Status,
    queue: Option<MemoryQueue>,
}

/// The one queue of a [`MemoryPort`].
#[repr(align(128))]
pub struct MemoryQueue {
    name: String,
    out: Arc<Wire>,
    back: Arc<Wire>,
    counters: Arc<QueueCounters>,
}

/// One direction of the link.
struct Wire {
    /// How many frames may be under way.
    limit: usize,
    state: Mutex<WireState>,
}

#[derive(Default)]
struct WireState {
    under_way: VecDeque<Frame>,
    /// Buffers of pool size that frames have come in.
    spare: Vec<Frame>,
}

/// Two ports of these names; `limit` frames may be under way in each direction.
#[must_use]
pub fn pair(names: [&str; 2], limit: usize) -> [MemoryPort; 2] {
    let wire = || {
        Arc::new(Wire {
            limit,
            state: Mutex::default(),
        })
    };
    let (there, back) = (wire(), wire());
    let [first, second] = names;
    [
        port(first, 1, Arc::clone(&there), Arc::clone(&back)),
        port(second, 2, back, there),
    ]
}

fn port(name: &str, number: u64, out: Arc<Wire>, back: Arc<Wire>) -> MemoryPort {
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
            out,
            back,
            counters: Arc::default(),
        }),
    }
}

impl MemoryPort {
    /// The queue itself, for who wants no `dyn`; none the second time.
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

impl Wire {
    fn lock(&self) -> MutexGuard<'_, WireState> {
        let state = self.state.lock();
        state.expect("no holder of this lock can panic")
    }
}

impl Queue for MemoryQueue {
    fn receive(&mut self, pool: &mut Pool, batch: &mut Batch) -> io::Result<()> {
        let before = batch.len();
        let mut wire = self.back.lock();
        while batch.room() > 0 && !wire.under_way.is_empty() {
            let Some(empty) = pool.take() else {
                self.counters.add(Counter::RxStarved, 1);
                break;
            };
            // A buffer for a buffer: the bytes stay where they are.
            wire.spare.push(empty);
            let frame = wire.under_way.pop_front().expect("one is under way");
            batch.push(frame).expect("room was asked for");
        }
        self.counters.received(&batch[before..]);
        // The wire is ours alone once the other end is dropped.
        let over = wire.under_way.is_empty() && Arc::strong_count(&self.back) == 1;
        if over && batch.len() == before {
            return Err(error::gone(&self.name));
        }
        Ok(())
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> io::Result<()> {
        if Arc::strong_count(&self.out) == 1 {
            return Err(error::gone(&self.name));
        }
        let mut wire = self.out.lock();
        let mut done = 0;
        while done < batch.len() && wire.under_way.len() < self.out.limit {
            let mut copy = wire.spare.pop().unwrap_or_else(Frame::with_full_capacity);
            let frame = &batch[done];
            if copy.copy_from(frame.bytes()).is_ok() {
                copy.offload = frame.offload;
                wire.under_way.push_back(copy);
                self.counters.sent(&batch[done..=done]);
            } else {
                wire.spare.push(copy);
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
    fn frames_cross_in_order_with_what_they_owe() {
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
    fn what_finds_no_room_stays_and_goes_later() {
        let [mut a, mut b] = queues(2);
        let (mut pool, mut arrived) = (Pool::new(8), Batch::new());
        let frames = [1, 2, 3].map(|i| Frame::from_bytes(&[i; 60]));
        let mut leaving = batch(&frames);
        a.send(&mut leaving, &mut pool).unwrap();
        assert_eq!(leaving[..], frames[2..]);
        b.receive(&mut pool, &mut arrived).unwrap();
        a.send(&mut leaving, &mut pool).unwrap();
        b.receive(&mut pool, &mut arrived).unwrap();
        assert_eq!(arrived[..], frames);
    }

    #[test]
    fn both_pools_stay_whole() {
        let [mut a, mut b] = queues(4);
        let (mut here, mut there) = (Pool::new(4), Pool::new(4));
        let mut batch = Batch::new();
        for _ in 0..100 {
            for _ in 0..4 {
                let mut frame = here.take().unwrap();
                frame.copy_from(&[0; 60]).unwrap();
                batch.push(frame).unwrap();
            }
            a.send(&mut batch, &mut here).unwrap();
            b.receive(&mut there, &mut batch).unwrap();
            assert_eq!((here.outstanding(), there.outstanding()), (0, 4));
            batch.release(4, &mut there);
        }
        assert_eq!(there.outstanding(), 0);
    }

    #[test]
    fn an_empty_pool_leaves_frames_where_they_are() {
        let [mut a, mut b] = queues(4);
        let (mut pool, mut arrived) = (Pool::new(1), Batch::new());
        let frames = [1, 2].map(|i| Frame::from_bytes(&[i; 60]));
        a.send(&mut batch(&frames), &mut Pool::new(4)).unwrap();
        b.receive(&mut pool, &mut arrived).unwrap();
        assert_eq!(
            (arrived.len(), b.counters().read()[Counter::RxStarved]),
            (1, 1)
        );
        arrived.release(1, &mut pool);
        b.receive(&mut pool, &mut arrived).unwrap();
        assert_eq!(arrived[..], frames[1..]);
    }

    #[test]
    fn the_end_is_an_error_once_all_has_arrived() {
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
