//! Parse error with its position, the unexpected text, and the expected syntax.

/// Number of characters of the offending text that an error repeats.
const FOUND_MAX: usize = 40;

/// A text that is no flow, match or action.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column {}{}: {problem}", at + 1, quoted(found))]
pub struct ParseError {
    /// Offset in the text, in bytes.
    pub at: usize,
    /// Text at that position, or its beginning.
    pub found: String,
    /// Description of the error and of the expected syntax.
    pub problem: String,
}

impl ParseError {
    /// Returns an error about `found`, which begins `at` bytes into the text.
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

/// Returns the text in quotes; nothing at the end of the line.
fn quoted(found: &str) -> String {
    match found {
        "" => String::new(),
        _ => format!(", `{found}`"),
    }
}
