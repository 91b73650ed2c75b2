//! Whole frames, out of and into an interface of a namespace, past the host's own
//! protocols: for generators, and for tests that look at what comes out.
//!
//! Not a port of a switch: no ring, no offloads; what is slow here is the
//! generator's own limit, and is measured as such.

use std::array;
use std::io::{self, IoSlice};

use rustix::net::{MMsgHdr, RecvFlags, SendAncillaryBuffer, SendFlags, recv, sendmmsg};
use sys::packet_socket::{PacketSocket, ReceiveFilter};

use crate::{Failure, Namespace};

/// How many frames go out in one system call at most.
const BURST: usize = 64;

/// Room for frames on their way, in bytes: some 20,000 small ones, as the kernel counts.
const BUFFER: usize = 16 << 20;

/// A socket for whole Ethernet frames, without their checksum. It never blocks.
pub struct RawSocket {
    socket: PacketSocket,
}

impl Namespace {
    /// Opens a socket that sends out of `interface` past its queueing discipline,
    /// and reception nothing.
    ///
    /// # Errors
    /// There is no such interface here.
    pub fn raw_sender(&self, interface: &str) -> Result<RawSocket, Failure> {
        self.raw_socket(interface, ReceiveFilter::None)
    }

    /// Opens a socket that also reception what comes in by `interface`, whomever it is for.
    ///
    /// # Errors
    /// There is no such interface here.
    pub fn raw_receiver(&self, interface: &str) -> Result<RawSocket, Failure> {
        self.raw_socket(interface, ReceiveFilter::AllProtocols)
    }

    fn raw_socket(&self, interface: &str, reception: ReceiveFilter) -> Result<RawSocket, Failure> {
        let index = self.index(interface)?;
        let open = || -> io::Result<RawSocket> {
            let socket = PacketSocket::open()?;
            socket.set_qdisc_bypass()?;
            socket.set_send_buffer(BUFFER)?;
            if reception == ReceiveFilter::AllProtocols {
                socket.set_ignore_outgoing()?;
                socket.set_receive_buffer(BUFFER)?;
                socket.set_promiscuous(index)?;
            }
            socket.bind(index, reception)?;
            Ok(RawSocket { socket })
        };
        self.run(open)?
            .map_err(Failure::to(format!("open a raw socket on {interface}")))
    }
}

impl RawSocket {
    /// Sends the first 64 of `frames` at most, and says how many the kernel took.
    /// It is done with all of them before it returns.
    ///
    /// # Errors
    /// The kernel refuses the first: `ENOBUFS` and `EAGAIN` where there is no room.
    pub fn send<F: AsRef<[u8]>>(&self, frames: &[F]) -> io::Result<usize> {
        let count = frames.len().min(BURST);
        let parts: [_; BURST] =
            array::from_fn(|index| [IoSlice::new(frames.get(index).map_or(&[], AsRef::as_ref))]);
        let mut controls: [_; BURST] = array::from_fn(|_| SendAncillaryBuffer::default());
        let mut rest = parts.iter().zip(&mut controls);
        let mut messages: [_; BURST] = array::from_fn(|_| {
            let (part, control) = rest.next().expect("as many parts as messages");
            MMsgHdr::new(part, control)
        });
        let sent = sendmmsg(&self.socket, &mut messages[..count], SendFlags::DONTWAIT)?;
        Ok(sent)
    }

    /// Receives what has come by one system call, up to 64 frames, each into a room of its
    /// own and cut to its size; writes down their lengths and says how many there are.
    ///
    /// # Errors
    /// The interface is gone or down.
    pub(crate) fn receive_burst(
        &self,
        rooms: &mut [Vec<u8>],
        lengths: &mut [usize],
    ) -> io::Result<usize> {
        match self.socket.receive_burst(rooms, lengths) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            outcome => outcome,
        }
    }

    /// Receives a frame into `room`, cut to its size, and returns its length; none if there is none.
    ///
    /// # Errors
    /// The interface is gone or down.
    pub fn receive(&self, room: &mut [u8]) -> io::Result<Option<usize>> {
        match recv(&self.socket, room, RecvFlags::DONTWAIT) {
            Ok((length, _)) => Ok(Some(length)),
            Err(rustix::io::Errno::AGAIN) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Whether there was no room for a frame, which passes.
pub(crate) fn is_full(error: &io::Error) -> bool {
    let full = [rustix::io::Errno::NOBUFS, rustix::io::Errno::AGAIN];
    let errno = rustix::io::Errno::from_io_error(error);
    errno.is_some_and(|errno| full.contains(&errno))
}
