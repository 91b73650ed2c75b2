//! A socket's share of a memory: the free chunks that it has at hand, and how many are under
//! way.

use std::io;
use std::sync::Arc;

use super::NamespacedQueue;
use super::umem::{CACHE_MAX, SocketId, Umem};

/// A socket's share of a memory.
pub(super) struct UmemShare {
    pub(super) umem: Arc<Umem>,
    pub(super) socket_id: SocketId,
    pub(super) location: NamespacedQueue,
    /// Whether the kernel may know any of its chunks.
    pub(super) bound: bool,
    /// Whether the memory was registered by this socket.
    pub(super) registered: bool,
    /// FreeStack chunks at hand.
    pub(super) cache: Vec<u32>,
    /// How many chunks the kernel has to send.
    pub(super) in_flight: u32,
}

impl UmemShare {
    /// A share of `umem`, for a socket at this queue.
    ///
    /// # Errors
    /// `ENOSPC`: all are taken.
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

    /// Has so many free chunks at hand, if there are.
    #[inline]
    pub(super) fn fill_cache(&mut self, count: usize) {
        if let Some(shortfall) = count
            .checked_sub(self.cache.len())
            .filter(|count| *count > 0)
        {
            // A few more, so that who asks for one at a time need not each time.
            let surplus = (CACHE_MAX - self.cache.len().min(CACHE_MAX)).min(CACHE_MAX / 4);
            self.umem.take(shortfall.max(surplus), &mut self.cache);
        }
    }

    /// Leaves the chunks to others that are not needed at hand.
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
