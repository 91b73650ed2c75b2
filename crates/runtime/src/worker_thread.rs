//! A worker's thread: pinned to its core, polling while frames arrive, asleep while none do.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use ports::Queue;
use ports::dummy::ReaderTimer;
use rtrb::{Consumer, RingBuffer};
use rustix::event::{EventfdFlags, PollFd, PollFlags, epoll, eventfd, poll};
use rustix::fs::Timespec;
use rustix::thread::CpuSet;

use super::busy_poll::BusyPoll;
use super::clock::{Clock, ClockReading};
use super::inbox::Inbox;
use crate::error::SwitchError;
use crate::watchdog::{Heartbeat, WatchedThread};
use dataplane::counters::WorkerCounters;
use dataplane::messages::{WorkerCommand, WorkerEvent};
use dataplane::program::{Publication, WorkerActivity, WorkerProgress};
use dataplane::worker::{Worker, WorkerLinks};
use dataplane::worker_handle::{WakeWorker, WorkerHandle};

/// The interval of queue maintenance under load, and asleep; also done after a wake-up by a queue
/// that had no frame.
const MAINTENANCE_AWAKE: Duration = Duration::from_millis(10);
const MAINTENANCE_ASLEEP: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

/// The time that a busy worker runs before it yields to other threads of its core. Without such
/// threads, the system call costs a thousandth of the time. With them, the kernel would preempt the
/// worker some milliseconds later, most likely within a batch, and barriers would wait until it
/// runs again.
const YIELD_INTERVAL: Duration = Duration::from_micros(250);

/// A yield of at least this time means that another thread used the core: it is longer than the
/// system call takes.
const CORE_SHARED_MIN: Duration = Duration::from_micros(20);

/// The scheduler slice of a worker: the smallest that the kernel grants. A yield costs a worker the
/// rest of its slice.
const SLICE: Duration = Duration::from_micros(100);

/// The stack size of a worker, in bytes: several times the need of the deepest nesting of groups,
/// clones and resubmissions that the interpreter allows.
const STACK_LEN: usize = 16 << 20;

/// The size of a worker's command ring: bursts of packet-out.
const COMMANDS_MAX: usize = 4096;

/// The size of a worker's event ring.
pub(crate) const EVENTS_MAX: usize = 1024;

/// The size of a worker's ring of protocol frames: the bursts of 64 ports.
const PROTOCOLS_MAX: usize = 4096;

/// Wakes a sleeping worker (eventfd).
pub(crate) struct WakeEvent(Arc<OwnedFd>);

impl WakeWorker for WakeEvent {
    fn wake(&self) {
        // If the counter is saturated, the worker is woken already.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }
}

/// The place of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WorkerPlace {
    /// The core to show.
    pub(crate) core: usize,
    /// The NUMA node, if the worker can be a PMD thread.
    pub(crate) numa: Option<u32>,
    /// The cores of the system that the worker may use.
    pub(crate) cpus: Vec<usize>,
}

/// The control thread's end of a worker.
pub(crate) struct WorkerThread {
    /// The command ring, progress and wake-up.
    pub(crate) handle: WorkerHandle<WakeEvent>,
    /// The worker's core; that of a PMD thread may be one that the switch pretends to have.
    pub(crate) core: usize,
    /// The NUMA node if the worker can be a PMD thread; none for the main worker beside them.
    pub(crate) numa: Option<u32>,
    /// Measures the time spent on frames of each receive queue of dummies.
    pub(crate) timer: Arc<ReaderTimer>,
    /// The worker's events.
    pub(crate) events: Consumer<WorkerEvent>,
    /// The worker's protocol frames and removed queues.
    pub(crate) protocols: Consumer<WorkerEvent>,
    /// The worker's drop and slow-path counters.
    pub(crate) counters: Arc<WorkerCounters>,
    heartbeat: Arc<Heartbeat>,
    thread: JoinHandle<()>,
}

