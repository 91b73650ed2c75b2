//! What the control thread and a worker tell each other, by a ring each way.

use std::io;
use std::net::IpAddr;

use base::sync::mpsc::Sender;
use flow::PipelineFields;
use packet::Frame;
use pipeline::{LearnRequest, PacketInMeta};
use ports::Queue;

use super::capture::CaptureRecord;
use super::program::BridgeId;
use super::sampling::{ActionSample, FrameSample};
use super::slots::PortKey;
use crate::policer::PortPolicing;
use flow_export::flows::Ipv4Flow;
use l2::fdb::FdbKey;

/// What the control thread tells a worker, in order.
pub enum WorkerCommand {
    /// Serve this queue.
    AddPort(PortKey, Box<dyn Queue>, PortPolicing),
    /// Serve it no more, and give it back: to close a packet socket takes the kernel some
    /// milliseconds, in which a worker would lose the frames of other ports. Where nobody
    /// sends any more, all have let go of it.
    RemovePort(PortKey, Sender<Box<dyn Queue>>),
    /// Serve it by this queue, and give back the one by which it was served.
    Exchange(Box<QueueExchange>),
    /// Send this frame: the fate of a packet-out, decided already. What goes with it counts
    /// if it leaves by a tunnel.
    Transmit(PortKey, Frame, Option<Box<PipelineFields>>),
    /// End.
    Stop,
}

/// A queue in place of another, and the way back for that one. What has come by it and was
/// not taken yet stays in it.
pub struct QueueExchange {
    /// The port.
    pub key: PortKey,
    /// Its queue from now on.
    pub queue: Box<dyn Queue>,
    /// Where to the other goes.
    pub back: Sender<ReturnedQueue>,
    /// What it is to be there.
    pub purpose: QueuePurpose,
}

/// A queue that a worker has given back.
pub struct ReturnedQueue {
    /// The port's queue.
    pub queue: Box<dyn Queue>,
    /// What it is to be now.
    pub purpose: QueuePurpose,
}

/// What a queue is given back for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueuePurpose {
    /// To be served by this worker.
    Serve(usize),
    /// To be kept until a worker wants one that only sends.
    Keep,
}

/// What a worker tells the control thread. Events that find no room are dropped
/// and counted: a storm of them must not slow forwarding.
pub enum WorkerEvent {
    /// A frame for the controllers.
    PacketIn(Box<PacketInEvent>),
    /// A station was seen where it was not known to be.
    Learn(PortKey, FdbKey),
    /// A frame that came in here wants this of the tables.
    LearnRule(PortKey, Box<LearnRequest>),
    /// A message of a protocol between switches came in here, which the port is to understand.
    Punted(PortKey, Box<[u8]>),
    /// What became of a frame that somebody watches.
    Captured(Box<CaptureRecord>),
    /// A frame with what was said of multicast groups came in here, in this VLAN.
    Membership(PortKey, u16, Box<[u8]>),
    /// A frame that collectors are told of.
    Sampled(Box<FrameSample>),
    /// A frame that a rule has told to a set of collectors.
    SampledByRule(Box<ActionSample>),
    /// What was counted of a bridge's flows.
    Flows(BridgeId, Vec<Ipv4Flow>),
    /// A tunnel's packet is to go to this host by this port, and where it is, nobody knows.
    Resolve(PortKey, IpAddr),
    /// A queue's device is gone; the queue is no longer served.
    QueueGone(PortKey, io::Error),
}

/// A frame for the controllers.
pub struct PacketInEvent {
    /// Where it came in.
    pub from: PortKey,
    /// Why it is sent, and what was known of it.
    pub meta: PacketInMeta,
    /// Its bytes, as they would be on the wire.
    pub data: Vec<u8>,
}
