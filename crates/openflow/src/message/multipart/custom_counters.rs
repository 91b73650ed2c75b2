//! Counters of a port by name: an experimenter property of Intel (`openflow/intel-ext.h` of Open
//! vSwitch) in the port statistics of OpenFlow 1.4 and later.

use crate::codec::{EncodeError, Malformed, Writer};
use crate::message::property::{self, EXPERIMENTER, Property};
use flow::Refusal;

/// Intel's experimenter id, and its type of counters by name.
const INTEL: u32 = 0xaa01;
const CUSTOM: u32 = 2;

/// The maximum length of a name, as in Open vSwitch.
const NAME_MAX: usize = 63;

/// The maximum number of bytes of all counters: the largest message without its headers, the other
/// counters and the padding.
const BYTES_MAX: usize = 65_376;

/// Decodes the counters of a property; none if it is another experimenter's. Counters whose names
/// are too long or not UTF-8 are skipped.
pub(super) fn decode(property: &Property<'_>) -> Result<Vec<(String, u64)>, Malformed> {
    let mut r = property.value.clone().on_short(Refusal::PropertyBadLength);
    if (r.u32()?, r.u32()?) != (INTEL, CUSTOM) {
        return Ok(Vec::new());
    }
    r.skip(2)?;
    let mut counters = Vec::new();
    for _ in 0..r.u16()? {
        let length = usize::from(r.u8()?);
        let name = std::str::from_utf8(r.bytes(length)?);
        let count = r.u64()?;
        if let Some(name) = name.ok().filter(|name| name.len() <= NAME_MAX) {
            counters.push((name.to_owned(), count));
        }
    }
    Ok(counters)
}

/// Appends the property of the counters that fit into a message; nothing without counters.
pub(super) fn encode(counters: &[(String, u64)], w: &mut Writer<'_>) -> Result<(), EncodeError> {
    let mut bytes = 0;
    let fitting = counters.iter().filter(|(name, _)| name.len() <= NAME_MAX);
    let fitting: Vec<_> = fitting
        .take_while(|(name, _)| {
            bytes += 1 + name.len() + 8;
            bytes <= BYTES_MAX
        })
        .collect();
    if fitting.is_empty() {
        return Ok(());
    }
    property::put(EXPERIMENTER, w, |w| {
        w.u32(INTEL);
        w.u32(CUSTOM);
        w.zeros(2);
        w.u16(u16::try_from(fitting.len()).unwrap_or(u16::MAX));
        for (name, count) in fitting {
            w.u8(u8::try_from(name.len()).unwrap_or(u8::MAX));
            w.bytes(name.as_bytes());
            w.u64(*count);
        }
        Ok(())
    })
}
