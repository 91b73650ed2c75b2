//! A queue of a TAP device: one system call per frame in each direction.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use packet::{Frame, Pool};
use rustix::io::{Errno, read, write};
use sys::interface::InterfaceName;
use sys::tun::TapQueue;

use crate::counters::{Counter, QueueCounters};
use crate::{Batch, Queue, error, vnet};

/// A queue of a TAP device.
#[repr(align(128))]
pub(super) struct TapPortQueue {
    name: InterfaceName,
    device: Arc<TapQueue>,
    counters: Arc<QueueCounters>,
}

/// Outcome of one system call.
enum IoOutcome {
    /// The frame was transferred.
    Completed,
    /// The frame was dropped, for this reason.
    Dropped(Counter),
    /// This frame and all after it were dropped, for this reason.
    AllDropped(Counter),
    /// No frame to read, or no space to write.
    WouldBlock,
    /// The device was removed.
    Removed,
}

impl TapPortQueue {
    pub(super) fn new(name: InterfaceName, device: Arc<TapQueue>) -> Self {
        Self {
            name,
            device,
            counters: Arc::default(),
        }
    }

    fn read(&self, frame: &mut Frame) -> IoOutcome {
        let room = frame.receive_buffer_with_prefix::<{ vnet::LEN }>();
        let capacity = room.len();
        let len = match read(&*self.device, room) {
            // The kernel truncates a longer frame without reporting it.
            Ok(len) if len == capacity => return IoOutcome::Dropped(Counter::RxTooLong),
            Ok(len) => len.saturating_sub(vnet::LEN),
            Err(Errno::BADFD) => return IoOutcome::Removed,
            Err(_) => return IoOutcome::WouldBlock,
        };
        if frame.set_len(len).is_err() {
            return IoOutcome::Dropped(Counter::RxTooLong);
        }
        match vnet::decode(frame.prefix(), len) {
            Ok(offload) => frame.offload = offload,
            Err(_) => return IoOutcome::Dropped(Counter::RxBadOffload),
        }
        IoOutcome::Completed
    }

    fn write(&self, frame: &mut Frame) -> IoOutcome {
        let header = vnet::encode(&frame.offload, frame.len());
        match write(&*self.device, frame.prefixed(header)) {
            Ok(_) => IoOutcome::Completed,
            Err(Errno::AGAIN | Errno::INTR) => IoOutcome::WouldBlock,
            Err(Errno::BADFD) => IoOutcome::Removed,
            Err(Errno::IO) => IoOutcome::AllDropped(Counter::TxDown),
            Err(Errno::NOBUFS | Errno::NOMEM) => IoOutcome::Dropped(Counter::TxFull),
            Err(_) => IoOutcome::Dropped(Counter::TxErrors),
        }
    }

    fn removed(&self) -> io::Error {
        error::removed(&self.name)
    }
}

impl Queue for TapPortQueue {
    fn receive(&mut self, pool: &mut Pool, batch: &mut Batch) -> io::Result<()> {
        let before = batch.len();
        let mut outcome = Ok(());
        // Dropped frames count as received ones, so that a flood of invalid frames ends, too.
        for _ in 0..batch.remaining_capacity() {
            let Some(mut frame) = pool.take() else {
                self.counters.add(Counter::RxNoBuffer, 1);
                break;
            };
            let done = self.read(&mut frame);
            if matches!(done, IoOutcome::Completed) {
                batch.push(frame).expect("the batch has space");
                continue;
            }
            pool.put(frame);
            match done {
                IoOutcome::Completed => {}
                IoOutcome::Dropped(reason) | IoOutcome::AllDropped(reason) => {
                    self.counters.add(reason, 1)
                }
                IoOutcome::WouldBlock => break,
                IoOutcome::Removed => {
                    outcome = Err(self.removed());
                    break;
                }
            }
        }
        self.counters.count_received(&batch[before..]);
        outcome
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> io::Result<()> {
        let mut done = 0;
        let mut outcome = Ok(());
        while done < batch.len() {
            match self.write(&mut batch[done]) {
                IoOutcome::Completed => {
                    self.counters.count_sent(&batch[done..=done]);
                    done += 1;
                }
                IoOutcome::Dropped(reason) => {
                    self.counters.add(reason, 1);
                    done += 1;
                }
                IoOutcome::AllDropped(reason) => {
                    self.counters.add(reason, (batch.len() - done) as u64);
                    done = batch.len();
                }
                IoOutcome::WouldBlock => break,
                IoOutcome::Removed => {
                    outcome = Err(self.removed());
                    break;
                }
            }
        }
        batch.release(done, pool);
        outcome
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        Some((*self.device).as_fd())
    }

    fn is_expensive_to_poll(&self) -> bool {
        true
    }

    fn counters(&self) -> Arc<QueueCounters> {
        Arc::clone(&self.counters)
    }
}

/// A queue that sends through a descriptor which another queue reads: the kernel accepts frames
/// from concurrent writers.
pub(super) struct TapTxQueue(TapPortQueue);

impl TapTxQueue {
    pub(super) fn new(name: InterfaceName, device: Arc<TapQueue>) -> Self {
        Self(TapPortQueue::new(name, device))
    }
}

impl Queue for TapTxQueue {
    fn receive(&mut self, _: &mut Pool, _: &mut Batch) -> io::Result<()> {
        Ok(())
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> io::Result<()> {
        self.0.send(batch, pool)
    }

    fn counters(&self) -> Arc<QueueCounters> {
        self.0.counters()
    }
}
