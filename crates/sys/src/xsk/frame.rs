//! A received frame in the UMEM.

use std::mem::ManuallyDrop;

use super::XskSocket;
use super::umem::ChunkOwner;
use crate::storage::Storage;

/// A received frame. Dropping it returns its chunk to the fill ring.
pub struct RxFrame<'s> {
    pub(super) socket: &'s mut XskSocket,
    pub(super) chunk: u32,
    pub(super) start: usize,
    pub(super) len: usize,
}

impl RxFrame<'_> {
    /// Length in bytes.
    #[must_use]
    #[inline]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// True if the frame has no bytes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of the frame.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        let start = self.socket.share.umem.at(self.chunk, self.start, self.len);
        // SAFETY: inside the UMEM; the chunk belongs to this value until it is dropped: the kernel
        // does not write to it, and no other `RxFrame` of this socket can exist.
        unsafe { std::slice::from_raw_parts(start.as_ptr(), self.len) }
    }

    /// Detaches the frame from the socket and gives the kernel a free chunk in place of its own.
    ///
    /// # Errors
    /// Returns the frame if no chunk is free; see [`XskSocket::can_detach`].
    #[inline]
    pub fn detach(self) -> Result<UmemFrame, Self> {
        let Some(replacement) = self.socket.share.cache.pop() else {
            return Err(self);
        };
        // The drop would return the chunk to the fill ring.
        let mut this = ManuallyDrop::new(self);
        let (chunk, start, len) = (this.chunk, this.start, this.len);
        let socket = &mut *this.socket;
        socket.return_chunk(replacement);
        socket.share.umem.set_owner(chunk, ChunkOwner::DETACHED);
        // SAFETY: the chunk is exclusive, as verified when it was received; it counts as checked
        // out, in place of its replacement.
        let storage = unsafe { socket.share.umem.detach(chunk) };
        Ok(UmemFrame {
            storage,
            start,
            len,
        })
    }
}

impl Drop for RxFrame<'_> {
    #[inline]
    fn drop(&mut self) {
        self.socket.return_chunk(self.chunk);
    }
}

/// A frame in a chunk of a UMEM, owned through its storage.
#[derive(Debug)]
pub struct UmemFrame {
    /// The whole chunk.
    pub storage: Storage,
    /// Offset of the frame in the chunk.
    pub start: usize,
    /// Length of the frame in bytes.
    pub len: usize,
}
