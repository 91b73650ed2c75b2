//! What the control thread and the workers hand over, in many of the orders in which their
//! steps may come: real workers, turned as their threads turn them, real tables, the real
//! publisher, tethers and inbox. What sleeps, sleeps on a channel in place of an `epoll`:
//! who is not woken stays asleep, and the model says that nothing goes on.
//!
//! Not in the orders in which processors may see them: the model takes atomics for
//! sequentially consistent. Rings and the publication take each step at once.

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

use super::inbox::{Inbox, Input};
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

/// Orders that each scheduler tries.
const ORDERS: usize = 1_000;

/// Where frames come in, and where they leave by the old rules and the new.
const IN: PortNo = PortNo(1);
const OLD: PortNo = PortNo(2);
const NEW: PortNo = PortNo(3);

/// Workers of each model.
const WORKERS: usize = 2;

/// Wakes a worker of the model, for the control thread and for whoever sends it frames.
#[derive(Clone)]
struct Nudge(Sender<()>);

impl WakeWorker for Nudge {
    fn wake(&self) {
        // One that has ended sleeps no more.
        let _ = self.0.send(());
    }
}

/// A worker's other ends.
struct Hand {
    handle: WorkerHandle<Nudge>,
    nudge: Nudge,
    /// Nobody reads what it tells; it is dropped when there is no room.
    _events: Consumer<WorkerEvent>,
    /// What is at the other ends of its queues.
    host: MemoryQueue,
    old: MemoryQueue,
    new: MemoryQueue,
    thread: Option<thread::JoinHandle<()>>,
}

/// The control thread's state.
struct Rig {
    pipeline: Pipeline,
    compiled: Classifier,
    publisher: Publisher,
    hands: Vec<Hand>,
    pool: Pool,
    sent: u8,
    _inputs: Receiver<Input>,
}

impl Rig {
    /// Workers that forward by one rule, each with a port of its own to receive by.
    fn new() -> Self {
        let publication = Arc::new(Publication::default());
        let (inbox, inputs) = Inbox::new(thread::current());
        let mut rig = Self {
            pipeline: Pipeline::new(Limits::default(), WORKERS + 1),
            // The same tables each time: a failing order can be played again.
            compiled: Classifier::with_seed(7),
            publisher: Publisher::new(Arc::clone(&publication)),
            hands: Vec::new(),
            pool: Pool::new(64),
            sent: 0,
            _inputs: inputs,
        };
        for port in [IN, OLD, NEW] {
            rig.pipeline.set_port(&PortDesc {
                state: PortState::LIVE,
                ..PortDesc::new(port)
            });
        }
        rig.change(FlowModCommand::Add, "priority=1,in_port=1,actions=output:2");
        rig.publish(false);
        rig.hands = (0..WORKERS)
            .map(|writer| start(writer, &publication, &inbox))
            .collect();
        rig
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
        let workers = self.hands.iter().map(|hand| &hand.handle);
        self.publisher.publish(vec![bridge], is_large, workers)
    }

    /// As the control thread does: waits until all workers have passed `generation`.
    fn wait_for(&mut self, generation: Generation) {
        loop {
            self.free();
            let workers = self.hands.iter().map(|hand| &hand.handle);
            let passed = self.publisher.advance(workers);
            if passed.is_some_and(|passed| passed >= generation) {
                return;
            }
            thread::park();
        }
    }

    /// Frees what no worker holds any more, and tells how many programs that were.
    fn free(&mut self) -> usize {
        let workers = self.hands.iter().map(|hand| &hand.handle);
        let gone = self.publisher.take_unused(workers);
        let gone = gone.inspect(|old| {
            let holders = Arc::strong_count(&old.program);
            assert_eq!(holders, 1, "no worker frees a program");
        });
        gone.count()
    }

    /// A frame comes in for a worker. Frames are numbered.
    fn send(&mut self, worker: usize) {
        let hand = &mut self.hands[worker];
        let mut batch = Batch::new();
        let frame = frame(&mut self.pool, self.sent);
        batch.push(frame).expect("room");
        let sent = hand.host.send(&mut batch, &mut self.pool);
        sent.expect("the wire is there");
        assert!(batch.is_empty(), "the wire has room");
        self.sent += 1;
        hand.nudge.wake();
    }

    /// What the only rule has counted.
    fn counted(&self) -> u64 {
        self.counters().totals().packets
    }

