//! The watchdog: a thread that checks that every other thread makes progress, reports a thread that
//! does not, and ends the process if it does not recover, so that the monitor or the service manager
//! restarts it. Only while all threads live, it feeds the watchdog of the service manager.
//!
//! Each thread has a [`Heartbeat`], which it changes in each turn of its loop; a thread that waits
//! for work without a limit declares itself idle. The watchdog is a thread of its own, because the
//! control thread, which it checks as well, may be the one that hangs.
//!
//! The line in the log is that of Open vSwitch for a thread that hangs.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use base::Instant;

use crate::clock::Clock;
use crate::service_manager::ServiceManager;

/// The interval in which a thread must change its heartbeat while it has nothing else to do. A
/// worker's sleep is twice as long.
pub(crate) const BEAT_INTERVAL: Duration = Duration::from_millis(500);

/// The interval of checks.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// The time without a heartbeat from which a thread is reported; each further report waits twice as
/// long. With the interval of checks, a stopped worker is reported within two seconds.
const REPORT_AFTER: Duration = Duration::from_millis(1500);

/// The time without a heartbeat after which a worker is dead. A turn is a batch of frames and a few
/// commands, so seconds are a fault; the process is restarted within ten seconds.
const WORKER_LIMIT: Duration = Duration::from_secs(6);

/// The same for other threads. A turn of the control thread may take many seconds: it may open
/// thousands of ports, or search a million rules for each of many flow-mods.
const OTHER_LIMIT: Duration = Duration::from_secs(60);

/// The time between two checks from which all threads get a new start: the whole process was
/// stopped, by a debugger or with its virtual machine.
const PAUSE_MIN: Duration = Duration::from_secs(1);

/// The proof of life of one thread; only this thread changes it. An odd number means that the thread
/// is at work, an even one that it is idle or has ended.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct Heartbeat(AtomicU64);

impl Heartbeat {
    /// Records progress. Without a locked instruction: there is one writer.
    #[inline]
    pub(crate) fn beat(&self) {
        let next = self.0.load(Ordering::Relaxed).wrapping_add(2) | 1;
        self.0.store(next, Ordering::Relaxed);
    }

    /// Declares the thread idle until its next beat.
    pub(crate) fn rest(&self) {
        let idle = self.0.load(Ordering::Relaxed) & !1;
        self.0.store(idle, Ordering::Relaxed);
    }

    fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A thread that the watchdog checks.
#[derive(Debug)]
pub(crate) struct WatchedThread {
    name: String,
    heartbeat: Arc<Heartbeat>,
    /// The time without a heartbeat after which the thread is dead.
    limit: Duration,
    /// The last heartbeat, and the time at which it was new.
    seen: u64,
    since: Instant,
    /// The time without a heartbeat at which the thread is reported next.
    report_at: Duration,
}

/// A thread without progress.
#[derive(Clone, Debug, PartialEq, Eq)]
struct BlockedThread {
    name: String,
    time: Duration,
    /// True if the time is over the limit.
    is_dead: bool,
}

impl WatchedThread {
    /// Watches a worker.
    pub(crate) fn worker(name: String, heartbeat: Arc<Heartbeat>) -> Self {
        Self::new(name, heartbeat, WORKER_LIMIT)
    }

    /// Watches a thread that is no worker.
    pub(crate) fn other(name: &str, heartbeat: Arc<Heartbeat>) -> Self {
        Self::new(name.to_owned(), heartbeat, OTHER_LIMIT)
    }

    fn new(name: String, heartbeat: Arc<Heartbeat>, limit: Duration) -> Self {
        Self {
            name,
            heartbeat,
            limit,
            seen: 0,
            since: Instant::START,
            report_at: REPORT_AFTER,
        }
    }

    /// Records a new start of the observation.
    fn restart(&mut self, now: Instant) {
        (self.seen, self.since) = (self.heartbeat.read(), now);
        self.report_at = REPORT_AFTER;
    }

    /// Returns the thread if it must be reported now.
    fn check(&mut self, now: Instant) -> Option<BlockedThread> {
        let current = self.heartbeat.read();
        let is_idle = current.is_multiple_of(2);
        if is_idle || current != self.seen {
            self.restart(now);
            return None;
        }
        let time = now - self.since;
        let is_dead = time >= self.limit;
        if time < self.report_at && !is_dead {
            return None;
        }
        self.report_at *= 2;
        Some(BlockedThread {
            name: self.name.clone(),
            time,
            is_dead,
        })
    }
}

/// The state of all threads.
#[derive(Debug)]
struct ThreadTable {
    threads: Vec<WatchedThread>,
    checked: Instant,
}

impl ThreadTable {
    /// Returns the threads that must be reported now.
    fn check(&mut self, now: Instant) -> Vec<BlockedThread> {
        let was_paused = now - self.checked >= PAUSE_MIN;
        self.checked = now;
        if was_paused {
            self.threads
                .iter_mut()
                .for_each(|thread| thread.restart(now));
            return Vec::new();
        }
        let threads = self.threads.iter_mut();
        threads.filter_map(|thread| thread.check(now)).collect()
    }

