//! Peers, ends and configuration at their worst, at once: connections with the largest messages
//! behind barriers, floods of new addresses, churn of rules and ports, and panics of each thread in
//! turn. The daemon's memory stays below its bound; outside of restarts a configured controller has
//! its barriers answered, and ports that nobody touches lose no frame.
//!
//! `cargo xtask soak --hostile` runs it longer, with more peers.

use std::env;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use openflow::Version;
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use rustix::thread::gettid;
use testbed::{Clock, Failure};

use super::crashes::{THREADS, thread_name};
use super::process::{parent_pid, pid, reply, signal, start_in_background};
use crate::ovsdb::random_changes::traffic::NumberedTraffic;
use crate::support::command::comporta_binary;
use crate::support::context::{SystemTest, TestContext, TestError, TestResult, tests};
use crate::support::controller::TestController;
use crate::support::deployment::{BackgroundDaemon, Deployment};
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] =
    tests![hostile_peers_ends_and_panics_do_not_disturb_others,];

/// Length of a run and the number of peers, unless `cargo xtask soak` sets others, and the limit of
/// a barrier's time outside of restarts; none by default, since other tests run at the same time.
const SECONDS: u64 = 10;
const SECONDS_VARIABLE: &str = "COMPORTA_HOSTILE_SECONDS";
const PEERS: usize = 256;
const PEERS_VARIABLE: &str = "COMPORTA_HOSTILE_PEERS";
const BARRIER_MS_VARIABLE: &str = "COMPORTA_HOSTILE_BARRIER_MS";

/// Time between two panics.
const ROUND: Duration = Duration::from_secs(5);

/// Limit of the daemon's memory: the 768 MB that connections share (decision 0054), and as much as a
/// switch with these ports takes without peers, generously.
const RESIDENT_MAX: u64 = 1 << 30;

/// Time after a restart in which connections of all peers are opened again.
const SETTLE: Duration = Duration::from_secs(2);

/// Interval of barriers.
const BARRIER_INTERVAL: Duration = Duration::from_millis(5);

/// Types of OpenFlow messages (`OFPT_*`), version 1.3.
const VERSION: u8 = 4;
const HELLO: u8 = 0;
const ECHO_REQUEST: u8 = 2;
const ECHO_REPLY: u8 = 3;
const PACKET_OUT: u8 = 13;
const BARRIER_REQUEST: u8 = 20;
const BARRIER_REPLY: u8 = 21;

/// Lengths of a header and of the longest message.
const HEADER_LEN: usize = 8;
const LENGTH_MAX: u16 = u16::MAX;

/// A port, its rules and its controllers.
const BRIDGES: &str = "add-br br0 -- set bridge br0 fail_mode=secure -- add-port br0 p1 -- \
     add-port br0 p2 -- add-br br1 -- add-port br1 p3 -- add-port br1 p4";

fn hostile_peers_ends_and_panics_do_not_disturb_others(context: &TestContext) -> TestResult {
    if env::var_os(SECONDS_VARIABLE).is_none() {
        return Err(TestError::Skip(
            "`cargo xtask soak --hostile` runs it".to_owned(),
        ));
    }
    let seconds = value_of(SECONDS_VARIABLE, SECONDS);
    let peers = usize::try_from(value_of(PEERS_VARIABLE, PEERS as u64))?;
    let limit_ms = value_of(BARRIER_MS_VARIABLE, u64::MAX);
    allow_descriptors(peers);
    let network = TestNetwork::new(context, 5)?;
    let deployment = Deployment::new(&network)?;
    let command = format!(
        "{} vswitchd --monitor --enable-dummy -vconsole:off --log-file",
        comporta_binary().display()
    );
    let first = start_in_background(&deployment, &command)?;
    let monitor = BackgroundDaemon(parent_pid(first.0)?);
    let controller = GoodController::start(&network, &deployment.rundir.join("good.sock"))?;
    deployment.vsctl(&format!(
        "{BRIDGES} -- set-controller br0 unix:{} -- set Controller br0 max_backoff=1000",
        controller.path
    ))?;
    let mut run = HostileRun {
        deployment: &deployment,
        controller,
        resident: ResidentMemory::watch(first.0),
        peers: Vec::new(),
        round: 0,
    };
    let played = run.play(peers, Duration::from_secs(seconds));
    let slowest = run.finish(peers);
    // The monitor starts a daemon again that ends in any other way.
    signal(pid(&deployment)?, Signal::TERM)?;
    let has_exited = || Ok(!Path::new(&format!("/proc/{}", monitor.0)).exists());
    context.wait_until("the monitor to exit", has_exited)?;
    played?;
    assert!(
        slowest.as_millis() < u128::from(limit_ms),
        "a barrier took {slowest:?}"
    );
    Ok(())
}

