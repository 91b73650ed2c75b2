//! The fastest way out of an interface that needs nothing of it: an AF_XDP socket that only sends. No program
//! is attached and no frame that comes in is touched; the kernel copies what is sent, and is spared what
//! sendmmsg(2) costs beside.

use std::io;
use std::num::NonZeroU32;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt;
use sys::xsk::{DeviceQueue, Transfer, Umem, UmemLayout, XskSocket};

use crate::{Clock, Failure, Namespace};

/// Chunks of the largest length that there is, few enough to stay in a cache.
const LAYOUT: UmemLayout = UmemLayout {
    chunk_len: NonZeroU32::new(4096).expect("not zero"),
    rx_chunks: NonZeroU32::new(1).expect("not zero"),
    tx_chunks: NonZeroU32::new(128).expect("not zero"),
};
/// Room for frames under way, in bytes as the kernel counts.
const SEND_BUFFER: usize = 16 << 20;
/// Frames that are handed over by one call.
const BURST: usize = 64;
/// How often the kernel is called in vain before frames are given up that it has not taken up.
const TRIES: u32 = 10_000;

/// How often, and how long apart, a queue that is in use is tried.
const BUSY_TRIES: u32 = 20;
const BUSY_PAUSE: Duration = Duration::from_millis(5);

/// Sends frames of up to [`SwiftSender::LONGEST`] bytes by an interface. It never sleeps.
pub struct SwiftSender {
    socket: XskSocket,
    dropped: u64,
}

impl Namespace {
    /// Opens such a sender by the first queue of `interface`.
    ///
    /// # Errors
    /// There is no such interface here, another socket has its queue, or this process may not.
    pub fn swift_sender(&self, interface: &str) -> Result<SwiftSender, Failure> {
        let device = DeviceQueue {
            interface: self.index(interface)?,
            queue: 0,
        };
        let open = || -> io::Result<SwiftSender> {
            let memory = Umem::new(LAYOUT, NonZeroU32::MIN)?;
            let mut socket = XskSocket::open(&memory, device)?;
            let forced = sockopt::set_socket_send_buffer_size_force(&socket, SEND_BUFFER);
            forced.or_else(|_| sockopt::set_socket_send_buffer_size(&socket, SEND_BUFFER))?;
            bind(&mut socket)?;
            Ok(SwiftSender { socket, dropped: 0 })
        };
        self.run(open)?
            .map_err(Failure::to(format!("open an AF_XDP sender on {interface}")))
    }
}

/// Binds; the kernel needs some milliseconds to let go of a queue that another socket has just had.
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

impl SwiftSender {
    /// The longest frame.
    pub const LONGEST: usize = LAYOUT.chunk_len.get() as usize;

    /// Sends from the front of `frames`, 64 at most, and returns how many were taken. The kernel is
    /// done with them when this returns.
    ///
    /// # Errors
    /// The interface is gone or down, or a frame is longer than it takes.
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

    /// Calls the kernel until it has taken up all that is placed: it takes some of it a call.
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

    /// How many frames the interface has dropped since the last call, having no room for them.
    pub const fn take_drops(&mut self) -> u64 {
        let dropped = self.dropped;
        self.dropped = 0;
        dropped
    }
}
