//! Devices under test, as a user sees them: which there are and what each lacks here, files
//! that describe more of them, and what an ended run may have left behind.
//!
//! How they are started is the testbed's business.

mod description;
mod faults;
mod ledger;
mod listing;
mod strict;

pub use description::{Agent, Callee, Description};
pub use ledger::{Ledger, Left, STATE, clean};
pub use listing::{Listed, json, list, text};
pub use strict::BadDescription;

use testbed::{DeviceKind, Settings};

/// What the file of a device says, if it has one.
///
/// # Errors
/// It cannot be read, or says what makes no sense.
pub fn describe(kind: DeviceKind) -> Result<Option<Description>, BadDescription> {
    match kind {
        DeviceKind::External(file) => {
            let text = strict::read(file.path())?;
            Description::parse(&text, file.path()).map(Some)
        }
        _ => Ok(None),
    }
}

/// What a bench must know of the device's file.
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
