//! One worker: receives batches from its queues, runs them through the compiled tables, and sends.
//! It runs to completion, takes no lock, and shares only the published program, its counters and
//! three rings.
//!
//! No threads and no clock here: the owner of the thread, or a test, calls `turn` with the time.

use std::sync::Arc;

use base::Instant;
use base::sync::scheduling_point;
use fastpath::Runner;
use ports::{Batch, Queue};
use rtrb::{Consumer, Producer};

use super::counters::{WorkerCounters, WorkerDrop};
use super::messages::{QueueExchange, ReturnedQueue, WorkerCommand, WorkerEvent};
use super::program::{BridgeId, CrossingMode, Generation, Program, Publication, WorkerProgress};
use forwarder::BatchForwarder;

mod capture;
mod crossing;
mod events;
mod flow_meter;
mod flow_recorder;
mod forwarder;
mod idle;
mod in_band;
mod mirror;
mod normal;
mod outputs;
mod policing;
mod punt;
mod recirculation;
mod sampling;
mod stp_filter;
mod transmit;
mod tunnel;

/// The number of turns without a poll after an empty poll of a queue that needs a system call,
/// while other queues have frames or are cheaper to poll. A turn of full batches takes some
/// microseconds, an empty turn some hundredths of one, and a system call some tenths, for which
/// frames of other queues would wait.
const SKIP_TURNS: u8 = 7;

/// The bytes of frames of the control thread that a turn sends before it serves the ports: some two
/// milliseconds of copies into the kernel. A packet-out may have a hundred times as many.
const TURN_TRANSMIT_MAX: usize = 256 << 10;

/// The worker's ends of the shared state.
pub struct WorkerLinks {
    /// The publication of programs.
    pub publication: Arc<Publication>,
    /// The progress of this worker.
    pub progress: Arc<WorkerProgress>,
    /// The counters.
    pub counters: Arc<WorkerCounters>,
    /// Commands of the control thread.
    pub commands: Consumer<WorkerCommand>,
    /// Events for the control thread.
    pub events: Producer<WorkerEvent>,
    /// Protocol frames and removed queues for the control thread, in a ring of their own: a flood
    /// of other events does not delay them.
    pub protocols: Producer<WorkerEvent>,
}

/// The result of a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// Frames received.
    pub frames: usize,
    /// True if the control thread has news to read: events, or a passed generation.
    pub news: bool,
    /// True if the set of queues changed.
    pub ports_changed: bool,
    /// True if the worker must end.
    pub stopped: bool,
}

/// A worker.
pub struct Worker {
    program: Arc<Program>,
    passed: Generation,
    runner: Box<Runner>,
    batch: Batch,
    forwarder: BatchForwarder,
}

impl Worker {
    /// Returns a worker without ports; `writer` is its index among the writers of shared counters.
    pub fn new(writer: usize, shared: WorkerLinks) -> Self {
        Self {
            program: shared.publication.load_full(),
            passed: Generation::default(),
            runner: Box::new(Runner::new(writer)),
            batch: Batch::new(),
            forwarder: BatchForwarder::new(writer, shared),
        }
    }

    /// Returns the queues, so that the caller can wait for input.
    pub fn queues(&self) -> impl Iterator<Item = &dyn Queue> {
        self.forwarder
            .slots
            .iter()
            .map(|(_, slot)| slot.queue.as_ref())
    }

    /// Processes news, then serves every queue once.
    pub fn turn(&mut self, now: Instant) -> Turn {
        let before = std::mem::take(&mut self.forwarder.reporter.turn);
        self.forwarder.now = now;
        self.forwarder.reporter.send_unsent();
        self.process_news(now);
        if self.forwarder.sampling.flow_meters.is_due(now) {
            self.forwarder.report_flows(now);
        }
        let spares = before.frames > 0 || self.forwarder.slots.have_cheap();
        for place in (0..self.forwarder.slots.len()).rev() {
            let (_, slot) = self.forwarder.slots.at(place);
            match slot.skip_turns.checked_sub(1) {
                Some(left) if spares => slot.skip_turns = left,
                _ => self.serve(place, now),
            }
        }
        if self.forwarder.reporter.turn.frames == 0 {
            self.flush_stats();
        }
        self.forwarder.reporter.turn
    }

    /// Runs the periodic maintenance of every queue.
    pub fn maintain_queues(&mut self) {
        for place in (0..self.forwarder.slots.len()).rev() {
            let (key, slot) = self.forwarder.slots.at(place);
            if let Err(error) = slot.queue.maintain() {
                self.forwarder.retire(key, error);
            }
        }
    }

