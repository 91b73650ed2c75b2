//! The counters of a worker: received frames, flow-cache hits, drops by reason, and slow-path
//! packets by reason. Plain loads and stores in cells that only the worker writes to; readers add
//! up the workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fastpath::SlowPathReason;
use packet::SegmentError;
use pipeline::DropReason;

/// The reason why a worker dropped a frame or an event, in addition to the drop reasons of the
/// interpreter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum WorkerDrop {
    /// The program does not contain the port's bridge (not yet, or no longer).
    NoBridge,
    /// The egress port has no queue (not yet, or no longer).
    NoPort,
    /// The egress queue was full.
    PortFull,
    /// No buffer was left for a copy or a segment.
    NoBuffer,
    /// The frame would become too many segments for a tunnel, a mirror or a packet-in.
    TooManySegments,
    /// `NORMAL` could not read the frame's addresses.
    NormalUnreadable,
    /// `NORMAL` filtered the frame: its destination is reserved for bridges or behind its ingress
    /// port.
    NormalFiltered,
    /// The port of the destination does not forward at present.
    NormalPortDown,
    /// The ingress port does not carry the frame's VLAN.
    NormalVlan,
    /// The ingress bond dropped the frame: a duplicate on an inactive member, or a frame of a local
    /// source that the other end sent back.
    NormalBond,
    /// A tag could not be changed: no room, or malformed headers behind the tag.
    Tag,
    /// A learn request was lost because the event ring was full.
    LearnQueueFull,
    /// An address or rule was not learned because its port exceeds the rate.
    LearnPoliced,
    /// A packet-in was lost because the event ring was full.
    PacketInQueueFull,
    /// A punted frame was lost because the ring of protocols was full.
    PuntQueueFull,
    /// A punted frame was lost because its port exceeds the rate.
    PuntPoliced,
    /// The ingress port is reserved for mirror output.
    MirrorOutput,
    /// The spanning tree blocks the ingress port.
    SpanningTree,
    /// A capture record was lost because the event ring was full.
    CaptureQueueFull,
    /// A multicast membership message was lost because the event ring was full.
    MembershipQueueFull,
    /// A multicast membership message was lost because its port exceeds the rate.
    MembershipPoliced,
    /// A sample was lost because the event ring was full.
    SampleQueueFull,
    /// Frames were not counted in the active flows, because the event ring was full.
    FlowQueueFull,
    /// A frame was not counted in the active flows, because the worker has too many records.
    FlowUnrecorded,
    /// A frame was not counted by flow, because the flow table was full.
    FlowsLost,
    /// The virtual port has no peer.
    NoPeer,
    /// The ingress policer of the port dropped the frame.
    IngressPoliced,
    /// The egress policer of the port dropped the frame.
    EgressPoliced,
    /// The frame or its batch reached the recirculation limit.
    TooManyHops,
    /// The tunnel has no remote address.
    TunnelNoRemote,
    /// The remote address of the tunnel belongs to this host.
    TunnelToSelf,
    /// No bridge has a route to the tunnel's remote address.
    TunnelNoRoute,
    /// The Ethernet address of the tunnel packet's next hop is not known yet.
    TunnelNoNeighbour,
    /// The tunnel packet would exceed the maximum IP length.
    TunnelTooLong,
    /// The tunnel does not carry this kind of frame.
    TunnelPayload,
    /// Rules set a tunnel field to a value that the tunnel's header cannot express.
    TunnelField,
    /// A tunnel packet is malformed or of an unknown kind.
    TunnelMalformed,
    /// A tunnel packet matches no tunnel port.
    TunnelNoPort,
    /// A tunnel packet has an unknown critical option.
    TunnelOption,
    /// A tunnel packet is marked as congested, and the inner packet cannot carry the mark.
    TunnelCongested,
}

impl From<SegmentError> for WorkerDrop {
    fn from(error: SegmentError) -> Self {
        match error {
            SegmentError::TooMany => Self::TooManySegments,
            SegmentError::NoBuffer | SegmentError::Mismatch => Self::NoBuffer,
        }
    }
}

