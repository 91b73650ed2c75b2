//! GTP-U header (3GPP TS 29.281, 5): IP packets of mobile users, identified by the endpoint id
//! (TEID).

use super::super::TunnelError;
use super::{TunnelHeader, TunnelPayload, TunnelProtocol};
use crate::wire::ethernet::EtherType;

/// Length of the mandatory part.
const LEN: usize = 8;
/// Length of the optional part: sequence number, N-PDU number, type of the next extension header.
const OPTIONAL_LEN: usize = 4;

/// Bits of the version and of the protocol type, which are 1 and GTP.
const VERSION_MASK: u8 = 0xf0;
const VERSION: u8 = 0x30;
/// Flag: an extension header follows.
const EXTENSION: u8 = 0x04;
/// Flag: the sequence number is valid.
const SEQUENCE: u8 = 0x02;
/// Flags with any of which the optional part is present.
const OPTIONAL: u8 = 0x07;

/// Flags of version 1 without optional parts.
pub const GTPU_FLAGS: u8 = VERSION;
/// Message type of packets of users (`G-PDU`).
pub const GTPU_USER_PACKET: u8 = 255;

/// Fields of a GTP-U header beside the endpoint id, which is the key of the tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GtpuHeader {
    /// The first octet: version, protocol type and flags.
    pub flags: u8,
    /// The message type.
    pub message: u8,
}

impl Default for GtpuHeader {
    fn default() -> Self {
        Self {
            flags: GTPU_FLAGS,
            message: GTPU_USER_PACKET,
        }
    }
}

impl TunnelHeader {
    pub(super) fn emit_gtpu(&self, into: &mut Vec<u8>) {
        let GtpuHeader { flags, message } = self.gtpu.unwrap_or_default();
        let has_number = if self.sequence.is_some() { SEQUENCE } else { 0 };
        let flags = flags & !VERSION_MASK | VERSION | has_number;
        into.extend([flags, message, 0, 0]);
        into.extend(self.key.unwrap_or(0).to_be_bytes());
        if flags & OPTIONAL != 0 {
            let number = u16::try_from(self.sequence.unwrap_or(0) & 0xffff).unwrap_or(0);
            into.extend(number.to_be_bytes());
            // No N-PDU number, and no extension header.
            into.extend([0; 2]);
        }
    }
}

/// Writes the length into `bytes`, which begin with the header and end where the packet ends.
pub(super) fn finalize_gtpu(bytes: &mut [u8]) {
    let len = u16::try_from(bytes.len().saturating_sub(LEN)).unwrap_or(u16::MAX);
    bytes[2..4].copy_from_slice(&len.to_be_bytes());
}

/// Parses the header. A message that is no packet of a user counts as an Ethernet frame: it is
/// delivered whole.
pub(super) fn parse_gtpu(bytes: &[u8]) -> Result<(TunnelHeader, usize), TunnelError> {
    let [flags, message, l0, l1, t0, t1, t2, t3] =
        *bytes.first_chunk::<LEN>().ok_or(TunnelError::Truncated)?;
    if flags & VERSION_MASK != VERSION {
        return Err(TunnelError::Unknown);
    }
    let end = LEN + usize::from(u16::from_be_bytes([l0, l1]));
    let bytes = bytes.get(..end).ok_or(TunnelError::Truncated)?;
    let mut shim = TunnelHeader::new(TunnelProtocol::Gtpu);
    shim.key = Some(u32::from_be_bytes([t0, t1, t2, t3]));
    shim.gtpu = Some(GtpuHeader { flags, message });
    let mut at = LEN;
    if flags & OPTIONAL != 0 {
        let [s0, s1, _, next] = *bytes[LEN..]
            .first_chunk::<OPTIONAL_LEN>()
            .ok_or(TunnelError::Truncated)?;
        if flags & SEQUENCE != 0 {
            shim.sequence = Some(u16::from_be_bytes([s0, s1]).into());
        }
        at += OPTIONAL_LEN;
        if flags & EXTENSION != 0 {
            at = skip_extensions(bytes, at, next)?;
        }
    }
    shim.payload = match message {
        GTPU_USER_PACKET => ip_payload(&bytes[at..])?,
        _ => TunnelPayload::Ethernet,
    };
    Ok((shim, at))
}

/// Returns the offset behind the extension headers. The first octet of each is its length in words,
/// the last is the type of the next one, or zero.
fn skip_extensions(bytes: &[u8], mut at: usize, mut next: u8) -> Result<usize, TunnelError> {
    while next != 0 {
        let words = *bytes.get(at).ok_or(TunnelError::Truncated)?;
        if words == 0 {
            return Err(TunnelError::Unknown);
        }
        at += 4 * usize::from(words);
        next = *bytes.get(at - 1).ok_or(TunnelError::Truncated)?;
    }
    Ok(at)
}

/// Returns the type of an IP packet by its version.
pub(super) fn ip_payload(bytes: &[u8]) -> Result<TunnelPayload, TunnelError> {
    match bytes.first().map(|first| first >> 4) {
        Some(4) => Ok(TunnelPayload::Packet(EtherType::IPV4)),
        Some(6) => Ok(TunnelPayload::Packet(EtherType::IPV6)),
        Some(_) => Err(TunnelError::Payload),
        None => Err(TunnelError::Truncated),
    }
}
