//! Encoding and decoding of the most frequent messages.

use std::hint::black_box;
use std::time::Duration;

use base::{Cookie, PortNo, TableId, Xid};
use flow::text::{parse_actions, parse_flow_line};
use flow::{FlowMod, FlowStats, PacketIn, PacketInReason, PacketOut, PipelineFields, Refusal};
use gungraun::{library_benchmark, library_benchmark_group};
use openflow::{ErrorMessage, Hello, Message, MultipartReply, Version, VersionSet};
use testkit::workload::{FRAME, TWELVE_FIELDS, frame};

fn flow_mod() -> FlowMod {
    parse_flow_line(TWELVE_FIELDS).unwrap()
}

fn add_flow() -> Message {
    Message::FlowMod(flow_mod())
}

fn packet_in() -> Message {
    let data = frame(FRAME);
    Message::PacketIn(PacketIn {
        reason: PacketInReason::Action,
        table: TableId(3),
        cookie: Cookie(7),
        registers: PipelineFields::new(PortNo(1)),
        total_len: data.len().try_into().unwrap(),
        data,
        userdata: Vec::new(),
        continuation: Vec::new(),
    })
}

fn packet_out() -> Message {
    Message::PacketOut(PacketOut {
        buffer: None,
        registers: PipelineFields::new(PortNo(1)),
        actions: parse_actions("output:2").unwrap(),
        data: frame(FRAME),
    })
}

/// The reply to a dump of a hundred rules with twelve fields.
fn hundred_flows() -> Message {
    let FlowMod {
        matching,
        instructions,
        ..
    } = flow_mod();
    let flow = |number: u16| FlowStats {
        table: TableId(0),
        priority: number,
        cookie: Cookie(number.into()),
        matching: matching.clone(),
        instructions: instructions.clone(),
        idle_timeout_s: 0,
        hard_timeout_s: 0,
        importance: 0,
        flags: flow::FlowFlags::default(),
        duration: Duration::from_millis(number.into()),
        idle_age: Duration::ZERO,
        hard_age: Duration::ZERO,
        packets: number.into(),
        bytes: u64::from(number) * 60,
    };
    let flows = (0..100).map(flow).collect();
    Message::reply(MultipartReply::Flow(openflow::FlowFormat::Standard, flows))
}

fn error() -> Message {
    let refusal = Refusal::FlowModTableFull;
    Message::Error(ErrorMessage::new(refusal, Version::V13, vec![0; 64]))
}

fn hello() -> Message {
    Message::Hello(Hello::new(VersionSet::ALL))
}

fn encoded(message: &Message, version: Version) -> Vec<u8> {
    let mut out = Vec::new();
    message.encode(Xid(7), version, &mut out).unwrap();
    out
}

/// A message, and a buffer with room for its bytes, as a connection has it.
fn with_room(message: Message, version: Version) -> (Message, Version, Vec<u8>) {
    let room = encoded(&message, version).len();
    (message, version, Vec::with_capacity(room))
}

/// Encoded bytes that were decoded once before: otherwise the state of the allocator, and so the
/// count, would depend on earlier allocations, down to the length of the program's path.
fn bytes(message: Message, version: Version) -> (Vec<u8>, Version) {
    let bytes = encoded(&message, version);
    drop(Message::decode(&bytes, version).unwrap());
    (bytes, version)
}

#[library_benchmark]
#[bench::hello(with_room(hello(), Version::V15))]
#[bench::error(with_room(error(), Version::V13))]
#[bench::flow_mod_v10(with_room(add_flow(), Version::V10))]
#[bench::flow_mod_v13(with_room(add_flow(), Version::V13))]
#[bench::flow_mod_v15(with_room(add_flow(), Version::V15))]
#[bench::packet_in_v10(with_room(packet_in(), Version::V10))]
#[bench::packet_in_v13(with_room(packet_in(), Version::V13))]
#[bench::packet_out_v13(with_room(packet_out(), Version::V13))]
#[bench::hundred_flows_v10(with_room(hundred_flows(), Version::V10))]
#[bench::hundred_flows_v13(with_room(hundred_flows(), Version::V13))]
#[bench::hundred_flows_v15(with_room(hundred_flows(), Version::V15))]
fn encode(room: (Message, Version, Vec<u8>)) -> (Message, Vec<u8>) {
    let (message, version, mut out) = room;
    black_box(&message)
        .encode(Xid(7), version, &mut out)
        .unwrap();
    (message, out)
}

#[library_benchmark]
#[bench::hello(bytes(hello(), Version::V15))]
#[bench::error(bytes(error(), Version::V13))]
#[bench::flow_mod_v10(bytes(add_flow(), Version::V10))]
#[bench::flow_mod_v13(bytes(add_flow(), Version::V13))]
#[bench::flow_mod_v15(bytes(add_flow(), Version::V15))]
#[bench::packet_in_v13(bytes(packet_in(), Version::V13))]
#[bench::packet_out_v10(bytes(packet_out(), Version::V10))]
#[bench::packet_out_v13(bytes(packet_out(), Version::V13))]
#[bench::hundred_flows_v13(bytes(hundred_flows(), Version::V13))]
fn decode(bytes: (Vec<u8>, Version)) -> (Message, Vec<u8>) {
    let (bytes, version) = bytes;
    let (_, message) = Message::decode(black_box(&bytes), version).unwrap();
    (message, bytes)
}

library_benchmark_group!(name = messages, benchmarks = [encode, decode]);
