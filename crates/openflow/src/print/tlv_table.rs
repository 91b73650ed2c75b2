//! The TLV map of tunnel options.

use ::flow::{Refusal, TlvCommand, TlvMapping, TlvTable, TlvTableMod};

use super::refusal_names::DecodeErrorName;
use super::text::PrintBuffer;
use crate::codec::{Malformed, Reader};
use crate::message::WireFormat as _;

/// The maximum length of a Geneve option in bytes.
const LENGTH_MAX: u8 = 124;

/// The number of option fields.
const FIELDS: u16 = 64;

/// Writes a change of the map.
pub(super) fn print_mod(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    let at = r.fail(Refusal::TlvBadField).at;
    let change = TlvTableMod::decode(r)?;
    check(&change.mappings, FIELDS, at)?;
    let word = match change.command {
        TlvCommand::Add => "ADD",
        TlvCommand::Delete => "DEL",
        TlvCommand::Clear => {
            text.push("\n CLEAR");
            return Ok(());
        }
    };
    write!(text, "\n {word}");
    print_mappings(&change.mappings, text);
    Ok(())
}

/// Writes the map.
pub(super) fn print_reply(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    let at = r.fail(Refusal::TlvBadField).at;
    let table = TlvTable::decode(r)?;
    check(&table.mappings, table.fields_max, at)?;
    let lengths = table.mappings.iter().map(|one| u32::from(one.length));
    write!(text, "\n max option space={}", table.space_max);
    write!(text, " max fields={}", table.fields_max);
    write!(
        text,
        "\n allocated option space={}\n\n",
        lengths.sum::<u32>()
    );
    print_mappings(&table.mappings, text);
    Ok(())
}

/// Refuses mappings that a switch with this number of option fields does not support.
fn check(mappings: &[TlvMapping], fields: u16, at: usize) -> Result<(), Malformed> {
    for mapping in mappings {
        let refusal = if !mapping.length.is_multiple_of(4) || mapping.length > LENGTH_MAX {
            Refusal::TlvBadLength
        } else if mapping.index >= fields {
            Refusal::TlvBadField
        } else {
            continue;
        };
        return Err(Malformed { refusal, at });
    }
    Ok(())
}

fn print_mappings(mappings: &[TlvMapping], text: &mut PrintBuffer<'_>) {
    text.push(" mapping table:\n");
    text.push("  class  type  length  match field\n");
    text.push(" ------  ----  ------  --------------");
    for mapping in mappings {
        let (class, kind) = (hexadecimal(mapping.class), hexadecimal(mapping.kind.into()));
        write!(text, "\n {class:>6}  {kind:>4}");
        write!(
            text,
            "  {:>6}  tun_metadata{}",
            mapping.length, mapping.index
        );
    }
}

/// Formats a number in hexadecimal; a zero has no prefix, as in C.
fn hexadecimal(number: u16) -> String {
    match number {
        0 => "0".to_owned(),
        _ => format!("{number:#x}"),
    }
}
