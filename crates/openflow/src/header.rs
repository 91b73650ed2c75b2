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
