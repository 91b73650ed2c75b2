//! The message header: eight bytes, the same in all versions (OF 1.3.5, 7.1).

use base::Xid;

use crate::codec::{Malformed, Reader};

/// `ofp_header`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) version: u8,
    pub(crate) kind: u8,
    /// The length of the message in bytes, including this header.
    pub(crate) length: u16,
    pub(crate) xid: Xid,
}

impl Header {
    /// The length of a header in bytes.
    pub(crate) const LENGTH: usize = 8;

    /// Decodes a header.
    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let [version, kind] = r.take()?;
        Ok(Self {
            version,
            kind,
            length: r.u16()?,
            xid: Xid(r.u32()?),
        })
    }

    /// Decodes the header at the start of `bytes`, if it is complete.
    pub(crate) fn peek(bytes: &[u8]) -> Option<Self> {
        let [version, kind, a, b, xid @ ..] = bytes.first_chunk::<{ Self::LENGTH }>()?;
        Some(Self {
            version: *version,
            kind: *kind,
            length: u16::from_be_bytes([*a, *b]),
            xid: Xid(u32::from_be_bytes(*xid)),
        })
    }
}

/// The length field of a message is shorter than its header, so the start of the next message is
/// unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message length of {0} bytes is shorter than the header")]
pub struct BadMessageLength(pub u16);

/// The first message of a stream, and the bytes after it.
pub type SplitStream<'a> = (&'a [u8], &'a [u8]);

/// Splits the first message from the bytes of a stream; `None` if it is incomplete.
///
/// # Errors
/// The length field is invalid.
///
/// ```
/// use openflow::split_message;
///
/// let hello_and_half = [4, 0, 0, 8, 0, 0, 0, 1, 4, 2, 0, 8];
/// let (hello, half) = split_message(&hello_and_half)?.unwrap();
/// assert_eq!((hello.len(), split_message(half)?), (8, None));
/// # Ok::<(), openflow::BadMessageLength>(())
/// ```
pub fn split_message(stream: &[u8]) -> Result<Option<SplitStream<'_>>, BadMessageLength> {
    let Some([_, _, high, low]) = stream.first_chunk() else {
        return Ok(None);
    };
    let length = u16::from_be_bytes([*high, *low]);
    match usize::from(length) {
        0..Header::LENGTH => Err(BadMessageLength(length)),
        length => Ok(stream.split_at_checked(length)),
    }
}
