//! System calls that create, register and bind an AF_XDP socket.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use rustix::io::Errno;

use super::DeviceQueue;
use super::ring::RingArea;
use super::umem::Umem;
use crate::interface::{Ifindex, Interfaces};
use crate::socket_option::{self, check, len_of};

/// Option for the maximum number of frames that the kernel sends per call (linux/if_xdp.h); the
/// default is 32.
const MAX_TX_SKB_BUDGET: libc::c_int = 9;

/// Creates a socket without rings.
pub(super) fn socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: the call takes numbers only.
    let fd = check(unsafe { libc::socket(libc::AF_XDP, kind, 0) })?;
    // SAFETY: the kernel has just opened this descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Locations of the four rings of a socket.
pub(super) struct RingAreas {
    pub(super) rx: RingArea,
    pub(super) tx: RingArea,
    pub(super) fill_ring: RingArea,
    pub(super) completion: RingArea,
}

/// Creates the rings, sized for the chunks of `umem`.
pub(super) fn rings(fd: &OwnedFd, umem: &Umem) -> io::Result<RingAreas> {
    let (rx_chunks, tx_chunks) = (umem.layout().rx_chunks, umem.layout().tx_chunks);
    socket_option::set(
        fd,
        libc::SOL_XDP,
        libc::XDP_UMEM_FILL_RING,
        &rx_chunks.get(),
    )?;
    socket_option::set(
        fd,
        libc::SOL_XDP,
        libc::XDP_UMEM_COMPLETION_RING,
        &tx_chunks.get(),
    )?;
    socket_option::set(fd, libc::SOL_XDP, libc::XDP_RX_RING, &rx_chunks.get())?;
    socket_option::set(fd, libc::SOL_XDP, libc::XDP_TX_RING, &tx_chunks.get())?;
    // Kernels without the option send fewer frames per call and are called again.
    let _ = socket_option::set(fd, libc::SOL_XDP, MAX_TX_SKB_BUDGET, &tx_chunks.get());
    let offsets = offsets(fd)?;
    let area = |offset, layout, entries| RingArea {
        offset,
        layout,
        entries,
    };
    let page = |offset: libc::off_t| u64::try_from(offset).expect("not negative");
    Ok(RingAreas {
        rx: area(page(libc::XDP_PGOFF_RX_RING), offsets.rx, rx_chunks),
        tx: area(page(libc::XDP_PGOFF_TX_RING), offsets.tx, tx_chunks),
        fill_ring: area(libc::XDP_UMEM_PGOFF_FILL_RING, offsets.fr, rx_chunks),
        completion: area(libc::XDP_UMEM_PGOFF_COMPLETION_RING, offsets.cr, tx_chunks),
    })
}

fn offsets(fd: &OwnedFd) -> io::Result<libc::xdp_mmap_offsets> {
    let (numbers, len) =
        socket_option::get::<[u64; 16]>(fd, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS)?;
    if len != size_of_val(&numbers) {
        // Kernels before 5.4 do not report the offset of the flags.
        return Err(io::Error::from_raw_os_error(libc::EAFNOSUPPORT));
    }
    let [rx, tx, fr, cr] = [0, 4, 8, 12].map(|at| libc::xdp_ring_offset {
        producer: numbers[at],
        consumer: numbers[at + 1],
        desc: numbers[at + 2],
        flags: numbers[at + 3],
    });
    Ok(libc::xdp_mmap_offsets { rx, tx, fr, cr })
}

/// Registers the UMEM.
pub(super) fn register(fd: &OwnedFd, umem: &Umem) -> io::Result<()> {
    let (start, len) = umem.range();
    let registration = libc::xdp_umem_reg {
        addr: start.addr().get() as u64,
        len: len as u64,
        chunk_size: umem.layout().chunk_len.get(),
        headroom: 0,
        flags: 0,
        tx_metadata_len: 0,
    };
    socket_option::set(fd, libc::SOL_XDP, libc::XDP_UMEM_REG, &registration)
}

/// Binds the socket to a queue of an interface with these flags; `sharing` is another socket whose
/// registration of the UMEM is used.
pub(super) fn bind(
    fd: &OwnedFd,
    at: DeviceQueue,
    flags: u16,
    sharing: Option<&OwnedFd>,
) -> io::Result<()> {
    let other = sharing.map_or(0, AsRawFd::as_raw_fd);
    let address = libc::sockaddr_xdp {
        sxdp_family: u16::try_from(libc::AF_XDP).expect("a family has sixteen bits"),
        sxdp_flags: flags,
        sxdp_ifindex: at.interface.0,
        sxdp_queue_id: at.queue,
        sxdp_shared_umem_fd: u32::try_from(other).expect("an open descriptor is not negative"),
    };
    let pointer = std::ptr::from_ref(&address).cast();
    // SAFETY: the pointer is valid for the length, and the kernel only reads.
    check(unsafe { libc::bind(fd.as_raw_fd(), pointer, len_of(&address)) }).map(drop)
}

/// Returns the cookie of the socket's network namespace, or 0 if the kernel does not report it
/// (before 5.14).
pub(super) fn namespace(fd: &OwnedFd) -> u64 {
    const NETNS_COOKIE: libc::c_int = 71; // SO_NETNS_COOKIE
    let cookie = socket_option::get::<[u64; 1]>(fd, libc::SOL_SOCKET, NETNS_COOKIE);
    cookie.map_or(0, |([cookie], _)| cookie)
}

/// True if the interface no longer exists in this namespace; the kernel has then released all it
/// had for it.
pub(super) fn is_removed(interfaces: &Interfaces, interface: Ifindex) -> bool {
    let name = interfaces.name(interface);
    let error = name.err().as_ref().and_then(Errno::from_io_error);
    matches!(error, Some(Errno::NODEV | Errno::NXIO))
}

/// Treats transient results as success: the frame was not sent now, or the device is being polled
/// already.
pub(super) fn ignore_transient(result: isize) -> io::Result<()> {
    if result >= 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match Errno::from_io_error(&error) {
        Some(Errno::AGAIN | Errno::INTR | Errno::NOBUFS) => Ok(()),
        _ => Err(error),
    }
}