    fn counters(&self) -> Counters {
        let mut rules = self.pipeline.rules(base::TableId(0));
        rules.next().expect("there is one").counters.clone()
    }

    /// Ends the workers when they have taken all frames.
    fn stop_when_all_came(&mut self) {
        let all = u64::from(self.sent);
        let taken = |rig: &Self| -> u64 {
            let tables = rig.pipeline.table_counters(base::TableId(0));
            tables.0.totals().packets
        };
        while taken(self) < all {
            thread::yield_now();
        }
        self.stop();
    }

    /// What has come out by the old rules and by the new, worker by worker.
    fn came_out(&mut self) -> (Vec<u8>, Vec<u8>) {
        let (mut by_old, mut by_new) = (Vec::new(), Vec::new());
        for hand in &mut self.hands {
            by_old.extend(came_out(&mut hand.old, &mut self.pool));
            by_new.extend(came_out(&mut hand.new, &mut self.pool));
        }
        (by_old, by_new)
    }

    fn stop(&mut self) {
        for hand in &mut self.hands {
            hand.handle.send_reliably(WorkerCommand::Stop);
        }
        for thread in self.hands.iter_mut().filter_map(|hand| hand.thread.take()) {
            thread.join().expect("a worker ends well");
        }
    }
}

/// A frame that bears a number.
fn frame(pool: &mut Pool, number: u8) -> Frame {
    let mut frame = pool.take().expect("a buffer");
    let bytes = [[2; 12].as_slice(), &[0x88, 0xb5], &[number; 46]].concat();
    frame.copy_from(&bytes).expect("room");
    frame
}

/// The numbers of the frames that have come out here.
fn came_out(queue: &mut MemoryQueue, pool: &mut Pool) -> Vec<u8> {
    let mut batch = Batch::new();
    // A worker that has ended has left its ports, and they say so when they are empty.
    drop(queue.receive(pool, &mut batch));
    let numbers = batch.iter().map(|frame| frame.bytes()[14]).collect();
    batch.drain().for_each(|frame| pool.put(frame));
    numbers
}

fn key(port: PortNo) -> PortKey {
    let bridge = BridgeId(0);
    PortKey { bridge, port }
}

/// A worker with its queues, and its thread.
fn start(writer: usize, publication: &Arc<Publication>, inbox: &Inbox) -> Hand {
    let (commands, commands_in) = RingBuffer::new(16);
    let (events_out, events) = RingBuffer::new(4);
    let progress = WorkerProgress::new();
    let shared = WorkerLinks {
        publication: Arc::clone(publication),
        progress: Arc::clone(&progress),
        counters: WorkerCounters::new(),
        commands: commands_in,
        events: events_out,
    };
    let (nudge, nudged) = channel();
    let nudge = Nudge(nudge);
    let mut handle = WorkerHandle::new(commands, progress, nudge.clone());
    let mut ends = [IN, OLD, NEW].map(|port| {
        let (ours, theirs) = link();
        let policing = PortPolicing {
            policer: Policer::new(None),
            counters: Arc::default(),
        };
        handle.send_reliably(WorkerCommand::AddPort(key(port), Box::new(ours), policing));
        Some(theirs)
    });
    let mut end = |place: usize| ends[place].take().expect("it is taken once");
    let (host, old, new) = (end(0), end(1), end(2));
    let inbox = inbox.clone();
    let thread = thread::spawn(move || run(Worker::new(writer, shared), &nudged, &inbox));
    Hand {
        handle,
        nudge,
        _events: events,
        host,
        old,
        new,
        thread: Some(thread),
    }
}

fn link() -> (MemoryQueue, MemoryQueue) {
    let [ours, theirs] = memory::pair(["switch", "host"], 16);
    let end = |mut port: memory::MemoryPort| port.take_queue().expect("not taken yet");
    (end(ours), end(theirs))
}

/// The loop of a worker's thread, without its clock: it gives way when it had frames, and
/// sleeps when it had none.
fn run(mut worker: Worker, nudged: &Receiver<()>, inbox: &Inbox) {
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
            .rest(WorkerActivity::Asleep, |_| nudged.recv())
            .is_some()
        {
            nudged.try_iter().for_each(drop);
        }
    }
}