impl WorkerThread {
    /// Starts worker number `writer`.
    pub(crate) fn start(
        writer: usize,
        place: WorkerPlace,
        publication: &Arc<Publication>,
        inbox: Inbox,
        clock: Clock,
    ) -> Result<Self, SwitchError> {
        let wake = Arc::new(
            eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
                .map_err(|error| SwitchError::system("creating an eventfd")(error.into()))?,
        );
        let (commands, commands_in) = RingBuffer::new(COMMANDS_MAX);
        let (events_out, events) = RingBuffer::new(EVENTS_MAX);
        let (protocols_out, protocols) = RingBuffer::new(PROTOCOLS_MAX);
        let (progress, counters) = (WorkerProgress::new(), WorkerCounters::new());
        let shared = WorkerLinks {
            publication: Arc::clone(publication),
            progress: Arc::clone(&progress),
            counters: Arc::clone(&counters),
            commands: commands_in,
            events: events_out,
            protocols: protocols_out,
        };
        let sleeper = Sleeper::new(Arc::clone(&wake));
        let WorkerPlace { core, numa, cpus } = place;
        let heartbeat = Arc::new(Heartbeat::default());
        let own_heartbeat = Arc::clone(&heartbeat);
        let thread = std::thread::Builder::new()
            .name(format!("worker-{core}"))
            .stack_size(STACK_LEN)
            .spawn(move || {
                pin(&cpus);
                set_slice(SLICE);
                let worker = Worker::new(writer, shared);
                run(worker, sleeper, &inbox, clock, &own_heartbeat);
                own_heartbeat.rest();
            })
            .map_err(SwitchError::system("starting a worker thread"))?;
        Ok(Self {
            handle: WorkerHandle::new(commands, progress, WakeEvent(wake)),
            core,
            numa,
            timer: Arc::new(ReaderTimer::new(move || clock.unwarped().as_nanos())),
            events,
            protocols,
            counters,
            heartbeat,
            thread,
        })
    }

    /// Returns the worker as the watchdog checks it.
    pub(crate) fn watched(&self) -> WatchedThread {
        let name = self.thread.thread().name().unwrap_or("worker");
        WatchedThread::worker(name.to_owned(), Arc::clone(&self.heartbeat))
    }

    /// Stops the worker and waits for its end.
    pub(crate) fn stop(mut self) {
        self.handle.send_reliably(WorkerCommand::Stop);
        if self.thread.join().is_err() {
            tracing::error!("a worker thread panicked");
        }
    }
}

/// Pins the thread to these cores. The permission was checked before the start.
fn pin(cpus: &[usize]) {
    let mut set = CpuSet::new();
    cpus.iter().for_each(|cpu| set.set(*cpu));
    if let Err(error) = rustix::thread::sched_setaffinity(None, &set) {
        tracing::warn!(?cpus, %error, "cannot pin a worker to its core");
    }
}

fn run(
    mut worker: Worker,
    mut sleeper: Sleeper,
    inbox: &Inbox,
    clock: Clock,
    heartbeat: &Heartbeat,
) {
    // Waits use the real time, so that a worker also sleeps while a test has stopped the clock.
    let mut last_busy = clock.unwarped();
    let mut last_tended = last_busy;
    let mut last_rest = last_busy;
    let mut busy_poll = BusyPoll::new();
    // `has_served`: a frame has arrived since the last sleep. `has_polled`: the worker has polled
    // in vain since the last frame.
    let (mut has_served, mut has_polled) = (false, false);
    // True if a queue has woken the worker, and no frame has arrived since.
    let mut woken = false;
    // True if another thread used the core during the last yield.
    let mut is_shared = false;
    // The start of the last turn with frames, until its end is known.
    let mut busy_since = None;
    loop {
        let ClockReading { shown, real: now } = clock.read();
        if let Some(since) = busy_since.take() {
            worker.note_busy(now - since);
        }
        heartbeat.beat();
        let turn = worker.turn(shown);
        if turn.stopped {
            return;
        }
        if turn.ports_changed {
            sleeper.watch(&worker);
        }
        if turn.news {
            inbox.wake();
        }
        if turn.frames > 0 {
            if has_polled {
                busy_poll.record_success(now - last_busy);
            }
            (last_busy, busy_since) = (now, Some(now));
            (has_served, has_polled, woken) = (true, false, false);
        }
        let sleeps = turn.frames == 0 && now - last_busy >= busy_poll.span();
        if now - last_tended >= MAINTENANCE_AWAKE || sleeps && woken {
            worker.maintain_queues();
            last_tended = now;
        }
        if sleeps {
            if has_served {
                busy_poll.record_failure();
            }
            woken = sleeper.sleep(&mut worker);
            last_rest = clock.unwarped();
            (has_served, has_polled) = (false, false);
        } else if now - last_rest >= YIELD_INTERVAL {
            // Yields to threads that have waited longer for the core.
            let before = clock.unwarped();
            worker.yield_core(is_shared, std::thread::yield_now);
            last_rest = clock.unwarped();
            is_shared = last_rest - before >= CORE_SHARED_MIN;
        } else if turn.frames == 0 {
            has_polled = true;
            std::hint::spin_loop();
        }
    }
}

