//! Raw Ethernet frames at an interface of a namespace, bypassing the protocol stack: for
//! generators, and for tests that inspect a device's output.
//!
//! Unlike a switch port, it has no ring and no offloads; its limit is the tester's own and is
//! measured as such.

use std::array;
use std::io::{self, IoSlice};

use rustix::net::{MMsgHdr, RecvFlags, SendAncillaryBuffer, SendFlags, recv, sendmmsg};
use sys::packet_socket::{PacketSocket, ReceiveFilter};

use crate::{Failure, Namespace};

/// Maximum number of frames of a system call.
const BURST: usize = 64;

/// Send and receive buffer in bytes: some 20,000 small frames by the kernel's accounting.
const BUFFER: usize = 16 << 20;

/// A non-blocking socket for Ethernet frames without FCS.
pub struct RawSocket {
    socket: PacketSocket,
}

impl Namespace {
    /// Opens a socket that sends from `interface`, bypassing its queueing discipline, and receives
    /// nothing.
    ///
    /// # Errors
    /// There is no such interface here.
    pub fn raw_sender(&self, interface: &str) -> Result<RawSocket, Failure> {
        self.raw_socket(interface, ReceiveFilter::None)
    }

    /// Opens a socket that also receives all frames of `interface`, in promiscuous mode.
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
    /// Sends up to 64 of `frames` and returns the number accepted. The kernel no longer references
    /// them after the return.
    ///
    /// # Errors
    /// The kernel refuses the first frame: `ENOBUFS` or `EAGAIN` if its buffer is full.
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

    /// Receives up to 64 frames with one system call, each into its own buffer and truncated to
    /// that; stores their lengths and returns their number.
    ///
    /// # Errors
    /// The interface has disappeared or is down.
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

    /// Receives a frame into `room`, truncated to it, and returns its length; `None` if no frame is
    /// available.
    ///
    /// # Errors
    /// The interface has disappeared or is down.
    pub fn receive(&self, room: &mut [u8]) -> io::Result<Option<usize>> {
        match recv(&self.socket, room, RecvFlags::DONTWAIT) {
            Ok((length, _)) => Ok(Some(length)),
            Err(rustix::io::Errno::AGAIN) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns true if the send buffer was full, a temporary condition.
pub(crate) fn is_full(error: &io::Error) -> bool {
    let full = [rustix::io::Errno::NOBUFS, rustix::io::Errno::AGAIN];
    let errno = rustix::io::Errno::from_io_error(error);
    errno.is_some_and(|errno| full.contains(&errno))
}