/// Returns the number in an environment variable, or the default.
fn value_of(name: &str, default: u64) -> u64 {
    let value = env::var(name).ok();
    value
        .and_then(|value| value.parse().ok())
        .unwrap_or(default)
}

/// Raises the limit of open files of this process and of those it starts.
fn allow_descriptors(peers: usize) {
    let limit = getrlimit(Resource::Nofile);
    let needed = Some(4 * peers as u64 + 1024).max(limit.current);
    let maximum = needed.max(limit.maximum);
    // Without the right to raise it, the run has fewer peers.
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: needed,
            maximum,
        },
    );
}

/// The hostile part of a run.
struct HostileRun<'s, 'g> {
    deployment: &'s Deployment<'s, 'g>,
    controller: GoodController,
    resident: ResidentMemory,
    peers: Vec<HostilePeer>,
    round: u32,
}

impl HostileRun<'_, '_> {
    /// Plays rounds for this time, each with a panic of another thread at its end.
    fn play(&mut self, peers: usize, time: Duration) -> Result<(), Failure> {
        let (clock, mut threads) = (Clock::start(), THREADS.iter().cycle());
        let end = clock.now() + time;
        loop {
            self.prepare(peers)?;
            self.play_round(&clock)?;
            if clock.now() >= end {
                return Ok(());
            }
            let name = threads.next().expect("there are threads");
            let daemon = self.panic_thread(name)?;
            self.resident.follow(daemon);
        }
    }

    fn play_round(&mut self, clock: &Clock) -> Result<(), Failure> {
        let network = self.deployment.network;
        self.controller.judge(true);
        let stream = NumberedTraffic::start([1, 2].map(|host| network.host(host)))?;
        let end = clock.now() + ROUND;
        while clock.now() < end && stream.is_running() {
            self.harass()?;
        }
        let received = stream.stop();
        assert!(
            received.as_ref().is_ok_and(|count| *count > 0),
            "{received:?}"
        );
        self.controller.judge(false);
        let most = self.resident.most();
        assert!(most < RESIDENT_MAX, "{most} bytes are resident");
        Ok(())
    }

    /// Prints the figures, and returns the time of the slowest barrier.
    #[expect(clippy::print_stdout, reason = "the figures of `cargo xtask soak`")]
    fn finish(self, peers: usize) -> Duration {
        println!(
            "hostile: {peers} peers, {} turns, {} MB at most; barriers: {}; wake-ups of the \
             controller late by {:.1} ms at most",
            self.round,
            self.resident.stop() >> 20,
            self.controller.percentiles(),
            self.controller.shared.late_us.load(Ordering::Relaxed) as f64 / 1000.0
        );
        self.controller.stop()
    }

    /// Waits for the controller, sets the rules of the ports that nobody touches, and connects the
    /// peers.
    fn prepare(&mut self, peers: usize) -> Result<(), Failure> {
        let network = self.deployment.network;
        let context = network.context;
        let before = self.controller.answered();
        context.wait_until("barriers to be answered", || {
            Ok(self.controller.answered() > before + 2)
        })?;
        for rule in [
            "in_port=p1,actions=output:p2",
            "in_port=p2,actions=output:p1",
        ] {
            self.deployment
                .run_tool(&format!("ovs-ofctl add-flow br0 {rule}"))?;
        }
        network.host(1).ping_until_reply(network.host(2).address)?;
        let socket = self.deployment.rundir.join("br1.mgmt");
        self.peers.clear();
        for _ in 0..peers {
            match HostilePeer::connect(&socket) {
                Ok(peer) => self.peers.push(peer),
                // The backlog of the socket is full: the rest connects in the next round.
                Err(_) => break,
            }
        }
        let clock = Clock::start();
        clock.sleep_until(clock.now() + SETTLE);
        Ok(())
    }

    /// Sends more of everything.
    fn harass(&mut self) -> Result<(), Failure> {
        self.round += 1;
        let network = self.deployment.network;
        self.peers.retain_mut(|peer| peer.push().is_ok());
        network.host(3).send_bytes(&new_stations(self.round))?;
        let socket = self.deployment.rundir.join("br0.mgmt");
        let mut controller = TestController::connect(network.context, &socket, Version::V13)?;
        for rule in 0..200 {
            let metadata = self.round % 8;
            controller.add_flow(&format!(
                "table=1,udp,tp_dst={rule},metadata={metadata},actions=drop"
            ))?;
        }
        controller.barrier();
        let change = match self.round % 2 {
            0 => "--if-exists del-port br1 p5 -- --if-exists del-port br1 d1",
            _ => {
                "--may-exist add-port br1 p5 -- --may-exist add-port br1 d1 -- \
                  set Interface d1 type=tap"
            }
        };
        self.deployment.vsctl(change)?;
        Ok(())
    }

