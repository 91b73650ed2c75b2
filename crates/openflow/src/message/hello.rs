//! Hello: the versions that the sender supports (OF 1.3.5, 7.5.1). The header has the highest
//! version; from 1.3.1 on a bitmap can list all of them.
//!
//! The decoder refuses no hello: OpenFlow 1.0 requires that any body be accepted and ignored
//! (OF 1.0.1, 5.5.1). Therefore it stops at the first malformed element.

use base::Xid;

use crate::codec::{EncodeError, Malformed, Reader, Writer};
use crate::dialect::Dialect;
use crate::version::{Version, VersionSet};

/// The message's type number, the same in all versions.
pub(crate) const NUMBER: u8 = 0;

/// `OFPHET_VERSIONBITMAP`.
const VERSION_BITMAP: u16 = 1;

/// The versions that the sender of a hello supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The number of the highest version.
    pub highest: u8,
    /// The bitmap of versions, if there is one; otherwise all versions up to the highest.
    pub versions: Option<VersionSet>,
}

impl Hello {
    /// The hello of a sender that supports these versions.
    #[must_use]
    pub fn new(versions: VersionSet) -> Self {
        Self {
            highest: versions.newest().map_or(0, Version::number),
            versions: Some(versions),
        }
    }

    /// The versions that the sender supports, as far as the bitmap has a bit for them.
    #[must_use]
    pub const fn supported(&self) -> VersionSet {
        match self.versions {
            Some(versions) => versions,
            None if self.highest >= 31 => VersionSet(!1),
            None => VersionSet((1 << (self.highest + 1)) - 2),
        }
    }

    /// Decodes the body of a hello with this version in its header.
    pub(crate) fn decode(highest: u8, r: &mut Reader<'_>) -> Self {
        let mut versions = None;
        // The bytes from the first malformed element on are ignored.
        while let Ok(found) = element(r) {
            versions = versions.or(found);
        }
        r.rest();
        Self { highest, versions }
    }

    /// Appends the message including the header, which has the highest version.
    pub(crate) fn encode(&self, xid: Xid, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        // The version changes only the first byte of the header.
        let mut w = Writer::new(out, Dialect::new(Version::V13));
        w.nested(2, |w| {
            w.u8(self.highest);
            w.u8(NUMBER);
            w.u16(0);
            w.u32(xid.0);
            if let Some(VersionSet(bits)) = self.versions {
                w.u16(VERSION_BITMAP);
                w.u16(8);
                w.u32(bits);
            }
            Ok(())
        })
        .map(drop)
    }
}

/// Decodes the next element: a bitmap, or none for an unknown element.
fn element(r: &mut Reader<'_>) -> Result<Option<VersionSet>, Malformed> {
    let mut head = r.clone();
    let (kind, length) = (head.u16()?, usize::from(head.u16()?));
    let mut element = r.sub(length)?;
    element.skip(4)?;
    r.skip((length.next_multiple_of(8) - length).min(r.len()))?;
    if kind != VERSION_BITMAP {
        return Ok(None);
    }
    // Further words have bits of versions that do not exist.
    element.u32().map(|bits| Some(VersionSet(bits)))
}

#[cfg(test)]
mod tests;
