//! The network service header (RFC 8300, 2.2 to 2.5): the service path of a packet, its position on
//! the path, and context for the service functions.
//!
//! ```text
//!  0   2 3 4      10     16  20       24     32                 56     64
//! +---+-+-+------+------+---+--------+------+------------------+------+---------
//! |ver|O|U| ttl  |length| U |md type | next |  service path    | index| context
//! +---+-+-+------+------+---+--------+------+------------------+------+---------
//!                 in words of four bytes           type 1: four words; type 2: options
//! ```

use super::u16_at;
use crate::Malformed;

/// Length of the base and service path headers, in bytes.
pub const BASE_LEN: usize = 8;
/// Length of the header with four words of context, in bytes.
pub const LEN_MD1: usize = 24;
/// Length of the longest header, in bytes.
pub const LEN_MAX: usize = 63 * 4;
/// Offset of the service path; the index is its last byte.
pub const PATH: usize = 4;
/// Offset of the context.
pub const CONTEXT: usize = BASE_LEN;

/// The type of metadata that is four words (RFC 8300, 2.2).
pub const MD_TYPE1: u8 = 1;
/// The type of metadata that is options, or nothing.
pub const MD_TYPE2: u8 = 2;

/// Next protocol numbers (RFC 8300, 2.2).
pub mod next {
    /// An IPv4 packet.
    pub const IPV4: u8 = 1;
    /// An IPv6 packet.
    pub const IPV6: u8 = 2;
    /// An Ethernet frame.
    pub const ETHERNET: u8 = 3;
    /// Another such header.
    pub const NSH: u8 = 4;
}

/// Time to live of a new header (RFC 8300, 2.2).
pub const TTL_DEFAULT: u8 = 63;
/// The index that a new header has (RFC 8300, 2.3).
pub const INDEX_DEFAULT: u8 = 255;

/// Header fields that rules can match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nsh {
    /// Two bits: O (operations and maintenance), and one without a meaning yet.
    pub flags: u8,
    /// Time to live, six bits.
    pub ttl: u8,
    /// Length of the header, in bytes.
    pub len: u8,
    /// The type of the metadata.
    pub md_type: u8,
    /// Next protocol number.
    pub next: u8,
    /// The service path, twenty-four bits.
    pub path: u32,
    /// Service index: position on the path.
    pub index: u8,
    /// The four words of context; zero if the metadata have another type.
    pub context: [u32; 4],
}

impl Nsh {
    /// Parses the header at the front of `bytes`, which end where the frame ends.
    ///
    /// # Errors
    /// The header is truncated, has another version, or has a length that its metadata type does
    /// not allow.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let base: &[u8; BASE_LEN] = bytes.first_chunk().ok_or(Malformed::NshTruncated)?;
        let [_, _, md_type, next, a, b, c, index] = *base;
        let word = u16_at(base, 0);
        let words = base[1] & 0x3f;
        let (len, md_type) = (usize::from(words) * 4, md_type & 0x0f);
        if bytes.len() < len {
            return Err(Malformed::NshTruncated);
        }
        let fits = match md_type {
            MD_TYPE1 => len == LEN_MD1,
            _ => len >= BASE_LEN,
        };
        if word >> 14 != 0 || !fits {
            return Err(Malformed::NshHeader);
        }
        let context = match md_type {
            MD_TYPE1 => std::array::from_fn(|index| word_at(bytes, CONTEXT + index * 4)),
            _ => [0; 4],
        };
        let [high, low] = word.to_be_bytes();
        Ok(Self {
            flags: high >> 4 & 3,
            ttl: (high & 0x0f) << 2 | low >> 6,
            len: words * 4,
            md_type,
            next,
            path: u32::from_be_bytes([0, a, b, c]),
            index,
            context,
        })
    }

    /// Encodes the header without its context. Bits that exceed their field are dropped.
    #[must_use]
    pub const fn emit(&self) -> [u8; BASE_LEN] {
        let [_, a, b, c] = self.path.to_be_bytes();
        let high = (self.flags & 3) << 4 | (self.ttl & 0x3f) >> 2;
        let low = (self.ttl & 3) << 6 | (self.len / 4) & 0x3f;
        [
            high,
            low,
            self.md_type & 0x0f,
            self.next,
            a,
            b,
            c,
            self.index,
        ]
    }
}

/// Returns the four bytes at `at`, which the caller has checked to exist.
fn word_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Nsh {
        Nsh {
            flags: 2,
            ttl: 63,
            len: 24,
            md_type: MD_TYPE1,
            next: next::ETHERNET,
            path: 0x0012_3456,
            index: 254,
            context: [1, 2, 3, 0xffff_ffff],
        }
    }

    fn bytes(header: &Nsh) -> Vec<u8> {
        let context = header.context.iter().flat_map(|word| word.to_be_bytes());
        header.emit().into_iter().chain(context).collect()
    }

    #[test]
    fn nsh_header_round_trips() {
        let bytes = bytes(&header());
        assert_eq!(bytes[..8], [0x2f, 0xc6, 1, 3, 0x12, 0x34, 0x56, 254]);
        assert_eq!(Nsh::parse(&bytes), Ok(header()));
    }

    #[test]
    fn nsh_options_are_not_context() {
        let header = Nsh {
            md_type: MD_TYPE2,
            len: 12,
            context: [0; 4],
            ..header()
        };
        assert_eq!(
            Nsh::parse(&[&header.emit()[..], &[7; 4]].concat()),
            Ok(header)
        );
    }

    #[test]
    fn malformed_nsh_header_is_refused() {
        let good = bytes(&header());
        for len in 0..good.len() {
            assert_eq!(Nsh::parse(&good[..len]), Err(Malformed::NshTruncated));
        }
        for (at, bits) in [(0, 0x40), (1, 0x01), (1, 0x04)] {
            let mut bad = good.clone();
            bad.extend([0; 16]);
            bad[at] ^= bits;
            assert_eq!(Nsh::parse(&bad), Err(Malformed::NshHeader), "{at}");
        }
    }
}
