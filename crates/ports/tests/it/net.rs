//! What the tests stand on: a namespace for each, `ip`, and queues driven by hand.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use packet::{Frame, Pool};
use ports::af_packet::AfPacket;
use ports::{Batch, Counts, InterfaceName, Port, Queue};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sys::namespace;

/// How long anything may take before a test gives up on it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Runs `body` in a namespace of its own, where the kernel says nothing unasked.
#[expect(clippy::print_stdout, reason = "a skip says why")]
pub(crate) fn scene(body: impl FnOnce() + Send) {
    match namespace::create() {
        Ok(made) => namespace::run(made.as_fd(), || {
            hush();
            body();
        })
        .unwrap(),
        Err(error) => println!("skipped: no right to make network namespaces ({error})"),
    }
}

/// Keeps the namespace's interfaces from speaking IPv6 by themselves.
fn hush() {
    for which in ["all", "default"] {
        let switch = format!("/proc/sys/net/ipv6/conf/{which}/disable_ipv6");
        // A kernel without IPv6 has no such switch.
        let _ = std::fs::write(switch, "1");
    }
}

/// Runs `ip` with these words.
pub(crate) fn ip(words: &str) {
    run("ip", words);
}

/// Runs a program with these words, which must succeed.
pub(crate) fn run(program: &str, words: &str) {
    let output = Command::new(program)
        .args(words.split_whitespace())
        .output();
    let output = output.unwrap();
    assert!(output.status.success(), "{program} {words}: {output:?}");
}

/// What `program` prints.
pub(crate) fn ask(program: &str, words: &str) -> String {
    let output = Command::new(program)
        .args(words.split_whitespace())
        .output();
    String::from_utf8(output.unwrap().stdout).unwrap()
}

/// Two joined interfaces, `left` and `right`, up, for frames of any usual length.
pub(crate) fn cable() {
    ip("link add left mtu 9000 type veth peer name right mtu 9000");
    ip("link set left up");
    ip("link set right up");
    settle(&["left", "right"]);
}

