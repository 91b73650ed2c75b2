//! Header rewriting in place.
//!
//! [`Packet`] holds a frame with its parsed headers and keeps both consistent: every method changes
//! the bytes, the parsed value, and the checksums that cover the bytes. Checksums are updated
//! incrementally (RFC 1624; see `checksum_update`), never recomputed: a correct one stays correct
//! and a wrong one stays wrong by the same amount, so that corruption on the path remains visible
//! to the receiver.
//!
//! - A setter for a header that is absent or was not parsed has no effect.
//! - Offload metadata stay valid: a partial checksum stays partial, a large frame stays large.
//! - Inserting and removing headers moves the bytes in front of them, not the payload, and parses the frame again.
//!
//! ```
//! use packet::build::Stack;
//! use packet::{Depth, Packet};
//!
//! let stack: Stack = "eth / ipv4(ttl=9) / tcp(dst=80)".parse().unwrap();
//! let mut frame = stack.build();
//! let mut packet = Packet::parse(&mut frame, Depth::Transport).unwrap();
//! packet.push_vlan(0x8100).unwrap();
//! packet.set_vlan_vid(7);
//! packet.set_ipv4_dst([192, 0, 2, 1].into());
//! packet.dec_ip_ttl().unwrap();
//!
//! let expected: Stack = "eth / vlan(vid=7) / ipv4(dst=192.0.2.1,ttl=8) / tcp(dst=80)".parse().unwrap();
//! assert_eq!(frame.bytes()[..58], expected.build().bytes()[..58]);
//! ```

mod checksum_update;
mod encap;
mod link;
mod mpls;
mod network;
mod nsh;
mod pbb;
mod plain_ends;
mod plain_hop;
mod translate;
mod transport;
mod ttl;

#[cfg(test)]
mod tests;

use crate::{Depth, Frame, Headers, Malformed, NoBufferSpace};

pub use encap::{EncapPayload, UnsupportedDecap};
pub use plain_ends::{PlainEnds, set_plain_ends};
pub use plain_hop::{PlainHop, set_plain_hop};
pub use translate::PacketEnds;
pub use ttl::TtlExpired;

/// Least length of a frame without its check sequence, in bytes (IEEE 802.3, 3.2.8).
const LEN_MIN: usize = 60;

/// Frame with its parsed headers. The two are always consistent.
#[derive(Debug)]
pub struct Packet<'f> {
    frame: &'f mut Frame,
    headers: Headers,
    /// The first malformed header, which the headers lack, with all after it.
    malformed: Option<Malformed>,
}

/// Error: the frame's structure could not be changed, or a header is malformed after the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RewriteError {
    /// The headroom is exhausted; the frame is unchanged.
    #[error(transparent)]
    NoBufferSpace(#[from] NoBufferSpace),
    /// A header that the change exposed is malformed, by the rules of [`Headers::parse`].
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
        Ok(Self {
            frame,
            headers,
            malformed: None,
        })
    }

    /// Reads `frame` to `depth`, but not beyond a malformed header: for a copy of a packet of which
    /// [`Self::malformed`] returns one.
    ///
    /// # Errors
    /// The link layer is malformed.
    pub fn parse_leniently(frame: &'f mut Frame, depth: Depth) -> Result<Self, Malformed> {
        let headers = Headers::parse(frame, Depth::Link)?;
        let mut packet = Self {
            frame,
            headers: Headers { depth, ..headers },
            malformed: None,
        };
        packet.reparse_up_to_malformed()?;
        Ok(packet)
    }

    /// Returns the malformed header that the removal of another has exposed. The headers lack it,
    /// and all after it: actions go on without them, and lookups are the caller's decision.
    #[must_use]
    pub const fn malformed(&self) -> Option<Malformed> {
        self.malformed
    }

    /// The frame as it is now.
    #[must_use]
    pub fn frame(&self) -> &Frame {
        self.frame
    }

    /// Headers of the frame in its current state.
    #[must_use]
    pub fn headers(&self) -> &Headers {
        &self.headers
    }

    /// Removes `len` bytes from `at` on. A frame that reached the least length of Ethernet and
    /// would fall below it is padded: the tag was part of its least length (IEEE 802.1Q, annex
    /// G.2.3). A shorter frame is not padded.
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

    /// Parses the frame again after a change of a field that selects the next header. A controller
    /// may select any: a next header that is malformed counts as absent.
    fn reparse_leniently(&mut self) -> Result<(), Malformed> {
        let depth = self.headers.depth;
        let read = |depth: &Depth| Headers::parse(self.frame, *depth);
        let mut depths = Depth::ALL
            .iter()
            .rev()
            .filter(|candidate| **candidate <= depth);
        self.headers = match depths.find_map(|depth| read(depth).ok()) {
            Some(headers) => Headers { depth, ..headers },
            None => Headers::parse(self.frame, depth)?,
        };
        Ok(())
    }

    /// Parses the frame again after the removal of a header, up to a malformed one.
    fn reparse_up_to_malformed(&mut self) -> Result<(), Malformed> {
        let strict = Headers::parse(self.frame, self.headers.depth);
        self.malformed = strict.as_ref().err().copied();
        match strict {
            Ok(headers) => self.headers = headers,
            Err(_) => self.reparse_leniently()?,
        }
        Ok(())
    }

    /// Parses the frame again after a change of its structure.
    fn reparse(&mut self) -> Result<(), Malformed> {
        if self.malformed.is_some() {
            return self.reparse_up_to_malformed();
        }
        self.headers = Headers::parse(self.frame, self.headers.depth)?;
        Ok(())
    }
}
