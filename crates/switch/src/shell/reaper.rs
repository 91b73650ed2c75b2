//! A thread that frees what is large: the rules of a table that is gone. To free a
//! million takes a good part of a second, and whoever did it in passing would keep
//! frames or peers waiting.
//!
//! Not for what is small: it is freed on the spot, which costs less than to hand
//! it over.

use std::any::Any;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// Something that is to be freed.
pub(crate) type Remains = Box<dyn Any + Send>;

/// How many rules are so large a thing. To free so many takes a millisecond.
pub(crate) const LARGE: usize = 4096;

/// The way to the thread. It ends when nobody has one any more.
pub(crate) struct Reaper {
    queue: Sender<Remains>,
}

impl Reaper {
    /// Starts the thread.
    pub(crate) fn start() -> io::Result<Self> {
        let (queue, remains) = channel();
        let reap = move || reap(&remains);
        thread::Builder::new().name("reaper".into()).spawn(reap)?;
        Ok(Self { queue })
    }

    /// Frees something, soon.
    pub(crate) fn free(&self, remains: Remains) {
        // Were the thread gone, it would be freed here.
        drop(self.queue.send(remains));
    }
}

/// Frees what comes; when there is nothing more, what was freed goes back to the system.
fn reap(queue: &Receiver<Remains>) {
    while let Ok(remains) = queue.recv() {
        drop(remains);
        queue.try_iter().for_each(drop);
        sys::heap::trim();
    }
}
