//! A frame that came, in the kernel's memory until it is lent or dropped.

use std::mem::ManuallyDrop;

use super::XskSocket;
use super::umem::ChunkOwner;
use crate::storage::Storage;

/// A frame that came. Dropped, its chunk is written down for the kernel.
pub struct RxFrame<'s> {
    pub(super) socket: &'s mut XskSocket,
    pub(super) chunk: u32,
    pub(super) start: usize,
    pub(super) len: usize,
}

impl RxFrame<'_> {
    /// How many bytes it has.
    #[must_use]
    #[inline]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether it has none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        let start = self.socket.share.umem.at(self.chunk, self.start, self.len);
        // SAFETY: inside the memory; the chunk is ours until we are dropped: the kernel does
        // not write to it, and no other `RxFrame` of this socket can exist.
        unsafe { std::slice::from_raw_parts(start.as_ptr(), self.len) }
    }

    /// Lends the frame as it lies, and gives the kernel a free chunk in place of its own.
    ///
    /// # Errors
    /// There is none: [`XskSocket::can_detach`] tells.
    #[inline]
    pub fn detach(self) -> Result<UmemFrame, Self> {
        let Some(replacement) = self.socket.share.cache.pop() else {
            return Err(self);
        };
        // Its chunk is not given back.
        let mut this = ManuallyDrop::new(self);
        let (chunk, start, len) = (this.chunk, this.start, this.len);
        let socket = &mut *this.socket;
        socket.return_chunk(replacement);
        socket.share.umem.set_owner(chunk, ChunkOwner::DETACHED);
        // SAFETY: it is ours alone, as the kernel has said; and of those that were taken, in
        // place of the fresh one.
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

/// A frame as it lies in a chunk, which belongs to whoever has the storage.
#[derive(Debug)]
pub struct UmemFrame {
    /// The chunk.
    pub storage: Storage,
    /// Where in it the frame begins.
    pub start: usize,
    /// How many bytes it has.
    pub len: usize,
}