/// Waits until the kernel has put the queueing disciplines of interfaces that went up in
/// place: it does that by a task of its own, and what is sent before is lost.
pub(crate) fn settle(interfaces: &[&str]) {
    for interface in interfaces {
        while !ask("ip", &format!("-o link show {interface}")).contains("state UP") {
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

/// The only queue of an interface, in the hands of a test.
pub(crate) fn hand(text: &str) -> Hand {
    Hand::new(open(text).take_queues().remove(0))
}

/// A queue with all that it takes to drive it.
pub(crate) struct Hand {
    pub(crate) queue: Box<dyn Queue>,
    pub(crate) pool: Pool,
    pub(crate) batch: Batch,
}

impl Hand {
    pub(crate) fn new(queue: Box<dyn Queue>) -> Self {
        Self {
            queue,
            pool: Pool::new(2 * Batch::FRAMES_MAX),
            batch: Batch::new(),
        }
    }

    /// Sends the frames, a batch at a time; each is sent or counted.
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

    /// What waits now.
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

    /// The next `count` frames, which must come.
    pub(crate) fn receive(&mut self, count: usize) -> Vec<Frame> {
        let mut frames = self.receive_now();
        while frames.len() < count {
            assert!(
                self.wait(PATIENCE),
                "{} of {count} frames came",
                frames.len()
            );
            frames.extend(self.receive_now());
        }
        assert_eq!(frames.len(), count);
        frames
    }

    /// Sleeps as a worker does, until something is ready; false if nothing is.
    pub(crate) fn wait(&mut self, patience: Duration) -> bool {
        self.queue.tend().unwrap();
        wait(std::slice::from_ref(&self.queue), patience)
    }

    pub(crate) fn counts(&self) -> Counts {
        self.queue.counters().read()
    }
}

/// Sleeps until one of the queues is ready; false if none is in time.
pub(crate) fn wait(queues: &[Box<dyn Queue>], patience: Duration) -> bool {
    let fds = queues.iter().map(|queue| queue.readiness().unwrap());
    let mut fds: Vec<_> = fds
        .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
        .collect();
    let patience = Timespec::try_from(patience).unwrap();
    poll(&mut fds, Some(&patience)).unwrap() > 0
}

/// Forwards among the queues until `over`, sleeping as a worker does; `route` says
/// where a frame goes that came by a queue, and may change it on the way.
pub(crate) fn forward(
    queues: &mut [Box<dyn Queue>],
    over: &AtomicBool,
    mut route: impl FnMut(usize, &mut Frame) -> usize,
) {
    let mut pool = Pool::new(4 * Batch::FRAMES_MAX);
    let mut batch = Batch::new();
    let mut leaving: Vec<_> = queues.iter().map(|_| Batch::new()).collect();
    while !over.load(Ordering::Relaxed) {
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
            queues.iter_mut().for_each(|queue| queue.tend().unwrap());
            wait(queues, Duration::from_millis(50));
        }
    }
}

/// A host: a namespace with one interface, `eth0`.
pub(crate) struct Host {
    namespace: OwnedFd,
    address: Ipv4Addr,
}

impl Host {
    /// A host of this number behind the interface `port`, which stays here.
    pub(crate) fn behind(port: &str, number: u8) -> Self {
        let host = Self::new(number);
        let place = host.place();
        ip(&format!(
            "link add {port} type veth peer name eth0 netns {place}"
        ));
        ip(&format!("link set {port} up"));
        host.settle();
        host
    }

    /// A host of this number with no interface yet.
    pub(crate) fn new(number: u8) -> Self {
        let namespace = namespace::create().unwrap();
        namespace::run(namespace.as_fd(), hush).unwrap();
        Self {
            namespace,
            address: Ipv4Addr::new(10, 0, 0, number),
        }
    }

    /// What `ip` calls the host's namespace.
    pub(crate) fn place(&self) -> String {
        let fd = self.namespace.as_raw_fd();
        format!("/proc/{}/fd/{fd}", std::process::id())
    }

    /// Gives the host's interface its address.
    pub(crate) fn settle(&self) {
        self.run(|| {
            ip(&format!("addr add {}/24 dev eth0", self.address));
            ip("link set eth0 up");
        });
    }

    pub(crate) fn run<R: Send>(&self, body: impl FnOnce() -> R + Send) -> R {
        namespace::run(self.namespace.as_fd(), body).unwrap()
    }
}

/// Sends `len` bytes by TCP from one host to the other while `meanwhile` runs until
/// it is told that all is over; the bytes must arrive as they left.
pub(crate) fn tcp(from: &Host, to: &Host, len: usize, meanwhile: impl FnOnce(&AtomicBool)) {
    let over = AtomicBool::new(false);
    let bytes: Vec<u8> = (0..251u8).cycle().take(len).collect();
    let there = SocketAddr::from((to.address, 7777));
    let listener = to.run(|| TcpListener::bind(there).unwrap());
    thread::scope(|scope| {
        let transfer = scope.spawn(|| {
            let _over = Sets(&over);
            thread::scope(|scope| {
                scope.spawn(|| to.run(|| hear(&listener, &bytes)));
                from.run(|| say(there, &bytes));
            });
        });
        meanwhile(&over);
        transfer.join().unwrap();
    });
}

/// Sets what it holds when it goes, also by a panic.
struct Sets<'a>(&'a AtomicBool);

impl Drop for Sets<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn say(there: SocketAddr, bytes: &[u8]) {
    use std::io::{Read, Write};
    let mut stream = TcpStream::connect_timeout(&there, PATIENCE).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(bytes).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    // Until the other side has read everything.
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
}

fn hear(listener: &TcpListener, expected: &[u8]) {
    use std::io::Read;
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut bytes = Vec::with_capacity(expected.len());
    stream.read_to_end(&mut bytes).unwrap();
    assert!(bytes == expected, "{} bytes, not the same", bytes.len());
}

/// A frame of `len` bytes, of a type that no stack handles, whose bytes depend on `seed`.
pub(crate) fn frame(len: usize, seed: u8) -> Frame {
    tagged(&[], len, seed)
}

/// The same with these tags, each a protocol and its information, within `len`.
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
