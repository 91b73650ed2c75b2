//! One worker: takes batches from its queues, has each frame's fate told, and
//! sends. It runs to completion, takes no lock, and shares nothing but the
//! published program, its counters and two rings.
//!
//! No threads and no clock here: `turn` is given the time and is called by
//! whoever owns the thread, a test included. The frames' fates are told by compiled
//! tables, a batch at a time.

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

/// Buffers of a worker: one batch in flight, what waits for each of the ports,
/// and copies of it, with room to spare.
const BUFFERS_MAX: usize = 4096;

/// After a look in vain into a queue that wants a system call for it, so many turns pass
/// without another, while other queues have frames, or can be looked into for less: a turn of
/// full batches takes some microseconds, one in vain some hundredths of one, and a system call
/// some tenths, for which a frame that comes by the others would wait.
const SPARED: u8 = 7;

/// The ends that a worker holds of what it shares.
pub struct WorkerLinks {
    /// Programs come from here.
    pub publication: Arc<Publication>,
    /// How far this worker is.
    pub progress: Arc<WorkerProgress>,
    /// What it drops.
    pub counters: Arc<WorkerCounters>,
    /// What it is told.
    pub commands: Consumer<WorkerCommand>,
    /// What it tells.
    pub events: Producer<WorkerEvent>,
}

/// What a turn did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// Frames received.
    pub frames: usize,
    /// Whether the control thread has news to read: events, or a generation passed.
    pub news: bool,
    /// Whether the set of queues changed.
    pub ports_changed: bool,
    /// Whether the worker is to end.
    pub stopped: bool,
}

/// A worker.
pub struct Worker {
    shared: WorkerLinks,
    /// Which of the counting cells of others' is its own.
    writer: usize,
    /// None while it runs a batch: to count one more holder would have all workers write to
    /// one place, twice a batch.
    program: Option<Arc<Program>>,
    passed: Generation,
    /// None while it runs a batch.
    runner: Option<Box<Runner>>,
    pool: Pool,
    slots: PortSlots,
    batch: Batch,
    exits: Vec<PortOutput>,
    /// What is told of the frame at hand, if somebody watches it.
    recording: Option<FrameRecording>,
    onward: Recirculation,
    mirrored: MirrorState,
    /// What a frame was cut into, on its way into a tunnel or to a mirror.
    segments: Vec<Frame>,
    /// The next numbers of packets, of tunnels that have them numbered.
    numbers: BTreeMap<PortKey, u32>,
    /// What chooses the frames of bridges that are sampled.
    samplers: BTreeMap<BridgeId, FrameSampler>,
    /// Where a sampled frame went.
    watch: OutputObserver,
    /// What is counted by flows.
    accounts: FlowMeters,
    turn: Turn,
    /// When the turn began.
    now: Instant,
}

