//! A frame in memory and the pool it comes from.
//!
//! A frame lies in a buffer with room in front, so that a tag is pushed by
//! moving twelve bytes. Buffers go round in a [`Pool`]: a worker takes them at
//! receive and puts them back after transmit, and allocates nothing between. A
//! device's own memory can be such a buffer, lent until nobody has the frame any more.

mod pool;

use std::fmt;
use std::ptr::NonNull;

use base::Priority;
pub use pool::Pool;
use sys::storage::{BufferOwner, Storage};

use crate::Offload;

/// Bytes kept free in front of a received frame: room for twenty-eight tags and for
/// a device's own header before them.
const HEADROOM: usize = 128;

/// Of these, bytes that tags never take.
const PREFIX_MAX: usize = 16;

/// The longest frame held: an IPv4 datagram of 65,535 bytes, the Ethernet header and a stack
/// of tags, rounded up so that a buffer has an odd number of 64-byte lines. (Buffers an even
/// number of lines apart would fall into the same few sets of the first-level cache.)
const CAPACITY: usize = 1029 * 64 - HEADROOM;

/// A frame and what it still owes to the wire.
pub struct Frame {
    storage: Storage,
    // Narrow, so that a frame is moved with six words.
    start: u32,
    end: u32,
    /// Unfinished checksum, pending segmentation.
    pub offload: Offload,
    /// Which class of its exit's queueing discipline it is for. No part of what it is: frames
    /// that differ in nothing else are equal.
    pub priority: Priority,
}

/// The buffer has no room for the bytes that were to be put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no room left in the frame's buffer")]
pub struct NoBufferSpace;

impl Frame {
    /// The longest frame that a pooled buffer takes, in bytes.
    pub const LEN_MAX: usize = CAPACITY;

