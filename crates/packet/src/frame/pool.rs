//! Buffers that go round between a device's frames and those who forward them.

use sys::storage::Storage;

use super::{CAPACITY, Frame, HEADROOM};

/// Buffers that go round, bounded in number; not shared between threads.
pub struct Pool {
    free: Vec<Storage>,
    outstanding: usize,
    limit: usize,
}

impl Pool {
    /// A pool of at most `limit` buffers, each made when first wanted.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            free: Vec::with_capacity(limit),
            outstanding: 0,
            limit,
        }
    }

    /// An empty frame; none if all `limit` buffers are out.
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

    /// A copy of `frame`; none if all buffers are out or `frame` is too long for one.
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

    /// Takes a frame's buffer back. A buffer that no pool made is freed instead.
    #[inline]
    pub fn put(&mut self, frame: Frame) {
        if frame.storage.len() == HEADROOM + CAPACITY && !frame.storage.is_external() {
            self.outstanding = self.outstanding.saturating_sub(1);
            if self.free.len() < self.limit {
                self.free.push(frame.storage);
            }
        }
    }

    /// How many buffers are out. Zero between batches: anything else is a leak.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.outstanding
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_counts_what_is_out() {
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
