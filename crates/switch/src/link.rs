//! The state of network interfaces as the kernel reports it.

use packet::MacAddr;

/// The present state of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The kernel's interface index; a new interface of the same name has another.
    pub index: u32,
    /// The name.
    pub name: String,
    /// True if it is administratively up.
    pub up: bool,
    /// True if there is a carrier.
    pub carrier: bool,
    /// The Ethernet address, if the interface has one.
    pub hw_addr: Option<MacAddr>,
}

/// A change of the interfaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// An interface is new or changed.
    Present(Link),
    /// An interface was removed.
    Gone {
        /// The index it had.
        index: u32,
    },
    /// All present interfaces; the others were removed.
    All(Vec<Link>),
}
