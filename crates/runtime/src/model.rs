//! Model checking (shuttle) of the concurrency between the control thread and the workers. Real
//! workers run with real tables and the real publisher, worker handles and inbox, in many of the
//! possible interleavings. A sleeping worker waits on a channel instead of an `epoll`: if a wake-up
//! is missing, it never wakes, and the model reports a deadlock.
//!
//! Memory orders are not modelled: shuttle treats atomics as sequentially consistent. Operations of
//! rings and of the publication are atomic steps.

use std::sync::Arc;

use base::sync::mpsc::{Receiver, Sender, channel};
use base::sync::{explore, thread};
use base::{Instant, PortNo};
use fastpath::Classifier;
use flow::{FlowModCommand, PortDesc, PortState, text};
use packet::{Frame, Pool};
use pipeline::{Counters, Limits, Pipeline};
use ports::memory::{self, MemoryQueue};
use ports::{Batch, Queue};
use rtrb::{Consumer, RingBuffer};

use super::inbox::{Inbox, InboxReceiver};
use dataplane::counters::WorkerCounters;
use dataplane::messages::{QueueExchange, QueuePurpose, ReturnedQueue, WorkerCommand, WorkerEvent};
use dataplane::policer::{Policer, PortPolicing};
use dataplane::program::{
    BridgeId, BridgeProgram, Generation, Publication, WorkerActivity, WorkerProgress,
};
use dataplane::publisher::Publisher;
use dataplane::slots::PortKey;
use dataplane::worker::{Worker, WorkerLinks};
use dataplane::worker_handle::{WakeWorker, WorkerHandle};
use l2::fdb::FdbView;

/// Interleavings that each scheduler tries.
const ORDERS: usize = 1_000;

/// The ingress port, and the egress ports of the old and of the new rules.
const IN: PortNo = PortNo(1);
const OLD: PortNo = PortNo(2);
const NEW: PortNo = PortNo(3);

/// Workers of each model.
const WORKERS: usize = 2;

/// Wakes a worker of the model, for the control thread and for the senders of frames.
#[derive(Clone)]
struct WakeChannel(Sender<()>);

impl WakeWorker for WakeChannel {
    fn wake(&self) {
        // A worker that has ended needs no wake-up.
        let _ = self.0.send(());
    }
}

/// The opposite ends of a worker's rings and queues.
struct ModelWorker {
    handle: WorkerHandle<WakeChannel>,
    wake: WakeChannel,
    /// Unread; events are dropped when the ring is full.
    _events: Consumer<WorkerEvent>,
    /// The opposite ends of its port queues.
    host: MemoryQueue,
    old: MemoryQueue,
    new: MemoryQueue,
    thread: Option<thread::JoinHandle<()>>,
}

/// The control thread's state.
struct ModelControl {
    pipeline: Pipeline,
    compiled: Classifier,
    publisher: Publisher,
    workers: Vec<ModelWorker>,
    pool: Pool,
    sent: u8,
    _inputs: InboxReceiver,
}

impl ModelControl {
    /// Workers that forward by one rule; each receives from its own queue.
    fn new() -> Self {
        let publication = Arc::new(Publication::default());
        let (inbox, inputs) = Inbox::new(thread::current());
        let mut control = Self {
            pipeline: Pipeline::new(Limits::default(), WORKERS + 1),
            // The seed is fixed, so that a failing interleaving can be replayed.
            compiled: Classifier::with_seed(7),
            publisher: Publisher::new(Arc::clone(&publication)),
            workers: Vec::new(),
            pool: Pool::new(64),
            sent: 0,
            _inputs: inputs,
        };
        for port in [IN, OLD, NEW] {
            control.pipeline.set_port(&PortDesc {
                state: PortState::LIVE,
                ..PortDesc::new(port)
            });
        }
        control.change(FlowModCommand::Add, "priority=1,in_port=1,actions=output:2");
        control.publish(false);
        control.workers = (0..WORKERS)
            .map(|writer| start(writer, &publication, &inbox))
            .collect();
        control
    }

