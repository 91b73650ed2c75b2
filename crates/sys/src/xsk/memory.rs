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

use super::free::Free;
use super::ring::{Mapping, nonsense};
use super::{Spot, Transfer};
use crate::storage::{Lender, Storage};

/// What of a memory each socket has, and how long its chunks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of a chunk: 2,048 or 4,096.
    pub chunk_len: NonZeroU32,
    /// Chunks for frames that come by a socket: a power of two.
    pub coming: NonZeroU32,
    /// Chunks that may be under way to be sent by a socket: a power of two.
    pub going: NonZeroU32,
}

impl Layout {
    /// What of a chunk the kernel keeps before a frame that comes (`XDP_PACKET_HEADROOM`).
    pub const HEADROOM: u32 = 256;

    /// Chunks of a memory for so many sockets.
    fn chunks(self, sockets: NonZeroU32) -> Option<u32> {
        let stock = u32::try_from(STOCK_MAX).ok()?;
        let each = self.coming.get().checked_add(self.going.get())?;
        let all = each.checked_add(stock)?.checked_mul(sockets.get())?;
        all.checked_add(LENT)
    }
}

/// The most free chunks that a socket keeps at hand between two batches: a batch.
pub(super) const STOCK_MAX: usize = 64;

/// Chunks that may be lent beside those: a worker has a batch of frames in its hands, and
/// some wait to leave.
const LENT: u32 = 128;

/// Memory of AF_XDP sockets. The frames in it may outlive them, and so does it then.
#[repr(C)] // where the lender is, the memory is
pub struct Memory {
    lender: Lender,
    mapping: Mapping,
    layout: Layout,
    /// The logarithm of the length of a chunk.
    shift: u32,
    owners: Box<[AtomicU32]>,
    free: Free,
    /// Chunks that are neither in `free` nor for the kernel to receive into. While there are
    /// some, one reference to this is theirs.
    out: AtomicUsize,
    book: Mutex<Book>,
}

/// What is written down when sockets are opened and closed.
struct Book {
    /// How many sockets more there are chunks for. One may have come while chunks are on
    /// their way back, so it may be below nothing for a moment.
    seats: i64,
    next_line: u32,
    bound: Vec<Bound>,
    closed: Vec<Closed>,
}

/// A socket that is bound: others that are like it share its registration of the memory.
struct Bound {
    line: Line,
    socket: Weak<OwnedFd>,
    transfer: Transfer,
}

/// A socket that was closed, and which queue it had: the kernel may still have its chunks.
struct Closed {
    line: Line,
    at: Spot,
}

/// The number of a socket. None has had it before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line(u32);

/// Who has a chunk, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner(u32);

impl Owner {
    /// Nobody: it is in the stack of those that are free, or a socket has it at hand.
    pub(super) const NOBODY: Self = Self(0);
    /// Whoever has the frame in it.
    pub(super) const LENT: Self = Self(1);

    /// The kernel, to receive by this socket.
    pub(super) const fn coming(line: Line) -> Self {
        Self(2 + 2 * line.0)
    }

    /// The kernel, to send by this socket.
    pub(super) const fn going(line: Line) -> Self {
        Self(3 + 2 * line.0)
    }
}

/// How many chunks of a memory somebody has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Nobody.
    pub free: usize,
    /// Whoever has a frame.
    pub lent: usize,
    /// The kernel, to receive into, or to send, sockets that are closed included.
    pub kernel: usize,
}

