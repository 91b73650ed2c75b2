//! Frames of a capture file out of memory, over and over and as fast as they are asked
//! for; what is sent to it is counted and forgotten. For measurements: it takes neither a
//! device nor another process, so what is left is the switch.
//!
//! Not a recorder, and no peer: nothing that is sent ever comes back. Without a file it
//! receives nothing.

mod capture;

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use packet::{MacAddr, Pool};
use rustix::event::{EventfdFlags, eventfd};
use sys::interface::InterfaceName;

use crate::counters::{Counter, QueueCounters};
use crate::error::failed;
use crate::{Batch, OpenError, Port, QUEUES_MAX, Queue, Status};
use capture::Capture;

/// A port whose frames come out of a file.
pub struct Replay {
    status: Status,
    state: Arc<State>,
    queues: Vec<Box<dyn Queue>>,
}

/// Whether the port is up.
struct State {
    up: AtomicBool,
    /// Readable while it is up: then there is always something to receive.
    ready: OwnedFd,
}

impl State {
    /// Of a port that is up.
    fn new() -> io::Result<Self> {
        let ready = eventfd(1, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self {
            up: AtomicBool::new(true),
            ready,
        })
    }

    fn is_up(&self) -> bool {
        self.up.load(Ordering::Relaxed)
    }

    fn set_up(&self, up: bool) -> io::Result<()> {
        if self.up.swap(up, Ordering::Relaxed) == up {
            return Ok(());
        }
        // An eventfd is read to zero at once, and is readable again by what is written.
        match up {
            true => rustix::io::write(&self.ready, &1_u64.to_ne_bytes())?,
            false => rustix::io::read(&self.ready, &mut [0; 8])?,
        };
        Ok(())
    }
}

/// One queue's share of the frames.
#[repr(align(128))]
struct ReplayQueue {
    capture: Arc<Capture>,
    /// Which frames are its own.
    own: Vec<usize>,
    /// The next of these.
    next: usize,
    state: Arc<State>,
    counters: Arc<QueueCounters>,
}

impl Replay {
    /// A port called `name`, with the frames of `file` if there is one. Frames that are
    /// equal go to the same queue.
    ///
    /// # Errors
    /// The file cannot be read, or is not what libpcap writes of Ethernet, or there are
    /// too many queues.
    pub fn open(
        name: &InterfaceName,
        file: Option<&Path>,
        queues: NonZeroUsize,
    ) -> Result<Self, OpenError> {
        if queues > QUEUES_MAX {
            return Err(OpenError::TooManyQueues {
                name: name.to_string(),
                asked: queues,
            });
        }
        let capture = match file {
            Some(file) => Capture::read(file).map_err(|problem| OpenError::NoCapture {
                name: name.to_string(),
                file: file.display().to_string(),
                problem,
            })?,
            None => Capture::default(),
        };
        let state = State::new().map_err(failed(name, "making an eventfd", "CAP_NET_ADMIN"))?;
        let state = Arc::new(state);
        let queues = shares(&capture, queues.get());
        let capture = Arc::new(capture);
        let queue = |own| ReplayQueue {
            capture: Arc::clone(&capture),
            own,
            next: 0,
            state: Arc::clone(&state),
            counters: Arc::default(),
        };
        Ok(Self {
            queues: queues.map(|own| Box::new(queue(own)) as _).collect(),
            status: Status {
                name: name.to_string(),
                address: address(name),
                mtu: MTU,
                up: true,
                carrier: true,
                ..Status::default()
            },
            state,
        })
    }
}

/// What an Ethernet device has unless it is told otherwise.
const MTU: u32 = 1500;

/// A locally administered address that the same name always has.
fn address(name: &InterfaceName) -> MacAddr {
    MacAddr::from_u64(0x0200_0000_0000 | hash(&name.to_string()) & 0x00ff_ffff_ffff)
}

/// Which frames are whose, of so many queues.
fn shares(capture: &Capture, queues: usize) -> impl Iterator<Item = Vec<usize>> + use<> {
    let mut shares = vec![Vec::new(); queues];
    for index in 0..capture.len() {
        let share = hash(capture.frame(index)) % queues as u64;
        shares[usize::try_from(share).expect("there are few queues")].push(index);
    }
    shares.into_iter()
}

fn hash(of: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

impl Port for Replay {
    fn status(&self) -> Status {
        let up = self.state.is_up();
        Status {
            up,
            carrier: up,
            ..self.status.clone()
        }
    }

    fn take_queues(&mut self) -> Vec<Box<dyn Queue>> {
        std::mem::take(&mut self.queues)
    }

    fn sender(&self) -> io::Result<Box<dyn Queue>> {
        Ok(Box::new(ReplayQueue {
            capture: Arc::default(),
            own: Vec::new(),
            next: 0,
            state: Arc::clone(&self.state),
            counters: Arc::default(),
        }))
    }

    fn set_up(&mut self, up: bool) -> io::Result<()> {
        self.state.set_up(up)
    }
}

impl Queue for ReplayQueue {
    fn receive(&mut self, pool: &mut Pool, batch: &mut Batch) -> io::Result<()> {
        if self.own.is_empty() || !self.state.is_up() {
            return Ok(());
        }
        let before = batch.len();
        while batch.room() > 0 {
            let Some(mut frame) = pool.take() else {
                self.counters.add(Counter::RxStarved, 1);
                break;
            };
            let bytes = self.capture.frame(self.own[self.next]);
            frame
                .copy_from(bytes)
                .expect("a capture has no longer frames than buffers take");
            batch.push(frame).expect("room was asked for");
            self.next += 1;
            if self.next == self.own.len() {
                self.next = 0;
            }
        }
        self.counters.received(&batch[before..]);
        Ok(())
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> io::Result<()> {
        match self.state.is_up() {
            true => self.counters.sent(batch),
            false => self.counters.add(Counter::TxDown, batch.len() as u64),
        }
        batch.release(batch.len(), pool);
        Ok(())
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        // Who receives nothing needs not be woken for it.
        (!self.own.is_empty()).then(|| self.state.ready.as_fd())
    }

    fn counters(&self) -> Arc<QueueCounters> {
        Arc::clone(&self.counters)
    }
}

#[cfg(test)]
mod tests;
