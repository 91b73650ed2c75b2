//! The ICMP header (RFC 792).
//!
//! ```text
//!  0      1      2          4                8
//! +------+------+----------+----------------+
//! | type | code | checksum | as type and code have it
//! +------+------+----------+----------------+
//! ```

use crate::Malformed;

/// Length of the shortest message, in bytes.
pub const LEN: usize = 8;

/// Offset of the type.
pub const TYPE: usize = 0;
/// Offset of the code.
pub const CODE: usize = 1;
/// Offset of the checksum.
pub const CHECKSUM: usize = 2;

/// Header fields that rules can match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Icmpv4 {
    /// The type.
    pub kind: u8,
    /// The code.
    pub code: u8,
}

impl Icmpv4 {
    /// Parses the header at the front of `bytes`.
    ///
    /// # Errors
    /// The header is truncated.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let [kind, code, ..]: [u8; LEN] = *bytes.first_chunk().ok_or(Malformed::Icmpv4Truncated)?;
        Ok(Self { kind, code })
    }

    /// Returns the header with the four bytes `rest` after the checksum.
    #[must_use]
    pub const fn emit(&self, rest: u32) -> [u8; LEN] {
        let [a, b, c, d] = rest.to_be_bytes();
        [self.kind, self.code, 0, 0, a, b, c, d]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn icmpv4_header_round_trips() {
        let header = Icmpv4 { kind: 8, code: 0 };
        assert_eq!(Icmpv4::parse(&header.emit(1)), Ok(header));
        assert_eq!(
            Icmpv4::parse(&header.emit(1)[..7]),
            Err(Malformed::Icmpv4Truncated)
        );
    }
}
