//! The UDP header (RFC 768).
//!
//! ```text
//!  0      2      4        6          8
//! +------+------+--------+----------+
//! | src  | dst  | length | checksum |
//! +------+------+--------+----------+
//! ```

use super::u16_at;
use crate::Malformed;

/// Length of the header, in bytes.
pub const LEN: usize = 8;

/// Offset of the source port.
pub const SRC: usize = 0;
/// Offset of the destination port.
pub const DST: usize = 2;
/// Offset of the length of header and data.
pub const LENGTH: usize = 4;
/// Offset of the checksum; zero means no checksum.
pub const CHECKSUM: usize = 6;

/// Header fields that rules can match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Udp {
    /// Source port.
    pub src: u16,
    /// Destination port.
    pub dst: u16,
}

impl Udp {
    /// Parses the header at the front of `bytes`. The length field is not checked: no rule matches
    /// it, and the receiver checks it.
    ///
    /// # Errors
    /// The header is truncated.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let header: &[u8; LEN] = bytes.first_chunk().ok_or(Malformed::UdpTruncated)?;
        Ok(Self {
            src: u16_at(header, SRC),
            dst: u16_at(header, DST),
        })
    }

    /// Returns the header of a datagram of `length` bytes, the header included.
    #[must_use]
    pub fn emit(&self, length: u16) -> [u8; LEN] {
        let mut header = [0; LEN];
        header[SRC..DST].copy_from_slice(&self.src.to_be_bytes());
        header[DST..LENGTH].copy_from_slice(&self.dst.to_be_bytes());
        header[LENGTH..CHECKSUM].copy_from_slice(&length.to_be_bytes());
        header
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn udp_header_round_trips() {
        let header = Udp { src: 53, dst: 4000 };
        assert_eq!(Udp::parse(&header.emit(8)), Ok(header));
        assert_eq!(
            Udp::parse(&header.emit(8)[..7]),
            Err(Malformed::UdpTruncated)
        );
    }
}
