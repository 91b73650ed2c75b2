//! Why a tool gives no answer.

use std::io;
use std::path::PathBuf;

use flow::text::ParseError;
use openflow::{EncodeError, OxmTextError};

/// What is wrong with what was asked, or with who was asked, in one line.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The text is no bytes in hexadecimal.
    #[error("`{found}` is not hexadecimal (at character {at}): two digits a byte are wanted")]
    NotHex {
        /// What stands there.
        found: String,
        /// Where, from one.
        at: usize,
    },
    /// Nothing was given.
    #[error("nothing was given: a message or a line of text is wanted")]
    Empty,
    /// A line is not what it should be.
    #[error("line {line}, {error}")]
    Text {
        /// Which line, from one.
        line: usize,
        /// What is wrong with it.
        error: ParseError,
    },
    /// A version has no words for it.
    #[error("line {line}: {error}")]
    Encode {
        /// Which line, from one.
        line: usize,
        /// What cannot be said.
        error: EncodeError,
    },
    /// An entry of a match is none.
    #[error("line {line}: {error}")]
    Entry {
        /// Which line, from one.
        line: usize,
        /// What is wrong with it.
        error: OxmTextError,
    },
    /// A line is a command where a rule is wanted.
    #[error("line {line}: rules are wanted here, as they are added, and no other command")]
    NotRule {
        /// Which line, from one.
        line: usize,
    },
    /// There is no field of this name to sort by.
    #[error("`{0}` is neither a field nor `priority`")]
    NoField(String),
    /// A file is no capture that can be read.
    #[error("this is no pcap file: {0}")]
    NotCapture(String),
    /// There is no switch, or it does not answer.
    #[error("{path}: {error}: is the switch running, and is this its --rundir?", path = path.display())]
    Unanswered {
        /// Its socket.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// The connection is over.
    #[error("the switch ended the connection: {0}")]
    Down(String),
    /// The switch does not do it.
    #[error("the switch refuses: {0}")]
    Refused(String),
}
