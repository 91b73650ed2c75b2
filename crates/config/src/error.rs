//! The error of a configuration.

/// A configuration error: the option at fault, the problem, and the correct form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{option}: {problem}")]
pub struct ConfigError {
    /// The option or key at fault, as the user wrote it.
    pub option: String,
    /// The problem and the correct form.
    pub problem: String,
}

impl ConfigError {
    /// Returns an error about `option`.
    pub fn new(option: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            option: option.into(),
            problem: problem.into(),
        }
    }
}
