//! Tunnel headers: VXLAN (RFC 7348, with the group policy and generic protocol drafts), GENEVE (RFC
//! 8926), GRE (RFC 2784, RFC 2890), ERSPAN, GTP-U (3GPP TS 29.281) and LISP (RFC 6830), with the
//! Ethernet, IP and UDP headers around them.
//!
//! Encoding only: the underlay selects the tunnel and the route. Fragments are neither reassembled
//! nor created.
//!
//! ```
//! use packet::tunnel::{self, OuterHeaders, OuterTransport, TunnelHeader, TunnelProtocol};
//! use packet::{Frame, MacAddr, Pool};
//!
//! let outer = OuterHeaders {
//!     eth_dst: MacAddr([2, 0, 0, 0, 0, 2]),
//!     eth_src: MacAddr([2, 0, 0, 0, 0, 1]),
//!     src: std::net::Ipv4Addr::new(192, 0, 2, 1).into(),
//!     dst: std::net::Ipv4Addr::new(192, 0, 2, 2).into(),
//!     tos: 0,
//!     ttl: 64,
//!     dont_fragment: true,
//!     upper: OuterTransport::Udp { src: 50_000, dst: tunnel::GENEVE_PORT, summed: false },
//! };
//! let mut header = TunnelHeader::new(TunnelProtocol::Geneve);
//! header.key = Some(7);
//!
//! let inner = Frame::from_bytes(&[0; 60]);
//! let mut frame = inner.clone();
//! tunnel::encapsulate(&mut frame, 0, &outer, &header, &mut Pool::new(1)).unwrap();
//! assert_eq!(frame.len(), 14 + 20 + 8 + 8 + 60);
//!
//! let packet = tunnel::parse_outer(frame.bytes()).unwrap();
//! assert_eq!(tunnel::decapsulate(&mut frame, &packet, TunnelProtocol::Geneve), Ok(header));
//! assert_eq!(frame, inner);
//! ```

mod header;
mod outer;

use crate::wire::ethernet;
use crate::{Checksum, Frame, Pool};

pub use header::{
    ERSPAN_SESSION_MAX, ErspanHeader, GTPU_FLAGS, GTPU_USER_PACKET, GroupPolicy, GtpuHeader,
    TunnelHeader, TunnelOption, TunnelPayload, TunnelProtocol, VxlanExtension,
};
pub use outer::{OuterHeaders, OuterTransport, TunnelPacket, parse_outer};

/// The UDP port of VXLAN (RFC 7348, 5).
pub const VXLAN_PORT: u16 = 4789;
/// The UDP port of GENEVE (RFC 8926, 3.3).
pub const GENEVE_PORT: u16 = 6081;
/// The UDP port of GTP-U (3GPP TS 29.281, 4.4.2.1).
pub const GTPU_PORT: u16 = 2152;
/// The UDP port of LISP data packets (RFC 6830, 5.3).
pub const LISP_PORT: u16 = 4341;

/// Largest length of all GENEVE options, in bytes: six bits count words (RFC 8926, 3.4).
pub const OPTIONS_LEN_MAX: usize = 252;

/// Reason why a packet was not encapsulated or decapsulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TunnelError {
    /// A header is truncated or its lengths are inconsistent.
    #[error("truncated tunnel header")]
    Truncated,
    /// The header has an unsupported version or flag.
    #[error("unsupported tunnel header")]
    Unknown,
    /// A checksum around the frame is wrong.
    #[error("wrong checksum of a tunnelled packet")]
    Checksum,
    /// The packet would exceed the IP length field or every buffer.
    #[error("encapsulated frame too long")]
    TooLong,
    /// The tunnel does not carry this kind of payload.
    #[error("payload not supported by the tunnel")]
    Payload,
}

/// Encapsulates `frame`, which must have no outstanding offload work: drops its first `skip` bytes
/// and adds the headers. The result has no outstanding work either.
///
/// # Errors
/// The packet would be too long; the frame is then unchanged or lacks its first `skip` bytes.
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
    shim.finalize(&mut frame.bytes_mut()[at..]);
    outer.finalize(frame.bytes_mut());
    Ok(())
}

/// Decapsulates a packet. The result is a frame or, if the tunnel carries other packets, a packet
/// of the type in the tunnel header, without any header before it. A control message remains
/// whole, with its outer headers.
///
/// # Errors
/// The packet is malformed or belongs to another protocol; the frame is then unchanged.
pub fn decapsulate(
    frame: &mut Frame,
    packet: &TunnelPacket,
    protocol: TunnelProtocol,
) -> Result<TunnelHeader, TunnelError> {
    // A checksum that a device has verified, or is still to compute, is not verified here.
    let is_trusted = match frame.offload.checksum {
        Checksum::Complete => false,
        Checksum::Verified | Checksum::Partial { .. } => true,
    };
    let is_segmented = frame.offload.segmentation.is_some();
    let bytes = frame
        .bytes()
        .get(..packet.end)
        .ok_or(TunnelError::Truncated)?;
    if !is_trusted && !is_segmented {
        packet.verify_checksums(bytes, protocol)?;
    }
    let rest = &bytes[packet.at..];
    let (shim, len) = TunnelHeader::parse(protocol, rest, is_trusted || is_segmented)?;
    if shim.is_control_message() {
        return Ok(shim);
    }
    let at = packet.at + len;
    if shim.payload == TunnelPayload::Ethernet && packet.end - at < ethernet::LEN {
        return Err(TunnelError::Truncated);
    }
    // Bytes behind the IP packet stay, as in Open vSwitch.
    if let Checksum::Partial { start, .. } = frame.offload.checksum
        && usize::from(start) < at
    {
        // The partial checksum was that of the outer packet.
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
