//! The control thread's handle of a worker: its command ring, its progress, and its wake-up. The
//! worker's end is in `worker`.
//!
//! No threads here; the owner of the thread implements sleep and wake-up.

use std::sync::Arc;

use base::sync::{scheduling_point, thread};
use flow::PipelineFields;
use packet::Frame;
use rtrb::{Producer, PushError};

use super::messages::WorkerCommand;
use super::program::{Generation, WorkerProgress};
use super::slots::PortKey;

/// The wake-up of a worker.
pub trait WakeWorker {
    /// Ends the sleep of the worker, or prevents it if it is about to begin.
    fn wake(&self);
}

/// The handle of a worker.
pub struct WorkerHandle<W> {
    commands: Producer<WorkerCommand>,
    progress: Arc<WorkerProgress>,
    wake: W,
}

impl<W: WakeWorker> WorkerHandle<W> {
    /// Returns the handle of the worker at the other end.
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

    /// Sends a command; returns it if the ring is full.
    pub fn send(&mut self, command: WorkerCommand) -> Result<(), WorkerCommand> {
        scheduling_point();
        let result = self.commands.push(command);
        self.wake_if_asleep();
        result.map_err(|PushError::Full(command)| command)
    }

    /// Sends a frame to be transmitted. Returns false if the ring is full, or if the frames in it
    /// have too many bytes.
    pub fn transmit(
        &mut self,
        port: PortKey,
        frame: Frame,
        fields: Option<Box<PipelineFields>>,
    ) -> bool {
        let bytes = frame.len();
        if !self.progress.reserve_transmit(bytes) {
            return false;
        }
        let sent = self.send(WorkerCommand::Transmit(port, frame, fields));
        if sent.is_err() {
            self.progress.release_transmit(bytes);
        }
        sent.is_ok()
    }

    /// Sends a command that must not be lost, and waits for room if necessary: the worker makes
    /// some in its next turn.
    pub fn send_reliably(&mut self, mut command: WorkerCommand) {
        while let Err(returned) = self.send(command) {
            command = returned;
            thread::yield_now();
        }
    }

    /// Wakes the worker if it sleeps.
    pub(crate) fn wake_if_asleep(&self) {
        if self.progress.is_asleep() {
            self.wake.wake();
        }
    }

    /// Returns the generation that the worker has passed; `newest` if it is between two batches
    /// with nothing left to do, because the first thing it does next is to load the newest program.
    pub(crate) fn reached(&self, newest: Generation) -> Generation {
        match self.is_at_rest() {
            true => newest,
            false => self.progress.passed(),
        }
    }

    /// Returns the oldest program that the worker may still hold.
    pub fn held(&self) -> Generation {
        self.progress.passed()
    }

    /// Returns whether the worker is between two batches, off its core, with nothing left to do.
    pub fn is_at_rest(&self) -> bool {
        scheduling_point();
        // The order matters: a command that left the ring before the rest began is executed.
        let nothing_left = self.commands.slots() == self.commands.buffer().capacity();
        nothing_left && self.progress.is_resting()
    }
}
