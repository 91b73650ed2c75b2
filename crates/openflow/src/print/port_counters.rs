//! Port counters in addition to OpenFlow's: Intel's properties, which Open vSwitch 3.1 prints
//! (`openflow/intel-ext.h`). Those of other experimenters are skipped.

use super::refusal_names::DecodeErrorName;
use super::text::PrintBuffer;
use crate::codec::Reader;
use crate::message::property::Property;
use ::flow::Refusal;

/// Intel's experimenter id and its two types of counters.
const INTEL: u32 = 0xaa01;
const RFC2819: u32 = 1;
const CUSTOM: u32 = 2;

/// The maximum number of printed characters of a custom counter's name.
const NAME_MAX: usize = 63;

/// The number of custom counters in a line.
const LINE: usize = 3;

/// The value of an unsupported counter.
const UNKNOWN: u64 = u64::MAX;

/// The names of the RFC 2819 counters in wire order; the flag is true for receive counters. Each
/// direction is printed in a line.
const COUNTERS: [(bool, &str); 21] = [
    (true, "1_to_64_packets"),
    (true, "65_to_127_packets"),
    (true, "128_to_255_packets"),
    (true, "256_to_511_packets"),
    (true, "512_to_1023_packets"),
    (true, "1024_to_1522_packets"),
    (true, "1523_to_max_packets"),
    (false, "1_to_64_packets"),
    (false, "65_to_127_packets"),
    (false, "128_to_255_packets"),
    (false, "256_to_511_packets"),
    (false, "512_to_1023_packets"),
    (false, "1024_to_1522_packets"),
    (false, "1523_to_max_packets"),
    (false, "multicast_packets"),
    (true, "broadcast_packets"),
    (false, "broadcast_packets"),
    (true, "undersized_errors"),
    (true, "oversize_errors"),
    (true, "rx_fragmented_errors"),
    (true, "rx_jabber_errors"),
];

/// The counters of a port in addition to OpenFlow's.
#[derive(Default)]
pub(super) struct ExperimenterCounters {
    rfc2819: Option<[u64; COUNTERS.len()]>,
    custom: Vec<(String, u64)>,
}

impl ExperimenterCounters {
    /// Reads an experimenter's property.
    pub(super) fn read(&mut self, property: &Property<'_>) -> Result<(), DecodeErrorName> {
        let mut r = property.value.clone().on_short(Refusal::PropertyBadLength);
        match (r.u32()?, r.u32()?) {
            (INTEL, RFC2819) => self.rfc2819 = Some(read_rfc2819(&mut r)?),
            (INTEL, CUSTOM) => self.custom = read_custom(&mut r)?,
            _ => {}
        }
        Ok(())
    }

    pub(super) fn write(&self, text: &mut PrintBuffer<'_>) {
        if let Some(counts) = &self.rfc2819 {
            write_side("rx", true, counts, text);
            write_side("tx", false, counts, text);
        }
        if !self.custom.is_empty() {
            write_custom(&self.custom, text);
        }
    }
}

fn read_rfc2819(r: &mut Reader<'_>) -> Result<[u64; COUNTERS.len()], DecodeErrorName> {
    let bad_length = r.fail(Refusal::PropertyBadLength);
    r.skip(4)?;
    let mut counts = [0; COUNTERS.len()];
    for count in &mut counts {
        *count = r.u64()?;
    }
    if r.is_empty() {
        Ok(counts)
    } else {
        Err(bad_length.into())
    }
}

fn read_custom(r: &mut Reader<'_>) -> Result<Vec<(String, u64)>, DecodeErrorName> {
    r.skip(2)?;
    let mut custom = Vec::new();
    for _ in 0..r.u16()? {
        let length = usize::from(r.u8()?);
        let name = r.bytes(length)?;
        // As in C, a zero ends the name.
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        let name = String::from_utf8_lossy(&name[..name.len().min(NAME_MAX)]);
        custom.push((name.into_owned(), r.u64()?));
    }
    Ok(custom)
}

/// Writes the receive or transmit counters, unless all are unsupported.
fn write_side(
    side: &str,
    received: bool,
    counts: &[u64; COUNTERS.len()],
    text: &mut PrintBuffer<'_>,
) {
    let named = COUNTERS.iter().zip(counts);
    let known = named.filter(|((of, _), count)| *of == received && **count != UNKNOWN);
    let texts: String = known
        .map(|((_, name), count)| format!("{name}={count}, "))
        .collect();
    if !texts.is_empty() {
        writeln!(text, "           {side} rfc2819 {texts}");
    }
}

/// Writes custom counters by their names; those without a name are skipped.
fn write_custom(custom: &[(String, u64)], text: &mut PrintBuffer<'_>) {
    text.push("           CUSTOM Statistics");
    for (index, (name, count)) in custom.iter().enumerate() {
        if !name.is_empty() {
            let separator = if index.is_multiple_of(LINE) {
                "\n                      "
            } else {
                " "
            };
            write!(text, "{separator}{name}={count},");
        }
    }
    text.push("\n");
}
