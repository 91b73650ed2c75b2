//! Frames and bytes on the wire: the units of every port counter. A frame that awaits segmentation
//! counts as its segments.

use crate::wire::{u16_at, udp};
use crate::{Checksum, Frame};

impl Frame {
    /// Number of frames on the wire: one, or the number of segments.
    #[must_use]
    #[inline]
    pub fn wire_frames(&self) -> u64 {
        match self.offload.segmentation {
            None => 1,
            Some(_) => self.segment_count(),
        }
    }

    /// Number of segments. Not inlined, to keep frames without segmentation fast.
    #[inline(never)]
    fn segment_count(&self) -> u64 {
        let headers = self.segment_headers();
        match (self.offload.segmentation, self.len().checked_sub(headers)) {
            (Some(how), Some(payload)) if how.size > 0 => {
                (payload.div_ceil(usize::from(how.size)) as u64).max(1)
            }
            _ => 1,
        }
    }

    /// Number of bytes of these frames, without preamble and frame check sequence.
    #[must_use]
    #[inline]
    pub fn wire_bytes(&self) -> u64 {
        let repeated = match self.offload.segmentation {
            None => 0,
            Some(_) => self.repeated_header_bytes(),
        };
        self.len() as u64 + repeated
    }

    /// Bytes that more than one of them will have.
    #[inline(never)]
    fn repeated_header_bytes(&self) -> u64 {
        (self.segment_count() - 1) * self.segment_headers() as u64
    }

    /// Length of the headers that every segment repeats, in bytes: from the headers themselves if
    /// the metadata locates them, otherwise the sender's hint.
    fn segment_headers(&self) -> usize {
        let Some(how) = self.offload.segmentation else {
            return 0;
        };
        let Checksum::Partial { start, offset } = self.offload.checksum else {
            return usize::from(how.header_len);
        };
        let start = usize::from(start);
        if usize::from(offset) == udp::CHECKSUM {
            start + udp::LEN
        } else {
            match self.bytes().get(start + 12..start + 14) {
                Some(flags) => start + usize::from(u16_at(flags, 0) >> 12) * 4,
                None => usize::from(how.header_len),
            }
        }
    }
}
