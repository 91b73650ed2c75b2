//! The service instance tag of provider backbone bridging (IEEE 802.1Q, 9.7): after the backbone
//! addresses and tags, before the whole customer frame.
//!
//! ```text
//!  0    3   4   5   6   8                    32       80       128
//! +----+---+---+---+---+--------------------+--------+--------+------
//! |pcp |dei|uca|res|res|     instance       |  c-da  |  c-sa  | type
//! +----+---+---+---+---+--------------------+--------+--------+------
//! ```

use crate::{MacAddr, Malformed};

/// Length of the tag, the customer's addresses not counted, in bytes.
pub const LEN: usize = 4;
/// Offset of the customer's destination.
pub const CUSTOMER: usize = LEN;
/// Offset of the customer frame's EtherType, or of its first tag.
pub const CUSTOMER_TYPE: usize = CUSTOMER + 12;

/// A tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pbb {
    /// The priority, three bits.
    pub pcp: u8,
    /// Drop eligible indicator.
    pub dei: bool,
    /// Use customer address: true if the customer addresses are used for learning unchanged.
    pub uca: bool,
    /// The service instance, twenty-four bits.
    pub isid: u32,
}

impl Pbb {
    /// Parses the tag at the front of `bytes`, which end where the frame ends.
    ///
    /// # Errors
    /// The frame ends before the customer's EtherType.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let header: &[u8; CUSTOMER_TYPE + 2] =
            bytes.first_chunk().ok_or(Malformed::PbbTruncated)?;
        let [bits, a, b, c, ..] = *header;
        Ok(Self {
            pcp: bits >> 5,
            dei: bits & 0x10 != 0,
            uca: bits & 0x08 != 0,
            isid: u32::from_be_bytes([0, a, b, c]),
        })
    }

    /// Encodes the tag. Bits that exceed their field are dropped.
    #[must_use]
    pub const fn emit(&self) -> [u8; LEN] {
        let [_, a, b, c] = self.isid.to_be_bytes();
        let bits = (self.pcp & 7) << 5 | (self.dei as u8) << 4 | (self.uca as u8) << 3;
        [bits, a, b, c]
    }

    /// Returns the customer's destination and source address, after a tag that was parsed.
    pub(crate) fn customer(bytes: &[u8]) -> [MacAddr; 2] {
        let address = |at| MacAddr(std::array::from_fn(|index| bytes[at + index]));
        [address(CUSTOMER), address(CUSTOMER + 6)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pbb_tag_round_trips() {
        let tag = Pbb {
            pcp: 5,
            dei: true,
            uca: true,
            isid: 0x00ab_cdef,
        };
        assert_eq!(tag.emit(), [0xb8, 0xab, 0xcd, 0xef]);
        let mut bytes = tag.emit().to_vec();
        bytes.extend([1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 8]);
        assert_eq!(Pbb::parse(&bytes), Err(Malformed::PbbTruncated));
        bytes.push(0);
        assert_eq!(Pbb::parse(&bytes), Ok(tag));
        assert_eq!(Pbb::customer(&bytes), [MacAddr([1; 6]), MacAddr([2; 6])]);
    }
}
