//! The forwarding modes of devices.

use std::fmt;

/// The source of a device's forwarding decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// Only the rules of its controller.
    OpenFlow,
    /// The device itself, without a controller: by learned MAC addresses, if it is a switch.
    Legacy,
}

impl Mode {
    /// All modes.
    pub const ALL: [Self; 2] = [Self::OpenFlow, Self::Legacy];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenFlow => "openflow",
            Self::Legacy => "legacy",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The behaviour of a device while its controller is disconnected (OF 1.3.5, 6.3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailMode {
    /// It continues with its rules.
    #[default]
    Secure,
    /// It forwards by itself, as in [`Mode::Legacy`].
    Standalone,
}

impl FailMode {
    /// Its name, as in Open vSwitch.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Secure => "secure",
            Self::Standalone => "standalone",
        }
    }
}