impl Worker {
    /// A worker without ports; `writer` is which of the pipelines' counting cells is its own.
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
            onward: Recirculation::default(),
            mirrored: MirrorState::default(),
            segments: Vec::new(),
            numbers: BTreeMap::new(),
            samplers: BTreeMap::new(),
            watch: OutputObserver::new(seed(writer as u64, 0, Instant::START)),
            accounts: FlowMeters::default(),
            turn: Turn::default(),
            now: Instant::START,
        }
    }

    /// The queues, for whoever waits until one has something.
    pub fn queues(&self) -> impl Iterator<Item = &dyn Queue> {
        self.slots.iter().map(|(_, slot)| slot.queue.as_ref())
    }

    /// Takes up news, then serves every queue once.
    pub fn turn(&mut self, now: Instant) -> Turn {
        let before = std::mem::take(&mut self.turn);
        self.now = now;
        self.catch_up(now);
        if self.accounts.is_due(now) {
            self.report_flows(now);
        }
        let spares = before.frames > 0 || self.slots.have_cheap();
        for place in (0..self.slots.len()).rev() {
            let (_, slot) = self.slots.at(place);
            match slot.spared.checked_sub(1) {
                Some(left) if spares => slot.spared = left,
                _ => self.serve(place, now),
            }
        }
        if self.turn.frames == 0 {
            self.settle();
        }
        self.turn
    }

    /// Lets every queue do what must be done now and then.
    pub fn tend(&mut self) {
        for place in (0..self.slots.len()).rev() {
            let (key, slot) = self.slots.at(place);
            if let Err(error) = slot.queue.maintain() {
                self.retire(key, error);
            }
        }
    }

    /// Does what it was told, then goes over to the newest program. What was told
    /// before a publication is done before that publication counts as passed.
    fn catch_up(&mut self, now: Instant) {
        let newest = self.shared.publication.load();
        let newer = newest.generation != self.passed;
        if newer {
            self.slots.set_terminating(newest.terminating());
            self.samplers.retain(|id, _| {
                let bridge = newest.bridge(*id);
                bridge.is_some_and(|bridge| bridge.sampling.is_some())
            });
            self.program = Some(Arc::clone(&newest));
            self.keep_flows(&newest, now);
        }
        let generation = newest.generation;
        drop(newest);
        scheduling_point();
        while let Ok(command) = self.shared.commands.pop() {
            scheduling_point();
            self.obey(command, now);
        }
        if newer {
            self.settle();
            self.passed = generation;
            self.shared.progress.pass(self.passed);
            self.turn.news = true;
        }
    }

    fn obey(&mut self, command: WorkerCommand, now: Instant) {
        match command {
            WorkerCommand::AddPort(key, queue, policing) => {
                self.slots.insert(key, queue, policing);
                self.turn.ports_changed = true;
            }
            WorkerCommand::RemovePort(key, back) => {
                // Its bridge may be about to go.
                self.report_flows(now);
                if let Some(queue) = self.discard(key) {
                    // Who does not listen does not mind.
                    drop(back.send(queue));
                }
            }
            WorkerCommand::Exchange(exchange) => self.exchange(*exchange),
            WorkerCommand::Transmit(key, frame, words) => {
                self.transmit(key, frame, words);
                let program = self.program.take();
                let program = program.expect("it is put back at the end of each batch");
                self.pass_on(&program, now);
                self.program = Some(program);
                self.flush();
            }
            WorkerCommand::Stop => self.turn.stopped = true,
        }
    }

    /// Nothing waits to leave by the old queue: it is flushed at the end of each batch. Of a
    /// port that is gone here nothing is given back.
    fn exchange(&mut self, exchange: QueueExchange) {
        let QueueExchange {
            key,
            queue,
            back,
            purpose,
        } = exchange;
        if let Some(queue) = self.slots.exchange(key, queue) {
            // Who does not listen any more has closed the port.
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
            slot.spared = if slot.queue.is_expensive_to_poll() {
                SPARED
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
            let program = program.expect("it is put back at the end of each batch");
            match program.bridge(from.bridge) {
                Some(bridge) => self.forward(bridge, from, &mut batch, now),
                None if from.bridge == BridgeId::HOST => {
                    self.take_from_host(&program, from, &mut batch);
                }
                None => batch
                    .drain()
                    .for_each(|frame| self.drop_frame(frame, WorkerDrop::NoBridge)),
            }
            self.pass_on(&program, now);
            self.program = Some(program);
            self.flush();
        }
        self.batch = batch;
        if let Err(error) = received {
            self.retire(from, error);
        }
    }

    /// Has the frames' fates told and carries them out.
    fn forward(&mut self, bridge: &BridgeProgram, from: PortKey, batch: &mut Batch, now: Instant) {
        if let Some(punts) = &bridge.punts {
            self.punt(punts, from, batch);
        }
        let stp_filter = bridge.stp_filter.as_deref();
        if let Some(passage) = stp_filter.and_then(|stp_filter| stp_filter.of(from.port)) {
            return self.hold_back(bridge, (from, passage), batch, now);
        }
        if let Some(in_band) = &bridge.in_band {
            self.forward_in_band((bridge, in_band), from, batch, now);
        }
        match &bridge.sampling {
            None => self.forward_all::<false>(bridge, from, batch, now),
            Some(view) => self.forward_sampling(bridge, view, from, batch, now),
        }
    }

    /// The same of frames that nobody captures.
    fn tell_fates<const NOTED: bool>(
        &mut self,
        bridge: &BridgeProgram,
        from: PortKey,
        batch: &mut Batch,
        now: Instant,
    ) {
        self.mirror_arriving(bridge, from, batch);
        if NOTED {
            self.read_flows(from, batch, now);
        }
        let runner = self.runner.take();
        let mut runner = runner.expect("it is put back at the end of each batch");
        let ground = bridge.ground(from.port, now);
        batch.iter_mut().for_each(finish_if_sctp);
        // Only where more come than it takes at a time are counts worth putting off.
        let puts_off = batch.remaining_capacity() == 0;
        let words = self.onward.words();
        // The run is large: whoever handed it to `drop` would copy it.
        let all_leave = {
            let mut run = runner.begin_with_fields(ground, words.as_deref(), batch);
            let all_leave = match bridge.mirrors.as_deref() {
                None => run.forward_all(),
                Some(_) => self.carry_out_mirrored::<NOTED>(bridge, from, &mut run, now),
            };
            while let Some(fate) = run.next(&mut self.pool) {
                match fate {
                    FrameOutcome::Forward(frames, port) => {
                        if NOTED {
                            self.note_leaving(port, frames);
                        }
                        self.send_together(PortKey { port, ..from }, frames);
                    }
                    FrameOutcome::Verdict(verdict) => {
                        self.carry_out::<NOTED>(bridge, from, verdict, now)
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
        self.shared
            .counters
            .add_handed(runner.take_slow_path_packets());
        self.runner = Some(runner);
        if NOTED {
            self.count_flows(bridge.id, now);
        }
    }

    fn carry_out<const NOTED: bool>(
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
                Destination::Controller(meta) => self.tell_controllers(from, meta, frame, now),
                Destination::Collectors(sample) => {
                    self.sample_by_rule(bridge, from, **sample, frame);
                }
            }
            self.mirror_leaving(bridge, from, (frame, before));
            if self.recording.is_some() {
                self.record_exits(place, frame, &egress.to, before);
            }
            if NOTED {
                self.note_exits(frame, before);
            }
            if let Some(words) = &egress.registers {
                self.depart_with(from, frame, before, words);
            }
        }
        if NOTED {
            self.accounts.go();
        }
        for learned in verdict.learn_requests.drain(..) {
            self.tell(
                WorkerEvent::LearnRule(from, Box::new(learned)),
                WorkerDrop::LearnQueueFull,
            );
        }
        self.send_all(from, verdict);
    }

    fn tell(&mut self, event: WorkerEvent, otherwise: WorkerDrop) {
        match self.shared.events.push(event) {
            Ok(()) => self.turn.news = true,
            Err(_) => self.shared.counters.count(otherwise),
        }
    }

    /// Serves a queue no more, its device being gone.
    fn retire(&mut self, key: PortKey, error: io::Error) {
        self.discard(key);
        self.tell(WorkerEvent::QueueGone(key, error), WorkerDrop::NoPort);
    }

    /// Takes a port out, and returns its queue.
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

/// Finishes a checksum that is not the Internet's. A virtio-net header cannot say
/// that it is SCTP's CRC, and whoever finished it later would do it wrongly.
fn finish_if_sctp(frame: &mut Frame) {
    /// Where SCTP's checksum is in its header (RFC 9260, 3); nobody else's is there.
    const SCTP: u16 = 8;
    if let Checksum::Partial { offset: SCTP, .. } = frame.offload.checksum {
        frame.complete_checksum();
    }
}

#[cfg(test)]
mod tests;
