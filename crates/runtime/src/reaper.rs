//! A thread that frees large structures, such as the rules of a deleted table. To free a million
//! rules takes a good part of a second, during which frames or peers would wait.
//!
//! Small structures are freed in place, which costs less than to hand them over.

use std::any::Any;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use super::parallel;
use crate::watchdog::Heartbeat;

/// A structure to be freed.
pub(crate) type Garbage = Box<dyn Any + Send>;

/// The number of rules from which a structure is large. To free as many takes a millisecond.
pub(crate) const LARGE: usize = 4096;

/// The thread and its queue.
pub(crate) struct Reaper {
    queue: Sender<Garbage>,
    thread: JoinHandle<()>,
}

impl Reaper {
    /// Starts the thread, which declares its progress by `heartbeat`.
    pub(crate) fn start(heartbeat: Arc<Heartbeat>) -> io::Result<Self> {
        let (queue, first) = channel();
        let reap = move || reap(&first, &heartbeat);
        let thread = thread::Builder::new().name("reaper".into()).spawn(reap)?;
        Ok(Self { queue, thread })
    }

    /// Frees `first` on the reaper's thread.
    pub(crate) fn free(&self, first: Garbage) {
        // If the thread has ended, the value is freed here.
        drop(self.queue.send(first));
    }

    /// Frees the rest of the queue and ends the thread. Without this, the kernel would close the
    /// packet sockets of the ending process one after the other.
    pub(crate) fn finish(self) {
        drop(self.queue);
        if self.thread.join().is_err() {
            tracing::error!("the reaper thread panicked");
        }
    }
}

/// Frees the queued values, those that arrived together on several threads, because most of them
/// are sockets that the kernel closes slowly. When the queue is empty, the heap is returned to the
/// system.
fn reap(queue: &Receiver<Garbage>, heartbeat: &Heartbeat) {
    while let Ok(first) = queue.recv() {
        heartbeat.beat();
        let garbage = std::iter::once(first).chain(queue.try_iter());
        parallel::map(garbage.collect(), drop);
        sys::heap::trim();
        heartbeat.rest();
    }
}