    /// A frame with these bytes, in a buffer of its own.
    ///
    /// Bytes beyond [`Frame::LEN_MAX`] are kept too, but such a buffer never joins a pool.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut storage = vec![0; HEADROOM + bytes.len()].into_boxed_slice();
        storage[HEADROOM..].copy_from_slice(bytes);
        let mut frame = Self::with_storage(Storage::new(storage));
        frame.end = offset_u32(HEADROOM + bytes.len());
        frame
    }

    /// An empty frame in a buffer that holds [`Frame::LEN_MAX`] bytes.
    #[must_use]
    pub fn with_full_capacity() -> Self {
        let storage = vec![0; HEADROOM + CAPACITY].into_boxed_slice();
        Self::with_storage(Storage::new(storage))
    }

    /// A frame that lies in `storage` already: `len` bytes from `start` on.
    ///
    /// # Errors
    /// They are not all in it; it is given back to who has lent it.
    #[inline]
    pub fn from_storage(storage: Storage, start: usize, len: usize) -> Result<Self, NoBufferSpace> {
        if start > storage.len() || len > storage.len() - start {
            return Err(NoBufferSpace);
        }
        Ok(Self {
            storage,
            start: offset_u32(start),
            end: offset_u32(start + len),
            offload: Offload::default(),
            priority: Priority::NONE,
        })
    }

    /// Where the buffer begins and where in it the frame does, if `lender` has lent it.
    #[must_use]
    #[inline]
    pub fn lent_by(&self, lender: &'static BufferOwner) -> Option<(NonNull<u8>, usize)> {
        let data = self.storage.owned_by(lender)?;
        Some((data, self.start as usize))
    }

    /// Has `taker` take the frame as it lies: the buffer, where in it the frame begins, and
    /// how long it is. If he does, nothing is left of it here; if he gives the buffer back,
    /// it is as before.
    #[inline]
    pub fn transfer(
        &mut self,
        taker: impl FnOnce(Storage, usize, usize) -> Result<(), Storage>,
    ) -> bool {
        let (start, len) = (self.start as usize, self.len());
        let taken = taker(std::mem::take(&mut self.storage), start, len);
        match taken {
            Ok(()) => {
                self.start = 0;
                self.end = 0;
                self.offload = Offload::default();
                self.priority = Priority::NONE;
                true
            }
            Err(storage) => {
                self.storage = storage;
                false
            }
        }
    }

    /// Leaves nothing of the frame. A lent buffer is not given back: who calls has done
    /// something else with it.
    #[inline]
    pub fn forget(self) {
        self.storage.forget();
    }

    fn with_storage(storage: Storage) -> Self {
        Self {
            storage,
            start: offset_u32(HEADROOM),
            end: offset_u32(HEADROOM),
            offload: Offload::default(),
            priority: Priority::NONE,
        }
    }

    /// The bytes, from the destination address on.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.storage[self.start as usize..self.end as usize]
    }

    /// Where the bytes begin, for those who want that memory near beforehand.
    #[must_use]
    #[inline]
    pub fn first_byte(&self) -> Option<&u8> {
        self.storage.get(self.start as usize)
    }

    /// The bytes, to be changed in place.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.storage[self.start as usize..self.end as usize]
    }

    /// The bytes with `prefix` in front of them, in one piece: what a device wants
    /// that takes a header of its own before a frame. The frame is as before.
    ///
    /// Compiles only for a prefix of at most sixteen bytes, for which there is always room.
    ///
    /// # Panics
    /// If the frame was taken and has no buffer.
    pub fn prefixed<const N: usize>(&mut self, prefix: [u8; N]) -> &[u8] {
        const { assert!(N <= PREFIX_MAX, "the headroom is shared with tags") };
        let start = self.start as usize;
        let at = start - N;
        self.storage[at..start].copy_from_slice(&prefix);
        &self.storage[at..self.end as usize]
    }

    /// All of the buffer behind the headroom with `N` bytes before it, for a device that puts
    /// a header of its own in front of a frame; [`Frame::set_len`] then says how much of what
    /// is behind the header is the frame, and [`Frame::prefix`] what the header is.
    ///
    /// Compiles only for a prefix of at most sixteen bytes.
    ///
    /// # Panics
    /// If the frame was taken and has no buffer.
    pub fn receive_buffer_with_prefix<const N: usize>(&mut self) -> &mut [u8] {
        const { assert!(N <= PREFIX_MAX, "the headroom is shared with tags") };
        self.reset();
        let start = self.start as usize;
        &mut self.storage[start - N..]
    }

    /// The `N` bytes in front of the frame: what a device put there.
    ///
    /// Compiles only for a prefix of at most sixteen bytes.
    ///
    /// # Panics
    /// If the frame was taken and has no buffer.
    #[must_use]
    pub fn prefix<const N: usize>(&self) -> [u8; N] {
        const { assert!(N <= PREFIX_MAX, "the headroom is shared with tags") };
        let mut prefix = [0; N];
        let start = self.start as usize;
        prefix.copy_from_slice(&self.storage[start - N..start]);
        prefix
    }

    /// How many bytes there are. No frame check sequence is among them.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        (self.end - self.start) as usize
    }

    /// Whether there are no bytes at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// All of the buffer behind the headroom, for a backend to receive into;
    /// [`Frame::set_len`] then says how much of it is the frame.
    pub fn receive_buffer(&mut self) -> &mut [u8] {
        self.reset();
        &mut self.storage[self.start as usize..]
    }

    /// Makes it empty, with headroom.
    fn reset(&mut self) {
        self.start = offset_u32(HEADROOM.min(self.storage.len()));
        self.end = self.start;
    }

    /// Makes the first `len` bytes of the room the frame.
    ///
    /// # Errors
    /// The buffer is smaller than that; the frame is then empty.
    pub fn set_len(&mut self, len: usize) -> Result<(), NoBufferSpace> {
        self.reset();
        let start = self.start as usize;
        if len > self.storage.len() - start {
            return Err(NoBufferSpace);
        }
        self.end = offset_u32(start + len);
        Ok(())
    }

    /// Makes `bytes` the frame.
    ///
    /// # Errors
    /// The buffer is smaller than that; the frame is then empty.
    pub fn copy_from(&mut self, bytes: &[u8]) -> Result<(), NoBufferSpace> {
        self.set_len(bytes.len())?;
        self.bytes_mut().copy_from_slice(bytes);
        Ok(())
    }

    /// Puts `len` zero bytes in before the byte at `at`, and lets the offload
    /// metadata follow.
    ///
    /// # Errors
    /// The headroom is used up; the frame is unchanged.
    ///
    /// # Panics
    /// If `at` is beyond the end of the frame: the caller has parsed it.
    pub fn insert_zeros(&mut self, at: usize, len: u16) -> Result<(), NoBufferSpace> {
        let count = usize::from(len);
        assert!(at <= self.len(), "bytes are put in within the frame");
        let before = self.start as usize;
        let start = before.checked_sub(count);
        let start = start
            .filter(|start| *start >= PREFIX_MAX)
            .ok_or(NoBufferSpace)?;
        self.storage.copy_within(before..before + at, start);
        self.storage[start + at..start + at + count].fill(0);
        self.start = offset_u32(start);
        self.offload.shift_positions(at, len, false);
        Ok(())
    }

    /// Takes `len` bytes out from `at` on, and lets the offload metadata follow.
    ///
    /// # Panics
    /// If the frame has fewer bytes there: the caller has parsed it.
    pub fn remove(&mut self, at: usize, len: u16) {
        let count = usize::from(len);
        assert!(at + count <= self.len(), "bytes are taken out of the frame");
        let start = self.start as usize;
        self.storage.copy_within(start..start + at, start + count);
        self.start = offset_u32(start + count);
        self.offload.shift_positions(at + count, len, true);
    }

    /// Keeps the first `len` bytes; a longer `len` changes nothing.
    pub fn truncate(&mut self, len: usize) {
        self.end -= offset_u32(self.len().saturating_sub(len));
    }
}

