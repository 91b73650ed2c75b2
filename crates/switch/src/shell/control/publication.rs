//! Programs on their way to the workers: when what changed is published, what
//! waits until they have passed it, and when old programs are freed.

use std::sync::Arc;
use std::time::Duration;

use super::site::Site;
use super::{Control, Retired};
use crate::dataplane::program::{BridgeProgram, Generation, Program};
use crate::shell::reaper::LARGE;
use crate::shell::worker_thread::WorkerHandle;

/// A burst of changes is published this often: a rule is in force soon after it
/// came, and a publication, which costs each worker a look at new tables, is shared
/// by many. The first change after a pause, and one that a barrier waits for, is
/// published at once.
const PUBLICATION_INTERVAL: Duration = Duration::from_micros(500);

/// Programs that wait to be freed until the workers are woken to let go of them. They
/// share what did not change between them, so a few cost little; asleep, a worker
/// would keep all of a second's.
const RETIRED_MAX: usize = 64;

impl Control {
    /// Publishes the present state of all bridges, if any of it is new and it is time.
    pub(super) fn publish(&mut self) {
        if !self.is_publication_due() {
            return;
        }
        self.next_publication = self.now() + PUBLICATION_INTERVAL;
        self.generation = Generation(self.generation.0 + 1);
        let bridges = self.sites.iter_mut().map(|(id, site)| {
            let (pipeline, compiled, stations) = site.bridge.snapshot();
            BridgeProgram {
                id: *id,
                pipeline,
                compiled,
                stations,
            }
        });
        let program = Program {
            generation: self.generation,
            bridges: bridges.collect(),
        };
        let old = self.tools.publication.swap(Arc::new(program));
        let gone = self.sites.values().map(|site| site.bridge.removed());
        let is_large = gone.sum::<usize>() >= LARGE;
        self.retired.push_back(Retired {
            program: old,
            is_large,
        });
        for site in self.sites.values_mut() {
            site.bridge.handle_published(self.generation);
        }
        // One that is asleep need not be woken for a new program, only to let go of old ones.
        if is_large || self.retired.len() > RETIRED_MAX {
            let workers = self.tools.workers.iter();
            workers.for_each(WorkerHandle::wake_if_asleep);
        }
    }

    /// Whether workers do not run the latest of every bridge yet.
    pub(super) fn is_unpublished(&self) -> bool {
        self.sites.values().any(|site| site.bridge.is_unpublished())
    }

    /// Whether it is time for the next, or somebody waits for it.
    pub(super) fn is_publication_due(&self) -> bool {
        let is_awaited = |site: &Site| site.bridge.is_publication_awaited();
        self.is_unpublished()
            && (self.now() >= self.next_publication || self.sites.values().any(is_awaited))
    }

    /// Does what waited for the workers, as far as they are.
    pub(super) fn settle_passed(&mut self) {
        self.free_retired();
        let workers = self.tools.workers.iter();
        let passed = |worker: &WorkerHandle| match worker.rests() {
            true => self.generation,
            false => worker.progress.passed(),
        };
        let slowest = workers.map(passed).min();
        let Some(passed) = slowest.filter(|passed| *passed > self.passed) else {
            return;
        };
        self.passed = passed;
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

    /// Frees the programs that no worker holds any more.
    fn free_retired(&mut self) {
        let workers = self.tools.workers.iter();
        let held = workers.map(|worker| worker.progress.passed()).min();
        let is_free = |old: &mut Retired| held.is_some_and(|held| old.program.generation < held);
        while let Some(old) = self.retired.pop_front_if(is_free) {
            if old.is_large {
                self.tools.reaper.free(Box::new(old.program));
            }
        }
    }
}