impl Memory {
    /// Memory for so many sockets of this layout.
    ///
    /// # Errors
    /// `EINVAL`: the layout is none that the kernel takes. `ENOMEM`: there is not so much.
    pub fn new(layout: Layout, sockets: NonZeroU32) -> io::Result<Arc<Self>> {
        let powers = [layout.chunk_len, layout.coming, layout.going];
        let invalid = || io::Error::from_raw_os_error(libc::EINVAL);
        if !powers.iter().all(|number| number.is_power_of_two()) {
            return Err(invalid());
        }
        let chunks = layout.chunks(sockets).ok_or_else(invalid)?;
        let len = u64::from(chunks) * u64::from(layout.chunk_len.get());
        let len = usize::try_from(len).map_err(io::Error::other)?;
        Ok(Arc::new(Self {
            lender: Lender { give_back },
            mapping: Mapping::anonymous(len)?,
            shift: layout.chunk_len.trailing_zeros(),
            layout,
            owners: (0..chunks).map(|_| AtomicU32::new(0)).collect(),
            free: Free::full(chunks),
            out: AtomicUsize::new(0),
            book: Mutex::new(Book {
                seats: sockets.get().into(),
                next_line: 0,
                bound: Vec::new(),
                closed: Vec::new(),
            }),
        }))
    }

    /// What each socket has of it.
    #[must_use]
    pub const fn layout(&self) -> Layout {
        self.layout
    }

