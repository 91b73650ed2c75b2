//! The number of auxiliary connections to each controller of a bridge.

use std::str::FromStr;

use serde::Deserialize;

use super::ConfigError;

/// A number of auxiliary connections (OF 1.3.5, 6.3), zero by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "u8")]
pub struct AuxiliaryCount(u8);

impl AuxiliaryCount {
    /// The maximum: as many as a controller has cores to read them. Each costs as much as any other
    /// connection.
    pub const MAX: u8 = 16;

    /// Returns the number.
    #[must_use]
    pub const fn count(self) -> u8 {
        self.0
    }
}

impl FromStr for AuxiliaryCount {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let count = text.parse::<u8>().ok();
        let count = count.and_then(|count| Self::try_from(count).ok());
        count.ok_or_else(|| invalid(text))
    }
}

impl TryFrom<u8> for AuxiliaryCount {
    type Error = ConfigError;

    fn try_from(count: u8) -> Result<Self, ConfigError> {
        if count > Self::MAX {
            return Err(invalid(&count.to_string()));
        }
        Ok(Self(count))
    }
}

fn invalid(text: &str) -> ConfigError {
    let problem = format!(
        "'{text}' is not a number of auxiliary connections: use 0 to {}",
        AuxiliaryCount::MAX
    );
    ConfigError::new("--auxiliary", problem)
}
