//! Test ports with AF_XDP in copy mode: frames bypass the kernel's protocol stack. The program
//! stamps frames when it polls, because AF_XDP reports no receive time.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use packet::Pool;
use ports::xdp::{TransferChoice, UmemPools, Xdp, XdpOptions};
use ports::{Batch, Counter, InterfaceName, Port, Queue, QueueCounters, QueueCounts};
use testbed::{Clock, Failure, Namespace};

use super::{Arrivals, Receive, SendMethod, Stamps, TestPort, Time, Transmit};

/// The maintenance interval of a queue.
const MAINTAIN_NS: u64 = 10_000_000;

/// The counters of frames that arrived and were lost.
const LOST: [Counter; 6] = [
    Counter::RxOverrun,
    Counter::RxTruncated,
    Counter::RxTooLong,
    Counter::RxBadOffload,
    Counter::RxRingReset,
    Counter::RxErrors,
];
/// The counters of frames that were accepted and not sent.
const REFUSED: [Counter; 4] = [
    Counter::TxDown,
    Counter::TxTooLong,
    Counter::TxFull,
    Counter::TxErrors,
];

impl TestPort {
    /// A test port with AF_XDP at `interface` of `namespace`; timestamps are those of `clock`. Both
    /// halves share a socket behind a lock, so two threads wait for each other.
    ///
    /// # Errors
    /// The interface does not exist there, its MTU exceeds 3818 bytes, or the process lacks the
    /// privilege.
    pub fn xdp(namespace: &Namespace, interface: &str, clock: Clock) -> Result<Self, Failure> {
        let failed = |error: io::Error| Failure::to(format!("open AF_XDP on {interface}"))(error);
        let name: InterfaceName = interface
            .parse()
            .map_err(|bad| failed(io::Error::other(format!("{bad}"))))?;
        let options = XdpOptions {
            transfer: TransferChoice::Copy,
            ..XdpOptions::default()
        };
        let open = || Xdp::open(&name, &[0], options, &mut UmemPools::default());
        let mut port = namespace
            .run(open)?
            .map_err(|error| failed(io::Error::other(error)))?;
        let queue = port.take_queues().pop();
        let queue = queue.ok_or_else(|| failed(io::Error::other("it has no queue")))?;
        let shared = SharedSocket(Arc::new(Mutex::new(XdpSocket {
            counters: queue.counters(),
            counted: queue.counters().read(),
            queue,
            pool: Pool::new(4 * Batch::FRAMES_MAX),
            batch: Batch::new(),
            clock,
            maintained_ns: 0,
        })));
        Ok(Self {
            transmit: Box::new(shared.clone()),
            receive: Box::new(shared),
        })
    }
}

/// Both halves of a test port.
#[derive(Clone)]
struct SharedSocket(Arc<Mutex<XdpSocket>>);

struct XdpSocket {
    queue: Box<dyn Queue>,
    counters: Arc<QueueCounters>,
    counted: QueueCounts,
    pool: Pool,
    batch: Batch,
    clock: Clock,
    maintained_ns: u64,
}

impl SharedSocket {
    fn socket(&self) -> MutexGuard<'_, XdpSocket> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transmit for SharedSocket {
    fn send(&mut self, frames: &[&[u8]]) -> io::Result<usize> {
        self.socket().send(frames)
    }

    fn send_method(&self) -> SendMethod {
        SendMethod::Xdp
    }
}

impl Receive for SharedSocket {
    fn receive(&mut self, arrivals: &mut Arrivals) -> io::Result<()> {
        self.socket().receive(arrivals)
    }

    fn take_drops(&mut self) -> io::Result<u64> {
        let mut socket = self.socket();
        socket.queue.maintain()?;
        let counts = socket.counters.read();
        let before = std::mem::replace(&mut socket.counted, counts);
        Ok(sum(&counts, &LOST) - sum(&before, &LOST))
    }

    fn stamps(&self) -> Stamps {
        Stamps::Program
    }
}

impl XdpSocket {
    fn send(&mut self, frames: &[&[u8]]) -> io::Result<usize> {
        let before = sum(&self.counters.read(), &REFUSED);
        for bytes in frames.iter().take(Batch::FRAMES_MAX) {
            let Some(mut frame) = self.pool.take() else {
                break;
            };
            frame
                .copy_from(bytes)
                .map_err(|_| io::Error::other("a frame is too long"))?;
            self.batch.put(frame);
        }
        let offered = self.batch.len();
        self.queue.send(&mut self.batch, &mut self.pool)?;
        let left = self.batch.len();
        self.batch.release(left, &mut self.pool);
        match sum(&self.counters.read(), &REFUSED) - before {
            0 => Ok(offered - left),
            count => Err(io::Error::other(format!(
                "the interface has refused {count} frames"
            ))),
        }
    }

    fn receive(&mut self, arrivals: &mut Arrivals) -> io::Result<()> {
        self.queue.receive(&mut self.pool, &mut self.batch)?;
        let now = self.clock.now_ns();
        for frame in self.batch.drain() {
            arrivals.push(now, &[frame.bytes()]);
            self.pool.put(frame);
        }
        if now.saturating_sub(self.maintained_ns) > MAINTAIN_NS {
            self.maintained_ns = now;
            self.queue.maintain()?;
        }
        Ok(())
    }
}

fn sum(counts: &QueueCounts, of: &[Counter]) -> u64 {
    of.iter().map(|&counter| counts[counter]).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::tests::{TestCable, short};
    use crate::{Mix, Pace, Rate, Stream, Template, TestPortNo, measure};
    use testbed::Interrupt;

    #[test]
    fn frames_arrive_over_a_cable_with_af_xdp() {
        let cable = TestCable::create(1_600);
        let ends = [&cable.near, &cable.far];
        let mut ends = ends.map(|side| TestPort::xdp(side, "eth0", cable.clock).unwrap());
        let mix = Mix::imix(&Template::udp(64)).unwrap();
        let pace = Pace::Constant(Rate::Frames(20_000));
        let stream = |from, to| Stream::new(mix.clone(), pace, TestPortNo(from), TestPortNo(to));
        let request = short(vec![stream(0, 1), stream(1, 0)]);
        let measured = measure(&mut ends, &request, &cable.clock, &Interrupt::never()).unwrap();
        for stream in &measured.streams {
            let counts = (
                stream.received,
                stream.lost,
                stream.modified,
                stream.corrupt,
            );
            assert_eq!(counts, (2_000, 0, 0, 0));
        }
        assert!(measured.ends.iter().all(|end| end.dropped == 0));
        assert_eq!(measured.ends[0].stamps, Stamps::Program);
    }

    #[test]
    fn frame_longer_than_the_mtu_is_an_error() {
        let cable = TestCable::create(1_500);
        let mut end = TestPort::xdp(&cable.near, "eth0", cable.clock).unwrap();
        assert!(end.transmit.send(&[&[0; 2_000]]).is_err());
    }
}
