//! AF_XDP sockets (Documentation/networking/af_xdp.rst): memory that receive queues of
//! interfaces write frames to and read them from, and of each socket the four rings by
//! which its pieces, the chunks, change hands.
//!
//! A frame that came is lent as it lies, and sent by any socket of the same memory: then no
//! byte of it is moved. Each chunk has one owner at any time, and [`Memory`] keeps book of
//! it: what the kernel hands back must be what it was given, else it is believed no more.

mod free;
mod memory;
mod option;
mod received;
mod ring;
mod seat;
mod setup;

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;

use rustix::io::Errno;

use crate::interface::{Ifindex, Interfaces};
use crate::storage::Storage;
use memory::{Owner, STOCK_MAX};
use option::{get, set_at};
use ring::{Consumer, Producer, nonsense};
use seat::Seat;
use setup::{is_gone, passing};

pub use memory::{Layout, Memory, Tally};
pub use received::{Lent, Received};

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
struct Spot {
    namespace: u64,
    device: DeviceQueue,
}

/// How frames come into the memory and out of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// The device reads and writes the memory itself.
    Direct,
    /// The kernel copies.
    Copied,
}

/// What the kernel counts of a socket, since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Frames dropped on their way to us: no chunk, no room in the ring, or too long for a chunk.
    pub dropped: u64,
    /// Entries of ours that the kernel did not understand.
    pub refused: u64,
}

/// An AF_XDP socket, its rings, and its share of a memory.
pub struct XskSocket {
    // Fields drop in this order: first the mappings, then the socket, then the share, which
    // is given up when the kernel has been told.
    received: Consumer<libc::xdp_desc>,
    refill: Producer<u64>,
    sending: Producer<libc::xdp_desc>,
    sent: Consumer<u64>,
    fd: Arc<OwnedFd>,
    seat: Seat,
}

