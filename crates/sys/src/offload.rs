//! The offloads of an interface, as `ethtool -k` and `-K` show and set them,
//! through the old one-word commands of `SIOCETHTOOL` (linux/ethtool.h).
//!
//! The interface is looked up in the calling thread's network namespace.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketType};

/// An offload that `ethtool` can read and switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Offload {
    /// Checksums of received frames (`rx`).
    RxChecksum,
    /// Checksums of sent frames (`tx`). Without it the kernel drops `sg` and `tso` too.
    TxChecksum,
    /// Frames gathered from several pieces of memory (`sg`).
    ScatterGather,
    /// TCP segmentation (`tso`).
    TcpSegmentation,
    /// Segmentation in software, as late as possible (`gso`).
    GenericSegmentation,
    /// Received frames put together (`gro`).
    GenericReceive,
}

impl Offload {
    /// The short name that `ethtool -K` takes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().0
    }

    /// The short name, and the commands that read and that set it.
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

/// Whether `offload` is on at `interface`.
///
/// # Errors
/// No such interface, or one that does not know this offload.
pub fn is_on(interface: &str, offload: Offload) -> io::Result<bool> {
    let (_, read, _) = offload.row();
    Ok(command(interface, read, 0)? != 0)
}

/// Switches `offload` at `interface`.
///
/// # Errors
/// No such interface, one that cannot switch this, or no `CAP_NET_ADMIN`.
pub fn set(interface: &str, offload: Offload, on: bool) -> io::Result<()> {
    let (_, _, write) = offload.row();
    command(interface, write, u32::from(on)).map(drop)
}

/// `struct ethtool_value`.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

fn command(interface: &str, command: u32, data: u32) -> io::Result<u32> {
    let mut value = Value { command, data };
    // SAFETY: `ifreq` is plain data, for which all zeros are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (place, byte) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *place = byte.cast_signed();
    }
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    let socket: OwnedFd = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    // SAFETY: the descriptor is open; `request` is a whole `ifreq` whose name ends in
    // a zero and whose data points to a `Value`, which the commands above read and
    // write and which outlives the call.
    let status = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) };
    if status < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(value.data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_sends_without_checksums() {
        assert!(is_on("lo", Offload::TxChecksum).unwrap());
    }

    #[test]
    fn an_interface_that_is_not_there_is_an_error() {
        let error = is_on("nonesuch", Offload::TxChecksum).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
        assert!(is_on("a name longer than any", Offload::TxChecksum).is_err());
    }
}
