//! Test environment: namespaces, `ip`, hosts, and queues that a test drives.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use packet::{Frame, Pool};
use ports::af_packet::AfPacket;
use ports::{Batch, InterfaceName, Port, Queue, QueueCounts};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sys::namespace;

/// Maximum duration of any step.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);

/// Runs `body` in a new namespace in which the kernel sends nothing by itself.
#[expect(clippy::print_stdout, reason = "a skipped test prints its reason")]
pub(crate) fn in_namespace(body: impl FnOnce() + Send) {
    match namespace::create() {
        Ok(made) => namespace::run(made.as_fd(), || {
            disable_ipv6();
            body();
        })
        .unwrap(),
        Err(error) => println!("skipped: not permitted to create network namespaces ({error})"),
    }
}

/// Disables IPv6 in the namespace, which would otherwise send packets by itself.
fn disable_ipv6() {
    for which in ["all", "default"] {
        let switch = format!("/proc/sys/net/ipv6/conf/{which}/disable_ipv6");
        // A kernel without IPv6 has no such file.
        let _ = std::fs::write(switch, "1");
    }
}

/// Runs `ip` with these arguments.
pub(crate) fn ip(words: &str) {
    run("ip", words);
}

/// Runs a program with these arguments, which must succeed.
pub(crate) fn run(program: &str, words: &str) {
    let output = Command::new(program)
        .args(words.split_whitespace())
        .output();
    let output = output.unwrap();
    assert!(output.status.success(), "{program} {words}: {output:?}");
}

/// Returns the output of a program.
pub(crate) fn output_of(program: &str, words: &str) -> String {
    let output = Command::new(program)
        .args(words.split_whitespace())
        .output();
    String::from_utf8(output.unwrap().stdout).unwrap()
}

/// Creates two connected interfaces, `left` and `right`, up, for frames up to 9,014 bytes.
pub(crate) fn link_pair() {
    ip("link add left mtu 9000 type veth peer name right mtu 9000");
    ip("link set left up");
    ip("link set right up");
    wait_up(&["left", "right"]);
}

/// Waits until the kernel has attached the queueing disciplines of interfaces that were set up: it
/// does so asynchronously, and frames sent before are lost.
pub(crate) fn wait_up(interfaces: &[&str]) {
    for interface in interfaces {
        while !output_of("ip", &format!("-o link show {interface}")).contains("state UP") {
            thread::yield_now();
        }
    }
}

pub(crate) fn name(text: &str) -> InterfaceName {
    text.parse().unwrap()
}

pub(crate) const ONE: NonZeroUsize = NonZeroUsize::MIN;

pub(crate) fn open(text: &str) -> AfPacket {
    AfPacket::open(&name(text), ONE).unwrap()
}

/// Opens the only queue of an interface.
pub(crate) fn open_queue(text: &str) -> TestQueue {
    TestQueue::new(open(text).take_queues().remove(0))
}

/// A queue with its pool and batch.
pub(crate) struct TestQueue {
    pub(crate) queue: Box<dyn Queue>,
    pub(crate) pool: Pool,
    pub(crate) batch: Batch,
}

impl TestQueue {
    pub(crate) fn new(queue: Box<dyn Queue>) -> Self {
        Self {
            queue,
            pool: Pool::new(2 * Batch::FRAMES_MAX),
            batch: Batch::new(),
        }
    }

    /// Sends the frames in batches; each is sent or counted.
    pub(crate) fn send(&mut self, frames: &[Frame]) {
        for some in frames.chunks(Batch::FRAMES_MAX) {
            for frame in some {
                self.batch.push(frame.clone()).unwrap();
            }
            while !self.batch.is_empty() {
                self.queue.send(&mut self.batch, &mut self.pool).unwrap();
            }
        }
    }

    /// Receives the frames that are available now.
    pub(crate) fn receive_now(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        loop {
            let before = self.counts();
            let received = self.queue.receive(&mut self.pool, &mut self.batch);
            received.unwrap();
            if self.counts() == before {
                return frames;
            }
            frames.extend(self.batch.iter().cloned());
            self.batch.release(self.batch.len(), &mut self.pool);
        }
    }

    /// Receives the next `count` frames, which must arrive.
    pub(crate) fn receive(&mut self, count: usize) -> Vec<Frame> {
        let mut frames = self.receive_now();
        while frames.len() < count {
            assert!(
                self.wait(TIMEOUT),
                "{} of {count} frames arrived",
                frames.len()
            );
            frames.extend(self.receive_now());
        }
        assert_eq!(frames.len(), count);
        frames
    }

    /// Sleeps as a worker does until the queue is ready; false after `timeout`.
    pub(crate) fn wait(&mut self, timeout: Duration) -> bool {
        self.queue.maintain().unwrap();
        wait(std::slice::from_ref(&self.queue), timeout)
    }

    pub(crate) fn counts(&self) -> QueueCounts {
        self.queue.counters().read()
    }
}

/// Sleeps until one of the queues is ready; false after `timeout`.
pub(crate) fn wait(queues: &[Box<dyn Queue>], timeout: Duration) -> bool {
    let fds = queues.iter().map(|queue| queue.readiness().unwrap());
    let mut fds: Vec<_> = fds
        .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
        .collect();
    let timeout = Timespec::try_from(timeout).unwrap();
    poll(&mut fds, Some(&timeout)).unwrap() > 0
}

