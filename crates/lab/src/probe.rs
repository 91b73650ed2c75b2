//! UDP echoes between two hosts, in a closed loop: one echo is outstanding at a time, as in the
//! published experiment, so a stall costs one sample.
//!
//! Not here: the device, its rules, and the check of its counters.

mod pair;
mod solo;

use std::fmt;
use std::io;
use std::net::{SocketAddrV4, UdpSocket};
use std::str::FromStr;
use std::time::Duration;

use record::UnknownName;
use testbed::{Bench, Clock, Failure};
use trafficgen::Time;

use crate::Interrupt;

/// UDP port of the client.
pub(crate) const CLIENT_PORT: u16 = 40_000;
/// UDP port of the server.
pub(crate) const SERVER_PORT: u16 = 7_777;
/// Bytes of the Ethernet, IPv4 and UDP headers and the checksum (FCS).
const OVERHEAD: u16 = 14 + 20 + 8 + 4;
/// Bytes of an echo's number and time.
const STAMP: usize = 12;
/// Time after which an echo is lost.
const TIMEOUT: Duration = Duration::from_millis(if cfg!(test) { 1_000 } else { 100 });
/// Consecutive losses that end the trial.
const LOSSES_MAX: u32 = 20;

/// Method of sending echoes and waiting for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Prober {
    /// One thread with both ends, which never sleeps: it measures the device without the wake-up
    /// time of a process.
    #[default]
    Solo,
    /// A client and a server that block in their sockets, as in the published experiment.
    Pair,
}

impl Prober {
    /// Names of all probers.
    pub const NAMES: [&str; 2] = ["solo", "pair"];

    /// Returns the name on the command line and in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

impl fmt::Display for Prober {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Prober {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        let all = [Self::Solo, Self::Pair];
        let found = all.into_iter().find(|prober| prober.name() == text);
        found.ok_or_else(|| UnknownName::new("prober", text, Self::NAMES))
    }
}

/// Parameters of a measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EchoRequest {
    /// Frame size with the checksum, in bytes.
    pub(crate) frame_bytes: u16,
    /// Echoes of the warm-up.
    pub(crate) warm_up: u32,
    /// Echoes after the warm-up.
    pub(crate) packets: u32,
    /// Method.
    pub(crate) prober: Prober,
}

impl EchoRequest {
    /// Returns the bytes of UDP payload of a frame.
    fn payload(&self) -> usize {
        usize::from(self.frame_bytes.saturating_sub(OVERHEAD)).max(STAMP)
    }
}

/// Results of a measurement.
#[derive(Clone, Debug)]
pub(crate) struct Echoes {
    /// Lost echoes of the warm-up.
    pub(crate) warm_up_lost: u32,
    /// Requests that the server received.
    pub(crate) served: u64,
    /// Round trips in nanoseconds; `None` for a lost echo.
    pub(crate) round_trip_ns: Vec<Option<u32>>,
}

/// Reason for a measurement without results.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProbeError {
    /// The user interrupted it.
    #[error("interrupted")]
    Interrupted,
    /// No echo returns.
    #[error("no echo returned: {LOSSES_MAX} consecutive echoes were lost")]
    NoReply,
    /// The test bed failed.
    #[error(transparent)]
    Failure(#[from] Failure),
}

/// Measures echoes between the hosts of `bench`, with threads on `cores`.
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

/// Connected datagram socket that does not block.
trait Datagrams {
    /// Sends a datagram.
    fn send(&self, datagram: &[u8]) -> io::Result<()>;
    /// Receives the next datagram into `room`, and returns its length.
    fn receive(&self, room: &mut [u8]) -> io::Result<Option<usize>>;
}

/// Sockets of client and server, each in its host's namespace and connected to the other.
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

/// State of a measurement: the next echo, and the round trips so far.
struct Tally<'a, T> {
    time: &'a T,
    interrupt: &'a Interrupt,
    payload: Vec<u8>,
    warm_up: u32,
    total: u32,
    next: u32,
    losses: u32,
    warm_up_lost: u32,
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
            losses: 0,
            warm_up_lost: 0,
            sent_ns: 0,
            round_trip_ns: Vec::with_capacity(packets),
        }
    }

    /// Returns the next echo with its timestamp; `None` after the last.
    fn next(&mut self) -> Option<&[u8]> {
        if self.next == self.total {
            return None;
        }
        self.payload[..4].copy_from_slice(&self.next.to_be_bytes());
        self.sent_ns = self.time.now_ns();
        self.payload[4..STAMP].copy_from_slice(&self.sent_ns.to_be_bytes());
        Some(&self.payload)
    }

    /// Returns true if `datagram` is the outstanding echo or its reply.
    fn is_current(&self, datagram: &[u8]) -> bool {
        datagram.get(..4) == Some(&self.next.to_be_bytes())
    }

    /// Returns true if the outstanding echo has timed out.
    fn is_overdue(&self) -> bool {
        let since_ns = self.time.now_ns().saturating_sub(self.sent_ns);
        u128::from(since_ns) >= TIMEOUT.as_nanos()
    }

    /// Records the outstanding echo, `None` if it is lost, and advances to the next.
    fn record(&mut self, returned_ns: Option<u64>) -> Result<(), ProbeError> {
        // The timeout fits in 32 bits of nanoseconds; a stopped machine may take longer.
        let nanos = |at: u64| u32::try_from(at.saturating_sub(self.sent_ns)).unwrap_or(u32::MAX);
        let round_trip = returned_ns.map(nanos);
        if self.next >= self.warm_up {
            self.round_trip_ns.push(round_trip);
        } else if round_trip.is_none() {
            self.warm_up_lost += 1;
        }
        self.losses = if round_trip.is_some() {
            0
        } else {
            self.losses + 1
        };
        self.next += 1;
        if self.losses == LOSSES_MAX {
            Err(ProbeError::NoReply)
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
            round_trip_ns: std::mem::take(&mut self.round_trip_ns),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
