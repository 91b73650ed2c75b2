//! Port numbers: sixteen bits in OpenFlow 1.0, thirty-two bits in later versions. The highest
//! numbers of either width are reserved.

use base::PortNo;

use crate::codec::{EncodeError, Malformed, Reader, Writer};
use crate::version::Version;

/// The first 16-bit number of a reserved port or of none (`OFPP_MAX` of OF 1.0.1, 5.2.1).
const RESERVED: u16 = 0xff00;

/// Converts a port number of OpenFlow 1.0.
pub(crate) const fn from_u16(number: u16) -> PortNo {
    if number < RESERVED {
        PortNo(number as u32)
    } else {
        PortNo(number as u32 | 0xffff_0000)
    }
}

/// Converts to a port number of OpenFlow 1.0, if there is one.
pub(crate) fn to_u16(port: PortNo) -> Option<u16> {
    match u16::try_from(port.0) {
        Ok(number) => (number < RESERVED).then_some(number),
        Err(_) => (port.0 >= PortNo::MAX.0).then_some((port.0 & 0xffff) as u16),
    }
}

/// Decodes a port number of the version's width.
pub(crate) fn decode(r: &mut Reader<'_>) -> Result<PortNo, Malformed> {
    match r.version() {
        Version::V10 => decode_u16(r),
        Version::V11 | Version::V12 | Version::V13 | Version::V14 | Version::V15 => {
            r.u32().map(PortNo)
        }
    }
}

/// Decodes a port number of sixteen bits.
pub(crate) fn decode_u16(r: &mut Reader<'_>) -> Result<PortNo, Malformed> {
    r.u16().map(from_u16)
}

/// Appends a port number of the version's width.
pub(crate) fn encode(port: PortNo, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    match w.version() {
        Version::V10 => encode_u16(port, w),
        Version::V11 | Version::V12 | Version::V13 | Version::V14 | Version::V15 => {
            w.u32(port.0);
            Ok(())
        }
    }
}

/// Appends a port number of sixteen bits.
pub(crate) fn encode_u16(port: PortNo, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    let number = to_u16(port).ok_or_else(|| w.unsupported("a port number beyond 0xff00"))?;
    w.u16(number);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_ports_are_widened_and_narrowed() {
        assert_eq!(from_u16(0xfffd), PortNo::CONTROLLER);
        assert_eq!(from_u16(0xfeff), PortNo(0xfeff));
        assert_eq!(to_u16(PortNo::LOCAL), Some(0xfffe));
        assert_eq!(to_u16(PortNo(0xff00)), None);
        assert_eq!(to_u16(PortNo(0x1_0000)), None);
        for number in 0..=u16::MAX {
            assert_eq!(to_u16(from_u16(number)), Some(number));
        }
    }
}
