//! Receive ring of a packet socket: memory that the kernel fills with frames and user space reads
//! without a system call (Documentation/networking/packet_mmap.rst, `TPACKET_V2`).
//!
//! ```text
//!  block 0                      block 1                      block n-1
//!  +--------+--------+--------+ +--------+--------+--------+ +--------+--
//!  | slot 0 | slot 1 |  ...   | | slot k |        |        | |        | ...
//!  +--------+--------+--------+ +--------+--------+--------+ +--------+--
//!    |
//!    |  status   tpacket2_hdr   sockaddr_ll  ...  virtio_net_hdr  frame
//!    +->+------+---------------+------------+---+---------------+----------+
//!       | u32  | len, snaplen, |            |pad| 10 bytes      | snaplen  |
//!       |      | mac, vlan, ts |            |   |               | bytes    |
//!       +------+---------------+------------+---+---------------+----------+
//!                                                               ^ tp_mac
//! ```
//!
//! The status word is the only synchronisation. `TP_STATUS_KERNEL` (0): the slot belongs to the
//! kernel. `TP_STATUS_USER`: it contains a frame. Each side reads the word with acquire and stores
//! it with release ordering after it has finished with the slot. Other bits report a stripped VLAN
//! tag (`VLAN_VALID`), earlier drops (`LOSING`), and a frame that was too long for its slot and is
//! queued complete on the socket (`COPY`).
//!
//! Version 2, because the kernel releases each frame immediately. Version 3 releases blocks, after
//! a timeout of milliseconds.
//!
//! Cost: one copy by the kernel into the slot, one by the reader out of it, and no system call
//! unless a frame is longer than a slot.

use std::io::{self, IoSliceMut};
use std::num::NonZeroU32;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::net::{RecvAncillaryBuffer, RecvFlags, recvmsg};

use crate::packet_socket::PacketSocket;

/// Length of the `virtio_net_hdr` before each frame, in bytes.
pub const VNET_HEADER_LEN: usize = 10;

/// Dimensions of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketRingLayout {
    /// Length of a block in bytes: contiguous kernel memory, a multiple of the page size.
    pub block_len: NonZeroU32,
    /// Number of blocks.
    pub blocks: NonZeroU32,
    /// Length of a slot in bytes, a multiple of 16. A block contains as many slots as fit.
    pub slot_len: NonZeroU32,
}

impl PacketRingLayout {
    fn slots_per_block(self) -> u32 {
        self.block_len.get() / self.slot_len
    }

    fn request(self) -> libc::tpacket_req {
        libc::tpacket_req {
            tp_block_size: self.block_len.get(),
            tp_block_nr: self.blocks.get(),
            tp_frame_size: self.slot_len.get(),
            tp_frame_nr: self.slots_per_block().saturating_mul(self.blocks.get()),
        }
    }

    fn len(self) -> io::Result<usize> {
        let len = u64::from(self.block_len.get()) * u64::from(self.blocks.get());
        usize::try_from(len).map_err(io::Error::other)
    }
}

/// VLAN tag that the kernel has stripped from a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StrippedTag {
    /// TPID of the tag.
    pub tpid: u16,
    /// TCI of the tag.
    pub tci: u16,
}

/// A packet socket and its receive ring.
pub struct PacketRing {
    // Fields drop in this order: the mapping before the socket.
    memory: RingMapping,
    socket: PacketSocket,
    layout: PacketRingLayout,
    /// Next slot to read: its block, its index in the block, and its offset in bytes.
    block: u32,
    slot: u32,
    offset: usize,
}

impl PacketRing {
    /// Creates a ring on `socket`, whose options are set and which is not bound yet.
    ///
    /// # Errors
    /// `EINVAL`: the kernel refuses the layout. `ENOMEM`: the ring is too large.
    pub fn new(socket: PacketSocket, layout: PacketRingLayout) -> io::Result<Self> {
        let version = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
        socket.set(libc::PACKET_VERSION, &version)?;
        let memory = RingMapping::new(&socket, layout)?;
        Ok(Self {
            memory,
            socket,
            layout,
            block: 0,
            slot: 0,
            offset: 0,
        })
    }

    /// Returns the underlying socket.
    #[must_use]
    pub fn socket(&self) -> &PacketSocket {
        &self.socket
    }