impl XskSocket {
    /// A socket with a share of `memory`, for this queue, and bound to nothing yet.
    ///
    /// # Errors
    /// `ENOSPC`: all shares of the memory are taken. `EAFNOSUPPORT`: the kernel has no
    /// AF_XDP. `EPERM`: `CAP_NET_RAW` is missing.
    pub fn open(memory: &Arc<Memory>, device: DeviceQueue) -> io::Result<Self> {
        let fd = setup::socket()?;
        let namespace = setup::namespace(&fd);
        let interfaces = Interfaces::here()?;
        memory.reclaim(|at| at.namespace == namespace && is_gone(&interfaces, at.device.interface));
        let seat = Seat::take(memory, Spot { namespace, device })?;
        let places = setup::rings(&fd, memory)?;
        Ok(Self {
            received: Consumer::new(&fd, &places.received)?,
            sending: Producer::new(&fd, &places.sending)?,
            refill: Producer::new(&fd, &places.refill)?,
            sent: Consumer::new(&fd, &places.sent)?,
            fd: Arc::new(fd),
            seat,
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
        if !self.bind_sharing(transfer)? {
            self.bind_alone(transfer)?;
        }
        self.seat.bound = true;
        let Seat {
            memory, line, at, ..
        } = &self.seat;
        memory.note_bound(*line, *at, &self.fd, transfer);
        self.fill();
        if self.refill.wants_a_call() {
            // Not every device can be looked after yet: it may be down.
            let _ = self.poll_device();
        }
        Ok(())
    }

    /// Binds with the registration of another socket, if there is one that does alike; false
    /// if it cannot be had.
    fn bind_sharing(&self, transfer: Transfer) -> io::Result<bool> {
        if self.seat.registered {
            return Ok(false);
        }
        let Some(other) = self.seat.memory.bound_by(transfer) else {
            return Ok(false);
        };
        // The kernel takes the other's flags, and none beside.
        match setup::bind(
            &self.fd,
            self.seat.at.device,
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
    fn bind_alone(&mut self, transfer: Transfer) -> io::Result<()> {
        if !self.seat.registered {
            setup::register(&self.fd, &self.seat.memory)?;
            self.seat.registered = true;
        }
        let way = match transfer {
            Transfer::Direct => libc::XDP_ZEROCOPY,
            Transfer::Copied => libc::XDP_COPY,
        };
        let flags = libc::XDP_USE_NEED_WAKEUP | way;
        setup::bind(&self.fd, self.seat.at.device, flags, None)
    }

    /// Gives the kernel its chunks for frames to come.
    fn fill(&mut self) {
        let coming = self.seat.memory.layout().coming.get() as usize;
        let mut chunks = Vec::with_capacity(coming);
        let count = self.seat.memory.take(coming, &mut chunks);
        chunks.into_iter().for_each(|chunk| self.give(chunk));
        self.seat.memory.settle(count);
        self.refill.tell();
    }

    /// Tells another memory that this socket is bound: of what one of its own had at the
    /// same queue, the kernel has let go.
    pub fn tell(&self, memory: &Memory) {
        if self.seat.bound {
            memory.reclaim(|at| at == self.seat.at);
        }
    }

    /// The memory that it has a share of.
    #[must_use]
    pub const fn memory(&self) -> &Arc<Memory> {
        &self.seat.memory
    }

    /// Whether the device reads and writes the memory itself, as the kernel says.
    ///
    /// # Errors
    /// Those of getsockopt(2).
    pub fn is_zero_copy(&self) -> io::Result<bool> {
        let options: [u32; 1] = get(&self.fd, libc::XDP_OPTIONS)?.0;
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
        set_at(&self.fd, libc::SOL_SOCKET, PREFER, &1)?;
        set_at(&self.fd, libc::SOL_SOCKET, MICROS, &micros)?;
        set_at(&self.fd, libc::SOL_SOCKET, BUDGET, &budget)
    }

    /// What the kernel has counted.
    ///
    /// # Errors
    /// Those of getsockopt(2).
    pub fn statistics(&self) -> io::Result<Statistics> {
        // dropped, invalid coming, invalid going, ring full, fill ring empty, nothing to send
        let ([dropped, bad_coming, bad_going, full, _, _], len) =
            get::<[u64; 6]>(&self.fd, libc::XDP_STATISTICS)?;
        // Kernels before 5.9 have the first three only.
        let full = if len > 3 * size_of::<u64>() { full } else { 0 };
        Ok(Statistics {
            dropped: dropped + full,
            refused: bad_coming + bad_going,
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
    pub fn waiting(&mut self, most: usize) -> io::Result<usize> {
        let waiting = most.min(self.received.waiting()? as usize);
        self.seat.stock_up(waiting.min(STOCK_MAX));
        Ok(waiting)
    }

    /// Whether the next frame can be lent: there is a free chunk for the kernel in its place.
    #[must_use]
    #[inline]
    pub fn can_lend(&self) -> bool {
        !self.seat.stock.is_empty()
    }

    /// The next frame that came, ours until it is lent or dropped. Reads memory only.
    ///
    /// # Errors
    /// What the ring says cannot be.
    #[inline]
    pub fn next_received(&mut self) -> io::Result<Option<Received<'_>>> {
        let Some(entry) = self.received.take()? else {
            return Ok(None);
        };
        let memory = &self.seat.memory;
        let chunk = memory.chunk(entry.addr);
        let chunk = chunk.ok_or_else(|| nonsense("a frame that came is where none can be"))?;
        let start = memory.within(entry.addr);
        if start + u64::from(entry.len) > u64::from(memory.layout().chunk_len.get()) {
            return Err(nonsense("a frame that came is longer than its chunk"));
        }
        memory.take_back(chunk, Owner::coming(self.seat.line))?;
        Ok(Some(Received {
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
    pub fn hand_back(&mut self) -> io::Result<()> {
        self.received.tell();
        self.refill.tell();
        if self.refill.wants_a_call() {
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
        passing(result)
    }

    /// How many frames can be placed now, if there are chunks for them.
    #[must_use]
    #[inline]
    pub fn room(&self) -> usize {
        (self.seat.memory.layout().going.get() - self.seat.in_flight) as usize
    }

    /// Whether so many frames can be placed now, each copied to a chunk of its own.
    pub fn reserve(&mut self, count: usize) -> bool {
        if count > self.room() {
            return false;
        }
        self.seat.stock_up(count);
        self.seat.stock.len() >= count
    }

    /// The longest frame that can be placed, in bytes.
    #[must_use]
    #[inline]
    pub fn len_max(&self) -> usize {
        self.seat.memory.layout().chunk_len.get() as usize
    }

    /// Copies a frame to a chunk of its own and writes it down to be sent; false if
    /// there is no chunk, or none so long, or no room, or it is empty.
    #[inline]
    pub fn place(&mut self, bytes: &[u8]) -> bool {
        if !(1..=self.len_max()).contains(&bytes.len()) || !self.reserve(1) {
            return false;
        }
        let Some(chunk) = self.seat.stock.pop() else {
            return false;
        };
        let to = self.seat.memory.at(chunk, 0, bytes.len());
        // SAFETY: the place is inside the memory, the chunk is ours and nothing borrows from
        // it, and `bytes`, which are borrowed, cannot be in it.
        unsafe { to.copy_from_nonoverlapping(std::ptr::NonNull::from(bytes).cast(), bytes.len()) };
        self.put(chunk, 0, bytes.len());
        true
    }

    /// Writes a frame down to be sent as it lies in a chunk of this memory: the `len` bytes
    /// from `start` on of what was lent.
    ///
    /// # Errors
    /// The storage comes back: it is not of this memory, they are not all in it, or there is
    /// no room.
    #[inline]
    pub fn place_lent(&mut self, lent: Lent) -> Result<(), Storage> {
        let Lent {
            storage,
            start,
            len,
        } = lent;
        let fits = (1..=self.len_max()).contains(&len) && start <= self.len_max() - len;
        match self.seat.memory.lent(&storage) {
            Some(chunk) if fits && self.room() > 0 => {
                storage.forget();
                self.put(chunk, start, len);
                Ok(())
            }
            _ => Err(storage),
        }
    }

    /// Gives the kernel a chunk of which so many bytes are to be sent.
    #[inline]
    fn put(&mut self, chunk: u32, start: usize, len: usize) {
        let Seat { memory, line, .. } = &self.seat;
        memory.give(chunk, Owner::going(*line));
        self.sending.put(libc::xdp_desc {
            addr: memory.address(chunk) + start as u64,
            len: u32::try_from(len).expect("within a chunk"),
            options: 0,
        });
        self.seat.in_flight += 1;
    }

    /// Lets the kernel see what was placed, and calls it if it wants to be called. It may
    /// send no more than some of it a call: [`XskSocket::unsent`] tells.
    ///
    /// # Errors
    /// `EBUSY`: a frame was dropped by the device, which has no carrier or is full.
    /// `ENETDOWN`: the interface is down. `ENXIO`: it is gone.
    pub fn send(&mut self) -> io::Result<()> {
        self.sending.tell();
        if !self.sending.wants_a_call() {
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
        passing(result)
    }

    /// How many frames were placed that the kernel has not taken up yet.
    ///
    /// # Errors
    /// What the ring says cannot be.
    pub fn unsent(&self) -> io::Result<u32> {
        self.sending.unread()
    }

    /// Takes back the chunks of frames that are sent.
    ///
    /// # Errors
    /// What the ring says cannot be.
    pub fn reap(&mut self) -> io::Result<()> {
        while let Some(addr) = self.sent.take()? {
            let Seat { memory, line, .. } = &self.seat;
            let chunk = memory.chunk(addr);
            let chunk = chunk.ok_or_else(|| nonsense("what was never sent is sent"))?;
            memory.take_back(chunk, Owner::going(*line))?;
            memory.give(chunk, Owner::NOBODY);
            self.seat.in_flight -= 1;
            self.seat.stock.push(chunk);
        }
        self.sent.tell();
        self.seat.trim();
        Ok(())
    }

    /// The descriptor's number.
    pub(crate) fn raw(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Gives the kernel a chunk for a frame to come.
    #[inline]
    fn give(&mut self, chunk: u32) {
        let Seat { memory, line, .. } = &self.seat;
        memory.give(chunk, Owner::coming(*line));
        self.refill.put(memory.address(chunk));
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
