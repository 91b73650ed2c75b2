//! Tests of a worker between memory ports, with explicit turns.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use base::sync::mpsc::channel;
use base::{PortNo, QueueId};
use fastpath::Classifier;
use flow::PortState;
use flow::{Action, FlowMod, FlowModCommand, Instructions, Match, PortDesc};
use packet::{Frame, MacAddr, Pool};
use pipeline::{Limits, Pipeline};
use ports::memory::{self, MemoryQueue};
use ports::{Port, QueueCounters};
use rtrb::RingBuffer;

use super::forwarder::DEFERRED_MIN;
use super::*;
use crate::capture::Captures;
use crate::in_band::{InBand, InBandConfig};
use crate::messages::QueuePurpose;
use crate::mirrors::Mirrors;
use crate::policer::{PacketInCounters, Policer, PortPolicing, QueuedPacketIn};
use crate::program::{BridgeId, BridgeProgram, CrossingMode, WorkerActivity};
use crate::punt::{PuntTable, PuntedProtocols};
use crate::sampling::SamplingView;
use crate::slots::PortKey;
use crate::stp_filter::{BlockedPort, StpFilter};
use config::AGEING_TIME;
use config::{MirrorConfig, MirrorOutput, PacketRate};
use l2::fdb::{FdbView, ForwardingDatabase};

const BRIDGE: BridgeId = BridgeId(0);

struct WorkerRig {
    worker: Worker,
    commands: Producer<WorkerCommand>,
    events: Consumer<WorkerEvent>,
    protocols: Consumer<WorkerEvent>,
    publication: Arc<Publication>,
    pipeline: Pipeline,
    compiled: Classifier,
    fdb: FdbView,
    punts: Option<Arc<PuntTable>>,
    mirrors: Option<Arc<Mirrors>>,
    stp_filter: Option<Arc<StpFilter>>,
    captures: Option<Arc<Captures>>,
    in_band: Option<Arc<InBand>>,
    sampling: Option<Arc<SamplingView>>,
    /// The other ends of ports 1, 2 and 3.
    hosts: Vec<MemoryQueue>,
    pool: Pool,
    generation: u64,
    crossing: CrossingMode,
    /// The policing of all ports.
    policing: PortPolicing,
}

impl WorkerRig {
    fn new(rules: &[(u128, &[Action])]) -> Self {
        let (commands, commands_in) = RingBuffer::new(16);
        let (events_out, events) = RingBuffer::new(2);
        let (protocols_out, protocols) = RingBuffer::new(2);
        let publication = Arc::new(Publication::default());
        let shared = WorkerLinks {
            publication: Arc::clone(&publication),
            progress: WorkerProgress::new(),
            counters: WorkerCounters::new(),
            commands: commands_in,
            events: events_out,
            protocols: protocols_out,
        };
        let mut rig = Self {
            worker: Worker::new(0, shared),
            commands,
            events,
            protocols,
            publication,
            pipeline: Pipeline::new(Limits::default(), 1),
            compiled: Classifier::new(),
            fdb: FdbView::default(),
            punts: None,
            mirrors: None,
            stp_filter: None,
            captures: None,
            in_band: None,
            sampling: None,
            hosts: Vec::new(),
            pool: Pool::new(256),
            generation: 0,
            crossing: CrossingMode::Off,
            policing: PortPolicing {
                policer: Policer::new(None),
                counters: Arc::default(),
            },
        };
        for number in 1..=3 {
            rig.add_port(number);
        }
        for (in_port, actions) in rules {
            rig.add_rule(*in_port, actions);
        }
        rig.publish();
        rig.worker.turn(Instant::START);
        rig
    }

    fn add_port(&mut self, number: u32) {
        let [mut ours, mut theirs] = memory::pair(["switch", "host"], 64);
        self.hosts.push(theirs.take_queue().expect("not taken yet"));
        let queue = ours.take_queues().pop().expect("one queue");
        self.add_queue(number, queue);
    }

