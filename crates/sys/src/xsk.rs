//! AF_XDP sockets (Documentation/networking/af_xdp.rst).
//!
//! ```text
//!                  FILL: free chunks             RX: received frames
//!    socket  ------------------------> kernel --------------------------> socket
//!                  TX: frames to send            COMPLETION: sent chunks
//! ```
//!
//! Frames are in a [`Umem`], memory that several sockets of a worker share, divided into chunks.
//! The four rings of a socket pass chunks between user space and the kernel. A received frame can
//! be detached from its socket and sent by any socket of the same UMEM without copying a byte. The
//! [`Umem`] records the owner of every chunk; a chunk that the kernel returns without owning it is
//! an error that ends the socket.

mod frame;
mod free_stack;
mod ring;
mod setup;
mod share;
mod umem;

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;

use rustix::io::Errno;

use crate::interface::{Ifindex, Interfaces};
use crate::socket_option;
use crate::storage::Storage;
use ring::{Consumer, Producer, ring_error};
use setup::{ignore_transient, is_removed};
use share::UmemShare;
use umem::{CACHE_MAX, ChunkOwner};

pub use frame::{RxFrame, UmemFrame};
pub use umem::{ChunkCounts, Umem, UmemLayout};

/// A receive queue of an interface and the transmit queue with the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceQueue {
    /// Interface, in the network namespace of the thread that opens the socket.
    pub interface: Ifindex,
    /// Number of the queue.
    pub queue: u32,
}

/// A device queue and its network namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NamespacedQueue {
    namespace: u64,
    device: DeviceQueue,
}

/// Transfer of frames between the device and the UMEM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// The device reads and writes the UMEM by DMA.
    ZeroCopy,
    /// The kernel copies.
    Copy,
}

/// Counters of the kernel since the socket was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Received frames dropped: no chunk in the fill ring, RX ring full, or frame longer than a
    /// chunk.
    pub dropped: u64,
    /// Descriptors that the kernel rejected.
    pub invalid: u64,
}

/// An AF_XDP socket with its rings and its share of a UMEM.
pub struct XskSocket {
    // Fields drop in this order: the mappings, the socket, and then the share, which is released
    // after the kernel has closed the socket.
    rx: Consumer<libc::xdp_desc>,
    fill_ring: Producer<u64>,
    tx: Producer<libc::xdp_desc>,
    completion: Consumer<u64>,
    fd: Arc<OwnedFd>,
    share: UmemShare,
}

impl XskSocket {
    /// Creates a socket with a share of `umem` for this queue, not bound yet.
    ///
    /// # Errors
    /// `ENOSPC`: all shares of the UMEM are taken. `EAFNOSUPPORT`: the kernel has no AF_XDP.
    /// `EPERM`: `CAP_NET_RAW` is missing.
    pub fn open(umem: &Arc<Umem>, device: DeviceQueue) -> io::Result<Self> {
        let fd = setup::socket()?;
        let namespace = setup::namespace(&fd);
        let interfaces = Interfaces::current()?;
        umem.reclaim(|location| {
            location.namespace == namespace && is_removed(&interfaces, location.device.interface)
        });
        let share = UmemShare::take(umem, NamespacedQueue { namespace, device })?;
        let areas = setup::rings(&fd, umem)?;
        Ok(Self {
            rx: Consumer::new(&fd, &areas.rx)?,
            tx: Producer::new(&fd, &areas.tx)?,
            fill_ring: Producer::new(&fd, &areas.fill_ring)?,
            completion: Consumer::new(&fd, &areas.completion)?,
            fd: Arc::new(fd),
            share,
        })
    }

    /// Binds the socket to its queue and fills the fill ring. Sockets with the same transfer share
    /// one registration of the UMEM.
    ///
    /// # Errors
    /// `ENODEV`: the interface does not exist. `EINVAL`: it has no such queue. `EBUSY`: another
    /// socket is bound to the queue; the call may be repeated. `EOPNOTSUPP` and other errors of
    /// drivers: the device does not support zero copy. `ENOBUFS`: the process may not lock that
    /// much memory.
    pub fn bind(&mut self, transfer: Transfer) -> io::Result<()> {
        if !self.bind_shared(transfer)? {
            self.bind_registering(transfer)?;
        }
        self.share.bound = true;
        let UmemShare {
            umem,
            socket_id,
            location,
            ..
        } = &self.share;
        umem.register_socket(*socket_id, *location, &self.fd, transfer);
        self.populate_fill_ring();
        if self.fill_ring.needs_wakeup() {
            // The call fails for a device that is down; it will be repeated.
            let _ = self.poll_device();
        }
        Ok(())
    }

