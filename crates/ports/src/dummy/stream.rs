//! Frames on a stream socket, as Open vSwitch's `netdev-dummy` sends them: the length of the frame
//! in two bytes, big-endian, then the frame.
//!
//! A socket never blocks. Frames that the socket does not accept wait in a bounded queue; further
//! ones are dropped.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;

/// Length of the prefix.
const PREFIX_LEN: usize = 2;

/// Minimum length of a frame: an Ethernet header.
const FRAME_LEN_MIN: usize = 14;

/// Maximum number of frames that wait for the socket, as in Open vSwitch.
const PENDING_MAX: usize = 100;

/// Bytes of one read: several frames.
const READ_LEN: usize = 16 << 10;

/// A length on the stream is shorter than an Ethernet header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a frame on the stream is shorter than an Ethernet header")]
pub struct StreamFrameTooShort;

/// The received bytes of a stream, and the frames in them.
#[derive(Debug, Default)]
pub struct Deframer {
    bytes: Vec<u8>,
    /// The bytes before this position belong to returned frames.
    taken: usize,
}

impl Deframer {
    /// Appends received bytes.
    pub fn append(&mut self, bytes: &[u8]) {
        self.bytes.drain(..std::mem::take(&mut self.taken));
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the next complete frame, if any.
    ///
    /// # Errors
    /// The stream is malformed and must be closed.
    pub fn next_frame(&mut self) -> Result<Option<&[u8]>, StreamFrameTooShort> {
        let rest = &self.bytes[self.taken..];
        let Some((prefix, frames)) = rest.split_first_chunk::<PREFIX_LEN>() else {
            return Ok(None);
        };
        let length = usize::from(u16::from_be_bytes(*prefix));
        if length < FRAME_LEN_MIN {
            return Err(StreamFrameTooShort);
        }
        let Some(frame) = frames.get(..length) else {
            return Ok(None);
        };
        self.taken += PREFIX_LEN + length;
        Ok(Some(frame))
    }
}

/// A connected socket.
pub(super) struct FrameStream {
    socket: OwnedFd,
    received: Deframer,
    pending: VecDeque<Vec<u8>>,
    /// The number of bytes of the first pending frame that were sent.
    sent: usize,
}

impl FrameStream {
    /// Wraps a connected socket that does not block.
    pub(super) fn new(socket: OwnedFd) -> Self {
        Self {
            socket,
            received: Deframer::default(),
            pending: VecDeque::new(),
            sent: 0,
        }
    }

    pub(super) const fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// Returns true if frames wait for the socket.
    pub(super) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Queues a frame and sends as much as the socket accepts. Returns false if the frame was
    /// dropped.
    pub(super) fn send(&mut self, frame: &[u8]) -> io::Result<bool> {
        let Ok(length) = u16::try_from(frame.len()) else {
            return Ok(false);
        };
        if self.pending.len() >= PENDING_MAX {
            return Ok(false);
        }
        self.pending
            .push_back([&length.to_be_bytes()[..], frame].concat());
        self.flush()?;
        Ok(true)
    }

    /// Sends pending frames as far as the socket accepts them.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        while let Some(first) = self.pending.front() {
            match rustix::net::send(
                &self.socket,
                &first[self.sent..],
                rustix::net::SendFlags::NOSIGNAL,
            ) {
                Ok(count) => {
                    self.sent += count;
                    if self.sent == first.len() {
                        self.pending.pop_front();
                        self.sent = 0;
                    }
                }
                Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Passes received frames to `accept` while `has_room`; the others stay in the socket.
    ///
    /// # Errors
    /// The peer closed the connection or sent a malformed stream, or the socket failed.
    pub(super) fn receive(&mut self, mut accept: impl FnMut(&[u8]) -> HasRoom) -> io::Result<()> {
        let mut buffer = [0; READ_LEN];
        loop {
            loop {
                let next = self.received.next_frame().map_err(io::Error::other)?;
                let Some(frame) = next else { break };
                if accept(frame) == HasRoom::No {
                    return Ok(());
                }
            }
            match rustix::io::read(&self.socket, &mut buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.received.append(&buffer[..count]),
                Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// The state of the receiver after a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HasRoom {
    Yes,
    No,
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn deframer_returns_frames_of_any_fragmentation() {
        let frames = [vec![1; 14], vec![2; 300], vec![3; 60]];
        let bytes: Vec<u8> = frames
            .iter()
            .flat_map(|frame| {
                let length = u16::try_from(frame.len()).expect("a short frame");
                [length.to_be_bytes().to_vec(), frame.clone()].concat()
            })
            .collect();
        for step in [1, 2, 3, 17, bytes.len()] {
            let (mut deframer, mut received) = (Deframer::default(), Vec::new());
            for part in bytes.chunks(step) {
                deframer.append(part);
                while let Some(frame) = deframer.next_frame().expect("well-formed") {
                    received.push(frame.to_vec());
                }
            }
            assert_eq!(received, frames, "{step}");
        }
    }

    #[test]
    fn deframer_refuses_short_frame() {
        let mut deframer = Deframer::default();
        deframer.append(&[0, 13]);
        assert_eq!(deframer.next_frame(), Err(StreamFrameTooShort));
    }

    fn streams() -> [FrameStream; 2] {
        let (one, two) = UnixStream::pair().expect("a socket pair");
        [one, two].map(|socket| {
            socket.set_nonblocking(true).expect("a socket");
            FrameStream::new(socket.into())
        })
    }

    #[test]
    fn stream_keeps_frames_until_socket_accepts_them() {
        let [mut one, mut two] = streams();
        let frame = vec![7; 9000];
        let mut sent = 0;
        while !one.has_pending() {
            assert!(one.send(&frame).expect("the peer is open"));
            sent += 1;
        }
        for _ in 0..2 * PENDING_MAX {
            sent += usize::from(one.send(&frame).expect("the peer is open"));
        }
        let mut received = 0;
        for _ in 0..sent {
            let mut accept = |got: &[u8]| {
                assert_eq!(got, frame);
                received += 1;
                HasRoom::Yes
            };
            two.receive(&mut accept).expect("the peer is open");
            one.flush().expect("the peer is open");
        }
        assert_eq!(received, sent);
        drop(one);
        two.receive(|_| HasRoom::Yes)
            .expect_err("the peer has closed");
    }

    #[test]
    fn stream_leaves_frames_in_socket_while_receiver_is_full() {
        let [mut one, mut two] = streams();
        for tag in [1, 2, 3] {
            assert!(one.send(&[tag; 60]).expect("the peer is open"));
        }
        let mut received = Vec::new();
        for _ in 0..3 {
            let mut accept = |got: &[u8]| {
                received.push(got[0]);
                HasRoom::No
            };
            two.receive(&mut accept).expect("the peer is open");
        }
        assert_eq!(received, [1, 2, 3]);
    }
}