    fn add_queue(&mut self, number: u32, queue: Box<dyn Queue>) {
        let command = WorkerCommand::AddPort(key(number), queue, self.policing.clone());
        assert!(self.commands.push(command).is_ok(), "the ring has room");
        self.pipeline.set_port(&PortDesc {
            state: PortState::LIVE,
            ..PortDesc::new(PortNo(number))
        });
    }

    fn remove_queue(&mut self, number: u32) {
        let command = WorkerCommand::RemovePort(key(number), channel().0);
        assert!(self.commands.push(command).is_ok(), "the ring has room");
    }

    fn add_rule(&mut self, in_port: u128, actions: &[Action]) {
        let matching = Match::any()
            .with(flow::Field::InPort, in_port)
            .expect("legal");
        let instructions = Instructions::apply(actions.to_vec());
        let rule = FlowMod::new(FlowModCommand::Add, 1, matching, instructions);
        let changes = self.pipeline.flow_mod(&rule, Instant::START);
        self.compiled.queue_changes(&changes.expect("legal"));
    }

    fn publish(&mut self) {
        self.generation += 1;
        let bridge = BridgeProgram {
            id: BRIDGE,
            pipeline: self.pipeline.clone(),
            compiled: self.compiled.publish(&self.pipeline),
            fdb: self.fdb.clone(),
            multicast: None,
            switching: None,
            punts: self.punts.clone(),
            mirrors: self.mirrors.clone(),
            stp_filter: self.stp_filter.clone(),
            captures: self.captures.clone(),
            in_band: self.in_band.clone(),
            sampling: self.sampling.clone(),
        };
        self.publication.swap(Arc::new(Program {
            crossing: self.crossing,
            generation: Generation(self.generation),
            bridges: vec![bridge],
            virtual_links: Arc::default(),
            underlay: Arc::default(),
        }));
    }

    /// Sends a frame from host `from` to `dst`, runs a turn, and returns the hosts that receive it.
    fn pass(&mut self, from: usize, dst: u64) -> Vec<usize> {
        self.pass_frame(from, &frame_to(dst, from as u64))
    }

    fn pass_frame(&mut self, from: usize, bytes: &[u8]) -> Vec<usize> {
        let mut frame = self.pool.take().expect("a buffer");
        frame.copy_from(bytes).expect("room");
        let mut batch = Batch::new();
        batch.push(frame).expect("room");
        self.hosts[from - 1]
            .send(&mut batch, &mut self.pool)
            .expect("the wire is there");
        self.worker.turn(Instant::from_secs(1));
        assert_eq!(
            self.worker.forwarder.pool.outstanding(),
            0,
            "no buffer may be lost"
        );
        let mut out = Vec::new();
        for (index, host) in self.hosts.iter_mut().enumerate() {
            host.receive(&mut self.pool, &mut batch)
                .expect("the wire is there");
            out.extend(batch.drain().map(|frame| {
                self.pool.put(frame);
                index + 1
            }));
        }
        out
    }

    fn drops(&self) -> Vec<(&'static str, u64)> {
        let counters = self.worker.forwarder.reporter.links.counters.read();
        counters.filter(|(_, count)| *count > 0).collect()
    }
}

fn key(number: u32) -> PortKey {
    PortKey {
        bridge: BRIDGE,
        port: PortNo(number),
    }
}

fn frame_to(dst: u64, src: u64) -> Vec<u8> {
    let (dst, src) = (MacAddr::from_u64(dst), MacAddr::from_u64(src));
    [&dst.0[..], &src.0[..], &[0x88, 0xb5], &[0; 46]].concat()
}

/// A queue that is expensive to poll and counts its polls. It never receives a frame.
struct ExpensiveQueue(Arc<AtomicUsize>);

impl Queue for ExpensiveQueue {
    fn receive(&mut self, _: &mut Pool, _: &mut Batch) -> io::Result<()> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> io::Result<()> {
        batch.release(batch.len(), pool);
        Ok(())
    }

