//! Frame buffers: memory of frames, headroom, and the pool.
//!
//! ```text
//! 0                 start                     end             buffer end
//! +-----------------+-------------------------+----------------+
//! |    headroom     |          frame          |     unused     |
//! +-----------------+-------------------------+----------------+
//!  <---- 128 B ---->  before the first push; 16 B of it are reserved for a device's own header
//! ```
//!
//! A [`Frame`] is a buffer, two offsets into it, and offload metadata ([`Offload`]), in six words.
//! A header is pushed into the headroom: [`Frame::insert_zeros`] moves the bytes before the
//! insertion point towards the front (twelve bytes for a VLAN tag), never the payload.
//! [`Frame::remove`] does the reverse.
//!
//! The buffer has one of two kinds of memory, which readers and writers do not distinguish:
//!
//! - a box of the process. A [`Pool`] recycles such boxes: a worker takes buffers before it receives and returns them after it has sent, so that the data path does not allocate. A pool is bounded and belongs to one thread.
//! - external memory: a chunk of an AF_XDP UMEM or an mbuf of DPDK. The frame releases it to its owner when it is dropped; [`Frame::transfer`] passes it on to another queue of the same device without a copy.
//!
//! Both kinds are one concrete type of crate `sys`, because only `sys` and `dpdk` contain `unsafe`
//! code. A trait in its place would make every function that handles frames generic, or cost a
//! virtual call per dropped frame and a wider `Frame`.

mod pool;

use std::fmt;
use std::ptr::NonNull;

use base::Priority;
pub use pool::Pool;
use sys::storage::{BufferOwner, Storage};

use crate::Offload;

/// Free bytes in front of a received frame: space for 28 tags and a device's own header before
/// them.
const HEADROOM: usize = 128;

/// Bytes of the headroom that tags never use.
const PREFIX_MAX: usize = 16;

/// Longest frame in a pooled buffer: an IPv4 datagram of 65,535 bytes, the Ethernet header and a
/// stack of tags, rounded up so that a buffer has an odd number of 64-byte lines. (Buffers an even
/// number of lines apart would share few sets of the first-level cache.)
const CAPACITY: usize = 1029 * 64 - HEADROOM;

/// Frame: bytes and offload metadata.
///
/// ```
/// use packet::Frame;
///
/// let mut frame = Frame::from_bytes(&[0; 60]);
/// frame.insert_zeros(12, 4).expect("a new frame has headroom");
/// assert_eq!(frame.len(), 64);
/// frame.remove(12, 4);
/// assert_eq!(frame, Frame::from_bytes(&[0; 60]));
/// ```
pub struct Frame {
    storage: Storage,
    // As `u32`, so that a frame is moved in six words.
    start: u32,
    end: u32,
    /// Unfinished checksum, pending segmentation.
    pub offload: Offload,
    /// Class of the egress port's queueing discipline. Not part of the frame's value: it does not
    /// affect equality.
    pub priority: Priority,
}

/// Error: the buffer has no space for the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no space left in the frame buffer")]
pub struct NoBufferSpace;

impl Frame {
    /// Length of the longest frame that a pooled buffer holds, in bytes.
    pub const LEN_MAX: usize = CAPACITY;

    /// Returns a frame with these bytes in a buffer of its own.
    ///
    /// `bytes` may exceed [`Frame::LEN_MAX`], but such a buffer never enters a pool.
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

    /// Returns a frame over `len` bytes of `storage` from `start` on.
    ///
    /// # Errors
    /// The range exceeds `storage`, which is dropped: an external buffer returns to its owner.
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

    /// Returns the start of the buffer and the offset of the frame in it if the buffer belongs to
    /// `owner`, otherwise `None`.
    #[must_use]
    #[inline]
    pub fn owned_by(&self, owner: &'static BufferOwner) -> Option<(NonNull<u8>, usize)> {
        let data = self.storage.owned_by(owner)?;
        Some((data, self.start as usize))
    }

    /// Offers buffer, offset and length of the frame to `taker`, without a copy. Returns true if
    /// `taker` accepts, which leaves this frame empty; if it returns the buffer, the frame is
    /// unchanged.
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

    /// Drops the frame without releasing an external buffer: the caller has disposed of it.
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

    /// First byte of the frame, for a prefetch.
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

    /// Returns the bytes with `prefix` in front, contiguously, for a device that expects its own
    /// header before a frame. The frame is unchanged.
    ///
    /// Compiles only for a prefix of at most sixteen bytes, for which there is always space.
    ///
    /// # Panics
    /// If the frame was moved out and has no buffer.
    pub fn prefixed<const N: usize>(&mut self, prefix: [u8; N]) -> &[u8] {
        const { assert!(N <= PREFIX_MAX, "the headroom is shared with tags") };
        let start = self.start as usize;
        let at = start - N;
        self.storage[at..start].copy_from_slice(&prefix);
        &self.storage[at..self.end as usize]
    }

