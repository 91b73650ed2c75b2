//! A controller of a bridge: its address, reconnection, probes and limits.

use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;

use super::{ConfigError, ControllerTarget, PacketRate};

/// Default maximum interval between two connection attempts (ovs-vswitchd.conf.db(5),
/// `max_backoff`).
const BACKOFF_MAX: Duration = Duration::from_secs(8);

/// Default time without messages after which the switch sends an echo request
/// (ovs-vswitchd.conf.db(5), `inactivity_probe`).
const PROBE: Duration = Duration::from_secs(5);

/// A controller to which a bridge connects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct ControllerConfig {
    /// The address.
    pub target: ControllerTarget,
    /// The connection options.
    pub options: ControllerOptions,
}

/// Options of a controller connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ControllerOptions {
    /// Maximum interval between two connection attempts.
    pub max_backoff: Duration,
    /// Time without messages after which the switch sends an echo request; `None` disables probes.
    pub inactivity_probe: Option<Duration>,
    /// Asynchronous messages are enabled before the controller configures them
    /// (ovs-vswitchd.conf.db(5), `enable_async_messages`).
    pub asynchronous: bool,
    /// Limit of the packet-ins, if it differs from that of the bridge.
    pub rate_limit: Option<PacketRate>,
    /// The DSCP of the connection's packets (RFC 2474).
    pub dscp: Option<u8>,
    /// The connection may pass through the bridge itself (ovs-vswitchd.conf.db(5),
    /// `connection_mode`).
    pub in_band: bool,
}

impl ControllerConfig {
    /// Returns true if a connection with these options lasts when the options become those of
    /// `other`: only the timing of probes and of connection attempts differs.
    pub(crate) fn shares_connection(&self, other: &Self) -> bool {
        let options = ControllerOptions {
            max_backoff: other.options.max_backoff,
            inactivity_probe: other.options.inactivity_probe,
            ..self.options
        };
        self.target == other.target && options == other.options
    }

    /// Returns the configuration in `others` with which it shares its connection, the same one if
    /// it is there.
    pub fn counterpart<'a>(
        &self,
        mut others: impl Iterator<Item = &'a Self> + Clone,
    ) -> Option<&'a Self> {
        let same = others.clone().find(|other| *other == self);
        same.or_else(|| others.find(|other| self.shares_connection(other)))
    }
}

impl ControllerOptions {
    /// Returns the options for tools on this machine, without probes, as in Open vSwitch: a tool
    /// may be busy for long, and the end of its connection is detected at once.
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
