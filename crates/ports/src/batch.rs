//! Up to 64 frames on their way together.
//!
//! A frame moves from batch to batch as a handle; its bytes stay in their buffer. All frames
//! of a batch move by an exchange of two batches, and none of them is touched.

use std::ops::{Deref, DerefMut};

use packet::{Frame, Pool};

/// Frames in order, at most [`Batch::FRAMES_MAX`]. Its memory is made once; the default has
/// none, and stands where a batch has been taken away for a while.
#[derive(Default)]
pub struct Batch {
    frames: Vec<Frame>,
}

impl Batch {
    /// How many frames a batch holds: enough to spread the price of a system call and
    /// of a table's cache misses, few enough that their headers stay in the first-level
    /// cache between the stages.
    pub const FRAMES_MAX: usize = 64;

    /// An empty batch.
    #[must_use]
    pub fn new() -> Self {
        Self {
            frames: Vec::with_capacity(Self::FRAMES_MAX),
        }
    }

    /// How many more frames fit.
    #[must_use]
    pub fn room(&self) -> usize {
        Self::FRAMES_MAX - self.frames.len()
    }

    /// Appends a frame.
    ///
    /// # Errors
    /// There is no room; the frame comes back.
    #[inline]
    pub fn push(&mut self, frame: Frame) -> Result<(), Frame> {
        if self.room() == 0 {
            return Err(frame);
        }
        self.frames.push(frame);
        Ok(())
    }

    /// Moves frames from the front of `other` to the end of this batch: all, or as many as fit.
    pub fn append_from(&mut self, other: &mut Self) {
        let count = other.len().min(self.room());
        self.frames.extend(other.frames.drain(..count));
    }

    /// Appends a frame, for which there is room.
    ///
    /// # Panics
    /// If there is not.
    #[inline]
    pub fn put(&mut self, frame: Frame) {
        assert!(self.room() > 0, "room was asked for");
        self.frames.push(frame);
    }

    /// Takes these frames, of which nothing is left where they were.
    ///
    /// # Panics
    /// If there is no room for all of them.
    pub fn take_all(&mut self, frames: &mut [Frame]) {
        assert!(frames.len() <= self.room(), "room was asked for");
        self.frames.extend(frames.iter_mut().map(std::mem::take));
    }

    /// Forgets the first `count` frames, whose buffers are somebody else's now.
    ///
    /// # Panics
    /// If there are fewer frames.
    pub fn forget(&mut self, count: usize) {
        self.frames.drain(..count).for_each(Frame::forget);
    }

    /// Takes all frames out, from the front.
    pub fn drain(&mut self) -> impl Iterator<Item = Frame> {
        self.frames.drain(..)
    }

    /// Forgets all frames; of those that somebody has taken, there is nothing left.
    pub fn clear(&mut self) {
        self.frames.clear();
    }

    /// Puts the buffers of the first `count` frames back into `pool`.
    ///
    /// # Panics
    /// If there are fewer frames.
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
    fn a_full_batch_hands_the_frame_back() {
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
    fn frames_move_in_order_and_only_as_many_as_fit() {
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
    fn released_frames_go_back_to_the_pool() {
        let (mut pool, mut batch) = (Pool::new(2), Batch::new());
        for _ in 0..2 {
            batch.push(pool.take().unwrap()).unwrap();
        }
        batch.release(1, &mut pool);
        assert_eq!((batch.len(), pool.outstanding()), (1, 1));
    }
}
