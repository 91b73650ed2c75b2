//! The UMEM: memory of AF_XDP sockets, divided into chunks, and the record of each chunk's owner.
//!
//! ```text
//!                      fill ring                  RX ring
//!   FREE ----------------------> RX(s), kernel ----------> RxFrame
//!    ^ ^ |                            ^                     |   |
//!    | | | copy                       +---- not detached ---+   | detached: a FREE chunk
//!    | | v                                                      | takes its place in the
//!    | | TX(s), kernel <--------- in place ------ DETACHED <----+ fill ring
//!    | |   | completion ring                         |
//!    | +---+                                         |
//!    +--------------- frame dropped -----------------+
//! ```
//!
//! The kernel owns `rx_chunks` chunks of each open socket for reception, never fewer: a detached
//! chunk is replaced immediately by a free one, and without a free chunk no frame is detached. At
//! most `tx_chunks` chunks of each socket are in transmission. The rest is for detached frames. No
//! socket can therefore take chunks that another needs for reception.
//!
//! The kernel may write to the chunks of a closed socket for some time. They become free when the
//! kernel has certainly released them: when another socket is bound to the same queue, which the
//! kernel does not allow earlier, or when the interface was removed.

use std::io;
use std::num::NonZeroU32;
use std::os::fd::OwnedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::free_stack::FreeStack;
use super::ring::{Mapping, ring_error};
use super::{NamespacedQueue, Transfer};
use crate::storage::{BufferOwner, Storage};

/// Chunk length, and numbers of chunks per socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UmemLayout {
    /// Length of a chunk in bytes: 2,048 or 4,096.
    pub chunk_len: NonZeroU32,
    /// Chunks for reception by a socket: a power of two.
    pub rx_chunks: NonZeroU32,
    /// Maximum number of chunks in transmission by a socket: a power of two.
    pub tx_chunks: NonZeroU32,
}

impl UmemLayout {
    /// Bytes that the kernel reserves before a received frame (`XDP_PACKET_HEADROOM`).
    pub const HEADROOM: u32 = 256;

    /// Number of chunks of a UMEM for `sockets`.
    fn chunks(self, sockets: NonZeroU32) -> Option<u32> {
        let cache = u32::try_from(CACHE_MAX).ok()?;
        let per_socket = self.rx_chunks.get().checked_add(self.tx_chunks.get())?;
        let all = per_socket.checked_add(cache)?.checked_mul(sockets.get())?;
        all.checked_add(DETACHED_MAX)
    }
}

/// Maximum number of free chunks that a socket caches between two batches: a batch.
pub(super) const CACHE_MAX: usize = 64;

/// Chunks for detached frames beyond the socket caches: a worker processes a batch of frames, and
/// some wait for transmission.
const DETACHED_MAX: u32 = 128;

/// A UMEM. It lives as long as its sockets and the frames in it.
#[repr(C)] // where the owner is, the umem is
pub struct Umem {
    owner: BufferOwner,
    mapping: Mapping,
    layout: UmemLayout,
    /// Logarithm of the chunk length.
    shift: u32,
    owners: Box<[AtomicU32]>,
    free: FreeStack,
    /// Chunks that are neither in `free` nor in a fill ring. While the number is not zero it holds
    /// one reference to this UMEM.
    checked_out: AtomicUsize,
    registry: Mutex<UmemRegistry>,
}

/// Sockets of a UMEM, updated when they are opened and closed.
struct UmemRegistry {
    /// Number of further sockets that the chunks suffice for. A socket may be opened while chunks
    /// of a closed one are still being returned, so the number may be negative for a moment.
    free_shares: i64,
    next_socket_id: u32,
    bound: Vec<BoundSocket>,
    closed: Vec<ClosedSocket>,
}

/// A bound socket, whose registration of the UMEM others with the same transfer share.
struct BoundSocket {
    socket_id: SocketId,
    socket: Weak<OwnedFd>,
    transfer: Transfer,
}

/// A closed socket and its queue: the kernel may still own its chunks.
struct ClosedSocket {
    socket_id: SocketId,
    location: NamespacedQueue,
}

/// Number of a socket, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SocketId(u32);

/// Owner of a chunk, encoded in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChunkOwner(u32);

impl ChunkOwner {
    /// None: the chunk is in the stack of free chunks or in a socket's cache.
    pub(super) const FREE: Self = Self(0);
    /// The holder of the frame in the chunk.
    pub(super) const DETACHED: Self = Self(1);

    /// The kernel, for reception by this socket.
    pub(super) const fn rx(socket_id: SocketId) -> Self {
        Self(2 + 2 * socket_id.0)
    }

