//! The fail mode of a bridge (OF 1.3.5, 6.3; ovs-vswitchd.conf.db(5), `Bridge`, `fail_mode`).

use serde::Deserialize;

use super::ConfigError;

/// The behaviour of a bridge while no controller is connected (OF 1.3.5, 6.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailMode {
    /// The bridge forwards as a learning switch.
    #[default]
    Standalone,
    /// The bridge follows its rules only.
    Secure,
}

impl std::fmt::Display for FailMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Standalone => "standalone",
            Self::Secure => "secure",
        })
    }
}

impl std::str::FromStr for FailMode {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        match text {
            "standalone" => Ok(Self::Standalone),
            "secure" => Ok(Self::Secure),
            _ => Err(ConfigError::new(
                "--fail-mode",
                format!("'{text}' is not a fail mode: use standalone or secure"),
            )),
        }
    }
}
