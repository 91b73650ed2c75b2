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
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use packet::{MacAddr, Pool};
use sys::interface::InterfaceName;

use crate::counters::{Counter, QueueCounters};
use crate::{Batch, OpenError, Port, QUEUES_MAX, Queue, Status};
use capture::Capture;

/// A port whose frames come out of a file.
pub struct Replay {
    status: Status,
    up: Arc<AtomicBool>,
    queues: Vec<Box<dyn Queue>>,
}

/// One queue's share of the frames.
struct ReplayQueue {
    capture: Arc<Capture>,
    /// Which frames are its own.
    own: Vec<usize>,
    /// The next of these.
    next: usize,
    up: Arc<AtomicBool>,
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
        let up = Arc::new(AtomicBool::new(true));
        let queues = shares(&capture, queues.get());
        let capture = Arc::new(capture);
        let queue = |own| ReplayQueue {
            capture: Arc::clone(&capture),
            own,
            next: 0,
            up: Arc::clone(&up),
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
            up,
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
        let up = self.up.load(Ordering::Relaxed);
        Status {
            up,
            carrier: up,
            ..self.status.clone()
        }
    }

    fn take_queues(&mut self) -> Vec<Box<dyn Queue>> {
        std::mem::take(&mut self.queues)
    }

    fn set_up(&mut self, up: bool) -> io::Result<()> {
        self.up.store(up, Ordering::Relaxed);
        Ok(())
    }
}

impl Queue for ReplayQueue {
    fn receive(&mut self, pool: &mut Pool, batch: &mut Batch) -> io::Result<()> {
        if self.own.is_empty() || !self.up.load(Ordering::Relaxed) {
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
        match self.up.load(Ordering::Relaxed) {
            true => self.counters.sent(batch),
            false => self.counters.add(Counter::TxDown, batch.len() as u64),
        }
        batch.release(batch.len(), pool);
        Ok(())
    }

    fn counters(&self) -> Arc<QueueCounters> {
        Arc::clone(&self.counters)
    }
}

#[cfg(test)]
mod tests;
