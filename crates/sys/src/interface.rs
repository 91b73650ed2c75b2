//! Interfaces of one network namespace: names, indices, flags, addresses and MTUs, by the ioctls of
//! netdevice(7).
//!
//! Each call queries or changes one property. Notifications of changes are rtnetlink's.

use std::fmt;
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::str::FromStr;

use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with};

use crate::namespace;

/// Index of an interface, unique in its namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ifindex(pub u32);

/// A valid interface name.
///
/// ```
/// use sys::interface::InterfaceName;
///
/// let name: InterfaceName = "eth0.5".parse().unwrap();
/// assert_eq!(name.as_str(), "eth0.5");
/// for invalid in ["", "..", "a/b", "sixteen-letters-"] {
///     assert!(invalid.parse::<InterfaceName>().is_err());
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InterfaceName(String);

/// The text is not a valid interface name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidInterfaceName;

impl InterfaceName {
    /// Maximum length in bytes (`IFNAMSIZ` less the terminating zero).
    pub const LEN_MAX: usize = libc::IFNAMSIZ - 1;

    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name as a field of the kernel's structures, padded with zeros.
    pub(crate) fn to_field(&self) -> [libc::c_char; libc::IFNAMSIZ] {
        let mut field = [0; libc::IFNAMSIZ];
        for (to, from) in field.iter_mut().zip(self.0.bytes()) {
            *to = libc::c_char::from_ne_bytes([from]);
        }
        field
    }

    /// Parses the field of a kernel's structure.
    pub(crate) fn from_field(field: &[libc::c_char]) -> io::Result<Self> {
        text(field).parse().map_err(|_| {
            io::Error::new(io::ErrorKind::InvalidData, "the interface name is not text")
        })
    }
}

/// Returns the text of a zero-terminated field.
pub(crate) fn text(field: &[libc::c_char]) -> String {
    let bytes = field.iter().map(|c| c.to_ne_bytes()[0]);
    let bytes: Vec<u8> = bytes.take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

impl FromStr for InterfaceName {
    type Err = InvalidInterfaceName;

    /// Accepts the names that the kernel's `dev_valid_name` accepts.
    fn from_str(text: &str) -> Result<Self, InvalidInterfaceName> {
        let fits = (1..=Self::LEN_MAX).contains(&text.len());
        let is_forbidden = |c: char| c == '/' || c == ':' || c == '\0' || c.is_whitespace();
        if !fits || text == "." || text == ".." || text.contains(is_forbidden) {
            return Err(InvalidInterfaceName);
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for InterfaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for InvalidInterfaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "not an interface name: must be 1 to {} bytes without spaces, `/` and `:`",
            InterfaceName::LEN_MAX
        )
    }
}

impl std::error::Error for InvalidInterfaceName {}

/// Flags of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceFlags {
    /// Administratively up (`IFF_UP`).
    pub up: bool,
    /// Up and with a carrier (`IFF_RUNNING`).
    pub running: bool,
    /// Promiscuous (`IFF_PROMISC`).
    pub promiscuous: bool,
}

/// Link-layer address of an interface and its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HardwareAddress {
    /// Hardware type, `ARPHRD_*`.
    pub kind: u16,
    /// First six bytes of the address.
    pub address: [u8; 6],
}

impl HardwareAddress {
    /// True if the frames are addressed by Ethernet addresses. Frames of the loopback interface
    /// have an Ethernet header too, with zero addresses.
    #[must_use]
    pub fn is_ethernet(&self) -> bool {
        self.kind == libc::ARPHRD_ETHER
    }
}

/// A socket for the interfaces of one network namespace, whichever thread uses it.
pub struct Interfaces {
    socket: OwnedFd,
}

