//! The rest of a worker. Before it, the worker makes its counters final; after it, the worker
//! checks for news before its next frame.

use std::time::Duration;

use base::sync::scheduling_point;

use super::Worker;
use crate::program::WorkerActivity;

impl Worker {
    /// Records the duration of a turn that received frames.
    pub fn note_busy(&self, took: Duration) {
        self.forwarder.reporter.links.counters.add_busy(took);
    }

    /// Rests by calling `how`, unless there is news. No thread waits for the worker meanwhile: it
    /// holds no frame, and its counters are final.
    pub fn rest<T>(&mut self, activity: WorkerActivity, how: impl FnOnce(&Self) -> T) -> Option<T> {
        self.flush_stats();
        self.forwarder.slots.poll_all();
        self.forwarder.reporter.links.progress.announce(activity);
        let rested = (!self.has_news()).then(|| how(self));
        self.forwarder
            .reporter
            .links
            .progress
            .announce(WorkerActivity::Busy);
        rested
    }

    /// Yields the core for a moment by calling `how`. If that `pays`, no thread waits for the
    /// worker meanwhile; otherwise its counters may stay deferred.
    pub fn yield_core(&mut self, pays: bool, how: impl FnOnce()) {
        if pays || self.has_flushed_stats() {
            self.rest(WorkerActivity::Yielding, |_| how());
        } else {
            how();
        }
    }

    /// Writes the deferred counters.
    pub(super) fn flush_stats(&mut self) {
        self.runner.flush_stats();
    }

    fn has_flushed_stats(&self) -> bool {
        !self.runner.has_pending_stats()
    }

    /// Returns whether there is a newer program or a command.
    pub(super) fn has_news(&self) -> bool {
        let newest = self.forwarder.reporter.links.publication.load().generation;
        scheduling_point();
        newest != self.passed || !self.forwarder.reporter.links.commands.is_empty()
    }
}
