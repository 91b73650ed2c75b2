//! A frame in memory and the pool it comes from.
//!
//! A frame lies in a buffer with room in front, so that a tag is pushed by
//! moving twelve bytes. Buffers go round in a [`Pool`]: a worker takes them at
//! receive and puts them back after transmit, and allocates nothing between.

use std::fmt;

use crate::Offload;

/// Bytes kept free in front of a received frame: room for twenty-eight tags and for
/// a device's own header before them.
const HEADROOM: usize = 128;

/// Of these, bytes that tags never take.
const PREFIX_MAX: usize = 16;

/// The longest frame held: an IPv4 datagram of 65,535 bytes, the Ethernet header
/// and a stack of tags, rounded up so that a buffer has an odd number of
/// 64-byte lines. (Buffers an even number of lines apart would fall into the
/// same few sets of the first-level cache.)
const ROOM: usize = 1029 * 64 - HEADROOM;

/// A frame and what it still owes to the wire.
pub struct Frame {
    storage: Box<[u8]>,
    start: usize,
    end: usize,
    /// Unfinished checksum, pending segmentation.
    pub offload: Offload,
}

/// The buffer has no room for the bytes that were to be put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no room left in the frame's buffer")]
pub struct NoRoom;

impl Frame {
    /// The longest frame that a pooled buffer takes, in bytes.
    pub const LEN_MAX: usize = ROOM;

    /// A frame with these bytes, in a buffer of its own.
    ///
    /// Bytes beyond [`Frame::LEN_MAX`] are kept too, but such a buffer never joins a pool.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut storage = vec![0; HEADROOM + bytes.len()].into_boxed_slice();
        storage[HEADROOM..].copy_from_slice(bytes);
        Self {
            end: storage.len(),
            storage,
            start: HEADROOM,
            offload: Offload::default(),
        }
    }

    /// An empty frame in a buffer that holds [`Frame::LEN_MAX`] bytes.
    #[must_use]
    pub fn with_room() -> Self {
        Self::over(vec![0; HEADROOM + ROOM].into_boxed_slice())
    }

    fn over(storage: Box<[u8]>) -> Self {
        Self {
            storage,
            start: HEADROOM,
            end: HEADROOM,
            offload: Offload::default(),
        }
    }

    /// The bytes, from the destination address on.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.storage[self.start..self.end]
    }

    /// The bytes, to be changed in place.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.storage[self.start..self.end]
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
        let at = self.start - N;
        self.storage[at..self.start].copy_from_slice(&prefix);
        &self.storage[at..self.end]
    }

    /// All of the buffer behind the headroom with `N` bytes before it, for a device that puts
    /// a header of its own in front of a frame; [`Frame::fill`] then says how much of what
    /// is behind the header is the frame, and [`Frame::prefix`] what the header is.
    ///
    /// Compiles only for a prefix of at most sixteen bytes.
    ///
    /// # Panics
    /// If the frame was taken and has no buffer.
    pub fn prefixed_room_mut<const N: usize>(&mut self) -> &mut [u8] {
        const { assert!(N <= PREFIX_MAX, "the headroom is shared with tags") };
        self.empty();
        &mut self.storage[self.start - N..]
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
        prefix.copy_from_slice(&self.storage[self.start - N..self.start]);
        prefix
    }

    /// How many bytes there are. No frame check sequence is among them.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Whether there are no bytes at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// All of the buffer behind the headroom, for a backend to receive into;
    /// [`Frame::fill`] then says how much of it is the frame.
    pub fn room_mut(&mut self) -> &mut [u8] {
        self.empty();
        &mut self.storage[self.start..]
    }

    /// Makes it empty, with headroom.
    fn empty(&mut self) {
        self.start = HEADROOM.min(self.storage.len());
        self.end = self.start;
    }

    /// Makes the first `len` bytes of the room the frame.
    ///
    /// # Errors
    /// The buffer is smaller than that; the frame is then empty.
    pub fn fill(&mut self, len: usize) -> Result<(), NoRoom> {
        self.empty();
        if len > self.storage.len() - self.start {
            return Err(NoRoom);
        }
        self.end = self.start + len;
        Ok(())
    }

    /// Makes `bytes` the frame.
    ///
    /// # Errors
    /// The buffer is smaller than that; the frame is then empty.
    pub fn copy_from(&mut self, bytes: &[u8]) -> Result<(), NoRoom> {
        self.fill(bytes.len())?;
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
    pub fn open(&mut self, at: usize, len: u16) -> Result<(), NoRoom> {
        let count = usize::from(len);
        assert!(at <= self.len(), "bytes are put in within the frame");
        let start = self.start.checked_sub(count);
        let start = start.filter(|start| *start >= PREFIX_MAX).ok_or(NoRoom)?;
        self.storage.copy_within(self.start..self.start + at, start);
        self.storage[start + at..start + at + count].fill(0);
        self.start = start;
        self.offload.shift(at, len, false);
        Ok(())
    }

    /// Takes `len` bytes out from `at` on, and lets the offload metadata follow.
    ///
    /// # Panics
    /// If the frame has fewer bytes there: the caller has parsed it.
    pub fn close(&mut self, at: usize, len: u16) {
        let count = usize::from(len);
        assert!(at + count <= self.len(), "bytes are taken out of the frame");
        self.storage
            .copy_within(self.start..self.start + at, self.start + count);
        self.start += count;
        self.offload.shift(at + count, len, true);
    }

    /// Keeps the first `len` bytes; a longer `len` changes nothing.
    pub fn truncate(&mut self, len: usize) {
        self.end = self.end.min(self.start + len);
    }
}

