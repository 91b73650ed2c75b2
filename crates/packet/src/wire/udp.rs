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

/// Bytes of the header.
pub const LEN: usize = 8;

/// Where the source port is.
pub const SRC: usize = 0;
/// Where the destination port is.
pub const DST: usize = 2;
/// Where the length of header and data is.
pub const LENGTH: usize = 4;
/// Where the checksum is; zero there means that there is none.
pub const CHECKSUM: usize = 6;

/// What a rule may look at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Udp {
    /// Source port.
    pub src: u16,
    /// Destination port.
    pub dst: u16,
}

impl Udp {
    /// Reads the header at the front of `bytes`. Its length field is not judged:
    /// no rule looks at it, and the receiver will.
    ///
    /// # Errors
    /// The header is cut off.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let header: &[u8; LEN] = bytes.first_chunk().ok_or(Malformed::UdpTruncated)?;
        Ok(Self {
            src: u16_at(header, SRC),
            dst: u16_at(header, DST),
        })
    }

    /// A header for a datagram of `length` bytes, itself among them.
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
    fn a_header_round_trips() {
        let header = Udp { src: 53, dst: 4000 };
        assert_eq!(Udp::parse(&header.emit(8)), Ok(header));
        assert_eq!(
            Udp::parse(&header.emit(8)[..7]),
            Err(Malformed::UdpTruncated)
        );
    }
}
