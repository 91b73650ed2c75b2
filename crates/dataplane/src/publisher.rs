//! The writer's end of the publication: the numbers of programs, how far all workers are, and
//! programs that another has taken the place of, until no worker holds them.
//!
//! When it is time to publish, and what waits until workers have passed a program, is the
//! control thread's.

use std::collections::VecDeque;
use std::sync::Arc;

use super::program::{BridgeProgram, Generation, Program, Publication};
use super::underlay::Underlay;
use super::virtual_links::VirtualLinks;
use super::worker_handle::{WakeWorker, WorkerHandle};

/// Programs that wait to be freed until the workers are woken to let go of them. They
/// share what did not change between them, so a few cost little; asleep, a worker
/// would keep all of a second's.
const RETIRED_MAX: usize = 64;

/// A program that another has taken the place of.
pub struct RetiredProgram {
    /// The program; nobody else has it.
    pub program: Arc<Program>,
    /// Whether it may be the last that holds so many rules that to free it takes long.
    pub is_large: bool,
}

/// See the top of this file.
pub struct Publisher {
    publication: Arc<Publication>,
    /// The newest program's.
    generation: Generation,
    /// How far all workers were when they were asked last.
    passed: Generation,
    /// Programs that workers may still run, the oldest first. They are freed here, never by a worker.
    retired: VecDeque<RetiredProgram>,
    /// What is behind ports within the process, from the next publication on.
    virtual_links: Arc<VirtualLinks>,
    /// What tunnels' packets go by, from then on.
    underlay: Arc<Underlay>,
}

impl Publisher {
    /// Nothing published yet.
    pub fn new(publication: Arc<Publication>) -> Self {
        Self {
            publication,
            generation: Generation::default(),
            passed: Generation::default(),
            retired: VecDeque::new(),
            virtual_links: Arc::default(),
            underlay: Arc::default(),
        }
    }

    /// What tunnels' packets go by.
    pub fn underlay(&self) -> &Underlay {
        &self.underlay
    }

    /// Has tunnels' packets go by this from the next publication on.
    pub fn set_underlay(&mut self, underlay: Underlay) {
        self.underlay = Arc::new(underlay);
    }

    /// What is behind ports within the process.
    pub fn virtual_links(&self) -> &VirtualLinks {
        &self.virtual_links
    }

    /// Has this be behind ports within the process from the next publication on.
    pub fn set_virtual_links(&mut self, virtual_links: VirtualLinks) {
        self.virtual_links = Arc::new(virtual_links);
    }

    /// Publishes the bridges as they are now; `is_large` is of the program that is published
    /// until then.
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
        };
        let program = self.publication.swap(Arc::new(program));
        self.retired.push_back(RetiredProgram { program, is_large });
        // One that is asleep need not be woken for a new program, only to let go of old ones.
        if is_large || self.retired.len() > RETIRED_MAX {
            workers.for_each(WorkerHandle::wake_if_asleep);
        }
        self.generation
    }

    /// How far all workers are, if that is farther than when they were asked last: no frame
    /// will meet what was before.
    pub fn advance<'a, W: WakeWorker + 'a>(
        &mut self,
        workers: impl Iterator<Item = &'a WorkerHandle<W>>,
    ) -> Option<Generation> {
        let slowest = workers.map(|worker| worker.reached(self.generation)).min();
        let passed = slowest.filter(|passed| *passed > self.passed)?;
        self.passed = passed;
        Some(passed)
    }

    /// The programs that no worker holds any more.
    pub fn let_go<'a, W: WakeWorker + 'a>(
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
