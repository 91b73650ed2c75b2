//! What the system says of an interface.

use packet::MacAddr;

/// An interface as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The system's number for it; another interface of the same name has another.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Whether it is administratively up.
    pub up: bool,
    /// Whether there is a carrier.
    pub carrier: bool,
    /// Its Ethernet address, if it has one.
    pub hw_addr: Option<MacAddr>,
}

/// News of interfaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// The interface is there, new or changed.
    Present(Link),
    /// The interface is gone.
    Gone {
        /// The number it had.
        index: u32,
    },
    /// All interfaces that there are: others are gone.
    All(Vec<Link>),
}
