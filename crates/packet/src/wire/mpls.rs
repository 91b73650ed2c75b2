//! An entry of the MPLS label stack (RFC 3032, 2.1). The stack is between the VLAN tags and the
//! packet and does not identify the packet's protocol.
//!
//! ```text
//!  0                   20      23  24       32
//! +-------------------+-------+---+--------+
//! |       label       |  tc   | s |  ttl   |
//! +-------------------+-------+---+--------+
//! ```

use crate::Malformed;

/// Length of an entry, in bytes.
pub const LEN: usize = 4;
/// Offset of the TTL.
pub const TTL: usize = 3;

/// Entry of the label stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mpls {
    /// The label, twenty bits.
    pub label: u32,
    /// The traffic class, three bits.
    pub tc: u8,
    /// Bottom of stack: true if the packet follows and not another entry.
    pub bottom: bool,
    /// Time to live.
    pub ttl: u8,
}

impl Mpls {
    /// Parses the entry at the front of `bytes`.
    ///
    /// # Errors
    /// `bytes` has fewer than four bytes.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let [a, b, c, ttl] = *bytes.first_chunk().ok_or(Malformed::MplsTruncated)?;
        Ok(Self {
            label: u32::from_be_bytes([0, a, b, c]) >> 4,
            tc: c >> 1 & 7,
            bottom: c & 1 == 1,
            ttl,
        })
    }

    /// Encodes the entry. Bits that exceed their field are dropped.
    #[must_use]
    pub const fn emit(&self) -> [u8; LEN] {
        let [_, a, b, c] = (self.label << 4).to_be_bytes();
        [a, b, c | (self.tc & 7) << 1 | self.bottom as u8, self.ttl]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mpls_entry_round_trips() {
        let entry = Mpls {
            label: 0xabcde,
            tc: 5,
            bottom: true,
            ttl: 63,
        };
        assert_eq!(entry.emit(), [0xab, 0xcd, 0xeb, 63]);
        assert_eq!(Mpls::parse(&entry.emit()), Ok(entry));
        assert_eq!(Mpls::parse(&[0; 3]), Err(Malformed::MplsTruncated));
    }
}