/// An empty frame without a buffer, in which there is room for nothing: what is left
/// where a frame was taken.
impl Default for Frame {
    #[inline]
    fn default() -> Self {
        Self {
            storage: Box::default(),
            start: 0,
            end: 0,
            offload: Offload::default(),
        }
    }
}

impl Clone for Frame {
    fn clone(&self) -> Self {
        let mut copy = Self::from_bytes(self.bytes());
        copy.offload = self.offload;
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

/// Buffers that go round, bounded in number; not shared between threads.
pub struct Pool {
    free: Vec<Box<[u8]>>,
    missing: usize,
    limit: usize,
}

impl Pool {
    /// A pool of at most `limit` buffers, each made when first wanted.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            free: Vec::with_capacity(limit),
            missing: 0,
            limit,
        }
    }

    /// An empty frame; none if all `limit` buffers are out.
    #[inline]
    pub fn take(&mut self) -> Option<Frame> {
        if self.missing == self.limit {
            return None;
        }
        self.missing += 1;
        Some(self.free.pop().map_or_else(Frame::with_room, Frame::over))
    }

    /// A copy of `frame`; none if all buffers are out or `frame` is too long for one.
    pub fn duplicate(&mut self, frame: &Frame) -> Option<Frame> {
        let mut copy = self.take()?;
        if copy.copy_from(frame.bytes()).is_err() {
            self.put(copy);
            return None;
        }
        copy.offload = frame.offload;
        Some(copy)
    }

    /// Takes a frame's buffer back. A buffer that no pool made is freed instead.
    #[inline]
    pub fn put(&mut self, frame: Frame) {
        if frame.storage.len() == HEADROOM + ROOM {
            self.missing = self.missing.saturating_sub(1);
            if self.free.len() < self.limit {
                self.free.push(frame.storage);
            }
        }
    }

    /// How many buffers are out. Zero between batches: anything else is a leak.
    #[must_use]
    pub fn missing(&self) -> usize {
        self.missing
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
        frame.open(12, 4).expect("headroom is left");
        assert_eq!(frame.len(), 44);
        assert_eq!(frame.bytes()[10..18], [10, 11, 0, 0, 0, 0, 12, 13]);
        assert_eq!(
            frame.offload.checksum,
            Checksum::Partial {
                start: 38,
                offset: 6
            }
        );
        frame.close(12, 4);
        assert_eq!(frame, before);
    }

    #[test]
    fn a_devices_own_header_is_received_in_front_of_the_frame() {
        let mut frame = Frame::with_room();
        let room = frame.prefixed_room_mut::<10>();
        assert_eq!(room.len(), 10 + Frame::LEN_MAX);
        room[..13].copy_from_slice(b"0123456789abc");
        frame.fill(3).unwrap();
        assert_eq!(
            (frame.bytes(), frame.prefix()),
            (&b"abc"[..], *b"0123456789")
        );
    }

    #[test]
    fn headroom_is_bounded() {
        let mut frame = Frame::from_bytes(&[0; 14]);
        for _ in 0..(HEADROOM - PREFIX_MAX) / 4 {
            frame.open(12, 4).expect("headroom is left");
        }
        assert_eq!(frame.open(12, 4), Err(NoRoom));
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
    fn a_pool_counts_what_is_out() {
        let mut pool = Pool::new(2);
        let (Some(first), Some(second)) = (pool.take(), pool.take()) else {
            panic!("two frames")
        };
        assert!(pool.take().is_none());
        pool.put(first);
        pool.put(second);
        pool.put(Frame::from_bytes(&[1, 2, 3]));
        assert_eq!(pool.missing(), 0);
        assert!(pool.take().is_some_and(|frame| frame.is_empty()));
    }

    #[test]
    fn where_a_frame_was_taken_there_is_room_for_nothing() {
        let mut place = Frame::from_bytes(&[7; 60]);
        assert_eq!(std::mem::take(&mut place).len(), 60);
        assert_eq!((place.fill(1), place.fill(0)), (Err(NoRoom), Ok(())));
        assert_eq!(place.open(0, 4), Err(NoRoom));
        assert!(place.room_mut().is_empty() && place.bytes().is_empty());
        let mut pool = Pool::new(1);
        pool.put(place);
        assert_eq!(pool.missing(), 0);
    }

    #[test]
    fn a_frame_longer_than_the_room_is_refused() {
        let mut frame = Frame::with_room();
        assert_eq!(frame.fill(Frame::LEN_MAX + 1), Err(NoRoom));
        assert_eq!(frame.fill(Frame::LEN_MAX), Ok(()));
    }
}
