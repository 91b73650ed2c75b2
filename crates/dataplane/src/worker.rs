//! One worker: receives batches from its queues, runs them through the compiled tables, and sends.
//! It runs to completion, takes no lock, and shares only the published program, its counters and
//! two rings.
//!
//! No threads and no clock here: the owner of the thread, or a test, calls `turn` with the time.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use base::Instant;
use base::sync::scheduling_point;
use fastpath::{FrameOutcome, Runner};
use packet::{Checksum, Frame, Pool};
use pipeline::{Destination, Verdict};
use ports::{Batch, Queue};
use rtrb::{Consumer, Producer};

use super::counters::{WorkerCounters, WorkerDrop};
use super::messages::{QueueExchange, ReturnedQueue, WorkerCommand, WorkerEvent};
use super::program::{BridgeId, BridgeProgram, Generation, Program, Publication, WorkerProgress};
use super::sampling::{FrameSampler, seed};
use super::slots::{PortKey, PortSlots};
use super::vlans::TagRewrite;
use capture::FrameRecording;
use flow_meter::FlowMeters;
use mirror::MirrorState;
use outputs::PortOutput;
use recirculation::Recirculation;
use sampling::OutputObserver;

mod capture;
mod events;
mod flow_meter;
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

/// Buffers of a worker: one batch in flight, the pending frames of each port, and copies, with room
/// to spare.
const BUFFERS_MAX: usize = 4096;

/// The number of turns without a poll after an empty poll of a queue that needs a system call,
/// while other queues have frames or are cheaper to poll. A turn of full batches takes some
/// microseconds, an empty turn some hundredths of one, and a system call some tenths, for which
/// frames of other queues would wait.
const SKIP_TURNS: u8 = 7;

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
    shared: WorkerLinks,
    /// The index of the worker among the writers of shared counters.
    writer: usize,
    /// None while the worker runs a batch: a reference count for each batch would have all workers
    /// write to one cache line, twice a batch.
    program: Option<Arc<Program>>,
    passed: Generation,
    /// None while the worker runs a batch.
    runner: Option<Box<Runner>>,
    pool: Pool,
    slots: PortSlots,
    batch: Batch,
    exits: Vec<PortOutput>,
    /// The record of the current frame, if it is captured.
    recording: Option<FrameRecording>,
    recirculation: Recirculation,
    mirrored: MirrorState,
    /// Segments of a frame for a tunnel or a mirror.
    segments: Vec<Frame>,
    /// The next sequence numbers of tunnels with sequence numbers.
    numbers: BTreeMap<PortKey, u32>,
    /// The samplers of bridges with sampling.
    samplers: BTreeMap<BridgeId, FrameSampler>,
    /// The outputs of a sampled frame.
    observer: OutputObserver,
    /// The NetFlow counts.
    flow_meters: FlowMeters,
    turn: Turn,
    /// The start of the turn.
    now: Instant,
}

impl Worker {
    /// Returns a worker without ports; `writer` is its index among the writers of shared counters.
    pub fn new(writer: usize, shared: WorkerLinks) -> Self {
        Self {
            program: Some(shared.publication.load_full()),
            shared,
            writer,
            passed: Generation::default(),
            runner: Some(Box::new(Runner::new(writer))),
            pool: Pool::new(BUFFERS_MAX),
            slots: PortSlots::default(),
            batch: Batch::new(),
            exits: Vec::new(),
            recording: None,
            recirculation: Recirculation::default(),
            mirrored: MirrorState::default(),
            segments: Vec::new(),
            numbers: BTreeMap::new(),
            samplers: BTreeMap::new(),
            observer: OutputObserver::new(seed(writer as u64, 0, Instant::START)),
            flow_meters: FlowMeters::default(),
            turn: Turn::default(),
            now: Instant::START,
        }
    }

    /// Returns the queues, so that the caller can wait for input.
    pub fn queues(&self) -> impl Iterator<Item = &dyn Queue> {
        self.slots.iter().map(|(_, slot)| slot.queue.as_ref())
    }

    /// Processes news, then serves every queue once.
    pub fn turn(&mut self, now: Instant) -> Turn {
        let before = std::mem::take(&mut self.turn);
        self.now = now;
        self.process_news(now);
        if self.flow_meters.is_due(now) {
            self.report_flows(now);
        }
        let spares = before.frames > 0 || self.slots.have_cheap();
        for place in (0..self.slots.len()).rev() {
            let (_, slot) = self.slots.at(place);
            match slot.skip_turns.checked_sub(1) {
                Some(left) if spares => slot.skip_turns = left,
                _ => self.serve(place, now),
            }
        }
        if self.turn.frames == 0 {
            self.flush_stats();
        }
        self.turn
    }

