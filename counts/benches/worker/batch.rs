//! One turn of a worker with a full batch.

use std::hint::black_box;
use std::sync::Arc;

use base::{Instant, PortNo};
use dataplane::counters::WorkerCounters;
use dataplane::messages::{WorkerCommand, WorkerEvent};
use dataplane::policer::{Policer, PortPolicing};
use dataplane::program::{BridgeId, BridgeProgram, Publication, WorkerProgress};
use dataplane::publisher::Publisher;
use dataplane::slots::PortKey;
use dataplane::worker::{Worker, WorkerLinks};
use dataplane::worker_handle::{WakeWorker, WorkerHandle};
use fastpath::Classifier;
use flow::{Action, Field, FlowMod, FlowModCommand, Instructions, Match, PortDesc, PortState};
use gungraun::{library_benchmark, library_benchmark_group};
use l2::fdb::{FdbKey, FdbView, ForwardingDatabase};
use packet::{MacAddr, Pool};
use pipeline::{Limits, Pipeline};
use ports::memory::{self, MemoryQueue};
use ports::{Batch, Port, Queue};
use rtrb::{Consumer, Producer, RingBuffer};

/// The seed of all hashes.
const SEED: u64 = 0x243f_6a88_85a3_08d3;

/// Ports of the worker's bridge.
const PORTS: u32 = 3;

/// Frames of a turn.
const FRAMES: usize = Batch::FRAMES_MAX;

/// The wake-up handle of a worker that the bench runs itself.
struct NeverAsleep;

impl WakeWorker for NeverAsleep {
    fn wake(&self) {}
}

/// A worker with the hosts at its ports, one of which has sent a batch.
struct WorkerTurn {
    worker: Worker,
    hosts: Vec<MemoryQueue>,
    pool: Pool,
    batch: Batch,
    /// The number of ports to which each frame is output.
    copies: usize,
    _commands: Producer<WorkerCommand>,
    _events: Consumer<WorkerEvent>,
}

fn key(number: u32) -> PortKey {
    PortKey {
        bridge: BridgeId(0),
        port: PortNo(number),
    }
}

/// The forwarding database, with one address behind port 2.
fn stations() -> FdbView {
    let mut table = ForwardingDatabase::new(16, config::AGEING_TIME);
    for (mac, port) in [(1, 1), (2, 2)] {
        let address = FdbKey {
            vid: 0,
            mac: MacAddr::from_u64(mac),
        };
        table.learn(address, PortNo(port), Instant::START);
    }
    table.view()
}

/// The program of a bridge with one rule, and with ports 1 to [`PORTS`].
fn program(actions: &[Action]) -> BridgeProgram {
    let mut pipeline = Pipeline::new(Limits::default(), 1);
    for number in 1..=PORTS {
        pipeline.set_port(&PortDesc {
            state: PortState::LIVE,
            ..PortDesc::new(PortNo(number))
        });
    }
    let matching = Match::any().with(Field::InPort, 1).unwrap();
    let instructions = Instructions::apply(actions.to_vec());
    let rule = FlowMod::new(FlowModCommand::Add, 1, matching, instructions);
    let changes = pipeline.flow_mod(&rule, Instant::START).unwrap();
    let mut classifier = Classifier::with_seed(SEED);
    classifier.queue_changes(&changes);
    BridgeProgram {
        id: BridgeId(0),
        compiled: classifier.publish(&pipeline),
        pipeline,
        fdb: stations(),
        multicast: None,
        switching: None,
        punts: None,
        mirrors: None,
        stp_filter: None,
        captures: None,
        in_band: None,
        sampling: None,
    }
}

fn turn(actions: &[Action], copies: usize) -> Box<WorkerTurn> {
    let (mut commands, commands_in) = RingBuffer::new(16);
    let (events_out, events) = RingBuffer::new(16);
    let publication = Arc::new(Publication::default());
    let mut hosts = Vec::new();
    for number in 1..=PORTS {
        let [mut ours, mut theirs] = memory::pair(["switch", "host"], 2 * FRAMES);
        hosts.push(theirs.take_queue().unwrap());
        let queue = ours.take_queues().pop().unwrap();
        let policing = PortPolicing {
            policer: Policer::new(None),
            counters: Arc::default(),
        };
        let added = commands.push(WorkerCommand::AddPort(key(number), queue, policing));
        assert!(added.is_ok(), "the ring has room");
    }
    let workers = std::iter::empty::<&WorkerHandle<NeverAsleep>>();
    Publisher::new(Arc::clone(&publication)).publish(vec![program(actions)], false, workers);
    let shared = WorkerLinks {
        publication,
        progress: WorkerProgress::new(),
        counters: WorkerCounters::new(),
        commands: commands_in,
        events: events_out,
        protocols: RingBuffer::new(1).0,
    };
    let mut turn = Box::new(WorkerTurn {
        worker: Worker::new(0, shared),
        hosts,
        pool: Pool::new(8 * FRAMES),
        batch: Batch::new(),
        copies,
        _commands: commands,
        _events: events,
    });
    turn.worker.turn(Instant::START);
    // The first turns grow the buffers.
    for _ in 0..2 {
        turn.send();
        turn.run();
        turn.drain();
    }
    turn.send();
    turn
}

impl WorkerTurn {
    fn send(&mut self) {
        let (dst, src) = (MacAddr::from_u64(2), MacAddr::from_u64(1));
        let bytes = [&dst.0[..], &src.0[..], &[0x88, 0xb5], &[0; 46]].concat();
        for _ in 0..FRAMES {
            let mut frame = self.pool.take().unwrap();
            frame.copy_from(&bytes).unwrap();
            self.batch.push(frame).unwrap();
        }
        self.hosts[0].send(&mut self.batch, &mut self.pool).unwrap();
    }

    fn run(&mut self) {
        let turn = self.worker.turn(black_box(Instant::from_millis(10)));
        assert_eq!(turn.frames, FRAMES);
    }

    fn drain(&mut self) {
        let mut count = 0;
        for host in &mut self.hosts {
            loop {
                host.receive(&mut self.pool, &mut self.batch).unwrap();
                if self.batch.is_empty() {
                    break;
                }
                count += self.batch.len();
                let all = self.batch.len();
                self.batch.release(all, &mut self.pool);
            }
        }
        assert_eq!(count, self.copies * FRAMES);
    }
}

fn output(port: u32) -> Action {
    Action::output(PortNo(port))
}

#[library_benchmark]
#[bench::output(turn(&[output(2)], 1))]
#[bench::normal(turn(&[Action::output(PortNo::NORMAL)], 1))]
#[bench::two_outputs(turn(&[output(2), output(3)], 2))]
fn batch(mut turn: Box<WorkerTurn>) -> Box<WorkerTurn> {
    turn.run();
    turn
}

library_benchmark_group!(name = turns, benchmarks = [batch]);