    /// Returns the buffer after the headroom and the `N` bytes before it, for a device that writes
    /// its own header in front of a frame. [`Frame::set_len`] then sets the length of the frame
    /// after that header, and [`Frame::prefix`] returns the header.
    ///
    /// Compiles only for a prefix of at most sixteen bytes.
    ///
    /// # Panics
    /// If the frame was moved out and has no buffer.
    pub fn receive_buffer_with_prefix<const N: usize>(&mut self) -> &mut [u8] {
        const { assert!(N <= PREFIX_MAX, "the headroom is shared with tags") };
        self.reset();
        let start = self.start as usize;
        &mut self.storage[start - N..]
    }

    /// Returns the `N` bytes in front of the frame, which a device wrote.
    ///
    /// Compiles only for a prefix of at most sixteen bytes.
    ///
    /// # Panics
    /// If the frame was moved out and has no buffer.
    #[must_use]
    pub fn prefix<const N: usize>(&self) -> [u8; N] {
        const { assert!(N <= PREFIX_MAX, "the headroom is shared with tags") };
        let mut prefix = [0; N];
        let start = self.start as usize;
        prefix.copy_from_slice(&self.storage[start - N..start]);
        prefix
    }

    /// Length in bytes, without frame check sequence.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        (self.end - self.start) as usize
    }

    /// True if the frame has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Returns the buffer after the headroom, for a port backend to receive into;
    /// [`Frame::set_len`] then sets the length of the frame.
    pub fn receive_buffer(&mut self) -> &mut [u8] {
        self.reset();
        &mut self.storage[self.start as usize..]
    }

    /// Makes it empty, with headroom.
    fn reset(&mut self) {
        self.start = offset_u32(HEADROOM.min(self.storage.len()));
        self.end = self.start;
    }

    /// Sets the frame to the first `len` bytes of the receive buffer.
    ///
    /// # Errors
    /// The buffer is smaller; the frame is then empty.
    pub fn set_len(&mut self, len: usize) -> Result<(), NoBufferSpace> {
        self.reset();
        let start = self.start as usize;
        if len > self.storage.len() - start {
            return Err(NoBufferSpace);
        }
        self.end = offset_u32(start + len);
        Ok(())
    }

    /// Copies `bytes` into the buffer as the frame's content.
    ///
    /// # Errors
    /// The buffer is smaller; the frame is then empty.
    pub fn copy_from(&mut self, bytes: &[u8]) -> Result<(), NoBufferSpace> {
        self.set_len(bytes.len())?;
        self.bytes_mut().copy_from_slice(bytes);
        Ok(())
    }

    /// Inserts `len` zero bytes before the byte at `at` and updates the offload metadata.
    ///
    /// # Errors
    /// The headroom is exhausted; the frame is unchanged.
    ///
    /// # Panics
    /// If `at` is beyond the end of the frame: the caller has parsed it.
    pub fn insert_zeros(&mut self, at: usize, len: u16) -> Result<(), NoBufferSpace> {
        let count = usize::from(len);
        assert!(at <= self.len(), "the offset is within the frame");
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

    /// Removes `len` bytes from `at` on and updates the offload metadata.
    ///
    /// # Panics
    /// If the frame has fewer bytes there: the caller has parsed it.
    pub fn remove(&mut self, at: usize, len: u16) {
        let count = usize::from(len);
        assert!(at + count <= self.len(), "the range is within the frame");
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

/// Narrows an offset in a buffer, which `Storage` limits to less than four gigabytes.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "offsets in a buffer are below its length, which is a u32"
)]
const fn offset_u32(offset: usize) -> u32 {
    offset as u32
}

/// Empty frame without a buffer, which `std::mem::take` leaves behind.
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
        frame.insert_zeros(12, 4).expect("the headroom has space");
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
    fn device_header_is_received_in_front_of_frame() {
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
            frame.insert_zeros(12, 4).expect("the headroom has space");
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
    fn default_frame_has_no_buffer() {
        let mut frame = Frame::from_bytes(&[7; 60]);
        assert_eq!(std::mem::take(&mut frame).len(), 60);
        assert_eq!(
            (frame.set_len(1), frame.set_len(0)),
            (Err(NoBufferSpace), Ok(()))
        );
        assert_eq!(frame.insert_zeros(0, 4), Err(NoBufferSpace));
        assert!(frame.receive_buffer().is_empty() && frame.bytes().is_empty());
        let mut pool = Pool::new(1);
        pool.put(frame);
        assert_eq!(pool.outstanding(), 0);
    }

    #[test]
    fn frame_is_at_most_six_words() {
        assert!(size_of::<Frame>() <= 6 * size_of::<usize>());
    }

    #[test]
    fn storage_range_is_checked() {
        let storage = |len: usize| Storage::new((0_u8..).take(len).collect());
        let mut frame =
            Frame::from_storage(storage(40), 20, 14).expect("the range is within the storage");
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
    fn length_above_capacity_is_refused() {
        let mut frame = Frame::with_full_capacity();
        assert_eq!(frame.set_len(Frame::LEN_MAX + 1), Err(NoBufferSpace));
        assert_eq!(frame.set_len(Frame::LEN_MAX), Ok(()));
    }
}