    /// Returns true if every thread has made progress within the time of a report.
    fn all_live(&self, now: Instant) -> bool {
        let mut threads = self.threads.iter();
        threads.all(|thread| now - thread.since < REPORT_AFTER)
    }
}

/// The watchdog's thread.
pub(crate) struct Watchdog {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Watchdog {
    /// Starts the thread.
    pub(crate) fn start(clock: Clock, threads: Vec<WatchedThread>) -> io::Result<Self> {
        let (stop, stopped) = channel();
        let table = ThreadTable {
            threads,
            checked: clock.unwarped(),
        };
        let manager = ServiceManager::from_environment();
        let thread = thread::Builder::new()
            .name("watchdog".into())
            .spawn(move || watch(table, manager, clock, &stopped))?;
        Ok(Self { stop, thread })
    }

    /// Ends the thread. The end of the switch is not watched: its duration has no limit here.
    pub(crate) fn stop(self) {
        drop(self.stop);
        // A panic has ended the process already.
        drop(self.thread.join());
    }
}

fn watch(mut table: ThreadTable, mut manager: ServiceManager, clock: Clock, stop: &Receiver<()>) {
    while stop.recv_timeout(CHECK_INTERVAL) == Err(RecvTimeoutError::Timeout) {
        let now = clock.unwarped();
        for blocked in table.check(now) {
            assert!(
                !blocked.is_dead,
                "{} has made no progress for {} ms",
                blocked.name,
                blocked.time.as_millis()
            );
            report(blocked);
        }
        if table.all_live(now) {
            manager.feed_watchdog(now);
        }
    }
    manager.announce_stop();
}

/// Logs the thread, on a thread of its own: a log that blocks the thread must not block
/// the watchdog. There are a handful of reports before the process ends.
fn report(blocked: BlockedThread) {
    let log = move || {
        let ms = blocked.time.as_millis();
        let name = blocked.name;
        tracing::warn!(target: "ovs_rcu", "blocked {ms} ms waiting for {name} to quiesce");
    };
    // Without a thread the report is lost; the process still ends after the limit.
    drop(
        thread::Builder::new()
            .name("watchdog-log".into())
            .spawn(log),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn table() -> (ThreadTable, Arc<Heartbeat>) {
        let heartbeat = Arc::new(Heartbeat::default());
        let worker = WatchedThread::worker("worker-1".to_owned(), Arc::clone(&heartbeat));
        let table = ThreadTable {
            threads: vec![worker],
            checked: at(0),
        };
        (table, heartbeat)
    }

    /// Checks until `end`; returns the reports as times in milliseconds, and true for a dead thread.
    fn reports(table: &mut ThreadTable, (start, end): (u64, u64)) -> Vec<(u64, bool)> {
        let mut reports = Vec::new();
        for millis in (start..=end).step_by(250) {
            let found = table.check(at(millis));
            reports.extend(found.into_iter().map(|blocked| (millis, blocked.is_dead)));
        }
        reports
    }

    #[test]
    fn stopped_worker_is_reported_within_two_seconds_and_dead_after_six() {
        let (mut table, heartbeat) = table();
        heartbeat.beat();
        let found = reports(&mut table, (250, 6500));
        assert_eq!(found[..2], [(1750, false), (3250, false)]);
        assert_eq!(found[2], (6250, true));
    }

    #[test]
    fn working_and_idle_threads_are_not_reported() {
        let (mut table, heartbeat) = table();
        assert!(reports(&mut table, (250, 10_000)).is_empty(), "not started");
        for second in 11..30 {
            heartbeat.beat();
            let millis = second * 1000;
            assert!(reports(&mut table, (millis - 750, millis)).is_empty());
            assert!(table.all_live(at(millis)));
        }
        heartbeat.rest();
        assert!(reports(&mut table, (29_250, 60_000)).is_empty(), "idle");
        heartbeat.beat();
        assert_eq!(reports(&mut table, (60_250, 62_000)), [(61_750, false)]);
        assert!(!table.all_live(at(62_000)));
    }

    #[test]
    fn pause_of_the_whole_process_is_no_fault() {
        let (mut table, heartbeat) = table();
        heartbeat.beat();
        assert!(reports(&mut table, (250, 1250)).is_empty());
        assert!(table.check(at(100_000)).is_empty());
        assert!(reports(&mut table, (100_250, 101_250)).is_empty());
        assert_eq!(reports(&mut table, (101_500, 101_500)), [(101_500, false)]);
    }
}
