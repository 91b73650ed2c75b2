//! Publication of programs to the workers: when to publish, and the work that waits until all
//! workers have passed a generation.

use std::sync::Arc;
use std::time::Duration;

use base::Instant;

use super::Control;
use super::bridge_runtime::BridgeRuntime;
use crate::reaper::LARGE;
use crate::worker_thread::{WakeEvent, WorkerThread};
use dataplane::program::{BridgeProgram, CrossingMode, Generation, Publication};
use dataplane::publisher::Publisher;
use dataplane::underlay::Underlay;
use dataplane::virtual_links::VirtualLinks;
use dataplane::worker_handle::WorkerHandle;

/// The publication interval during a burst of changes: a rule takes effect soon after it arrives,
/// and many rules share the cost of a publication, which makes each worker load new tables. The
/// first change after a pause, and one that a barrier waits for, is published at once.
const PUBLICATION_INTERVAL: Duration = Duration::from_micros(500);

/// The publications so far, and the state that the next one adds to the bridges.
pub(super) struct Publications {
    publisher: Publisher,
    /// True if workers do not have the latest virtual links (patch and tunnel ports) yet, or the
    /// latest use of received frames.
    virtual_links_changed: bool,
    /// The latest time of the next publication, on the clock that is never stopped.
    next_at: Instant,
}

impl Publications {
    /// Returns publications into this slot, none so far.
    pub(super) fn new(slot: Arc<Publication>) -> Self {
        Self {
            publisher: Publisher::new(slot),
            virtual_links_changed: false,
            next_at: Instant::START,
        }
    }

    /// Returns the use of received frames.
    pub(super) fn crossing(&self) -> CrossingMode {
        self.publisher.crossing()
    }

    /// Has the use of received frames published if it has changed.
    pub(super) fn set_crossing(&mut self, crossing: CrossingMode) {
        if self.publisher.crossing() != crossing {
            self.publisher.set_crossing(crossing);
            self.virtual_links_changed = true;
        }
    }

    /// Returns the underlay of the next publication.
    pub(super) fn underlay(&self) -> &Underlay {
        self.publisher.underlay()
    }

    /// Has the underlay published if it has changed.
    pub(super) fn set_underlay(&mut self, underlay: Underlay) {
        if *self.publisher.underlay() != underlay {
            self.publisher.set_underlay(underlay);
            self.virtual_links_changed = true;
        }
    }

    /// Returns the virtual links of the next publication.
    pub(super) fn virtual_links(&self) -> &VirtualLinks {
        self.publisher.virtual_links()
    }

    /// Has the virtual links published. Returns false if they have not changed.
    pub(super) fn set_virtual_links(&mut self, virtual_links: VirtualLinks) -> bool {
        let is_changed = *self.publisher.virtual_links() != virtual_links;
        if is_changed {
            self.publisher.set_virtual_links(virtual_links);
            self.virtual_links_changed = true;
        }
        is_changed
    }

    /// Returns the latest time of the next publication, on the clock that is never stopped.
    pub(super) const fn next_at(&self) -> Instant {
        self.next_at
    }

    fn publish<'a>(
        &mut self,
        bridges: Vec<BridgeProgram>,
        is_large: bool,
        workers: impl Iterator<Item = &'a WorkerHandle<WakeEvent>>,
    ) -> Generation {
        self.virtual_links_changed = false;
        self.publisher.publish(bridges, is_large, workers)
    }
}

impl Control {
    /// Publishes the state of all bridges, if it has changed and a publication is due.
    pub(super) fn publish(&mut self) {
        if !self.is_publication_due() {
            return;
        }
        self.publications.next_at = self.tools.clock.unwarped() + PUBLICATION_INTERVAL;
        let sites = self.sites.iter_mut();
        // A bridge forwards nothing until its rules are restored.
        let sites = sites.filter(|_| !self.configuration.awaits_flows());
        let bridges = sites.map(|(id, site)| {
            let (pipeline, compiled, fdb) = site.bridge.snapshot();
            let switching = site.bridge.switching().cloned();
            BridgeProgram {
                id: *id,
                pipeline,
                compiled,
                fdb,
                multicast: site.bridge.multicast_view(),
                switching,
                punts: site.bridge.punts().cloned(),
                mirrors: site.bridge.mirrors().cloned(),
                stp_filter: site.bridge.stp_filter().cloned(),
                captures: self.capturing.of(*id).cloned(),
                in_band: site.bridge.in_band().cloned(),
                sampling: site.bridge.sampling().cloned(),
            }
        });
        let bridges = bridges.collect();
        let gone = self.sites.values().map(|site| site.bridge.removed());
        let is_large = gone.sum::<usize>() >= LARGE;
        let workers = handles(&self.tools.workers);
        let generation = self.publications.publish(bridges, is_large, workers);
        self.capturing.is_unpublished = false;
        self.flows.is_stale = true;
        self.checkpoints.note_change();
        for site in self.sites.values_mut() {
            site.bridge.handle_published(generation);
        }
    }

    /// Publishes the changes at once.
    pub(super) fn publish_at_once(&mut self) {
        self.publications.next_at = self.tools.clock.unwarped();
        self.publish();
    }

    /// Returns true if workers do not have the latest state of every bridge.
    pub(super) fn is_unpublished(&self) -> bool {
        self.publications.virtual_links_changed
            || self.capturing.is_unpublished
            || self.sites.values().any(|site| site.bridge.is_unpublished())
    }

    /// Returns true if the interval has passed, or a barrier waits for the publication.
    pub(super) fn is_publication_due(&self) -> bool {
        let is_awaited = |site: &BridgeRuntime| site.bridge.is_publication_awaited();
        self.is_unpublished()
            && (self.tools.clock.unwarped() >= self.publications.next_at
                || self.sites.values().any(is_awaited))
    }

    /// Completes the work that waited for the generation that all workers have passed.
    pub(super) fn complete_passed(&mut self) {
        for old in self
            .publications
            .publisher
            .take_unused(handles(&self.tools.workers))
        {
            if old.is_large {
                self.tools.reaper.free(Box::new(old.program));
            }
        }
        let Some(passed) = self
            .publications
            .publisher
            .advance(handles(&self.tools.workers))
        else {
            return;
        };
        let bridges: Vec<_> = self.sites.keys().copied().collect();
        for bridge in bridges {
            let mut effects = Vec::new();
            if let Some(site) = self.sites.get_mut(&bridge) {
                site.bridge.handle_passed(passed, &mut effects);
            }
            self.apply_effects(bridge, effects, &mut None);
        }
        self.peers.schedule_deferred();
    }
}

fn handles(workers: &[WorkerThread]) -> impl Iterator<Item = &WorkerHandle<WakeEvent>> {
    workers.iter().map(|worker| &worker.handle)
}
