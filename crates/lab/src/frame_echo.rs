//! Echoes of whole frames: one thread sends a frame at one end, takes it out at the other,
//! looks at every byte, and sends an answer back, one under way at a time.
//!
//! Unlike [`crate::probe`] it passes the hosts' stacks by. So a device may change a frame on
//! its way, and it is seen whether it did as it was told.

use std::thread;
use std::time::Duration;

use testbed::Interrupt;
use testbed::{Bench, Clock, Failure, FrameReceiver, Host, RawSocket, pin_current_thread};
use trafficgen::Time;
use trafficgen::template::NumberedFrame;

use crate::frames::{UdpFrame, number};
use crate::probe::ProbeError;

/// What has not come by then is lost.
const PATIENCE: Duration = Duration::from_millis(if cfg!(test) { 1_000 } else { 100 });
/// So many losses without an echo between them, and nothing more is expected.
const SILENCE: u32 = 20;
/// So many echoes in a row that come out as they should, and the rules are in force.
const IN_FORCE: u32 = 20;
/// How long they may take to be.
const SETTLE: Duration = Duration::from_secs(5);
/// Numbers from here on are of echoes that wait for the rules.
const SETTLING: u32 = 1 << 31;

/// A frame as it is sent and as it should come out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leg {
    /// As it is sent.
    pub(crate) sent: UdpFrame,
    /// As it should come out.
    pub(crate) expected: UdpFrame,
}

/// What is to be measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameEcho {
    /// From the client to the server.
    pub(crate) request: Leg,
    /// From the server to the client.
    pub(crate) answer: Leg,
    /// Echoes before those that count.
    pub(crate) warm_up: u32,
    /// Echoes that count.
    pub(crate) packets: u32,
}

/// What was measured.
#[derive(Clone, Debug, Default)]
pub(crate) struct FrameEchoes {
    /// Round trips in nanoseconds; none for an echo that did not come back.
    pub(crate) round_trip_ns: Vec<Option<u32>>,
    /// Requests that came to the server, warm-up included.
    pub(crate) served: u64,
    /// Frames that came out otherwise than expected, either way, warm-up included.
    pub(crate) wrong: u64,
    /// The first of those, as it came.
    pub(crate) first_wrong: Option<Vec<u8>>,
    /// Echoes of the warm-up that did not come back.
    pub(crate) warm_up_lost: u32,
    /// Echoes that were sent before the warm-up, until the rules were in force: their barrier
    /// is not enough for some devices, which go by what they remember of earlier rules.
    pub(crate) settling: u64,
    /// Those of them that did not come back as they should.
    pub(crate) unsettled: u64,
    /// How long that took, in milliseconds.
    pub(crate) settled_ms: f64,
}

/// An end where frames go out and come in past a host's stack, their tags in place. Nothing
/// waits.
pub(crate) trait Wire {
    /// Sends a frame. One for which there is no room is lost.
    fn send(&mut self, frame: &[u8]) -> Result<(), ProbeError>;
    /// The next frame that has come; none if there is none.
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

/// How many of `frames` come out at the server as the client sent them, each sent once, and
/// again if it was lost while there is time for such: rules may not be in force at once.
pub(crate) fn come_out<W: Wire, T: Time>(
    [client, server]: &mut [W; 2],
    frames: &[UdpFrame],
    patience: Duration,
    time: &T,
    interrupt: &Interrupt,
) -> Result<usize, ProbeError> {
    let deadline = time.now_ns() + nanos(patience);
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
            if comes(server, &bytes, sent, time)? {
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

/// How long a frame may take that is sent alone.
const ALONE: Duration = Duration::from_millis(if cfg!(test) { 1_000 } else { 20 });

fn comes<W: Wire, T: Time>(
    end: &mut W,
    frame: &[u8],
    sent: u64,
    time: &T,
) -> Result<bool, ProbeError> {
    loop {
        match end.receive()? {
            Some(came) if came.get(..frame.len()) == Some(frame) => return Ok(true),
            Some(_) => {}
            None if time.now_ns().saturating_sub(sent) >= nanos(ALONE) => return Ok(false),
            None => {}
        }
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 4)
}

/// The ends of the client and the server of `bench`.
pub(crate) fn open(bench: &Bench, clock: &Clock) -> Result<[FrameEnd; 2], Failure> {
    let client = FrameEnd::open(bench.client(), *clock)?;
    Ok([client, FrameEnd::open(bench.server(), *clock)?])
}

/// A host's end.
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
            // No room is a lost echo, which shows.
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

/// Bytes of the longest frame that is expected.
const LONGEST: usize = 2048;

struct Prober<'a, W, T> {
    client: W,
    server: W,
    echo: FrameEcho,
    /// Frames as they are sent, and as they should come out.
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

    /// Sends echoes until frames come out as the rules say.
    fn settle(&mut self, interrupt: &Interrupt) -> Result<FrameEchoes, ProbeError> {
        let time = self.time;
        let began = time.now_ns();
        let since = || time.now_ns().saturating_sub(began);
        let mut in_force = 0;
        let (mut settling, mut unsettled) = (0, 0);
        let mut came = false;
        while in_force < IN_FORCE && since() < nanos(SETTLE) {
            if interrupt.is_set() {
                return Err(ProbeError::Interrupted);
            }
            let mut echoes = FrameEchoes::default();
            let number = SETTLING + u32::try_from(settling).unwrap_or(0);
            let round_trip = self.exchange(number, &mut echoes)?;
            settling += 1;
            came |= round_trip.is_some();
            if round_trip.is_some() && echoes.wrong == 0 {
                in_force += 1;
            } else {
                in_force = 0;
                unsettled += 1;
            }
            if !came && settling == u64::from(SILENCE) {
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

    /// One echo; none if it is overdue.
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

/// Takes frames out of `end` until the one of this number is there; false if it is overdue, by when
/// it was sent. It is looked at after its time was taken, by what is left of the caller's turn.
fn awaits<W: Wire, T: Time>(
    end: &mut W,
    expected: &mut NumberedFrame,
    wanted: u32,
    (sent, time): (u64, &T),
    echoes: &mut FrameEchoes,
) -> Result<bool, ProbeError> {
    let whole = expected.len();
    loop {
        let Some(came) = end.receive()? else {
            if time.now_ns().saturating_sub(sent) >= nanos(PATIENCE) {
                return Ok(false);
            }
            continue;
        };
        // A tag that was put on or taken off moves the number.
        let ours = [whole, came.len()].map(|at| number(came, at));
        if !ours.contains(&Some(wanted)) {
            continue;
        }
        if came.get(..whole) != Some(expected.with(wanted)) {
            echoes.wrong += 1;
            echoes.first_wrong.get_or_insert_with(|| came.to_vec());
        }
        return Ok(true);
    }
}
