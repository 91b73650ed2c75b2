//! Hello and echo.

use super::Detail;
use super::refusal_names::DecodeErrorName;
use super::text::PrintBuffer;
use crate::codec::Reader;

/// The element that lists versions (`OFPHET_VERSIONBITMAP`).
const VERSION_BITMAP: u16 = 1;

/// Writes a hello: the versions that it offers, and a note about unknown elements.
pub(super) fn print(r: &mut Reader<'_>, text: &mut PrintBuffer<'_>) -> Result<(), DecodeErrorName> {
    let message = text.message;
    let newest = message.first().copied().unwrap_or(0);
    let (versions, has_unknown) = versions(newest, r);
    let listed = (0..32).filter(|version| versions >> version & 1 == 1);
    let listed: Vec<_> = listed.map(|version| format!("0x{version:02x}")).collect();
    text.end_line();
    write!(text, " version bitmap: {}", listed.join(", "));
    if has_unknown {
        text.push("\n unknown data in hello:");
        text.dump(message);
    }
    Ok(())
}

/// The versions that a hello offers; the flag is true if it contains unknown elements.
fn versions(newest: u8, r: &mut Reader<'_>) -> (u32, bool) {
    let (mut versions, mut has_unknown) = (None, false);
    while !r.is_empty() {
        match element(r) {
            Ok(Some(bitmap)) => versions = Some(bitmap),
            Ok(None) => has_unknown = true,
            Err(_) => {
                has_unknown = true;
                break;
            }
        }
    }
    let all = 1_u32
        .checked_shl(u32::from(newest) + 1)
        .map_or(!1, |bit| bit - 2);
    (versions.unwrap_or(all), has_unknown)
}

/// Reads an element; none if it is not a version bitmap.
fn element(r: &mut Reader<'_>) -> Result<Option<u32>, DecodeErrorName> {
    let mut head = r.clone();
    let (kind, length) = (head.u16()?, usize::from(head.u16()?));
    let mut element = r.sub(length)?;
    element.skip(4)?;
    r.skip((length.next_multiple_of(8) - length).min(r.len()))?;
    if kind != VERSION_BITMAP || !length.is_multiple_of(4) {
        return Ok(None);
    }
    // No version has the number zero.
    let bits = element.u32()? & !1;
    Ok(Some(bits).filter(|bits| *bits != 0))
}

/// Writes an echo.
pub(super) fn print_echo(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    let payload = r.rest();
    writeln!(text, " {} bytes of payload", payload.len());
    if text.context.detail >= Detail::USUAL {
        text.dump(payload);
    }
    Ok(())
}
