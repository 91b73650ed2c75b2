//! Offloads of an interface, as `ethtool -k` and `-K` show and set them, by the one-word commands
//! of `SIOCETHTOOL` (linux/ethtool.h).

use std::io;

use crate::ethtool::EthtoolValue;
use crate::interface::{self, InterfaceName, Interfaces};

/// An offload that can be read and set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeviceOffload {
    /// Verification of received checksums (`rx`).
    RxChecksum,
    /// Computation of transmitted checksums (`tx`). Without it the kernel also disables `tso`.
    TxChecksum,
    /// Transmission from several memory fragments (`sg`).
    ScatterGather,
    /// TCP segmentation (`tso`).
    TcpSegmentation,
    /// Segmentation in software, immediately before the driver (`gso`).
    GenericSegmentation,
    /// Coalescing of received frames (`gro`).
    GenericReceive,
}

impl DeviceOffload {
    /// Short name in `ethtool -K`.
    ///
    /// ```
    /// assert_eq!(sys::offload::DeviceOffload::TcpSegmentation.name(), "tso");
    /// ```
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().0
    }

    /// Short name, read command and write command.
    const fn row(self) -> (&'static str, u32, u32) {
        match self {
            Self::RxChecksum => ("rx", 0x14, 0x15),
            Self::TxChecksum => ("tx", 0x16, 0x17),
            Self::ScatterGather => ("sg", 0x18, 0x19),
            Self::TcpSegmentation => ("tso", 0x1e, 0x1f),
            Self::GenericSegmentation => ("gso", 0x23, 0x24),
            Self::GenericReceive => ("gro", 0x2b, 0x2c),
        }
    }
}

impl Interfaces {
    /// True if `offload` is enabled.
    ///
    /// # Errors
    /// `ENODEV`: no interface has this name. `EOPNOTSUPP`: the interface does not support this
    /// offload.
    pub fn offload(&self, name: &InterfaceName, offload: DeviceOffload) -> io::Result<bool> {
        let (_, read, _) = offload.row();
        Ok(self.command(name, read, 0)? != 0)
    }

    /// Enables or disables `offload`.
    ///
    /// # Errors
    /// `ENODEV`: no interface has this name. `EOPNOTSUPP`: the interface cannot change this
    /// offload. `EPERM`: `CAP_NET_ADMIN` is missing.
    pub fn set_offload(
        &self,
        name: &InterfaceName,
        offload: DeviceOffload,
        on: bool,
    ) -> io::Result<()> {
        let (_, _, write) = offload.row();
        self.command(name, write, u32::from(on)).map(drop)
    }

    fn command(&self, name: &InterfaceName, command: u32, data: u32) -> io::Result<u32> {
        let mut value = EthtoolValue {
            command,
            value: data,
        };
        let mut request = interface::ifreq(name);
        request.ifr_ifru.ifru_data = std::ptr::from_mut(&mut value).cast();
        // SAFETY: the request points to an `EthtoolValue`, which is all that the commands in
        // `DeviceOffload::row` read and write, and which outlives the call.
        unsafe { interface::ioctl(self.socket(), libc::SIOCETHTOOL, &mut request)? };
        Ok(value.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_interface_has_transmit_checksum_offload() {
        let interfaces = Interfaces::current().unwrap();
        let name = "lo".parse().unwrap();
        assert!(
            interfaces
                .offload(&name, DeviceOffload::TxChecksum)
                .unwrap()
        );
    }

    #[test]
    fn unknown_interface_returns_enodev() {
        let interfaces = Interfaces::current().unwrap();
        let name = "nonesuch".parse().unwrap();
        let error = interfaces
            .offload(&name, DeviceOffload::TxChecksum)
            .unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
    }
}
