//! Limits of packet-ins: from each port, and to each controller.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use serde::Deserialize;

use super::ConfigError;

/// A rate in frames per second and a burst in frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PacketRate {
    per_second: NonZeroU32,
    burst: NonZeroU32,
}

impl PacketRate {
    /// The maximum rate, in frames per second: more than one core reads.
    pub const MAX: u32 = 10_000_000;

    /// Returns a rate. The default burst is that of a quarter of a second, as in Open vSwitch.
    /// Returns `None` if the rate or the burst is zero or above [`PacketRate::MAX`].
    #[must_use]
    pub fn new(per_second: u32, burst: Option<u32>) -> Option<Self> {
        let burst = burst.unwrap_or_else(|| (per_second / 4).max(1));
        if per_second > Self::MAX || burst > Self::MAX {
            return None;
        }
        Some(Self {
            per_second: NonZeroU32::new(per_second)?,
            burst: NonZeroU32::new(burst)?,
        })
    }

    /// Returns the rate, in frames per second.
    #[must_use]
    pub const fn per_second(self) -> NonZeroU32 {
        self.per_second
    }

    /// Returns the burst, in frames.
    #[must_use]
    pub const fn burst(self) -> NonZeroU32 {
        self.burst
    }
}

impl fmt::Display for PacketRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.per_second, self.burst)
    }
}

/// The limit of packet-ins from each port of a bridge: `RATE[:BURST]`, or `none`, the default. Without
/// a limit the event ring bounds them, and ports share it fairly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct PacketInRate(Option<PacketRate>);

impl PacketInRate {
    /// Returns the rate; `None` if unlimited.
    #[must_use]
    pub const fn rate(self) -> Option<PacketRate> {
        self.0
    }
}

impl FromStr for PacketInRate {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        if text == "none" {
            return Ok(Self(None));
        }
        let (rate, burst) = match text.split_once(':') {
            Some((rate, burst)) => (rate, Some(burst.parse::<u32>())),
            None => (text, None),
        };
        let rate = rate.parse().ok().zip(burst.transpose().ok());
        let rate = rate.and_then(|(rate, burst)| PacketRate::new(rate, burst));
        let invalid = || {
            let problem = format!(
                "'{text}' is not a rate: use RATE[:BURST] in frames per second and frames, \
                 each 1 to {}, as in 1000:250, or none",
                PacketRate::MAX
            );
            ConfigError::new("--packet-in-rate", problem)
        };
        rate.map(|rate| Self(Some(rate))).ok_or_else(invalid)
    }
}

impl TryFrom<String> for PacketInRate {
    type Error = ConfigError;

    fn try_from(text: String) -> Result<Self, ConfigError> {
        text.parse()
    }
}

/// The limit of packet-ins to each controller, with the names and bounds of Open vSwitch's database
/// (`ovs-vswitchd.conf.db(5)`, Controller). Without a rate there is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControllerRate {
    /// Packets per second.
    pub limit: Option<u32>,
    /// The burst, in packets.
    pub burst: Option<u32>,
}

/// The minimum values.
const LIMIT_MIN: u32 = 100;
const BURST_MIN: u32 = 25;

impl ControllerRate {
    /// Returns the rate.
    ///
    /// # Errors
    /// A value is out of bounds, or a burst is given without a rate.
    pub fn rate(self) -> Result<Option<PacketRate>, ConfigError> {
        let limit = checked("--controller-rate-limit", self.limit, LIMIT_MIN)?;
        let burst = checked("--controller-burst-limit", self.burst, BURST_MIN)?;
        match (limit, burst) {
            (None, Some(_)) => Err(ConfigError::new(
                "--controller-burst-limit",
                "a burst requires a rate: give --controller-rate-limit too",
            )),
            (None, None) => Ok(None),
            (Some(limit), burst) => Ok(PacketRate::new(limit, burst)),
        }
    }
}

fn checked(option: &str, value: Option<u32>, minimum: u32) -> Result<Option<u32>, ConfigError> {
    match value {
        Some(value) if !(minimum..=PacketRate::MAX).contains(&value) => Err(ConfigError::new(
            option,
            format!(
                "'{value}' is out of bounds: use {minimum} to {}",
                PacketRate::MAX
            ),
        )),
        value => Ok(value),
    }
}

/// Both limits of a bridge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policing {
    /// The limit from each port.
    pub port: Option<PacketRate>,
    /// The limit to each controller.
    pub controller: Option<PacketRate>,
}

impl fmt::Display for Policing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = |rate: Option<PacketRate>| {
            rate.map_or_else(|| "none".to_owned(), |rate| rate.to_string())
        };
        let (port, controller) = (words(self.port), words(self.controller));
        write!(
            f,
            "packet-in limit per port {port}, per controller {controller}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packet_in_rate_parses_with_and_without_burst() {
        let read = |text: &str| {
            text.parse::<PacketInRate>()
                .ok()
                .and_then(|rate| rate.rate())
        };
        assert_eq!(read("1000:30"), PacketRate::new(1000, Some(30)));
        assert_eq!(read("1000"), PacketRate::new(1000, Some(250)));
        assert_eq!(read("1"), PacketRate::new(1, Some(1)));
        assert_eq!("none".parse(), Ok(PacketInRate(None)));
        for invalid in [
            "",
            "0",
            "1:0",
            "-1",
            "10000001",
            "1:10000001",
            "1:2:3",
            "many",
        ] {
            let error = invalid.parse::<PacketInRate>().expect_err(invalid);
            assert!(error.to_string().contains("--packet-in-rate"), "{error}");
        }
    }

    #[test]
    fn controller_rate_has_the_bounds_of_open_vswitch() {
        let rate = |limit, burst| ControllerRate { limit, burst }.rate();
        assert_eq!(rate(None, None), Ok(None));
        assert_eq!(rate(Some(100), None), Ok(PacketRate::new(100, Some(25))));
        assert_eq!(
            rate(Some(200), Some(25)),
            Ok(PacketRate::new(200, Some(25)))
        );
        for (limit, burst) in [(Some(99), None), (Some(100), Some(24)), (None, Some(25))] {
            assert!(rate(limit, burst).is_err(), "{limit:?} {burst:?}");
        }
    }
}
