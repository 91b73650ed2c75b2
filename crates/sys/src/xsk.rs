//! AF_XDP sockets (Documentation/networking/af_xdp.rst): memory that receive queues of
//! interfaces write frames to and read them from, and of each socket the four rings by
//! which its pieces, the chunks, change hands.
//!
//! A frame that came is lent as it lies, and sent by any socket of the same memory: then no
//! byte of it is moved. Each chunk has one owner at any time, and [`Umem`] keeps book of
//! it: what the kernel hands back must be what it was given, else it is believed no more.

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
use setup::{ignore_transient, is_gone};
use share::UmemShare;
use umem::{CACHE_MAX, ChunkOwner};

pub use frame::{RxFrame, UmemFrame};
pub use umem::{ChunkCounts, Umem, UmemLayout};

/// A receive queue of an interface, and the transmit queue of that number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceQueue {
    /// The interface, in the network namespace of the thread that opens a socket.
    pub interface: Ifindex,
    /// The queue.
    pub queue: u32,
}

/// A device's queue, and the namespace it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NamespacedQueue {
    namespace: u64,
    device: DeviceQueue,
}

/// How frames come into the memory and out of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// The device reads and writes the memory itself.
    ZeroCopy,
    /// The kernel copies.
    Copy,
}

/// What the kernel counts of a socket, since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Frames dropped on their way to us: no chunk, no room in the ring, or too long for a chunk.
    pub dropped: u64,
    /// Entries of ours that the kernel did not understand.
    pub invalid: u64,
}

/// An AF_XDP socket, its rings, and its share of a memory.
pub struct XskSocket {
    // Fields drop in this order: first the mappings, then the socket, then the share, which
    // is given up when the kernel has been told.
    rx: Consumer<libc::xdp_desc>,
    fill_ring: Producer<u64>,
    tx: Producer<libc::xdp_desc>,
    completion: Consumer<u64>,
    fd: Arc<OwnedFd>,
    share: UmemShare,
}

