//! Small frames in great number: the same UDP/IPv4 frame over and over, each with a
//! number of its own, in bursts of up to 64 a system call.
//!
//! Frames are addressed to nobody at the far end, so that its stack drops them at
//! once and only the interface counts them. Who sends too little is told: what is
//! offered is counted, never assumed.

use std::io;
use std::net::Ipv4Addr;

use base::Instant;
use testbed::Interrupt;
use testbed::{Clock, Host, RawSocket};
use trafficgen::Template;
use trafficgen::template::Party;

use crate::plan::Offer;

/// Frames a system call at most.
const BURST: usize = 64;
/// Ethernet, IPv4 and UDP headers.
const HEADERS: usize = 14 + 20 + 8;
/// The station that frames are for: behind the server's port, and not the server.
pub(crate) const NOBODY: [u8; 6] = [0x02, 0, 0, 0, 0, 0xaa];

/// A burst of numbered frames.
pub(crate) struct Frames {
    frames: Vec<Vec<u8>>,
    next: u32,
}

impl Frames {
    /// Frames from `client` to [`NOBODY`] in the network of `server`.
    pub(crate) fn new(client: &Host, server: &Host, frame_bytes: u16) -> Self {
        Self::marked(client, server, frame_bytes, 0)
    }

    /// The same, of this DSCP.
    pub(crate) fn marked(client: &Host, server: &Host, frame_bytes: u16, dscp: u8) -> Self {
        let from = (client.mac, client.address);
        Self::between(from, server.address, frame_bytes, dscp)
    }

    /// Frames from this station to [`NOBODY`] at this address.
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
            destination: party(NOBODY, to, 9), // discard
            dscp,
            ..Template::udp(frame_bytes)
        };
        // Without a UDP checksum, since the number changes from frame to frame.
        Self {
            frames: vec![frame.unsummed(); BURST],
            next: 0,
        }
    }

    /// Numbers the first `count` frames, 64 at most, and hands them out.
    pub(crate) fn burst(&mut self, count: usize) -> &[Vec<u8>] {
        let frames = &mut self.frames[..count.min(BURST)];
        for (number, frame) in (self.next..).zip(frames.iter_mut()) {
            frame[HEADERS..HEADERS + 4].copy_from_slice(&number.to_be_bytes());
        }
        frames
    }

    /// Goes on to the numbers behind the first `sent` of the last burst.
    pub(crate) fn advance(&mut self, sent: usize) {
        let sent = u32::try_from(sent).expect("a burst is short");
        self.next = self.next.wrapping_add(sent);
    }
}

/// The number of a frame, if it is one of ours.
pub(crate) fn number(frame: &[u8]) -> Option<u32> {
    let bytes = frame.get(HEADERS..HEADERS + 4)?;
    (frame.get(..6) == Some(&NOBODY))
        .then(|| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

/// What was sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sent {
    /// Frames that the kernel took.
    pub(crate) frames: u64,
    /// From the first to the last.
    pub(crate) seconds: f64,
}

/// Offers `frames` for `milliseconds`, without sleeping; none if the user wants no more.
pub(crate) fn offer(
    socket: &RawSocket,
    frames: &mut Frames,
    offer: Offer,
    milliseconds: u32,
    clock: &Clock,
    interrupt: &Interrupt,
) -> io::Result<Option<Sent>> {
    let began = clock.now();
    let duration_ns = u64::from(milliseconds) * 1_000_000;
    // A paced generator that has fallen behind for good does not catch up afterwards.
    let latest_ns = duration_ns + duration_ns / 50;
    let mut sent = 0;
    loop {
        let elapsed_ns = u64::try_from(clock.now().since(began).as_nanos()).unwrap_or(u64::MAX);
        let due = due(offer, elapsed_ns.min(duration_ns), sent);
        let over = offer == Offer::FlatOut || due == 0 || elapsed_ns >= latest_ns;
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
    Ok(Some(Sent {
        frames: sent,
        seconds: seconds(began, clock, milliseconds),
    }))
}

/// The time that rates refer to: what was asked for, or longer if it took longer.
fn seconds(began: Instant, clock: &Clock, milliseconds: u32) -> f64 {
    let asked = f64::from(milliseconds) / 1_000.0;
    clock.now().since(began).as_secs_f64().max(asked)
}

/// How many frames are to be sent now.
fn due(offer: Offer, elapsed_ns: u64, sent: u64) -> usize {
    match offer {
        Offer::FlatOut => BURST,
        Offer::Paced(pps) => {
            let scheduled = u128::from(elapsed_ns) * u128::from(pps) / 1_000_000_000;
            let behind = scheduled.saturating_sub(u128::from(sent));
            usize::try_from(behind).unwrap_or(BURST).min(BURST)
        }
    }
}

/// Sends what there is room for.
fn send(socket: &RawSocket, frames: &[Vec<u8>]) -> io::Result<usize> {
    match socket.send(frames) {
        Err(error) if is_full(&error) => Ok(0),
        outcome => outcome,
    }
}

pub(crate) fn is_full(error: &io::Error) -> bool {
    let full = [rustix::io::Errno::NOBUFS, rustix::io::Errno::AGAIN];
    let errno = rustix::io::Errno::from_io_error(error);
    errno.is_some_and(|errno| full.contains(&errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paced_generator_is_due_what_the_schedule_says_and_no_more() {
        let offer = Offer::Paced(300_000);
        assert_eq!(due(offer, 0, 0), 0);
        assert_eq!(due(offer, 10_000, 0), 3);
        assert_eq!(due(offer, 10_000, 3), 0);
        assert_eq!(due(offer, 1_000_000_000, 0), 64);
        // No rounding adds up: after a second exactly the rate has been due.
        assert_eq!(due(offer, 1_000_000_000, 299_999), 1);
        assert_eq!(due(offer, 1_000_000_000, 300_000), 0);
    }

    #[test]
    fn frames_are_for_nobody_and_bear_their_numbers() {
        let from = ([2, 0, 0, 0, 0, 7], Ipv4Addr::new(10, 0, 0, 1));
        let mut frames = Frames::between(from, Ipv4Addr::new(10, 0, 0, 2), 64, 10);
        frames.advance(5);
        let burst = frames.burst(3);
        let numbers: Vec<_> = burst.iter().map(|frame| number(frame)).collect();
        assert_eq!(numbers, [Some(5), Some(6), Some(7)]);
        let frame = &burst[0];
        assert_eq!((frame.len(), &frame[6..12]), (60, &from.0[..]));
        assert_eq!(frame[15], 10 << 2, "marked");
        assert_eq!(frame[26..34], [10, 0, 0, 1, 10, 0, 0, 2]);
        assert_eq!(frame[40..42], [0, 0], "no checksum of UDP");
        assert_eq!(number(&[0; 60]), None, "for somebody");
    }
}
