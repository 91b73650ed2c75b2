//! The memory that AF_XDP sockets have in common: chunks, and the book of who has each.
//!
//! Of each socket so many chunks are the kernel's, to receive into, as long as it is open,
//! and never fewer: one that is lent with the frame that came in it is replaced at once by a
//! free one, and where there is none it is not lent. So many at most are under way to be
//! sent by a socket. What remains is for frames that are lent, so that no socket can take
//! from another what that needs to receive.
//!
//! What the kernel had when a socket was closed it may write to for a while yet. Such chunks
//! are free again when it has let go of them for certain: when another socket is bound to
//! the same queue, which it allows no sooner, or when the interface is gone.

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

/// What of a memory each socket has, and how long its chunks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UmemLayout {
    /// Bytes of a chunk: 2,048 or 4,096.
    pub chunk_len: NonZeroU32,
    /// Chunks for frames that come by a socket: a power of two.
    pub rx_chunks: NonZeroU32,
    /// Chunks that may be under way to be sent by a socket: a power of two.
    pub tx_chunks: NonZeroU32,
}

impl UmemLayout {
    /// What of a chunk the kernel keeps before a frame that comes (`XDP_PACKET_HEADROOM`).
    pub const HEADROOM: u32 = 256;

    /// Chunks of a memory for so many sockets.
    fn chunks(self, sockets: NonZeroU32) -> Option<u32> {
        let cache = u32::try_from(CACHE_MAX).ok()?;
        let per_socket = self.rx_chunks.get().checked_add(self.tx_chunks.get())?;
        let all = per_socket.checked_add(cache)?.checked_mul(sockets.get())?;
        all.checked_add(DETACHED_MAX)
    }
}

/// The most free chunks that a socket keeps at hand between two batches: a batch.
pub(super) const CACHE_MAX: usize = 64;

/// Chunks that may be lent beside those: a worker has a batch of frames in its hands, and
/// some wait to leave.
const DETACHED_MAX: u32 = 128;

/// Umem of AF_XDP sockets. The frames in it may outlive them, and so does it then.
#[repr(C)] // where the lender is, the umem is
pub struct Umem {
    lender: BufferOwner,
    mapping: Mapping,
    layout: UmemLayout,
    /// The logarithm of the length of a chunk.
    shift: u32,
    owners: Box<[AtomicU32]>,
    free: FreeStack,
    /// Chunks that are neither in `free` nor for the kernel to receive into. While there are
    /// some, one reference to this is theirs.
    checked_out: AtomicUsize,
    registry: Mutex<UmemRegistry>,
}

/// What is written down when sockets are opened and closed.
struct UmemRegistry {
    /// How many sockets more there are chunks for. One may have come while chunks are on
    /// their way back, so it may be below nothing for a moment.
    free_shares: i64,
    next_socket_id: u32,
    bound: Vec<BoundSocket>,
    closed: Vec<ClosedSocket>,
}

/// A socket that is bound: others that are like it share its registration of the memory.
struct BoundSocket {
    socket_id: SocketId,
    socket: Weak<OwnedFd>,
    transfer: Transfer,
}

/// A socket that was closed, and which queue it had: the kernel may still have its chunks.
struct ClosedSocket {
    socket_id: SocketId,
    location: NamespacedQueue,
}

/// The number of a socket. None has had it before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SocketId(u32);

/// Who has a chunk, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChunkOwner(u32);

impl ChunkOwner {
    /// Nobody: it is in the stack of those that are free, or a socket has it at hand.
    pub(super) const FREE: Self = Self(0);
    /// Whoever has the frame in it.
    pub(super) const DETACHED: Self = Self(1);

    /// The kernel, to receive by this socket.
    pub(super) const fn rx_chunks(socket_id: SocketId) -> Self {
        Self(2 + 2 * socket_id.0)
    }