    fn is_expensive_to_poll(&self) -> bool {
        true
    }

    fn counters(&self) -> Arc<QueueCounters> {
        Arc::default()
    }
}

#[test]
fn expensive_queue_is_polled_less_while_others_are_polled() {
    let mut rig = WorkerRig::new(&[(1, &[Action::output(PortNo(2))])]);
    let looks = Arc::new(AtomicUsize::new(0));
    rig.add_queue(4, Box::new(ExpensiveQueue(Arc::clone(&looks))));
    let turns = 3 * (usize::from(SKIP_TURNS) + 1);
    for _ in 0..turns {
        rig.worker.turn(Instant::START);
    }
    assert_eq!(looks.swap(0, Ordering::Relaxed), 3);
    for _ in 0..turns {
        assert_eq!(rig.pass(1, 9), [2]);
    }
    assert_eq!(looks.swap(0, Ordering::Relaxed), 3);
    // After a sleep every queue is polled: this one may have caused the wake-up.
    rig.worker.turn(Instant::START);
    rig.worker.rest(WorkerActivity::Asleep, |_| ());
    rig.worker.turn(Instant::START);
    assert_eq!(looks.swap(0, Ordering::Relaxed), 2);
    // If all queues are expensive, none is spared.
    (1..=3).for_each(|port| rig.remove_queue(port));
    for _ in 0..5 {
        rig.worker.turn(Instant::START);
    }
    assert_eq!(looks.load(Ordering::Relaxed), 5);
}

#[test]
fn frame_leaves_by_all_outputs_of_its_rule() {
    let both = [Action::output(PortNo(2)), Action::output(PortNo(3))];
    let mut rig = WorkerRig::new(&[(1, &both), (2, &[Action::output(PortNo::IN_PORT)])]);
    assert_eq!(rig.pass(1, 9), [2, 3]);
    assert_eq!(rig.pass(2, 9), [2]);
    assert_eq!(rig.pass(3, 9), [0; 0]);
    assert_eq!(rig.drops(), [("no_match", 1)]);
}

#[test]
fn normal_floods_unknown_and_forwards_known_addresses() {
    let normal = [Action::output(PortNo::NORMAL)];
    let mut rig = WorkerRig::new(&[(1, &normal), (2, &normal)]);
    assert_eq!(rig.pass(1, 2), [2, 3]);
    let Ok(WorkerEvent::Learn(from, address)) = rig.events.pop() else {
        panic!("an address was learned")
    };
    assert_eq!((from, address.mac), (key(1), MacAddr::from_u64(1)));
    let mut table = ForwardingDatabase::new(8, AGEING_TIME);
    table.learn(address, from.port, Instant::START);
    rig.fdb = table.view();
    rig.publish();
    assert_eq!(rig.pass(2, 1), [1]);
}

#[test]
fn controller_traffic_bypasses_the_tables() {
    let mut rig = WorkerRig::new(&[(2, &[Action::output(PortNo(3))])]);
    let config = InBandConfig {
        local: MacAddr::from_u64(9),
        next_hops: Vec::new(),
        remotes: vec!["10.0.0.9:6653".parse().expect("an address")],
        queue: Some(QueueId(7)),
    };
    rig.in_band = InBand::compile(config, None, Instant::START);
    rig.publish();
    let mut request = frame_to(u64::MAX >> 16, 9);
    let head = [8, 6, 0, 1, 8, 0, 6, 4, 0, 1];
    request[12..22].copy_from_slice(&head);
    assert_eq!(rig.pass_frame(1, &request), [2, 3], "by NORMAL");
    assert_eq!(rig.pass_frame(2, &request), [1, 3], "and by no rule");
    assert_eq!(rig.pass(1, 9), [0; 0]);
    assert_eq!(rig.pass(2, 9), [3], "the tables process others");
}

