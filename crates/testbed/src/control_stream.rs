//! A non-blocking connection between a controller and a device, by TCP or a Unix socket, with the
//! arrival times of its bytes.

use std::io::{self, ErrorKind, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use base::Instant;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::{Clock, Failure};

/// The source of an arrival time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stamp {
    /// The kernel, on reception from the network (`SO_TIMESTAMPNS`).
    Kernel,
    /// The reader, after the read.
    Read,
}

impl Stamp {
    /// Returns its name in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Read => "read",
        }
    }
}

/// The arrival of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Time by the tester's clock.
    pub at: Instant,
    /// Source of the time.
    pub by: Stamp,
}

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Number of bytes.
    pub length: usize,
    /// Arrival of the last byte; earlier ones may have waited for the reader.
    pub arrival: Arrival,
}

/// Enables kernel timestamps for the connections of a listener. The kernel begins some moments
/// after the call, and thus before a peer connects.
///
/// # Errors
/// Those of setsockopt(2).
pub fn enable_timestamps(listener: &TcpListener) -> io::Result<()> {
    sys::stream_socket::enable_timestamps(listener)
}

/// A connection.
#[derive(Debug)]
pub struct ControlStream {
    socket: StreamSocket,
}

#[derive(Debug)]
enum StreamSocket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl ControlStream {
    /// Connects to the socket at this path.
    ///
    /// # Errors
    /// There is no listener.
    pub fn connect(path: &Path) -> Result<Self, Failure> {
        UnixStream::connect(path)
            .and_then(Self::unix)
            .map_err(Failure::to(format!("connect to {}", path.display())))
    }

    /// Wraps a Unix socket.
    ///
    /// # Errors
    /// The system refuses to make it non-blocking.
    pub fn unix(socket: UnixStream) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let socket = StreamSocket::Unix(socket);
        Ok(Self { socket })
    }

    /// Wraps a TCP socket, without Nagle's algorithm and with kernel timestamps.
    ///
    /// # Errors
    /// The system refuses one of these.
    pub fn tcp(socket: TcpStream) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        sys::stream_socket::enable_timestamps(&socket)?;
        let socket = StreamSocket::Tcp(socket);
        Ok(Self { socket })
    }

    /// Reads the available bytes; returns `None` if there are none.
    ///
    /// # Errors
    /// The connection has ended; `UnexpectedEof` if the peer closed it.
    pub fn read(&self, room: &mut [u8], clock: &Clock) -> io::Result<Option<Chunk>> {
        let received = match sys::stream_socket::receive(self, room) {
            Err(error) if is_later(&error) => return Ok(None),
            outcome => outcome?,
        };
        if received.length == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let (now, today) = (clock.now(), clock.calendar());
        let arrival = arrival(received.timestamp, now, today);
        let length = received.length;
        Ok(Some(Chunk { length, arrival }))
    }

    /// Writes as much as the socket accepts, and returns its length.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let outcome = match &mut self.socket {
            StreamSocket::Unix(socket) => socket.write(bytes),
            StreamSocket::Tcp(socket) => socket.write(bytes),
        };
        match outcome {
            Err(error) if is_later(&error) => Ok(0),
            outcome => outcome,
        }
    }

    /// Returns the bytes that are not delivered yet: for TCP those that are not acknowledged, for a
    /// Unix socket the memory of those that the peer has not read.
    ///
    /// # Errors
    /// Those of ioctl(2).
    pub fn unsent(&self) -> io::Result<usize> {
        sys::stream_socket::send_queue_len(self)
    }

    /// Sleeps until the socket is ready as `readiness` says, at most for `limit`.
    ///
    /// # Errors
    /// Those of poll(2).
    pub fn wait(&self, readiness: Readiness, limit: Option<Duration>) -> io::Result<()> {
        self.wait_also(readiness, None, limit)
    }

    /// Does the same as [`Self::wait`], and also returns if `also` is readable.
    ///
    /// # Errors
    /// Those of poll(2).
    pub fn wait_also(
        &self,
        readiness: Readiness,
        also: Option<BorrowedFd<'_>>,
        limit: Option<Duration>,
    ) -> io::Result<()> {
        let flags = match readiness {
            Readiness::Readable => PollFlags::IN,
            Readiness::ReadableOrWritable => PollFlags::IN | PollFlags::OUT,
        };
        let own = PollFd::from_borrowed_fd(self.as_fd(), flags);
        let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
        let outcome = match also {
            None => poll(&mut [own], limit.as_ref()),
            Some(also) => {
                let also = PollFd::from_borrowed_fd(also, PollFlags::IN);
                poll(&mut [own, also], limit.as_ref())
            }
        };
        match outcome {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// The readiness to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// Readable.
    Readable,
    /// Readable or writable.
    ReadableOrWritable,
}

impl AsFd for ControlStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.socket {
            StreamSocket::Unix(socket) => socket.as_fd(),
            StreamSocket::Tcp(socket) => socket.as_fd(),
        }
    }
}

