//! Small frames in great number: the same UDP/IPv4 frame over and over, each with a
//! number of its own, in bursts of up to 64 a system call.
//!
//! Frames are addressed to nobody at the far end, so that its stack drops them at
//! once and only the interface counts them. Who sends too little is told: what is
//! offered is counted, never assumed.

use std::io;

use base::Instant;
use testbed::{Clock, Host, RawSocket};

use crate::instrument::checksum::{checksum, sum};
use crate::plan::Offer;
use crate::{Interrupt, random::Random};

/// Frames a system call at most.
const BURST: usize = 64;
/// Ethernet, IPv4 and UDP headers.
const HEADERS: usize = 14 + 20 + 8;
/// The checksum at the end of a frame (FCS), which the interface would add.
const FCS: usize = 4;
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
        let length = usize::from(frame_bytes) - FCS;
        let frame = frame(client, server, length, dscp << 2);
        Self {
            frames: vec![frame; BURST],
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

/// A frame without its checksum. The UDP checksum is zero, "none" (RFC 768), since
/// the number changes from frame to frame.
fn frame(client: &Host, server: &Host, length: usize, tos: u8) -> Vec<u8> {
    let ip_length = u16::try_from(length - 14).expect("a frame is short");
    let udp_length = ip_length - 20;
    let mut ip = [0; 20];
    ip[..2].copy_from_slice(&[0x45, tos]);
    ip[2..4].copy_from_slice(&ip_length.to_be_bytes());
    ip[6..10].copy_from_slice(&[0x40, 0, 64, 17]); // don't fragment; TTL 64; UDP
    ip[12..16].copy_from_slice(&client.address.octets());
    ip[16..20].copy_from_slice(&server.address.octets());
    let checksum = checksum(sum(&ip));
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    let mut frame = Vec::with_capacity(length);
    frame.extend(NOBODY);
    frame.extend(client.mac);
    frame.extend([0x08, 0x00]);
    frame.extend(ip);
    frame.extend(9_999_u16.to_be_bytes());
    frame.extend(9_u16.to_be_bytes()); // discard
    frame.extend(udp_length.to_be_bytes());
    frame.extend([0, 0]);
    // Filled with what no switch could guess, so that a changed byte shows.
    let mut random = Random::new(9);
    frame.resize_with(length, || random.next().to_be_bytes()[0]);
    frame
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
}
