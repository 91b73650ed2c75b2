//! A port that receives the frames of a capture file from memory, repeatedly and as fast as it is
//! polled; sent frames are counted and dropped. For measurements of the switch alone: no device and
//! no second process is involved.
//!
//! Not a recorder or a peer: sent frames are never received. Without a file the port receives
//! nothing.

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
use capture::PcapFile;

/// A port that receives the frames of a file.
pub struct Replay {
    status: Status,
    state: Arc<ReplayState>,
    queues: Vec<Box<dyn Queue>>,
}

/// Administrative state of the port.
struct ReplayState {
    up: AtomicBool,
    /// Readable while the port is up: frames are then always available.
    readable: OwnedFd,
}

impl ReplayState {
    /// Creates the state of a port that is up.
    fn new() -> io::Result<Self> {
        let readable = eventfd(1, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self {
            up: AtomicBool::new(true),
            readable,
        })
    }

    fn is_up(&self) -> bool {
        self.up.load(Ordering::Relaxed)
    }

    fn set_up(&self, up: bool) -> io::Result<()> {
        if self.up.swap(up, Ordering::Relaxed) == up {
            return Ok(());
        }
        // A read resets an eventfd to zero; a write makes it readable again.
        match up {
            true => rustix::io::write(&self.readable, &1_u64.to_ne_bytes())?,
            false => rustix::io::read(&self.readable, &mut [0; 8])?,
        };
        Ok(())
    }
}

/// The queue of one worker, with its share of the frames.
#[repr(align(128))]
struct ReplayQueue {
    capture: Arc<PcapFile>,
    /// Indices of the frames of this queue.
    frames: Vec<usize>,
    /// Index of the next one in `frames`.
    next: usize,
    state: Arc<ReplayState>,
    counters: Arc<QueueCounters>,
}

impl Replay {
    /// Opens a port called `name` with the frames of `file`, if given. Equal frames belong to the
    /// same queue.
    ///
    /// # Errors
    /// The file cannot be read or is not a capture of Ethernet in libpcap's format, or there are
    /// too many queues.
    pub fn open(
        name: &InterfaceName,
        file: Option<&Path>,
        queues: NonZeroUsize,
    ) -> Result<Self, OpenError> {
        if queues > QUEUES_MAX {
            return Err(OpenError::TooManyQueues {
                name: name.to_string(),
                requested: queues,
            });
        }
        let capture = match file {
            Some(file) => PcapFile::read(file).map_err(|problem| OpenError::NoCapture {
                name: name.to_string(),
                file: file.display().to_string(),
                problem,
            })?,
            None => PcapFile::default(),
        };
        let state =
            ReplayState::new().map_err(failed(name, "create an eventfd", "CAP_NET_ADMIN"))?;
        let state = Arc::new(state);
        let queues = assign_frames(&capture, queues.get());
        let capture = Arc::new(capture);
        let queue = |frames| ReplayQueue {
            capture: Arc::clone(&capture),
            frames,
            next: 0,
            state: Arc::clone(&state),
            counters: Arc::default(),
        };
        Ok(Self {
            queues: queues.map(|frames| Box::new(queue(frames)) as _).collect(),
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

/// Default MTU of an Ethernet device.
const MTU: u32 = 1500;

/// Returns a locally administered address derived from the name.
fn address(name: &InterfaceName) -> MacAddr {
    MacAddr::from_u64(0x0200_0000_0000 | hash(&name.to_string()) & 0x00ff_ffff_ffff)
}

/// Assigns each frame to one of `queues`.
fn assign_frames(capture: &PcapFile, queues: usize) -> impl Iterator<Item = Vec<usize>> + use<> {
    let mut assign_frames = vec![Vec::new(); queues];
    for index in 0..capture.len() {
        let share = hash(capture.frame(index)) % queues as u64;
        assign_frames[usize::try_from(share).expect("at most QUEUES_MAX queues")].push(index);
    }
    assign_frames.into_iter()
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

    fn tx_queue(&self) -> io::Result<Box<dyn Queue>> {
        Ok(Box::new(ReplayQueue {
            capture: Arc::default(),
            frames: Vec::new(),
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
        if self.frames.is_empty() || !self.state.is_up() {
            return Ok(());
        }
        let before = batch.len();
        while batch.remaining_capacity() > 0 {
            let Some(mut frame) = pool.take() else {
                self.counters.add(Counter::RxNoBuffer, 1);
                break;
            };
            let bytes = self.capture.frame(self.frames[self.next]);
            frame
                .copy_from(bytes)
                .expect("frames of a capture fit a buffer");
            batch.push(frame).expect("the batch has space");
            self.next += 1;
            if self.next == self.frames.len() {
                self.next = 0;
            }
        }
        self.counters.count_received(&batch[before..]);
        Ok(())
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> io::Result<()> {
        match self.state.is_up() {
            true => self.counters.count_sent(batch),
            false => self.counters.add(Counter::TxDown, batch.len() as u64),
        }
        batch.release(batch.len(), pool);
        Ok(())
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        // A queue without frames need not be woken.
        (!self.frames.is_empty()).then(|| self.state.readable.as_fd())
    }

    fn counters(&self) -> Arc<QueueCounters> {
        Arc::clone(&self.counters)
    }
}

#[cfg(test)]
mod tests;
