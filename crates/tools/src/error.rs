//! Why a tool gives no answer.

/// What is wrong with what was asked, in one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
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
    #[error("no message was given: bytes in hexadecimal are wanted")]
    Empty,
}
