//! The fastest sender that works with any interface: a send-only AF_XDP socket in copy mode. It
//! attaches no program and does not affect received frames. The kernel copies each frame and skips
//! the other costs of sendmmsg(2).

use std::io;
use std::num::NonZeroU32;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt;
use sys::xsk::{DeviceQueue, Transfer, Umem, UmemLayout, XskSocket};

use crate::{Clock, Failure, Namespace};

/// Chunks of the largest length, few enough to stay in a cache.
const LAYOUT: UmemLayout = UmemLayout {
    chunk_len: NonZeroU32::new(4096).expect("not zero"),
    rx_chunks: NonZeroU32::new(1).expect("not zero"),
    tx_chunks: NonZeroU32::new(128).expect("not zero"),
};
/// Send buffer in bytes, by the kernel's accounting.
const SEND_BUFFER: usize = 16 << 20;
/// Maximum number of frames of a call.
const BURST: usize = 64;
/// The number of system calls before `push` fails with frames that the kernel has not accepted.
const TRIES: u32 = 10_000;

/// The attempts to bind a busy queue, and the pause between them.
const BUSY_TRIES: u32 = 20;
const BUSY_PAUSE: Duration = Duration::from_millis(5);

/// Sends frames of up to [`XdpSender::LONGEST`] bytes from an interface. It never sleeps.
pub struct XdpSender {
    socket: XskSocket,
    dropped: u64,
}

impl Namespace {
    /// Opens a sender on the first queue of `interface`.
    ///
    /// # Errors
    /// The interface does not exist here, another socket uses its queue, or the process lacks the
    /// privilege.
    pub fn xdp_sender(&self, interface: &str) -> Result<XdpSender, Failure> {
        let device = DeviceQueue {
            interface: self.index(interface)?,
            queue: 0,
        };
        let open = || -> io::Result<XdpSender> {
            let memory = Umem::new(LAYOUT, NonZeroU32::MIN)?;
            let mut socket = XskSocket::open(&memory, device)?;
            let forced = sockopt::set_socket_send_buffer_size_force(&socket, SEND_BUFFER);
            forced.or_else(|_| sockopt::set_socket_send_buffer_size(&socket, SEND_BUFFER))?;
            bind(&mut socket)?;
            Ok(XdpSender { socket, dropped: 0 })
        };
        self.run(open)?
            .map_err(Failure::to(format!("open an AF_XDP sender on {interface}")))
    }
}

/// Binds the socket. The kernel needs some milliseconds to release a queue that another socket has
/// just closed.
fn bind(socket: &mut XskSocket) -> io::Result<()> {
    let clock = Clock::start();
    for _ in 1..BUSY_TRIES {
        match socket.bind(Transfer::Copy) {
            Err(error) if Errno::from_io_error(&error) == Some(Errno::BUSY) => {
                clock.sleep_until(clock.now() + BUSY_PAUSE);
            }
            outcome => return outcome,
        }
    }
    socket.bind(Transfer::Copy)
}

impl XdpSender {
    /// The longest frame.
    pub const LONGEST: usize = LAYOUT.chunk_len.get() as usize;

    /// Sends from the front of `frames`, at most 64, and returns the number accepted. The kernel no
    /// longer references them after the return.
    ///
    /// # Errors
    /// The interface has disappeared or is down, or a frame exceeds its MTU.
    pub fn send(&mut self, frames: &[&[u8]]) -> io::Result<usize> {
        let mut placed = 0;
        for frame in frames.iter().take(BURST) {
            if !self.socket.enqueue_copy(frame) {
                break;
            }
            placed += 1;
        }
        if placed == 0 && frames.iter().any(|frame| frame.len() > Self::LONGEST) {
            return Err(io::Error::from_raw_os_error(Errno::MSGSIZE.raw_os_error()));
        }
        self.push()?;
        Ok(placed)
    }

    /// Calls the kernel until it has accepted all queued frames: each call accepts only some of
    /// them.
    fn push(&mut self) -> io::Result<()> {
        for _ in 0..TRIES {
            match self.socket.send() {
                Err(error) if Errno::from_io_error(&error) == Some(Errno::BUSY) => {
                    self.dropped += 1;
                }
                outcome => outcome?,
            }
            if self.socket.tx_pending()? == 0 {
                return self.socket.reap_completions();
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }

    /// Returns the number of frames that the interface has dropped since the last call because it
    /// had no space.
    pub const fn take_drops(&mut self) -> u64 {
        let dropped = self.dropped;
        self.dropped = 0;
        dropped
    }
}