    fn change(&mut self, command: FlowModCommand, flow: &str) {
        let flow_mod = text::parse_flow(command, flow).expect("a flow");
        let changes = self.pipeline.flow_mod(&flow_mod, Instant::START);
        self.compiled
            .queue_changes(&changes.expect("a legal change"));
    }

    fn publish(&mut self, is_large: bool) -> Generation {
        let bridge = BridgeProgram {
            id: BridgeId(0),
            pipeline: self.pipeline.clone(),
            compiled: self.compiled.publish(&self.pipeline),
            fdb: FdbView::default(),
            multicast: None,
            switching: None,
            punts: None,
            mirrors: None,
            stp_filter: None,
            captures: None,
            in_band: None,
            sampling: None,
        };
        let workers = self.workers.iter().map(|worker| &worker.handle);
        self.publisher.publish(vec![bridge], is_large, workers)
    }

    /// Waits, like the control thread, until all workers have passed `generation`.
    fn wait_for(&mut self, generation: Generation) {
        loop {
            self.free();
            let workers = self.workers.iter().map(|worker| &worker.handle);
            let passed = self.publisher.advance(workers);
            if passed.is_some_and(|passed| passed >= generation) {
                return;
            }
            thread::park();
        }
    }

    /// Frees programs that no worker holds. Returns their number.
    fn free(&mut self) -> usize {
        let workers = self.workers.iter().map(|worker| &worker.handle);
        let released = self.publisher.take_unused(workers);
        let released = released.inspect(|old| {
            let holders = Arc::strong_count(&old.program);
            assert_eq!(holders, 1, "no worker frees a program");
        });
        released.count()
    }

    /// Sends a numbered frame to a worker.
    fn send(&mut self, worker: usize) {
        let worker = &mut self.workers[worker];
        let mut batch = Batch::new();
        let frame = frame(&mut self.pool, self.sent);
        batch.push(frame).expect("room");
        let sent = worker.host.send(&mut batch, &mut self.pool);
        sent.expect("the wire is there");
        assert!(batch.is_empty(), "the wire has room");
        self.sent += 1;
        worker.wake.wake();
    }

    /// Returns the packet count of the only rule.
    fn counted(&self) -> u64 {
        self.counters().totals().packets
    }

    fn counters(&self) -> Counters {
        let mut rules = self.pipeline.rules(base::TableId(0));
        rules.next().expect("there is one").counters.clone()
    }

    /// Stops the workers when they have received all frames.
    fn stop_after_all_frames(&mut self) {
        let all = u64::from(self.sent);
        let taken = |control: &Self| -> u64 {
            let tables = control.pipeline.table_counters(base::TableId(0));
            tables.0.totals().packets
        };
        while taken(self) < all {
            thread::yield_now();
        }
        self.stop();
    }

    /// Returns the frames that were sent by the old rules and by the new ones, worker by worker.
    fn received_frames(&mut self) -> (Vec<u8>, Vec<u8>) {
        let (mut by_old, mut by_new) = (Vec::new(), Vec::new());
        for worker in &mut self.workers {
            by_old.extend(received_frames(&mut worker.old, &mut self.pool));
            by_new.extend(received_frames(&mut worker.new, &mut self.pool));
        }
        (by_old, by_new)
    }

    fn stop(&mut self) {
        for worker in &mut self.workers {
            worker.handle.send_reliably(WorkerCommand::Stop);
        }
        for thread in self
            .workers
            .iter_mut()
            .filter_map(|worker| worker.thread.take())
        {
            thread.join().expect("a worker ends well");
        }
    }
}

/// Returns a frame with a number in its payload.
fn frame(pool: &mut Pool, number: u8) -> Frame {
    let mut frame = pool.take().expect("a buffer");
    let bytes = [[2; 12].as_slice(), &[0x88, 0xb5], &[number; 46]].concat();
    frame.copy_from(&bytes).expect("room");
    frame
}

