//! How a port's device is, at one moment.

use std::io;

use packet::MacAddr;
use sys::interface::{Ifindex, InterfaceName, Interfaces};

/// The state of a device. Of one that is gone, what is known is its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Its name now: interfaces can be renamed.
    pub name: String,
    /// The kernel's number for it; none if it is gone or no kernel knows it.
    pub index: Option<Ifindex>,
    /// Its Ethernet address.
    pub address: MacAddr,
    /// The longest payload of a frame, in bytes.
    pub mtu: u32,
    /// Whether it is administratively up.
    pub up: bool,
    /// Whether it is up and something is at the other end.
    pub carrier: bool,
    /// Its speed in Mbit/s, if it knows one.
    pub speed_mbps: Option<u32>,
    /// Whether both ends may send at once, if it knows.
    pub full_duplex: Option<bool>,
    /// Its driver, if it says.
    pub driver: Option<String>,
    /// How its frames come and go, where there is more than one way.
    pub way: Option<String>,
}

impl Status {
    /// The status of a device that is gone.
    pub(crate) fn gone(name: &InterfaceName) -> Self {
        Self {
            name: name.to_string(),
            ..Self::default()
        }
    }

    /// Asks the kernel for the status of the interface called `name`.
    pub(crate) fn ask(interfaces: &Interfaces, name: &InterfaceName) -> io::Result<Self> {
        let flags = interfaces.flags(name)?;
        let mode = interfaces.link_mode(name).unwrap_or_default();
        Ok(Self {
            name: name.to_string(),
            index: Some(interfaces.index(name)?),
            address: MacAddr(interfaces.hardware(name)?.address),
            mtu: interfaces.mtu(name)?,
            up: flags.up,
            carrier: flags.running,
            // Not every driver answers these two.
            speed_mbps: mode.speed_mbps,
            full_duplex: mode.full_duplex,
            driver: interfaces.driver(name).ok(),
            way: None,
        })
    }
}

/// Gives an interface an address, and another length of frames: those that are named.
pub(crate) fn equip(
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
