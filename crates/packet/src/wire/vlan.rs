//! A VLAN tag (IEEE 802.1Q, 9.6). The EtherType before the tag's control information is the tag's
//! own; the one after it is the payload's.
//!
//! ```text
//!  12       14                 16
//! +--------+-----+---+--------+------
//! | 0x8100 | pcp |dei|  vid   | type
//! +--------+-----+---+--------+------
//!   16       3     1    12 bits
//! ```

/// Length of a tag, in bytes.
pub const LEN: usize = 4;

/// Largest number of tags that the parser skips. A frame with more has the EtherType of the next
/// tag. Real stacks have at most three; every tag costs time.
pub const COUNT_MAX: u8 = 8;

/// VLAN tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VlanTag {
    /// Tag protocol identifier: `0x8100` or `0x88a8`.
    pub tpid: u16,
    /// Priority, three bits.
    pub pcp: u8,
    /// Drop eligible indicator.
    pub dei: bool,
    /// VLAN identifier, twelve bits; zero for a priority tag.
    pub vid: u16,
}

impl VlanTag {
    /// The tag in these four bytes.
    #[must_use]
    #[inline]
    pub const fn parse(bytes: [u8; LEN]) -> Self {
        let [t0, t1, c0, c1] = bytes;
        Self {
            tpid: u16::from_be_bytes([t0, t1]),
            pcp: c0 >> 5,
            dei: c0 & 0x10 != 0,
            vid: u16::from_be_bytes([c0 & 0x0f, c1]),
        }
    }

    /// Encodes the tag. Bits that exceed their field are dropped.
    #[must_use]
    pub const fn emit(&self) -> [u8; LEN] {
        let [t0, t1] = self.tpid.to_be_bytes();
        let [v0, v1] = self.vid.to_be_bytes();
        [
            t0,
            t1,
            self.pcp << 5 | (self.dei as u8) << 4 | v0 & 0x0f,
            v1,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vlan_tag_round_trips() {
        let tag = VlanTag {
            tpid: 0x88a8,
            pcp: 5,
            dei: true,
            vid: 0xabc,
        };
        assert_eq!(tag.emit(), [0x88, 0xa8, 0xba, 0xbc]);
        assert_eq!(VlanTag::parse(tag.emit()), tag);
    }
}