/// Forwards among the queues until `done`, sleeping as a worker does; `route` returns the egress
/// queue of a frame from an ingress queue, and may modify the frame.
pub(crate) fn forward(
    queues: &mut [Box<dyn Queue>],
    done: &AtomicBool,
    mut route: impl FnMut(usize, &mut Frame) -> usize,
) {
    let mut pool = Pool::new(4 * Batch::FRAMES_MAX);
    let mut batch = Batch::new();
    let mut leaving: Vec<_> = queues.iter().map(|_| Batch::new()).collect();
    while !done.load(Ordering::Relaxed) {
        let mut idle = true;
        for from in 0..queues.len() {
            queues[from].receive(&mut pool, &mut batch).unwrap();
            for mut frame in batch.drain() {
                idle = false;
                let to = route(from, &mut frame);
                leaving[to].push(frame).unwrap();
            }
            for (queue, frames) in queues.iter_mut().zip(&mut leaving) {
                queue.send(frames, &mut pool).unwrap();
                frames.release(frames.len(), &mut pool);
            }
        }
        if idle {
            queues
                .iter_mut()
                .for_each(|queue| queue.maintain().unwrap());
            wait(queues, Duration::from_millis(50));
        }
    }
}

/// A host: a namespace with one interface, `eth0`.
pub(crate) struct TestHost {
    namespace: OwnedFd,
    address: Ipv4Addr,
}

impl TestHost {
    /// Creates a host with this number behind the interface `port`, which stays in this namespace.
    pub(crate) fn behind(port: &str, number: u8) -> Self {
        let host = Self::new(number);
        let place = host.netns_path();
        ip(&format!(
            "link add {port} type veth peer name eth0 netns {place}"
        ));
        ip(&format!("link set {port} up"));
        host.configure();
        host
    }

    /// Creates a host with this number and without an interface.
    pub(crate) fn new(number: u8) -> Self {
        let namespace = namespace::create().unwrap();
        namespace::run(namespace.as_fd(), disable_ipv6).unwrap();
        Self {
            namespace,
            address: Ipv4Addr::new(10, 0, 0, number),
        }
    }

    /// Path of the host's namespace for `ip`.
    pub(crate) fn netns_path(&self) -> String {
        let fd = self.namespace.as_raw_fd();
        format!("/proc/{}/fd/{fd}", std::process::id())
    }

    /// Configures the address of the host's interface.
    pub(crate) fn configure(&self) {
        self.run(|| {
            ip(&format!("addr add {}/24 dev eth0", self.address));
            ip("link set eth0 up");
        });
    }

    pub(crate) fn run<R: Send>(&self, body: impl FnOnce() -> R + Send) -> R {
        namespace::run(self.namespace.as_fd(), body).unwrap()
    }
}

/// Transfers `len` bytes by TCP between the hosts while `meanwhile` runs, until its argument is
/// set; the bytes must arrive unmodified.
pub(crate) fn tcp(from: &TestHost, to: &TestHost, len: usize, meanwhile: impl FnOnce(&AtomicBool)) {
    let done = AtomicBool::new(false);
    let bytes: Vec<u8> = (0..251u8).cycle().take(len).collect();
    let there = SocketAddr::from((to.address, 7777));
    let listener = to.run(|| TcpListener::bind(there).unwrap());
    thread::scope(|scope| {
        let transfer = scope.spawn(|| {
            let _over = SetOnDrop(&done);
            thread::scope(|scope| {
                scope.spawn(|| to.run(|| expect_bytes(&listener, &bytes)));
                from.run(|| send_bytes(there, &bytes));
            });
        });
        meanwhile(&done);
        transfer.join().unwrap();
    });
}

/// Sets the flag when dropped, also by a panic.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn send_bytes(there: SocketAddr, bytes: &[u8]) {
    use std::io::{Read, Write};
    let mut stream = TcpStream::connect_timeout(&there, TIMEOUT).unwrap();
    stream.set_write_timeout(Some(TIMEOUT)).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream.write_all(bytes).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    // Returns when the peer has read everything.
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
}

fn expect_bytes(listener: &TcpListener, expected: &[u8]) {
    use std::io::Read;
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let mut bytes = Vec::with_capacity(expected.len());
    stream.read_to_end(&mut bytes).unwrap();
    assert!(bytes == expected, "{} bytes arrived, modified", bytes.len());
}

/// A frame of `len` bytes and of a type that no stack handles; its bytes depend on `seed`.
pub(crate) fn frame(len: usize, seed: u8) -> Frame {
    tagged(&[], len, seed)
}

/// The same with these tags, each a TPID and a TCI, within `len`.
pub(crate) fn tagged(tags: &[(u16, u16)], len: usize, seed: u8) -> Frame {
    let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    for (protocol, information) in tags {
        bytes.extend(protocol.to_be_bytes());
        bytes.extend(information.to_be_bytes());
    }
    bytes.extend(0x88b5u16.to_be_bytes()); // IEEE 802, local experiments
    let filler = (0..251u8).cycle().map(|i| i ^ seed);
    bytes.extend(filler.take(len.saturating_sub(bytes.len())));
    assert_eq!(bytes.len(), len, "the headers fit");
    Frame::from_bytes(&bytes)
}