#[test]
fn control_frames_are_punted_on_configured_ports() {
    let to_second = [Action::output(PortNo(2))];
    let mut rig = WorkerRig::new(&[(1, &to_second), (3, &to_second)]);
    let slow = true;
    let speaks = PuntedProtocols {
        slow,
        ..PuntedProtocols::default()
    };
    rig.punts = PuntTable::compile([(PortNo(1), speaks)]);
    rig.publish();
    let mut message = frame_to(0x0180_c200_0002, 1);
    message[12..15].copy_from_slice(&[0x88, 0x09, 1]);
    assert_eq!(rig.pass_frame(1, &message), [0; 0]);
    let Ok(WorkerEvent::Punted(from, bytes)) = rig.protocols.pop() else {
        panic!("it is the bridge's")
    };
    assert_eq!((from, &*bytes), (key(1), &message[..]));
    assert_eq!(rig.pass_frame(3, &message), [2], "port 3 understands none");
    assert_eq!(rig.pass(1, 9), [2], "others are forwarded");
}

#[test]
fn protocol_frames_and_removed_queues_pass_a_full_event_ring() {
    let mut rig = WorkerRig::new(&[(1, &[Action::output(PortNo::NORMAL)])]);
    let speaks = PuntedProtocols {
        slow: true,
        ..PuntedProtocols::default()
    };
    rig.punts = PuntTable::compile([(PortNo(1), speaks)]);
    rig.publish();
    // Addresses to learn fill the ring of events.
    for destination in 5..=9 {
        rig.pass(1, destination);
    }
    assert_eq!(rig.events.slots(), 2, "the ring is full");
    let mut message = frame_to(0x0180_c200_0002, 1);
    message[12..15].copy_from_slice(&[0x88, 0x09, 1]);
    rig.pass_frame(1, &message);
    assert!(matches!(rig.protocols.pop(), Ok(WorkerEvent::Punted(..))));
    // A flood of protocol frames by one port fills the ring of protocols; the end of a queue waits.
    for _ in 0..100 {
        rig.pass_frame(1, &message);
    }
    assert_eq!(rig.protocols.slots(), 2, "the ring is full");
    rig.hosts.remove(1);
    rig.worker.turn(Instant::START);
    let counters = &rig.worker.forwarder.reporter.links.counters;
    assert_eq!(counters.dropped(WorkerDrop::PuntPoliced), 101 - 64);
    while let Ok(event) = rig.protocols.pop() {
        assert!(matches!(event, WorkerEvent::Punted(..)));
    }
    rig.worker.turn(Instant::START);
    assert!(matches!(rig.protocols.pop(), Ok(WorkerEvent::QueueGone(gone, _)) if gone == key(2)));
}

#[test]
fn blocked_port_drops_frames_and_may_learn() {
    let normal: &[Action] = &[Action::output(PortNo::NORMAL)];
    let mut rig = WorkerRig::new(&[(1, normal), (2, &[Action::output(PortNo(3))]), (3, normal)]);
    let passages = [
        (PortNo(1), BlockedPort::LearnOnly),
        (PortNo(2), BlockedPort::LearnOnly),
    ];
    rig.stp_filter = StpFilter::compile(
        passages
            .into_iter()
            .chain([(PortNo(3), BlockedPort::DropAll)]),
    );
    rig.publish();
    for port in 1..=3 {
        assert_eq!(rig.pass(port, 9), [0; 0]);
    }
    assert_eq!(rig.drops(), [("spanning_tree", 3)]);
    let Ok(WorkerEvent::Learn(from, address)) = rig.events.pop() else {
        panic!("NORMAL learns");
    };
    assert_eq!((from, address.mac), (key(1), MacAddr::from_u64(1)));
    assert!(rig.events.pop().is_err(), "and no other action does");
    rig.stp_filter = StpFilter::compile([]);
    rig.publish();
    assert_eq!(rig.pass(2, 9), [3]);
}