/// After a barrier no frame meets the old rules, what the removed one has counted is final,
/// and programs are freed by the control thread, when no worker has them any more. What a
/// worker was told before the change it has done before the barrier.
///
/// Tried, and found: `WorkerHandle::rests` that takes all for resting, or those with an empty ring, or
/// those of that posture; `WorkerProgress::take` that does not tell of being busy again;
/// `Worker::rest` that does not look for news, or before it takes the posture;
/// `Worker::catch_up` that tells of a program before it takes it, or does not have the control
/// thread woken; `Publisher::advance` by the fastest worker; `Publisher::let_go` of the
/// program that the slowest holds.
#[test]
fn a_barrier_waits_for_all_frames_under_the_old_rules() {
    explore(ORDERS, || {
        let mut rig = Rig::new();
        (0..WORKERS).for_each(|worker| rig.send(worker));
        let before = rig.counters();
        let sent_by_controller = frame(&mut rig.pool, 99);
        let transmit = WorkerCommand::Transmit(key(OLD), sent_by_controller, None);
        rig.hands[0].handle.send_reliably(transmit);
        rig.change(FlowModCommand::DeleteStrict, "priority=1,in_port=1");
        rig.change(FlowModCommand::Add, "priority=2,in_port=1,actions=output:3");
        let generation = rig.publish(false);
        rig.wait_for(generation);
        let finally = before.totals().packets;
        let left = came_out(&mut rig.hands[0].old, &mut rig.pool);
        assert!(left.contains(&99), "it was told before the barrier");
        (0..WORKERS).for_each(|worker| rig.send(worker));
        rig.stop_when_all_came();
        let (mut by_old, by_new) = rig.came_out();
        by_old.extend(left.iter().filter(|number| **number != 99));
        assert_eq!(
            before.totals().packets,
            finally,
            "counted after the barrier"
        );
        assert_eq!(by_old.len() as u64, finally);
        assert_eq!(by_new.len() as u64, rig.counted());
        assert!(
            by_new.contains(&2) && by_new.contains(&3),
            "sent after the barrier"
        );
        assert_eq!(by_old.len() + by_new.len(), usize::from(rig.sent));
        rig.free();
    });
}

/// A worker that sleeps is woken by what it is told, and by a publication after which it must
/// let go of much; and it wakes the control thread when it has.
///
/// Tried, and found: `WorkerHandle::tell` that looks whether the worker sleeps before it puts the
/// command into the ring, and `Publisher::publish` that wakes before it publishes.
#[test]
fn a_sleeper_is_woken_and_lets_go() {
    explore(ORDERS, || {
        let mut rig = Rig::new();
        rig.publish(true);
        let mut freed = 0;
        // What was there before the first, that one, and the first.
        while freed < 2 {
            freed += rig.free();
            if freed < 2 {
                thread::park();
            }
        }
        rig.send(0);
        rig.stop();
    });
}

/// Of a port whose frames another worker takes from now on none is lost, none comes twice and
/// none overtakes another.
///
/// Tried, and found: `Worker::exchange` that does not have the control thread woken; a control
/// thread that gives the second worker another queue than the one that came back.
#[test]
fn a_port_goes_from_worker_to_worker_with_all_its_frames() {
    explore(ORDERS, || {
        let mut rig = Rig::new();
        // The other end of what the second worker was to receive by is nobody's.
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
        rig.send(0);
        rig.hands[0]
            .handle
            .send_reliably(exchange(Box::new(spare), QueuePurpose::Serve(1)));
        rig.send(0);
        let moved = wait(&returned);
        assert_eq!(moved.purpose, QueuePurpose::Serve(1));
        rig.hands[1]
            .handle
            .send_reliably(exchange(moved.queue, QueuePurpose::Keep));
        rig.send(0);
        rig.hands[1].nudge.wake();
        assert_eq!(wait(&returned).purpose, QueuePurpose::Keep);
        rig.hands[1].nudge.wake();
        rig.stop_when_all_came();
        let (came, _) = rig.came_out();
        assert_eq!(
            came,
            [0, 1, 2],
            "first what the one took, then what the other did"
        );
    });
}

/// As the control thread does: looks, and parks until there are news.
fn wait(returned: &Receiver<ReturnedQueue>) -> ReturnedQueue {
    loop {
        match returned.try_recv() {
            Ok(returned) => return returned,
            Err(_) => thread::park(),
        }
    }
}