/// The wait of an idle worker: for its queues, and for a wake-up by the control thread.
struct Sleeper {
    wake: Arc<OwnedFd>,
    /// The epoll instance; none for few queues, which are polled.
    epoll: Option<OwnedFd>,
}

/// The limit of queues for `poll`. Each costs some hundredths of a microsecond whenever the worker
/// falls asleep. With epoll that is free, but each arriving frame costs its sender a tenth of a
/// microsecond, whether the worker sleeps or not.
const POLLED_MAX: usize = 64;

/// The data of an epoll event: a wake-up by the control thread, or a queue.
const CONTROL_WAKEUP: u64 = 0;
const QUEUE_READY: u64 = 1;

/// The source of a wake-up.
#[derive(Clone, Copy, Default)]
struct WakeSource {
    by_control: bool,
    by_queue: bool,
}

impl Sleeper {
    const fn new(wake: Arc<OwnedFd>) -> Self {
        Self { wake, epoll: None }
    }

    /// Registers the worker's current queues.
    fn watch(&mut self, worker: &Worker) {
        let queues = || worker.queues().filter_map(Queue::readiness);
        self.epoll = None;
        if queues().count() > POLLED_MAX {
            match self.watch_many(queues()) {
                Ok(epoll) => self.epoll = Some(epoll),
                Err(error) => {
                    tracing::error!(%error, "cannot create an epoll instance; the worker polls its ports instead");
                }
            }
        }
    }

    fn watch_many<'a>(&self, queues: impl Iterator<Item = BorrowedFd<'a>>) -> io::Result<OwnedFd> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let wakeup = epoll::EventData::new_u64(CONTROL_WAKEUP);
        epoll::add(&epoll, &self.wake, wakeup, epoll::EventFlags::IN)?;
        for queue in queues {
            let event = epoll::EventData::new_u64(QUEUE_READY);
            epoll::add(&epoll, queue, event, epoll::EventFlags::IN)?;
        }
        Ok(epoll)
    }

    /// Sleeps until a frame or a wake-up arrives. Returns true if a queue woke the worker.
    fn sleep(&self, worker: &mut Worker) -> bool {
        // An interrupted system call counts as a wake-up: the worker polls and sleeps again.
        let woken = worker.rest(WorkerActivity::Asleep, |worker| match &self.epoll {
            Some(epoll) => wait_for_many(epoll),
            None => self.wait_for_few(worker.queues().filter_map(Queue::readiness)),
        });
        let woken = woken.unwrap_or_default();
        if woken.by_control {
            let mut count = [0; 8];
            let _ = rustix::io::read(&self.wake, &mut count);
        }
        woken.by_queue
    }

    fn wait_for_few<'a>(&'a self, queues: impl Iterator<Item = BorrowedFd<'a>>) -> WakeSource {
        let all = [self.wake.as_fd()].into_iter().chain(queues);
        let polled = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut polled: Vec<_> = all.map(polled).collect();
        if poll(&mut polled, Some(&MAINTENANCE_ASLEEP)).is_err() {
            return WakeSource::default();
        }
        let mut has_woken = polled.iter().map(|polled| !polled.revents().is_empty());
        WakeSource {
            by_control: has_woken.next().unwrap_or(false),
            by_queue: has_woken.any(|woken| woken),
        }
    }
}

