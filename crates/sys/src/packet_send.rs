//! Many frames in one system call (sendmmsg(2)).

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// How many frames one call takes.
pub const FRAMES_MAX: usize = 64;

/// The memory of the call's arguments, kept from call to call.
pub struct SendVector {
    parts: Box<[libc::iovec; FRAMES_MAX]>,
    messages: Box<[libc::mmsghdr; FRAMES_MAX]>,
}

// SAFETY: the pointers in here are written and used within one `send`, and mean nothing
// before and after it.
unsafe impl Send for SendVector {}

impl SendVector {
    /// Memory for calls to come.
    #[must_use]
    pub fn new() -> Self {
        const EMPTY: libc::iovec = libc::iovec {
            iov_base: std::ptr::null_mut(),
            iov_len: 0,
        };
        // SAFETY: integers and pointers: all zeros is a value.
        let message: libc::mmsghdr = unsafe { std::mem::zeroed() };
        Self {
            parts: Box::new([EMPTY; FRAMES_MAX]),
            messages: Box::new([message; FRAMES_MAX]),
        }
    }

    /// Sends the first [`FRAMES_MAX`] of `frames`, each with whatever header the socket was
    /// told to expect, without waiting, and returns how
    /// many are sent: all, or those before the first that the kernel refused.
    ///
    /// # Errors
    /// The kernel refused the first of them. `EAGAIN`: there is no room now.
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
        // SAFETY: the first `count` messages point to parts of ours, the parts to frames that
        // are borrowed for `'f`, which is beyond this call; the kernel reads
        // all of them and writes to `msg_len` only.
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
