//! What a worker does, what it drops, and what it leaves to the interpreter, by reason: plain
//! loads and stores in cells of its own, summed by whoever reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fastpath::SlowPathReason;
use pipeline::DropReason;

/// Why a worker dropped a frame, or an event, beside the reasons that the
/// interpreter gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum WorkerDrop {
    /// The port's bridge is not in the program yet, or any more.
    NoBridge,
    /// The egress port has no queue yet, or any more.
    NoPort,
    /// The egress queue was full.
    PortFull,
    /// No buffer was left for a copy or a segment.
    NoBuffer,
    /// `NORMAL` could not read the frame's addresses.
    NormalUnreadable,
    /// `NORMAL` keeps frames for bridges, and those whose destination is where they came from.
    NormalFiltered,
    /// The station's port forwards nothing now.
    NormalPortDown,
    /// The port that it came in by is not in its VLAN.
    NormalVlan,
    /// The bond that it came in by does not take it there: the other end sends it twice, or it is
    /// one of ours that came back.
    NormalBond,
    /// There was no room for a tag, or the tag hid damage.
    Tag,
    /// A station was not learned: the control thread had more to do than it could.
    LearnQueueFull,
    /// A packet-in was not sent: the control thread had more to do than it could.
    PacketInQueueFull,
    /// A message between switches was not taken: the control thread had more to do than it could.
    PuntQueueFull,
    /// It came in by a port that is a mirror's alone.
    MirrorOutput,
    /// A spanning tree keeps out the port that it came in by.
    SpanningTree,
    /// Who watches was not told of a frame: the control thread had more to do than it could.
    CaptureQueueFull,
    /// What was said of multicast groups was not taken: the control thread had more to do.
    MembershipQueueFull,
    /// A sample was not taken: the control thread had more to do than it could.
    SampleQueueFull,
    /// A frame was not counted by its flow: there were more flows than there is room for.
    FlowsLost,
    /// The port within the process has nothing at its other end.
    NoPeer,
    /// More came by the port than may.
    IngressPoliced,
    /// More was to leave by the port than may.
    EgressPoliced,
    /// It has come to as many bridges as a frame may, or its batch to as many as a batch may.
    TooManyHops,
    /// Nothing says where the tunnel's other end is.
    TunnelNoRemote,
    /// The tunnel's other end would be this host.
    TunnelToSelf,
    /// No bridge has a route to the tunnel's other end.
    TunnelNoRoute,
    /// The station is not known yet that the tunnel's packet goes to next.
    TunnelNoNeighbour,
    /// The tunnel's packet would be longer than IP can say.
    TunnelTooLong,
    /// The tunnel does not carry such a frame.
    TunnelPayload,
    /// A tunnel's packet is damaged, or of an unknown kind.
    TunnelMalformed,
    /// A tunnel's packet is of no tunnel that there is.
    TunnelNoPort,
    /// A tunnel's packet has an option that must be known, and is not.
    TunnelOption,
    /// A tunnel's packet has met congestion, and its frame cannot be told of it.
    TunnelCongested,
}

const DROPS: &[(WorkerDrop, &str)] = &[
    (WorkerDrop::NoBridge, "no_bridge"),
    (WorkerDrop::NoPort, "no_port"),
    (WorkerDrop::PortFull, "port_full"),
    (WorkerDrop::NoBuffer, "no_buffer"),
    (WorkerDrop::NormalUnreadable, "normal_unreadable"),
    (WorkerDrop::NormalFiltered, "normal_filtered"),
    (WorkerDrop::NormalPortDown, "normal_port_down"),
    (WorkerDrop::NormalVlan, "normal_vlan"),
    (WorkerDrop::NormalBond, "normal_bond"),
    (WorkerDrop::Tag, "tag"),
    (WorkerDrop::LearnQueueFull, "learn_queue_full"),
    (WorkerDrop::PacketInQueueFull, "packet_in_queue_full"),
    (WorkerDrop::PuntQueueFull, "punt_queue_full"),
    (WorkerDrop::MirrorOutput, "mirror_output"),
    (WorkerDrop::SpanningTree, "spanning_tree"),
    (WorkerDrop::CaptureQueueFull, "capture_queue_full"),
    (WorkerDrop::MembershipQueueFull, "membership_queue_full"),
    (WorkerDrop::SampleQueueFull, "sample_queue_full"),
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
    (WorkerDrop::TunnelMalformed, "tunnel_malformed"),
    (WorkerDrop::TunnelNoPort, "tunnel_no_port"),
    (WorkerDrop::TunnelOption, "tunnel_option"),
    (WorkerDrop::TunnelCongested, "tunnel_congested"),
];