    /// The kernel, to send by this socket.
    pub(super) const fn tx_chunks(socket_id: SocketId) -> Self {
        Self(3 + 2 * socket_id.0)
    }
}

/// How many chunks of a memory somebody has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChunkCounts {
    /// Nobody.
    pub free: usize,
    /// Whoever has a frame.
    pub detached: usize,
    /// The kernel, to receive into, or to send, sockets that are closed included.
    pub kernel: usize,
}

impl Umem {
    /// Umem for so many sockets of this layout.
    ///
    /// # Errors
    /// `EINVAL`: the layout is none that the kernel takes. `ENOMEM`: there is not so much.
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
            lender: BufferOwner { release },
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

    /// What each socket has of it.
    #[must_use]
    pub const fn layout(&self) -> UmemLayout {
        self.layout
    }

    /// Who has how many chunks, while nothing moves.
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

    /// Where it begins, and how long it is.
    pub(super) fn range(&self) -> (NonNull<u8>, usize) {
        (self.mapping.start(), self.owners.len() << self.shift)
    }

    /// Where a chunk is, for the kernel.
    #[inline]
    pub(super) fn address(&self, chunk: u32) -> u64 {
        u64::from(chunk) << self.shift
    }

    /// Which chunk is there, for the kernel.
    #[inline]
    pub(super) fn chunk(&self, address: u64) -> Option<u32> {
        let chunk = u32::try_from(address >> self.shift).ok();
        chunk.filter(|chunk| (*chunk as usize) < self.owners.len())
    }

    /// How far into its chunk an address is.
    #[inline]
    pub(super) fn offset_in_chunk(&self, address: u64) -> u64 {
        address & (u64::from(self.layout.chunk_len.get()) - 1)
    }

    /// Where so many bytes of a chunk lie for us.
    ///
    /// # Panics
    /// If they are not all in the memory.
    #[inline]
    pub(super) fn at(&self, chunk: u32, start: usize, len: usize) -> NonNull<u8> {
        self.mapping
            .at(((chunk as usize) << self.shift) + start, len)
    }

    /// Writes down who has a chunk.
    #[inline]
    pub(super) fn set_owner(&self, chunk: u32, owner: ChunkOwner) {
        self.owners[chunk as usize].store(owner.0, Ordering::Relaxed);
    }

    /// The kernel hands a chunk back that it has as `owner`, or so it says.
    ///
    /// # Errors
    /// It has not.
    #[inline]
    pub(super) fn verify_owner(&self, chunk: u32, owner: ChunkOwner) -> io::Result<()> {
        // Nobody else writes this owner down, or changes it: so it is not between two.
        if self.owners[chunk as usize].load(Ordering::Relaxed) != owner.0 {
            return Err(ring_error("a chunk comes back that was never given"));
        }
        Ok(())
    }

    /// Takes so many free chunks, if there are; they must come back by [`Umem::free`] or
    /// be given to the kernel to receive by [`Umem::check_in`].
    pub(super) fn take(self: &Arc<Self>, count: usize, to: &mut Vec<u32>) -> usize {
        let count = self.free.pop(count, to);
        if count > 0 && self.checked_out.fetch_add(count, Ordering::AcqRel) == 0 {
            // SAFETY: it is of an `Arc` that is there. `check_in` takes it back.
            unsafe { Arc::increment_strong_count(Arc::as_ptr(self)) };
        }
        count
    }

    /// Takes chunks back that were taken, and that nobody has now.
    pub(super) fn free(self: &Arc<Self>, chunks: &[u32]) {
        self.free.push(chunks);
        self.check_in(chunks.len());
    }

    /// So many chunks that were taken are the kernel's from now on.
    pub(super) fn check_in(self: &Arc<Self>, count: usize) {
        let umem = NonNull::new(Arc::as_ptr(self).cast_mut()).expect("it is there");
        // SAFETY: the `Arc` is there.
        unsafe { check_in(umem, count) };
    }

