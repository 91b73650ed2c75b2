//! Devices under test: their list with missing requirements, the files that describe others, and
//! the cleanup after ended runs.
//!
//! The crate `testbed` starts them.

mod description;
mod faults;
mod ledger;
mod listing;
mod strict;

pub use description::{Agent, ControllerBinding, Description};
pub use ledger::{CleanupResult, Ledger, STATE, clean};
pub use listing::{DeviceEntry, json, list, text};
pub use strict::BadDescription;

use testbed::{DeviceKind, Settings};

/// Returns the description file of a device, if it has one.
///
/// # Errors
/// The file cannot be read, or is invalid.
pub fn describe(kind: DeviceKind) -> Result<Option<Description>, BadDescription> {
    match kind {
        DeviceKind::External(file) => {
            let text = strict::read(file.path())?;
            Description::parse(&text, file.path()).map(Some)
        }
        _ => Ok(None),
    }
}

/// Returns the settings of the device's file for a bench.
pub(crate) fn settings(
    kind: DeviceKind,
    description: Option<&Description>,
) -> Result<Settings, BadDescription> {
    match (kind, description) {
        (DeviceKind::Impaired(Some(file)), _) => {
            let text = strict::read(file.path())?;
            let faults = faults::parse(&text, file.path())?;
            Ok(Settings::Impairments(Box::new(faults)))
        }
        (_, Some(described)) => Ok(Settings::External(Box::new(described.external.clone()))),
        _ => Ok(Settings::None),
    }
}

#[cfg(test)]
pub(crate) mod tests;
