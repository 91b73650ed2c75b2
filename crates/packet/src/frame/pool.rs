//! Pool of frame buffers.

use sys::storage::Storage;

use super::{CAPACITY, Frame, HEADROOM};

/// Bounded pool of frame buffers of one worker, like a DPDK mempool. Not shared between threads.
///
/// ```
/// use packet::Pool;
///
/// let mut pool = Pool::new(1);
/// let mut frame = pool.take().expect("one buffer is free");
/// frame.copy_from(&[0; 60]).expect("a pooled buffer holds any frame");
/// assert!(pool.take().is_none());
/// pool.put(frame);
/// assert_eq!(pool.outstanding(), 0);
/// ```
pub struct Pool {
    free: Vec<Storage>,
    outstanding: usize,
    limit: usize,
}

impl Pool {
    /// Returns a pool of at most `limit` buffers, each allocated at its first use.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            free: Vec::with_capacity(limit),
            outstanding: 0,
            limit,
        }
    }

    /// Returns an empty frame, or `None` if all `limit` buffers are in use.
    #[inline]
    pub fn take(&mut self) -> Option<Frame> {
        if self.outstanding == self.limit {
            return None;
        }
        self.outstanding += 1;
        Some(
            self.free
                .pop()
                .map_or_else(Frame::with_full_capacity, Frame::with_storage),
        )
    }

    /// Returns a copy of `frame`, or `None` if all buffers are in use or `frame` is too long for
    /// one.
    pub fn duplicate(&mut self, frame: &Frame) -> Option<Frame> {
        let mut copy = self.take()?;
        if copy.copy_from(frame.bytes()).is_err() {
            self.put(copy);
            return None;
        }
        copy.offload = frame.offload;
        copy.priority = frame.priority;
        Some(copy)
    }

    /// Returns the frame's buffer to the pool. A buffer that did not come from a pool is freed.
    #[inline]
    pub fn put(&mut self, frame: Frame) {
        if frame.storage.len() == HEADROOM + CAPACITY && !frame.storage.is_external() {
            self.outstanding = self.outstanding.saturating_sub(1);
            if self.free.len() < self.limit {
                self.free.push(frame.storage);
            }
        }
    }

    /// Frees buffers that are not in use, except for `spare` of them.
    pub fn shrink(&mut self, spare: usize) {
        self.free.truncate(spare);
    }

    /// Number of buffers in use. Not zero between batches means a leak.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.outstanding
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pool_counts_buffers_in_use() {
        let mut pool = Pool::new(2);
        let (Some(first), Some(second)) = (pool.take(), pool.take()) else {
            panic!("two frames")
        };
        assert!(pool.take().is_none());
        pool.put(first);
        pool.put(second);
        pool.put(Frame::from_bytes(&[1, 2, 3]));
        assert_eq!(pool.outstanding(), 0);
        assert!(pool.take().is_some_and(|frame| frame.is_empty()));
    }
}
