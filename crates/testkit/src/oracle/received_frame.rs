//! Frames that the oracle receives: well formed, damaged, truncated, and with offload metadata.

use std::sync::LazyLock;

use packet::{Checksum, Frame, Offload, Segmentation, SegmentationKind};

use super::lists::STACKS;
use crate::workload::{frame, splitmix64};

/// A received frame.
#[derive(Clone, Debug)]
pub struct ReceivedFrame {
    pub(super) stack: &'static str,
    pub(crate) bytes: Vec<u8>,
    offload: Offload,
}

/// Frames of `STACKS`.
static BUILT: LazyLock<Vec<Vec<u8>>> =
    LazyLock::new(|| STACKS.iter().copied().map(frame).collect());

impl ReceivedFrame {
    /// A well-formed frame.
    #[must_use]
    pub fn plain(stack: &'static str) -> Self {
        Self {
            stack,
            bytes: frame(stack),
            offload: Offload::default(),
        }
    }

    /// A frame selected by `seed`: one in five has a wrong byte, one in ten is truncated, one in ten
    /// is to be segmented, and two in ten have a partial checksum. The lowest seeds select
    /// well-formed frames, to which a failing case shrinks.
    #[must_use]
    pub fn of_seed(seed: u64) -> Self {
        if let Some(stack) = usize::try_from(seed)
            .ok()
            .and_then(|place| STACKS.get(place))
        {
            return Self::plain(stack);
        }
        let number = |place: u64, count: usize| {
            let number = splitmix64(seed.wrapping_mul(8).wrapping_add(place)) % count as u64;
            usize::try_from(number).expect("the number is less than a count")
        };
        let stack = number(0, STACKS.len());
        let mut bytes = BUILT[stack].clone();
        if number(1, 5) == 0 {
            let at = number(2, bytes.len());
            bytes[at] = number(3, 256).to_le_bytes()[0];
        }
        if number(4, 10) == 0 {
            bytes.truncate(number(5, bytes.len() + 1));
        }
        let checksum = match number(6, 10) {
            0 => Checksum::Partial {
                start: 34,
                offset: 16,
            },
            1 => Checksum::Partial {
                start: 34,
                offset: 6,
            },
            _ => Checksum::Complete,
        };
        let size = number(7, 300);
        let segmentation = (size < 30).then(|| Segmentation {
            kind: SegmentationKind::Tcp4,
            size: u16::try_from(size).expect("the size is less than 30"),
            header_len: 54,
        });
        Self {
            stack: STACKS[stack],
            bytes,
            offload: Offload {
                checksum,
                segmentation,
            },
        }
    }

    /// Returns the frame.
    pub(super) fn frame(&self) -> Frame {
        let mut frame = Frame::from_bytes(&self.bytes);
        frame.offload = self.offload;
        frame
    }
}
