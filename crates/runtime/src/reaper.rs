//! A thread that frees what is large: the rules of a table that is gone. To free a
//! million takes a good part of a second, and whoever did it in passing would keep
//! frames or peers waiting.
//!
//! Not for what is small: it is freed on the spot, which costs less than to hand
//! it over.

use std::any::Any;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use super::hands;

/// Something that is to be freed.
pub(crate) type Remains = Box<dyn Any + Send>;

/// How many rules are so large a thing. To free so many takes a millisecond.
pub(crate) const LARGE: usize = 4096;

/// The thread, and the way to it.
pub(crate) struct Reaper {
    queue: Sender<Remains>,
    thread: JoinHandle<()>,
}

impl Reaper {
    /// Starts the thread.
    pub(crate) fn start() -> io::Result<Self> {
        let (queue, remains) = channel();
        let reap = move || reap(&remains);
        let thread = thread::Builder::new().name("reaper".into()).spawn(reap)?;
        Ok(Self { queue, thread })
    }

    /// Frees something, soon.
    pub(crate) fn free(&self, remains: Remains) {
        // Were the thread gone, it would be freed here.
        drop(self.queue.send(remains));
    }

    /// Frees all that is left, and ends. The process would end as soon without, but for
    /// packet sockets: those the kernel would close one after the other.
    pub(crate) fn finish(self) {
        drop(self.queue);
        if self.thread.join().is_err() {
            tracing::error!("the thread that frees things had died before its end");
        }
    }
}

/// Frees what comes, what came together by several hands, since most of it is sockets that
/// the kernel takes its time to close. When there is nothing more, what was freed goes back to
/// the system.
fn reap(queue: &Receiver<Remains>) {
    while let Ok(remains) = queue.recv() {
        let together = std::iter::once(remains).chain(queue.try_iter());
        hands::each(together.collect(), drop);
        sys::heap::trim();
    }
}
