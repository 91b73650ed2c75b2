//! The receive ring of a packet socket: memory that the kernel writes frames to
//! and we read them from, without a system call
//! (Documentation/networking/packet_mmap.rst, `TPACKET_V2`).
//!
//! A slot belongs to the kernel or to us, as its status word says; each side
//! writes the word to hand the slot over. Version 2 of the three, because a frame
//! is visible at once: version 3 hands over blocks, by a timer of milliseconds.

use std::io::{self, IoSliceMut};
use std::num::NonZeroU32;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::net::{RecvAncillaryBuffer, RecvFlags, recvmsg};

use crate::packet_socket::PacketSocket;

/// Bytes of the `virtio_net_hdr` before each frame.
pub const VNET_HEADER_LEN: usize = 10;

/// How a ring lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketRingLayout {
    /// Bytes of a block: contiguous in the kernel, a multiple of the page size.
    pub block_len: NonZeroU32,
    /// How many blocks.
    pub blocks: NonZeroU32,
    /// Bytes of a slot, a multiple of 16; a block holds as many as fit.
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

/// The tag that the kernel took out of a frame and keeps beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StrippedTag {
    /// The tag's protocol, as in the frame.
    pub tpid: u16,
    /// The tag's control information, as in the frame.
    pub tci: u16,
}

/// A packet socket and its receive ring.
pub struct PacketRing {
    // Fields drop in this order: first the mapping, then the socket.
    memory: RingMapping,
    socket: PacketSocket,
    layout: PacketRingLayout,
    /// The slot to look at next: its block, its place there, and their offset in bytes.
    block: u32,
    slot: u32,
    offset: usize,
}

impl PacketRing {
    /// Lays a ring of this form under `socket`, whose options are set but which is
    /// not yet bound.
    ///
    /// # Errors
    /// `EINVAL`: the kernel does not like the layout. `ENOMEM`: it is too large.
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

    /// The socket below.
    #[must_use]
    pub fn socket(&self) -> &PacketSocket {
        &self.socket
    }

    /// Whether a frame waits. Reads memory only.
    #[must_use]
    #[inline]
    pub fn is_ready(&self) -> bool {
        // Acquire: what the kernel wrote to the slot before it is ours is visible to us.
        self.status(self.offset).load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// Whether no slot at all holds a frame. Walks the whole ring.
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

    /// The next frame, ours until the slot is dropped. Reads memory only.
    #[inline]
    pub fn next_slot(&mut self) -> Option<RingSlot<'_>> {
        let status = self.status(self.offset).load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        let header: *const libc::tpacket2_hdr = self.memory.at(self.offset).cast().as_ptr();
        // SAFETY: the offset is that of a slot, which is inside the mapping, aligned to 16
        // bytes and longer than the header; the status says that the kernel does not write
        // to it now. The status word itself, which it may poll, is not among these.
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

    /// Throws the ring away, frames and all, and lays a new one under the same
    /// socket, which stays bound and keeps its options.
    ///
    /// # Errors
    /// Those of [`PacketRing::new`]; the ring is then empty for ever.
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
        // SAFETY: a slot begins with its status word, is inside the mapping for as long as
        // we are borrowed, and aligned to 16 bytes. Both sides treat the word as atomic.
        unsafe { AtomicU32::from_ptr(self.memory.at(offset).cast().as_ptr()) }
    }
}

impl AsFd for PacketRing {
    /// Readable when a frame waits; an error waits when the interface went down.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A frame in the ring. Dropped, its slot is the kernel's again.
pub struct RingSlot<'r> {
    ring: &'r mut PacketRing,
    status: u32,
    wire_len: usize,
    stored_len: usize,
    start: usize,
    tag: StrippedTag,
}

