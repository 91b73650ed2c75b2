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
