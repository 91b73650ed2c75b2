//! Bytes in hexadecimal.

use crate::error::ToolError;

/// Parses hexadecimal bytes; whitespace, colons and dots between them are ignored.
pub(crate) fn bytes(text: &str) -> Result<Vec<u8>, ToolError> {
    let digits = text
        .char_indices()
        .filter(|(_, letter)| !is_between(*letter));
    let digits: Vec<(usize, char)> = digits.collect();
    let bytes = digits.chunks(2).map(|pair| byte(text, pair));
    let bytes = bytes.collect::<Result<Vec<_>, _>>()?;
    if bytes.is_empty() {
        Err(ToolError::Empty)
    } else {
        Ok(bytes)
    }
}

/// Formats bytes as hexadecimal digits, two a byte.
pub(crate) fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn is_between(letter: char) -> bool {
    letter.is_whitespace() || matches!(letter, ':' | '.')
}

/// Parses the two digits of a byte.
fn byte(text: &str, pair: &[(usize, char)]) -> Result<u8, ToolError> {
    let digit = |(_, letter): &(usize, char)| letter.to_digit(16);
    let bad = |place: &(usize, char)| ToolError::NotHex {
        found: place.1.to_string(),
        at: text[..place.0].chars().count() + 1,
    };
    match pair {
        [high, low] => {
            let high = digit(high).ok_or_else(|| bad(high))?;
            let low = digit(low).ok_or_else(|| bad(low))?;
            Ok(u8::try_from(high << 4 | low).expect("two digits are a byte"))
        }
        alone => Err(bad(&alone[0])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_may_have_separators() {
        let read = bytes("01 0a\n:ff.00").ok();
        assert_eq!(read, Some(vec![1, 10, 255, 0]));
    }

    #[test]
    fn non_hexadecimal_character_error_names_position() {
        let error = |text: &str| bytes(text).map_err(|error| error.to_string());
        let wanted = "`g` is not hexadecimal (at character 5): expected two digits a byte";
        assert_eq!(error("01 0g"), Err(wanted.to_owned()));
        let wanted = "`1` is not hexadecimal (at character 4): expected two digits a byte";
        assert_eq!(error("00 1"), Err(wanted.to_owned()));
        assert!(matches!(bytes(" \n"), Err(ToolError::Empty)));
    }
}