/// Returns the numbers of the frames in `queue`.
fn received_frames(queue: &mut MemoryQueue, pool: &mut Pool) -> Vec<u8> {
    let mut batch = Batch::new();
    // After the end of a worker, its queues report an error when they are empty.
    drop(queue.receive(pool, &mut batch));
    let numbers = batch.iter().map(|frame| frame.bytes()[14]).collect();
    batch.drain().for_each(|frame| pool.put(frame));
    numbers
}

fn key(port: PortNo) -> PortKey {
    let bridge = BridgeId(0);
    PortKey { bridge, port }
}

/// Starts a worker with its queues on a thread.
fn start(writer: usize, publication: &Arc<Publication>, inbox: &Inbox) -> ModelWorker {
    let (commands, commands_in) = RingBuffer::new(16);
    let (events_out, events) = RingBuffer::new(4);
    let progress = WorkerProgress::new();
    let shared = WorkerLinks {
        publication: Arc::clone(publication),
        progress: Arc::clone(&progress),
        counters: WorkerCounters::new(),
        commands: commands_in,
        events: events_out,
        protocols: RingBuffer::new(1).0,
    };
    let (wake, woken) = channel();
    let wake = WakeChannel(wake);
    let mut handle = WorkerHandle::new(commands, progress, wake.clone());
    let mut ends = [IN, OLD, NEW].map(|port| {
        let (switch_end, host_end) = link();
        let policing = PortPolicing {
            policer: Policer::new(None),
            counters: Arc::default(),
        };
        handle.send_reliably(WorkerCommand::AddPort(
            key(port),
            Box::new(switch_end),
            policing,
        ));
        Some(host_end)
    });
    let mut end = |place: usize| ends[place].take().expect("it is taken once");
    let (host, old, new) = (end(0), end(1), end(2));
    let inbox = inbox.clone();
    let thread = thread::spawn(move || run(Worker::new(writer, shared), &woken, &inbox));
    ModelWorker {
        handle,
        wake,
        _events: events,
        host,
        old,
        new,
        thread: Some(thread),
    }
}

fn link() -> (MemoryQueue, MemoryQueue) {
    let [switch_end, host_end] = memory::pair(["switch", "host"], 16);
    let end = |mut port: memory::MemoryPort| port.take_queue().expect("not taken yet");
    (end(switch_end), end(host_end))
}

/// The loop of a worker's thread without a clock: it yields after a turn with frames, and sleeps
/// after a turn without any.
fn run(mut worker: Worker, woken: &Receiver<()>, inbox: &Inbox) {
    loop {
        let turn = worker.turn(Instant::from_secs(1));
        if turn.stopped {
            return;
        }
        if turn.news {
            inbox.wake();
        }
        if turn.frames > 0 {
            worker.rest(WorkerActivity::Yielding, |_| thread::yield_now());
        } else if worker
            .rest(WorkerActivity::Asleep, |_| woken.recv())
            .is_some()
        {
            woken.try_iter().for_each(drop);
        }
    }
}

