//! Routes, addresses and neighbours as the kernel reports them. Values only.

use std::net::IpAddr;

use packet::MacAddr;

/// A route of the main table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelRoute {
    /// The destination prefix.
    pub to: IpAddr,
    /// The prefix length in bits.
    pub len: u8,
    /// The next hop, if there is one.
    pub gateway: Option<IpAddr>,
    /// The preferred source address, if there is one.
    pub source: Option<IpAddr>,
    /// The index of the egress interface.
    pub index: u32,
    /// The metric; the lowest wins.
    pub metric: u32,
}

/// An interface's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelAddress {
    /// The index of the interface.
    pub index: u32,
    /// The address.
    pub address: IpAddr,
}

/// An entry of the neighbour table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelNeighbour {
    /// The index of the interface.
    pub index: u32,
    /// The network address.
    pub address: IpAddr,
    /// The Ethernet address.
    pub mac: MacAddr,
}

/// A snapshot of the kernel's tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelTables {
    /// Routes.
    pub routes: Vec<KernelRoute>,
    /// The host's addresses.
    pub addresses: Vec<KernelAddress>,
    /// Directly connected hosts.
    pub neighbours: Vec<KernelNeighbour>,
}
