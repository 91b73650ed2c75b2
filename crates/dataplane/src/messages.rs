//! Messages between the control thread and a worker, on one ring for each direction.

use std::io;
use std::net::IpAddr;

use base::Instant;
use base::sync::mpsc::Sender;
use flow::PipelineFields;
use packet::tunnel::{OuterHeaders, TunnelHeader};
use packet::{Frame, MacAddr};
use pipeline::{LearnRequest, PacketInMeta};
use ports::Queue;

use super::capture::CaptureRecord;
use super::program::BridgeId;
use super::sampling::{ActionSample, FrameSample};
use super::slots::PortKey;
use crate::policer::{PortPolicing, QueuedPacketIn};
use flow_export::flows::Ipv4Flow;
use l2::fdb::FdbKey;

/// A command of the control thread to a worker; executed in order.
pub enum WorkerCommand {
    /// Serve this queue.
    AddPort(PortKey, Box<dyn Queue>, PortPolicing),
    /// Stop serving the port, and return its queue: to close a packet socket takes the kernel some
    /// milliseconds, in which a worker would lose frames of other ports. When all senders of the
    /// channel are dropped, every worker has released the port.
    RemovePort(PortKey, Sender<Box<dyn Queue>>),
    /// Serve the port by this queue, and return the present one.
    Exchange(Box<QueueExchange>),
    /// Send this frame, an output of a packet-out that the control thread has executed. The
    /// pipeline fields matter if the port is a tunnel.
    Transmit(PortKey, Frame, Option<Box<PipelineFields>>),
    /// Send the flows recorded since the last such command.
    ReportFlows(Sender<Vec<FlowRecord>>),
    /// Run this function. Tests inject faults by it.
    Run(Box<dyn FnOnce() + Send>),
    /// End.
    Stop,
}

/// A replacement of a port's queue, and the channel for the old queue. Received frames that no
/// worker has taken remain in the old queue.
pub struct QueueExchange {
    /// The port.
    pub key: PortKey,
    /// The new queue.
    pub queue: Box<dyn Queue>,
    /// The channel for the old queue.
    pub back: Sender<ReturnedQueue>,
    /// The purpose of the old queue.
    pub purpose: QueuePurpose,
}

/// A queue that a worker has returned.
pub struct ReturnedQueue {
    /// The port's queue.
    pub queue: Box<dyn Queue>,
    /// The new purpose of the queue.
    pub purpose: QueuePurpose,
}

/// The purpose of a returned queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueuePurpose {
    /// This worker serves it.
    Serve(usize),
    /// The control thread keeps it until a worker needs a transmit-only queue.
    Keep,
}

/// An event of a worker for the control thread. Events that find the ring full are dropped and
/// counted: a storm of them must not slow forwarding. Protocol frames and removed queues have a ring
/// of their own.
pub enum WorkerEvent {
    /// A packet-in.
    PacketIn(Box<PacketInEvent>),
    /// A source address on a port other than the learned one.
    Learn(PortKey, FdbKey),
    /// A rule that a frame received on this port learned.
    LearnRule(PortKey, Box<LearnRequest>),
    /// A frame that this port punts.
    Punted(PortKey, Box<[u8]>),
    /// The record of a captured frame.
    Captured(Box<CaptureRecord>),
    /// A multicast membership message that was received on this port in this VLAN.
    Membership(PortKey, u16, Box<[u8]>),
    /// A sample for the exporters.
    Sampled(Box<FrameSample>),
    /// A sample of a `sample` action.
    SampledByRule(Box<ActionSample>),
    /// Flow counts of a bridge.
    Flows(BridgeId, Vec<Ipv4Flow>),
    /// Frames that crossed the datapath.
    Crossed(Box<CrossingReport>),
    /// A tunnel packet needs the Ethernet address of this next hop on this port.
    Resolve(PortKey, IpAddr),
    /// A host port received a message, or a tunnel packet, that names the Ethernet address of a
    /// neighbour.
    Neighbour(PortKey, IpAddr, MacAddr),
    /// The device of a queue disappeared; the worker serves the queue no longer.
    QueueGone(PortKey, io::Error),
}

/// Received frames of a datapath whose active flows are listed.
pub struct CrossingReport {
    /// The ingress port.
    pub from: PortKey,
    /// The tunnel packet that contained the frame; none if a device received the frames.
    pub tunnel: Option<Box<CrossingTunnel>>,
    /// The bytes of each frame.
    pub frames: Vec<Box<[u8]>>,
    /// The time.
    pub at: Instant,
}

/// Received frames with the same values of all fields, while the active flows are listed.
pub struct FlowRecord {
    /// The ingress port.
    pub from: PortKey,
    /// The tunnel packet that contained the first frame; none if a device received it.
    pub tunnel: Option<Box<CrossingTunnel>>,
    /// The first frame, as it would be on the wire.
    pub frame: Box<[u8]>,
    /// The number of frames on the wire.
    pub packets: u64,
    /// The number of their bytes.
    pub bytes: u64,
    /// The time of the last frame.
    pub used: Instant,
}

/// The headers of a decapsulated packet.
pub struct CrossingTunnel {
    /// The outer headers.
    pub outer: OuterHeaders,
    /// The tunnel header.
    pub header: TunnelHeader,
    /// The pipeline fields of the payload.
    pub fields: PipelineFields,
}

/// A frame for the controllers.
pub struct PacketInEvent {
    /// The ingress port.
    pub from: PortKey,
    /// The reason and the metadata of the packet-in.
    pub meta: PacketInMeta,
    /// The bytes as they would be on the wire.
    pub data: Vec<u8>,
    /// The share of the port in the ring, until the event is dropped.
    pub queued: QueuedPacketIn,
}
