//! Generator of numbered frames: copies of one UDP/IPv4 frame, in bursts of up to 64 per system
//! call.
//!
//! The destination address belongs to no host, so that the receiver's stack drops the frames and
//! only its interface counts them. The offered load is counted, never assumed: a generator that is
//! too slow shows.
//!
//! `forwarding-rate`, `meters` and `changes` use it, which count frames by interface counters or
//! need one thread for frames and messages. The other experiments use [`trafficgen`].

use std::io;
use std::net::Ipv4Addr;

use base::Instant;
use testbed::Interrupt;
use testbed::{Clock, Host, RawSocket};
use trafficgen::Template;
use trafficgen::template::Party;

/// Greatest number of frames per system call.
const BURST: usize = 64;
/// Bytes of the Ethernet, IPv4 and UDP headers.
const HEADERS: usize = 14 + 20 + 8;
/// Destination address of the frames: behind the server's port, and not the server.
pub(crate) const SINK: [u8; 6] = [0x02, 0, 0, 0, 0, 0xaa];

/// Intended load (RFC 2285).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum IntendedLoad {
    /// Frames per second, at equal gaps.
    Constant(u32),
    /// The highest rate of the generator.
    FlatOut,
}

/// Burst of numbered frames.
pub(crate) struct Frames {
    frames: Vec<Vec<u8>>,
    next: u32,
}

impl Frames {
    /// Returns frames from `client` to [`SINK`] in the network of `server`.
    pub(crate) fn new(client: &Host, server: &Host, frame_bytes: u16) -> Self {
        Self::marked(client, server, frame_bytes, 0)
    }

    /// Returns frames with this DSCP.
    pub(crate) fn marked(client: &Host, server: &Host, frame_bytes: u16, dscp: u8) -> Self {
        let from = (client.mac, client.address);
        Self::between(from, server.address, frame_bytes, dscp)
    }

    /// Returns frames between addresses, to [`SINK`].
    pub(crate) fn between(
        from: ([u8; 6], Ipv4Addr),
        to: Ipv4Addr,
        frame_bytes: u16,
        dscp: u8,
    ) -> Self {
        let party = |mac, ipv4, port| Party {
            mac,
            ipv4,
            port,
            ..Party::numbered(0)
        };
        let (mac, address) = from;
        let frame = Template {
            source: party(mac, address, 9_999),
            destination: party(SINK, to, 9), // discard
            dscp,
            ..Template::udp(frame_bytes)
        };
        // There is no UDP checksum, since the number differs from frame to frame.
        Self {
            frames: vec![frame.without_checksum(); BURST],
            next: 0,
        }
    }

    /// Numbers and returns the first `count` frames, at most 64.
    pub(crate) fn burst(&mut self, count: usize) -> &[Vec<u8>] {
        let frames = &mut self.frames[..count.min(BURST)];
        for (number, frame) in (self.next..).zip(frames.iter_mut()) {
            frame[HEADERS..HEADERS + 4].copy_from_slice(&number.to_be_bytes());
        }
        frames
    }

    /// Advances the numbers by `sent` frames of the last burst.
    pub(crate) fn advance(&mut self, sent: usize) {
        let sent = u32::try_from(sent).expect("a burst is short");
        self.next = self.next.wrapping_add(sent);
    }
}

