//! The SCTP common header (RFC 9260, 3.1). Its checksum is a CRC32c, over the packet without a
//! pseudo-header, with the least significant byte first.
//!
//! ```text
//!  0      2      4                  8          12
//! +------+------+------------------+----------+
//! | src  | dst  | verification tag | checksum |
//! +------+------+------------------+----------+
//! ```

use super::u16_at;
use crate::Malformed;

/// Length of the header, in bytes.
pub const LEN: usize = 12;

/// Offset of the source port.
pub const SRC: usize = 0;
/// Offset of the destination port.
pub const DST: usize = 2;
/// Offset of the verification tag.
pub const TAG: usize = 4;
/// Offset of the checksum.
pub const CHECKSUM: usize = 8;

/// Header fields that rules can match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sctp {
    /// Source port.
    pub src: u16,
    /// Destination port.
    pub dst: u16,
}

impl Sctp {
    /// Parses the header at the front of `bytes`.
    ///
    /// # Errors
    /// The header is truncated.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let header: &[u8; LEN] = bytes.first_chunk().ok_or(Malformed::SctpTruncated)?;
        Ok(Self {
            src: u16_at(header, SRC),
            dst: u16_at(header, DST),
        })
    }

    /// A header with this verification tag.
    #[must_use]
    pub fn emit(&self, tag: u32) -> [u8; LEN] {
        let mut header = [0; LEN];
        header[SRC..DST].copy_from_slice(&self.src.to_be_bytes());
        header[DST..TAG].copy_from_slice(&self.dst.to_be_bytes());
        header[TAG..CHECKSUM].copy_from_slice(&tag.to_be_bytes());
        header
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sctp_header_round_trips() {
        let header = Sctp { src: 1, dst: 2905 };
        assert_eq!(Sctp::parse(&header.emit(7)), Ok(header));
        assert_eq!(
            Sctp::parse(&header.emit(7)[..11]),
            Err(Malformed::SctpTruncated)
        );
    }
}
