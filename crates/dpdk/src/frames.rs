//! Safe wrappers of mbufs: batches of received or allocated frames, and batches to be sent.
//!
//! A received frame of one segment is lent to its user without a copy: its bytes stay in the mbuf
//! and can be sent by another device from there. Other frames are copied.

use std::ptr::{self, NonNull};
use std::slice;

use packet::Frame;
use sys::storage::{BufferOwner, Storage};

use crate::shim::{self, BATCH, RawFrame, RawTxFrame};

/// The owner of lent DPDK buffers.
static OWNER: BufferOwner = BufferOwner { release };

/// Frees a lent buffer.
///
/// # Safety
/// [`MbufBatch::lend_first`] lent it, and no other reference to it exists.
unsafe fn release(_: NonNull<BufferOwner>, buffer: NonNull<u8>) {
    // SAFETY: the buffer of a frame that belonged to us when it was lent.
    unsafe { shim::shim_give_back(buffer.as_ptr()) };
}

/// The value of unused entries.
const EMPTY_FRAME: RawFrame = RawFrame {
    mbuf: ptr::null_mut(),
    buffer: ptr::null_mut(),
    start: 0,
    piece: 0,
    len: 0,
    room: 0,
};

/// Up to a batch of frames, owned until they are lent, sent or freed.
pub(crate) struct MbufBatch {
    pub(crate) raw: [RawFrame; BATCH],
    pub(crate) len: usize,
}

// SAFETY: a frame belongs to its holder, and its memory pool is thread-safe.
unsafe impl Send for MbufBatch {}

