//! How large receive rings are: what they take is memory that the kernel cannot use for
//! anything else, and where ports are many it is shared among them.

use std::num::NonZeroU32;

use sys::packet_ring::PacketRingLayout;

/// Bytes of a block.
const BLOCK_LEN: u32 = 64 << 10;

/// Bytes of a slot. It takes an Ethernet frame of the usual MTU with two tags and all
/// headers; longer frames are fetched whole by a system call. It is an odd number of cache
/// lines, so that the slots' first lines, all that is touched of short frames, spread over
/// all sets of the caches.
const SLOT_LEN: u32 = 31 * 64;

/// Blocks of a ring where ports are few: it holds 2,112 frames, 1.4 ms of a 1 Gbit/s line full
/// of the shortest.
const BLOCKS_MAX: u32 = 64;

/// Blocks of a ring where ports are very many: it holds 132 frames, more than what Open
/// vSwitch leaves to the kernel's default of 212,992 bytes, in which there is room for 90 of
/// the longest.
const BLOCKS_MIN: u32 = 4;

/// What all rings together may take, as long as each has its least: as much as sixty-four
/// ports take by one worker.
const TOTAL_LEN: u64 = 256 << 20;

/// How large a receive ring is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingSize {
    blocks: u32,
}

impl Default for RingSize {
    /// That of the rings of few ports.
    fn default() -> Self {
        Self { blocks: BLOCKS_MAX }
    }
}

impl RingSize {
    /// The size of each of `rings`.
    #[must_use]
    pub fn among(rings: usize) -> Self {
        let rings = u64::try_from(rings).unwrap_or(u64::MAX).max(1);
        let blocks = TOTAL_LEN / u64::from(BLOCK_LEN) / rings;
        let blocks = u32::try_from(blocks).unwrap_or(u32::MAX);
        Self {
            blocks: blocks.clamp(BLOCKS_MIN, BLOCKS_MAX),
        }
    }

    /// What it takes of memory.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        // Of constants that are far from overflow.
        self.blocks as u64 * BLOCK_LEN as u64
    }

    /// How a ring of this size lies in memory.
    pub(super) fn layout(self) -> PacketRingLayout {
        let positive = |number| NonZeroU32::new(number).expect("constants that are not zero");
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
    fn few_rings_are_large_and_many_share_what_there_is() {
        assert_eq!(RingSize::among(0), RingSize::default());
        assert_eq!(RingSize::among(64), RingSize::default());
        assert_eq!(RingSize::default().bytes(), 4 << 20);
        for rings in [65_u64, 100, 333, 1000] {
            let size = RingSize::among(usize::try_from(rings).expect("small"));
            assert!(size.bytes() * rings <= TOTAL_LEN, "{rings}: {size:?}");
        }
        assert_eq!(RingSize::among(usize::MAX).bytes(), 256 << 10);
    }
}
