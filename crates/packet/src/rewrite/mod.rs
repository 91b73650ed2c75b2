//! Changing a frame in place, with every checksum right afterwards: right if it
//! was right, and as wrong as before if it was not, so that damage on the way is
//! never hidden from the receiver.
//!
//! A change to a header that the frame does not have, or that was not read,
//! does nothing. What a frame still owes (an unfinished checksum, segments) it
//! owes afterwards too: no change finishes anything.

mod checksum_update;
mod encap;
mod link;
mod mpls;
mod network;
mod nsh;
mod pbb;
mod transport;
mod ttl;

#[cfg(test)]
mod tests;

use crate::{Depth, Frame, Headers, Malformed, NoBufferSpace};

pub use encap::{EncapPayload, UnsupportedDecap};
pub use ttl::TtlExpired;

/// The least length of a frame, its check sequence not counted (IEEE 802.3, 3.2.8).
const LEN_MIN: usize = 60;

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
    NoBufferSpace(#[from] NoBufferSpace),
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
    pub fn parse(frame: &'f mut Frame, depth: Depth) -> Result<Self, Malformed> {
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

    /// Takes `len` bytes out from `at` on. A frame that was as long as Ethernet wants
    /// it and would be shorter is padded: the tag's bytes were part of its least
    /// length, and without them it is not (IEEE 802.1Q, annex G.2.3). One that was a
    /// runt before stays one.
    fn remove_bytes(&mut self, at: usize, len: u16) {
        let (count, before) = (usize::from(len), self.frame.len());
        if before < LEN_MIN || before - count >= LEN_MIN {
            self.frame.remove(at, len);
            return;
        }
        let bytes = self.frame.bytes_mut();
        bytes.copy_within(at + count.., at);
        bytes[before - count..].fill(0);
        self.frame.truncate(LEN_MIN);
        self.frame.offload.shift_positions(at + count, len, true);
    }

    /// Reads the frame anew, after a field was set that says what follows. What the
    /// controller has made of it is not judged: a header that is now none is not there.
    fn reparse_leniently(&mut self) -> Result<(), Malformed> {
        let depth = self.headers.depth;
        let read = |wanted: &Depth| Headers::parse(self.frame, *wanted);
        let mut depths = Depth::ALL.iter().rev().filter(|wanted| **wanted <= depth);
        self.headers = match depths.find_map(|wanted| read(wanted).ok()) {
            Some(headers) => Headers { depth, ..headers },
            None => Headers::parse(self.frame, depth)?,
        };
        Ok(())
    }

    /// Reads the frame anew, after a change of its structure.
    fn reparse(&mut self) -> Result<(), Malformed> {
        self.headers = Headers::parse(self.frame, self.headers.depth)?;
        Ok(())
    }
}