    /// Panics a thread, and returns the process id of the next daemon once it forwards.
    fn panic_thread(&self, name: &str) -> Result<u32, Failure> {
        let old = pid(self.deployment)?;
        let thread = thread_name(old, name)?;
        reply(self.deployment, &["comporta/panic", &thread])?;
        let context = self.deployment.network.context;
        context.wait_for("the process id of a new daemon", || {
            let now = pid(self.deployment).unwrap_or_default();
            Ok((![0, old].contains(&now)).then_some(now))
        })
    }
}

/// Broadcasts from stations that no other round has.
fn new_stations(round: u32) -> Vec<Vec<u8>> {
    let [_, high, middle, low] = round.to_be_bytes();
    let frame = |number: u16| {
        let [first, second] = number.to_be_bytes();
        let source = [2, high, middle, low, first, second];
        [&[0xff; 6][..], &source, &[0x88, 0xb5], &[0; 46]].concat()
    };
    (0..4096).map(frame).collect()
}

/// Returns a header.
fn header(kind: u8, length: u16, xid: u32) -> [u8; HEADER_LEN] {
    let ([high, low], [a, b, c, d]) = (length.to_be_bytes(), xid.to_be_bytes());
    [VERSION, kind, high, low, a, b, c, d]
}

/// A peer that sends the largest messages behind barriers, and reads nothing.
struct HostilePeer {
    stream: UnixStream,
    /// A barrier and the largest packet-out, sent again and again.
    messages: Vec<u8>,
    sent: usize,
}

impl HostilePeer {
    fn connect(socket: &Path) -> io::Result<Self> {
        let mut stream = UnixStream::connect(socket)?;
        stream.write_all(&header(HELLO, 8, 1))?;
        stream.set_nonblocking(true)?;
        let mut messages = header(BARRIER_REQUEST, 8, 2).to_vec();
        messages.extend(header(PACKET_OUT, LENGTH_MAX, 3));
        // No buffer, from the controller, and no actions: the frame is dropped.
        messages.extend([0xff; 4]);
        messages.extend([0xff, 0xff, 0xff, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0]);
        messages.resize(HEADER_LEN + usize::from(LENGTH_MAX), 0);
        Ok(Self {
            stream,
            messages,
            sent: 0,
        })
    }

    /// Sends as much as the socket takes.
    fn push(&mut self) -> io::Result<()> {
        loop {
            match self.stream.write(&self.messages[self.sent..]) {
                Ok(count) => self.sent = (self.sent + count) % self.messages.len(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }
}

/// The largest resident memory of a process, sampled in the background.
struct ResidentMemory {
    shared: Arc<ResidentShared>,
    thread: JoinHandle<()>,
}

#[derive(Default)]
struct ResidentShared {
    pid: AtomicU64,
    most: AtomicU64,
    stop: AtomicBool,
}

impl ResidentMemory {
    const INTERVAL: Duration = Duration::from_millis(50);

    fn watch(pid: u32) -> Self {
        let shared = Arc::new(ResidentShared::default());
        shared.pid.store(pid.into(), Ordering::Relaxed);
        let seen = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            let clock = Clock::start();
            while !seen.stop.load(Ordering::Relaxed) {
                let pid = seen.pid.load(Ordering::Relaxed);
                seen.most.fetch_max(resident_bytes(pid), Ordering::Relaxed);
                clock.sleep_until(clock.now() + Self::INTERVAL);
            }
        });
        Self { shared, thread }
    }

    fn follow(&self, pid: u32) {
        self.shared.pid.store(pid.into(), Ordering::Relaxed);
    }

    fn most(&self) -> u64 {
        self.shared.most.load(Ordering::Relaxed)
    }

    fn stop(self) -> u64 {
        self.shared.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.join();
        self.shared.most.load(Ordering::Relaxed)
    }
}

/// Returns the resident memory of a process; zero if it has ended.
fn resident_bytes(pid: u64) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    number.unwrap_or_default() << 10
}

/// A controller of a bridge that sends a barrier, waits for the answer, and measures the time.
///
/// Its thread has a real-time priority, so that it runs as if on a machine of its own: it takes next
/// to no time, and the kernel would otherwise let it wait up to 100 ms for the threads of this
/// process that flood the switch (a group of processes that mostly sleeps on a core has a small
/// weight there). The switch itself has no such priority.
struct GoodController {
    path: String,
    shared: Arc<ControllerShared>,
    thread: JoinHandle<()>,
}

