//! Error: the reason why a request failed (OF 1.0.1, 5.4.4; OF 1.3.5, 7.4.4; OF 1.5.1, 7.5.4).

use flow::Refusal;

use super::WireFormat;
use crate::codec::{EncodeError, Malformed, Reader, Writer};
use crate::error_codes::ErrorCode;
use crate::experimenter::NICIRA;
use crate::version::Version;

/// The message's type number, the same in all versions.
pub(crate) const NUMBER: u8 = 1;

/// Nicira's error in OpenFlow 1.0 and 1.1: type `NXET_VENDOR`, code `NXVC_VENDOR_ERROR`.
const NICIRA_ERROR: (u16, u16) = (0xb0c2, 0);

/// `OFPET_EXPERIMENTER` (1.2 and later).
const EXPERIMENTER: u16 = 0xffff;

/// An error message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorMessage {
    /// The type and code.
    pub code: ErrorCode,
    /// The refused message; for a failed hello, a sentence.
    pub data: Vec<u8>,
}

impl ErrorMessage {
    /// The error of `refusal` in `version`.
    #[must_use]
    pub fn new(refusal: Refusal, version: Version, data: Vec<u8>) -> Self {
        let code = ErrorCode::of(refusal, version);
        Self { code, data }
    }
}

impl WireFormat for ErrorMessage {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (kind, code) = (r.u16()?, r.u16()?);
        let code = match r.version() {
            Version::V10 | Version::V11 if (kind, code) == NICIRA_ERROR => {
                decode_nicira(r).unwrap_or(ErrorCode::Plain { kind, code })
            }
            Version::V12 | Version::V13 | Version::V14 | Version::V15 if kind == EXPERIMENTER => {
                ErrorCode::Experimenter {
                    experimenter: r.u32()?,
                    kind: code,
                }
            }
            Version::V10
            | Version::V11
            | Version::V12
            | Version::V13
            | Version::V14
            | Version::V15 => ErrorCode::Plain { kind, code },
        };
        let data = r.rest().to_vec();
        Ok(Self { code, data })
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        match self.code {
            ErrorCode::Plain { kind, code } => {
                w.u16(kind);
                w.u16(code);
            }
            ErrorCode::Nicira { kind, code } => {
                let (outer_kind, outer_code) = NICIRA_ERROR;
                w.u16(outer_kind);
                w.u16(outer_code);
                w.u32(NICIRA);
                w.u16(kind);
                w.u16(code);
            }
            ErrorCode::Experimenter { experimenter, kind } => {
                w.u16(EXPERIMENTER);
                w.u16(kind);
                w.u32(experimenter);
            }
        }
        w.bytes(&self.data);
        Ok(())
    }
}

/// Decodes Nicira's numbers, if they are there; otherwise reads nothing.
fn decode_nicira(r: &mut Reader<'_>) -> Option<ErrorCode> {
    let mut rest = r.clone();
    if rest.u32() != Ok(NICIRA) {
        return None;
    }
    let (kind, code) = (rest.u16().ok()?, rest.u16().ok()?);
    *r = rest;
    Some(ErrorCode::Nicira { kind, code })
}

#[cfg(test)]
mod tests;
