//! The service instance tag of provider backbone bridging (IEEE 802.1Q, 9.7): behind
//! the backbone's addresses and tags, before all of the customer's frame.
//!
//! ```text
//!  0    3   4   5   6   8                    32       80       128
//! +----+---+---+---+---+--------------------+--------+--------+------
//! |pcp |dei|uca|res|res|     instance       |  c-da  |  c-sa  | type
//! +----+---+---+---+---+--------------------+--------+--------+------
//! ```

use crate::{MacAddr, Malformed};

/// Bytes of the tag, the customer's addresses not counted.
pub const LEN: usize = 4;
/// Where the customer's destination is.
pub const CUSTOMER: usize = LEN;
/// Where the type of what the customer's frame carries, or its first tag, is.
pub const CUSTOMER_TYPE: usize = CUSTOMER + 12;

/// A tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pbb {
    /// The priority, three bits.
    pub pcp: u8,
    /// May be dropped first.
    pub dei: bool,
    /// Whether the customer's addresses are used for learning as they are.
    pub uca: bool,
    /// The service instance, twenty-four bits.
    pub isid: u32,
}

impl Pbb {
    /// Reads the tag at the front of `bytes`, which reach to the end of the frame.
    ///
    /// # Errors
    /// The frame ends before the customer's type.
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

    /// The tag as bytes. Bits that do not fit their field are cut off.
    #[must_use]
    pub const fn emit(&self) -> [u8; LEN] {
        let [_, a, b, c] = self.isid.to_be_bytes();
        let bits = (self.pcp & 7) << 5 | (self.dei as u8) << 4 | (self.uca as u8) << 3;
        [bits, a, b, c]
    }

    /// The customer's addresses, destination first, of a tag that has been read.
    pub(crate) fn customer(bytes: &[u8]) -> [MacAddr; 2] {
        let address = |at| MacAddr(std::array::from_fn(|index| bytes[at + index]));
        [address(CUSTOMER), address(CUSTOMER + 6)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_round_trips() {
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
