//! Changing a frame in place, with every checksum right afterwards: right if it
//! was right, and as wrong as before if it was not, so that damage on the way is
//! never hidden from the receiver.
//!
//! A change to a header that the frame does not have, or that was not read,
//! does nothing. What a frame still owes (an unfinished checksum, segments) it
//! owes afterwards too: no change finishes anything.

mod link;
mod mpls;
mod network;
mod transport;
mod ttl;
mod upkeep;

#[cfg(test)]
mod tests;

use crate::{Depth, Frame, Headers, Malformed, NoRoom};

pub use ttl::TtlExpired;

/// A frame together with what was read of it. The two never disagree.
#[derive(Debug)]
pub struct Packet<'f> {
    frame: &'f mut Frame,
    headers: Headers,
}

/// A frame's structure could not be changed, or shows damage after the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RewriteError {
    /// There is no room for another tag; the frame is unchanged.
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
    /// A header that the change laid open is damaged. It is judged as it would
    /// have been on arrival.
    #[error("malformed: {0}")]
    Malformed(#[from] Malformed),
}

impl<'f> Packet<'f> {
    /// Reads `frame` to `depth`.
    ///
    /// # Errors
    /// As for [`Headers::parse`].
    #[inline]
    pub fn read(frame: &'f mut Frame, depth: Depth) -> Result<Self, Malformed> {
        let headers = Headers::parse(frame, depth)?;
        Ok(Self { frame, headers })
    }

    /// The frame as it is now.
    #[must_use]
    pub fn frame(&self) -> &Frame {
        self.frame
    }

    /// What was read of it, as it is now.
    #[must_use]
    pub fn headers(&self) -> &Headers {
        &self.headers
    }

    /// Reads the frame anew, after a change of its structure.
    fn reread(&mut self) -> Result<(), Malformed> {
        self.headers = Headers::parse(self.frame, self.headers.depth)?;
        Ok(())
    }
}