impl Interfaces {
    /// Opens the calling thread's network namespace.
    ///
    /// # Errors
    /// The process has no file descriptor left.
    pub fn current() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)?;
        Ok(Self { socket })
    }

    /// Opens the network namespace that `namespace` refers to.
    ///
    /// # Errors
    /// `namespace` is not a network namespace, or the process may not enter it.
    pub fn in_namespace(namespace: BorrowedFd<'_>) -> io::Result<Self> {
        namespace::run(namespace, Self::current)?
    }

    /// Returns the index of the interface called `name`.
    ///
    /// # Errors
    /// `ENODEV`: no interface has this name.
    pub fn index(&self, name: &InterfaceName) -> io::Result<Ifindex> {
        Ok(Ifindex(netdevice::name_to_index(
            &self.socket,
            name.as_str(),
        )?))
    }

    /// Returns the current name of an interface.
    ///
    /// # Errors
    /// `ENODEV` or `ENXIO`: no interface has this index.
    pub fn name(&self, index: Ifindex) -> io::Result<InterfaceName> {
        let name = netdevice::index_to_name(&self.socket, index.0)?;
        name.parse().map_err(io::Error::other)
    }

    /// Returns the flags of an interface.
    ///
    /// # Errors
    /// `ENODEV`: no interface has this name.
    pub fn flags(&self, name: &InterfaceName) -> io::Result<InterfaceFlags> {
        let flags = libc::c_int::from(self.raw_flags(name)?);
        Ok(InterfaceFlags {
            up: flags & libc::IFF_UP != 0,
            running: flags & libc::IFF_RUNNING != 0,
            promiscuous: flags & libc::IFF_PROMISC != 0,
        })
    }

    /// Sets the interface administratively up or down.
    ///
    /// # Errors
    /// `ENODEV`: no interface has this name. `EPERM`: `CAP_NET_ADMIN` is missing.
    pub fn set_up(&self, name: &InterfaceName, up: bool) -> io::Result<()> {
        const UP: libc::c_short = 1; // IFF_UP
        let flags = self.raw_flags(name)?;
        let changed = if up { flags | UP } else { flags & !UP };
        if changed == flags {
            return Ok(());
        }
        let mut request = ifreq(name);
        request.ifr_ifru.ifru_flags = changed;
        self.ioctl_ifreq(libc::SIOCSIFFLAGS, &mut request)
    }

    /// Returns the link-layer address.
    ///
    /// # Errors
    /// `ENODEV`: no interface has this name.
    pub fn hardware(&self, name: &InterfaceName) -> io::Result<HardwareAddress> {
        let mut request = ifreq(name);
        self.ioctl_ifreq(libc::SIOCGIFHWADDR, &mut request)?;
        // SAFETY: the kernel has filled this variant; all its bit patterns are valid.
        let address = unsafe { request.ifr_ifru.ifru_hwaddr };
        Ok(HardwareAddress {
            kind: address.sa_family,
            address: std::array::from_fn(|i| address.sa_data[i].to_ne_bytes()[0]),
        })
    }

    /// Sets the Ethernet address.
    ///
    /// # Errors
    /// `ENODEV`: no interface has this name. `EADDRNOTAVAIL`: it is a multicast address. `EPERM`:
    /// `CAP_NET_ADMIN` is missing.
    pub fn set_address(&self, name: &InterfaceName, address: [u8; 6]) -> io::Result<()> {
        let mut request = ifreq(name);
        let mut field = libc::sockaddr {
            sa_family: libc::ARPHRD_ETHER,
            sa_data: [0; 14],
        };
        for (to, from) in field.sa_data.iter_mut().zip(address) {
            *to = libc::c_char::from_ne_bytes([from]);
        }
        request.ifr_ifru.ifru_hwaddr = field;
        self.ioctl_ifreq(libc::SIOCSIFHWADDR, &mut request)
    }

    /// Returns the MTU: the maximum payload of a frame, in bytes.
    ///
    /// # Errors
    /// `ENODEV`: no interface has this name.
    pub fn mtu(&self, name: &InterfaceName) -> io::Result<u32> {
        let mut request = ifreq(name);
        self.ioctl_ifreq(libc::SIOCGIFMTU, &mut request)?;
        // SAFETY: the kernel has filled this variant; all its bit patterns are valid.
        let mtu = unsafe { request.ifr_ifru.ifru_mtu };
        u32::try_from(mtu).map_err(io::Error::other)
    }

    /// Sets the MTU, in bytes.
    ///
    /// # Errors
    /// `ENODEV`: no interface has this name. `EINVAL`: the interface does not support it. `EPERM`:
    /// `CAP_NET_ADMIN` is missing.
    pub fn set_mtu(&self, name: &InterfaceName, mtu: u32) -> io::Result<()> {
        let mut request = ifreq(name);
        let mtu = libc::c_int::try_from(mtu).map_err(|_| io::ErrorKind::InvalidInput)?;
        request.ifr_ifru.ifru_mtu = mtu;
        self.ioctl_ifreq(libc::SIOCSIFMTU, &mut request)
    }

    fn raw_flags(&self, name: &InterfaceName) -> io::Result<libc::c_short> {
        let mut request = ifreq(name);
        self.ioctl_ifreq(libc::SIOCGIFFLAGS, &mut request)?;
        // SAFETY: the kernel has filled this variant; all its bit patterns are valid.
        Ok(unsafe { request.ifr_ifru.ifru_flags })
    }

    /// Executes an ioctl that takes an `ifreq` without pointers.
    fn ioctl_ifreq(&self, number: libc::c_ulong, request: &mut libc::ifreq) -> io::Result<()> {
        // SAFETY: the callers above pass numbers that read or write only an `ifreq`.
        unsafe { ioctl(self.socket.as_fd(), number, request) }
    }

    /// Returns the socket, for other families of ioctls.
    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Returns an `ifreq` that contains only a name.
pub(crate) fn ifreq(name: &InterfaceName) -> libc::ifreq {
    // SAFETY: integers, arrays of integers and a pointer: zero is a valid value of each variant.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    request.ifr_name = name.to_field();
    request
}

/// Executes an ioctl.
///
/// # Safety
/// `number` must read and write no more than a `T` at its argument, and pointers in the `T` must be
/// valid for the use that `number` makes of them.
pub(crate) unsafe fn ioctl<T>(
    fd: BorrowedFd<'_>,
    number: libc::c_ulong,
    argument: &mut T,
) -> io::Result<()> {
    // SAFETY: the caller guarantees that the kernel stays within the argument.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), number, std::ptr::from_mut(argument)) };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interface_name_follows_dev_valid_name() {
        for good in ["lo", "eth0.5", "fifteen-letters", "ünder"] {
            assert!(good.parse::<InterfaceName>().is_ok(), "{good}");
        }
        for bad in [
            "",
            ".",
            "..",
            "a b",
            "a/b",
            "a:1",
            "a\0b",
            "sixteen-letters-",
            "br0\n",
        ] {
            assert_eq!(
                bad.parse::<InterfaceName>(),
                Err(InvalidInterfaceName),
                "{bad}"
            );
        }
    }

    #[test]
    fn loopback_interface_is_read() {
        let interfaces = Interfaces::current().unwrap();
        let name: InterfaceName = "lo".parse().unwrap();
        let index = interfaces.index(&name).unwrap();
        assert_eq!(interfaces.name(index).unwrap(), name);
        assert!(!interfaces.hardware(&name).unwrap().is_ethernet());
        assert!(interfaces.mtu(&name).unwrap() >= 1500);
    }

    #[test]
    fn unknown_interface_returns_enodev() {
        let interfaces = Interfaces::current().unwrap();
        let name: InterfaceName = "nonesuch".parse().unwrap();
        let error = interfaces.index(&name).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
    }
}
