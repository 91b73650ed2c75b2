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

/// Bytes of a header without options.
pub const LEN_MIN: usize = 20;

/// Where the source port is.
pub const SRC: usize = 0;
/// Where the destination port is.
pub const DST: usize = 2;
/// Where the sequence number is.
pub const SEQUENCE: usize = 4;
/// Where the acknowledgment number is.
pub const ACKNOWLEDGMENT: usize = 8;
/// Where data offset and flags are.
pub const FLAGS: usize = 12;
/// Where the window is.
pub const WINDOW: usize = 14;
/// Where the checksum is.
pub const CHECKSUM: usize = 16;

/// The flag of the last segment.
pub const FIN: u16 = 1 << 0;
/// The flag of a connection's first segment.
pub const SYN: u16 = 1 << 1;
/// The flag that resets.
pub const RST: u16 = 1 << 2;
/// The flag that asks for delivery now.
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

/// What a rule may look at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tcp {
    /// Source port.
    pub src: u16,
    /// Destination port.
    pub dst: u16,
    /// The twelve bits behind the data offset.
    pub flags: u16,
}

impl Tcp {
    /// Reads the header at the front of `bytes`, which reach to the end of the packet.
    ///
    /// # Errors
    /// The header is cut off, or states a length that cannot be.
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

    /// A header of `len` bytes in fours, of which the options are the caller's;
    /// numbers and window are zero.
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
    fn a_header_round_trips() {
        let header = Tcp {
            src: 1000,
            dst: 80,
            flags: NS | SYN | ACK,
        };
        assert_eq!(Tcp::parse(&header.emit(20)), Ok(header));
    }

    #[test]
    fn damage_is_named() {
        let header = Tcp::default();
        assert_eq!(
            Tcp::parse(&header.emit(20)[..19]),
            Err(Malformed::TcpTruncated)
        );
        assert_eq!(Tcp::parse(&header.emit(16)), Err(Malformed::TcpDataOffset));
        assert_eq!(Tcp::parse(&header.emit(24)), Err(Malformed::TcpDataOffset));
    }
}