const DROPS: &[(WorkerDrop, &str)] = &[
    (WorkerDrop::NoBridge, "no_bridge"),
    (WorkerDrop::NoPort, "no_port"),
    (WorkerDrop::PortFull, "port_full"),
    (WorkerDrop::NoBuffer, "no_buffer"),
    (WorkerDrop::TooManySegments, "too_many_segments"),
    (WorkerDrop::NormalUnreadable, "normal_unreadable"),
    (WorkerDrop::NormalFiltered, "normal_filtered"),
    (WorkerDrop::NormalPortDown, "normal_port_down"),
    (WorkerDrop::NormalVlan, "normal_vlan"),
    (WorkerDrop::NormalBond, "normal_bond"),
    (WorkerDrop::Tag, "tag"),
    (WorkerDrop::LearnQueueFull, "learn_queue_full"),
    (WorkerDrop::LearnPoliced, "learn_policed"),
    (WorkerDrop::PacketInQueueFull, "packet_in_queue_full"),
    (WorkerDrop::PuntQueueFull, "punt_queue_full"),
    (WorkerDrop::PuntPoliced, "punt_policed"),
    (WorkerDrop::MirrorOutput, "mirror_output"),
    (WorkerDrop::SpanningTree, "spanning_tree"),
    (WorkerDrop::CaptureQueueFull, "capture_queue_full"),
    (WorkerDrop::MembershipQueueFull, "membership_queue_full"),
    (WorkerDrop::MembershipPoliced, "membership_policed"),
    (WorkerDrop::SampleQueueFull, "sample_queue_full"),
    (WorkerDrop::FlowQueueFull, "flow_queue_full"),
    (WorkerDrop::FlowUnrecorded, "flow_unrecorded"),
    (WorkerDrop::FlowsLost, "flow_export_full"),
    (WorkerDrop::NoPeer, "no_peer"),
    (WorkerDrop::IngressPoliced, "ingress_policed"),
    (WorkerDrop::EgressPoliced, "egress_policed"),
    (WorkerDrop::TooManyHops, "too_many_hops"),
    (WorkerDrop::TunnelNoRemote, "tunnel_no_remote"),
    (WorkerDrop::TunnelToSelf, "tunnel_to_self"),
    (WorkerDrop::TunnelNoRoute, "tunnel_no_route"),
    (WorkerDrop::TunnelNoNeighbour, "tunnel_no_neighbour"),
    (WorkerDrop::TunnelTooLong, "tunnel_too_long"),
    (WorkerDrop::TunnelPayload, "tunnel_payload"),
    (WorkerDrop::TunnelField, "tunnel_field"),
    (WorkerDrop::TunnelMalformed, "tunnel_malformed"),
    (WorkerDrop::TunnelNoPort, "tunnel_no_port"),
    (WorkerDrop::TunnelOption, "tunnel_option"),
    (WorkerDrop::TunnelCongested, "tunnel_congested"),
];

/// The work of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerUsage {
    /// Received frames.
    pub frames: u64,
    /// Received batches.
    pub batches: u64,
    /// The duration of all turns that received frames.
    pub busy: Duration,
}

/// The counters of one worker, in cache lines that no other worker writes to.
#[derive(Debug)]
#[repr(align(64))]
pub struct WorkerCounters {
    /// Received frames, received batches, and the time spent on them in nanoseconds.
    frames: AtomicU64,
    batches: AtomicU64,
    busy_ns: AtomicU64,
    flow_cache_hits: AtomicU64,
    walk_cache_hits: AtomicU64,
    drops: [AtomicU64; DROPS.len()],
    reasons: [AtomicU64; DropReason::COUNT],
    slow_path: [AtomicU64; SlowPathReason::ALL.len()],
}

impl WorkerCounters {
    /// Returns counters at zero.
    #[must_use]
    pub fn new() -> Arc<Self> {
        let zeros = || AtomicU64::new(0);
        Arc::new(Self {
            frames: zeros(),
            batches: zeros(),
            busy_ns: zeros(),
            flow_cache_hits: zeros(),
            walk_cache_hits: zeros(),
            drops: std::array::from_fn(|_| zeros()),
            reasons: std::array::from_fn(|_| zeros()),
            slow_path: std::array::from_fn(|_| zeros()),
        })
    }