impl RingSlot<'_> {
    /// How long the frame was, less the tag that the kernel took out.
    #[must_use]
    pub fn wire_len(&self) -> usize {
        self.wire_len
    }

    /// What of the frame is in the slot; empty if the kernel contradicts itself.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        let end = self.start.saturating_add(self.stored_len);
        self.slot_bytes().get(self.start..end).unwrap_or(&[])
    }

    /// The `virtio_net_hdr`; zeros if the socket was not asked for one.
    #[must_use]
    pub fn vnet_header(&self) -> [u8; VNET_HEADER_LEN] {
        let before = self.slot_bytes().get(..self.start).unwrap_or(&[]);
        before.last_chunk().copied().unwrap_or_default()
    }

    /// When the kernel took the frame, in nanoseconds of `CLOCK_REALTIME`.
    #[must_use]
    pub fn timestamp_ns(&self) -> u64 {
        let header: *const libc::tpacket2_hdr =
            self.ring.memory.at(self.ring.offset).cast().as_ptr();
        // SAFETY: the offset is that of a slot, aligned and longer than the header, and ours
        // alone until we are dropped.
        let (seconds, nanos) = unsafe {
            (
                (&raw const (*header).tp_sec).read(),
                (&raw const (*header).tp_nsec).read(),
            )
        };
        u64::from(seconds) * 1_000_000_000 + u64::from(nanos)
    }

    /// The tag that the kernel took out.
    #[must_use]
    pub fn stripped_tag(&self) -> Option<StrippedTag> {
        (self.status & libc::TP_STATUS_VLAN_VALID != 0).then_some(self.tag)
    }

    /// Whether the kernel has dropped frames since [`PacketSocket::take_drops`].
    #[must_use]
    pub fn has_pending_drops(&self) -> bool {
        self.status & libc::TP_STATUS_LOSING != 0
    }

    /// Whether the frame, too long for the slot, waits whole in the socket's queue.
    #[must_use]
    pub fn is_oversized(&self) -> bool {
        self.status & libc::TP_STATUS_COPY != 0
    }

    /// Takes the frame out of the socket's queue into `buffer`, and returns its
    /// length, which may be more than `buffer` has taken.
    ///
    /// Where [`RingSlot::is_oversized`], once per slot: frames wait in the order of their slots.
    ///
    /// # Errors
    /// `EAGAIN`: no frame waits there.
    pub fn receive_oversized(&self, buffer: &mut [u8]) -> io::Result<usize> {
        // The header is the one that the slot has, too.
        let mut header = [0; VNET_HEADER_LEN];
        let mut buffers = [IoSliceMut::new(&mut header), IoSliceMut::new(buffer)];
        let mut control = RecvAncillaryBuffer::default();
        let flags = RecvFlags::DONTWAIT | RecvFlags::TRUNC;
        let received = loop {
            match recvmsg(&self.ring.socket, &mut buffers, &mut control, flags) {
                // An error that waited on the socket, and waits no longer: the frame still does.
                Err(Errno::NETDOWN | Errno::INTR) => {}
                other => break other?,
            }
        };
        Ok(received.bytes.saturating_sub(VNET_HEADER_LEN))
    }

    fn slot_bytes(&self) -> &[u8] {
        let len = self.ring.layout.slot_len.get() as usize;
        // SAFETY: the slot is inside the mapping, and ours alone until we are dropped: the
        // kernel does not write to it, and no other `RingSlot` of this ring can exist.
        unsafe { std::slice::from_raw_parts(self.ring.memory.at(self.ring.offset).as_ptr(), len) }
    }
}

impl Drop for RingSlot<'_> {
    #[inline]
    fn drop(&mut self) {
        // Release: all our reads of the slot come before the kernel may write to it.
        let status = self.ring.status(self.ring.offset);
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.ring.advance();
    }
}

/// The ring's memory, shared with the kernel.
struct RingMapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the memory belongs to the mapping, not to a thread; it is read through `&mut
// PacketRing` only, but for the status words, which are atomic.
unsafe impl Send for RingMapping {}

impl RingMapping {
    fn empty() -> Self {
        Self {
            start: NonNull::dangling(),
            len: 0,
        }
    }

    /// Asks the kernel for a ring and maps it.
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
        // SAFETY: the kernel chooses a place that nothing else uses.
        let start = unsafe { mmap(ptr::null_mut(), len, access, flags, socket, 0) }?;
        let start = NonNull::new(start.cast()).expect("the kernel maps nothing at zero");
        Ok(Self { start, len })
    }

    /// Where the byte at `offset` lies.
    #[inline]
    fn at(&self, offset: usize) -> NonNull<u8> {
        assert!(offset < self.len, "a slot is inside the ring");
        // SAFETY: inside the mapping, as just asserted.
        unsafe { self.start.add(offset) }
    }
}

impl Drop for RingMapping {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: this mapping is ours, and nothing borrows from it any more.
            let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
        }
    }
}
