//! The program of the workers: a snapshot of every bridge's tables and forwarding database, with a
//! generation. It is published whole, so a frame sees a change whole or not at all.

use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use base::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering, fence};
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

/// The identifier of a bridge, unique for the lifetime of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BridgeId(pub u32);

impl BridgeId {
    /// The pseudo-bridge of the host's own interfaces, by their indices, for tunnel packets.
    pub const HOST: Self = Self(u32::MAX);
}

/// The number of a publication. Barrier replies and final counters wait until all workers have
/// passed it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Generation(pub u64);

/// One bridge of a program.
#[derive(Clone)]
pub struct BridgeProgram {
    /// The bridge.
    pub id: BridgeId,
    /// The tables.
    pub pipeline: Pipeline,
    /// The compiled tables.
    pub compiled: View,
    /// The forwarding database.
    pub fdb: FdbView,
    /// The members of multicast groups, if the bridge snoops.
    pub multicast: Option<MulticastView>,
    /// Settings of `NORMAL` for the ports; none if all have defaults.
    pub switching: Option<Arc<SwitchingView>>,
    /// Control protocols that ports punt; none if no port punts.
    pub punts: Option<Arc<PuntTable>>,
    /// Mirrors; none if there are none.
    pub mirrors: Option<Arc<Mirrors>>,
    /// Ports that the spanning tree blocks; none if no port is blocked.
    pub stp_filter: Option<Arc<StpFilter>>,
    /// Captures; none if there are none.
    pub captures: Option<Arc<Captures>>,
    /// In-band rules; none if in-band control is disabled.
    pub in_band: Option<Arc<InBand>>,
    /// Sampling settings; none if nothing is sampled.
    pub sampling: Option<Arc<SamplingView>>,
}

impl BridgeProgram {
    /// Returns the batch context of frames received on `from`.
    #[inline]
    pub(crate) fn batch_context(&self, from: PortNo, now: Instant) -> BatchContext<'_> {
        BatchContext {
            pipeline: &self.pipeline,
            view: &self.compiled,
            in_port: from,
            now,
        }
    }

    /// Returns the inputs of `NORMAL`.
    pub fn normal_context(&self) -> NormalContext<'_> {
        NormalContext {
            fdb: &self.fdb,
            multicast: self.multicast.as_ref(),
            switching: self.switching.as_deref(),
            mirrors: self.mirrors.as_deref(),
        }
    }
}

/// The use of received frames for the list of active flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CrossingMode {
    /// Workers ignore them: the list is not requested.
    #[default]
    Off,
    /// Workers count them by flow, until the control thread takes the counts.
    Count,
    /// Workers report each of them. Only datapaths with dummies do this.
    Report,
}

/// A snapshot of all bridges.
#[derive(Clone, Default)]
pub struct Program {
    /// The generation.
    pub generation: Generation,
    /// The bridges, by id.
    pub bridges: Vec<BridgeProgram>,
    /// The peers of virtual ports.
    pub virtual_links: Arc<VirtualLinks>,
    /// The underlay of tunnels.
    pub underlay: Arc<Underlay>,
    /// The use of received frames for the list of active flows.
    pub crossing: CrossingMode,
}

impl Program {
    /// Returns the ports that terminate tunnel packets.
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

    /// Returns the bridge with this id, if it exists.
    pub fn bridge(&self, id: BridgeId) -> Option<&BridgeProgram> {
        let place = self
            .bridges
            .binary_search_by_key(&id, |bridge| bridge.id)
            .ok()?;
        Some(&self.bridges[place])
    }
}

/// The shared pointer through which the control thread publishes programs.
#[derive(Default)]
pub struct Publication(ArcSwap<Program>);

impl Publication {
    /// Returns the newest program, for a short use.
    #[inline]
    pub fn load(&self) -> Guard<Arc<Program>> {
        scheduling_point();
        self.0.load()
    }

    /// Returns the newest program.
    pub fn load_full(&self) -> Arc<Program> {
        scheduling_point();
        self.0.load_full()
    }

    /// Publishes a program and returns the previous one. Called by the control thread only.
    pub(crate) fn swap(&self, program: Arc<Program>) -> Arc<Program> {
        scheduling_point();
        self.0.swap(program)
    }
}

/// The activity of a worker, as far as other threads depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum WorkerActivity {
    /// It may be within a batch.
    Busy,
    /// Between two batches, it has yielded its core for a moment.
    Yielding,
    /// Between two batches, it sleeps until another thread wakes it.
    Asleep,
}

