//! TAP devices: `/dev/net/tun` and its ioctls (Documentation/networking/tuntap.rst,
//! linux/if_tun.h).
//!
//! Frames are read and written by read(2) and write(2) on the descriptor.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::fs::{Mode, OFlags, open};

use crate::interface::{self, InterfaceName};

/// Character device that creates TAP devices.
pub const DEVICE: &str = "/dev/net/tun";

/// Offloads that the reader of a TAP device accepts: frames may arrive with a partial checksum, or
/// larger than the MTU with segmentation pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offloads(libc::c_uint);

impl Offloads {
    /// Partial checksums and TCP segmentation.
    pub const TCP: Self =
        Self(libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN);
    /// Partial checksums, TCP and UDP segmentation (Linux 6.2 and later).
    pub const TCP_AND_UDP: Self = Self(Self::TCP.0 | libc::TUN_F_USO4 | libc::TUN_F_USO6);
}

/// Requirement of [`TapQueue::attach`] on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attach {
    /// Create the device; it must not exist.
    New,
    /// Add a queue to an existing device.
    Existing,
    /// Be the only queue of an existing, persistent device that no process has open. Its address,
    /// its IP addresses and its routes stay.
    Abandoned,
}

/// One queue of a TAP device. The device is removed when its last queue is closed.
pub struct TapQueue {
    fd: OwnedFd,
}

impl TapQueue {
    /// Opens a non-blocking queue without a device.
    ///
    /// # Errors
    /// `ENOENT`, `ENODEV`, `ENXIO`: the kernel has no TAP devices. `EACCES`, `EPERM`: the process
    /// may not open [`DEVICE`].
    pub fn open() -> io::Result<Self> {
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = open(DEVICE, flags, Mode::empty())?;
        Ok(Self { fd })
    }

    /// Attaches this queue to the TAP device `name` in the calling thread's network namespace. The
    /// device has several queues, a `virtio_net_hdr` before every frame, and no other header.
    ///
    /// # Errors
    /// `EBUSY`: [`Attach::New`], and an interface has this name, or [`Attach::Abandoned`], and a
    /// process has it open. `EINVAL`: the interface is of another kind. `E2BIG`: the device has no free queue. `EPERM`: `CAP_NET_ADMIN` is missing.
    pub fn attach(&self, name: &InterfaceName, attach: Attach) -> io::Result<()> {
        let flags = libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
        let flags = match attach {
            Attach::New => flags | libc::IFF_MULTI_QUEUE | libc::IFF_TUN_EXCL,
            Attach::Existing => flags | libc::IFF_MULTI_QUEUE,
            Attach::Abandoned => flags,
        };
        let [a, b, ..] = flags.to_le_bytes();
        let mut request = interface::ifreq(name);
        request.ifr_ifru.ifru_flags = libc::c_short::from_le_bytes([a, b]);
        // SAFETY: this ioctl reads and writes an `ifreq` without pointers in it.
        unsafe { interface::ioctl(self.fd.as_fd(), libc::TUNSETIFF, &mut request) }
    }

    /// Sets whether the device outlives its last queue.
    ///
    /// # Errors
    /// `EBADFD`: the queue is not attached.
    pub fn set_persistent(&self, is_persistent: bool) -> io::Result<()> {
        let argument = libc::c_ulong::from(is_persistent);
        // SAFETY: this ioctl takes a number by value; nothing is read or written.
        let result = unsafe { libc::ioctl(self.fd.as_raw_fd(), libc::TUNSETPERSIST, argument) };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Sets the length of the `virtio_net_hdr`: 10 or 12 bytes.
    ///
    /// # Errors
    /// `EINVAL`: another length. `EBADFD`: the queue is not attached.
    pub fn set_vnet_header_len(&self, len: libc::c_int) -> io::Result<()> {
        let mut argument = len;
        // SAFETY: this ioctl reads one integer.
        unsafe { interface::ioctl(self.fd.as_fd(), libc::TUNSETVNETHDRSZ, &mut argument) }
    }

    /// Sets the offloads that this reader accepts.
    ///
    /// # Errors
    /// `EINVAL`: the kernel does not support all of them. `EBADFD`: the queue is not attached.
    pub fn set_offloads(&self, offloads: Offloads) -> io::Result<()> {
        let argument = libc::c_ulong::from(offloads.0);
        // SAFETY: this ioctl takes a number by value; nothing is read or written.
        let result = unsafe { libc::ioctl(self.fd.as_raw_fd(), libc::TUNSETOFFLOAD, argument) };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Returns the current name of the device, in whichever namespace it is.
    ///
    /// # Errors
    /// `EBADFD`: the device was removed.
    pub fn name(&self) -> io::Result<InterfaceName> {
        // SAFETY: integers, arrays of integers and a pointer, for which zero is a valid value.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        // SAFETY: this ioctl writes an `ifreq` without pointers in it.
        unsafe { interface::ioctl(self.fd.as_fd(), libc::TUNGETIFF, &mut request) }?;
        InterfaceName::from_field(&request.ifr_name)
    }

    /// Opens the current network namespace of the device.
    ///
    /// # Errors
    /// `EBADFD`: the device was removed. `EPERM`: `CAP_NET_ADMIN` is missing there.
    pub fn namespace(&self) -> io::Result<OwnedFd> {
        // SAFETY: this ioctl takes no argument.
        let fd = unsafe { libc::ioctl(self.fd.as_raw_fd(), libc::TUNGETDEVNETNS) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just opened this descriptor, and nothing else owns it.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }
}

impl AsFd for TapQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
