//! A controller that a bridge goes to, and how: where it is met, how long the pauses are
//! while it is not there, when it is asked whether it is.

use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;

use super::{ConfigError, ControllerTarget, PacketRate};

/// The longest pause between two tries when nobody says otherwise
/// (ovs-vswitchd.conf.db(5), `max_backoff`).
const BACKOFF_MAX: Duration = Duration::from_secs(8);

/// After how long a silence a controller is asked when nobody says otherwise
/// (ovs-vswitchd.conf.db(5), `inactivity_probe`).
const PROBE: Duration = Duration::from_secs(5);

/// A controller that a bridge goes to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct ControllerConfig {
    /// Where it is met.
    pub target: ControllerTarget,
    /// How it is spoken with.
    pub options: ControllerOptions,
}

/// How a controller is spoken with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ControllerOptions {
    /// The longest pause between two tries to reach it.
    pub max_backoff: Duration,
    /// After how long a silence it is asked whether it is there; never, if absent.
    pub inactivity_probe: Option<Duration>,
    /// Whether it is told unasked what happens, before it says what it wants to be told
    /// (ovs-vswitchd.conf.db(5), `enable_async_messages`).
    pub asynchronous: bool,
    /// How many frames it is sent, if that is another number than its bridge's.
    pub rate_limit: Option<PacketRate>,
    /// The class of service that its messages travel in (RFC 2474).
    pub dscp: Option<u8>,
    /// Whether the way there may lead through the bridge itself (ovs-vswitchd.conf.db(5),
    /// `connection_mode`).
    pub in_band: bool,
}

impl ControllerOptions {
    /// For tools on this machine, which may be busy for long and whose end is heard of at
    /// once: they are not asked whether they are there, as by Open vSwitch.
    pub fn for_tools() -> Self {
        Self {
            inactivity_probe: None,
            ..Self::default()
        }
    }
}

impl Default for ControllerOptions {
    fn default() -> Self {
        Self {
            max_backoff: BACKOFF_MAX,
            inactivity_probe: Some(PROBE),
            asynchronous: true,
            rate_limit: None,
            dscp: None,
            in_band: false,
        }
    }
}

impl From<ControllerTarget> for ControllerConfig {
    fn from(target: ControllerTarget) -> Self {
        Self {
            target,
            options: ControllerOptions::default(),
        }
    }
}

impl FromStr for ControllerConfig {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        text.parse().map(ControllerTarget::into)
    }
}

impl TryFrom<String> for ControllerConfig {
    type Error = ConfigError;

    fn try_from(text: String) -> Result<Self, ConfigError> {
        text.parse()
    }
}

impl std::fmt::Display for ControllerConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.target.fmt(f)
    }
}
