//! Received frames, copied together into memory that is allocated once and reused.

/// The most frames that one call receives.
const FRAMES: usize = 64;
/// Bytes reserved for a frame: the largest size, its tags, and an encapsulation that a device
/// added.
const FRAME_ROOM: usize = 9_216;

/// A received frame.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// The bytes without FCS.
    pub bytes: &'a [u8],
    /// The receive timestamp.
    pub at_ns: u64,
}

/// Up to 64 received frames, in order of arrival.
#[derive(Debug)]
pub struct Arrivals {
    bytes: Vec<u8>,
    frames: Vec<(usize, u64)>,
}

impl Default for Arrivals {
    fn default() -> Self {
        Self::new()
    }
}

impl Arrivals {
    /// Returns an empty list.
    #[must_use]
    pub fn new() -> Self {
        Self {
            bytes: Vec::with_capacity(FRAMES * FRAME_ROOM),
            frames: Vec::with_capacity(FRAMES),
        }
    }

    /// The number of frames that can still be added.
    #[must_use]
    #[inline]
    pub fn room(&self) -> usize {
        FRAMES - self.frames.len()
    }

    /// Returns true if there are no frames.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Adds a frame that consists of these parts in order, truncated to the largest size. Adds
    /// nothing if the list is full.
    #[inline]
    pub fn push(&mut self, at_ns: u64, parts: &[&[u8]]) {
        if self.room() == 0 {
            return;
        }
        let start = self.bytes.len();
        for part in parts {
            let room = FRAME_ROOM - (self.bytes.len() - start);
            self.bytes.extend_from_slice(&part[..part.len().min(room)]);
        }
        self.frames.push((self.bytes.len(), at_ns));
    }

    /// Iterates over the frames.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = Arrival<'_>> {
        let mut start = 0;
        self.frames.iter().map(move |&(end, at_ns)| {
            let bytes = &self.bytes[start..end];
            start = end;
            Arrival { bytes, at_ns }
        })
    }

    /// Removes all frames.
    #[inline]
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.frames.clear();
    }
}
