//! What the kernel knows of ways to other hosts, as it tells it. Values only.

use std::net::IpAddr;

use packet::MacAddr;

/// A route of the main table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelRoute {
    /// To addresses that begin so ...
    pub to: IpAddr,
    /// ... in so many bits.
    pub len: u8,
    /// By this router, if by any.
    pub gateway: Option<IpAddr>,
    /// From this address, if it is said.
    pub source: Option<IpAddr>,
    /// By the interface of this number.
    pub index: u32,
    /// The less, the better.
    pub metric: u32,
}

/// An interface's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelAddress {
    /// The number of the interface.
    pub index: u32,
    /// The address.
    pub address: IpAddr,
}

/// Where a host is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelNeighbour {
    /// Behind the interface of this number.
    pub index: u32,
    /// The host.
    pub address: IpAddr,
    /// Its station.
    pub mac: MacAddr,
}

/// All of it at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelTables {
    /// Routes.
    pub routes: Vec<KernelRoute>,
    /// The host's addresses.
    pub addresses: Vec<KernelAddress>,
    /// Other hosts that are directly behind an interface.
    pub neighbours: Vec<KernelNeighbour>,
}
