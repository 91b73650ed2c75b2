//! Many frames in one system call (sendmmsg(2)), each behind its `virtio_net_hdr`.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use crate::packet_ring::VNET_HEADER_LEN;

/// How many frames one call takes.
pub const FRAMES_MAX: usize = 64;

/// The memory of the call's arguments, kept from call to call.
pub struct SendVector {
    headers: Box<[[u8; VNET_HEADER_LEN]; FRAMES_MAX]>,
    parts: Box<[[libc::iovec; 2]; FRAMES_MAX]>,
    messages: Box<[libc::mmsghdr; FRAMES_MAX]>,
}

// SAFETY: the pointers in here are written and used within one `send`, and mean nothing
// before and after it.
unsafe impl Send for SendVector {}

impl SendVector {
    /// Memory for calls to come.
    #[must_use]
    pub fn new() -> Self {
        const NOTHING: libc::iovec = libc::iovec {
            iov_base: std::ptr::null_mut(),
            iov_len: 0,
        };
        // SAFETY: integers and pointers: all zeros is a value.
        let message: libc::mmsghdr = unsafe { std::mem::zeroed() };
        Self {
            headers: Box::new([[0; VNET_HEADER_LEN]; FRAMES_MAX]),
            parts: Box::new([[NOTHING; 2]; FRAMES_MAX]),
            messages: Box::new([message; FRAMES_MAX]),
        }
    }

    /// Sends the first [`FRAMES_MAX`] of `frames` without waiting, and returns how
    /// many are sent: all, or those before the first that the kernel refused.
    ///
    /// # Errors
    /// The kernel refused the first of them. `EAGAIN`: there is no room now.
    pub fn send<'f>(
        &mut self,
        socket: impl AsFd,
        frames: impl Iterator<Item = ([u8; VNET_HEADER_LEN], &'f [u8])>,
    ) -> io::Result<usize> {
        let mut count = 0;
        for (header, bytes) in frames.take(FRAMES_MAX) {
            self.headers[count] = header;
            let parts = &mut self.parts[count];
            parts[0].iov_base = self.headers[count].as_mut_ptr().cast();
            parts[0].iov_len = VNET_HEADER_LEN;
            parts[1].iov_base = bytes.as_ptr().cast_mut().cast();
            parts[1].iov_len = bytes.len();
            let message = &mut self.messages[count].msg_hdr;
            message.msg_iov = parts.as_mut_ptr();
            message.msg_iovlen = 2;
            count += 1;
        }
        if count == 0 {
            return Ok(0);
        }
        let fd = socket.as_fd().as_raw_fd();
        let length = libc::c_uint::try_from(count).expect("at most FRAMES_MAX");
        // SAFETY: the first `count` messages point to parts, the parts to headers of ours and
        // to frames that are borrowed for `'f`, which is beyond this call; the kernel reads
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
