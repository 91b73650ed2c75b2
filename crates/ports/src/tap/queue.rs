//! One queue of a TAP device: a system call for each frame, either way.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use packet::{Frame, Pool};
use rustix::io::{Errno, read, write};
use sys::interface::InterfaceName;
use sys::tun::TapQueue;

use crate::counters::{Counter, QueueCounters};
use crate::{Batch, Queue, error, vnet};

/// One queue of a TAP device.
#[repr(align(128))]
pub(super) struct TapIo {
    name: InterfaceName,
    device: Arc<TapQueue>,
    counters: Arc<QueueCounters>,
}

/// What became of one system call.
enum Done {
    /// The frame is across.
    Moved,
    /// The frame is dropped, for this reason.
    Dropped(Counter),
    /// Neither this frame nor those behind it can go, for this reason.
    AllDropped(Counter),
    /// There is nothing to read, or no room to write.
    Later,
    /// The device is gone.
    Gone,
}

impl TapIo {
    pub(super) fn new(name: InterfaceName, device: Arc<TapQueue>) -> Self {
        Self {
            name,
            device,
            counters: Arc::default(),
        }
    }

    fn read(&self, frame: &mut Frame) -> Done {
        let room = frame.receive_buffer_with_prefix::<{ vnet::LEN }>();
        let whole = room.len();
        let len = match read(&*self.device, room) {
            // The kernel cuts a longer frame, and does not say so.
            Ok(len) if len == whole => return Done::Dropped(Counter::RxTooLong),
            Ok(len) => len.saturating_sub(vnet::LEN),
            Err(Errno::BADFD) => return Done::Gone,
            Err(_) => return Done::Later,
        };
        if frame.set_len(len).is_err() {
            return Done::Dropped(Counter::RxTooLong);
        }
        match vnet::decode(frame.prefix(), len) {
            Ok(offload) => frame.offload = offload,
            Err(_) => return Done::Dropped(Counter::RxBadOffload),
        }
        Done::Moved
    }

    fn write(&self, frame: &mut Frame) -> Done {
        let header = vnet::encode(&frame.offload, frame.len());
        match write(&*self.device, frame.prefixed(header)) {
            Ok(_) => Done::Moved,
            Err(Errno::AGAIN | Errno::INTR) => Done::Later,
            Err(Errno::BADFD) => Done::Gone,
            Err(Errno::IO) => Done::AllDropped(Counter::TxDown),
            Err(Errno::NOBUFS | Errno::NOMEM) => Done::Dropped(Counter::TxNoRoom),
            Err(_) => Done::Dropped(Counter::TxErrors),
        }
    }

    fn gone(&self) -> io::Error {
        error::gone(&self.name)
    }
}

impl Queue for TapIo {
    fn receive(&mut self, pool: &mut Pool, batch: &mut Batch) -> io::Result<()> {
        let before = batch.len();
        let mut outcome = Ok(());
        // As many frames as fit, those to be dropped among them: a flood of such ends too.
        for _ in 0..batch.room() {
            let Some(mut frame) = pool.take() else {
                self.counters.add(Counter::RxStarved, 1);
                break;
            };
            let done = self.read(&mut frame);
            if matches!(done, Done::Moved) {
                batch.push(frame).expect("room was asked for");
                continue;
            }
            pool.put(frame);
            match done {
                Done::Moved => {}
                Done::Dropped(reason) | Done::AllDropped(reason) => self.counters.add(reason, 1),
                Done::Later => break,
                Done::Gone => {
                    outcome = Err(self.gone());
                    break;
                }
            }
        }
        self.counters.received(&batch[before..]);
        outcome
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> io::Result<()> {
        let mut done = 0;
        let mut outcome = Ok(());
        while done < batch.len() {
            match self.write(&mut batch[done]) {
                Done::Moved => {
                    self.counters.sent(&batch[done..=done]);
                    done += 1;
                }
                Done::Dropped(reason) => {
                    self.counters.add(reason, 1);
                    done += 1;
                }
                Done::AllDropped(reason) => {
                    self.counters.add(reason, (batch.len() - done) as u64);
                    done = batch.len();
                }
                Done::Later => break,
                Done::Gone => {
                    outcome = Err(self.gone());
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

    fn is_dear(&self) -> bool {
        true
    }

    fn counters(&self) -> Arc<QueueCounters> {
        Arc::clone(&self.counters)
    }
}

/// Sends by a queue of the device that another reads: the kernel takes frames from several
/// writers at a time.
pub(super) struct TapSender(TapIo);

impl TapSender {
    pub(super) fn new(name: InterfaceName, device: Arc<TapQueue>) -> Self {
        Self(TapIo::new(name, device))
    }
}

impl Queue for TapSender {
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
