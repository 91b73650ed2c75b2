//! What a worker does before others rely on it: that its counts are final, or that it looks for
//! news before its next frame.

use std::time::Duration;

use base::sync::scheduling_point;

use super::Worker;
use crate::program::WorkerActivity;

impl Worker {
    /// Takes note of how long the turn took, if frames came.
    pub fn note_busy(&self, took: Duration) {
        self.shared.counters.add_busy(took);
    }

    /// Rests as `how` does, unless there are news. Nobody waits for the worker meanwhile: it
    /// holds no frame, and all that it has counted is written down.
    pub fn rest<T>(&mut self, posture: WorkerActivity, how: impl FnOnce(&Self) -> T) -> Option<T> {
        self.settle();
        self.slots.spare_none();
        self.shared.progress.take(posture);
        let rested = (!self.has_news()).then(|| how(self));
        self.shared.progress.take(WorkerActivity::Busy);
        rested
    }

    /// Leaves its core to others as `how` does, for a moment. Where it `pays`, nobody waits for
    /// it meanwhile; else what it has counted need not be written down for that.
    pub fn give_way(&mut self, pays: bool, how: impl FnOnce()) {
        if pays || self.has_settled() {
            self.rest(WorkerActivity::Yielding, |_| how());
        } else {
            how();
        }
    }

    /// Writes down what it has counted.
    pub(super) fn settle(&mut self) {
        if let Some(runner) = &mut self.runner {
            runner.flush_stats();
        }
    }

    fn has_settled(&self) -> bool {
        self.runner
            .as_ref()
            .is_none_or(|runner| !runner.has_pending_stats())
    }

    /// Whether there is a newer program or a command.
    pub(super) fn has_news(&self) -> bool {
        let newest = self.shared.publication.load().generation;
        scheduling_point();
        newest != self.passed || !self.shared.commands.is_empty()
    }
}
