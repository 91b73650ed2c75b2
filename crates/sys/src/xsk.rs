//! AF_XDP sockets (Documentation/networking/af_xdp.rst): memory that one receive queue
//! of an interface writes frames to and reads them from, and the four rings by which
//! its pieces, the chunks, change hands.
//!
//! Each chunk has one owner at any time, and we keep book of it: what the kernel hands
//! back must be what it was given, else it is believed no more. Chunks are either for
//! frames that come or for frames that go, so that neither starves the other.

mod option;
mod ring;

use std::io;
use std::num::NonZeroU32;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::io::Errno;

use crate::interface::Ifindex;
use option::{done, get, len_of, set, set_at};
use ring::{Consumer, Mapping, Place, Producer, nonsense};

/// What the memory of a socket is divided into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of a chunk: 2,048 or 4,096.
    pub chunk_len: NonZeroU32,
    /// Chunks for frames that come: a power of two.
    pub coming: NonZeroU32,
    /// Chunks for frames that go: a power of two.
    pub going: NonZeroU32,
}

impl Layout {
    /// What of a chunk the kernel keeps before a frame that comes (`XDP_PACKET_HEADROOM`).
    pub const HEADROOM: u32 = 256;

    fn chunks(self) -> u32 {
        self.coming.get().saturating_add(self.going.get())
    }
}

/// How a socket may be bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// The device reads and writes the memory itself where its driver can, else the kernel copies.
    Best,
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

/// Who has a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Us,
    Kernel,
}

/// An AF_XDP socket, its memory and its rings.
pub struct XskSocket {
    // Fields drop in this order: first the mappings, then the socket.
    received: Consumer<libc::xdp_desc>,
    refill: Producer<u64>,
    sending: Producer<libc::xdp_desc>,
    sent: Consumer<u64>,
    memory: Mapping,
    fd: OwnedFd,
    layout: Layout,
    owners: Box<[Owner]>,
    /// Chunks for frames that go, while they are ours.
    free: Vec<u32>,
}