    /// The kernel, for transmission by this socket.
    pub(super) const fn tx(socket_id: SocketId) -> Self {
        Self(3 + 2 * socket_id.0)
    }
}

/// Numbers of chunks by owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChunkCounts {
    /// Free chunks.
    pub free: usize,
    /// Chunks of detached frames.
    pub detached: usize,
    /// Chunks that the kernel owns, for reception or transmission, including those of closed
    /// sockets.
    pub kernel: usize,
}

impl Umem {
    /// Allocates a UMEM for `sockets` sockets of this layout.
    ///
    /// # Errors
    /// `EINVAL`: the kernel does not accept the layout. `ENOMEM`: too little memory.
    pub fn new(layout: UmemLayout, sockets: NonZeroU32) -> io::Result<Arc<Self>> {
        let powers = [layout.chunk_len, layout.rx_chunks, layout.tx_chunks];
        let invalid = || io::Error::from_raw_os_error(libc::EINVAL);
        if !powers.iter().all(|number| number.is_power_of_two()) {
            return Err(invalid());
        }
        let chunks = layout.chunks(sockets).ok_or_else(invalid)?;
        let len = u64::from(chunks) * u64::from(layout.chunk_len.get());
        let len = usize::try_from(len).map_err(io::Error::other)?;
        Ok(Arc::new(Self {
            owner: BufferOwner { release },
            mapping: Mapping::anonymous(len)?,
            shift: layout.chunk_len.trailing_zeros(),
            layout,
            owners: (0..chunks).map(|_| AtomicU32::new(0)).collect(),
            free: FreeStack::full(chunks),
            checked_out: AtomicUsize::new(0),
            registry: Mutex::new(UmemRegistry {
                free_shares: sockets.get().into(),
                next_socket_id: 0,
                bound: Vec::new(),
                closed: Vec::new(),
            }),
        }))
    }

    /// Returns the layout.
    #[must_use]
    pub const fn layout(&self) -> UmemLayout {
        self.layout
    }

    /// Counts the chunks by owner; exact only while no frame moves.
    #[must_use]
    pub fn chunk_counts(&self) -> ChunkCounts {
        let mut counts = ChunkCounts::default();
        for owner in &self.owners {
            match ChunkOwner(owner.load(Ordering::Relaxed)) {
                ChunkOwner::FREE => counts.free += 1,
                ChunkOwner::DETACHED => counts.detached += 1,
                ChunkOwner(_) => counts.kernel += 1,
            }
        }
        counts
    }

    /// Returns start and length of the memory.
    pub(super) fn range(&self) -> (NonNull<u8>, usize) {
        (self.mapping.start(), self.owners.len() << self.shift)
    }

    /// Converts a chunk to the kernel's address.
    #[inline]
    pub(super) fn address(&self, chunk: u32) -> u64 {
        u64::from(chunk) << self.shift
    }

    /// Converts the kernel's address to a chunk, or `None` if it is outside the UMEM.
    #[inline]
    pub(super) fn chunk(&self, address: u64) -> Option<u32> {
        let chunk = u32::try_from(address >> self.shift).ok();
        chunk.filter(|chunk| (*chunk as usize) < self.owners.len())
    }

    /// Offset of an address in its chunk.
    #[inline]
    pub(super) fn offset_in_chunk(&self, address: u64) -> u64 {
        address & (u64::from(self.layout.chunk_len.get()) - 1)
    }

    /// Returns the address of `len` bytes at `start` of a chunk.
    ///
    /// # Panics
    /// If they are not inside the UMEM.
    #[inline]
    pub(super) fn at(&self, chunk: u32, start: usize, len: usize) -> NonNull<u8> {
        self.mapping
            .at(((chunk as usize) << self.shift) + start, len)
    }

    /// Records the owner of a chunk.
    #[inline]
    pub(super) fn set_owner(&self, chunk: u32, owner: ChunkOwner) {
        self.owners[chunk as usize].store(owner.0, Ordering::Relaxed);
    }

    /// Checks that a chunk which the kernel returns belongs to `owner`.
    ///
    /// # Errors
    /// It does not.
    #[inline]
    pub(super) fn verify_owner(&self, chunk: u32, owner: ChunkOwner) -> io::Result<()> {
        // Only this thread writes or changes this owner, so the value cannot change between check
        // and use.
        if self.owners[chunk as usize].load(Ordering::Relaxed) != owner.0 {
            return Err(ring_error(
                "the kernel returned a chunk that it does not own",
            ));
        }
        Ok(())
    }

