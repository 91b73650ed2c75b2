//! The TCP header (RFC 9293, 3.1).
//!
//! ```text
//!  0        4       8          16                  32 bits
//! +-----------------+----------+-------------------+
//! |        source port         | destination port  |
//! |                 sequence number                |
//! |              acknowledgment number             |
//! +--------+-------------------+-------------------+
//! | offset |  12 bits of flags |      window       |
//! +--------+-------------------+-------------------+
//! |          checksum          |  urgent pointer   |
//! |            options, up to 40 bytes             |
//! +------------------------------------------------+
//! ```

use super::u16_at;
use crate::Malformed;

/// Length of a header without options, in bytes.
pub const LEN_MIN: usize = 20;

/// Offset of the source port.
pub const SRC: usize = 0;
/// Offset of the destination port.
pub const DST: usize = 2;
/// Offset of the sequence number.
pub const SEQUENCE: usize = 4;
/// Offset of the acknowledgment number.
pub const ACKNOWLEDGMENT: usize = 8;
/// Offset of the data offset and the flags.
pub const FLAGS: usize = 12;
/// Offset of the window.
pub const WINDOW: usize = 14;
/// Offset of the checksum.
pub const CHECKSUM: usize = 16;

/// The flag of the last segment.
pub const FIN: u16 = 1 << 0;
/// The flag of a connection's first segment.
pub const SYN: u16 = 1 << 1;
/// The flag that resets.
pub const RST: u16 = 1 << 2;
/// The flag that requests immediate delivery.
pub const PSH: u16 = 1 << 3;
/// The flag that the acknowledgment counts.
pub const ACK: u16 = 1 << 4;
/// The flag that the urgent pointer counts.
pub const URG: u16 = 1 << 5;
/// The flag that echoes congestion.
pub const ECE: u16 = 1 << 6;
/// The flag that the congestion window was reduced.
pub const CWR: u16 = 1 << 7;
/// The flag in bit 8, once the ECN nonce.
pub const NS: u16 = 1 << 8;

/// Header fields that rules can match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tcp {
    /// Source port.
    pub src: u16,
    /// Destination port.
    pub dst: u16,
    /// The twelve bits after the data offset.
    pub flags: u16,
}

impl Tcp {
    /// Parses the header at the front of `bytes`, which end where the packet ends.
    ///
    /// # Errors
    /// The header is truncated, or its data offset is below 20 bytes or exceeds the packet.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let header: &[u8; LEN_MIN] = bytes.first_chunk().ok_or(Malformed::TcpTruncated)?;
        let offset = usize::from(header[FLAGS] >> 4) * 4;
        if offset < LEN_MIN || offset > bytes.len() {
            return Err(Malformed::TcpDataOffset);
        }
        Ok(Self {
            src: u16_at(header, SRC),
            dst: u16_at(header, DST),
            flags: u16_at(header, FLAGS) & 0x0fff,
        })
    }

    /// Returns a header with a data offset of `len` bytes, a multiple of four. Sequence numbers and
    /// window are zero; the caller adds options.
    #[must_use]
    pub fn emit(&self, len: u8) -> [u8; LEN_MIN] {
        let mut header = [0; LEN_MIN];
        let flags = u16::from(len / 4) << 12 | self.flags & 0x0fff;
        header[SRC..DST].copy_from_slice(&self.src.to_be_bytes());
        header[DST..SEQUENCE].copy_from_slice(&self.dst.to_be_bytes());
        header[FLAGS..WINDOW].copy_from_slice(&flags.to_be_bytes());
        header
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tcp_header_round_trips() {
        let header = Tcp {
            src: 1000,
            dst: 80,
            flags: NS | SYN | ACK,
        };
        assert_eq!(Tcp::parse(&header.emit(20)), Ok(header));
    }

    #[test]
    fn malformed_tcp_header_is_refused() {
        let header = Tcp::default();
        assert_eq!(
            Tcp::parse(&header.emit(20)[..19]),
            Err(Malformed::TcpTruncated)
        );
        assert_eq!(Tcp::parse(&header.emit(16)), Err(Malformed::TcpDataOffset));
        assert_eq!(Tcp::parse(&header.emit(24)), Err(Malformed::TcpDataOffset));
    }
}