/// After a barrier no frame meets the old rules, the counters of the removed rule are final, and
/// only the control thread frees programs, when no worker holds them. A worker has executed the
/// commands from before the change before the barrier.
///
/// Mutations that this test has found: `WorkerHandle::rests` that takes all workers for resting, or
/// those with an empty ring, or those of that activity; `WorkerProgress::take` that does not report
/// busy again; `Worker::rest` that does not check for events, or checks before it sets the
/// activity; `Worker::catch_up` that reports a program before it takes it, or does not wake the
/// control thread; `Publisher::advance` by the fastest worker; `Publisher::let_go` of the program
/// that the slowest worker holds.
#[test]
fn barrier_waits_for_frames_under_old_rules() {
    explore(ORDERS, || {
        let mut control = ModelControl::new();
        (0..WORKERS).for_each(|worker| control.send(worker));
        let before = control.counters();
        let sent_by_controller = frame(&mut control.pool, 99);
        let transmit = WorkerCommand::Transmit(key(OLD), sent_by_controller, None);
        control.workers[0].handle.send_reliably(transmit);
        control.change(FlowModCommand::DeleteStrict, "priority=1,in_port=1");
        control.change(FlowModCommand::Add, "priority=2,in_port=1,actions=output:3");
        let generation = control.publish(false);
        control.wait_for(generation);
        let finally = before.totals().packets;
        let left = received_frames(&mut control.workers[0].old, &mut control.pool);
        assert!(left.contains(&99), "it was told before the barrier");
        (0..WORKERS).for_each(|worker| control.send(worker));
        control.stop_after_all_frames();
        let (mut by_old, by_new) = control.received_frames();
        by_old.extend(left.iter().filter(|number| **number != 99));
        assert_eq!(
            before.totals().packets,
            finally,
            "counted after the barrier"
        );
        assert_eq!(by_old.len() as u64, finally);
        assert_eq!(by_new.len() as u64, control.counted());
        assert!(
            by_new.contains(&2) && by_new.contains(&3),
            "sent after the barrier"
        );
        assert_eq!(by_old.len() + by_new.len(), usize::from(control.sent));
        control.free();
    });
}

/// A sleeping worker is woken by a command, and by a publication after which it must release large
/// structures; it wakes the control thread when it has released them.
///
/// Mutations that this test has found: `WorkerHandle::tell` that checks for sleep before it puts
/// the command into the ring, and `Publisher::publish` that wakes workers before it publishes.
#[test]
fn sleeping_worker_is_woken_and_releases_programs() {
    explore(ORDERS, || {
        let mut control = ModelControl::new();
        control.publish(true);
        let mut freed = 0;
        // Two programs: the initial one, and that of the first publication.
        while freed < 2 {
            freed += control.free();
            if freed < 2 {
                thread::park();
            }
        }
        control.send(0);
        control.stop();
    });
}

/// A port that moves to another worker loses, duplicates and reorders no frame.
///
/// Mutations that this test has found: `Worker::exchange` that does not wake the control thread; a
/// control thread that gives the second worker another queue than the returned one.
#[test]
fn port_moves_between_workers_in_order() {
    explore(ORDERS, || {
        let mut control = ModelControl::new();
        // The opposite end of the spare queue is unused.
        let (back, returned) = channel::<ReturnedQueue>();
        let (spare, _nobody) = link();
        let exchange = |queue, purpose| {
            let key = key(IN);
            let back = back.clone();
            WorkerCommand::Exchange(Box::new(QueueExchange {
                key,
                queue,
                back,
                purpose,
            }))
        };
        control.send(0);
        control.workers[0]
            .handle
            .send_reliably(exchange(Box::new(spare), QueuePurpose::Serve(1)));
        control.send(0);
        let moved = wait(&returned);
        assert_eq!(moved.purpose, QueuePurpose::Serve(1));
        control.workers[1]
            .handle
            .send_reliably(exchange(moved.queue, QueuePurpose::Keep));
        control.send(0);
        control.workers[1].wake.wake();
        assert_eq!(wait(&returned).purpose, QueuePurpose::Keep);
        control.workers[1].wake.wake();
        control.stop_after_all_frames();
        let (received, _) = control.received_frames();
        assert_eq!(
            received,
            [0, 1, 2],
            "first what the one took, then what the other did"
        );
    });
}

/// Polls the channel, like the control thread, and parks until it is woken.
fn wait(returned: &Receiver<ReturnedQueue>) -> ReturnedQueue {
    loop {
        match returned.try_recv() {
            Ok(returned) => return returned,
            Err(_) => thread::park(),
        }
    }
}