    /// Switches to the newest program, and executes commands. Commands before a publication are
    /// executed before that publication counts as passed, which may be in a later turn.
    fn process_news(&mut self, now: Instant) {
        let newest = self.forwarder.reporter.links.publication.load();
        let newer = newest.generation != self.passed;
        if newer {
            self.forwarder.slots.set_terminating(newest.terminating());
            self.forwarder.retain_sampling(&newest, now);
            self.forwarder.record_flows(newest.crossing);
            self.program = Arc::clone(&newest);
        }
        let generation = newest.generation;
        drop(newest);
        scheduling_point();
        let is_drained = self.execute_commands(now);
        if newer && is_drained {
            self.flush_stats();
            self.passed = generation;
            self.forwarder.reporter.links.progress.pass(self.passed);
            self.forwarder.reporter.turn.news = true;
        }
    }

    /// Executes the commands in the ring, as far as a turn sends frames for the control thread.
    /// Returns true if the ring is empty.
    fn execute_commands(&mut self, now: Instant) -> bool {
        let mut bytes = 0;
        while let Ok(command) = self.forwarder.reporter.links.commands.pop() {
            scheduling_point();
            if let WorkerCommand::Transmit(_, frame, _) = &command {
                bytes += frame.len();
            }
            self.execute(command, now);
            if bytes >= TURN_TRANSMIT_MAX {
                return self.forwarder.reporter.links.commands.is_empty();
            }
        }
        true
    }

    fn execute(&mut self, command: WorkerCommand, now: Instant) {
        match command {
            WorkerCommand::AddPort(key, queue, policing) => {
                self.forwarder.slots.insert(key, queue, policing);
                self.forwarder.reporter.turn.ports_changed = true;
            }
            WorkerCommand::RemovePort(key, back) => {
                // The bridge may be removed next.
                self.forwarder.report_flows(now);
                if let Some(queue) = self.forwarder.discard(key) {
                    // A closed channel is no error.
                    drop(back.send(queue));
                }
            }
            WorkerCommand::Exchange(exchange) => self.exchange(*exchange),
            WorkerCommand::Transmit(key, frame, fields) => {
                let progress = &self.forwarder.reporter.links.progress;
                progress.release_transmit(frame.len());
                self.forwarder.transmit(key, frame, fields);
                self.forwarder
                    .recirculate(&self.program, &mut self.runner, now);
                self.forwarder.flush();
            }
            WorkerCommand::ReportFlows(back) => self.forwarder.send_flows(&back),
            WorkerCommand::Run(function) => function(),
            WorkerCommand::Stop => self.forwarder.reporter.turn.stopped = true,
        }
    }

    /// Replaces the queue of a port. No frame is pending on the old queue, because it is flushed at
    /// the end of each batch. If the worker no longer has the port, nothing is returned.
    fn exchange(&mut self, exchange: QueueExchange) {
        let QueueExchange {
            key,
            queue,
            back,
            purpose,
        } = exchange;
        if let Some(queue) = self.forwarder.slots.exchange(key, queue) {
            // A closed channel means that the control thread has closed the port.
            drop(back.send(ReturnedQueue { queue, purpose }));
            self.forwarder.reporter.turn.ports_changed = true;
            self.forwarder.reporter.turn.news = true;
        }
    }

    fn serve(&mut self, place: usize, now: Instant) {
        let (forwarder, runner) = (&mut self.forwarder, &mut *self.runner);
        let batch = &mut self.batch;
        let (from, slot) = forwarder.slots.at(place);
        let received = slot.queue.receive(&mut forwarder.pool, batch);
        if batch.is_empty() {
            slot.skip_turns = if slot.queue.is_expensive_to_poll() {
                SKIP_TURNS
            } else {
                0
            };
        } else {
            forwarder.reporter.turn.frames += batch.len();
            forwarder.reporter.links.counters.add_batch(batch.len());
            if slot.policing.policer.limits_ingress() {
                forwarder.limit(place, batch, now);
            }
            let program = &*self.program;
            if program.crossing != CrossingMode::Off {
                forwarder.note_crossing(program, from, batch, now);
            }
            match program.bridge(from.bridge) {
                Some(bridge) => forwarder.forward(bridge, runner, from, batch, now),
                None if from.bridge == BridgeId::HOST => {
                    forwarder.receive_from_host(program, from, batch);
                }
                None => batch
                    .drain()
                    .for_each(|frame| forwarder.drop_frame(frame, WorkerDrop::NoBridge)),
            }
            forwarder.recirculate(program, runner, now);
            forwarder.flush();
        }
        if let Err(error) = received {
            forwarder.retire(from, error);
        }
    }
}

#[cfg(test)]
mod tests;
