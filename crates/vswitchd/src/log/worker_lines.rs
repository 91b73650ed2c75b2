//! The log lines of workers: a thread writes them, so that a log that blocks (a full pipe, a file
//! system without an answer) does not block forwarding.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use rustix::thread::{CpuSet, sched_setaffinity};
use tracing::Level;

use crate::logging::{LogRecord, Logging};

/// The beginning of the names of workers' threads.
const WORKER: &str = "worker-";

/// The limit of lines that wait for the thread; further ones are lost and counted.
const QUEUE_MAX: usize = 256;

/// A line of a worker.
pub(super) struct WorkerLine {
    pub(super) level: Level,
    pub(super) target: &'static str,
    pub(super) thread: String,
    pub(super) now: Duration,
    pub(super) message: String,
}

/// The queue of workers' lines. Its thread starts with the first line.
#[derive(Default)]
pub(super) struct WorkerLines {
    queue: OnceLock<Option<SyncSender<WorkerLine>>>,
    lost: Arc<AtomicU64>,
}

impl WorkerLines {
    /// Returns true if the lines of this thread are written by another.
    pub(super) fn is_worker(thread: Option<&str>) -> bool {
        thread.is_some_and(|name| name.starts_with(WORKER))
    }

    /// Queues a line, or counts it if the queue is full.
    pub(super) fn send(&self, logging: &Arc<Logging>, line: WorkerLine) {
        let queue = self.queue.get_or_init(|| self.start(Arc::clone(logging)));
        let is_sent = queue
            .as_ref()
            .is_some_and(|queue| queue.try_send(line).is_ok());
        if !is_sent {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Starts the thread; `None` if the system refuses.
    fn start(&self, logging: Arc<Logging>) -> Option<SyncSender<WorkerLine>> {
        let (sender, lines) = sync_channel(QUEUE_MAX);
        let lost = Arc::clone(&self.lost);
        let thread = thread::Builder::new().name("log".to_owned());
        let started = thread.spawn(move || write_lines(&logging, &lines, &lost));
        started.is_ok().then_some(sender)
    }
}

/// Lets this thread run on every core: it begins with the core of the worker that started it.
fn leave_core() {
    let mut all = CpuSet::new();
    (0..CpuSet::MAX_CPU).for_each(|core| all.set(core));
    // A thread that stays on the worker's core costs time, and no more.
    let _ = sched_setaffinity(None, &all);
}

fn write_lines(logging: &Logging, lines: &Receiver<WorkerLine>, lost: &AtomicU64) {
    leave_core();
    for line in lines {
        let record = LogRecord {
            level: line.level,
            target: line.target,
            thread: Some(&line.thread),
            now: line.now,
            message: &line.message,
        };
        logging.write(record);
        let lost = lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            logging.write(LogRecord {
                level: Level::WARN,
                message: &format!("the log is too slow: {lost} lines of workers are lost"),
                ..record
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> WorkerLine {
        WorkerLine {
            level: Level::INFO,
            target: "worker",
            thread: "worker-1".to_owned(),
            now: Duration::ZERO,
            message: "a line".to_owned(),
        }
    }

    #[test]
    fn log_that_blocks_does_not_block_a_worker() {
        // A log that blocks takes no line out of the queue.
        let (queue, blocked) = sync_channel(QUEUE_MAX);
        let lines = WorkerLines::default();
        assert!(lines.queue.set(Some(queue)).is_ok());
        let specs = ["ANY:ANY:OFF".to_owned()];
        let logging = Logging::new(
            &specs,
            crate::logging::LogOutputs::default(),
            Duration::ZERO,
            None,
        );
        let logging = Arc::new(logging.expect("a valid level"));
        for _ in 0..QUEUE_MAX + 10 {
            lines.send(&logging, line());
        }
        assert_eq!(lines.lost.load(Ordering::Relaxed), 10);
        assert_eq!(blocked.try_iter().count(), QUEUE_MAX);
        assert!(
            WorkerLines::is_worker(Some("worker-12")) && !WorkerLines::is_worker(Some("peers"))
        );
    }
}
