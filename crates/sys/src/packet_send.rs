//! Transmission of several frames by one system call (sendmmsg(2)).

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Maximum number of frames per call.
pub const FRAMES_MAX: usize = 64;

/// Argument arrays of sendmmsg(2), allocated once and reused.
pub struct SendVector {
    parts: Box<[libc::iovec; FRAMES_MAX]>,
    messages: Box<[libc::mmsghdr; FRAMES_MAX]>,
}

// SAFETY: the pointers are written and used within one `send`; before and after it they are not
// dereferenced.
unsafe impl Send for SendVector {}

impl SendVector {
    /// Allocates the argument arrays.
    #[must_use]
    pub fn new() -> Self {
        const EMPTY: libc::iovec = libc::iovec {
            iov_base: std::ptr::null_mut(),
            iov_len: 0,
        };
        // SAFETY: all fields are integers and pointers, for which zero is a valid value.
        let message: libc::mmsghdr = unsafe { std::mem::zeroed() };
        Self {
            parts: Box::new([EMPTY; FRAMES_MAX]),
            messages: Box::new([message; FRAMES_MAX]),
        }
    }

    /// Sends the first [`FRAMES_MAX`] of `frames` without blocking. Each frame includes the header
    /// that the socket is configured for. Returns the number of frames sent: all, or those before
    /// the first that the kernel refused.
    ///
    /// # Errors
    /// The kernel refused the first frame. `EAGAIN`: the send buffer is full.
    pub fn send<'f>(
        &mut self,
        socket: impl AsFd,
        frames: impl Iterator<Item = &'f [u8]>,
    ) -> io::Result<usize> {
        let mut count = 0;
        for bytes in frames.take(FRAMES_MAX) {
            let part = &mut self.parts[count];
            part.iov_base = bytes.as_ptr().cast_mut().cast();
            part.iov_len = bytes.len();
            let message = &mut self.messages[count].msg_hdr;
            message.msg_iov = part;
            message.msg_iovlen = 1;
            count += 1;
        }
        if count == 0 {
            return Ok(0);
        }
        let fd = socket.as_fd().as_raw_fd();
        let length = libc::c_uint::try_from(count).expect("at most FRAMES_MAX");
        // SAFETY: the first `count` messages point to entries of `self.parts`, which point to
        // frames borrowed for `'f`, longer than this call. The kernel reads all of them and writes
        // only `msg_len`.
        let sent =
            unsafe { libc::sendmmsg(fd, self.messages.as_mut_ptr(), length, libc::MSG_DONTWAIT) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }
}

impl Default for SendVector {
    fn default() -> Self {
        Self::new()
    }
}
