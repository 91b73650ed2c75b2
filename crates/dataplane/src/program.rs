//! What workers run: a snapshot of every bridge's tables and stations, with a
//! number. Published whole, so a frame sees a change whole or not at all.

use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use base::sync::atomic::{AtomicU8, AtomicU64, Ordering, fence};
use base::sync::scheduling_point;
use base::{Instant, PortNo};
use fastpath::{BatchContext, View};
use pipeline::Pipeline;

use super::capture::Captures;
use super::in_band::InBand;
use super::mirrors::Mirrors;
use super::normal::NormalContext;
use super::punt::PuntTable;
use super::sampling::SamplingView;
use super::slots::PortKey;
use super::stp_filter::StpFilter;
use super::switching::SwitchingView;
use super::underlay::Underlay;
use super::virtual_links::VirtualLinks;
use l2::fdb::FdbView;
use l2::multicast_snooping::MulticastView;

/// A bridge's place in a program. Not used again while the process lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BridgeId(pub u32);

impl BridgeId {
    /// None: the host's own interfaces, by their numbers, which tunnels' packets go by.
    pub const HOST: Self = Self(u32::MAX);
}

/// The number of a publication. Barriers and final counts wait for the workers
/// to have passed it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Generation(pub u64);

/// One bridge of a program.
#[derive(Clone)]
pub struct BridgeProgram {
    /// Which bridge.
    pub id: BridgeId,
    /// Its tables.
    pub pipeline: Pipeline,
    /// The same tables, compiled.
    pub compiled: View,
    /// Its stations.
    pub stations: FdbView,
    /// Who is in which multicast group, if the bridge listens in.
    pub multicast: Option<MulticastView>,
    /// What its ports are to `NORMAL`; none if all are plain.
    pub switching: Option<Arc<SwitchingView>>,
    /// What its ports take of what switches say to each other; none if nothing.
    pub punts: Option<Arc<PuntTable>>,
    /// What of its frames is copied, and where to; none if nothing.
    pub mirrors: Option<Arc<Mirrors>>,
    /// Ports that a spanning tree keeps out; none if there are none.
    pub stp_filter: Option<Arc<StpFilter>>,
    /// Who watches its frames; none if nobody does.
    pub captures: Option<Arc<Captures>>,
    /// The way to its controllers through itself; none if there is none.
    pub in_band: Option<Arc<InBand>>,
    /// Which of its frames are told of to collectors; none if none are.
    pub sampling: Option<Arc<SamplingView>>,
}

impl BridgeProgram {
    /// What frames are run on that came in by a port now.
    #[inline]
    pub(crate) fn ground(&self, from: PortNo, now: Instant) -> BatchContext<'_> {
        BatchContext {
            pipeline: &self.pipeline,
            view: &self.compiled,
            in_port: from,
            now,
        }
    }

    /// What decides for `NORMAL`.
    pub fn knowledge(&self) -> NormalContext<'_> {
        NormalContext {
            stations: &self.stations,
            multicast: self.multicast.as_ref(),
            switching: self.switching.as_deref(),
            mirrors: self.mirrors.as_deref(),
        }
    }
}

/// All bridges at one moment.
#[derive(Clone, Default)]
pub struct Program {
    /// The publication's number.
    pub generation: Generation,
    /// The bridges, by id.
    pub bridges: Vec<BridgeProgram>,
    /// What is behind ports within the process.
    pub virtual_links: Arc<VirtualLinks>,
    /// What tunnels' packets go by.
    pub underlay: Arc<Underlay>,
}

impl Program {
    /// The ports at which tunnels' packets come in.
    pub(crate) fn terminating(&self) -> Vec<PortKey> {
        match self.underlay.terminates() {
            true => {
                let ports_of_host = self.underlay.ports_of_host.keys().copied();
                ports_of_host
                    .filter(|key| key.bridge != BridgeId::HOST)
                    .collect()
            }
            false => Vec::new(),
        }
    }

    /// The bridge with this id, if it is still there.
    pub fn bridge(&self, id: BridgeId) -> Option<&BridgeProgram> {
        let place = self
            .bridges
            .binary_search_by_key(&id, |bridge| bridge.id)
            .ok()?;
        Some(&self.bridges[place])
    }
}

/// Where the control thread puts programs and workers find them.
#[derive(Default)]
pub struct Publication(ArcSwap<Program>);

impl Publication {
    /// The newest program, for a moment.
    #[inline]
    pub fn load(&self) -> Guard<Arc<Program>> {
        scheduling_point();
        self.0.load()
    }

    /// The newest program.
    pub fn load_full(&self) -> Arc<Program> {
        scheduling_point();
        self.0.load_full()
    }

    /// The control thread: a newer one. Returns the one before.
    pub(crate) fn swap(&self, program: Arc<Program>) -> Arc<Program> {
        scheduling_point();
        self.0.swap(program)
    }
}

/// What a worker is doing, as far as others have to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum WorkerActivity {
    /// It may be within a batch.
    Busy,
    /// Between two batches, it has left its core to others for a moment.
    Yielding,
    /// Between two batches, it sleeps until it is woken.
    Asleep,
}

/// What one worker and the control thread say to each other outside the rings. Its cache line
/// is not written to by other workers.
#[derive(Debug)]
#[repr(align(64))]
pub struct WorkerProgress {
    passed: AtomicU64,
    /// A [`WorkerActivity`].
    posture: AtomicU8,
}

impl WorkerProgress {
    /// A worker that has passed no generation and is busy.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            passed: AtomicU64::new(0),
            posture: AtomicU8::new(WorkerActivity::Busy as u8),
        })
    }

    /// The worker: no frame will meet a program older than `generation` any more.
    pub fn pass(&self, generation: Generation) {
        self.passed.store(generation.0, Ordering::Release);
    }

    /// The control thread: how far the worker is.
    pub fn passed(&self) -> Generation {
        Generation(self.passed.load(Ordering::Acquire))
    }

    /// The worker: about to rest, or busy again. When it is about to rest it must look for
    /// news once more before it does: either it sees the news, or whoever brought them
    /// sees it resting. When it is busy again it must look for news before its next batch.
    pub(super) fn take(&self, posture: WorkerActivity) {
        self.posture.store(posture as u8, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// The control thread, after bringing news: whether the worker must be woken.
    pub(crate) fn is_asleep(&self) -> bool {
        self.posture() == WorkerActivity::Asleep as u8
    }

    /// The control thread, after bringing news: whether the worker is between two batches,
    /// and will look for them before its next.
    pub(crate) fn is_resting(&self) -> bool {
        self.posture() != WorkerActivity::Busy as u8
    }

    fn posture(&self) -> u8 {
        fence(Ordering::SeqCst);
        self.posture.load(Ordering::SeqCst)
    }
}
