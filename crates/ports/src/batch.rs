//! A batch of up to 64 frames.
//!
//! A frame moves between batches as a handle; its bytes stay in their buffer. Exchanging two
//! batches moves all of their frames without touching one.

use std::ops::{Deref, DerefMut};

use packet::{Frame, Pool};

/// Frames in order, at most [`Batch::FRAMES_MAX`]. Memory is allocated once, by [`Batch::new`]; the
/// default has none and is the placeholder for a batch that was taken out.
///
/// ```
/// use packet::Frame;
/// use ports::Batch;
///
/// let (mut received, mut sent) = (Batch::new(), Batch::new());
/// received.push(Frame::from_bytes(&[0; 60])).unwrap();
/// sent.append_from(&mut received);
/// assert_eq!((received.len(), sent.len()), (0, 1));
/// assert_eq!(sent.remaining_capacity(), Batch::FRAMES_MAX - 1);
/// ```
#[derive(Default)]
pub struct Batch {
    frames: Vec<Frame>,
}

impl Batch {
    /// Maximum number of frames: enough to amortise a system call and the cache misses of a table,
    /// and few enough that their headers stay in the first-level cache between stages.
    pub const FRAMES_MAX: usize = 64;

    /// Allocates an empty batch.
    #[must_use]
    pub fn new() -> Self {
        Self {
            frames: Vec::with_capacity(Self::FRAMES_MAX),
        }
    }

    /// Number of further frames that fit.
    #[must_use]
    pub fn remaining_capacity(&self) -> usize {
        Self::FRAMES_MAX - self.frames.len()
    }

    /// Appends a frame.
    ///
    /// # Errors
    /// Returns the frame: the batch is full.
    #[inline]
    pub fn push(&mut self, frame: Frame) -> Result<(), Frame> {
        if self.remaining_capacity() == 0 {
            return Err(frame);
        }
        self.frames.push(frame);
        Ok(())
    }

    /// Moves frames from the front of `other` to the end of this batch: all, or as many as fit.
    pub fn append_from(&mut self, other: &mut Self) {
        let count = other.len().min(self.remaining_capacity());
        self.frames.extend(other.frames.drain(..count));
    }

    /// Appends a frame to a batch that is not full.
    ///
    /// # Panics
    /// If the batch is full.
    #[inline]
    pub fn put(&mut self, frame: Frame) {
        assert!(self.remaining_capacity() > 0, "the batch is full");
        self.frames.push(frame);
    }

    /// Moves all of `frames` to the end of this batch and leaves empty frames in their place.
    ///
    /// # Panics
    /// If they do not fit.
    pub fn append_taken(&mut self, frames: &mut [Frame]) {
        assert!(
            frames.len() <= self.remaining_capacity(),
            "the batch is full"
        );
        self.frames.extend(frames.iter_mut().map(std::mem::take));
    }

    /// Removes the first `count` frames without freeing their buffers, which have another owner
    /// now.
    ///
    /// # Panics
    /// If the batch has fewer frames.
    pub fn forget(&mut self, count: usize) {
        self.frames.drain(..count).for_each(Frame::forget);
    }

    /// Removes and returns all frames, from the front.
    pub fn drain(&mut self) -> impl Iterator<Item = Frame> {
        self.frames.drain(..)
    }

    /// Removes all frames and drops them.
    pub fn clear(&mut self) {
        self.frames.clear();
    }

    /// Returns the buffers of the first `count` frames to `pool`.
    ///
    /// # Panics
    /// If the batch has fewer frames.
    pub fn release(&mut self, count: usize, pool: &mut Pool) {
        self.frames.drain(..count).for_each(|frame| pool.put(frame));
    }
}

impl Deref for Batch {
    type Target = [Frame];

    fn deref(&self) -> &[Frame] {
        &self.frames
    }
}

impl DerefMut for Batch {
    fn deref_mut(&mut self) -> &mut [Frame] {
        &mut self.frames
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(batch: &Batch) -> Vec<u8> {
        batch.iter().map(|frame| frame.bytes()[0]).collect()
    }

    #[test]
    fn full_batch_returns_frame() {
        let mut batch = Batch::new();
        for _ in 0..Batch::FRAMES_MAX {
            batch.push(Frame::from_bytes(&[1])).unwrap();
        }
        assert_eq!(
            batch.push(Frame::from_bytes(&[2])),
            Err(Frame::from_bytes(&[2]))
        );
    }

    #[test]
    fn append_from_moves_frames_in_order_up_to_capacity() {
        let (mut from, mut to) = (Batch::new(), Batch::new());
        for i in 0..4 {
            from.push(Frame::from_bytes(&[i])).unwrap();
        }
        for _ in 0..Batch::FRAMES_MAX - 3 {
            to.push(Frame::from_bytes(&[9])).unwrap();
        }
        to.append_from(&mut from);
        assert_eq!(frames(&to)[Batch::FRAMES_MAX - 3..], [0, 1, 2]);
        assert_eq!(frames(&from), [3]);
    }

    #[test]
    fn released_frames_return_to_pool() {
        let (mut pool, mut batch) = (Pool::new(2), Batch::new());
        for _ in 0..2 {
            batch.push(pool.take().unwrap()).unwrap();
        }
        batch.release(1, &mut pool);
        assert_eq!((batch.len(), pool.outstanding()), (1, 1));
    }
}
