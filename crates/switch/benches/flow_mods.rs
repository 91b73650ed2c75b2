//! The cost of a flow-mod from its bytes to a compiled table, without sockets and threads:
//! nanoseconds of decoding, of the tables and of compiling, and the memory of a rule. Flows are
//! those of the lab's experiment `flow-table`. `cargo bench -p switch --bench flow_mods --
//! 1000000`; for instruction counts, run the built binary under `valgrind --tool=callgrind`.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measurement prints, and may fail"
)]

use std::hint::black_box;
use std::time::Duration;

use base::{Instant, PortNo, TableId, Xid};
use fastpath::Classifier;
use flow::{Action, Field, FlowMod, FlowModCommand, Instructions, Match, MatchBuilder};
use openflow::{
    BoxedMessage, Channel, ChannelEvent, ChannelOptions, ChannelSide, Message, Version, VersionSet,
};
use pipeline::{Changes, Limits, Pipeline};

/// The default number of flows.
const FLOWS: u32 = 200_000;

/// Bytes of one socket read while the peer does not pause.
const READ_LEN: usize = 64 * 1024;

/// Flow-mods that are prefetched together, as in the control thread.
const TOGETHER: usize = 16;

/// The durations of the stages.
#[derive(Clone, Copy, Default)]
struct Took {
    reading: Duration,
    tables: Duration,
    compiling: Duration,
    flows: u32,
}

impl Took {
    fn print(&self, name: &str) {
        let each = |took: Duration| took.as_secs_f64() * 1e9 / f64::from(self.flows.max(1));
        let (reading, tables, compiling) =
            (each(self.reading), each(self.tables), each(self.compiling));
        println!(
            "{name:8} {reading:7.0} ns read {tables:7.0} ns tables {compiling:7.0} ns compile {:7.0} ns in all",
            reading + tables + compiling
        );
    }
}

/// The bridge under test, without threads.
struct Bench {
    channel: Channel,
    pipeline: Pipeline,
    classifier: Classifier,
    changes: Changes,
    snapshot: Option<(Pipeline, fastpath::View)>,
}

impl Bench {
    fn new() -> Self {
        let options = ChannelOptions {
            versions: VersionSet::only(Version::V10),
            ..ChannelOptions::default()
        };
        let mut channel = Channel::new(ChannelSide::Switch, options, Instant::START);
        let peer = Channel::new(ChannelSide::Controller, options, Instant::START);
        channel.handle_input(peer.pending(), Instant::START);
        assert!(matches!(channel.poll_event(), Some(ChannelEvent::Up(_))));
        Self {
            channel,
            pipeline: Pipeline::new(Limits::default(), 2),
            classifier: Classifier::new(),
            changes: Changes::default(),
            snapshot: None,
        }
    }

    /// Processes one socket read and a publication.
    fn read(&mut self, bytes: &[u8], took: &mut Took) {
        let began = processor_time();
        self.channel.handle_input(bytes, Instant::START);
        let mut messages = Vec::new();
        while let Some(event) = self.channel.poll_event() {
            let ChannelEvent::Received(received) = event else {
                panic!("{event:?}");
            };
            messages.push(received);
        }
        let read = processor_time();
        for together in messages.chunks(TOGETHER) {
            self.pipeline.prefetch(together.iter().map(command));
            for command in together.iter().map(command) {
                let (now, changes) = (Instant::START, &mut self.changes);
                self.pipeline.flow_mod_into(command, now, changes).unwrap();
                self.classifier.take_changes(changes);
                took.flows += 1;
            }
        }
        self.channel.recycle(messages);
        let changed = processor_time();
        let view = self.classifier.publish(&self.pipeline);
        self.snapshot = Some((self.pipeline.clone(), view));
        let compiled = processor_time();
        took.reading += read - began;
        took.tables += changed - read;
        took.compiling += compiled - changed;
    }

    fn add(&mut self, bytes: &[u8]) -> Took {
        let mut took = Took::default();
        for bytes in bytes.chunks(READ_LEN) {
            self.read(bytes, &mut took);
        }
        took
    }

    fn delete_all(&mut self) -> Duration {
        let everything = FlowMod {
            table: TableId::ALL,
            ..FlowMod::new(
                FlowModCommand::Delete,
                0,
                Match::any(),
                Instructions::default(),
            )
        };
        let began = processor_time();
        let changes = self.pipeline.flow_mod(&everything, Instant::START).unwrap();
        self.classifier.queue_changes(&changes);
        self.snapshot = Some((
            self.pipeline.clone(),
            self.classifier.publish(&self.pipeline),
        ));
        let took = processor_time() - began;
        drop(black_box(changes));
        took
    }
}

fn command(message: &BoxedMessage) -> &FlowMod {
    match &message.message {
        Message::FlowMod(command) => command,
        _ => panic!("{message:?}"),
    }
}

/// Encodes the messages that add the flows of these numbers.
fn messages(numbers: std::ops::Range<u32>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for number in numbers {
        let actions = Instructions::apply(vec![Action::output(PortNo(1 + number % 2))]);
        let flow = FlowMod::new(FlowModCommand::Add, u16::MAX, matching(number), actions);
        let message = Message::FlowMod(flow);
        message.encode(Xid(1), Version::V10, &mut bytes).unwrap();
    }
    bytes
}

fn matching(number: u32) -> Match {
    let address = 0x0a00_0000 | number.wrapping_mul(0x9e_3779) & 0x00ff_ffff;
    let fields: [(Field, u128); 12] = [
        (Field::InPort, 1),
        (Field::EthDst, 0x0200_0000_0002),
        (Field::EthSrc, 0x0200_0000_0001),
        (Field::EthType, 0x0800),
        (Field::VlanVid, 0x1005),
        (Field::VlanPcp, 3),
        (Field::IpDscp, 9),
        (Field::IpProto, 6),
        (Field::Ipv4Src, address.into()),
        (Field::Ipv4Dst, 0x0b00_0001),
        (Field::TcpSrc, 1000),
        (Field::TcpDst, 80),
    ];
    let mut building = MatchBuilder::default();
    for (field, value) in fields {
        building.add_exact(field, value).unwrap();
    }
    building.build()
}

/// Returns the processor time of this thread, which other load disturbs less than a clock.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let nanos = text.split(' ').next().unwrap();
    Duration::from_nanos(nanos.parse().unwrap())
}

/// Returns the resident memory of this process in bytes.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mut lines = status.lines();
    let line = lines.find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kilobytes: f64 = line.trim_end_matches("kB").trim().parse().unwrap();
    kilobytes * 1024.0
}

fn main() {
    let flows = std::env::args().find_map(|argument| argument.parse().ok());
    let flows = flows.unwrap_or(FLOWS);
    let part = flows / 100;
    let [first, middle, last] = [0..part, part..flows - part, flows - part..flows].map(messages);
    let mut bench = Bench::new();
    let before = resident();
    bench.add(&first).print("first");
    bench.add(&middle).print("middle");
    bench.add(&last).print("last");
    let grown = (resident() - before) / f64::from(flows);
    println!("{grown:.0} bytes a flow");
    let deleted = bench.delete_all();
    println!("all deleted in {:.3} s", deleted.as_secs_f64());
}
