//! Errors of a run.

use std::io;

use controller::ControllerError;
use record::journal::JournalError;
use testbed::{Failure, Missing};

use crate::devices::BadDescription;

/// Invalid option; the text names the valid ones.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadOption(pub String);

/// Failed run. Each error names the remedy in one line, where there is one.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// An option is invalid.
    #[error("{0}")]
    Option(#[from] BadOption),
    /// A requirement is missing.
    #[error("{0}")]
    Missing(#[from] Missing),
    /// The directory has records.
    #[error("{0} has a run already: choose another directory, or resume that run (--resume)")]
    Taken(String),
    /// The directory has no records to resume.
    #[error("{0} has no run to resume: omit --resume")]
    NothingToResume(String),
    /// The run in the directory has other parameters.
    #[error(
        "the run in {directory} has other values ({differing}): repeat them, or choose another directory"
    )]
    OtherParameters {
        /// Directory.
        directory: String,
        /// Names of the differing parameters.
        differing: String,
    },
    /// The path of a socket exceeds the kernel's limit.
    #[error(
        "the path {0} is too long for a socket (107 bytes at most): choose a directory with a shorter path"
    )]
    PathTooLong(String),
    /// The records cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The device did not connect to its controller.
    #[error("{device}: {source}")]
    Controller {
        /// Device.
        device: String,
        /// Cause.
        source: ControllerError,
    },
    /// A device cannot be set up.
    #[error("{device}: {source}")]
    Device {
        /// Device.
        device: String,
        /// Cause.
        source: Failure,
    },
    /// The description file of a device is invalid.
    #[error(transparent)]
    Description(#[from] BadDescription),
    /// The test bed failed.
    #[error(transparent)]
    Failure(#[from] Failure),
    /// The report cannot be written.
    #[error("cannot write the report {path}: {source}")]
    Report {
        /// File.
        path: String,
        /// Cause.
        source: io::Error,
    },
}

impl LabError {
    /// Returns true if one device caused the error, and others can be measured.
    pub(crate) const fn is_of_one_device(&self) -> bool {
        matches!(self, Self::Controller { .. } | Self::Device { .. })
    }
}
