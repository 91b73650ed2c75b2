//! What a connected socket tells of times and of what it still holds: when the kernel
//! received bytes, and how much that was written is under way.
//!
//! Not here: connecting, accepting, and what the bytes mean.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use crate::socket_option::{self, check};

/// Has the kernel note when bytes come (`SO_TIMESTAMPNS`), also for whoever calls a listening
/// socket. It begins some moments after the first socket of the machine has asked. It takes
/// the note for sockets of networks only: of a Unix socket's bytes there is no time.
///
/// # Errors
/// Those of setsockopt(2).
pub fn enable_timestamps(socket: impl AsFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    socket_option::set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &on)
}

/// Bytes that were received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamRead {
    /// How many; none if the other end has closed.
    pub length: usize,
    /// When the kernel received the last of them, since 1970-01-01 00:00 UTC, if it took note.
    pub timestamp: Option<Duration>,
}

/// Room for a control message with a time in it, aligned as its header wants.
#[repr(C)]
union ControlBuffer {
    _aligned: libc::cmsghdr,
    bytes: [u8; 64],
}

/// Receives what there is into `buffer`, without waiting.
///
/// # Errors
/// `EAGAIN`: there is nothing. Those of recvmsg(2).
pub fn receive(socket: impl AsFd, buffer: &mut [u8]) -> io::Result<StreamRead> {
    let mut part = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    let mut control = ControlBuffer { bytes: [0; 64] };
    // SAFETY: integers and pointers: all zeros is a value.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut control).cast();
    message.msg_controllen = size_of::<ControlBuffer>();
    // SAFETY: the one part is good for its length, the control room for its own, and both
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

/// The time in a received message's control part, if there is one.
fn timestamp(message: &libc::msghdr) -> Option<Duration> {
    // SAFETY: the kernel has filled the control part as far as its length says, and the
    // macros look no further.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(message) };
    // SAFETY: the pointer is null, or to a header within the control part, aligned.
    while let Some(found) = unsafe { header.as_ref() } {
        if (found.cmsg_level, found.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) {
            // SAFETY: the data of this kind of message is a `timespec`, which may lie anywhere.
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

/// What of the bytes that were written is still held for this socket (`SIOCOUTQ`): of TCP,
/// bytes that the other end has not acknowledged; of a Unix socket, the memory that holds
/// what the other end has not read, which is more than the bytes.
///
/// # Errors
/// Those of ioctl(2).
pub fn send_queue_len(socket: impl AsFd) -> io::Result<usize> {
    let mut count: libc::c_int = 0;
    // SAFETY: the kernel writes one integer, which the pointer is good for.
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
        // The kernel begins to note a moment after it was asked, if nobody had asked before.
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