    /// Lends a chunk of which `ChunkOwner::DETACHED` is written down.
    ///
    /// # Safety
    /// It was taken, and nobody has it.
    #[inline]
    pub(super) unsafe fn detach(self: &Arc<Self>, chunk: u32) -> Storage {
        let len = self.layout.chunk_len;
        let data = self.at(chunk, 0, len.get() as usize);
        let lender = NonNull::new(self.lender().cast_mut()).expect("it is there");
        // SAFETY: the kernel has cleared the memory; the chunk is nobody else's, as the
        // caller sees to, and while it is out the memory is there.
        unsafe { Storage::from_owner(data, len.get() as usize, lender) }
    }

    /// Who lends these chunks and no others.
    #[inline]
    fn lender(self: &Arc<Self>) -> *const BufferOwner {
        // Not of the field: `release` finds the rest by it.
        Arc::as_ptr(self).cast()
    }

    /// The chunk that was lent as this storage, if one of these was.
    #[inline]
    pub(super) fn chunk_of(self: &Arc<Self>, storage: &Storage) -> Option<u32> {
        let data = storage.owned_by(self.lender())?;
        Some(self.chunk_at(data))
    }

    /// Which chunk begins there.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "there are no more chunks")]
    fn chunk_at(&self, data: NonNull<u8>) -> u32 {
        let offset = data.addr().get() - self.mapping.start().addr().get();
        (offset >> self.shift) as u32
    }

    /// A number for a socket that is to have its share, at this queue.
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
        // As many as owners have words for; at some milliseconds each, that takes months.
        registry.next_socket_id += 1;
        assert!(
            registry.next_socket_id < u32::MAX / 2 - 2,
            "sockets have numbers"
        );
        Ok(socket_id)
    }

    /// A socket that is bound and that another may share the registration with.
    pub(super) fn find_registration(&self, transfer: Transfer) -> Option<Arc<OwnedFd>> {
        let registry = self.registry();
        let mut matching = registry
            .bound
            .iter()
            .filter(|bound| bound.transfer == transfer);
        matching.find_map(|bound| bound.socket.upgrade())
    }

    /// A socket is bound; the kernel has none of the chunks any more that another had at
    /// the same queue.
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

    /// The kernel has let go of what it had at these queues.
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

    /// A socket is closed that had this queue, if it had one.
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

    /// Has what a socket had be free.
    fn reclaim_chunks(&self, registry: &mut UmemRegistry, socket_id: SocketId) {
        let owners = [
            ChunkOwner::rx_chunks(socket_id),
            ChunkOwner::tx_chunks(socket_id),
        ];
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

/// Takes a chunk back.
///
/// # Safety
/// The lender is that of a [`Umem`], which lent the chunk that begins at `data`; nobody has
/// it any more.
unsafe fn release(lender: NonNull<BufferOwner>, data: NonNull<u8>) {
    let umem: NonNull<Umem> = lender.cast();
    {
        // SAFETY: it is there as long as chunks are out.
        let umem = unsafe { umem.as_ref() };
        let chunk = umem.chunk_at(data);
        umem.set_owner(chunk, ChunkOwner::FREE);
        umem.free.push(&[chunk]);
    }
    // SAFETY: as above; the chunk was one of them.
    unsafe { check_in(umem, 1) };
}

/// So many chunks are out no more.
///
/// # Safety
/// The memory is there, in an `Arc`; it may be there no more afterwards, unless the caller
/// has a reference. So many chunks were out.
unsafe fn check_in(umem: NonNull<Umem>, count: usize) {
    // SAFETY: it is there.
    let checked_out = unsafe { &*ptr::addr_of!((*umem.as_ptr()).checked_out) };
    if count > 0 && checked_out.fetch_sub(count, Ordering::AcqRel) == count {
        // SAFETY: the reference that `take` made when the first was out.
        unsafe { Arc::decrement_strong_count(umem.as_ptr()) };
    }
}
