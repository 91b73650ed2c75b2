//! Why a tool gives no answer.

use std::io;
use std::path::PathBuf;

use flow::text::ParseError;
use openflow::Inexpressible;

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
    Inexpressible {
        /// Which line, from one.
        line: usize,
        /// What cannot be said.
        error: Inexpressible,
    },
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