    /// Takes up to `count` free chunks. They are returned by [`Umem::free`], or passed to a fill
    /// ring and reported by [`Umem::check_in`].
    pub(super) fn take(self: &Arc<Self>, count: usize, to: &mut Vec<u32>) -> usize {
        let count = self.free.pop(count, to);
        if count > 0 && self.checked_out.fetch_add(count, Ordering::AcqRel) == 0 {
            // SAFETY: the pointer is that of a live `Arc`. `check_in` drops the reference.
            unsafe { Arc::increment_strong_count(Arc::as_ptr(self)) };
        }
        count
    }

    /// Returns chunks that were taken and have no owner.
    pub(super) fn free(self: &Arc<Self>, chunks: &[u32]) {
        self.free.push(chunks);
        self.check_in(chunks.len());
    }

    /// Reports that `count` taken chunks are in a fill ring.
    pub(super) fn check_in(self: &Arc<Self>, count: usize) {
        let umem = NonNull::new(Arc::as_ptr(self).cast_mut()).expect("an Arc is not null");
        // SAFETY: `self` is an `Arc`.
        unsafe { check_in(umem, count) };
    }

    /// Converts a chunk whose recorded owner is `ChunkOwner::DETACHED` into storage.
    ///
    /// # Safety
    /// The chunk was taken and has no other holder.
    #[inline]
    pub(super) unsafe fn detach(self: &Arc<Self>, chunk: u32) -> Storage {
        let len = self.layout.chunk_len;
        let data = self.at(chunk, 0, len.get() as usize);
        let owner = NonNull::new(self.owner().cast_mut()).expect("an Arc is not null");
        // SAFETY: the mapping is zeroed, hence initialised; the chunk is exclusive by the caller's
        // guarantee, and the UMEM lives while the chunk is checked out.
        unsafe { Storage::from_owner(data, len.get() as usize, owner) }
    }

    /// Identity of this UMEM as the owner of its chunks.
    #[inline]
    fn owner(self: &Arc<Self>) -> *const BufferOwner {
        // Not a pointer to the field: `release` accesses the whole UMEM through it.
        Arc::as_ptr(self).cast()
    }

    /// Returns the chunk of `storage`, or `None` if it belongs to another owner.
    #[inline]
    pub(super) fn chunk_of(self: &Arc<Self>, storage: &Storage) -> Option<u32> {
        let data = storage.owned_by(self.owner())?;
        Some(self.chunk_at(data))
    }

    /// Returns the chunk that begins at `data`.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "there are no more chunks")]
    fn chunk_at(&self, data: NonNull<u8>) -> u32 {
        let offset = data.addr().get() - self.mapping.start().addr().get();
        (offset >> self.shift) as u32
    }

    /// Returns a number for a socket that takes a share, at this queue.
    ///
    /// # Errors
    /// `ENOSPC`: all shares are taken.
    pub(super) fn take_share(&self, location: NamespacedQueue) -> io::Result<SocketId> {
        let mut registry = self.registry();
        let is_reopened = registry
            .closed
            .iter()
            .any(|closed| closed.location == location);
        if registry.free_shares < 1 && !is_reopened {
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
        }
        registry.free_shares -= 1;
        let socket_id = SocketId(registry.next_socket_id);
        // The owner word encodes two owners per socket; at some milliseconds per socket the numbers
        // last for months.
        registry.next_socket_id += 1;
        assert!(
            registry.next_socket_id < u32::MAX / 2 - 2,
            "sockets have numbers"
        );
        Ok(socket_id)
    }

    /// Returns a bound socket whose registration can be shared, or `None` if there is none.
    pub(super) fn find_registration(&self, transfer: Transfer) -> Option<Arc<OwnedFd>> {
        let registry = self.registry();
        let mut matching = registry
            .bound
            .iter()
            .filter(|bound| bound.transfer == transfer);
        matching.find_map(|bound| bound.socket.upgrade())
    }

    /// Records a bound socket; the kernel has released the chunks of an earlier socket at the same
    /// queue.
    pub(super) fn register_socket(
        &self,
        socket_id: SocketId,
        location: NamespacedQueue,
        socket: &Arc<OwnedFd>,
        transfer: Transfer,
    ) {
        self.reclaim(|closed| closed == location);
        let socket = Arc::downgrade(socket);
        self.registry().bound.push(BoundSocket {
            socket_id,
            socket,
            transfer,
        });
    }

