//! Frames in DPDK's memory, safe to hold: a batch that came or that was allocated, and one
//! that is about to go.
//!
//! A frame that came in one piece is lent to whoever has it then: its bytes stay where they
//! are, and go out by another device as they lie there. Others are copied.

use std::ptr::{self, NonNull};
use std::slice;

use packet::Frame;
use sys::storage::{BufferOwner, Storage};

use crate::shim::{self, BATCH, RawFrame, RawLeaving};

/// Who lends the buffers of DPDK's memory.
static OWNER: BufferOwner = BufferOwner { release };

/// Takes a buffer back.
///
/// # Safety
/// It was lent by [`Frames::lend`], and nobody has it any more.
unsafe fn release(_: NonNull<BufferOwner>, buffer: NonNull<u8>) {
    // SAFETY: the buffer of a frame that was ours when it was lent.
    unsafe { shim::shim_give_back(buffer.as_ptr()) };
}

/// Where there is no frame.
const NOTHING: RawFrame = RawFrame {
    mbuf: ptr::null_mut(),
    buffer: ptr::null_mut(),
    start: 0,
    piece: 0,
    len: 0,
    room: 0,
};

/// Up to a batch of frames, ours until they are lent, sent or given back.
pub(crate) struct Frames {
    pub(crate) raw: [RawFrame; BATCH],
    pub(crate) len: usize,
}

// SAFETY: a frame belongs to whoever has it, and the memory it goes back to may be used by
// all threads at once.
unsafe impl Send for Frames {}

impl Frames {
    pub(crate) const fn new() -> Self {
        Self {
            raw: [NOTHING; BATCH],
            len: 0,
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// How long a frame is.
    pub(crate) fn frame_len(&self, index: usize) -> usize {
        self.raw[..self.len][index].len as usize
    }

    /// Whether the buffer of a frame can be lent, and has so many bytes of it.
    #[inline]
    pub(crate) fn can_be_lent(&self, index: usize, len_min: u32) -> bool {
        let raw = &self.raw[..self.len][index];
        raw.room > 0 && raw.len >= len_min
    }

    /// Lends the buffers of the first frames, as many of `count` as can be up to one that
    /// cannot or has fewer bytes than `len_min`: they are here no more. Tells of each where
    /// in its buffer it begins and how long it is. Answers how many they were.
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
            // SAFETY: so many bytes are there, in a buffer of a frame that is whole and ours
            // alone, and forgotten below; DPDK's memory is written to when it is made.
            let storage =
                unsafe { Storage::from_owner(buffer, raw.room as usize, NonNull::from(&OWNER)) };
            to(storage, raw.start as usize, raw.len as usize);
        }
        self.forget_first(lent);
        lent
    }

    /// The bytes of a frame that is in one piece.
    pub(crate) fn bytes(&self, index: usize) -> Option<&[u8]> {
        let frame = &self.raw[..self.len][index];
        if frame.len != frame.piece {
            return None;
        }
        // SAFETY: `piece` bytes from `start` on belong to the frame, which is ours as long as
        // it is here, and nobody writes to them while we are borrowed.
        Some(unsafe {
            let data = frame.buffer.add(frame.start as usize);
            slice::from_raw_parts(data, frame.piece as usize)
        })
    }

    /// Copies a frame of several pieces.
    ///
    /// # Panics
    /// If `to` has another length than the frame.
    pub(crate) fn copy(&self, index: usize, to: &mut [u8]) {
        let frame = &self.raw[..self.len][index];
        assert_eq!(to.len(), frame.len as usize, "room was made for it");
        // SAFETY: the frame is ours, and it writes `len` bytes, which is how many there are.
        unsafe { shim::shim_copy(frame, to.as_mut_ptr()) };
    }

    /// Makes `bytes` the content of a frame that was allocated, if there is room.
    #[inline]
    fn write(&mut self, index: usize, bytes: &[u8]) -> Option<RawLeaving> {
        let frame = &mut self.raw[..self.len][index];
        if bytes.len() > frame.room.saturating_sub(frame.start) as usize {
            return None;
        }
        // SAFETY: there is room for `room` bytes in the buffer and so for these behind
        // `start`; the frame is ours, and the bytes come from elsewhere.
        unsafe {
            let data = frame.buffer.add(frame.start as usize);
            ptr::copy_nonoverlapping(bytes.as_ptr(), data, bytes.len());
        }
        Some(RawLeaving {
            buffer: frame.buffer,
            start: frame.start,
            len: u32::try_from(bytes.len()).expect("it was held against the room"),
        })
    }