#[derive(Default)]
struct ControllerShared {
    /// Times of barriers, in microseconds, while they are judged.
    times_us: Mutex<Vec<u64>>,
    answered: AtomicU64,
    /// The longest delay of the controller's own wake-up, in microseconds, while it is judged.
    late_us: AtomicU64,
    is_judged: AtomicBool,
    stop: AtomicBool,
}

impl GoodController {
    fn start(network: &TestNetwork<'_>, path: &Path) -> Result<Self, Failure> {
        let listener = UnixListener::bind(path).map_err(Failure::to("listen for the switch"))?;
        let nonblocking = listener.set_nonblocking(true);
        nonblocking.map_err(Failure::to("listen for the switch"))?;
        let shared = Arc::new(ControllerShared::default());
        let of_thread = Arc::clone(&shared);
        let (id, thread_id) = mpsc::channel();
        let thread = thread::spawn(move || {
            let _ = id.send(gettid().as_raw_nonzero());
            let clock = Clock::start();
            while !of_thread.stop.load(Ordering::Relaxed) {
                if let Ok((stream, _)) = listener.accept() {
                    // It ends with the daemon, which then connects again.
                    let _ = converse(stream, &of_thread, &clock);
                }
                clock.sleep_until(clock.now() + BARRIER_INTERVAL);
            }
        });
        let id = thread_id.recv().expect("the thread sends its id");
        network
            .run(&format!("chrt --fifo --pid 1 {id}"))?
            .expect_success()?;
        Ok(Self {
            path: path.display().to_string(),
            shared,
            thread,
        })
    }

    fn answered(&self) -> u64 {
        self.shared.answered.load(Ordering::Relaxed)
    }

    /// Barriers that are sent and answered while this is true count.
    fn judge(&self, is_judged: bool) {
        self.shared.is_judged.store(is_judged, Ordering::Relaxed);
    }

    fn percentiles(&self) -> String {
        let mut times = self.shared.times_us.lock().expect("no thread panicked");
        times.sort_unstable();
        let at = |share: usize| times.get(times.len().saturating_sub(1) * share / 1000);
        let of = |share: usize| at(share).map_or(0.0, |time| *time as f64 / 1000.0);
        format!(
            "{} in all, median {:.1} ms, 99 % {:.1} ms, 99.9 % {:.1} ms, slowest {:.1} ms",
            times.len(),
            of(500),
            of(990),
            of(999),
            of(1000)
        )
    }

    /// Stops, and returns the time of the slowest barrier.
    fn stop(self) -> Duration {
        self.shared.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.join();
        let times = self.shared.times_us.lock().expect("no thread panicked");
        Duration::from_micros(times.iter().copied().max().unwrap_or_default())
    }
}

/// Sends barriers until the connection ends.
fn converse(mut stream: UnixStream, shared: &ControllerShared, clock: &Clock) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.write_all(&header(HELLO, 8, 1))?;
    let mut xid = 1;
    while !shared.stop.load(Ordering::Relaxed) {
        xid += 1;
        let (start, is_judged) = (clock.now(), shared.is_judged.load(Ordering::Relaxed));
        stream.write_all(&header(BARRIER_REQUEST, 8, xid))?;
        while !is_answered(&mut stream, xid)? {}
        let time = clock.now() - start;
        shared.answered.fetch_add(1, Ordering::Relaxed);
        if is_judged && shared.is_judged.load(Ordering::Relaxed) {
            let mut times = shared.times_us.lock().expect("no thread panicked");
            times.push(micros(time));
        }
        let until = clock.now() + BARRIER_INTERVAL;
        clock.sleep_until(until);
        if is_judged {
            shared
                .late_us
                .fetch_max(micros(clock.now() - until), Ordering::Relaxed);
        }
    }
    Ok(())
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Reads a message, and returns true if it answers the barrier `xid`. Answers echo requests.
fn is_answered(stream: &mut UnixStream, xid: u32) -> io::Result<bool> {
    let mut head = [0; HEADER_LEN];
    stream.read_exact(&mut head)?;
    let [_, kind, high, low, a, b, c, d] = head;
    let length = usize::from(u16::from_be_bytes([high, low]));
    let mut body = vec![0; length.saturating_sub(HEADER_LEN)];
    stream.read_exact(&mut body)?;
    if kind == ECHO_REQUEST {
        head[1] = ECHO_REPLY;
        stream.write_all(&[&head[..], &body].concat())?;
    }
    Ok(kind == BARRIER_REPLY && u32::from_be_bytes([a, b, c, d]) == xid)
}