fn wait_for_many(epoll: &OwnedFd) -> WakeSource {
    let mut ready = [MaybeUninit::uninit(); 1];
    let woken = epoll::wait(epoll, &mut ready, Some(&MAINTENANCE_ASLEEP));
    let first = woken.ok().and_then(|(ready, _)| ready.first().copied());
    let by = first.map(|event| event.data.u64());
    WakeSource {
        by_control: by == Some(CONTROL_WAKEUP),
        by_queue: by == Some(QUEUE_READY),
    }
}

/// Returns the cores that this process may use.
pub(crate) fn allowed_cores() -> Result<Vec<usize>, SwitchError> {
    let set = rustix::thread::sched_getaffinity(None)
        .map_err(|error| SwitchError::system("reading the cores of this process")(error.into()))?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|core| set.is_set(*core))
        .collect())
}

/// Sets the scheduler slice of the calling thread.
pub(crate) fn set_slice(stretch: Duration) {
    if let Err(error) = sys::scheduling::set_time_slice(stretch) {
        tracing::debug!(%error, "cannot set the scheduler slice");
    }
}

#[cfg(test)]
mod tests {
    use base::{Instant, PortNo};
    use packet::Pool;
    use ports::{Batch, QueueCounters};

    use super::*;
    use dataplane::policer::{Policer, PortPolicing};
    use dataplane::program::BridgeId;
    use dataplane::slots::PortKey;

    /// A queue without frames; its eventfd makes it readable.
    struct EventfdQueue(Arc<OwnedFd>);

    impl Queue for EventfdQueue {
        fn receive(&mut self, _: &mut Pool, _: &mut Batch) -> io::Result<()> {
            Ok(())
        }

        fn send(&mut self, _: &mut Batch, _: &mut Pool) -> io::Result<()> {
            Ok(())
        }

        fn readiness(&self) -> Option<BorrowedFd<'_>> {
            Some(self.0.as_fd())
        }

        fn counters(&self) -> Arc<QueueCounters> {
            Arc::default()
        }
    }

    fn bell() -> Arc<OwnedFd> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        Arc::new(bell.expect("an eventfd"))
    }

    /// Returns a worker with `count` queues, and the eventfd of each.
    fn worker(count: u32) -> (Worker, Vec<Arc<OwnedFd>>) {
        let (mut commands, commands_in) = RingBuffer::new(COMMANDS_MAX);
        let mut worker = Worker::new(
            0,
            WorkerLinks {
                publication: Arc::default(),
                progress: WorkerProgress::new(),
                counters: WorkerCounters::new(),
                commands: commands_in,
                events: RingBuffer::new(1).0,
                protocols: RingBuffer::new(1).0,
            },
        );
        let eventfds: Vec<_> = (0..count).map(|_| bell()).collect();
        for (number, bell) in (1..).zip(&eventfds) {
            let key = PortKey {
                bridge: BridgeId(0),
                port: PortNo(number),
            };
            let policing = PortPolicing {
                policer: Policer::new(None),
                counters: Arc::default(),
            };
            let command =
                WorkerCommand::AddPort(key, Box::new(EventfdQueue(Arc::clone(bell))), policing);
            assert!(commands.push(command).is_ok(), "the ring has room");
        }
        assert!(worker.turn(Instant::START).ports_changed);
        (worker, eventfds)
    }

    /// Covers `poll` (few queues) and epoll (many queues).
    #[test]
    fn worker_wakes_for_queue_or_control_thread() {
        let many = u32::try_from(POLLED_MAX).expect("a few") + 1;
        for count in [1, many - 1, many] {
            let (mut worker, eventfds) = worker(count);
            let wake = bell();
            let mut sleeper = Sleeper::new(Arc::clone(&wake));
            sleeper.watch(&worker);
            assert_eq!(sleeper.epoll.is_some(), count == many);
            let last = eventfds.last().expect("there is one");
            WakeEvent(Arc::clone(&wake)).wake();
            assert!(!sleeper.sleep(&mut worker), "it was the nudge");
            WakeEvent(Arc::clone(last)).wake();
            assert!(sleeper.sleep(&mut worker), "it was a queue");
        }
    }
}