    /// Runs the periodic maintenance of every queue.
    pub fn maintain_queues(&mut self) {
        for place in (0..self.slots.len()).rev() {
            let (key, slot) = self.slots.at(place);
            if let Err(error) = slot.queue.maintain() {
                self.retire(key, error);
            }
        }
    }

    /// Executes commands, then switches to the newest program. Commands before a publication are
    /// executed before that publication counts as passed.
    fn process_news(&mut self, now: Instant) {
        let newest = self.shared.publication.load();
        let newer = newest.generation != self.passed;
        if newer {
            self.slots.set_terminating(newest.terminating());
            self.samplers.retain(|id, _| {
                let bridge = newest.bridge(*id);
                bridge.is_some_and(|bridge| bridge.sampling.is_some())
            });
            self.program = Some(Arc::clone(&newest));
            self.retain_flows(&newest, now);
        }
        let generation = newest.generation;
        drop(newest);
        scheduling_point();
        while let Ok(command) = self.shared.commands.pop() {
            scheduling_point();
            self.execute(command, now);
        }
        if newer {
            self.flush_stats();
            self.passed = generation;
            self.shared.progress.pass(self.passed);
            self.turn.news = true;
        }
    }

    fn execute(&mut self, command: WorkerCommand, now: Instant) {
        match command {
            WorkerCommand::AddPort(key, queue, policing) => {
                self.slots.insert(key, queue, policing);
                self.turn.ports_changed = true;
            }
            WorkerCommand::RemovePort(key, back) => {
                // The bridge may be removed next.
                self.report_flows(now);
                if let Some(queue) = self.discard(key) {
                    // A closed channel is no error.
                    drop(back.send(queue));
                }
            }
            WorkerCommand::Exchange(exchange) => self.exchange(*exchange),
            WorkerCommand::Transmit(key, frame, fields) => {
                self.transmit(key, frame, fields);
                let program = self.program.take();
                let program = program.expect("returned at the end of each batch");
                self.recirculate(&program, now);
                self.program = Some(program);
                self.flush();
            }
            WorkerCommand::Stop => self.turn.stopped = true,
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
        if let Some(queue) = self.slots.exchange(key, queue) {
            // A closed channel means that the control thread has closed the port.
            drop(back.send(ReturnedQueue { queue, purpose }));
            self.turn.ports_changed = true;
            self.turn.news = true;
        }
    }

    fn serve(&mut self, place: usize, now: Instant) {
        let mut batch = std::mem::take(&mut self.batch);
        let (from, slot) = self.slots.at(place);
        let received = slot.queue.receive(&mut self.pool, &mut batch);
        if batch.is_empty() {
            slot.skip_turns = if slot.queue.is_expensive_to_poll() {
                SKIP_TURNS
            } else {
                0
            };
        } else {
            self.turn.frames += batch.len();
            self.shared.counters.add_batch(batch.len());
            if slot.policing.policer.limits_ingress() {
                self.limit(place, &mut batch, now);
            }
            let program = self.program.take();
            let program = program.expect("returned at the end of each batch");
            match program.bridge(from.bridge) {
                Some(bridge) => self.forward(bridge, from, &mut batch, now),
                None if from.bridge == BridgeId::HOST => {
                    self.receive_from_host(&program, from, &mut batch);
                }
                None => batch
                    .drain()
                    .for_each(|frame| self.drop_frame(frame, WorkerDrop::NoBridge)),
            }
            self.recirculate(&program, now);
            self.program = Some(program);
            self.flush();
        }
        self.batch = batch;
        if let Err(error) = received {
            self.retire(from, error);
        }
    }

    /// Runs a batch through a bridge: punt, port state filter, in-band rules, then the tables.
    fn forward(&mut self, bridge: &BridgeProgram, from: PortKey, batch: &mut Batch, now: Instant) {
        if let Some(punts) = &bridge.punts {
            self.punt(punts, from, batch);
        }
        let stp_filter = bridge.stp_filter.as_deref();
        if let Some(blocked) = stp_filter.and_then(|stp_filter| stp_filter.of(from.port)) {
            return self.filter_blocked(bridge, (from, blocked), batch, now);
        }
        if let Some(in_band) = &bridge.in_band {
            self.forward_in_band((bridge, in_band), from, batch, now);
        }
        match &bridge.sampling {
            None => self.forward_all::<false>(bridge, from, batch, now),
            Some(view) => self.forward_sampling(bridge, view, from, batch, now),
        }
    }

    /// Runs a batch of frames that no capture selects through the compiled tables, and sends the
    /// results. `NOTED` enables the record of outputs for samples and flow counts.
    fn forward_compiled<const NOTED: bool>(
        &mut self,
        bridge: &BridgeProgram,
        from: PortKey,
        batch: &mut Batch,
        now: Instant,
    ) {
        self.mirror_ingress(bridge, from, batch);
        if NOTED {
            self.read_flows(from, batch, now);
        }
        let runner = self.runner.take();
        let mut runner = runner.expect("returned at the end of each batch");
        let batch_context = bridge.batch_context(from.port, now);
        batch.iter_mut().for_each(finish_if_sctp);
        // Statistics are deferred only after a full batch, when more frames are likely to wait.
        let puts_off = batch.remaining_capacity() == 0;
        let fields = self.recirculation.fields();
        // The scope ends the run in place: the run is large, and a call of `drop` would copy it.
        let all_leave = {
            let mut run = runner.begin_with_fields(batch_context, fields.as_deref(), batch);
            let all_leave = match bridge.mirrors.as_deref() {
                None => run.forward_all(),
                Some(_) => self.apply_mirrored::<NOTED>(bridge, from, &mut run, now),
            };
            while let Some(outcome) = run.next(&mut self.pool) {
                match outcome {
                    FrameOutcome::Forward(frames, port) => {
                        if NOTED {
                            self.note_leaving(port, frames);
                        }
                        self.send_together(PortKey { port, ..from }, frames);
                    }
                    FrameOutcome::Verdict(verdict) => {
                        self.apply_verdict::<NOTED>(bridge, from, verdict, now)
                    }
                }
            }
            all_leave
        };
        if let Some(port) = all_leave {
            if NOTED {
                self.note_leaving(port, batch);
            }
            self.send_batch(PortKey { port, ..from }, batch);
        }
        if !puts_off {
            runner.flush_stats();
        }
        batch.clear();
        let counters = &self.shared.counters;
        counters.add_slow_path(runner.take_slow_path_packets());
        counters.set_flow_cache_hits(runner.flow_cache_hits());
        self.runner = Some(runner);
        if NOTED {
            self.count_flows(bridge.id, now);
        }
    }

    fn apply_verdict<const NOTED: bool>(
        &mut self,
        bridge: &BridgeProgram,
        from: PortKey,
        verdict: &mut Verdict,
        now: Instant,
    ) {
        for reason in &verdict.drops {
            self.shared.counters.count_reason(*reason);
        }
        self.exits.clear();
        for (place, egress) in verdict.egress.iter().enumerate() {
            let frame = &verdict.frames[egress.frame];
            let before = self.exits.len();
            match &egress.to {
                Destination::Port(port) => self.exits.push(PortOutput {
                    frame: egress.frame,
                    port: *port,
                    retag: TagRewrite::KEEP,
                    priority: egress.priority,
                }),
                Destination::Normal => {
                    let index = (egress.frame, egress.priority);
                    self.normal(bridge, from, index, frame, now);
                }
                Destination::Controller(meta) => self.send_packet_ins(from, meta, frame, now),
                Destination::Collectors(sample) => {
                    self.sample_by_rule(bridge, from, **sample, frame);
                }
            }
            self.mirror_egress(bridge, from, (frame, before));
            if self.recording.is_some() {
                self.record_exits(place, frame, &egress.to, before);
            }
            if NOTED {
                self.note_exits(frame, before);
            }
            if let Some(fields) = &egress.registers {
                self.depart_with(from, frame, before, fields);
            }
        }
        if NOTED {
            self.flow_meters.end_frame();
        }
        for learned in verdict.learn_requests.drain(..) {
            self.report(
                WorkerEvent::LearnRule(from, Box::new(learned)),
                WorkerDrop::LearnQueueFull,
            );
        }
        self.send_all(from, verdict);
    }

    fn report(&mut self, event: WorkerEvent, otherwise: WorkerDrop) {
        match self.shared.events.push(event) {
            Ok(()) => self.turn.news = true,
            Err(_) => self.shared.counters.count(otherwise),
        }
    }

    /// Removes a port whose device disappeared, and reports it.
    fn retire(&mut self, key: PortKey, error: io::Error) {
        self.discard(key);
        self.report(WorkerEvent::QueueGone(key, error), WorkerDrop::NoPort);
    }

    /// Removes a port, and returns its queue.
    fn discard(&mut self, key: PortKey) -> Option<Box<dyn Queue>> {
        let mut slot = self.slots.remove(key)?;
        let left = slot.out.len();
        slot.out.release(left, &mut self.pool);
        self.turn.ports_changed = true;
        Some(slot.queue)
    }

    fn drop_frame(&mut self, frame: Frame, reason: WorkerDrop) {
        self.pool.put(frame);
        self.shared.counters.count(reason);
    }
}

/// Completes an SCTP checksum. A virtio-net header cannot express SCTP's CRC32c, so a later
/// completion would compute the Internet checksum instead.
fn finish_if_sctp(frame: &mut Frame) {
    /// The offset of the checksum in SCTP's header (RFC 9260, 3); no other protocol has it there.
    const SCTP: u16 = 8;
    if let Checksum::Partial { offset: SCTP, .. } = frame.offload.checksum {
        frame.complete_checksum();
    }
}

#[cfg(test)]
mod tests;
