//! The writer's end of the publication: generations, the progress of all workers, and replaced
//! programs until no worker holds them.
//!
//! The control thread decides about the time of a publication and about the effects that wait for
//! it.

use std::collections::VecDeque;
use std::sync::Arc;

use super::program::{BridgeProgram, CrossingMode, Generation, Program, Publication};
use super::underlay::Underlay;
use super::virtual_links::VirtualLinks;
use super::worker_handle::{WakeWorker, WorkerHandle};

/// The number of replaced programs above which workers are woken to release them. Programs share
/// unchanged state, so a few cost little; an asleep worker would keep all programs of a second.
const RETIRED_MAX: usize = 64;

/// A program that a newer one has replaced.
pub struct RetiredProgram {
    /// The program; this is the last reference.
    pub program: Arc<Program>,
    /// True if it may hold the last references to so many rules that its deallocation takes long.
    pub is_large: bool,
}

/// The publisher of programs.
pub struct Publisher {
    publication: Arc<Publication>,
    /// The newest generation.
    generation: Generation,
    /// The generation that all workers had passed at the last check.
    passed: Generation,
    /// Replaced programs that workers may still run, oldest first. Never a worker frees them.
    retired: VecDeque<RetiredProgram>,
    /// The peers of virtual ports from the next publication on.
    virtual_links: Arc<VirtualLinks>,
    /// The underlay of tunnels from the next publication on.
    underlay: Arc<Underlay>,
    /// The use of received frames for the list of active flows.
    crossing: CrossingMode,
}

impl Publisher {
    /// Returns a publisher that has published nothing.
    pub fn new(publication: Arc<Publication>) -> Self {
        Self {
            publication,
            generation: Generation::default(),
            passed: Generation::default(),
            retired: VecDeque::new(),
            virtual_links: Arc::default(),
            underlay: Arc::default(),
            crossing: CrossingMode::Off,
        }
    }

    /// Returns the use of received frames for the list of active flows.
    pub const fn crossing(&self) -> CrossingMode {
        self.crossing
    }

    /// Sets the use of received frames for the next publication.
    pub const fn set_crossing(&mut self, crossing: CrossingMode) {
        self.crossing = crossing;
    }

    /// Returns the underlay of tunnels.
    pub fn underlay(&self) -> &Underlay {
        &self.underlay
    }

    /// Sets the underlay of tunnels for the next publication.
    pub fn set_underlay(&mut self, underlay: Underlay) {
        self.underlay = Arc::new(underlay);
    }

    /// Returns the peers of virtual ports.
    pub fn virtual_links(&self) -> &VirtualLinks {
        &self.virtual_links
    }

    /// Sets the peers of virtual ports for the next publication.
    pub fn set_virtual_links(&mut self, virtual_links: VirtualLinks) {
        self.virtual_links = Arc::new(virtual_links);
    }

    /// Publishes the present bridges; `is_large` describes the program that this one replaces.
    pub fn publish<'a, W: WakeWorker + 'a>(
        &mut self,
        bridges: Vec<BridgeProgram>,
        is_large: bool,
        workers: impl Iterator<Item = &'a WorkerHandle<W>>,
    ) -> Generation {
        self.generation = Generation(self.generation.0 + 1);
        let program = Program {
            generation: self.generation,
            bridges,
            virtual_links: Arc::clone(&self.virtual_links),
            underlay: Arc::clone(&self.underlay),
            crossing: self.crossing,
        };
        let program = self.publication.swap(Arc::new(program));
        self.retired.push_back(RetiredProgram { program, is_large });
        // An asleep worker need not be woken for a new program, only to release old ones.
        if is_large || self.retired.len() > RETIRED_MAX {
            workers.for_each(WorkerHandle::wake_if_asleep);
        }
        self.generation
    }

    /// Returns the generation that all workers have passed, if it has advanced since the last call.
    pub fn advance<'a, W: WakeWorker + 'a>(
        &mut self,
        workers: impl Iterator<Item = &'a WorkerHandle<W>>,
    ) -> Option<Generation> {
        let slowest = workers.map(|worker| worker.reached(self.generation)).min();
        let passed = slowest.filter(|passed| *passed > self.passed)?;
        self.passed = passed;
        Some(passed)
    }

    /// Removes and returns the programs that no worker holds.
    pub fn take_unused<'a, W: WakeWorker + 'a>(
        &mut self,
        workers: impl Iterator<Item = &'a WorkerHandle<W>>,
    ) -> impl Iterator<Item = RetiredProgram> {
        let held = workers.map(WorkerHandle::held).min();
        std::iter::from_fn(move || {
            let is_free =
                |old: &mut RetiredProgram| held.is_some_and(|held| old.program.generation < held);
            self.retired.pop_front_if(is_free)
        })
    }
}
