//! By what threads hand things over: the standard library's in builds; with the feature `model`
//! those of `shuttle`, whose scheduler decides who goes on at each of them, so that a test
//! can try the orders in which threads may come.
//!
//! Only what hand-overs are proved by is here: atomics, parking, a channel, and what is
//! written once. The model takes every atomic for sequentially consistent: it finds steps
//! in the wrong order, not an ordering that is too weak.

#[cfg(not(feature = "model"))]
pub use std::{
    sync::{OnceLock, atomic, mpsc},
    thread,
};

#[cfg(feature = "model")]
pub use {
    modelled::{OnceLock, explore},
    shuttle::{
        sync::{atomic, mpsc},
        thread,
    },
};

/// Where another thread may come in between that is not at one of these: beside a step in
/// what this module does not have. Nothing in builds.
#[inline(always)]
pub fn scheduling_point() {
    #[cfg(feature = "model")]
    modelled::scheduling_point();
}

#[cfg(feature = "model")]
mod modelled {
    use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
    use shuttle::{Config, Runner};

    use super::atomic::{AtomicBool, Ordering};

    /// Stacks of threads in a model: several times what tables and workers take that were
    /// compiled without optimisation.
    const STACK_LEN: usize = 4 << 20;

    /// How often a scheduler that orders threads by priority goes on with another
    /// beside: most faults want two or three such moments.
    const CHANGES: usize = 4;

    /// Runs `model` twice `count` times, each time with its threads in another order: by chance at
    /// each step, and by priorities that change a few times. Where it fails, the order is
    /// printed, by which `shuttle::replay` fails again.
    pub fn explore(count: usize, model: fn()) {
        run(RandomScheduler::new(count), model);
        run(PctScheduler::new(CHANGES, count), model);
    }

    fn run(scheduler: impl Scheduler + 'static, model: fn()) {
        let mut config = Config::new();
        config.stack_size = STACK_LEN;
        config.silence_warnings = true;
        Runner::new(scheduler, config).run(model);
    }

    /// Reads what nobody writes.
    pub(super) fn scheduling_point() {
        AtomicBool::new(false).load(Ordering::SeqCst);
    }

    /// Of that name in the standard library, by one writer.
    #[derive(Debug)]
    pub struct OnceLock<T> {
        is_set: AtomicBool,
        value: std::sync::OnceLock<T>,
    }

    impl<T> OnceLock<T> {
        /// Nothing written yet.
        #[must_use]
        pub const fn new() -> Self {
            Self {
                is_set: AtomicBool::new(false),
                value: std::sync::OnceLock::new(),
            }
        }

        /// What was written, if it was.
        pub fn get(&self) -> Option<&T> {
            let is_set = self.is_set.load(Ordering::Acquire);
            self.value.get().filter(|_| is_set)
        }

        /// Writes it.
        ///
        /// # Errors
        /// It was written before; what was to be written comes back.
        pub fn set(&self, value: T) -> Result<(), T> {
            let set = self.value.set(value);
            self.is_set.store(true, Ordering::Release);
            set
        }
    }

    impl<T> Default for OnceLock<T> {
        fn default() -> Self {
            Self::new()
        }
    }
}