impl XskSocket {
    /// A socket with a share of `umem`, for this queue, and bound to nothing yet.
    ///
    /// # Errors
    /// `ENOSPC`: all shares of the memory are taken. `EAFNOSUPPORT`: the kernel has no
    /// AF_XDP. `EPERM`: `CAP_NET_RAW` is missing.
    pub fn open(umem: &Arc<Umem>, device: DeviceQueue) -> io::Result<Self> {
        let fd = setup::socket()?;
        let namespace = setup::namespace(&fd);
        let interfaces = Interfaces::current()?;
        umem.reclaim(|location| {
            location.namespace == namespace && is_gone(&interfaces, location.device.interface)
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

    /// Ties the socket to its queue, and gives the kernel chunks to receive into. A
    /// registration of the memory is shared with other sockets that do alike.
    ///
    /// # Errors
    /// `ENODEV`: there is no such interface. `EINVAL`: it has no such queue. `EBUSY`:
    /// another socket serves it: may be asked again. `EOPNOTSUPP`, and what else a driver
    /// says: its device does not read and write memory itself. `ENOBUFS`: the process may
    /// not lock that much memory.
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
            // Not every device can be looked after yet: it may be down.
            let _ = self.poll_device();
        }
        Ok(())
    }

    /// Binds with the registration of another socket, if there is one that does alike; false
    /// if it cannot be had.
    fn bind_shared(&self, transfer: Transfer) -> io::Result<bool> {
        if self.share.registered {
            return Ok(false);
        }
        let Some(other) = self.share.umem.find_registration(transfer) else {
            return Ok(false);
        };
        // The kernel takes the other's flags, and none beside.
        match setup::bind(
            &self.fd,
            self.share.location.device,
            libc::XDP_SHARED_UMEM,
            Some(&other),
        ) {
            Ok(()) => Ok(true),
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::BUSY | Errno::NODEV) => Err(error),
                // The other has lost its interface, or the kernel is older than 5.10.
                _ => Ok(false),
            },
        }
    }

    /// Binds with a registration of its own.
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

    /// Gives the kernel its chunks for frames to come.
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

    /// Tells another memory that this socket is bound: of what one of its own had at the
    /// same queue, the kernel has let go.
    pub fn reclaim_in(&self, umem: &Umem) {
        if self.share.bound {
            umem.reclaim(|location| location == self.share.location);
        }
    }

    /// The memory that it has a share of.
    #[must_use]
    pub const fn umem(&self) -> &Arc<Umem> {
        &self.share.umem
    }

    /// Whether the device reads and writes the memory itself, as the kernel says.
    ///
    /// # Errors
    /// Those of getsockopt(2).
    pub fn is_zero_copy(&self) -> io::Result<bool> {
        let options: [u32; 1] = socket_option::get(&self.fd, libc::SOL_XDP, libc::XDP_OPTIONS)?.0;
        Ok(options[0] & libc::XDP_OPTIONS_ZEROCOPY != 0)
    }

    /// Has the device polled by whoever asks for frames, for up to `micros` a time and
    /// `budget` frames, rather than by interrupts.
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

    /// What the kernel has counted.
    ///
    /// # Errors
    /// Those of getsockopt(2).
    pub fn statistics(&self) -> io::Result<Statistics> {
        // dropped, invalid coming, invalid going, ring full, fill ring empty, nothing to send
        let ([dropped, invalid_rx, invalid_tx, ring_full, _, _], len) =
            socket_option::get::<[u64; 6]>(&self.fd, libc::SOL_XDP, libc::XDP_STATISTICS)?;
        // Kernels before 5.9 have the first three only.
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

    /// The error that waits on the socket, if one does; it waits no longer then.
    ///
    /// # Errors
    /// Those of getsockopt(2).
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        Ok(rustix::net::sockopt::socket_error(&self.fd)?
            .err()
            .map(io::Error::from))
    }

    /// How many frames wait, at most `most`, which is a batch; free chunks are laid ready to
    /// take the place of theirs. Reads memory only.
    ///
    /// # Errors
    /// What the ring says cannot be.
    #[inline]
    pub fn rx_available(&mut self, most: usize) -> io::Result<usize> {
        let waiting = most.min(self.rx.available()? as usize);
        self.share.fill_cache(waiting.min(CACHE_MAX));
        Ok(waiting)
    }

    /// Whether the next frame can be lent: there is a free chunk for the kernel in its place.
    #[must_use]
    #[inline]
    pub fn can_detach(&self) -> bool {
        !self.share.cache.is_empty()
    }

    /// The next frame that came, ours until it is lent or dropped. Reads memory only.
    ///
    /// # Errors
    /// What the ring says cannot be.
    #[inline]
    pub fn next_frame(&mut self) -> io::Result<Option<RxFrame<'_>>> {
        let Some(entry) = self.rx.pop()? else {
            return Ok(None);
        };
        let umem = &self.share.umem;
        let chunk = umem.chunk(entry.addr);
        let chunk = chunk.ok_or_else(|| ring_error("a frame that came is where none can be"))?;
        let start = umem.offset_in_chunk(entry.addr);
        if start + u64::from(entry.len) > u64::from(umem.layout().chunk_len.get()) {
            return Err(ring_error("a frame that came is longer than its chunk"));
        }
        umem.verify_owner(chunk, ChunkOwner::rx_chunks(self.share.socket_id))?;
        Ok(Some(RxFrame {
            start: usize::try_from(start).expect("within a chunk"),
            len: entry.len as usize,
            chunk,
            socket: self,
        }))
    }

    /// Lets the kernel have the chunks of frames that have been dropped; to be called once a batch.
    ///
    /// # Errors
    /// Those of recvfrom(2), where the kernel wants to be called.
    #[inline]
    pub fn refill(&mut self) -> io::Result<()> {
        self.rx.publish();
        self.fill_ring.publish();
        if self.fill_ring.needs_wakeup() {
            self.poll_device()?;
        }
        Ok(())
    }

    /// Has the kernel look after the device now, where it waits to be called.
    ///
    /// # Errors
    /// `ENETDOWN`: the interface is down. `ENXIO`: it is gone.
    pub fn poll_device(&self) -> io::Result<()> {
        // SAFETY: no bytes are asked for, so none are written.
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

    /// How many frames can be placed now, if there are chunks for them.
    #[must_use]
    #[inline]
    pub fn tx_room(&self) -> usize {
        (self.share.umem.layout().tx_chunks.get() - self.share.in_flight) as usize
    }

    /// Whether so many frames can be placed now, each copied to a chunk of its own.
    pub fn reserve(&mut self, count: usize) -> bool {
        if count > self.tx_room() {
            return false;
        }
        self.share.fill_cache(count);
        self.share.cache.len() >= count
    }

    /// The longest frame that can be placed, in bytes.
    #[must_use]
    #[inline]
    pub fn len_max(&self) -> usize {
        self.share.umem.layout().chunk_len.get() as usize
    }

    /// Copies a frame to a chunk of its own and writes it down to be sent; false if
    /// there is no chunk, or none so long, or no room, or it is empty.
    #[inline]
    pub fn enqueue_copy(&mut self, bytes: &[u8]) -> bool {
        if !(1..=self.len_max()).contains(&bytes.len()) || !self.reserve(1) {
            return false;
        }
        let Some(chunk) = self.share.cache.pop() else {
            return false;
        };
        let destination = self.share.umem.at(chunk, 0, bytes.len());
        // SAFETY: the place is inside the memory, the chunk is ours and nothing borrows from
        // it, and `bytes`, which are borrowed, cannot be in it.
        unsafe {
            destination.copy_from_nonoverlapping(std::ptr::NonNull::from(bytes).cast(), bytes.len())
        };
        self.enqueue(chunk, 0, bytes.len());
        true
    }

    /// Writes a frame down to be sent as it lies in a chunk of this memory: the `len` bytes
    /// from `start` on of what was lent.
    ///
    /// # Errors
    /// The storage comes back: it is not of this memory, they are not all in it, or there is
    /// no room.
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

    /// Gives the kernel a chunk of which so many bytes are to be sent.
    #[inline]
    fn enqueue(&mut self, chunk: u32, start: usize, len: usize) {
        let UmemShare {
            umem, socket_id, ..
        } = &self.share;
        umem.set_owner(chunk, ChunkOwner::tx_chunks(*socket_id));
        self.tx.push(libc::xdp_desc {
            addr: umem.address(chunk) + start as u64,
            len: u32::try_from(len).expect("within a chunk"),
            options: 0,
        });
        self.share.in_flight += 1;
    }

    /// Lets the kernel see what was placed, and calls it if it wants to be called. It may
    /// send no more than some of it a call: [`XskSocket::tx_pending`] tells.
    ///
    /// # Errors
    /// `EBUSY`: a frame was dropped by the device, which has no carrier or is full.
    /// `ENETDOWN`: the interface is down. `ENXIO`: it is gone.
    pub fn send(&mut self) -> io::Result<()> {
        self.tx.publish();
        if !self.tx.needs_wakeup() {
            return Ok(());
        }
        // SAFETY: no bytes are sent, so none are read.
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

    /// How many frames were placed that the kernel has not taken up yet.
    ///
    /// # Errors
    /// What the ring says cannot be.
    pub fn tx_pending(&self) -> io::Result<u32> {
        self.tx.unread()
    }

    /// Takes back the chunks of frames that are sent.
    ///
    /// # Errors
    /// What the ring says cannot be.
    pub fn reap_completions(&mut self) -> io::Result<()> {
        while let Some(addr) = self.completion.pop()? {
            let UmemShare {
                umem, socket_id, ..
            } = &self.share;
            let chunk = umem.chunk(addr);
            let chunk = chunk.ok_or_else(|| ring_error("what was never sent is sent"))?;
            umem.verify_owner(chunk, ChunkOwner::tx_chunks(*socket_id))?;
            umem.set_owner(chunk, ChunkOwner::FREE);
            self.share.in_flight -= 1;
            self.share.cache.push(chunk);
        }
        self.completion.publish();
        self.share.trim_cache();
        Ok(())
    }

    /// The descriptor's number.
    pub(crate) fn raw(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Gives the kernel a chunk for a frame to come.
    #[inline]
    fn return_chunk(&mut self, chunk: u32) {
        let UmemShare {
            umem, socket_id, ..
        } = &self.share;
        umem.set_owner(chunk, ChunkOwner::rx_chunks(*socket_id));
        self.fill_ring.push(umem.address(chunk));
    }
}

impl AsFd for XskSocket {
    /// Readable when a frame waits; an error waits when the interface is gone.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests;
