//! Echoes of whole frames: one thread sends a frame at one end, receives and compares it at the
//! other, and sends a reply; one echo is outstanding at a time.
//!
//! Unlike [`crate::probe`] it bypasses the hosts' network stacks, so it can verify that a device
//! modified a frame as its rules require.

use std::thread;
use std::time::Duration;

use testbed::Interrupt;
use testbed::{Bench, Clock, Failure, FrameReceiver, Host, RawSocket, pin_current_thread};
use trafficgen::Time;
use trafficgen::template::NumberedFrame;

use crate::frames::{UdpFrame, number};
use crate::probe::ProbeError;

/// Time after which a frame is lost.
const TIMEOUT: Duration = Duration::from_millis(if cfg!(test) { 1_000 } else { 100 });
/// Consecutive losses that end the trial.
const SILENCE: u32 = 20;
/// Consecutive correct echoes after which the rules are in force.
const IN_FORCE: u32 = 20;
/// Time limit for that.
const SETTLE: Duration = Duration::from_secs(5);
/// First number of the echoes that wait for the rules.
const SETTLING: u32 = 1 << 31;

/// Frame as it is sent and as it should arrive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leg {
    /// Sent frame.
    pub(crate) sent: UdpFrame,
    /// Expected frame.
    pub(crate) expected: UdpFrame,
}

/// Parameters of a measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameEcho {
    /// Frame from the client to the server.
    pub(crate) request: Leg,
    /// Frame from the server to the client.
    pub(crate) answer: Leg,
    /// Echoes of the warm-up.
    pub(crate) warm_up: u32,
    /// Echoes after the warm-up.
    pub(crate) packets: u32,
}

/// Results of a measurement.
#[derive(Clone, Debug, Default)]
pub(crate) struct FrameEchoes {
    /// Round trips in nanoseconds; `None` for a lost echo.
    pub(crate) round_trip_ns: Vec<Option<u32>>,
    /// Requests that the server received, warm-up included.
    pub(crate) served: u64,
    /// Frames that arrived otherwise than expected, in both directions, warm-up included.
    pub(crate) wrong: u64,
    /// First of those, as received.
    pub(crate) first_wrong: Option<Vec<u8>>,
    /// Lost echoes of the warm-up.
    pub(crate) warm_up_lost: u32,
    /// Echoes sent before the warm-up until the rules were in force. The barrier is not sufficient
    /// for devices that cache results of earlier rules.
    pub(crate) settling: u64,
    /// Those of them that were lost or wrong.
    pub(crate) unsettled: u64,
    /// Time until the rules were in force, in milliseconds.
    pub(crate) settled_ms: f64,
}

/// End of a link that bypasses the host's network stack and does not remove VLAN tags. Its
/// functions do not block.
pub(crate) trait Wire {
    /// Sends a frame. If the queue is full, the frame is lost.
    fn send(&mut self, frame: &[u8]) -> Result<(), ProbeError>;
    /// Returns the next received frame, if there is one.
    fn receive(&mut self) -> Result<Option<&[u8]>, ProbeError>;
}

