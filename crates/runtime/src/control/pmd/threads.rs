//! The PMD threads by worker and by core.

use super::PmdThreads;

impl PmdThreads {
    /// Returns the core of the PMD thread that a worker runs.
    pub(in crate::control) fn core_of(&self, worker: usize) -> Option<usize> {
        let mut threads = self.threads.iter();
        let thread = threads.find(|(_, thread)| thread.worker == worker);
        thread.map(|(core, _)| *core)
    }

    /// Returns whether a core has a PMD thread.
    pub(in crate::control) fn has_thread(&self, core: usize) -> bool {
        self.threads.contains_key(&core)
    }
}