/// State that one worker and the control thread share outside the rings. No other worker writes to
/// its cache line.
#[derive(Debug)]
#[repr(align(64))]
pub struct WorkerProgress {
    passed: AtomicU64,
    /// A [`WorkerActivity`].
    activity: AtomicU8,
    /// Bytes of the frames in the command ring.
    transmit_bytes: AtomicUsize,
}

/// The limit of bytes of the frames in the command ring of a worker: packet-outs of the longest
/// message would otherwise take a quarter of a gigabyte.
const TRANSMIT_BYTES_MAX: usize = 24 << 20;

impl WorkerProgress {
    /// Returns the state of a busy worker that has passed no generation.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            passed: AtomicU64::new(0),
            activity: AtomicU8::new(WorkerActivity::Busy as u8),
            transmit_bytes: AtomicUsize::new(0),
        })
    }

    /// Records that no frame will meet a program older than `generation`. Called by the worker
    /// only.
    pub fn pass(&self, generation: Generation) {
        self.passed.store(generation.0, Ordering::Release);
    }

    /// Returns the last generation that the worker passed.
    pub fn passed(&self) -> Generation {
        Generation(self.passed.load(Ordering::Acquire))
    }

    /// Reserves room for a frame in the command ring. Returns false if the limit of bytes is
    /// reached. Called by the control thread only.
    pub(crate) fn reserve_transmit(&self, bytes: usize) -> bool {
        let queued = self.transmit_bytes.load(Ordering::Relaxed);
        let fits = queued + bytes <= TRANSMIT_BYTES_MAX;
        if fits {
            self.transmit_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        fits
    }

    /// Returns the room of a frame that left the command ring. A frame without a reservation
    /// returns none.
    pub(crate) fn release_transmit(&self, bytes: usize) {
        let queued = self.transmit_bytes.load(Ordering::Relaxed);
        self.transmit_bytes
            .fetch_sub(bytes.min(queued), Ordering::Relaxed);
    }

    /// Announces an activity. Called by the worker only. Before it rests, the worker must announce
    /// the rest and then check for news once more: either it sees the news, or their sender sees it
    /// at rest. After it announces that it is busy, it must check for news before its next batch.
    pub(super) fn announce(&self, activity: WorkerActivity) {
        self.activity.store(activity as u8, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Returns whether the worker must be woken. Called by the control thread after it has sent
    /// news.
    pub(crate) fn is_asleep(&self) -> bool {
        self.activity() == WorkerActivity::Asleep as u8
    }

    /// Returns whether the worker is between two batches, and will check for news before its next.
    /// Called by the control thread after it has sent news.
    pub(crate) fn is_resting(&self) -> bool {
        self.activity() != WorkerActivity::Busy as u8
    }

    fn activity(&self) -> u8 {
        fence(Ordering::SeqCst);
        self.activity.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64};

    use super::*;

    /// Turns of a test. Miri is slow, but it shows each thread old values as a processor may.
    const TURNS: u64 = if cfg!(miri) { 60 } else { 2_000 };

    #[test]
    fn worker_sees_news_or_their_sender_sees_it_asleep() {
        for turn in 0..TURNS {
            let (progress, news) = (WorkerProgress::new(), AtomicBool::new(false));
            let (sees_news, is_asleep) = std::thread::scope(|scope| {
                let worker = scope.spawn(|| {
                    progress.announce(WorkerActivity::Asleep);
                    news.load(Ordering::Relaxed)
                });
                let control = scope.spawn(|| {
                    news.store(true, Ordering::Relaxed);
                    progress.is_asleep()
                });
                (worker.join(), control.join())
            });
            let sees_news = sees_news.expect("the worker does not panic");
            let is_asleep = is_asleep.expect("the control thread does not panic");
            assert!(sees_news || is_asleep, "turn {turn}");
        }
    }

    #[test]
    fn work_before_a_passed_generation_is_visible() {
        for turn in 1..=TURNS {
            let (progress, work) = (WorkerProgress::new(), AtomicU64::new(0));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    work.store(turn, Ordering::Relaxed);
                    progress.pass(Generation(turn));
                });
                scope.spawn(|| {
                    if progress.passed() == Generation(turn) {
                        assert_eq!(work.load(Ordering::Relaxed), turn);
                    }
                });
            });
        }
    }
}
