//! Echoes between two hosts: sent, returned, timed. Closed loop: one is under way
//! at a time, as in the published experiment, so a stall costs one sample.
//!
//! Not here: through which device, by which rules, and whether the counts are right.

mod pair;
mod solo;

use std::io;
use std::net::{SocketAddrV4, UdpSocket};
use std::time::Duration;

use record::Prober;
use testbed::{Bench, Clock, Failure};
use trafficgen::Time;

use crate::Interrupt;

/// The client's port.
pub(crate) const CLIENT_PORT: u16 = 40_000;
/// The server's port.
pub(crate) const SERVER_PORT: u16 = 7_777;
/// Ethernet, IPv4 and UDP headers and the checksum (FCS), in bytes.
const OVERHEAD: u16 = 14 + 20 + 8 + 4;
/// Number and time of an echo.
const STAMP: usize = 12;
/// What has not come back by then is lost.
const PATIENCE: Duration = Duration::from_millis(if cfg!(test) { 1_000 } else { 100 });
/// So many losses without an echo between them, and nothing more is expected.
const SILENCE: u32 = 20;

/// What is to be measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EchoRequest {
    /// Size of frames with their checksum.
    pub(crate) frame_bytes: u16,
    /// Echoes before those that count.
    pub(crate) warm_up: u32,
    /// Echoes that count.
    pub(crate) packets: u32,
    /// How they are sent and awaited.
    pub(crate) prober: Prober,
}

impl EchoRequest {
    /// Bytes of UDP payload that make the wanted frame.
    fn payload(&self) -> usize {
        usize::from(self.frame_bytes.saturating_sub(OVERHEAD)).max(STAMP)
    }
}

/// What was measured.
#[derive(Clone, Debug)]
pub(crate) struct Echoes {
    /// Echoes of the warm-up that did not come back in time.
    pub(crate) warm_up_lost: u32,
    /// Requests that the server received.
    pub(crate) served: u64,
    /// Seconds over which counted echoes were sent.
    pub(crate) seconds: f64,
    /// Round trips in nanoseconds; none for an echo that did not come back.
    pub(crate) round_trip_ns: Vec<Option<u32>>,
}

/// Why there are no echoes.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProbeError {
    /// The user wants no more.
    #[error("interrupted")]
    Interrupted,
    /// Nothing comes back.
    #[error("nothing came back: {SILENCE} echoes in a row were lost")]
    Silence,
    /// The test bed failed.
    #[error(transparent)]
    Failure(#[from] Failure),
}

/// Measures between the hosts of `bench`, with threads on `cores`.
pub(crate) fn echo(
    bench: &Bench,
    request: EchoRequest,
    cores: &[usize],
    clock: &Clock,
    interrupt: &Interrupt,
) -> Result<Echoes, ProbeError> {
    let ends = Ends::open(bench)?;
    let mut tally = Tally::new(request, clock, interrupt);
    match request.prober {
        Prober::Solo => solo::run(ends, cores, &mut tally),
        Prober::Pair => pair::run(ends, cores, &mut tally),
    }
}

/// An end that is connected to the other. Nothing waits.
trait Datagrams {
    /// Sends one.
    fn send(&self, datagram: &[u8]) -> io::Result<()>;
    /// Puts the next one that has come into `room` and tells its length.
    fn receive(&self, room: &mut [u8]) -> io::Result<Option<usize>>;
}

/// The sockets, each in its host's namespace and connected to the other.
struct Ends {
    client: UdpSocket,
    server: UdpSocket,
}

impl Ends {
    fn open(bench: &Bench) -> Result<Self, Failure> {
        let client = SocketAddrV4::new(bench.client().address, CLIENT_PORT);
        let server = SocketAddrV4::new(bench.server().address, SERVER_PORT);
        let connected = |near: SocketAddrV4, far: SocketAddrV4| {
            let socket = UdpSocket::bind(near)?;
            socket.connect(far)?;
            Ok::<_, io::Error>(socket)
        };
        let failure = || Failure::to("open the sockets of an echo");
        Ok(Self {
            client: bench
                .client()
                .namespace
                .run(|| connected(client, server))?
                .map_err(failure())?,
            server: bench
                .server()
                .namespace
                .run(|| connected(server, client))?
                .map_err(failure())?,
        })
    }
}

/// The book of a test: what is to be sent next, and what came back when.
struct Tally<'a, T> {
    time: &'a T,
    interrupt: &'a Interrupt,
    payload: Vec<u8>,
    warm_up: u32,
    total: u32,
    next: u32,
    silence: u32,
    warm_up_lost: u32,
    began_ns: u64,
    sent_ns: u64,
    round_trip_ns: Vec<Option<u32>>,
}

impl<'a, T: Time> Tally<'a, T> {
    fn new(request: EchoRequest, time: &'a T, interrupt: &'a Interrupt) -> Self {
        let packets = usize::try_from(request.packets).expect("bounded by the options");
        Self {
            time,
            interrupt,
            payload: vec![0; request.payload()],
            warm_up: request.warm_up,
            total: request.warm_up + request.packets,
            next: 0,
            silence: 0,
            warm_up_lost: 0,
            began_ns: 0,
            sent_ns: 0,
            round_trip_ns: Vec::with_capacity(packets),
        }
    }

    /// Stamps the next echo and notes its time; none when all are sent.
    fn next(&mut self) -> Option<&[u8]> {
        if self.next == self.total {
            return None;
        }
        self.payload[..4].copy_from_slice(&self.next.to_be_bytes());
        self.sent_ns = self.time.now_ns();
        if self.next == self.warm_up {
            self.began_ns = self.sent_ns;
        }
        self.payload[4..STAMP].copy_from_slice(&self.sent_ns.to_be_bytes());
        Some(&self.payload)
    }

    /// Whether `datagram` is the echo under way, or its reply.
    fn is_current(&self, datagram: &[u8]) -> bool {
        datagram.get(..4) == Some(&self.next.to_be_bytes())
    }

    /// Whether the echo under way must be given up.
    fn is_overdue(&self) -> bool {
        let since_ns = self.time.now_ns().saturating_sub(self.sent_ns);
        u128::from(since_ns) >= PATIENCE.as_nanos()
    }

    /// Books the echo under way, if it came back, and goes on to the next.
    fn book(&mut self, returned_ns: Option<u64>) -> Result<(), ProbeError> {
        // 100 ms fit into 32 bits of nanoseconds; a stopped machine may take longer.
        let nanos = |at: u64| u32::try_from(at.saturating_sub(self.sent_ns)).unwrap_or(u32::MAX);
        let round_trip = returned_ns.map(nanos);
        if self.next >= self.warm_up {
            self.round_trip_ns.push(round_trip);
        } else if round_trip.is_none() {
            self.warm_up_lost += 1;
        }
        self.silence = if round_trip.is_some() {
            0
        } else {
            self.silence + 1
        };
        self.next += 1;
        if self.silence == SILENCE {
            Err(ProbeError::Silence)
        } else if self.interrupt.is_set() {
            Err(ProbeError::Interrupted)
        } else {
            Ok(())
        }
    }

    fn finish(&mut self, served: u64) -> Echoes {
        Echoes {
            warm_up_lost: self.warm_up_lost,
            served,
            seconds: self.time.now_ns().saturating_sub(self.began_ns) as f64 / 1e9,
            round_trip_ns: std::mem::take(&mut self.round_trip_ns),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
