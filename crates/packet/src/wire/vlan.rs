//! A VLAN tag (IEEE 802.1Q, 9.6). In a frame its two halves straddle the fields
//! of OpenFlow: the type in front is the tag's own, the one behind the payload's.
//!
//! ```text
//!  12       14                 16
//! +--------+-----+---+--------+------
//! | 0x8100 | pcp |dei|  vid   | type
//! +--------+-----+---+--------+------
//!   16       3     1    12 bits
//! ```

/// Bytes of a tag.
pub const LEN: usize = 4;

/// The most tags that are looked behind. A frame with more has the type of the
/// next tag. Nobody stacks more than three; every tag costs the reader time.
pub const COUNT_MAX: u8 = 8;

/// One tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VlanTag {
    /// What announces it: `0x8100` or `0x88a8`.
    pub tpid: u16,
    /// Priority, three bits.
    pub pcp: u8,
    /// May be dropped first.
    pub dei: bool,
    /// The VLAN, twelve bits; zero means that only the priority counts.
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

    /// The tag as bytes. Bits that do not fit their field are cut off.
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
    fn a_tag_round_trips() {
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
