//! The fidelity of an encoding.

/// The permitted loss of an encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fidelity {
    /// The encoding is exact or fails. For commands.
    Lossless,
    /// The encoding omits parts that the version cannot express: a match may become wider, and an
    /// action may be missing. For statistics and events, so that one unusual rule does not hide all
    /// others from a controller.
    BestEffort,
}
