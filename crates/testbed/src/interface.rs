//! An interface by its name: counters, state, addresses and offloads.

use std::{fs, io};

use sys::interface::{Ifindex, InterfaceName};
pub use sys::offload::DeviceOffload;

use crate::{Failure, Namespace};

/// Counters of an interface since its creation, from `/proc/net/dev`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceCounters {
    /// Bytes received.
    pub rx_bytes: u64,
    /// Frames received.
    pub rx_packets: u64,
    /// Received frames that were dropped.
    pub rx_dropped: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Frames sent.
    pub tx_packets: u64,
    /// Frames to be sent that were dropped.
    pub tx_dropped: u64,
}

impl InterfaceCounters {
    /// Returns the difference between `earlier` and `self`.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            rx_bytes: self.rx_bytes.wrapping_sub(earlier.rx_bytes),
            rx_packets: self.rx_packets.wrapping_sub(earlier.rx_packets),
            rx_dropped: self.rx_dropped.wrapping_sub(earlier.rx_dropped),
            tx_bytes: self.tx_bytes.wrapping_sub(earlier.tx_bytes),
            tx_packets: self.tx_packets.wrapping_sub(earlier.tx_packets),
            tx_dropped: self.tx_dropped.wrapping_sub(earlier.tx_dropped),
        }
    }
}

impl Namespace {
    /// Returns the counters of `interface`.
    ///
    /// # Errors
    /// There is no such interface here.
    pub fn counters(&self, interface: &str) -> Result<InterfaceCounters, Failure> {
        let what = || format!("read the counters of {interface}");
        // `/proc/net` belongs to the process's first thread.
        let text = self
            .run(|| fs::read_to_string("/proc/thread-self/net/dev"))?
            .map_err(Failure::to(what()))?;
        parse(&text, interface)
            .ok_or_else(|| Failure::to(what())(io::Error::from(io::ErrorKind::NotFound)))
    }

    /// Switches an offload of `interface` on or off.
    ///
    /// # Errors
    /// There is no such interface here, or it cannot switch this.
    pub fn set_offload(
        &self,
        interface: &str,
        offload: DeviceOffload,
        on: bool,
    ) -> Result<(), Failure> {
        let state = if on { "on" } else { "off" };
        let what = format!("switch {} {state} at {interface}", offload.name());
        name(interface)
            .and_then(|name| self.interfaces().set_offload(&name, offload, on))
            .map_err(Failure::to(what))
    }

    /// True if an offload of `interface` is on.
    ///
    /// # Errors
    /// There is no such interface here, or it does not have this offload.
    pub fn offload(&self, interface: &str, offload: DeviceOffload) -> Result<bool, Failure> {
        let what = format!("read {} of {interface}", offload.name());
        name(interface)
            .and_then(|name| self.interfaces().offload(&name, offload))
            .map_err(Failure::to(what))
    }

    /// Sets `interface` up.
    ///
    /// # Errors
    /// There is no such interface here.
    pub fn set_up(&self, interface: &str) -> Result<(), Failure> {
        self.set_up_or_down(interface, true)
    }

    /// Sets `interface` down.
    ///
    /// # Errors
    /// There is no such interface here.
    pub fn set_down(&self, interface: &str) -> Result<(), Failure> {
        self.set_up_or_down(interface, false)
    }

    /// True if `interface` carries frames: the kernel enables it some time after both ends of its
    /// link are up, and drops frames until then.
    ///
    /// # Errors
    /// There is no such interface here.
    pub fn carries(&self, interface: &str) -> Result<bool, Failure> {
        let flags = name(interface).and_then(|name| self.interfaces().flags(&name));
        let flags = flags.map_err(Failure::to(format!("read the flags of {interface}")))?;
        if flags.running {
            // The kernel reports it a moment early, under a lock that it holds until then and that
            // setting an interface up takes too.
            self.set_up(interface)?;
        }
        Ok(flags.running)
    }

    /// Sets the MAC address of `interface`.
    ///
    /// # Errors
    /// There is no such interface here, or the address is not permitted.
    pub fn set_mac(&self, interface: &str, mac: [u8; 6]) -> Result<(), Failure> {
        name(interface)
            .and_then(|name| self.interfaces().set_address(&name, mac))
            .map_err(Failure::to(format!("address {interface}")))
    }

    /// Returns the MAC address of `interface`.
    ///
    /// # Errors
    /// There is no such interface here.
    pub fn mac(&self, interface: &str) -> Result<[u8; 6], Failure> {
        let hardware = name(interface).and_then(|name| self.interfaces().hardware(&name));
        let hardware = hardware.map_err(Failure::to(format!("read the address of {interface}")))?;
        Ok(hardware.address)
    }

    /// Returns the MTU of `interface`, in bytes above Ethernet.
    ///
    /// # Errors
    /// There is no such interface here.
    pub fn mtu(&self, interface: &str) -> Result<u32, Failure> {
        name(interface)
            .and_then(|name| self.interfaces().mtu(&name))
            .map_err(Failure::to(format!("read the MTU of {interface}")))
    }

    /// True if `interface` is administratively up.
    ///
    /// # Errors
    /// There is no such interface here.
    pub fn is_up(&self, interface: &str) -> Result<bool, Failure> {
        let flags = name(interface).and_then(|name| self.interfaces().flags(&name));
        let flags = flags.map_err(Failure::to(format!("read the flags of {interface}")))?;
        Ok(flags.up)
    }

    /// Returns the index of `interface`.
    pub(crate) fn index(&self, interface: &str) -> Result<Ifindex, Failure> {
        name(interface)
            .and_then(|name| self.interfaces().index(&name))
            .map_err(Failure::to(format!("find the interface {interface}")))
    }

    fn set_up_or_down(&self, interface: &str, up: bool) -> Result<(), Failure> {
        let state = if up { "up" } else { "down" };
        name(interface)
            .and_then(|name| self.interfaces().set_up(&name, up))
            .map_err(Failure::to(format!("set {interface} {state}")))
    }
}

pub(crate) fn name(interface: &str) -> io::Result<InterfaceName> {
    interface
        .parse()
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))
}

/// Parses the line of `interface`: eight receive columns, then eight transmit columns.
fn parse(text: &str, interface: &str) -> Option<InterfaceCounters> {
    let row = text.lines().find_map(|line| {
        let (name, rest) = line.split_once(':')?;
        (name.trim() == interface).then_some(rest)
    })?;
    let columns: Vec<u64> = row
        .split_whitespace()
        .map(|column| column.parse().ok())
        .collect::<Option<_>>()?;
    let at = |index: usize| columns.get(index).copied();
    Some(InterfaceCounters {
        rx_bytes: at(0)?,
        rx_packets: at(1)?,
        rx_dropped: at(3)?,
        tx_bytes: at(8)?,
        tx_packets: at(9)?,
        tx_dropped: at(11)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_parsed_by_name_and_column() {
        let text = "Inter-|   Receive | Transmit\n face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo colls carrier compressed\n    lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n  eth0:21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36\n";
        let expected = InterfaceCounters {
            rx_bytes: 21,
            rx_packets: 22,
            rx_dropped: 24,
            tx_bytes: 29,
            tx_packets: 30,
            tx_dropped: 32,
        };
        assert_eq!(parse(text, "eth0"), Some(expected));
        assert_eq!(parse(text, "eth"), None);
    }
}