impl Drop for ControlStream {
    fn drop(&mut self) {
        // The peer may have closed the connection first.
        let _ = match &self.socket {
            StreamSocket::Unix(socket) => socket.shutdown(Shutdown::Both),
            StreamSocket::Tcp(socket) => socket.shutdown(Shutdown::Both),
        };
    }
}

/// Converts a calendar time of arrival to the tester's clock, which showed `now` when the calendar
/// showed `today`. The time is rejected if the calendar was set meanwhile.
fn arrival(calendar: Option<Duration>, now: Instant, today: Duration) -> Arrival {
    let age = calendar.and_then(|then| today.checked_sub(then));
    let by_kernel = age.filter(|age| *age < AGE_MAX).and_then(|age| {
        let nanos = u64::try_from(age.as_nanos()).ok()?;
        now.as_nanos().checked_sub(nanos)
    });
    match by_kernel {
        Some(nanos) => Arrival {
            at: Instant::from_nanos(nanos),
            by: Stamp::Kernel,
        },
        None => Arrival {
            at: now,
            by: Stamp::Read,
        },
    }
}

/// Maximum plausible age; older bytes mean that the calendar was set.
const AGE_MAX: Duration = Duration::from_secs(60);

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRIES: u32 = 1_000_000;

    #[test]
    fn kernel_timestamps_convert_to_the_testers_clock() {
        let now = Instant::from_millis(5_000);
        let today = Duration::from_secs(1_000_000);
        let then = today - Duration::from_millis(3);
        let converted = arrival(Some(then), now, today);
        let expected = Arrival {
            at: Instant::from_millis(4_997),
            by: Stamp::Kernel,
        };
        assert_eq!(converted, expected);
    }

    #[test]
    fn timestamps_after_a_calendar_change_are_rejected() {
        let now = Instant::from_millis(90_000);
        let today = Duration::from_secs(1_000_000);
        let read = Arrival {
            at: now,
            by: Stamp::Read,
        };
        for then in [today + Duration::from_nanos(1), today - AGE_MAX] {
            assert_eq!(arrival(Some(then), now, today), read);
        }
        assert_eq!(arrival(None, now, today), read);
        // Nothing arrived before the clock started.
        let early = Instant::from_millis(1);
        let converted = arrival(Some(today - Duration::from_secs(1)), early, today);
        assert_eq!(converted.by, Stamp::Read);
    }

    #[test]
    fn tcp_bytes_have_kernel_timestamps_before_the_read() {
        let clock = Clock::start();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let far = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let near = ControlStream::tcp(listener.accept().unwrap().0).unwrap();
        let mut far = ControlStream::tcp(far).unwrap();
        let mut room = [0; 16];
        assert_eq!(near.read(&mut room, &clock).unwrap(), None);

        // The kernel begins a moment after the request, if it is the first.
        let stamped = (0..TRIES).any(|_| {
            assert_eq!(far.write(b"seven").unwrap(), 5);
            near.wait(Readiness::Readable, None).unwrap();
            let chunk = near.read(&mut room, &clock).unwrap().unwrap();
            assert_eq!(chunk.length, 5);
            assert!(chunk.arrival.at <= clock.now());
            chunk.arrival.by == Stamp::Kernel
        });
        assert!(stamped);
        drop(far);
        near.wait(Readiness::Readable, None).unwrap();
        let over = near.read(&mut room, &clock).unwrap_err();
        assert_eq!(over.kind(), ErrorKind::UnexpectedEof);
    }
}
