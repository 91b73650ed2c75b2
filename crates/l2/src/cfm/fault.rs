//! The faults of a maintenance point.

use std::fmt;

/// A set of faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CfmFault(u8);

impl CfmFault {
    /// No fault.
    pub const NONE: Self = Self(0);
    /// No message arrived.
    pub const RECEIVE: Self = Self(1);
    /// A remote point receives no messages.
    pub const REMOTE_DEFECT: Self = Self(1 << 1);
    /// A message of another maintenance association arrived.
    pub const ASSOCIATION: Self = Self(1 << 2);
    /// A message with our own identifier arrived.
    pub const LOOPBACK: Self = Self(1 << 3);
    /// There are more remote points than a point can watch.
    pub const OVERFLOW: Self = Self(1 << 4);
    /// An operator has set the fault.
    pub const OVERRIDE: Self = Self(1 << 5);

    /// The faults by the names in the database.
    const NAMES: [(Self, &'static str); 6] = [
        (Self::RECEIVE, "recv"),
        (Self::REMOTE_DEFECT, "rdi"),
        (Self::ASSOCIATION, "maid"),
        (Self::LOOPBACK, "loopback"),
        (Self::OVERFLOW, "overflow"),
        (Self::OVERRIDE, "override"),
    ];

    /// Returns true if there is no fault.
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Adds faults.
    pub const fn add(&mut self, faults: Self) {
        self.0 |= faults.0;
    }

    /// Returns the names of the faults.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let names = Self::NAMES.into_iter();
        names.filter_map(move |(fault, name)| (self.0 & fault.0 != 0).then_some(name))
    }
}

impl fmt::Display for CfmFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names().collect::<Vec<_>>().join(" "))
    }
}