impl MbufBatch {
    pub(crate) const fn new() -> Self {
        Self {
            raw: [EMPTY_FRAME; BATCH],
            len: 0,
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Returns the length of a frame in bytes.
    pub(crate) fn frame_len(&self, index: usize) -> usize {
        self.raw[..self.len][index].len as usize
    }

    /// Returns whether the buffer of a frame can be lent, and the frame has at least `len_min`
    /// bytes.
    #[inline]
    pub(crate) fn can_be_lent(&self, index: usize, len_min: u32) -> bool {
        let raw = &self.raw[..self.len][index];
        raw.room > 0 && raw.len >= len_min
    }

    /// Lends the buffers of the first frames, up to `count`, and removes them from the batch. It
    /// stops at a frame that cannot be lent or is shorter than `len_min` bytes. `to` receives the
    /// storage of each frame, its offset in the buffer and its length. Returns the number of lent
    /// frames.
    #[inline]
    pub(crate) fn lend_first(
        &mut self,
        count: usize,
        len_min: u32,
        mut to: impl FnMut(Storage, usize, usize),
    ) -> usize {
        let count = count.min(self.len);
        let lent = (0..count).take_while(|index| self.can_be_lent(*index, len_min));
        let lent = lent.count();
        for raw in &self.raw[..lent] {
            let Some(buffer) = NonNull::new(raw.buffer) else {
                continue;
            };
            // SAFETY: the buffer has `room` bytes and belongs to a complete frame that is ours
            // alone and is forgotten below; DPDK initializes its memory when it creates the pool.
            let storage =
                unsafe { Storage::from_owner(buffer, raw.room as usize, NonNull::from(&OWNER)) };
            to(storage, raw.start as usize, raw.len as usize);
        }
        self.forget_first(lent);
        lent
    }

    /// Returns the bytes of a frame of one segment.
    pub(crate) fn bytes(&self, index: usize) -> Option<&[u8]> {
        let frame = &self.raw[..self.len][index];
        if frame.len != frame.piece {
            return None;
        }
        // SAFETY: `piece` bytes from `start` belong to the frame, which is ours while it is in the
        // batch, and no thread writes them during the borrow.
        Some(unsafe {
            let data = frame.buffer.add(frame.start as usize);
            slice::from_raw_parts(data, frame.piece as usize)
        })
    }

    /// Copies a frame of several segments.
    ///
    /// # Panics
    /// If `to` has another length than the frame.
    pub(crate) fn copy(&self, index: usize, to: &mut [u8]) {
        let frame = &self.raw[..self.len][index];
        assert_eq!(
            to.len(),
            frame.len as usize,
            "the buffer has the length of the frame"
        );
        // SAFETY: the frame is ours, and the shim writes `len` bytes, the length of `to`.
        unsafe { shim::shim_copy(frame, to.as_mut_ptr()) };
    }

    /// Writes `bytes` into an allocated frame. Returns none if the buffer is too short.
    #[inline]
    fn write(&mut self, index: usize, bytes: &[u8]) -> Option<RawTxFrame> {
        let frame = &mut self.raw[..self.len][index];
        if bytes.len() > frame.room.saturating_sub(frame.start) as usize {
            return None;
        }
        // SAFETY: the buffer has `room` bytes, and so enough after `start`; the frame is ours, and
        // `bytes` does not overlap it.
        unsafe {
            let data = frame.buffer.add(frame.start as usize);
            ptr::copy_nonoverlapping(bytes.as_ptr(), data, bytes.len());
        }
        Some(RawTxFrame {
            buffer: frame.buffer,
            start: frame.start,
            len: u32::try_from(bytes.len()).expect("the length fits the buffer"),
        })
    }

    /// Frees the first frames.
    #[inline]
    pub(crate) fn release_first(&mut self, count: usize) {
        let count = count.min(self.len);
        if count > 0 {
            let raw = u32::try_from(count).expect("a batch is small");
            // SAFETY: the frames are ours, and are forgotten below.
            unsafe { shim::shim_release(self.raw.as_ptr(), raw) };
        }
        self.forget_first(count);
    }

    /// Frees all frames.
    pub(crate) fn release(&mut self) {
        self.release_first(self.len);
    }

    fn forget_first(&mut self, count: usize) {
        if count < self.len {
            self.raw.copy_within(count..self.len, 0);
        }
        self.len -= count;
    }
}

impl Drop for MbufBatch {
    fn drop(&mut self) {
        self.release();
    }
}

/// Frames to be sent: lent mbufs, or copies in allocated ones.
pub(crate) struct TxBatch {
    pub(crate) raw: [RawTxFrame; BATCH],
    pub(crate) len: usize,
    /// The origin of each frame, unless all are lent.
    origins: [Origin; BATCH],
    /// Allocated frames for copies.
    copies: MbufBatch,
    /// The number of allocated frames that are used.
    used: usize,
}

/// The origin of a frame to be sent.
#[derive(Clone, Copy)]
struct Origin {
    /// Its index in the batch.
    batch_index: u8,
    /// True if it is a copy.
    is_copy: bool,
}

// SAFETY: as for `MbufBatch`; lent frames are only referred to by their index in a batch, which the
// sender owns.
unsafe impl Send for TxBatch {}

impl TxBatch {
    pub(crate) const fn new() -> Self {
        Self {
            raw: [EMPTY_TX_FRAME; BATCH],
            len: 0,
            origins: [Origin {
                batch_index: 0,
                is_copy: false,
            }; BATCH],
            copies: MbufBatch::new(),
            used: 0,
        }
    }

    /// Prepares all of these frames without copies, if each is in a lent mbuf, has no pending
    /// offload and has at most `len_max` bytes. Returns their total length in bytes. The caller
    /// must call [`Frame::forget`] on those that are sent.
    #[inline]
    pub(crate) fn all(&mut self, frames: &[Frame], len_max: usize) -> Option<u64> {
        self.len = 0;
        let mut bytes = 0;
        for (raw, frame) in self.raw.iter_mut().zip(frames) {
            let lent = lent(frame)?;
            if frame.len() > len_max || !frame.offload.is_empty() {
                return None;
            }
            bytes += u64::from(lent.len);
            *raw = lent;
        }
        self.len = frames.len();
        Some(bytes)
    }

    /// Begins a batch of these frames. `allocate` allocates frames for copies. Returns false if it
    /// cannot.
    pub(crate) fn begin(
        &mut self,
        frames: &[Frame],
        allocate: impl FnOnce(usize, &mut MbufBatch) -> bool,
    ) -> bool {
        self.len = 0;
        self.used = 0;
        let is_own = |frame: &&Frame| frame.owned_by(&OWNER).is_none();
        match frames.iter().filter(is_own).count() {
            0 => true,
            own => allocate(own, &mut self.copies),
        }
    }

    /// Adds the frame at index `batch_index` of the batch. Returns false if it is too long for a copy.
    #[inline]
    pub(crate) fn add(&mut self, frame: &Frame, batch_index: usize) -> bool {
        let lent = lent(frame);
        let is_copy = lent.is_none();
        let Some(raw) = lent.or_else(|| self.copies.write(self.used, frame.bytes())) else {
            return false;
        };
        self.used += usize::from(is_copy);
        self.raw[self.len] = raw;
        let batch_index = u8::try_from(batch_index).expect("a batch is small");
        self.origins[self.len] = Origin {
            batch_index,
            is_copy,
        };
        self.len += 1;
        true
    }

    /// Returns the index in the batch of a frame that was added.
    pub(crate) fn batch_index(&self, index: usize) -> usize {
        self.origins[..self.len][index].batch_index.into()
    }

    /// Ends the batch after the first `sent` frames were sent: the driver owns their buffers. The
    /// other frames are unchanged.
    pub(crate) fn end(&mut self, frames: &mut [Frame], sent: usize) {
        let mut copies = 0;
        for origin in &self.origins[..sent] {
            match origin.is_copy {
                true => copies += 1,
                false => std::mem::take(&mut frames[usize::from(origin.batch_index)]).forget(),
            }
        }
        self.copies.forget_first(copies);
        self.copies.release();
        self.len = 0;
    }
}

/// The value of unused entries.
const EMPTY_TX_FRAME: RawTxFrame = RawTxFrame {
    buffer: ptr::null_mut(),
    start: 0,
    len: 0,
};

/// Returns the mbuf of a frame, if the frame is lent.
#[inline]
fn lent(frame: &Frame) -> Option<RawTxFrame> {
    let (buffer, start) = frame.owned_by(&OWNER)?;
    Some(RawTxFrame {
        buffer: buffer.as_ptr(),
        start: u32::try_from(start).expect("an offset in a buffer"),
        len: u32::try_from(frame.len()).expect("a length within a buffer"),
    })
}
