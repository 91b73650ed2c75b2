//! The control thread's end of what it shares with a worker: what it tells it, how far the
//! worker is, and how it is woken. The worker's end is in `worker`.
//!
//! No threads here; how a worker sleeps is told by whoever owns its thread.

use std::sync::Arc;

use base::sync::{scheduling_point, thread};
use rtrb::{Producer, PushError};

use super::messages::WorkerCommand;
use super::program::{Generation, WorkerProgress};

/// Wakes one that sleeps.
pub trait WakeWorker {
    /// It sleeps no more; if it is only about to, it does not begin.
    fn wake(&self);
}

/// See the top of this file.
pub struct WorkerHandle<W> {
    commands: Producer<WorkerCommand>,
    progress: Arc<WorkerProgress>,
    wake: W,
}

impl<W: WakeWorker> WorkerHandle<W> {
    /// The other end of a worker's.
    pub const fn new(
        commands: Producer<WorkerCommand>,
        progress: Arc<WorkerProgress>,
        wake: W,
    ) -> Self {
        Self {
            commands,
            progress,
            wake,
        }
    }

    /// Tells the worker something; it comes back if there is no room.
    pub fn tell(&mut self, command: WorkerCommand) -> Result<(), WorkerCommand> {
        scheduling_point();
        let told = self.commands.push(command);
        self.wake_if_asleep();
        told.map_err(|PushError::Full(command)| command)
    }

    /// Tells the worker something that must not be lost, and waits for room if need
    /// be: the worker makes some at its next turn.
    pub fn tell_surely(&mut self, mut command: WorkerCommand) {
        while let Err(back) = self.tell(command) {
            command = back;
            thread::yield_now();
        }
    }

    /// Wakes the worker if it sleeps: there is news.
    pub(crate) fn wake_if_asleep(&self) {
        if self.progress.is_asleep() {
            self.wake.wake();
        }
    }

    /// How far the worker is, when `newest` was published: of that, no frame can miss anything
    /// while it is between two batches with nothing left to do, since the first thing that
    /// it does when it goes on is to look for the newest program.
    pub(crate) fn reached(&self, newest: Generation) -> Generation {
        match self.rests() {
            true => newest,
            false => self.progress.passed(),
        }
    }

    /// The oldest program that the worker may still have.
    pub fn held(&self) -> Generation {
        self.progress.passed()
    }

    /// Whether the worker is between two batches, off its core, and has nothing left to do.
    fn rests(&self) -> bool {
        scheduling_point();
        // In this order: what it took out of the ring before it began to rest is done.
        let nothing_left = self.commands.slots() == self.commands.buffer().capacity();
        nothing_left && self.progress.is_resting()
    }
}