    /// Adds one drop. Called by the worker only.
    pub fn count(&self, drop: WorkerDrop) {
        self.add(drop, 1);
    }

    /// Adds drops. Called by the worker only.
    pub fn add(&self, drop: WorkerDrop, count: usize) {
        bump(&self.drops[drop as usize], count as u64);
    }

    /// Adds a drop by the interpreter. Called by the worker only.
    pub(crate) fn count_reason(&self, reason: DropReason) {
        bump(&self.reasons[reason.index()], 1);
    }

    /// Adds slow-path packets by reason. Called by the worker only.
    pub(crate) fn add_slow_path(&self, counts: [u64; SlowPathReason::ALL.len()]) {
        for (cell, count) in self.slow_path.iter().zip(counts) {
            if count > 0 {
                bump(cell, count);
            }
        }
    }

    /// Sets the number of lookups that have hit the flow cache. Called by the worker only, once per
    /// batch.
    pub(crate) fn set_flow_cache_hits(&self, hits: u64) {
        self.flow_cache_hits.store(hits, Ordering::Relaxed);
    }

    /// Sets the number of packets that have hit the walk cache. Called by the worker only, once per
    /// batch.
    pub(crate) fn set_walk_cache_hits(&self, hits: u64) {
        self.walk_cache_hits.store(hits, Ordering::Relaxed);
    }

    /// Adds a received batch. Called by the worker only.
    pub(crate) fn add_batch(&self, frames: usize) {
        bump(&self.batches, 1);
        bump(&self.frames, frames as u64);
    }

    /// Adds the duration of a turn that received frames. Called by the worker only.
    pub(crate) fn add_busy(&self, took: Duration) {
        bump(
            &self.busy_ns,
            u64::try_from(took.as_nanos()).unwrap_or(u64::MAX),
        );
    }

    /// Returns the work so far.
    pub fn usage(&self) -> WorkerUsage {
        let read = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
        WorkerUsage {
            frames: read(&self.frames),
            batches: read(&self.batches),
            busy: Duration::from_nanos(read(&self.busy_ns)),
        }
    }

    /// Returns the number of lookups that have hit the flow cache.
    pub fn flow_cache_hits(&self) -> u64 {
        self.flow_cache_hits.load(Ordering::Relaxed)
    }

    /// Returns the number of packets that have hit the walk cache.
    pub fn walk_cache_hits(&self) -> u64 {
        self.walk_cache_hits.load(Ordering::Relaxed)
    }

    /// Returns the number of slow-path packets.
    pub fn slow_path_packets(&self) -> u64 {
        let cells = self.slow_path.iter();
        cells.map(|cell| cell.load(Ordering::Relaxed)).sum()
    }

    /// Returns the number of drops of this reason.
    pub fn dropped(&self, drop: WorkerDrop) -> u64 {
        self.drops[drop as usize].load(Ordering::Relaxed)
    }

    /// Returns all counters by name.
    pub fn read(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.drops().chain(self.slow_path_by_reason())
    }

    /// Returns the slow-path packets by reason.
    pub fn slow_path_by_reason(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let rows = SlowPathReason::ALL.iter().zip(&self.slow_path);
        rows.map(|((_, name), cell)| (*name, cell.load(Ordering::Relaxed)))
    }

    /// Returns the drops by reason.
    pub fn drops(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let drops = DROPS
            .iter()
            .zip(&self.drops)
            .map(|((_, name), cell)| (*name, cell));
        let reasons = DropReason::all()
            .zip(&self.reasons)
            .map(|(reason, cell)| (reason.name(), cell));
        drops
            .chain(reasons)
            .map(|(name, cell)| (name, cell.load(Ordering::Relaxed)))
    }
}

/// Adds without a locked instruction: the worker is the only writer.
fn bump(cell: &AtomicU64, count: u64) {
    cell.store(cell.load(Ordering::Relaxed) + count, Ordering::Relaxed);
}
