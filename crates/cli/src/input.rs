//! Where text and bytes come from that are not typed: a file, or standard input.

use std::io::{self, Read};
use std::path::Path;

/// What stands for standard input.
const STANDARD_INPUT: &str = "-";

/// What stands before the name of a file in place of a text.
const FILE: char = '@';

/// What was typed, or all of standard input or of a file if that is named.
pub(crate) fn typed_or_read(text: String) -> Result<String, String> {
    if let Some(path) = text.strip_prefix(FILE) {
        return text_of(Path::new(path));
    }
    if text != STANDARD_INPUT {
        return Ok(text);
    }
    let mut read = String::new();
    io::stdin()
        .read_to_string(&mut read)
        .map_err(|error| format!("standard input: {error}"))?;
    Ok(read)
}

/// What is in a file.
pub(crate) fn bytes_of(path: &Path) -> Result<Vec<u8>, String> {
    let read = if path == Path::new(STANDARD_INPUT) {
        let mut bytes = Vec::new();
        io::stdin().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(path)
    };
    read.map_err(|error| format!("{}: {error}", path.display()))
}

/// The text in a file.
pub(crate) fn text_of(path: &Path) -> Result<String, String> {
    let text = String::from_utf8(bytes_of(path)?);
    text.map_err(|_| format!("{}: this is no text", path.display()))
}
