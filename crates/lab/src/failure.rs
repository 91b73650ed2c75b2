//! Why a run ends without results.

use std::io;

use controller::ControllerError;
use record::BadOption;
use record::journal::JournalError;
use testbed::{Failure, Missing};

use crate::devices::BadDescription;

/// A run that could not be done. Each says in one line what to do, where anything can be done.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// An option makes no sense.
    #[error("{0}")]
    Option(#[from] BadOption),
    /// The machine lacks something.
    #[error("{0}")]
    Missing(#[from] Missing),
    /// The directory has records already.
    #[error("{0} holds a run already: choose another directory, or go on with that run (--resume)")]
    Taken(String),
    /// There is nothing to go on with.
    #[error("{0} holds no run to go on with: leave out --resume")]
    NothingToResume(String),
    /// The run in the directory was made otherwise.
    #[error(
        "the run in {directory} was made with other parameters ({differing}): repeat them, or choose another directory"
    )]
    OtherParameters {
        /// The directory.
        directory: String,
        /// Which differ.
        differing: String,
    },
    /// A socket's path does not fit the kernel's limit.
    #[error(
        "the path {0} is too long for a socket (107 bytes at most): choose a directory with a shorter path"
    )]
    PathTooLong(String),
    /// The records.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A device and its controller did not come together.
    #[error("{device}: {source}")]
    Controller {
        /// The device.
        device: String,
        /// The reason.
        source: ControllerError,
    },
    /// A device could not be set up.
    #[error("{device}: {source}")]
    Device {
        /// The device.
        device: String,
        /// The reason.
        source: Failure,
    },
    /// The file of a device.
    #[error(transparent)]
    Description(#[from] BadDescription),
    /// The test bed.
    #[error(transparent)]
    Failure(#[from] Failure),
    /// The report could not be written.
    #[error("cannot write the report {path}: {source}")]
    Report {
        /// The file.
        path: String,
        /// The reason.
        source: io::Error,
    },
}

impl LabError {
    /// Whether it is one device's doing, and others may be measured all the same.
    pub(crate) const fn is_the_devices(&self) -> bool {
        matches!(self, Self::Controller { .. } | Self::Device { .. })
    }
}
