//! Messages to text.

use openflow::{Detail, MessagePart, Version, print, print_part, split_message};

use crate::error::ToolError;
use crate::hex;

/// Prints messages in hexadecimal, one in each line of `text`; empty lines are ignored.
///
/// # Errors
/// A line is not hexadecimal, or there are no lines.
pub fn print_lines(text: &str, detail: Detail) -> Result<String, ToolError> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let printed = lines.map(|line| Ok(print(&hex::bytes(line)?, detail)));
    let printed = printed.collect::<Result<Vec<_>, _>>()?;
    if printed.is_empty() {
        Err(ToolError::Empty)
    } else {
        Ok(printed.concat())
    }
}

/// Prints parts of messages in hexadecimal, one in each line of `text`, in the encoding of a
/// version; empty lines are ignored.
///
/// # Errors
/// As for [`print_lines`].
pub fn print_parts(part: MessagePart, text: &str, version: Version) -> Result<String, ToolError> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let printed = lines.map(|line| Ok(print_part(part, &hex::bytes(line)?, version)));
    let printed = printed.collect::<Result<Vec<_>, ToolError>>()?;
    if printed.is_empty() {
        Err(ToolError::Empty)
    } else {
        Ok(printed.concat())
    }
}

/// Prints the consecutive messages in `bytes`, one direction of a connection. Remaining bytes are
/// printed as a truncated message.
///
/// # Errors
/// There are no bytes.
pub fn print_stream(mut bytes: &[u8], detail: Detail) -> Result<String, ToolError> {
    if bytes.is_empty() {
        return Err(ToolError::Empty);
    }
    let mut printed = String::new();
    while !bytes.is_empty() {
        let (message, rest) = match split_message(bytes) {
            Ok(Some(split)) => split,
            Ok(None) | Err(_) => (bytes, &[][..]),
        };
        printed += &print(message, detail);
        bytes = rest;
    }
    Ok(printed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_print_as_messages() {
        let printed = print_lines("0105000800000002\n\n01 12 0008 00000003\n", Detail::USUAL);
        let wanted = "OFPT_FEATURES_REQUEST (xid=0x2):\nOFPT_BARRIER_REQUEST (xid=0x3):\n";
        assert_eq!(printed.expect("both are messages"), wanted);
        let nothing = print_lines("\n", Detail::USUAL);
        assert!(matches!(nothing, Err(ToolError::Empty)));
    }

    #[test]
    fn stream_splits_into_messages_and_prints_remainder() {
        let bytes = [1, 5, 0, 8, 0, 0, 0, 2, 1, 18, 0, 8, 0, 0, 0, 3, 1, 18, 0, 8];
        let printed = print_stream(&bytes, Detail::BRIEF).expect("there are some");
        assert!(printed.starts_with("OFPT_FEATURES_REQUEST (xid=0x2):\nOFPT_BARRIER_REQUEST"));
        assert!(printed.contains("too short (only 4 bytes)"), "{printed}");
    }
}