    /// True if a frame is available. Reads memory only.
    #[must_use]
    #[inline]
    pub fn is_ready(&self) -> bool {
        // Acquire: the kernel's writes to the slot happen before this load.
        self.status(self.offset).load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// True if no slot contains a frame. Reads the status of every slot.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let (block_len, slot_len) = (self.layout.block_len.get(), self.layout.slot_len.get());
        (0..self.layout.blocks.get()).all(|block| {
            (0..self.layout.slots_per_block()).all(|slot| {
                let offset =
                    block as usize * block_len as usize + slot as usize * slot_len as usize;
                self.status(offset).load(Ordering::Acquire) & libc::TP_STATUS_USER == 0
            })
        })
    }

    /// Returns the next frame, which stays in the ring until the slot is dropped, or `None` if the
    /// ring is empty. Reads memory only.
    #[inline]
    pub fn next_slot(&mut self) -> Option<RingSlot<'_>> {
        let status = self.status(self.offset).load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        let header: *const libc::tpacket2_hdr = self.memory.at(self.offset).cast().as_ptr();
        // SAFETY: the offset is that of a slot: inside the mapping, aligned to 16 bytes and longer
        // than the header. By the status the kernel does not write to the slot now. The status word
        // itself, which the kernel may read, is not among these fields.
        let (wire_len, stored_len, start, tci, tpid) = unsafe {
            (
                (&raw const (*header).tp_len).read(),
                (&raw const (*header).tp_snaplen).read(),
                (&raw const (*header).tp_mac).read(),
                (&raw const (*header).tp_vlan_tci).read(),
                (&raw const (*header).tp_vlan_tpid).read(),
            )
        };
        Some(RingSlot {
            ring: self,
            status,
            wire_len: wire_len as usize,
            stored_len: stored_len as usize,
            start: usize::from(start),
            tag: StrippedTag { tpid, tci },
        })
    }

    /// Discards the ring with its frames and creates a new one on the same socket, which stays
    /// bound and keeps its options.
    ///
    /// # Errors
    /// Those of [`PacketRing::new`]; the ring then stays empty.
    pub fn recreate(&mut self) -> io::Result<()> {
        self.memory = RingMapping::empty();
        let disabled = libc::tpacket_req {
            tp_block_size: 0,
            tp_block_nr: 0,
            tp_frame_size: 0,
            tp_frame_nr: 0,
        };
        self.socket.set(libc::PACKET_RX_RING, &disabled)?;
        (self.block, self.slot, self.offset) = (0, 0, 0);
        self.memory = RingMapping::new(&self.socket, self.layout)?;
        Ok(())
    }

    fn advance(&mut self) {
        self.slot += 1;
        if self.slot == self.layout.slots_per_block() {
            self.slot = 0;
            self.block += 1;
            if self.block == self.layout.blocks.get() {
                self.block = 0;
            }
        }
        self.offset = self.block as usize * self.layout.block_len.get() as usize
            + self.slot as usize * self.layout.slot_len.get() as usize;
    }

    fn status(&self, offset: usize) -> &AtomicU32 {
        static KERNEL: AtomicU32 = AtomicU32::new(libc::TP_STATUS_KERNEL);
        if self.memory.len == 0 {
            return &KERNEL;
        }
        // SAFETY: a slot begins with its status word, is aligned to 16 bytes, and is inside the
        // mapping for as long as `self` is borrowed. Both sides access the word atomically.
        unsafe { AtomicU32::from_ptr(self.memory.at(offset).cast().as_ptr()) }
    }
}

impl AsFd for PacketRing {
    /// Readable while a frame is available; an error is pending after the interface went down.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A frame in the ring. Dropping it returns the slot to the kernel.
pub struct RingSlot<'r> {
    ring: &'r mut PacketRing,
    status: u32,
    wire_len: usize,
    stored_len: usize,
    start: usize,
    tag: StrippedTag,
}

