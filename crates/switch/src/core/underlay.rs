//! What the kernel knows of ways to other hosts, as it tells it. Values only.

use std::net::IpAddr;

use packet::MacAddr;

/// A route of the main table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KernelRoute {
    /// To addresses that begin so ...
    pub(crate) to: IpAddr,
    /// ... in so many bits.
    pub(crate) len: u8,
    /// By this router, if by any.
    pub(crate) gateway: Option<IpAddr>,
    /// From this address, if it is said.
    pub(crate) source: Option<IpAddr>,
    /// By the interface of this number.
    pub(crate) index: u32,
    /// The less, the better.
    pub(crate) metric: u32,
}

/// An interface's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KernelAddress {
    /// The number of the interface.
    pub(crate) index: u32,
    /// The address.
    pub(crate) address: IpAddr,
}

/// Where a host is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KernelNeighbour {
    /// Behind the interface of this number.
    pub(crate) index: u32,
    /// The host.
    pub(crate) address: IpAddr,
    /// Its station.
    pub(crate) mac: MacAddr,
}

/// All of it at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KernelTables {
    /// Routes.
    pub(crate) routes: Vec<KernelRoute>,
    /// The host's addresses.
    pub(crate) addresses: Vec<KernelAddress>,
    /// Other hosts that are directly behind an interface.
    pub(crate) neighbours: Vec<KernelNeighbour>,
}
