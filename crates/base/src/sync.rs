//! Synchronization primitives: those of the standard library in builds, and those of `shuttle` with
//! the feature `model`. Shuttle's scheduler may switch threads at each operation on them, so that a
//! test can explore the interleavings of threads.
//!
//! The module contains only the primitives of model-checked code: atomics, parking, a channel, a
//! mutex, and a once-cell. The model treats every atomic as sequentially consistent: it finds steps
//! in the wrong order, not memory orderings that are too weak.

#[cfg(not(feature = "model"))]
pub use std::{
    sync::{Mutex, MutexGuard, OnceLock, atomic, mpsc},
    thread,
};

#[cfg(feature = "model")]
pub use {
    modelled::{OnceLock, explore},
    shuttle::{
        sync::{Mutex, MutexGuard, atomic, mpsc},
        thread,
    },
};

/// Marks a point at which the model may switch threads, next to an operation that this module does
/// not wrap. Does nothing in builds.
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

    /// The stack size of threads in a model: several times the need of tables and workers compiled
    /// without optimisation.
    const STACK_LEN: usize = 4 << 20;

    /// The number of priority changes of the PCT scheduler: most faults need two or three.
    const CHANGES: usize = 4;

    /// Runs `model` twice `count` times, each time with another interleaving of its threads: with
    /// random choices at each step, and with priorities that change a few times. On a failure the
    /// schedule is printed, and `shuttle::replay` reproduces it.
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

    /// Reads an atomic that no thread writes.
    pub(super) fn scheduling_point() {
        AtomicBool::new(false).load(Ordering::SeqCst);
    }

    /// A model of the standard library's `OnceLock` with a single writer.
    #[derive(Debug)]
    pub struct OnceLock<T> {
        is_set: AtomicBool,
        value: std::sync::OnceLock<T>,
    }

    impl<T> OnceLock<T> {
        /// Returns an empty cell.
        #[must_use]
        pub const fn new() -> Self {
            Self {
                is_set: AtomicBool::new(false),
                value: std::sync::OnceLock::new(),
            }
        }

        /// Returns the value, if it was set.
        pub fn get(&self) -> Option<&T> {
            let is_set = self.is_set.load(Ordering::Acquire);
            self.value.get().filter(|_| is_set)
        }

        /// Sets the value.
        ///
        /// # Errors
        /// The cell already has a value; the new one is returned.
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