    /// Who has how many chunks, while nothing moves.
    #[must_use]
    pub fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for owner in &self.owners {
            match Owner(owner.load(Ordering::Relaxed)) {
                Owner::NOBODY => tally.free += 1,
                Owner::LENT => tally.lent += 1,
                Owner(_) => tally.kernel += 1,
            }
        }
        tally
    }

    /// Where it begins, and how long it is.
    pub(super) fn place(&self) -> (NonNull<u8>, usize) {
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
    pub(super) fn within(&self, address: u64) -> u64 {
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
    pub(super) fn give(&self, chunk: u32, owner: Owner) {
        self.owners[chunk as usize].store(owner.0, Ordering::Relaxed);
    }

    /// The kernel hands a chunk back that it has as `owner`, or so it says.
    ///
    /// # Errors
    /// It has not.
    #[inline]
    pub(super) fn take_back(&self, chunk: u32, owner: Owner) -> io::Result<()> {
        // Nobody else writes this owner down, or changes it: so it is not between two.
        if self.owners[chunk as usize].load(Ordering::Relaxed) != owner.0 {
            return Err(nonsense("a chunk comes back that was never given"));
        }
        Ok(())
    }

    /// Takes so many free chunks, if there are; they must come back by [`Memory::free`] or
    /// be given to the kernel to receive by [`Memory::settle`].
    pub(super) fn take(self: &Arc<Self>, count: usize, to: &mut Vec<u32>) -> usize {
        let count = self.free.take(count, to);
        if count > 0 && self.out.fetch_add(count, Ordering::AcqRel) == 0 {
            // SAFETY: it is of an `Arc` that is there. `settle` takes it back.
            unsafe { Arc::increment_strong_count(Arc::as_ptr(self)) };
        }
        count
    }

    /// Takes chunks back that were taken, and that nobody has now.
    pub(super) fn free(self: &Arc<Self>, chunks: &[u32]) {
        self.free.put(chunks);
        self.settle(chunks.len());
    }

    /// So many chunks that were taken are the kernel's from now on.
    pub(super) fn settle(self: &Arc<Self>, count: usize) {
        let memory = NonNull::new(Arc::as_ptr(self).cast_mut()).expect("it is there");
        // SAFETY: the `Arc` is there.
        unsafe { settle(memory, count) };
    }

    /// Lends a chunk of which `Owner::LENT` is written down.
    ///
    /// # Safety
    /// It was taken, and nobody has it.
    #[inline]
    pub(super) unsafe fn lend(self: &Arc<Self>, chunk: u32) -> Storage {
        let len = self.layout.chunk_len;
        let data = self.at(chunk, 0, len.get() as usize);
        let lender = NonNull::new(self.lender().cast_mut()).expect("it is there");
        // SAFETY: the kernel has cleared the memory; the chunk is nobody else's, as the
        // caller sees to, and while it is out the memory is there.
        unsafe { Storage::lend(data, len.get() as usize, lender) }
    }

    /// Who lends these chunks and no others.
    #[inline]
    fn lender(self: &Arc<Self>) -> *const Lender {
        // Not of the field: `give_back` finds the rest by it.
        Arc::as_ptr(self).cast()
    }

    /// The chunk that was lent as this storage, if one of these was.
    #[inline]
    pub(super) fn lent(self: &Arc<Self>, storage: &Storage) -> Option<u32> {
        let data = storage.lent_by(self.lender())?;
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
    pub(super) fn sit(&self, at: Spot) -> io::Result<Line> {
        let mut book = self.book();
        let returning = book.closed.iter().any(|closed| closed.at == at);
        if book.seats < 1 && !returning {
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
        }
        book.seats -= 1;
        let line = Line(book.next_line);
        // As many as owners have words for; at some milliseconds each, that takes months.
        book.next_line += 1;
        assert!(book.next_line < u32::MAX / 2 - 2, "sockets have numbers");
        Ok(line)
    }

    /// A socket that is bound and that another may share the registration with.
    pub(super) fn bound_by(&self, transfer: Transfer) -> Option<Arc<OwnedFd>> {
        let book = self.book();
        let mut alike = book.bound.iter().filter(|bound| bound.transfer == transfer);
        alike.find_map(|bound| bound.socket.upgrade())
    }

    /// A socket is bound; the kernel has none of the chunks any more that another had at
    /// the same queue.
    pub(super) fn note_bound(
        &self,
        line: Line,
        at: Spot,
        socket: &Arc<OwnedFd>,
        transfer: Transfer,
    ) {
        self.reclaim(|closed| closed == at);
        let socket = Arc::downgrade(socket);
        self.book().bound.push(Bound {
            line,
            socket,
            transfer,
        });
    }

    /// The kernel has let go of what it had at these queues.
    pub(super) fn reclaim(&self, has_let_go: impl Fn(Spot) -> bool) {
        let mut book = self.book();
        let lines: Vec<_> = book
            .closed
            .extract_if(.., |closed| has_let_go(closed.at))
            .map(|closed| closed.line)
            .collect();
        lines
            .into_iter()
            .for_each(|line| self.sweep(&mut book, line));
    }

    /// A socket is closed that had this queue, if it had one.
    pub(super) fn leave(&self, line: Line, at: Option<Spot>) {
        let mut book = self.book();
        book.bound.retain(|bound| bound.line != line);
        match at {
            Some(at) => book.closed.push(Closed { line, at }),
            None => self.sweep(&mut book, line),
        }
    }

    /// Has what a socket had be free.
    fn sweep(&self, book: &mut Book, line: Line) {
        let its = [Owner::coming(line), Owner::going(line)];
        let mut chunks = Vec::new();
        for (chunk, owner) in (0..).zip(&self.owners) {
            if its.contains(&Owner(owner.load(Ordering::Relaxed))) {
                owner.store(Owner::NOBODY.0, Ordering::Relaxed);
                chunks.push(chunk);
            }
        }
        self.free.put(&chunks);
        book.seats += 1;
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes a chunk back.
///
/// # Safety
/// The lender is that of a [`Memory`], which lent the chunk that begins at `data`; nobody has
/// it any more.
unsafe fn give_back(lender: NonNull<Lender>, data: NonNull<u8>) {
    let memory: NonNull<Memory> = lender.cast();
    {
        // SAFETY: it is there as long as chunks are out.
        let memory = unsafe { memory.as_ref() };
        let chunk = memory.chunk_at(data);
        memory.give(chunk, Owner::NOBODY);
        memory.free.put(&[chunk]);
    }
    // SAFETY: as above; the chunk was one of them.
    unsafe { settle(memory, 1) };
}

/// So many chunks are out no more.
///
/// # Safety
/// The memory is there, in an `Arc`; it may be there no more afterwards, unless the caller
/// has a reference. So many chunks were out.
unsafe fn settle(memory: NonNull<Memory>, count: usize) {
    // SAFETY: it is there.
    let out = unsafe { &*ptr::addr_of!((*memory.as_ptr()).out) };
    if count > 0 && out.fetch_sub(count, Ordering::AcqRel) == count {
        // SAFETY: the reference that `take` made when the first was out.
        unsafe { Arc::decrement_strong_count(memory.as_ptr()) };
    }
}