#[test]
fn program_is_passed_when_no_frame_can_meet_the_older_one() {
    let mut rig = WorkerRig::new(&[]);
    let progress = Arc::clone(&rig.worker.forwarder.reporter.links.progress);
    assert_eq!(progress.passed(), Generation(1));
    rig.add_rule(1, &[Action::output(PortNo(2))]);
    rig.publish();
    assert!(rig.worker.has_news());
    assert_eq!(progress.passed(), Generation(1));
    assert_eq!(
        rig.pass(1, 9),
        [2],
        "the first frame after it meets the new rule"
    );
    assert_eq!(progress.passed(), Generation(2));
    assert!(!rig.worker.has_news());
}

/// Returns the packet count of the only rule after a batch of `count` frames, most of which hit the
/// flow cache, before and after `what`.
fn counted_of(count: usize, what: impl FnOnce(&mut WorkerRig)) -> [u64; 2] {
    let mut rig = WorkerRig::new(&[]);
    let matching = Match::any().with(flow::Field::EthDst, 9).expect("legal");
    let instructions = Instructions::apply(vec![Action::output(PortNo(2))]);
    let rule = FlowMod::new(FlowModCommand::Add, 1, matching, instructions);
    let changes = rig.pipeline.flow_mod(&rule, Instant::START);
    rig.compiled.queue_changes(&changes.expect("legal"));
    rig.publish();
    rig.worker.turn(Instant::START);
    *rig.worker.runner = Runner::with_flow_cache(0);
    let mut batch = Batch::new();
    for _ in 0..count {
        let mut frame = rig.pool.take().expect("a buffer");
        frame.copy_from(&frame_to(9, 1)).expect("room");
        batch.push(frame).expect("room");
    }
    let sent = rig.hosts[0].send(&mut batch, &mut rig.pool);
    sent.expect("the wire is there");
    rig.worker.turn(Instant::START);
    let pipeline = rig.pipeline.clone();
    let counted = || {
        let mut rules = pipeline.rules(base::TableId::ALL);
        rules
            .next()
            .map_or(0, |rule| rule.counters.totals().packets)
    };
    let before = counted();
    what(&mut rig);
    [before, counted()]
}

#[test]
fn deferred_counters_are_flushed_before_a_rest() {
    let all = Batch::FRAMES_MAX;
    // A short batch is counted before its frames leave.
    let short = DEFERRED_MIN - 1;
    assert_eq!(counted_of(short, |_| ()), [short as u64; 2]);
    let [later, still_later] = counted_of(all, |_| ());
    assert!(later < 64 && later == still_later, "it is put off");
    let no_frames = |rig: &mut WorkerRig| assert_eq!(rig.worker.turn(Instant::START).frames, 0);
    assert_eq!(counted_of(all, no_frames), [later, 64]);
    let newer = |rig: &mut WorkerRig| {
        rig.publish();
        rig.worker.process_news(Instant::START);
    };
    assert_eq!(counted_of(all, newer), [later, 64]);
    let rest =
        |rig: &mut WorkerRig| assert!(rig.worker.rest(WorkerActivity::Asleep, |_| ()).is_some());
    assert_eq!(counted_of(all, rest), [later, 64]);
    // A worker that others wait for may keep its counters deferred.
    let gives_way = |pays: bool, rig: &mut WorkerRig| {
        let progress = Arc::clone(&rig.worker.forwarder.reporter.links.progress);
        rig.worker
            .yield_core(pays, || assert_eq!(progress.is_resting(), pays));
    };
    assert_eq!(counted_of(all, |rig| gives_way(true, rig)), [later, 64]);
    assert_eq!(counted_of(all, |rig| gives_way(false, rig)), [later, later]);
    assert_eq!(
        counted_of(all, |rig| *rig.worker.runner = Runner::new(0)),
        [later, 64]
    );
}

