//! Errors: the name of the error, and the refused message.

use super::refusal_names::DecodeErrorName;
use super::text::PrintBuffer;
use super::{Detail, NESTING_MAX, error_names, print_within};
use crate::codec::Reader;
use crate::message::WireFormat;
use crate::message::error::ErrorMessage;

/// The type number of an error message, the same in all versions.
pub(super) const NUMBER: u8 = 1;

/// Open vSwitch's error for unknown numbers.
const UNKNOWN: DecodeErrorName = DecodeErrorName("OFPBRC_BAD_LEN");

/// The error type of a failed hello, of which the data is text.
const HELLO_FAILED: u16 = 0;

/// Writes an error.
pub(super) fn print(r: &mut Reader<'_>, text: &mut PrintBuffer<'_>) -> Result<(), DecodeErrorName> {
    let ErrorMessage { code, data } = ErrorMessage::decode(r)?;
    let name = error_names::of(code, r.version()).ok_or(UNKNOWN)?;
    writeln!(text, " {name}");
    if matches!(
        code,
        crate::ErrorCode::Plain {
            kind: HELLO_FAILED,
            ..
        }
    ) {
        let words: String = data.iter().map(|byte| letter(*byte)).collect();
        write!(text, "{words}");
    } else if text.context.depth < NESTING_MAX {
        text.push(&print_within(&data, text.context.within(Detail::BRIEF)));
    }
    Ok(())
}

/// Formats a byte as a character; bytes that are not printable, in octal.
fn letter(byte: u8) -> String {
    match byte {
        b'\\' => "\\\\".to_owned(),
        b' '..=b'~' => char::from(byte).to_string(),
        byte => format!("\\{byte:03o}"),
    }
}