/// A place in a buffer, of which `Storage` allows less than four gigabytes.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "places in a buffer are below its length, which is a u32"
)]
const fn offset_u32(place: usize) -> u32 {
    place as u32
}

/// An empty frame without a buffer, in which there is room for nothing: what is left
/// where a frame was taken.
impl Default for Frame {
    #[inline]
    fn default() -> Self {
        Self {
            storage: Storage::default(),
            start: 0,
            end: 0,
            offload: Offload::default(),
            priority: Priority::NONE,
        }
    }
}

impl Clone for Frame {
    fn clone(&self) -> Self {
        let mut copy = Self::from_bytes(self.bytes());
        copy.offload = self.offload;
        copy.priority = self.priority;
        copy
    }
}

impl PartialEq for Frame {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes() && self.offload == other.offload
    }
}

impl Eq for Frame {}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Frame({} bytes:", self.len())?;
        self.bytes()
            .iter()
            .try_for_each(|byte| write!(f, " {byte:02x}"))?;
        write!(f, "; {:?})", self.offload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Checksum;

    #[test]
    fn open_and_close_are_inverse_and_the_checksum_start_follows() {
        let mut frame = Frame::from_bytes(&(0..40).collect::<Vec<u8>>());
        frame.offload.checksum = Checksum::Partial {
            start: 34,
            offset: 6,
        };
        let before = frame.clone();
        frame.insert_zeros(12, 4).expect("headroom is left");
        assert_eq!(frame.len(), 44);
        assert_eq!(frame.bytes()[10..18], [10, 11, 0, 0, 0, 0, 12, 13]);
        assert_eq!(
            frame.offload.checksum,
            Checksum::Partial {
                start: 38,
                offset: 6
            }
        );
        frame.remove(12, 4);
        assert_eq!(frame, before);
    }

    #[test]
    fn a_devices_own_header_is_received_in_front_of_the_frame() {
        let mut frame = Frame::with_full_capacity();
        let room = frame.receive_buffer_with_prefix::<10>();
        assert_eq!(room.len(), 10 + Frame::LEN_MAX);
        room[..13].copy_from_slice(b"0123456789abc");
        frame.set_len(3).unwrap();
        assert_eq!(
            (frame.bytes(), frame.prefix()),
            (&b"abc"[..], *b"0123456789")
        );
    }

    #[test]
    fn headroom_is_bounded() {
        let mut frame = Frame::from_bytes(&[0; 14]);
        for _ in 0..(HEADROOM - PREFIX_MAX) / 4 {
            frame.insert_zeros(12, 4).expect("headroom is left");
        }
        assert_eq!(frame.insert_zeros(12, 4), Err(NoBufferSpace));
        assert_eq!(frame.len(), 14 + HEADROOM - PREFIX_MAX);
        // A device's header has room even now.
        let before = frame.clone();
        assert_eq!(
            frame.prefixed([7; PREFIX_MAX])[..18],
            [[7; 16].as_slice(), &[0; 2]].concat()
        );
        assert_eq!(frame, before);
    }

    #[test]
    fn where_a_frame_was_taken_there_is_room_for_nothing() {
        let mut place = Frame::from_bytes(&[7; 60]);
        assert_eq!(std::mem::take(&mut place).len(), 60);
        assert_eq!(
            (place.set_len(1), place.set_len(0)),
            (Err(NoBufferSpace), Ok(()))
        );
        assert_eq!(place.insert_zeros(0, 4), Err(NoBufferSpace));
        assert!(place.receive_buffer().is_empty() && place.bytes().is_empty());
        let mut pool = Pool::new(1);
        pool.put(place);
        assert_eq!(pool.outstanding(), 0);
    }

    #[test]
    fn a_frame_is_no_larger_than_six_words() {
        assert!(size_of::<Frame>() <= 6 * size_of::<usize>());
    }

    #[test]
    fn a_frame_lies_within_what_it_is_given_or_nowhere() {
        let storage = |len: usize| Storage::new((0_u8..).take(len).collect());
        let mut frame = Frame::from_storage(storage(40), 20, 14).expect("it fits");
        assert_eq!((frame.len(), frame.bytes()[0]), (14, 20));
        assert_eq!(frame.insert_zeros(12, 4), Ok(()));
        assert_eq!(frame.insert_zeros(12, 4), Err(NoBufferSpace));
        assert_eq!(Frame::from_storage(storage(40), 20, 21), Err(NoBufferSpace));
        assert_eq!(Frame::from_storage(storage(40), 41, 0), Err(NoBufferSpace));
        let mut pool = Pool::new(1);
        pool.put(frame);
        assert_eq!(pool.outstanding(), 0);
    }

    #[test]
    fn a_frame_longer_than_the_room_is_refused() {
        let mut frame = Frame::with_full_capacity();
        assert_eq!(frame.set_len(Frame::LEN_MAX + 1), Err(NoBufferSpace));
        assert_eq!(frame.set_len(Frame::LEN_MAX), Ok(()));
    }
}
