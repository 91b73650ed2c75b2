//! Input from the command line, from a file, or from standard input.

use std::io::{self, Read};
use std::path::Path;

/// The name of standard input.
const STANDARD_INPUT: &str = "-";

/// The prefix of a file name in place of a text.
const FILE: char = '@';

/// Returns the text itself, or the content of standard input or of the named file.
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

/// Returns the bytes of a file or of standard input.
pub(crate) fn bytes_of(path: &Path) -> Result<Vec<u8>, String> {
    let read = if path == Path::new(STANDARD_INPUT) {
        let mut bytes = Vec::new();
        io::stdin().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(path)
    };
    read.map_err(|error| format!("{}: {error}", path.display()))
}

/// Returns the text of a file or of standard input.
pub(crate) fn text_of(path: &Path) -> Result<String, String> {
    let text = String::from_utf8(bytes_of(path)?);
    text.map_err(|_| format!("{}: not UTF-8 text", path.display()))
}