#[test]
fn bytes_in_the_command_ring_are_limited_until_the_worker_takes_them() {
    let mut rig = WorkerRig::new(&[]);
    let progress = Arc::clone(&rig.worker.forwarder.reporter.links.progress);
    let frame = Frame::from_bytes(&frame_to(9, 8));
    let mut queued = 0;
    while progress.reserve_transmit(1 << 20) {
        queued += 1;
    }
    assert_eq!(queued, 24);
    assert!(!progress.reserve_transmit(1));
    progress.release_transmit(frame.len());
    assert!(progress.reserve_transmit(frame.len()));
    assert!(!progress.reserve_transmit(frame.len()));
    let command = WorkerCommand::Transmit(key(3), frame.clone(), None);
    assert!(rig.commands.push(command).is_ok(), "the ring has room");
    rig.worker.turn(Instant::START);
    assert!(progress.reserve_transmit(frame.len()));
}

#[test]
fn packet_out_is_sent_before_the_next_publication_is_passed() {
    let mut rig = WorkerRig::new(&[]);
    let frame = Frame::from_bytes(&frame_to(9, 8));
    let command = WorkerCommand::Transmit(key(3), frame, None);
    assert!(rig.commands.push(command).is_ok(), "the ring has room");
    rig.publish();
    let turn = rig.worker.turn(Instant::START);
    assert!(turn.news && rig.worker.forwarder.reporter.links.progress.passed() == Generation(2));
    let mut batch = Batch::new();
    rig.hosts[2]
        .receive(&mut rig.pool, &mut batch)
        .expect("the wire is there");
    assert_eq!(batch.len(), 1);
}

#[test]
fn packet_ins_beyond_the_ring_are_counted_only() {
    let both = [
        Action::output(PortNo::CONTROLLER),
        Action::output(PortNo(2)),
    ];
    let mut rig = WorkerRig::new(&[(1, &both)]);
    for _ in 0..3 {
        assert_eq!(rig.pass(1, 9), [2]);
    }
    assert_eq!(rig.drops(), [("packet_in_queue_full", 1)]);
    let Ok(WorkerEvent::PacketIn(event)) = rig.events.pop() else {
        panic!("a frame for the controllers")
    };
    assert_eq!((event.from, event.data), (key(1), frame_to(9, 1)));
}

#[test]
fn packet_ins_of_a_port_leave_half_of_the_ring_to_others() {
    let counters = Arc::new(PacketInCounters::default());
    let capacity = 8;
    let mut queued = Vec::new();
    while !counters.exceeds_share(capacity - queued.len()) {
        queued.push(QueuedPacketIn::new(&counters));
    }
    assert_eq!(queued.len(), 5);
    let other = Arc::new(PacketInCounters::default());
    assert!(!other.exceeds_share(capacity - queued.len()));
    queued.clear();
    assert!(!counters.exceeds_share(capacity));
}

#[test]
fn packet_ins_above_the_rate_are_counted_only() {
    let both = [
        Action::output(PortNo::CONTROLLER),
        Action::output(PortNo(2)),
    ];
    let mut rig = WorkerRig::new(&[(1, &both)]);
    rig.policing.policer.set(PacketRate::new(1, Some(2)));
    for _ in 0..5 {
        assert_eq!(rig.pass(1, 9), [2]);
    }
    let sent = [("packet_in_sent", 2), ("packet_in_policed", 3)];
    assert_eq!(rig.policing.counters.read(), sent);
    assert_eq!(rig.drops(), []);
    assert_eq!(std::iter::from_fn(|| rig.events.pop().ok()).count(), 2);
}

