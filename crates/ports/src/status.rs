//! State of a port's device.

use std::io;

use packet::MacAddr;
use sys::interface::{Ifindex, InterfaceName, Interfaces};

/// State of a device. Of a removed device only the name is set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Current name; interfaces can be renamed.
    pub name: String,
    /// Interface index; `None` if the device was removed or is unknown to the kernel.
    pub index: Option<Ifindex>,
    /// Ethernet address.
    pub address: MacAddr,
    /// MTU: maximum payload of a frame, in bytes.
    pub mtu: u32,
    /// True if administratively up.
    pub up: bool,
    /// True if up and with a carrier.
    pub carrier: bool,
    /// Speed in Mbit/s, if the device reports one.
    pub speed_mbps: Option<u32>,
    /// True for full duplex, if the device reports it.
    pub full_duplex: Option<bool>,
    /// Name of the driver, if the device reports one.
    pub driver: Option<String>,
    /// Description of the I/O mode, for backends with several.
    pub io_mode: Option<String>,
}

impl Status {
    /// Returns the status of a removed device.
    pub(crate) fn removed(name: &InterfaceName) -> Self {
        Self {
            name: name.to_string(),
            ..Self::default()
        }
    }

    /// Queries the kernel for the status of the interface called `name`.
    pub(crate) fn query(interfaces: &Interfaces, name: &InterfaceName) -> io::Result<Self> {
        let flags = interfaces.flags(name)?;
        let mode = interfaces.link_mode(name).unwrap_or_default();
        Ok(Self {
            name: name.to_string(),
            index: Some(interfaces.index(name)?),
            address: MacAddr(interfaces.hardware(name)?.address),
            mtu: interfaces.mtu(name)?,
            up: flags.up,
            carrier: flags.running,
            // Not every driver reports speed and duplex.
            speed_mbps: mode.speed_mbps,
            full_duplex: mode.full_duplex,
            driver: interfaces.driver(name).ok(),
            io_mode: None,
        })
    }
}

/// Sets address and MTU of an interface, where given.
pub(crate) fn set_link(
    interfaces: &Interfaces,
    name: &InterfaceName,
    address: Option<MacAddr>,
    mtu: Option<u32>,
) -> io::Result<()> {
    if let Some(MacAddr(address)) = address
        && interfaces.hardware(name)?.address != address
    {
        interfaces.set_address(name, address)?;
    }
    match mtu {
        Some(mtu) if interfaces.mtu(name)? != mtu => interfaces.set_mtu(name, mtu),
        _ => Ok(()),
    }
}