    /// Frees the chunks of closed sockets at queues that the kernel has released.
    pub(super) fn reclaim(&self, is_released: impl Fn(NamespacedQueue) -> bool) {
        let mut registry = self.registry();
        let lines: Vec<_> = registry
            .closed
            .extract_if(.., |closed| is_released(closed.location))
            .map(|closed| closed.socket_id)
            .collect();
        lines
            .into_iter()
            .for_each(|socket_id| self.reclaim_chunks(&mut registry, socket_id));
    }

    /// Records a closed socket, with its queue if it was bound.
    pub(super) fn leave(&self, socket_id: SocketId, location: Option<NamespacedQueue>) {
        let mut registry = self.registry();
        registry.bound.retain(|bound| bound.socket_id != socket_id);
        match location {
            Some(location) => registry.closed.push(ClosedSocket {
                socket_id,
                location,
            }),
            None => self.reclaim_chunks(&mut registry, socket_id),
        }
    }

    /// Frees all chunks that the kernel owned through a socket.
    fn reclaim_chunks(&self, registry: &mut UmemRegistry, socket_id: SocketId) {
        let owners = [ChunkOwner::rx(socket_id), ChunkOwner::tx(socket_id)];
        let mut chunks = Vec::new();
        for (chunk, owner) in (0..).zip(&self.owners) {
            if owners.contains(&ChunkOwner(owner.load(Ordering::Relaxed))) {
                owner.store(ChunkOwner::FREE.0, Ordering::Relaxed);
                chunks.push(chunk);
            }
        }
        self.free.push(&chunks);
        registry.free_shares += 1;
    }

    fn registry(&self) -> MutexGuard<'_, UmemRegistry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Frees the chunk of a dropped frame.
///
/// # Safety
/// The owner is that of a [`Umem`], and the chunk that begins at `data` was detached from it and
/// has no holder.
unsafe fn release(owner: NonNull<BufferOwner>, data: NonNull<u8>) {
    let umem: NonNull<Umem> = owner.cast();
    {
        // SAFETY: the UMEM lives as long as chunks are checked out.
        let umem = unsafe { umem.as_ref() };
        let chunk = umem.chunk_at(data);
        umem.set_owner(chunk, ChunkOwner::FREE);
        umem.free.push(&[chunk]);
    }
    // SAFETY: as above; the chunk was checked out.
    unsafe { check_in(umem, 1) };
}

/// Subtracts `count` from the checked-out chunks.
///
/// # Safety
/// `umem` is live, in an `Arc`, and `count` chunks were checked out. The UMEM may be freed by this
/// call unless the caller has a reference.
unsafe fn check_in(umem: NonNull<Umem>, count: usize) {
    // SAFETY: the UMEM is live by the caller's guarantee.
    let checked_out = unsafe { &*ptr::addr_of!((*umem.as_ptr()).checked_out) };
    if count > 0 && checked_out.fetch_sub(count, Ordering::AcqRel) == count {
        // SAFETY: drops the reference that `take` created with the first checked-out chunk.
        unsafe { Arc::decrement_strong_count(umem.as_ptr()) };
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// Detached frames, and rounds. Miri is slow.
    const FRAMES: usize = 3;
    const ROUNDS: usize = if cfg!(miri) { 4 } else { 1_000 };

    fn number(number: u32) -> NonZeroU32 {
        NonZeroU32::new(number).expect("not zero")
    }

    #[test]
    fn last_frame_on_any_thread_frees_the_umem() {
        let layout = UmemLayout {
            chunk_len: number(2048),
            rx_chunks: number(4),
            tx_chunks: number(2),
        };
        for _ in 0..ROUNDS {
            let umem = Umem::new(layout, number(1)).expect("memory");
            let mut chunks = Vec::new();
            assert_eq!(umem.take(FRAMES, &mut chunks), FRAMES);
            let frames = chunks.iter().map(|chunk| {
                umem.set_owner(*chunk, ChunkOwner::DETACHED);
                // SAFETY: the chunk was taken just now, and each is detached once.
                unsafe { umem.detach(*chunk) }
            });
            let frames: Vec<_> = frames.collect();
            let kept = Arc::downgrade(&umem);
            thread::scope(|scope| {
                for (number, mut frame) in (1..).zip(frames) {
                    scope.spawn(move || {
                        frame.fill(number);
                        assert!(frame.iter().all(|byte| *byte == number));
                    });
                }
                // A batch of the socket, which takes chunks that the threads return.
                let mut batch = Vec::new();
                umem.take(CACHE_MAX, &mut batch);
                umem.free(&batch);
                drop(umem);
            });
            assert!(kept.upgrade().is_none(), "no frame refers to the UMEM");
        }
    }
}