    /// Binds with the registration of another socket with the same transfer. Returns false if there
    /// is none, or it cannot be shared.
    fn bind_shared(&self, transfer: Transfer) -> io::Result<bool> {
        if self.share.registered {
            return Ok(false);
        }
        let Some(other) = self.share.umem.find_registration(transfer) else {
            return Ok(false);
        };
        // The kernel applies the other socket's flags and accepts no further ones.
        match setup::bind(
            &self.fd,
            self.share.location.device,
            libc::XDP_SHARED_UMEM,
            Some(&other),
        ) {
            Ok(()) => Ok(true),
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::BUSY | Errno::NODEV) => Err(error),
                // The other socket has lost its interface, or the kernel is older than 5.10.
                _ => Ok(false),
            },
        }
    }

    /// Binds with a registration by this socket.
    fn bind_registering(&mut self, transfer: Transfer) -> io::Result<()> {
        if !self.share.registered {
            setup::register(&self.fd, &self.share.umem)?;
            self.share.registered = true;
        }
        let mode = match transfer {
            Transfer::ZeroCopy => libc::XDP_ZEROCOPY,
            Transfer::Copy => libc::XDP_COPY,
        };
        let flags = libc::XDP_USE_NEED_WAKEUP | mode;
        setup::bind(&self.fd, self.share.location.device, flags, None)
    }

    /// Fills the fill ring with chunks.
    fn populate_fill_ring(&mut self) {
        let rx_chunks = self.share.umem.layout().rx_chunks.get() as usize;
        let mut chunks = Vec::with_capacity(rx_chunks);
        let count = self.share.umem.take(rx_chunks, &mut chunks);
        chunks
            .into_iter()
            .for_each(|chunk| self.return_chunk(chunk));
        self.share.umem.check_in(count);
        self.fill_ring.publish();
    }

    /// Reclaims, in another UMEM, the chunks of a closed socket that was bound to the same queue:
    /// since this socket is bound, the kernel has released them.
    pub fn reclaim_in(&self, umem: &Umem) {
        if self.share.bound {
            umem.reclaim(|location| location == self.share.location);
        }
    }

    /// Returns the UMEM of the socket.
    #[must_use]
    pub const fn umem(&self) -> &Arc<Umem> {
        &self.share.umem
    }

    /// True if the kernel reports zero copy.
    ///
    /// # Errors
    /// Those of getsockopt(2).
    pub fn is_zero_copy(&self) -> io::Result<bool> {
        let options: [u32; 1] = socket_option::get(&self.fd, libc::SOL_XDP, libc::XDP_OPTIONS)?.0;
        Ok(options[0] & libc::XDP_OPTIONS_ZEROCOPY != 0)
    }

    /// Enables busy polling: system calls on the socket poll the device for up to `micros`
    /// microseconds and `budget` frames, instead of interrupts.
    ///
    /// # Errors
    /// `EPERM`: `CAP_NET_ADMIN` is missing. `ENOPROTOOPT`: the kernel is older than 5.11.
    pub fn set_busy_poll(&self, micros: libc::c_int, budget: libc::c_int) -> io::Result<()> {
        const PREFER: libc::c_int = 69; // SO_PREFER_BUSY_POLL
        const BUDGET: libc::c_int = 70; // SO_BUSY_POLL_BUDGET
        const MICROS: libc::c_int = 46; // SO_BUSY_POLL
        socket_option::set(&self.fd, libc::SOL_SOCKET, PREFER, &1)?;
        socket_option::set(&self.fd, libc::SOL_SOCKET, MICROS, &micros)?;
        socket_option::set(&self.fd, libc::SOL_SOCKET, BUDGET, &budget)
    }

    /// Returns the counters of the kernel.
    ///
    /// # Errors
    /// Those of getsockopt(2).
    pub fn statistics(&self) -> io::Result<Statistics> {
        // rx_dropped, rx_invalid_descs, tx_invalid_descs, rx_ring_full, rx_fill_ring_empty_descs,
        // tx_ring_empty_descs
        let ([dropped, invalid_rx, invalid_tx, ring_full, _, _], len) =
            socket_option::get::<[u64; 6]>(&self.fd, libc::SOL_XDP, libc::XDP_STATISTICS)?;
        // Kernels before 5.9 report only the first three.
        let ring_full = if len > 3 * size_of::<u64>() {
            ring_full
        } else {
            0
        };
        Ok(Statistics {
            dropped: dropped + ring_full,
            invalid: invalid_rx + invalid_tx,
        })
    }

    /// Returns and clears the pending error of the socket, or `None` if there is none.
    ///
    /// # Errors
    /// Those of getsockopt(2).
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        Ok(rustix::net::sockopt::socket_error(&self.fd)?
            .err()
            .map(io::Error::from))
    }

    /// Returns the number of received frames, at most `max` (a batch), and caches as many free
    /// chunks to replace theirs. Reads memory only.
    ///
    /// # Errors
    /// The ring is inconsistent.
    #[inline]
    pub fn rx_available(&mut self, most: usize) -> io::Result<usize> {
        let waiting = most.min(self.rx.available()? as usize);
        self.share.fill_cache(waiting.min(CACHE_MAX));
        Ok(waiting)
    }

    /// True if the next frame can be detached: a free chunk is cached to replace its own.
    #[must_use]
    #[inline]
    pub fn can_detach(&self) -> bool {
        !self.share.cache.is_empty()
    }

    /// Returns the next received frame, or `None` if there is none. Reads memory only.
    ///
    /// # Errors
    /// The ring is inconsistent.
    #[inline]
    pub fn next_frame(&mut self) -> io::Result<Option<RxFrame<'_>>> {
        let Some(entry) = self.rx.pop()? else {
            return Ok(None);
        };
        let umem = &self.share.umem;
        let chunk = umem.chunk(entry.addr);
        let chunk = chunk.ok_or_else(|| ring_error("a received frame is outside the UMEM"))?;
        let start = umem.offset_in_chunk(entry.addr);
        if start + u64::from(entry.len) > u64::from(umem.layout().chunk_len.get()) {
            return Err(ring_error("a received frame is longer than its chunk"));
        }
        umem.verify_owner(chunk, ChunkOwner::rx(self.share.socket_id))?;
        Ok(Some(RxFrame {
            start: usize::try_from(start).expect("within a chunk"),
            len: entry.len as usize,
            chunk,
            socket: self,
        }))
    }

    /// Publishes the consumed RX entries and the refilled chunks; called once per batch.
    ///
    /// # Errors
    /// Those of recvfrom(2), if the kernel requires a wake-up.
    #[inline]
    pub fn refill(&mut self) -> io::Result<()> {
        self.rx.publish();
        self.fill_ring.publish();
        if self.fill_ring.needs_wakeup() {
            self.poll_device()?;
        }
        Ok(())
    }

    /// Wakes up the kernel to process the fill ring and poll the device.
    ///
    /// # Errors
    /// `ENETDOWN`: the interface is down. `ENXIO`: it was removed.
    pub fn poll_device(&self) -> io::Result<()> {
        // SAFETY: no bytes are requested, so none are written.
        let result = unsafe {
            libc::recvfrom(
                self.raw(),
                std::ptr::null_mut(),
                0,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
            )
        };
        ignore_transient(result)
    }

    /// Number of frames that fit the TX ring now.
    #[must_use]
    #[inline]
    pub fn tx_room(&self) -> usize {
        (self.share.umem.layout().tx_chunks.get() - self.share.in_flight) as usize
    }

    /// Caches `count` chunks for copies. Returns false if the TX ring has too little space or too
    /// few chunks are free.
    pub fn reserve(&mut self, count: usize) -> bool {
        if count > self.tx_room() {
            return false;
        }
        self.share.fill_cache(count);
        self.share.cache.len() >= count
    }

    /// Maximum length of a frame, in bytes.
    #[must_use]
    #[inline]
    pub fn len_max(&self) -> usize {
        self.share.umem.layout().chunk_len.get() as usize
    }

    /// Copies a frame to a chunk and appends it to the TX ring. Returns false if no chunk is free,
    /// the ring is full, or the frame is empty or longer than a chunk.
    #[inline]
    pub fn enqueue_copy(&mut self, bytes: &[u8]) -> bool {
        if !(1..=self.len_max()).contains(&bytes.len()) || !self.reserve(1) {
            return false;
        }
        let Some(chunk) = self.share.cache.pop() else {
            return false;
        };
        let destination = self.share.umem.at(chunk, 0, bytes.len());
        // SAFETY: the destination is inside the UMEM, the chunk belongs to this socket and is not
        // borrowed, and `bytes`, a shared borrow, cannot overlap it.
        unsafe {
            destination.copy_from_nonoverlapping(std::ptr::NonNull::from(bytes).cast(), bytes.len())
        };
        self.enqueue(chunk, 0, bytes.len());
        true
    }

    /// Appends a frame of this UMEM to the TX ring without copying: `len` bytes from `start` of its
    /// chunk.
    ///
    /// # Errors
    /// Returns the storage: it belongs to another UMEM, the range exceeds the chunk, or the ring is
    /// full.
    #[inline]
    pub fn enqueue_in_place(&mut self, frame: UmemFrame) -> Result<(), Storage> {
        let UmemFrame {
            storage,
            start,
            len,
        } = frame;
        let fits = (1..=self.len_max()).contains(&len) && start <= self.len_max() - len;
        match self.share.umem.chunk_of(&storage) {
            Some(chunk) if fits && self.tx_room() > 0 => {
                storage.forget();
                self.enqueue(chunk, start, len);
                Ok(())
            }
            _ => Err(storage),
        }
    }

    /// Appends `len` bytes of a chunk to the TX ring.
    #[inline]
    fn enqueue(&mut self, chunk: u32, start: usize, len: usize) {
        let UmemShare {
            umem, socket_id, ..
        } = &self.share;
        umem.set_owner(chunk, ChunkOwner::tx(*socket_id));
        self.tx.push(libc::xdp_desc {
            addr: umem.address(chunk) + start as u64,
            len: u32::try_from(len).expect("within a chunk"),
            options: 0,
        });
        self.share.in_flight += 1;
    }

    /// Publishes the TX ring and wakes up the kernel if it requires that. One call may send only a
    /// part: see [`XskSocket::tx_pending`].
    ///
    /// # Errors
    /// `EBUSY`: the device dropped a frame, because it has no carrier or its queue is full.
    /// `ENETDOWN`: the interface is down. `ENXIO`: it was removed.
    pub fn send(&mut self) -> io::Result<()> {
        self.tx.publish();
        if !self.tx.needs_wakeup() {
            return Ok(());
        }
        // SAFETY: no bytes are passed, so none are read.
        let result = unsafe {
            libc::sendto(
                self.raw(),
                std::ptr::null(),
                0,
                libc::MSG_DONTWAIT,
                std::ptr::null(),
                0,
            )
        };
        ignore_transient(result)
    }

    /// Number of enqueued frames that the kernel has not consumed.
    ///
    /// # Errors
    /// The ring is inconsistent.
    pub fn tx_pending(&self) -> io::Result<u32> {
        self.tx.unread()
    }

    /// Reclaims the chunks of sent frames from the completion ring.
    ///
    /// # Errors
    /// The ring is inconsistent.
    pub fn reap_completions(&mut self) -> io::Result<()> {
        while let Some(addr) = self.completion.pop()? {
            let UmemShare {
                umem, socket_id, ..
            } = &self.share;
            let chunk = umem.chunk(addr);
            let chunk =
                chunk.ok_or_else(|| ring_error("a chunk outside the UMEM was completed"))?;
            umem.verify_owner(chunk, ChunkOwner::tx(*socket_id))?;
            umem.set_owner(chunk, ChunkOwner::FREE);
            self.share.in_flight -= 1;
            self.share.cache.push(chunk);
        }
        self.completion.publish();
        self.share.trim_cache();
        Ok(())
    }

    /// Returns the number of the descriptor.
    pub(crate) fn raw(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Appends a chunk to the fill ring.
    #[inline]
    fn return_chunk(&mut self, chunk: u32) {
        let UmemShare {
            umem, socket_id, ..
        } = &self.share;
        umem.set_owner(chunk, ChunkOwner::rx(*socket_id));
        self.fill_ring.push(umem.address(chunk));
    }
}

impl AsFd for XskSocket {
    /// Readable while a frame is available; an error is pending after the interface was removed.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests;
