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

use base::sync::point;
use base::{Instant, PortNo};
use fastpath::{Fate, Ground, Runner};
use packet::{Checksum, Frame, Pool};
use pipeline::{Destination, Verdict};
use ports::{Batch, Queue};
use rtrb::{Consumer, Producer};

use super::counters::{Drop, WorkerCounters};
use super::messages::{Command, Event, Exchange, Returned};
use super::program::{BridgeId, BridgeProgram, Generation, Program, Progress, Publication};
use super::slots::{PortKey, Slots};
use super::vlans::Retag;
use onward::Onward;

mod limits;
mod normally;
mod onward;
mod reports;
mod resting;
mod tunnelling;

/// Buffers of a worker: one batch in flight, what waits for each of the ports,
/// and copies of it, with room to spare.
const BUFFERS_MAX: usize = 4096;

/// After a look in vain into a queue that wants a system call for it, so many turns pass
/// without another, while other queues have frames, or can be looked into for less: a turn of
/// full batches takes some microseconds, one in vain some hundredths of one, and a system call
/// some tenths, for which a frame that comes by the others would wait.
const SPARED: u8 = 7;

/// The ends that a worker holds of what it shares.
pub(crate) struct Shared {
    /// Programs come from here.
    pub(crate) publication: Arc<Publication>,
    /// How far this worker is.
    pub(crate) progress: Arc<Progress>,
    /// What it drops.
    pub(crate) counters: Arc<WorkerCounters>,
    /// What it is told.
    pub(crate) commands: Consumer<Command>,
    /// What it tells.
    pub(crate) events: Producer<Event>,
}

/// What a turn did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Turn {
    /// Frames received.
    pub(crate) frames: usize,
    /// Whether the control thread has news to read: events, or a generation passed.
    pub(crate) news: bool,
    /// Whether the set of queues changed.
    pub(crate) ports_changed: bool,
    /// Whether the worker is to end.
    pub(crate) stopped: bool,
}

/// A worker.
pub(crate) struct Worker {
    shared: Shared,
    /// None while it runs a batch: to count one more holder would have all workers write to
    /// one place, twice a batch.
    program: Option<Arc<Program>>,
    passed: Generation,
    /// None while it runs a batch.
    runner: Option<Box<Runner>>,
    pool: Pool,
    slots: Slots,
    batch: Batch,
    exits: Vec<Exit>,
    onward: Onward,
    /// What a frame was cut into, on its way into a tunnel.
    segments: Vec<Frame>,
    /// The next numbers of packets, of tunnels that have them numbered.
    numbers: BTreeMap<PortKey, u32>,
    turn: Turn,
    /// When the turn began.
    now: Instant,
}

/// A frame of the verdict on its way to a port.
#[derive(Clone, Copy)]
struct Exit {
    frame: usize,
    port: PortNo,
    retag: Retag,
}

impl Worker {
    /// A worker without ports; `writer` is which of the pipelines' counting cells is its own.
    pub(crate) fn new(writer: usize, shared: Shared) -> Self {
        Self {
            program: Some(shared.publication.load_full()),
            shared,
            passed: Generation::default(),
            runner: Some(Box::new(Runner::new(writer))),
            pool: Pool::new(BUFFERS_MAX),
            slots: Slots::default(),
            batch: Batch::new(),
            exits: Vec::new(),
            onward: Onward::default(),
            segments: Vec::new(),
            numbers: BTreeMap::new(),
            turn: Turn::default(),
            now: Instant::START,
        }
    }

    /// The queues, for whoever waits until one has something.
    pub(crate) fn queues(&self) -> impl Iterator<Item = &dyn Queue> {
        self.slots.iter().map(|(_, slot)| slot.queue.as_ref())
    }