/// Returns the number of a frame of this generator.
pub(crate) fn number(frame: &[u8]) -> Option<u32> {
    let bytes = frame.get(HEADERS..HEADERS + 4)?;
    (frame.get(..6) == Some(&SINK))
        .then(|| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

/// Offered load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SentLoad {
    /// Frames that the kernel accepted.
    pub(crate) frames: u64,
    /// Time from the first to the last, in seconds.
    pub(crate) seconds: f64,
}

/// Offers `frames` for `milliseconds`, without sleeping. Returns `None` if the user interrupts it.
pub(crate) fn offer(
    socket: &RawSocket,
    frames: &mut Frames,
    load: IntendedLoad,
    milliseconds: u32,
    clock: &Clock,
    interrupt: &Interrupt,
) -> io::Result<Option<SentLoad>> {
    let began = clock.now();
    let duration_ns = u64::from(milliseconds) * 1_000_000;
    // A generator that is too slow does not catch up afterwards.
    let latest_ns = duration_ns + duration_ns / 50;
    let mut sent = 0;
    loop {
        let elapsed_ns = u64::try_from(clock.now().since(began).as_nanos()).unwrap_or(u64::MAX);
        let due = due(load, elapsed_ns.min(duration_ns), sent);
        let over = load == IntendedLoad::FlatOut || due == 0 || elapsed_ns >= latest_ns;
        if elapsed_ns >= duration_ns && over {
            break;
        }
        if interrupt.is_set() {
            return Ok(None);
        }
        if due > 0 {
            let taken = send(socket, frames.burst(due))?;
            frames.advance(taken);
            sent += u64::try_from(taken).expect("a burst is short");
        }
    }
    Ok(Some(SentLoad {
        frames: sent,
        seconds: seconds(began, clock, milliseconds),
    }))
}

/// Returns the duration that rates refer to: the intended one, or the actual one if it is longer.
fn seconds(began: Instant, clock: &Clock, milliseconds: u32) -> f64 {
    let intended = f64::from(milliseconds) / 1_000.0;
    clock.now().since(began).as_secs_f64().max(intended)
}

/// Returns the number of frames that are due.
fn due(load: IntendedLoad, elapsed_ns: u64, sent: u64) -> usize {
    match load {
        IntendedLoad::FlatOut => BURST,
        IntendedLoad::Constant(pps) => {
            let scheduled = u128::from(elapsed_ns) * u128::from(pps) / 1_000_000_000;
            let behind = scheduled.saturating_sub(u128::from(sent));
            usize::try_from(behind).unwrap_or(BURST).min(BURST)
        }
    }
}

/// Sends frames up to the first that the kernel does not accept.
fn send(socket: &RawSocket, frames: &[Vec<u8>]) -> io::Result<usize> {
    match socket.send(frames) {
        Err(error) if is_full(&error) => Ok(0),
        outcome => outcome,
    }
}

/// Returns true for the error of a full transmit queue.
pub(crate) fn is_full(error: &io::Error) -> bool {
    let full = [rustix::io::Errno::NOBUFS, rustix::io::Errno::AGAIN];
    let errno = rustix::io::Errno::from_io_error(error);
    errno.is_some_and(|errno| full.contains(&errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generator_follows_its_schedule_without_rounding() {
        let load = IntendedLoad::Constant(300_000);
        assert_eq!(due(load, 0, 0), 0);
        assert_eq!(due(load, 10_000, 0), 3);
        assert_eq!(due(load, 10_000, 3), 0);
        assert_eq!(due(load, 1_000_000_000, 0), 64);
        // Rounding does not accumulate: after a second exactly the rate is due.
        assert_eq!(due(load, 1_000_000_000, 299_999), 1);
        assert_eq!(due(load, 1_000_000_000, 300_000), 0);
    }

    #[test]
    fn frames_have_numbers_and_the_sink_address() {
        let from = ([2, 0, 0, 0, 0, 7], Ipv4Addr::new(10, 0, 0, 1));
        let mut frames = Frames::between(from, Ipv4Addr::new(10, 0, 0, 2), 64, 10);
        frames.advance(5);
        let burst = frames.burst(3);
        let numbers: Vec<_> = burst.iter().map(|frame| number(frame)).collect();
        assert_eq!(numbers, [Some(5), Some(6), Some(7)]);
        let frame = &burst[0];
        assert_eq!((frame.len(), &frame[6..12]), (60, &from.0[..]));
        assert_eq!(frame[15], 10 << 2, "DSCP");
        assert_eq!(frame[26..34], [10, 0, 0, 1, 10, 0, 0, 2]);
        assert_eq!(frame[40..42], [0, 0], "no checksum of UDP");
        assert_eq!(number(&[0; 60]), None, "another destination");
    }
}