impl RingSlot<'_> {
    /// Length of the frame in bytes, without a stripped tag.
    #[must_use]
    pub fn wire_len(&self) -> usize {
        self.wire_len
    }

    /// Bytes of the frame that are in the slot; empty if the kernel's offsets are inconsistent.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        let end = self.start.saturating_add(self.stored_len);
        self.slot_bytes().get(self.start..end).unwrap_or(&[])
    }

    /// The `virtio_net_hdr`; zeros if the socket has not enabled it.
    #[must_use]
    pub fn vnet_header(&self) -> [u8; VNET_HEADER_LEN] {
        let before = self.slot_bytes().get(..self.start).unwrap_or(&[]);
        before.last_chunk().copied().unwrap_or_default()
    }

    /// Time of reception, in nanoseconds of `CLOCK_REALTIME`.
    #[must_use]
    pub fn timestamp_ns(&self) -> u64 {
        let header: *const libc::tpacket2_hdr =
            self.ring.memory.at(self.ring.offset).cast().as_ptr();
        // SAFETY: the offset is that of a slot, which is aligned, longer than the header, and
        // belongs to this `RingSlot` until it is dropped.
        let (seconds, nanos) = unsafe {
            (
                (&raw const (*header).tp_sec).read(),
                (&raw const (*header).tp_nsec).read(),
            )
        };
        u64::from(seconds) * 1_000_000_000 + u64::from(nanos)
    }

    /// Returns the tag that the kernel has stripped, or `None` if there was none.
    #[must_use]
    pub fn stripped_tag(&self) -> Option<StrippedTag> {
        (self.status & libc::TP_STATUS_VLAN_VALID != 0).then_some(self.tag)
    }

    /// True if the kernel has dropped frames since [`PacketSocket::take_drops`].
    #[must_use]
    pub fn has_pending_drops(&self) -> bool {
        self.status & libc::TP_STATUS_LOSING != 0
    }

    /// True if the frame is longer than the slot and queued complete on the socket.
    #[must_use]
    pub fn is_oversized(&self) -> bool {
        self.status & libc::TP_STATUS_COPY != 0
    }

    /// Receives the complete frame from the socket's queue into `buffer`. Returns its length, which
    /// may exceed that of `buffer`.
    ///
    /// Only if [`RingSlot::is_oversized`], and once per slot: frames are queued in the order of
    /// their slots.
    ///
    /// # Errors
    /// `EAGAIN`: no frame is queued.
    pub fn receive_oversized(&self, buffer: &mut [u8]) -> io::Result<usize> {
        // A copy of the header is in the slot, too.
        let mut header = [0; VNET_HEADER_LEN];
        let mut buffers = [IoSliceMut::new(&mut header), IoSliceMut::new(buffer)];
        let mut control = RecvAncillaryBuffer::default();
        let flags = RecvFlags::DONTWAIT | RecvFlags::TRUNC;
        let received = loop {
            match recvmsg(&self.ring.socket, &mut buffers, &mut control, flags) {
                // The pending error of the socket, which this call has cleared; the frame is still
                // queued.
                Err(Errno::NETDOWN | Errno::INTR) => {}
                other => break other?,
            }
        };
        Ok(received.bytes.saturating_sub(VNET_HEADER_LEN))
    }

    fn slot_bytes(&self) -> &[u8] {
        let len = self.ring.layout.slot_len.get() as usize;
        // SAFETY: the slot is inside the mapping and belongs to this `RingSlot` until it is
        // dropped: the kernel does not write to it, and no other `RingSlot` of this ring can exist.
        unsafe { std::slice::from_raw_parts(self.ring.memory.at(self.ring.offset).as_ptr(), len) }
    }
}

impl Drop for RingSlot<'_> {
    #[inline]
    fn drop(&mut self) {
        // Release: all reads of the slot happen before the kernel may write to it.
        let status = self.ring.status(self.ring.offset);
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.ring.advance();
    }
}

/// Memory of the ring, shared with the kernel.
struct RingMapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the memory belongs to the mapping, not to a thread. It is read only through `&mut
// PacketRing`, except the status words, which are atomic.
unsafe impl Send for RingMapping {}

impl RingMapping {
    fn empty() -> Self {
        Self {
            start: NonNull::dangling(),
            len: 0,
        }
    }

    /// Requests a ring from the kernel and maps it.
    fn new(socket: &PacketSocket, layout: PacketRingLayout) -> io::Result<Self> {
        let aligned = layout.slot_len.get().is_multiple_of(16);
        let fits = layout.slot_len <= layout.block_len;
        if !aligned || !fits || layout.slot_len.get() < 128 {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let len = layout.len()?;
        socket.set(libc::PACKET_RX_RING, &layout.request())?;
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses an unused address.
        let start = unsafe { mmap(ptr::null_mut(), len, access, flags, socket, 0) }?;
        let start = NonNull::new(start.cast()).expect("the kernel never maps address zero");
        Ok(Self { start, len })
    }

    /// Returns the address of the byte at `offset`.
    #[inline]
    fn at(&self, offset: usize) -> NonNull<u8> {
        assert!(offset < self.len, "slots are inside the ring");
        // SAFETY: inside the mapping, as just asserted.
        unsafe { self.start.add(offset) }
    }
}

impl Drop for RingMapping {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: this value owns the mapping, and no borrow of it is left.
            let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
        }
    }
}