    /// Gives the first frames back.
    #[inline]
    pub(crate) fn release_first(&mut self, count: usize) {
        let count = count.min(self.len);
        if count > 0 {
            let raw = u32::try_from(count).expect("a batch is small");
            // SAFETY: they are ours, and are forgotten with this.
            unsafe { shim::shim_release(self.raw.as_ptr(), raw) };
        }
        self.forget_first(count);
    }

    /// Gives all frames back.
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

impl Drop for Frames {
    fn drop(&mut self) {
        self.release();
    }
}

/// Frames that are about to go: as they lie in DPDK's memory, or copied there.
pub(crate) struct Leaving {
    pub(crate) raw: [RawLeaving; BATCH],
    pub(crate) len: usize,
    /// Where each comes from, unless all are lent.
    origins: [Origin; BATCH],
    /// Those that copies are made into.
    fresh: Frames,
    /// How many of these are used.
    used: usize,
}

/// Where a frame that is about to go comes from.
#[derive(Clone, Copy)]
struct Origin {
    /// Its place in the batch.
    place: u8,
    /// Whether it is a copy.
    is_copy: bool,
}

// SAFETY: as of `Frames`; of frames that are lent there are only their places in a batch
// that whoever sends has.
unsafe impl Send for Leaving {}

impl Leaving {
    pub(crate) const fn new() -> Self {
        Self {
            raw: [NOWHERE; BATCH],
            len: 0,
            origins: [Origin {
                place: 0,
                is_copy: false,
            }; BATCH],
            fresh: Frames::new(),
            used: 0,
        }
    }

    /// Has all of these frames leave, if each lies in DPDK's memory, owes nothing and has at
    /// most `len_max` bytes; answers how many bytes they have. To those that then go,
    /// [`Frame::forget`] must be done.
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

    /// Begins a batch of these. `allocate` makes so many frames; false, if it cannot.
    pub(crate) fn begin(
        &mut self,
        frames: &[Frame],
        allocate: impl FnOnce(usize, &mut Frames) -> bool,
    ) -> bool {
        self.len = 0;
        self.used = 0;
        let is_own = |frame: &&Frame| frame.owned_by(&OWNER).is_none();
        match frames.iter().filter(is_own).count() {
            0 => true,
            own => allocate(own, &mut self.fresh),
        }
    }

    /// Adds a frame, which is at `place` of the batch; false, if it is too long for a copy.
    #[inline]
    pub(crate) fn add(&mut self, frame: &Frame, place: usize) -> bool {
        let lent = lent(frame);
        let is_copy = lent.is_none();
        let Some(raw) = lent.or_else(|| self.fresh.write(self.used, frame.bytes())) else {
            return false;
        };
        self.used += usize::from(is_copy);
        self.raw[self.len] = raw;
        let place = u8::try_from(place).expect("a batch is small");
        self.origins[self.len] = Origin { place, is_copy };
        self.len += 1;
        true
    }

    /// The place in the batch of a frame that was added.
    pub(crate) fn place(&self, index: usize) -> usize {
        self.origins[..self.len][index].place.into()
    }

    /// Ends the batch, of which the first `sent` frames have gone: what they lay in is the
    /// driver's now. The others stay as they were.
    pub(crate) fn end(&mut self, frames: &mut [Frame], sent: usize) {
        let mut copies = 0;
        for origin in &self.origins[..sent] {
            match origin.is_copy {
                true => copies += 1,
                false => std::mem::take(&mut frames[usize::from(origin.place)]).forget(),
            }
        }
        self.fresh.forget_first(copies);
        self.fresh.release();
        self.len = 0;
    }
}

/// Where there is no frame that is about to go.
const NOWHERE: RawLeaving = RawLeaving {
    buffer: ptr::null_mut(),
    start: 0,
    len: 0,
};

/// A frame as it lies in DPDK's memory, if it does.
#[inline]
fn lent(frame: &Frame) -> Option<RawLeaving> {
    let (buffer, start) = frame.owned_by(&OWNER)?;
    Some(RawLeaving {
        buffer: buffer.as_ptr(),
        start: u32::try_from(start).expect("a place in a buffer"),
        len: u32::try_from(frame.len()).expect("a length within a buffer"),
    })
}
