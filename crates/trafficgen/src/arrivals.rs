//! Frames that have come, copied together: memory that is made once and used again.

/// Frames that one call receives at most.
const FRAMES: usize = 64;
/// Room for a frame of the largest size, its tags, and what a device put around it.
const FRAME_ROOM: usize = 9_216;

/// A frame that has come.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// Its bytes, without its checksum.
    pub bytes: &'a [u8],
    /// When it came.
    pub at_ns: u64,
}

/// Up to 64 frames that have come, in their order.
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
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            bytes: Vec::with_capacity(FRAMES * FRAME_ROOM),
            frames: Vec::with_capacity(FRAMES),
        }
    }

    /// How many more find room.
    #[must_use]
    #[inline]
    pub fn room(&self) -> usize {
        FRAMES - self.frames.len()
    }

    /// Whether there are none.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Adds a frame made of these parts one behind the other; what of it is longer than any that was
    /// sent is cut off. Nothing is added when there is no room.
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

    /// All of them.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = Arrival<'_>> {
        let mut start = 0;
        self.frames.iter().map(move |&(end, at_ns)| {
            let bytes = &self.bytes[start..end];
            start = end;
            Arrival { bytes, at_ns }
        })
    }

    /// Forgets them.
    #[inline]
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.frames.clear();
    }
}
