//! Sizes of receive rings. Rings pin memory of the kernel, so with many ports they share a fixed
//! total.

use std::num::NonZeroU32;

use sys::packet_ring::PacketRingLayout;

/// Length of a block, in bytes.
const BLOCK_LEN: u32 = 64 << 10;

/// Length of a slot, in bytes. A slot contains an Ethernet frame of the usual MTU with two tags and
/// all headers; longer frames are received complete by a system call. The length is an odd number
/// of cache lines, so that the first lines of the slots, the only ones that short frames touch, are
/// spread over all cache sets.
const SLOT_LEN: u32 = 31 * 64;

/// Blocks of a ring with few ports: 2,112 frames, or 1.4 ms at 1 Gbit/s with frames of minimum
/// length.
const BLOCKS_MAX: u32 = 64;

/// Blocks of a ring with very many ports: 132 frames. Open vSwitch leaves the size to the kernel's
/// default of 212,992 bytes, which holds 90 frames of maximum length.
const BLOCKS_MIN: u32 = 4;

/// Total of all rings, in bytes, unless the minimum per ring exceeds it: the memory of sixty-four
/// ports with one worker.
const TOTAL_LEN: u64 = 256 << 20;

/// Size of a receive ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingSize {
    blocks: u32,
}

impl Default for RingSize {
    /// The size of rings with few ports.
    fn default() -> Self {
        Self { blocks: BLOCKS_MAX }
    }
}

impl RingSize {
    /// Returns the size of each of `rings` rings.
    #[must_use]
    pub fn for_rings(rings: usize) -> Self {
        let rings = u64::try_from(rings).unwrap_or(u64::MAX).max(1);
        let blocks = TOTAL_LEN / u64::from(BLOCK_LEN) / rings;
        let blocks = u32::try_from(blocks).unwrap_or(u32::MAX);
        Self {
            blocks: blocks.clamp(BLOCKS_MIN, BLOCKS_MAX),
        }
    }

    /// Memory of a ring, in bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        // Both factors are constants far below an overflow.
        self.blocks as u64 * BLOCK_LEN as u64
    }

    /// Returns the layout of a ring of this size.
    pub(super) fn layout(self) -> PacketRingLayout {
        let positive = |number| NonZeroU32::new(number).expect("the constants are not zero");
        PacketRingLayout {
            block_len: positive(BLOCK_LEN),
            blocks: positive(self.blocks),
            slot_len: positive(SLOT_LEN),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ring_size_shrinks_with_number_of_rings() {
        assert_eq!(RingSize::for_rings(0), RingSize::default());
        assert_eq!(RingSize::for_rings(64), RingSize::default());
        assert_eq!(RingSize::default().bytes(), 4 << 20);
        for rings in [65_u64, 100, 333, 1000] {
            let size = RingSize::for_rings(usize::try_from(rings).expect("fits"));
            assert!(size.bytes() * rings <= TOTAL_LEN, "{rings}: {size:?}");
        }
        assert_eq!(RingSize::for_rings(usize::MAX).bytes(), 256 << 10);
    }
}
