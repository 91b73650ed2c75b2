//! A controller that a bridge goes to, and how: where it is met, how long the pauses are
//! while it is not there, when it is asked whether it is.

use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;

use super::{ConfigError, Rate, Target};

/// The longest pause between two tries when nobody says otherwise
/// (ovs-vswitchd.conf.db(5), `max_backoff`).
const BACKOFF_MAX: Duration = Duration::from_secs(8);

/// After how long a silence a controller is asked when nobody says otherwise
/// (ovs-vswitchd.conf.db(5), `inactivity_probe`).
const PROBE: Duration = Duration::from_secs(5);

/// A controller that a bridge goes to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Controller {
    /// Where it is met.
    pub target: Target,
    /// How it is spoken with.
    pub tuning: Tuning,
}

/// How a controller is spoken with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tuning {
    /// The longest pause between two tries to reach it.
    pub max_backoff: Duration,
    /// After how long a silence it is asked whether it is there; never, if absent.
    pub inactivity_probe: Option<Duration>,
    /// Whether it is told unasked what happens, before it says what it wants to be told
    /// (ovs-vswitchd.conf.db(5), `enable_async_messages`).
    pub asynchronous: bool,
    /// How many frames it is sent, if that is another number than its bridge's.
    pub own_rate: Option<Rate>,
    /// The class of service that its messages travel in (RFC 2474).
    pub dscp: Option<u8>,
    /// Whether the way there may lead through the bridge itself (ovs-vswitchd.conf.db(5),
    /// `connection_mode`).
    pub in_band: bool,
}

impl Tuning {
    /// For tools on this machine, which may be busy for long and whose end is heard of at
    /// once: they are not asked whether they are there, as by Open vSwitch.
    pub fn of_tools() -> Self {
        Self {
            inactivity_probe: None,
            ..Self::default()
        }
    }
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            max_backoff: BACKOFF_MAX,
            inactivity_probe: Some(PROBE),
            asynchronous: true,
            own_rate: None,
            dscp: None,
            in_band: false,
        }
    }
}

impl From<Target> for Controller {
    fn from(target: Target) -> Self {
        Self {
            target,
            tuning: Tuning::default(),
        }
    }
}

impl FromStr for Controller {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        text.parse().map(Target::into)
    }
}

impl TryFrom<String> for Controller {
    type Error = ConfigError;

    fn try_from(text: String) -> Result<Self, ConfigError> {
        text.parse()
    }
}

impl std::fmt::Display for Controller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.target.fmt(f)
    }
}
