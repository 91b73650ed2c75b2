//! The ways in which a device decides where frames go.

use std::fmt;

/// How a device decides where frames go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// By the rules of its controller, and by nothing else.
    OpenFlow,
    /// By itself, without a controller: by the addresses that it has learned, if it is a switch.
    Legacy,
}

impl Mode {
    /// Both.
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

/// What a device that has a controller does while that is gone (OF 1.3.5, 6.3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailMode {
    /// It goes on by the rules that it has.
    #[default]
    Secure,
    /// It forwards by itself, as in [`Mode::Legacy`].
    Standalone,
}

impl FailMode {
    /// Its name, as Open vSwitch has it too.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Secure => "secure",
            Self::Standalone => "standalone",
        }
    }
}
