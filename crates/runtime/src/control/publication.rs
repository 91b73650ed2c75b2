//! Programs on their way to the workers: when what changed is published, and what
//! waits until they have passed it.

use std::time::Duration;

use super::Control;
use super::site::Site;
use crate::reaper::LARGE;
use crate::worker_thread::{WakeEvent, WorkerThread};
use dataplane::program::BridgeProgram;
use dataplane::worker_handle::WorkerHandle;

/// A burst of changes is published this often: a rule is in force soon after it
/// came, and a publication, which costs each worker a look at new tables, is shared
/// by many. The first change after a pause, and one that a barrier waits for, is
/// published at once.
const PUBLICATION_INTERVAL: Duration = Duration::from_micros(500);

impl Control {
    /// Publishes the present state of all bridges, if any of it is new and it is time.
    pub(super) fn publish(&mut self) {
        if !self.is_publication_due() {
            return;
        }
        self.next_publication = self.now() + PUBLICATION_INTERVAL;
        let sites = self.sites.iter_mut();
        // Frames meet no bridge until its rules are there.
        let sites = sites.filter(|_| !self.flow_restore_wait);
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
        let generation = self.publisher.publish(bridges, is_large, workers);
        self.virtual_links_changed = false;
        self.capturing.is_unpublished = false;
        for site in self.sites.values_mut() {
            site.bridge.handle_published(generation);
        }
    }

    /// Publishes what is new without waiting for more.
    pub(super) fn publish_at_once(&mut self) {
        self.next_publication = self.now();
        self.publish();
    }

    /// Whether workers do not run the latest of every bridge yet.
    pub(super) fn is_unpublished(&self) -> bool {
        self.virtual_links_changed
            || self.capturing.is_unpublished
            || self.sites.values().any(|site| site.bridge.is_unpublished())
    }

    /// Whether it is time for the next, or somebody waits for it.
    pub(super) fn is_publication_due(&self) -> bool {
        let is_awaited = |site: &Site| site.bridge.is_publication_awaited();
        self.is_unpublished()
            && (self.now() >= self.next_publication || self.sites.values().any(is_awaited))
    }

    /// Does what waited for the workers, as far as they are.
    pub(super) fn settle_passed(&mut self) {
        for old in self.publisher.take_unused(handles(&self.tools.workers)) {
            if old.is_large {
                self.tools.reaper.free(Box::new(old.program));
            }
        }
        let Some(passed) = self.publisher.advance(handles(&self.tools.workers)) else {
            return;
        };
        let bridges: Vec<_> = self.sites.keys().copied().collect();
        for bridge in bridges {
            let mut effects = Vec::new();
            if let Some(site) = self.sites.get_mut(&bridge) {
                site.bridge.handle_passed(passed, &mut effects);
            }
            self.carry_out(bridge, effects, &mut None);
        }
        self.resume_deferred();
    }
}

fn handles(workers: &[WorkerThread]) -> impl Iterator<Item = &WorkerHandle<WakeEvent>> {
    workers.iter().map(|worker| &worker.handle)
}
