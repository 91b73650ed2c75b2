//! The measurement of the time that a worker spends on the frames of each receive queue: from the
//! reception of the frames to the worker's next poll of a dummy.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The timer of a worker, shared by the dummies that it polls.
pub struct ReaderTimer {
    /// Returns the real time, in nanoseconds.
    clock: Box<dyn Fn() -> u64 + Send + Sync>,
    running: Mutex<Option<Measurement>>,
}

/// A measurement in progress.
struct Measurement {
    since: u64,
    total: Arc<AtomicU64>,
}

impl ReaderTimer {
    /// Returns a timer that reads `clock`, in nanoseconds.
    pub fn new(clock: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self {
            clock: Box::new(clock),
            running: Mutex::default(),
        }
    }

    /// Begins a measurement that is added to `total`.
    pub(super) fn start(&self, total: &Arc<AtomicU64>) {
        let measurement = Measurement {
            since: (self.clock)(),
            total: Arc::clone(total),
        };
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        *running = Some(measurement);
    }

    /// Ends the measurement in progress, if any.
    pub(super) fn stop(&self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Measurement { since, total }) = running.take() {
            let spent = (self.clock)().saturating_sub(since);
            total.fetch_add(spent, Ordering::Relaxed);
        }
    }
}