impl XskSocket {
    /// A socket of this layout, bound to nothing. All chunks for frames that come are the
    /// kernel's already.
    ///
    /// # Errors
    /// `EAFNOSUPPORT`: the kernel has no AF_XDP. `EPERM`: `CAP_NET_RAW` is missing.
    /// `ENOBUFS`: the process may not lock that much memory. `EINVAL`: the layout is
    /// none that the kernel takes.
    pub fn open(layout: Layout) -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: the call takes numbers.
        let fd = done(unsafe { libc::socket(libc::AF_XDP, kind, 0) })?;
        // SAFETY: the kernel has just opened this descriptor for us.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        if !layout.coming.is_power_of_two() || !layout.going.is_power_of_two() {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let (coming, going) = (layout.coming, layout.going);
        let memory = register(&fd, layout)?;
        set(&fd, libc::XDP_UMEM_FILL_RING, &coming.get())?;
        set(&fd, libc::XDP_UMEM_COMPLETION_RING, &going.get())?;
        set(&fd, libc::XDP_RX_RING, &coming.get())?;
        set(&fd, libc::XDP_TX_RING, &going.get())?;
        let offsets = offsets(&fd)?;
        let place = |offset, layout, entries| Place {
            offset,
            layout,
            entries,
        };
        let page = |offset: libc::off_t| u64::try_from(offset).expect("not negative");
        let mut socket = Self {
            received: Consumer::new(
                &fd,
                &place(page(libc::XDP_PGOFF_RX_RING), offsets.rx, coming),
            )?,
            sending: Producer::new(
                &fd,
                &place(page(libc::XDP_PGOFF_TX_RING), offsets.tx, going),
            )?,
            refill: Producer::new(
                &fd,
                &place(libc::XDP_UMEM_PGOFF_FILL_RING, offsets.fr, coming),
            )?,
            sent: Consumer::new(
                &fd,
                &place(libc::XDP_UMEM_PGOFF_COMPLETION_RING, offsets.cr, going),
            )?,
            memory,
            fd,
            layout,
            owners: vec![Owner::Us; layout.chunks() as usize].into_boxed_slice(),
            free: (coming.get()..layout.chunks()).collect(),
        };
        (0..coming.get()).for_each(|chunk| socket.give(chunk));
        socket.refill.tell();
        Ok(socket)
    }

    /// Ties the socket to one receive queue of an interface, and to a transmit queue.
    ///
    /// # Errors
    /// `ENODEV`: there is no such interface. `EINVAL`: it has no such queue. `EBUSY`:
    /// another socket serves it.
    pub fn bind(&self, interface: Ifindex, queue: u32, transfer: Transfer) -> io::Result<()> {
        let copy = match transfer {
            Transfer::Best => 0,
            Transfer::Copied => libc::XDP_COPY,
        };
        let address = libc::sockaddr_xdp {
            sxdp_family: u16::try_from(libc::AF_XDP).expect("a family has sixteen bits"),
            sxdp_flags: libc::XDP_USE_NEED_WAKEUP | copy,
            sxdp_ifindex: interface.0,
            sxdp_queue_id: queue,
            sxdp_shared_umem_fd: 0,
        };
        let pointer = std::ptr::from_ref(&address).cast();
        // SAFETY: the pointer is good for the length, and the kernel only reads.
        done(unsafe { libc::bind(self.raw(), pointer, len_of(&address)) }).map(drop)
    }

    /// Whether the device reads and writes the memory itself.
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

    /// The next frame that came, ours until it is dropped. Reads memory only.
    ///
    /// # Errors
    /// What the ring says cannot be.
    #[inline]
    pub fn next_received(&mut self) -> io::Result<Option<Received<'_>>> {
        let Some(entry) = self.received.take()? else {
            return Ok(None);
        };
        let chunk_len = u64::from(self.layout.chunk_len.get());
        let (chunk, start) = (entry.addr / chunk_len, entry.addr % chunk_len);
        let known = u32::try_from(chunk).ok();
        let known = known.filter(|chunk| *chunk < self.layout.coming.get());
        let chunk = known.ok_or_else(|| nonsense("a frame that came is where none can be"))?;
        if start + u64::from(entry.len) > chunk_len {
            return Err(nonsense("a frame that came is longer than its chunk"));
        }
        self.take_back(chunk)?;
        let offset = u64::from(chunk) * chunk_len + start;
        Ok(Some(Received {
            offset: usize::try_from(offset).expect("the memory is mapped"),
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

    /// How many frames can be placed now.
    #[must_use]
    pub fn room(&self) -> usize {
        self.free.len()
    }

    /// The longest frame that can be placed, in bytes.
    #[must_use]
    pub fn len_max(&self) -> usize {
        self.layout.chunk_len.get() as usize
    }

    /// Copies a frame to a chunk of its own and writes it down to be sent; false if
    /// there is no chunk, or none so long.
    #[inline]
    pub fn place(&mut self, bytes: &[u8]) -> bool {
        let len = u32::try_from(bytes.len()).ok();
        let Some(len) = len.filter(|len| *len <= self.layout.chunk_len.get()) else {
            return false;
        };
        let Some(chunk) = self.free.pop() else {
            return false;
        };
        let addr = self.address(chunk);
        let offset = usize::try_from(addr).expect("the memory is mapped");
        let to = self.memory.at(offset, bytes.len());
        // SAFETY: the place is inside our mapping, the chunk is ours and nothing borrows from
        // it, and `bytes`, which are borrowed, cannot be in it.
        unsafe { to.copy_from_nonoverlapping(std::ptr::NonNull::from(bytes).cast(), bytes.len()) };
        self.owners[chunk as usize] = Owner::Kernel;
        self.sending.put(libc::xdp_desc {
            addr,
            len,
            options: 0,
        });
        true
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
        let chunk_len = u64::from(self.layout.chunk_len.get());
        while let Some(addr) = self.sent.take()? {
            let (first, end) = (self.layout.coming.get(), self.layout.chunks());
            let chunk = u32::try_from(addr / chunk_len).ok();
            let chunk = chunk.filter(|chunk| (first..end).contains(chunk));
            let chunk = chunk.ok_or_else(|| nonsense("what was never sent is sent"))?;
            self.take_back(chunk)?;
            self.free.push(chunk);
        }
        self.sent.tell();
        Ok(())
    }

    /// The descriptor's number.
    pub(crate) fn raw(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    fn address(&self, chunk: u32) -> u64 {
        u64::from(chunk) * u64::from(self.layout.chunk_len.get())
    }

    /// A chunk was the kernel's, as it says, and is ours.
    fn take_back(&mut self, chunk: u32) -> io::Result<()> {
        let owner = &mut self.owners[chunk as usize];
        if *owner != Owner::Kernel {
            return Err(nonsense("a chunk comes back that was never given"));
        }
        *owner = Owner::Us;
        Ok(())
    }

    /// Gives the kernel a chunk for a frame to come.
    fn give(&mut self, chunk: u32) {
        self.owners[chunk as usize] = Owner::Kernel;
        self.refill.put(self.address(chunk));
    }
}

impl AsFd for XskSocket {
    /// Readable when a frame waits; an error waits when the interface is gone.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A frame that came. Dropped, its chunk is written down for the kernel.
pub struct Received<'s> {
    socket: &'s mut XskSocket,
    chunk: u32,
    offset: usize,
    len: usize,
}

impl Received<'_> {
    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        let start = self.socket.memory.at(self.offset, self.len);
        // SAFETY: inside the mapping; the chunk is ours until we are dropped: the kernel does
        // not write to it, and no other `Received` of this socket can exist.
        unsafe { std::slice::from_raw_parts(start.as_ptr(), self.len) }
    }
}

impl Drop for Received<'_> {
    #[inline]
    fn drop(&mut self) {
        self.socket.give(self.chunk);
    }
}

/// Makes memory for the chunks and tells the kernel of it.
fn register(fd: &OwnedFd, layout: Layout) -> io::Result<Mapping> {
    let len = u64::from(layout.chunks()) * u64::from(layout.chunk_len.get());
    let memory = Mapping::anonymous(usize::try_from(len).map_err(io::Error::other)?)?;
    let registration = libc::xdp_umem_reg {
        addr: memory.start().addr().get() as u64,
        len,
        chunk_size: layout.chunk_len.get(),
        headroom: 0,
        flags: 0,
        tx_metadata_len: 0,
    };
    set(fd, libc::XDP_UMEM_REG, &registration)?;
    Ok(memory)
}

fn offsets(fd: &OwnedFd) -> io::Result<libc::xdp_mmap_offsets> {
    let (numbers, len) = get::<[u64; 16]>(fd, libc::XDP_MMAP_OFFSETS)?;
    if len != size_of_val(&numbers) {
        // Kernels before 5.4 say nothing of flags.
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

/// What passes is no error: a frame not sent now, a device that is being looked after already.
fn passing(result: isize) -> io::Result<()> {
    if result >= 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match Errno::from_io_error(&error) {
        Some(Errno::AGAIN | Errno::INTR | Errno::NOBUFS) => Ok(()),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests;
