//! Tasks of the runtime that end with their owner.

use tokio::task::JoinHandle;

/// A task that is aborted on drop, with every connection that it serves.
pub(crate) struct Task(JoinHandle<()>);

impl Task {
    /// Spawns the task. Must be called within the runtime.
    pub(crate) fn spawn(task: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(task))
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}
