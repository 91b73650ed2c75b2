//! What is wrong with a line of text: where, what stands there, what would be right.

/// How much of the offending text an error repeats, in characters.
const FOUND_MAX: usize = 40;

/// A text that is no flow, match or action.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column {}{}: {problem}", at + 1, quoted(found))]
pub struct ParseError {
    /// Where, in bytes from the start of the text that was to be read.
    pub at: usize,
    /// What stands there, or its beginning.
    pub found: String,
    /// What is wrong with it, and what would be right.
    pub problem: String,
}

impl ParseError {
    /// The complaint that `problem` about `found`, which begins `at` bytes into the text.
    pub(super) fn new(at: usize, found: &str, problem: impl Into<String>) -> Self {
        let mut short: String = found.chars().take(FOUND_MAX).collect();
        if short.len() < found.len() {
            short.push_str("...");
        }
        Self {
            at,
            found: short,
            problem: problem.into(),
        }
    }
}

/// What stands there, in quotes; nothing at the end of the line.
fn quoted(found: &str) -> String {
    match found {
        "" => String::new(),
        _ => format!(", `{found}`"),
    }
}
