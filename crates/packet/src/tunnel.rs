//! Frames within packets: the headers of VXLAN (RFC 7348, with its group policy and generic
//! protocol drafts), GENEVE (RFC 8926) and GRE (RFC 2784, RFC 2890), and the Ethernet, IP and
//! UDP headers around those.
//!
//! Bytes only: which tunnel a packet is of, and by which way it goes, is not known here.
//! Fragments are not put together, and none are made.

mod header;
mod outer;

use crate::wire::ethernet;
use crate::{Checksum, Frame, Pool};

pub use header::{
    GroupPolicy, TunnelHeader, TunnelOption, TunnelPayload, TunnelProtocol, VxlanExtension,
};
pub use outer::{OuterHeaders, OuterTransport, TunnelPacket, parse_outer};

/// The UDP port of VXLAN (RFC 7348, 5).
pub const VXLAN_PORT: u16 = 4789;
/// The UDP port of VXLAN with the generic protocol extension.
pub const VXLAN_GPE_PORT: u16 = 4790;
/// The UDP port of GENEVE (RFC 8926, 3.3).
pub const GENEVE_PORT: u16 = 6081;

/// Bytes of all options of GENEVE, at most: what six bits count in words (RFC 8926, 3.4).
pub const OPTIONS_LEN_MAX: usize = 252;

/// Why a packet was not taken out of a tunnel, or not put into one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TunnelError {
    /// A header is cut off, or its lengths cannot be.
    #[error("a tunnel's header is cut off")]
    Truncated,
    /// It is of a version, or has a flag, that nobody here knows.
    #[error("a tunnel's header is of an unknown kind")]
    Unknown,
    /// A checksum around the frame is wrong.
    #[error("a checksum around a tunnelled frame is wrong")]
    Checksum,
    /// The packet would be longer than IP can say, or no buffer has room for it.
    #[error("a tunnelled frame would be too long")]
    TooLong,
    /// What is within, or is to be, has no place in such a tunnel.
    #[error("a tunnel does not carry such a packet")]
    Payload,
}

/// Puts `frame`, which must owe nothing, into a tunnel: what is before `skip` is left out, and
/// headers are put in its place. It owes nothing afterwards, either.
///
/// # Errors
/// It would be too long; the frame is then as it was, or without the bytes to be left out.
pub fn encapsulate(
    frame: &mut Frame,
    skip: u16,
    outer: &OuterHeaders,
    shim: &TunnelHeader,
    pool: &mut Pool,
) -> Result<(), TunnelError> {
    if usize::from(skip) > frame.len() {
        return Err(TunnelError::Payload);
    }
    frame.remove(0, skip);
    let mut headers = Vec::with_capacity(ethernet::LEN + 128);
    let at = outer.emit(&mut headers);
    shim.emit(&mut headers);
    let total = headers.len() + frame.len();
    if total - ethernet::LEN > usize::from(u16::MAX) {
        return Err(TunnelError::TooLong);
    }
    let count = u16::try_from(headers.len()).map_err(|_| TunnelError::TooLong)?;
    if frame.insert_zeros(0, count).is_ok() {
        frame.bytes_mut()[..headers.len()].copy_from_slice(&headers);
    } else {
        let mut longer = pool.take().ok_or(TunnelError::TooLong)?;
        if longer.set_len(total).is_err() {
            pool.put(longer);
            return Err(TunnelError::TooLong);
        }
        let bytes = longer.bytes_mut();
        bytes[..headers.len()].copy_from_slice(&headers);
        bytes[headers.len()..].copy_from_slice(frame.bytes());
        pool.put(std::mem::replace(frame, longer));
    }
    frame.offload.checksum = Checksum::Complete;
    shim.seal(&mut frame.bytes_mut()[at..]);
    outer.seal(frame.bytes_mut());
    Ok(())
}

/// Takes what is within a packet out of it: a frame, or, if the tunnel carries others, a
/// packet of the type that the header tells, without any header before it.
///
/// # Errors
/// The packet is damaged, or not of this protocol; the frame is then as it was.
pub fn decapsulate(
    frame: &mut Frame,
    found: &TunnelPacket,
    protocol: TunnelProtocol,
) -> Result<TunnelHeader, TunnelError> {
    // What a device has summed, or is still to sum, is no more than what is to be believed.
    let is_believed = match frame.offload.checksum {
        Checksum::Complete => false,
        Checksum::Verified | Checksum::Partial { .. } => true,
    };
    let is_whole = frame.offload.segmentation.is_some();
    let bytes = frame
        .bytes()
        .get(..found.end)
        .ok_or(TunnelError::Truncated)?;
    if !is_believed && !is_whole {
        found.verify_checksums(bytes)?;
    }
    let rest = &bytes[found.at..];
    let (shim, len) = TunnelHeader::parse(protocol, rest, is_believed || is_whole)?;
    let at = found.at + len;
    if shim.payload == TunnelPayload::Ethernet && found.end - at < ethernet::LEN {
        return Err(TunnelError::Truncated);
    }
    frame.truncate(found.end);
    if let Checksum::Partial { start, .. } = frame.offload.checksum
        && usize::from(start) < at
    {
        // It was that of the outer packet.
        frame.offload.checksum = Checksum::Complete;
    }
    let count = u16::try_from(at).map_err(|_| TunnelError::Truncated)?;
    frame.remove(0, count);
    if frame.offload.checksum == Checksum::Verified {
        frame.offload.checksum = Checksum::Complete;
    }
    Ok(shim)
}

#[cfg(test)]
mod tests;
