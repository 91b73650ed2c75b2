//! The read buffer of a connection, which is larger while its peer sends much.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes read from a socket at once. A peer that fills the first size gets the second until it
/// pauses: hundreds of flow-mods, and one wake-up of the control thread for all of them. Thousands
/// of idle peers get by with the first, and so do those beyond the limit of large buffers.
pub(super) const READ_LEN: usize = 4 * 1024;
const READ_LEN_MAX: usize = 64 * 1024;

/// The number of consecutive short reads that end a burst: a peer may be slower than the switch for
/// a while.
const SHORT_MAX: usize = 64;

/// The read buffer.
pub(super) struct ReadBuffer {
    pub(super) bytes: Vec<u8>,
    /// The number of consecutive reads that would have fit into a smaller buffer.
    short: usize,
    /// The permits for large buffers, and the one of this buffer.
    permits: Arc<Semaphore>,
    permit: Option<OwnedSemaphorePermit>,
}

impl ReadBuffer {
    /// Returns a small buffer, which is large only with a permit.
    pub(super) fn new(permits: Arc<Semaphore>) -> Self {
        Self {
            bytes: vec![0; READ_LEN],
            short: 0,
            permits,
            permit: None,
        }
    }

    /// Adapts the size to the last reads, of which the latest had `count` bytes. Returns true if a
    /// burst is over.
    pub(super) fn fit(&mut self, count: usize) -> bool {
        self.short = if count < READ_LEN { self.short + 1 } else { 0 };
        if count == self.bytes.len() && self.permit.is_none() {
            self.permit = Arc::clone(&self.permits).try_acquire_owned().ok();
            if self.permit.is_some() {
                self.bytes.resize(READ_LEN_MAX, 0);
            }
        }
        let is_over = self.short >= SHORT_MAX && self.permit.is_some();
        if is_over {
            self.shrink();
        }
        is_over
    }

    /// Returns to the first size.
    pub(super) fn shrink(&mut self) {
        *self = Self::new(Arc::clone(&self.permits));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_buffer_shrinks_after_many_short_reads() {
        let mut buffer = ReadBuffer::new(Arc::new(Semaphore::new(1)));
        assert!(!buffer.fit(READ_LEN));
        assert_eq!(buffer.bytes.len(), READ_LEN_MAX);
        let short = |buffer: &mut ReadBuffer, reads| (0..reads).any(|_| buffer.fit(READ_LEN - 1));
        assert!(!short(&mut buffer, SHORT_MAX - 1));
        assert!(!buffer.fit(READ_LEN_MAX));
        assert!(!short(&mut buffer, SHORT_MAX - 1));
        assert!(buffer.fit(1));
        assert_eq!(buffer.bytes.len(), READ_LEN);
        assert!(!short(&mut buffer, 2 * SHORT_MAX));
    }

    #[test]
    fn read_buffer_is_large_only_with_a_permit() {
        let permits = Arc::new(Semaphore::new(1));
        let [mut one, mut other] = [(); 2].map(|()| ReadBuffer::new(Arc::clone(&permits)));
        one.fit(READ_LEN);
        other.fit(READ_LEN);
        assert_eq!(
            (one.bytes.len(), other.bytes.len()),
            (READ_LEN_MAX, READ_LEN)
        );
        one.shrink();
        other.fit(READ_LEN);
        assert_eq!(
            (one.bytes.len(), other.bytes.len()),
            (READ_LEN, READ_LEN_MAX)
        );
    }
}
