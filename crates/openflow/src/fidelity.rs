//! Whether a translation may lose something.

/// How true to the original a message has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fidelity {
    /// It says exactly what is meant, or it is not sent: commands.
    Lossless,
    /// It says as much as the version has words for, so that one odd rule does
    /// not cost a controller all others: statistics and events. A match may
    /// come out wider, and an action may be missing.
    BestEffort,
}
