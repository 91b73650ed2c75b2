//! Receive timestamps of stream sockets and the length of their send queues.
//!
//! Not here: connecting, accepting, and the meaning of the bytes.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use crate::socket_option::{self, check};

/// Enables receive timestamps (`SO_TIMESTAMPNS`); a listening socket passes the option to the
/// sockets that it accepts. The kernel starts to take timestamps some moments after the first
/// socket of the machine enables them. It takes none for Unix sockets.
///
/// # Errors
/// Those of setsockopt(2).
pub fn enable_timestamps(socket: impl AsFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    socket_option::set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &on)
}

/// Result of one receive call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamRead {
    /// Number of bytes; 0 if the peer has closed the connection.
    pub length: usize,
    /// Time at which the kernel received the last byte, since 1970-01-01 00:00 UTC, if it took one.
    pub timestamp: Option<Duration>,
}

/// Buffer for a control message with a timestamp, aligned as its header requires.
#[repr(C)]
union ControlBuffer {
    _aligned: libc::cmsghdr,
    bytes: [u8; 64],
}

/// Receives available bytes into `buffer` without blocking.
///
/// # Errors
/// `EAGAIN`: no bytes are available. Those of recvmsg(2).
pub fn receive(socket: impl AsFd, buffer: &mut [u8]) -> io::Result<StreamRead> {
    let mut part = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    let mut control = ControlBuffer { bytes: [0; 64] };
    // SAFETY: all fields are integers and pointers, for which zero is a valid value.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut control).cast();
    message.msg_controllen = size_of::<ControlBuffer>();
    // SAFETY: the one vector is valid for its length, the control buffer for its own, and both
    // outlive the call.
    let received = unsafe {
        libc::recvmsg(
            socket.as_fd().as_raw_fd(),
            &raw mut message,
            libc::MSG_DONTWAIT,
        )
    };
    let Ok(length) = usize::try_from(received) else {
        return Err(io::Error::last_os_error());
    };
    Ok(StreamRead {
        length,
        timestamp: timestamp(&message),
    })
}

/// Returns the timestamp in the control part of a received message, or `None` if it has none.
fn timestamp(message: &libc::msghdr) -> Option<Duration> {
    // SAFETY: the kernel has filled the control part up to its length, and the macros read no
    // further.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(message) };
    // SAFETY: the pointer is null, or refers to an aligned header within the control part.
    while let Some(found) = unsafe { header.as_ref() } {
        if (found.cmsg_level, found.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) {
            // SAFETY: the data of this kind of message is a `timespec`, possibly unaligned.
            let time: libc::timespec = unsafe {
                libc::CMSG_DATA(found)
                    .cast::<libc::timespec>()
                    .read_unaligned()
            };
            let seconds = u64::try_from(time.tv_sec).ok()?;
            return Some(Duration::new(seconds, u32::try_from(time.tv_nsec).ok()?));
        }
        // SAFETY: as above.
        header = unsafe { libc::CMSG_NXTHDR(message, found) };
    }
    None
}

/// Returns the number of bytes in the socket's send queue (`SIOCOUTQ`). For TCP: bytes that the
/// peer has not acknowledged. For a Unix socket: memory that holds bytes that the peer has not
/// read, which is more than those bytes.
///
/// # Errors
/// Those of ioctl(2).
pub fn send_queue_len(socket: impl AsFd) -> io::Result<usize> {
    let mut count: libc::c_int = 0;
    // SAFETY: the kernel writes one integer, for which the pointer is valid.
    check(unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut count) })?;
    Ok(usize::try_from(count).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;

    use super::*;

    const ATTEMPTS_MAX: u32 = 1_000_000;

    #[test]
    fn tcp_bytes_have_timestamp_and_unix_bytes_have_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut remote = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (local, _) = listener.accept().unwrap();
        enable_timestamps(&local).unwrap();
        let mut buffer = [0; 16];
        let nothing = receive(&local, &mut buffer).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
        // The kernel starts to take timestamps a moment after the first socket enables them.
        let has_timestamp = (0..ATTEMPTS_MAX).any(|_| {
            remote.write_all(b"seven").unwrap();
            wait_readable(&local);
            let received = receive(&local, &mut buffer).unwrap();
            assert_eq!(&buffer[..received.length], b"seven");
            received.timestamp.is_some_and(|time| !time.is_zero())
        });
        assert!(has_timestamp);

        let (local, mut remote) = UnixStream::pair().unwrap();
        enable_timestamps(&local).unwrap();
        remote.write_all(b"seven").unwrap();
        let received = receive(&local, &mut buffer).unwrap();
        assert_eq!((received.length, received.timestamp), (5, None));
        drop(remote);
        assert_eq!(receive(&local, &mut buffer).unwrap().length, 0);
    }

    #[test]
    fn unread_bytes_are_in_send_queue() {
        let (mut local, remote) = UnixStream::pair().unwrap();
        assert_eq!(send_queue_len(&local).unwrap(), 0);
        local.write_all(&[0; 1000]).unwrap();
        assert!(send_queue_len(&local).unwrap() >= 1000);
        assert_eq!(receive(&remote, &mut [0; 2000]).unwrap().length, 1000);
        assert_eq!(send_queue_len(&local).unwrap(), 0);
    }

    fn wait_readable(socket: &TcpStream) {
        let mut fds = [rustix::event::PollFd::new(
            socket,
            rustix::event::PollFlags::IN,
        )];
        rustix::event::poll(&mut fds, None).unwrap();
    }
}
