//! A socket's share of a UMEM: its cache of free chunks, and the chunks in transmission.

use std::io;
use std::sync::Arc;

use super::NamespacedQueue;
use super::umem::{CACHE_MAX, SocketId, Umem};

/// A socket's share of a UMEM.
pub(super) struct UmemShare {
    pub(super) umem: Arc<Umem>,
    pub(super) socket_id: SocketId,
    pub(super) location: NamespacedQueue,
    /// True if the kernel may own chunks of this socket.
    pub(super) bound: bool,
    /// True if this socket has registered the UMEM.
    pub(super) registered: bool,
    /// Free chunks cached by this socket.
    pub(super) cache: Vec<u32>,
    /// Number of chunks that the kernel has to send.
    pub(super) in_flight: u32,
}

impl UmemShare {
    /// Takes a share of `umem` for a socket at this queue.
    ///
    /// # Errors
    /// `ENOSPC`: all shares are taken.
    pub(super) fn take(umem: &Arc<Umem>, location: NamespacedQueue) -> io::Result<Self> {
        let tx_chunks = umem.layout().tx_chunks.get() as usize;
        Ok(Self {
            socket_id: umem.take_share(location)?,
            umem: Arc::clone(umem),
            location,
            bound: false,
            registered: false,
            cache: Vec::with_capacity(CACHE_MAX + tx_chunks),
            in_flight: 0,
        })
    }

    /// Caches at least `count` chunks if enough are free.
    #[inline]
    pub(super) fn fill_cache(&mut self, count: usize) {
        if let Some(shortfall) = count
            .checked_sub(self.cache.len())
            .filter(|count| *count > 0)
        {
            // A surplus, so that a caller that needs one chunk at a time does not access the stack
            // each time.
            let surplus = (CACHE_MAX - self.cache.len().min(CACHE_MAX)).min(CACHE_MAX / 4);
            self.umem.take(shortfall.max(surplus), &mut self.cache);
        }
    }

    /// Returns chunks beyond [`CACHE_MAX`] to the stack.
    #[inline]
    pub(super) fn trim_cache(&mut self) {
        if self.cache.len() > CACHE_MAX {
            self.umem.free(&self.cache[CACHE_MAX..]);
            self.cache.truncate(CACHE_MAX);
        }
    }
}

impl Drop for UmemShare {
    fn drop(&mut self) {
        self.umem.free(&self.cache);
        self.umem.check_in(self.in_flight as usize);
        self.umem
            .leave(self.socket_id, self.bound.then_some(self.location));
    }
}
