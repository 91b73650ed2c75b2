//! Dummy ports: interfaces without a device, for tests (ovs-vswitchd(8), `--enable-dummy`).

use std::str::FromStr;

use super::ConfigError;

/// The set of interfaces that become dummy ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DummyMode {
    /// No interface.
    #[default]
    None,
    /// Interfaces of type `dummy`, and interfaces of a bridge of that type.
    Typed,
    /// As `Typed`, and system interfaces.
    System,
    /// As `Typed`, and all interfaces that would be devices.
    All,
}

/// The type of dummy bridges and interfaces.
const TYPE: &str = "dummy";

/// Types of dummy interfaces, which Open vSwitch distinguishes.
const TYPES: [&str; 3] = [TYPE, "dummy-internal", "dummy-pmd"];

/// The types of devices.
const DEVICES: [&str; 7] = [
    "",
    "system",
    "internal",
    "tap",
    "afxdp",
    "afxdp-nonpmd",
    "dpdk",
];

impl DummyMode {
    /// Returns whether dummy ports are enabled.
    #[must_use]
    pub fn is_enabled(self) -> bool {
        self != Self::None
    }

    /// Returns whether the `LOCAL` interface of a bridge of this type is a dummy port.
    pub fn includes_bridge(self, kind: &str) -> bool {
        self == Self::All || (self.is_enabled() && kind == TYPE)
    }

    /// Returns whether an interface of this type, of a dummy bridge or another, is a dummy port.
    pub fn includes_interface(self, kind: &str, is_dummy_bridge: bool) -> bool {
        let is_typed = TYPES.contains(&kind) || (is_dummy_bridge && kind == "internal");
        match self {
            Self::None => false,
            Self::Typed => is_typed,
            Self::System => is_typed || matches!(kind, "" | "system"),
            Self::All => is_typed || DEVICES.contains(&kind),
        }
    }
}

impl FromStr for DummyMode {
    type Err = ConfigError;

    /// Parses the value of `--enable-dummy=`; the empty text is the option without a value.
    fn from_str(text: &str) -> Result<Self, ConfigError> {
        match text {
            "" => Ok(Self::Typed),
            "system" => Ok(Self::System),
            "override" => Ok(Self::All),
            other => Err(ConfigError::new(
                "--enable-dummy",
                format!("'{other}': use --enable-dummy, =system or =override"),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dummy_mode_selects_interfaces_and_bridges() {
        let included = |mode: DummyMode| {
            let kinds = ["dummy", "", "internal", "tap", "patch", "vxlan"];
            kinds.map(|kind| mode.includes_interface(kind, false))
        };
        assert_eq!(included(DummyMode::None), [false; 6]);
        let typed: DummyMode = "".parse().expect("known");
        assert_eq!(included(typed), [true, false, false, false, false, false]);
        assert!(typed.includes_bridge("dummy") && !typed.includes_bridge("netdev"));
        assert!(typed.includes_interface("internal", true));
        let system = "system".parse().expect("known");
        assert_eq!(included(system), [true, true, false, false, false, false]);
        let all: DummyMode = "override".parse().expect("known");
        assert_eq!(included(all), [true, true, true, true, false, false]);
        assert!(all.includes_bridge("") && "some".parse::<DummyMode>().is_err());
    }
}
