//! Errors of the tools.

use std::io;
use std::path::PathBuf;

use flow::text::ParseError;
use openflow::{EncodeError, OxmTextError};

/// An error in the input or of the switch, as a one-line message.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The text is not hexadecimal.
    #[error("`{found}` is not hexadecimal (at character {at}): expected two digits a byte")]
    NotHex {
        /// The invalid character.
        found: String,
        /// Its position, from one.
        at: usize,
    },
    /// The input is empty.
    #[error("empty input: expected a message or a line of text")]
    Empty,
    /// A line is malformed.
    #[error("line {line}, {error}")]
    Text {
        /// The number of the line, from one.
        line: usize,
        /// The parse error.
        error: ParseError,
    },
    /// The version cannot encode the line.
    #[error("line {line}: {error}")]
    Encode {
        /// The number of the line, from one.
        line: usize,
        /// The encoding error.
        error: EncodeError,
    },
    /// An entry of a match is malformed.
    #[error("line {line}: {error}")]
    Entry {
        /// The number of the line, from one.
        line: usize,
        /// The parse error.
        error: OxmTextError,
    },
    /// A line is a command other than the addition of a rule.
    #[error("line {line}: expected a rule to add, not another command")]
    NotRule {
        /// The number of the line, from one.
        line: usize,
    },
    /// The sort field does not exist.
    #[error("`{0}` is neither a field nor `priority`")]
    NoField(String),
    /// The file is not a supported capture file.
    #[error("not a supported pcap file: {0}")]
    MalformedCapture(String),
    /// The switch does not answer, or does not run.
    #[error("{path}: {error}: is the switch running, and is this its --rundir?", path = path.display())]
    NoAnswer {
        /// Its socket.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The connection ended.
    #[error("the switch ended the connection: {0}")]
    Down(String),
    /// The switch refused a request.
    #[error("the switch refuses: {0}")]
    Refused(String),
}