/// What a worker has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerUsage {
    /// Frames that came.
    pub frames: u64,
    /// Batches in which they came.
    pub batches: u64,
    /// The time of the turns in which any came.
    pub busy: Duration,
}

/// The counters of one worker, in cache lines that no other worker writes to.
#[derive(Debug)]
#[repr(align(64))]
pub struct WorkerCounters {
    /// Frames that came, batches of them, and the nanoseconds that they took.
    frames: AtomicU64,
    batches: AtomicU64,
    busy_ns: AtomicU64,
    drops: [AtomicU64; DROPS.len()],
    reasons: [AtomicU64; DropReason::COUNT],
    handed: [AtomicU64; SlowPathReason::ALL.len()],
}

impl WorkerCounters {
    /// Counters at zero.
    #[must_use]
    pub fn new() -> Arc<Self> {
        let zeros = || AtomicU64::new(0);
        Arc::new(Self {
            frames: zeros(),
            batches: zeros(),
            busy_ns: zeros(),
            drops: std::array::from_fn(|_| zeros()),
            reasons: std::array::from_fn(|_| zeros()),
            handed: std::array::from_fn(|_| zeros()),
        })
    }

    /// The worker: one more of these.
    pub fn count(&self, drop: WorkerDrop) {
        self.add(drop, 1);
    }

    /// The worker: so many more of these.
    pub fn add(&self, drop: WorkerDrop, count: usize) {
        bump(&self.drops[drop as usize], count as u64);
    }

    /// The worker: the interpreter dropped a frame.
    pub(crate) fn count_reason(&self, reason: DropReason) {
        bump(&self.reasons[reason.index()], 1);
    }

    /// The worker: so many frames were handed to the interpreter, for each reason.
    pub(crate) fn add_handed(&self, counts: [u64; SlowPathReason::ALL.len()]) {
        for (cell, count) in self.handed.iter().zip(counts) {
            if count > 0 {
                bump(cell, count);
            }
        }
    }

    /// The worker: a batch of so many frames has come.
    pub(crate) fn add_batch(&self, frames: usize) {
        bump(&self.batches, 1);
        bump(&self.frames, frames as u64);
    }

    /// The worker: a turn in which frames came took so long.
    pub(crate) fn add_busy(&self, took: Duration) {
        bump(
            &self.busy_ns,
            u64::try_from(took.as_nanos()).unwrap_or(u64::MAX),
        );
    }

    /// What it has done.
    pub fn work(&self) -> WorkerUsage {
        let read = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
        WorkerUsage {
            frames: read(&self.frames),
            batches: read(&self.batches),
            busy: Duration::from_nanos(read(&self.busy_ns)),
        }
    }

    /// How many frames were handed to the interpreter.
    pub fn handed(&self) -> u64 {
        let cells = self.handed.iter();
        cells.map(|cell| cell.load(Ordering::Relaxed)).sum()
    }

    /// How many of these.
    pub fn dropped(&self, drop: WorkerDrop) -> u64 {
        self.drops[drop as usize].load(Ordering::Relaxed)
    }

    /// Every counter by name.
    pub fn read(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.drops().chain(self.interpreted())
    }

    /// What was handed to the interpreter, by reason.
    pub fn interpreted(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let rows = SlowPathReason::ALL.iter().zip(&self.handed);
        rows.map(|((_, name), cell)| (*name, cell.load(Ordering::Relaxed)))
    }

    /// What was dropped, by reason.
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