/// Measures between the hosts of `bench`, on the first of `cores`.
pub(crate) fn run(
    bench: &Bench,
    echo: &FrameEcho,
    cores: &[usize],
    clock: &Clock,
    interrupt: &Interrupt,
) -> Result<FrameEchoes, ProbeError> {
    let ends = open(bench, clock)?;
    thread::scope(|scope| {
        let prober = scope.spawn(|| {
            pin_current_thread(&cores[..cores.len().min(1)])?;
            between(ends, echo, clock, interrupt)
        });
        prober
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Measures between a client's end and a server's.
pub(crate) fn between<W: Wire, T: Time>(
    [client, server]: [W; 2],
    echo: &FrameEcho,
    time: &T,
    interrupt: &Interrupt,
) -> Result<FrameEchoes, ProbeError> {
    let frames = |leg: &Leg| [leg.sent.numbered(), leg.expected.numbered()];
    let mut prober = Prober {
        client,
        server,
        echo: *echo,
        request: frames(&echo.request),
        answer: frames(&echo.answer),
        time,
    };
    prober.run(interrupt)
}

/// Returns the number of `frames` that arrive unmodified at the server. Lost frames are sent again
/// until `limit` ends, since rules may not be in force at once.
pub(crate) fn count_arrivals<W: Wire, T: Time>(
    [client, server]: &mut [W; 2],
    frames: &[UdpFrame],
    limit: Duration,
    time: &T,
    interrupt: &Interrupt,
) -> Result<usize, ProbeError> {
    let deadline = time.now_ns() + nanos(limit);
    let mut out = 0;
    let mut number = 0;
    for frame in frames {
        loop {
            if interrupt.is_set() {
                return Err(ProbeError::Interrupted);
            }
            let bytes = frame.bytes(number);
            number += 1;
            let sent = time.now_ns();
            client.send(&bytes)?;
            if arrives(server, &bytes, sent, time)? {
                out += 1;
                break;
            }
            if time.now_ns() >= deadline {
                break;
            }
        }
    }
    Ok(out)
}

/// Time after which a frame of [`count_arrivals`] is lost.
const ALONE: Duration = Duration::from_millis(if cfg!(test) { 1_000 } else { 20 });

fn arrives<W: Wire, T: Time>(
    end: &mut W,
    frame: &[u8],
    sent: u64,
    time: &T,
) -> Result<bool, ProbeError> {
    loop {
        match end.receive()? {
            Some(received) if received.get(..frame.len()) == Some(frame) => return Ok(true),
            Some(_) => {}
            None if time.now_ns().saturating_sub(sent) >= nanos(ALONE) => return Ok(false),
            None => {}
        }
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 4)
}

/// Opens the ends of the client and the server of `bench`.
pub(crate) fn open(bench: &Bench, clock: &Clock) -> Result<[FrameEnd; 2], Failure> {
    let client = FrameEnd::open(bench.client(), *clock)?;
    Ok([client, FrameEnd::open(bench.server(), *clock)?])
}

/// End of a host's link.
pub(crate) struct FrameEnd {
    sender: RawSocket,
    receiver: FrameReceiver,
    room: Vec<u8>,
}

impl FrameEnd {
    fn open(host: &Host, clock: Clock) -> Result<Self, Failure> {
        let (namespace, interface) = (&host.namespace, host.interface);
        Ok(Self {
            sender: namespace.raw_sender(interface)?,
            receiver: namespace.frame_receiver(interface, LONGEST, clock)?,
            room: Vec::with_capacity(LONGEST),
        })
    }
}

impl Wire for FrameEnd {
    fn send(&mut self, frame: &[u8]) -> Result<(), ProbeError> {
        match self.sender.send(&[frame]) {
            // With a full queue the echo is lost, which the results show.
            Err(error) if crate::generator::is_full(&error) => Ok(()),
            outcome => Ok(outcome.map(drop).map_err(Failure::to("send an echo"))?),
        }
    }

    fn receive(&mut self) -> Result<Option<&[u8]>, ProbeError> {
        let Self { receiver, room, .. } = self;
        room.clear();
        let taken = receiver.receive(1, |_, parts| {
            for part in parts {
                room.extend_from_slice(part);
            }
        });
        let taken = taken.map_err(Failure::to("receive an echo"))?;
        Ok((taken > 0).then_some(room))
    }
}

/// Bytes of the longest expected frame.
const LONGEST: usize = 2048;

struct Prober<'a, W, T> {
    client: W,
    server: W,
    echo: FrameEcho,
    /// Sent frame and expected frame.
    request: [NumberedFrame; 2],
    answer: [NumberedFrame; 2],
    time: &'a T,
}

impl<W: Wire, T: Time> Prober<'_, W, T> {
    fn run(&mut self, interrupt: &Interrupt) -> Result<FrameEchoes, ProbeError> {
        let mut echoes = self.settle(interrupt)?;
        let mut silence = 0;
        for number in 0..self.echo.warm_up + self.echo.packets {
            if interrupt.is_set() {
                return Err(ProbeError::Interrupted);
            }
            let round_trip = self.exchange(number, &mut echoes)?;
            silence = if round_trip.is_some() { 0 } else { silence + 1 };
            if silence == SILENCE {
                return Err(ProbeError::NoReply);
            }
            if number >= self.echo.warm_up {
                echoes.round_trip_ns.push(round_trip);
            } else if round_trip.is_none() {
                echoes.warm_up_lost += 1;
            }
        }
        Ok(echoes)
    }

    /// Sends echoes until the rules are in force.
    fn settle(&mut self, interrupt: &Interrupt) -> Result<FrameEchoes, ProbeError> {
        let time = self.time;
        let began = time.now_ns();
        let since = || time.now_ns().saturating_sub(began);
        let mut in_force = 0;
        let (mut settling, mut unsettled) = (0, 0);
        let mut received = false;
        while in_force < IN_FORCE && since() < nanos(SETTLE) {
            if interrupt.is_set() {
                return Err(ProbeError::Interrupted);
            }
            let mut echoes = FrameEchoes::default();
            let number = SETTLING + u32::try_from(settling).unwrap_or(0);
            let round_trip = self.exchange(number, &mut echoes)?;
            settling += 1;
            received |= round_trip.is_some();
            if round_trip.is_some() && echoes.wrong == 0 {
                in_force += 1;
            } else {
                in_force = 0;
                unsettled += 1;
            }
            if !received && settling == u64::from(SILENCE) {
                return Err(ProbeError::NoReply);
            }
        }
        Ok(FrameEchoes {
            settling,
            unsettled,
            settled_ms: since() as f64 / 1e6,
            ..FrameEchoes::default()
        })
    }

    /// Exchanges one echo, and returns its round trip; `None` if it is overdue.
    fn exchange(
        &mut self,
        number: u32,
        echoes: &mut FrameEchoes,
    ) -> Result<Option<u32>, ProbeError> {
        let Self {
            client,
            server,
            request: [out, out_expected],
            answer: [back, back_expected],
            ..
        } = self;
        let (out, back) = (out.with(number), back.with(number));
        let time = self.time;
        let sent = time.now_ns();
        client.send(out)?;
        if !awaits(server, out_expected, number, (sent, time), echoes)? {
            return Ok(None);
        }
        echoes.served += 1;
        server.send(back)?;
        if !awaits(client, back_expected, number, (sent, time), echoes)? {
            return Ok(None);
        }
        let round_trip_ns = time.now_ns().saturating_sub(sent);
        Ok(Some(u32::try_from(round_trip_ns).unwrap_or(u32::MAX)))
    }
}

/// Receives frames from `end` until the one with number `wanted` arrives; returns false if that is
/// overdue. The comparison precedes the caller's timestamp.
fn awaits<W: Wire, T: Time>(
    end: &mut W,
    expected: &mut NumberedFrame,
    wanted: u32,
    (sent, time): (u64, &T),
    echoes: &mut FrameEchoes,
) -> Result<bool, ProbeError> {
    let whole = expected.wire_len();
    loop {
        let Some(received) = end.receive()? else {
            if time.now_ns().saturating_sub(sent) >= nanos(TIMEOUT) {
                return Ok(false);
            }
            continue;
        };
        // The number has another offset if a tag was pushed or popped.
        let ours = [whole, received.len()].map(|at| number(received, at));
        if !ours.contains(&Some(wanted)) {
            continue;
        }
        if received.get(..whole) != Some(expected.with(wanted)) {
            echoes.wrong += 1;
            echoes.first_wrong.get_or_insert_with(|| received.to_vec());
        }
        return Ok(true);
    }
}
