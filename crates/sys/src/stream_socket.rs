//! What a connected socket tells of times and of what it still holds: when the kernel
//! received bytes, and how much that was written is under way.
//!
//! Not here: connecting, accepting, and what the bytes mean.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// Has the kernel note when bytes come (`SO_TIMESTAMPNS`), also for whoever calls a listening
/// socket. It begins some moments after the first socket of the machine has asked. It takes
/// the note for sockets of networks only: of a Unix socket's bytes there is no time.
///
/// # Errors
/// Those of setsockopt(2).
pub fn note_arrivals(socket: impl AsFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the pointer is good for the length, and the kernel only reads.
    done(unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPNS,
            std::ptr::from_ref(&on).cast(),
            length_of::<libc::c_int>(),
        )
    })?;
    Ok(())
}

/// Bytes that were received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// How many; none if the other end has closed.
    pub length: usize,
    /// When the kernel received the last of them, since 1970-01-01 00:00 UTC, if it took note.
    pub calendar: Option<Duration>,
}

/// Room for a control message with a time in it, aligned as its header wants.
#[repr(C)]
union Control {
    _aligned: libc::cmsghdr,
    bytes: [u8; 64],
}

/// Receives what there is into `room`, without waiting.
///
/// # Errors
/// `EAGAIN`: there is nothing. Those of recvmsg(2).
pub fn receive(socket: impl AsFd, room: &mut [u8]) -> io::Result<Received> {
    let mut part = libc::iovec {
        iov_base: room.as_mut_ptr().cast(),
        iov_len: room.len(),
    };
    let mut control = Control { bytes: [0; 64] };
    // SAFETY: integers and pointers: all zeros is a value.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut control).cast();
    message.msg_controllen = size_of::<Control>();
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
    Ok(Received {
        length,
        calendar: stamp(&message),
    })
}

/// The time in a received message's control part, if there is one.
fn stamp(message: &libc::msghdr) -> Option<Duration> {
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
pub fn unsent(socket: impl AsFd) -> io::Result<usize> {
    let mut count: libc::c_int = 0;
    // SAFETY: the kernel writes one integer, which the pointer is good for.
    done(unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut count) })?;
    Ok(usize::try_from(count).unwrap_or(0))
}

fn done(result: libc::c_int) -> io::Result<()> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

fn length_of<T>() -> libc::socklen_t {
    libc::socklen_t::try_from(size_of::<T>()).expect("an option is short")
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;

    use super::*;

    const TRIES: u32 = 1_000_000;

    #[test]
    fn bytes_of_a_network_have_a_time_and_those_of_a_unix_socket_have_none() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut far = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (near, _) = listener.accept().unwrap();
        note_arrivals(&near).unwrap();
        let mut room = [0; 16];
        let nothing = receive(&near, &mut room).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
        // The kernel begins to note a moment after it was asked, if nobody had asked before.
        let stamped = (0..TRIES).any(|_| {
            far.write_all(b"seven").unwrap();
            await_bytes(&near);
            let received = receive(&near, &mut room).unwrap();
            assert_eq!(&room[..received.length], b"seven");
            received.calendar.is_some_and(|time| !time.is_zero())
        });
        assert!(stamped);

        let (near, mut far) = UnixStream::pair().unwrap();
        note_arrivals(&near).unwrap();
        far.write_all(b"seven").unwrap();
        let received = receive(&near, &mut room).unwrap();
        assert_eq!((received.length, received.calendar), (5, None));
        drop(far);
        assert_eq!(receive(&near, &mut room).unwrap().length, 0);
    }

    #[test]
    fn what_nobody_has_read_is_held() {
        let (mut near, far) = UnixStream::pair().unwrap();
        assert_eq!(unsent(&near).unwrap(), 0);
        near.write_all(&[0; 1000]).unwrap();
        assert!(unsent(&near).unwrap() >= 1000);
        assert_eq!(receive(&far, &mut [0; 2000]).unwrap().length, 1000);
        assert_eq!(unsent(&near).unwrap(), 0);
    }

    fn await_bytes(socket: &TcpStream) {
        let mut fds = [rustix::event::PollFd::new(
            socket,
            rustix::event::PollFlags::IN,
        )];
        rustix::event::poll(&mut fds, None).unwrap();
    }
}
