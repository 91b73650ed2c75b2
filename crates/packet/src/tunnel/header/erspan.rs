//! ERSPAN header of types II and III (draft-foschiano-erspan-03, 4): mirrored frames within GRE.
//! Open vSwitch calls the types versions 1 and 2.

use super::super::TunnelError;
use super::{TunnelHeader, TunnelPayload, TunnelProtocol, gre};
use crate::wire::u16_at;

/// GRE protocol type of version 1 (type II).
pub(super) const TYPE_V1: u16 = 0x88be;
/// GRE protocol type of version 2 (type III).
pub(super) const TYPE_V2: u16 = 0x22eb;

/// Length of the GRE header: it always has a sequence number.
const GRE_LEN: usize = 8;
/// Length of the part that both versions have.
const BASE_LEN: usize = 4;
/// Length of the optional platform-specific subheader of version 2.
const SUBHEADER_LEN: usize = 8;

/// Bits of the session id.
const SESSION_MASK: u16 = 0x03ff;
/// Bits of the index.
const INDEX_MASK: u32 = 0x000f_ffff;
/// Frame type of version 2: zero for Ethernet frames.
const FRAME_TYPE_MASK: u16 = 0x7c00;
/// Flag of version 2: a subheader follows.
const SUBHEADER: u16 = 0x0001;

/// Largest session id.
pub const ERSPAN_SESSION_MAX: u32 = SESSION_MASK as u32;

/// Fields of an ERSPAN header beside the session id, which is the key of the tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErspanHeader {
    /// Version 1.
    V1 {
        /// Port that is mirrored, twenty bits.
        index: u32,
    },
    /// Version 2.
    V2 {
        /// Zero for ingress, one for egress.
        direction: u8,
        /// Hardware id of the mirroring device, six bits.
        hardware: u8,
        /// Time of the copy, in units of 100 microseconds.
        timestamp: u32,
    },
}

impl TunnelHeader {
    pub(super) fn emit_erspan(&self, into: &mut Vec<u8>) {
        let header = self.erspan.unwrap_or(ErspanHeader::V1 { index: 0 });
        let (version, kind) = match header {
            ErspanHeader::V1 { .. } => (1_u16, TYPE_V1),
            ErspanHeader::V2 { .. } => (2, TYPE_V2),
        };
        into.extend(gre::SEQUENCE.to_be_bytes());
        into.extend(kind.to_be_bytes());
        into.extend(self.sequence.unwrap_or(0).to_be_bytes());
        let session = u16::try_from(self.key.unwrap_or(0) & ERSPAN_SESSION_MAX).unwrap_or(0);
        into.extend((version << 12).to_be_bytes());
        into.extend(session.to_be_bytes());
        match header {
            ErspanHeader::V1 { index } => into.extend((index & INDEX_MASK).to_be_bytes()),
            ErspanHeader::V2 {
                direction,
                hardware,
                timestamp,
            } => {
                into.extend(timestamp.to_be_bytes());
                // No security group.
                into.extend([0; 2]);
                let word = u16::from(hardware & 0x3f) << 4 | u16::from(direction & 1) << 3;
                into.extend(word.to_be_bytes());
            }
        }
    }
}

/// Parses the GRE header and the ERSPAN header behind it.
pub(super) fn parse_erspan(bytes: &[u8]) -> Result<(TunnelHeader, usize), TunnelError> {
    let head = bytes
        .first_chunk::<GRE_LEN>()
        .ok_or(TunnelError::Truncated)?;
    // Type I has neither a sequence number nor an ERSPAN header.
    if u16_at(head, 0) != gre::SEQUENCE {
        return Err(TunnelError::Unknown);
    }
    let (_, rest) = bytes.split_at(GRE_LEN);
    let base = rest
        .first_chunk::<BASE_LEN>()
        .ok_or(TunnelError::Truncated)?;
    let mut shim = TunnelHeader::new(TunnelProtocol::Erspan);
    shim.payload = TunnelPayload::Ethernet;
    shim.key = Some(u32::from(u16_at(base, 2) & SESSION_MASK));
    shim.sequence = Some(u32::from_be_bytes([head[4], head[5], head[6], head[7]]));
    let (header, len) = match (u16_at(head, 2), base[0] >> 4) {
        (TYPE_V1, 1) => parse_v1(&rest[BASE_LEN..])?,
        (TYPE_V2, 2) => parse_v2(&rest[BASE_LEN..])?,
        _ => return Err(TunnelError::Unknown),
    };
    shim.erspan = Some(header);
    Ok((shim, GRE_LEN + BASE_LEN + len))
}

fn parse_v1(rest: &[u8]) -> Result<(ErspanHeader, usize), TunnelError> {
    let word = rest.first_chunk::<4>().ok_or(TunnelError::Truncated)?;
    let index = u32::from_be_bytes(*word) & INDEX_MASK;
    Ok((ErspanHeader::V1 { index }, word.len()))
}

fn parse_v2(rest: &[u8]) -> Result<(ErspanHeader, usize), TunnelError> {
    let [t0, t1, t2, t3, _, _, w0, w1] = *rest.first_chunk::<8>().ok_or(TunnelError::Truncated)?;
    let word = u16::from_be_bytes([w0, w1]);
    if word & FRAME_TYPE_MASK != 0 {
        return Err(TunnelError::Payload);
    }
    let len = match word & SUBHEADER {
        0 => 8,
        _ => 8 + SUBHEADER_LEN,
    };
    if rest.len() < len {
        return Err(TunnelError::Truncated);
    }
    let header = ErspanHeader::V2 {
        direction: u8::from(word & 0x0008 != 0),
        hardware: u8::try_from(word >> 4 & 0x3f).unwrap_or(0),
        timestamp: u32::from_be_bytes([t0, t1, t2, t3]),
    };
    Ok((header, len))
}