    /// Takes up news, then serves every queue once.
    pub(crate) fn turn(&mut self, now: Instant) -> Turn {
        let before = std::mem::take(&mut self.turn);
        self.now = now;
        self.catch_up(now);
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
    pub(crate) fn tend(&mut self) {
        for place in (0..self.slots.len()).rev() {
            let (key, slot) = self.slots.at(place);
            if let Err(error) = slot.queue.tend() {
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
            self.program = Some(Arc::clone(&newest));
        }
        let generation = newest.generation;
        drop(newest);
        point();
        while let Ok(command) = self.shared.commands.pop() {
            point();
            self.obey(command, now);
        }
        if newer {
            self.settle();
            self.passed = generation;
            self.shared.progress.pass(self.passed);
            self.turn.news = true;
        }
    }

    fn obey(&mut self, command: Command, now: Instant) {
        match command {
            Command::AddPort(key, queue, gate) => {
                self.slots.insert(key, queue, gate);
                self.turn.ports_changed = true;
            }
            Command::RemovePort(key, back) => {
                if let Some(queue) = self.discard(key) {
                    // Who does not listen does not mind.
                    drop(back.send(queue));
                }
            }
            Command::Exchange(exchange) => self.exchange(*exchange),
            Command::Transmit(key, frame, words) => {
                self.transmit(key, frame, words);
                let program = self.program.take();
                let program = program.expect("it is put back at the end of each batch");
                self.pass_on(&program, now);
                self.program = Some(program);
                self.flush();
            }
            Command::Stop => self.turn.stopped = true,
        }
    }

    /// Nothing waits to leave by the old queue: it is flushed at the end of each batch. Of a
    /// port that is gone here nothing is given back.
    fn exchange(&mut self, exchange: Exchange) {
        let Exchange {
            key,
            queue,
            back,
            purpose,
        } = exchange;
        if let Some(queue) = self.slots.exchange(key, queue) {
            // Who does not listen any more has closed the port.
            drop(back.send(Returned { queue, purpose }));
            self.turn.ports_changed = true;
            self.turn.news = true;
        }
    }

    fn serve(&mut self, place: usize, now: Instant) {
        let mut batch = std::mem::take(&mut self.batch);
        let (from, slot) = self.slots.at(place);
        let received = slot.queue.receive(&mut self.pool, &mut batch);
        if batch.is_empty() {
            slot.spared = if slot.queue.is_dear() { SPARED } else { 0 };
        } else {
            self.turn.frames += batch.len();
            self.shared.counters.add_batch(batch.len());
            if slot.gate.police.limits_ingress() {
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
                    .for_each(|frame| self.drop_frame(frame, Drop::NoBridge)),
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
        let runner = self.runner.take();
        let mut runner = runner.expect("it is put back at the end of each batch");
        let ground = Ground {
            pipeline: &bridge.pipeline,
            view: &bridge.compiled,
            from: from.port,
            now,
        };
        batch.iter_mut().for_each(finish_if_sctp);
        // Only where more come than it takes at a time are counts worth putting off.
        let puts_off = batch.room() == 0;
        let words = self.onward.words();
        // The run is large: whoever handed it to `drop` would copy it.
        let all_leave = {
            let mut run = runner.begin_with(ground, words.as_deref(), batch);
            let all_leave = run.leave_all();
            while let Some(fate) = run.next(&mut self.pool) {
                match fate {
                    Fate::Leave(frames, port) => {
                        self.send_together(PortKey { port, ..from }, frames);
                    }
                    Fate::Told(verdict) => self.carry_out(bridge, from, verdict, now),
                }
            }
            all_leave
        };
        if let Some(port) = all_leave {
            self.send_batch(PortKey { port, ..from }, batch);
        }
        if !puts_off {
            runner.settle();
        }
        batch.clear();
        self.shared.counters.add_handed(runner.handed());
        self.runner = Some(runner);
    }

    fn carry_out(
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
        for egress in &verdict.egress {
            let frame = &verdict.frames[egress.frame];
            let before = self.exits.len();
            match &egress.to {
                Destination::Port(port) => self.exits.push(Exit {
                    frame: egress.frame,
                    port: *port,
                    retag: Retag::Keep,
                }),
                Destination::Normal => self.normal(bridge, from, egress.frame, frame, now),
                Destination::Controller(meta) => self.tell_controllers(from, meta, frame, now),
            }
            if let Some(words) = &egress.words {
                self.depart_with(from, frame, before, words);
            }
        }
        for learned in verdict.learned.drain(..) {
            self.tell(Event::LearnRule(from, Box::new(learned)), Drop::LearnNoRoom);
        }
        self.send_all(from, verdict);
    }

    /// Sends each frame out of each of its exits; the last takes the frame, the others copies.
    fn send_all(&mut self, from: PortKey, verdict: &mut Verdict) {
        let exits = std::mem::take(&mut self.exits);
        for (index, frame) in verdict.frames.drain(..).enumerate() {
            let mut waiting = exits.iter().filter(|exit| exit.frame == index).peekable();
            if waiting.peek().is_none() {
                self.pool.put(frame);
                continue;
            }
            self.send_copies(from, frame, waiting.copied());
        }
        self.exits = exits;
    }

    fn send_copies(&mut self, from: PortKey, frame: Frame, exits: impl Iterator<Item = Exit>) {
        let mut exits = exits.peekable();
        let mut frame = Some(frame);
        while let Some(Exit { port, retag, .. }) = exits.next() {
            let leaving = match exits.peek() {
                Some(_) => frame.as_ref().and_then(|frame| self.pool.duplicate(frame)),
                None => frame.take(),
            };
            match leaving {
                Some(mut leaving) => match retag.change(&mut leaving) {
                    true => self.send(PortKey { port, ..from }, leaving),
                    false => self.drop_frame(leaving, Drop::Tag),
                },
                None => self.shared.counters.count(Drop::NoBuffer),
            }
        }
    }

    /// The same for all frames of a batch. Where nothing waits for the port, none is moved.
    fn send_batch(&mut self, key: PortKey, batch: &mut Batch) {
        match self.slots.find(key) {
            Some(slot) if slot.out.is_empty() => std::mem::swap(&mut slot.out, batch),
            _ => self.send_together(key, batch),
        }
    }

    /// Puts frames with those that leave by their port.
    #[inline]
    fn send_together(&mut self, key: PortKey, frames: &mut [Frame]) {
        match (self.slots.find(key), &mut *frames) {
            // Where frames leave by several ports, most come one by one. Each is built where it
            // is put: one that goes through another place costs several times as much.
            (Some(slot), [frame]) if slot.out.room() > 0 => slot.out.put(std::mem::take(frame)),
            (Some(slot), frames) if slot.out.room() >= frames.len() => slot.out.take_all(frames),
            _ => frames
                .iter_mut()
                .for_each(|frame| self.send(key, std::mem::take(frame))),
        }
    }

    /// Puts the frame with those that leave by its port; a full batch leaves at once.
    fn send(&mut self, key: PortKey, frame: Frame) {
        let Some(slot) = self.slots.find(key) else {
            self.drop_frame(frame, Drop::NoPort);
            return;
        };
        let Err(frame) = slot.out.push(frame) else {
            return;
        };
        // After that there is room, unless the port has just turned out to be gone.
        self.flush_port(key);
        let again = match self.slots.find(key) {
            Some(slot) => slot.out.push(frame),
            None => Err(frame),
        };
        if let Err(frame) = again {
            self.drop_frame(frame, Drop::NoPort);
        }
    }

    fn flush(&mut self) {
        for place in (0..self.slots.len()).rev() {
            let (key, slot) = self.slots.at(place);
            if !slot.out.is_empty() {
                self.flush_port(key);
            }
        }
    }

    /// Sends what waits for a port. What its queue has no room for is dropped and
    /// counted: a full port never holds up the others.
    fn flush_port(&mut self, key: PortKey) {
        let Some(slot) = self.slots.find(key) else {
            return;
        };
        if slot.inner.is_some() || slot.terminates {
            return self.depart(key);
        }
        if slot.gate.police.limits_egress() {
            self.limit_out(key);
        }
        let Some(slot) = self.slots.find(key) else {
            return;
        };
        let sent = slot.queue.send(&mut slot.out, &mut self.pool);
        let left = slot.out.len();
        slot.out.release(left, &mut self.pool);
        self.shared.counters.add(Drop::PortFull, left);
        if let Err(error) = sent {
            self.retire(key, error);
        }
    }

    fn tell(&mut self, event: Event, otherwise: Drop) {
        match self.shared.events.push(event) {
            Ok(()) => self.turn.news = true,
            Err(_) => self.shared.counters.count(otherwise),
        }
    }

    /// Serves a queue no more, its device being gone.
    fn retire(&mut self, key: PortKey, error: io::Error) {
        self.discard(key);
        self.tell(Event::QueueGone(key, error), Drop::NoPort);
    }

    /// Takes a port out, and returns its queue.
    fn discard(&mut self, key: PortKey) -> Option<Box<dyn Queue>> {
        let mut slot = self.slots.remove(key)?;
        let left = slot.out.len();
        slot.out.release(left, &mut self.pool);
        self.turn.ports_changed = true;
        Some(slot.queue)
    }

    fn drop_frame(&mut self, frame: Frame, reason: Drop) {
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
        frame.finish();
    }
}

#[cfg(test)]
mod tests;
