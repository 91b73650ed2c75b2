//! LISP data header (RFC 6830, 5.3): IP packets between sites, with an instance id.

use super::super::TunnelError;
use super::gtpu::ip_payload;
use super::{TunnelHeader, TunnelProtocol};

/// Length of the header.
const LEN: usize = 8;
/// Flag: the locator status bits are valid.
const STATUS_BITS: u8 = 0x40;
/// Flag: the upper 24 bits of the second word are the instance id.
const INSTANCE: u8 = 0x08;

impl TunnelHeader {
    pub(super) fn emit_lisp(&self, into: &mut Vec<u8>) {
        into.extend([STATUS_BITS | INSTANCE, 0, 0, 0]);
        // The one locator of this site is up.
        into.extend((self.key.unwrap_or(0) << 8 | 1).to_be_bytes());
    }
}

/// Parses the header. Nonces and map versions are ignored: there is no map server.
pub(super) fn parse_lisp(bytes: &[u8]) -> Result<(TunnelHeader, usize), TunnelError> {
    let [flags, _, _, _, k0, k1, k2, _] =
        *bytes.first_chunk::<LEN>().ok_or(TunnelError::Truncated)?;
    let mut shim = TunnelHeader::new(TunnelProtocol::Lisp);
    shim.key = match flags & INSTANCE {
        0 => Some(0),
        _ => Some(u32::from_be_bytes([0, k0, k1, k2])),
    };
    shim.payload = ip_payload(&bytes[LEN..])?;
    Ok((shim, LEN))
}
