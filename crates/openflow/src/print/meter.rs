//! Meters: their changes, configuration and counters.

use ::flow::Refusal;
use base::MeterId;

use super::refusal_names::DecodeErrorName;
use super::text::{PrintBuffer, Seconds};
use crate::codec::Reader;

const COMMANDS: [&str; 3] = ["ADD", "MOD", DELETE];
const DELETE: &str = "DEL";

const FLAGS: [(u32, &str); 4] = [(1, "kbps"), (2, "pktps"), (4, "burst"), (8, "stats")];

/// The flag that bands have a burst size.
const BURST: u16 = 1 << 2;

/// The types of bands by the bit of their number.
const KINDS: [(u32, &str); 2] = [(1 << 1, "drop"), (1 << 2, "dscp_remark")];

const DSCP_REMARK: u16 = 2;

/// Bytes of a band.
const BAND: usize = 16;

/// The number of a meter, or its name if it is virtual.
fn name(meter: MeterId) -> String {
    match meter {
        MeterId::ALL => "all".to_owned(),
        MeterId::CONTROLLER => "controller".to_owned(),
        MeterId::SLOWPATH => "slowpath".to_owned(),
        meter if meter.is_ordinary() || meter.0 == 0 => meter.0.to_string(),
        _ => "unknown".to_owned(),
    }
}

/// Writes a change to a meter.
pub(super) fn print_mod(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    let unknown = r.fail(Refusal::MeterModBadCommand);
    let command = COMMANDS.get(usize::from(r.u16()?)).ok_or(unknown)?;
    let bad_flags = r.fail(Refusal::MeterModBadFlags);
    let flags = r.u16()?;
    let meter = MeterId(r.u32()?);
    let (flags, bands) = match *command {
        // Flags and bands have no meaning.
        DELETE => (0, String::new()),
        _ if flags & 3 == 3 => return Err(bad_flags.into()),
        _ => (flags, bands(flags, r)?),
    };
    write!(text, " {command} ");
    write_meter(meter, flags, &bands, text);
    Ok(())
}

/// Formats bands, one line each.
fn bands(flags: u16, r: &mut Reader<'_>) -> Result<String, DecodeErrorName> {
    let mut lines = String::new();
    while !r.is_empty() {
        let bad_length = r.fail(Refusal::RequestBadLength);
        let unknown = r.fail(Refusal::MeterModBadBand);
        let (kind, length) = (r.u16()?, r.u16()?);
        let (rate, burst) = (r.u32()?, r.u32()?);
        let [level, ..] = r.take::<4>()?;
        if usize::from(length) != BAND {
            return Err(bad_length.into());
        }
        let bit = 1_u32.checked_shl(kind.into()).unwrap_or(0);
        let named = KINDS.iter().find(|(known, _)| *known == bit);
        let (_, name) = named.ok_or(unknown)?;
        lines += &format!("\ntype={name} rate={rate}");
        if flags & BURST != 0 {
            lines += &format!(" burst_size={burst}");
        }
        if kind == DSCP_REMARK {
            lines += &format!(" prec_level={level}");
        }
    }
    Ok(lines)
}

fn write_meter(meter: MeterId, flags: u16, bands: &str, text: &mut PrintBuffer<'_>) {
    write!(text, "meter={} ", name(meter));
    let mut rest = u32::from(flags);
    for (bit, name) in FLAGS {
        if rest & bit != 0 {
            write!(text, "{name} ");
            rest &= !bit;
        }
    }
    if rest != 0 {
        write!(text, "flags:0x{rest:x} ");
    }
    writeln!(text, "bands={bands}");
}

/// Writes the requested meter.
pub(super) fn print_request(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    write!(text, " meter={}", name(MeterId(r.u32()?)));
    Ok(())
}

/// Splits off the next entry, which has a length of two bytes at offset `at`.
fn next_entry<'a>(
    r: &mut Reader<'a>,
    at: usize,
    least: usize,
) -> Result<Reader<'a>, DecodeErrorName> {
    let mut head = r.clone();
    head.skip(at)?;
    let length = usize::from(head.u16()?);
    if length < least {
        return Err(r.fail(Refusal::RequestBadLength).into());
    }
    Ok(r.sub_or(length, Refusal::RequestBadLength)?)
}

/// Writes the configuration of meters.
pub(super) fn print_configs(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    while !r.is_empty() {
        let mut r = next_entry(r, 0, 8)?;
        r.skip(2)?;
        let (flags, meter) = (r.u16()?, MeterId(r.u32()?));
        let bands = bands(flags, &mut r)?;
        text.push("\n");
        write_meter(meter, flags, &bands, text);
    }
    Ok(())
}

/// Writes the counters of meters.
pub(super) fn print_stats(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    while !r.is_empty() {
        let mut r = next_entry(r, 4, 40)?;
        let meter = MeterId(r.u32()?);
        r.skip(8)?;
        let (flows, packets, bytes) = (r.u32()?, r.u64()?, r.u64()?);
        let duration = Seconds(r.u32()?, r.u32()?);
        text.push("\n");
        write!(text, "meter:{} flow_count:{flows} ", name(meter));
        writeln!(
            text,
            "packet_in_count:{packets} byte_in_count:{bytes} duration:{duration} bands:"
        );
        for band in 0.. {
            if r.is_empty() {
                break;
            }
            writeln!(
                text,
                "{band}: packet_count:{} byte_count:{}",
                r.u64()?,
                r.u64()?
            );
        }
    }
    Ok(())
}

/// Writes the supported meters.
pub(super) fn print_features(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    let (max, kinds, flags) = (r.u32()?, r.u32()?, r.u32()?);
    let (bands, colours) = (r.u8()?, r.u8()?);
    writeln!(
        text,
        "\nmax_meter:{max} max_bands:{bands} max_color:{colours}"
    );
    text.push("band_types: ");
    text.bits(kinds, &KINDS);
    text.push("\ncapabilities: ");
    text.bits(flags, &FLAGS);
    Ok(())
}