#[test]
fn queue_exchange_returns_the_old_queue() {
    let mut rig = WorkerRig::new(&[(1, &[Action::output(PortNo(2))])]);
    let [mut ours, mut theirs] = memory::pair(["switch", "host"], 64);
    let (back, returned) = channel();
    let queue = ours.take_queues().pop().expect("one queue");
    let exchange = |key| QueueExchange {
        key,
        queue,
        back,
        purpose: QueuePurpose::Keep,
    };
    let command = WorkerCommand::Exchange(Box::new(exchange(key(2))));
    assert!(rig.commands.push(command).is_ok(), "the ring has room");
    let turn = rig.worker.turn(Instant::START);
    assert!(turn.ports_changed && turn.news);
    let old = returned.try_recv().expect("the old queue returns");
    assert_eq!(old.purpose, QueuePurpose::Keep);
    rig.hosts[1] = theirs.take_queue().expect("not taken yet");
    assert_eq!(rig.pass(1, 9), [2], "it leaves by the new one");
}

#[test]
fn failed_port_is_retired_and_others_continue() {
    let mut rig = WorkerRig::new(&[(1, &[Action::output(PortNo::ALL)])]);
    rig.hosts.remove(1);
    let turn = rig.worker.turn(Instant::START);
    assert!(turn.ports_changed && turn.news);
    assert!(matches!(rig.protocols.pop(), Ok(WorkerEvent::QueueGone(gone, _)) if gone == key(2)));
    assert_eq!(rig.pass(1, 9), [2], "the second host left is at port 3");
    assert_eq!(rig.drops(), [("no_port", 1)]);
}

#[test]
fn frames_of_the_control_thread_leave_in_several_turns_before_a_generation_is_passed() {
    let mut rig = WorkerRig::new(&[(1, &[Action::output(PortNo(2))])]);
    let passed = |rig: &WorkerRig| rig.worker.forwarder.reporter.links.progress.passed();
    let before = passed(&rig);
    let long = Frame::from_bytes(&[2; 60_000]);
    for _ in 0..12 {
        let command = WorkerCommand::Transmit(key(3), long.clone(), None);
        assert!(rig.commands.push(command).is_ok(), "the ring has room");
    }
    rig.publish();
    let mut turns = 0;
    while passed(&rig) == before {
        turns += 1;
        assert!(turns < 10, "the ring is emptied");
        rig.worker.turn(Instant::START);
    }
    // Five frames a turn.
    assert_eq!(turns, 3);
    assert!(rig.worker.forwarder.reporter.links.commands.is_empty());
}

#[test]
fn stop_command_ends_the_worker() {
    let mut rig = WorkerRig::new(&[]);
    assert!(
        rig.commands.push(WorkerCommand::Stop).is_ok(),
        "the ring has room"
    );
    assert!(rig.worker.turn(Instant::START).stopped);
}

mod capture;
mod recirculation;

#[test]
fn mirrored_ports_copy_frames_in_both_directions() {
    let out = |port| Action::output(PortNo(port));
    let rules: [(u128, &[Action]); 2] = [(1, &[out(2)]), (2, &[out(1), out(3)])];
    let mut rig = WorkerRig::new(&rules);
    let mirror = |key: &str, ingress_ports, egress_ports| MirrorConfig {
        key: key.to_owned(),
        all: false,
        ingress_ports,
        egress_ports,
        vlans: None,
        output: MirrorOutput::Port(vec![PortNo(4)]),
        snaplen: Some(20),
    };
    rig.add_port(4);
    let mirrors = [
        mirror("in", vec![PortNo(1)], Vec::new()),
        mirror("out", Vec::new(), vec![PortNo(3)]),
    ];
    rig.mirrors = Mirrors::compile(&mirrors, None);
    rig.publish();
    assert_eq!(rig.pass(1, 0xb), [2, 4]);
    assert_eq!(rig.pass(2, 0xa), [1, 3, 4]);
    // An output port of a mirror is reserved.
    assert_eq!(rig.pass(4, 0xa), [0; 0]);
    assert_eq!(rig.drops(), [("mirror_output", 1)]);
    rig.mirrors = None;
    rig.publish();
    assert_eq!(rig.pass(1, 0xb), [2]);
}

mod flow_meter;
mod flow_recorder;
mod sampling;
