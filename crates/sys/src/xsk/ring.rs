//! A ring that we share with the kernel: one side writes entries and says how far it
//! is, the other reads and says how far it is (Documentation/networking/af_xdp.rst).
//!
//! What the kernel says is checked before it is believed. What the entries mean is
//! not known here.

use std::io;
use std::num::NonZeroU32;
use std::os::fd::OwnedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

/// What may stand in a ring: any bits are a value.
pub(super) trait RingEntry: Copy + Send {}
impl RingEntry for u64 {}
impl RingEntry for libc::xdp_desc {}

/// The kernel's index is where no index can be.
pub(super) fn ring_error(what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("the kernel's ring makes no sense: {what}"),
    )
}

/// Umem that is ours until it is dropped.
pub(super) struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the memory belongs to the mapping, not to a thread.
unsafe impl Send for Mapping {}
// SAFETY: it hands out where things are, and reads and writes nothing.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Fresh memory, at a page's border.
    pub(super) fn anonymous(len: usize) -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::POPULATE;
        // SAFETY: the kernel chooses a place that nothing else uses.
        Self::at_start(
            unsafe { mmap_anonymous(ptr::null_mut(), len, access, flags) }?,
            len,
        )
    }

    /// A ring of `socket`.
    fn of(socket: &OwnedFd, len: usize, offset: u64) -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: the kernel chooses a place that nothing else uses.
        Self::at_start(
            unsafe { mmap(ptr::null_mut(), len, access, flags, socket, offset) }?,
            len,
        )
    }

    fn at_start(start: *mut libc::c_void, len: usize) -> io::Result<Self> {
        let start = NonNull::new(start.cast()).expect("the kernel maps nothing at zero");
        Ok(Self { start, len })
    }

    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Where the `len` bytes at `offset` lie.
    ///
    /// # Panics
    /// If they are not all inside.
    #[inline]
    pub(super) fn at(&self, offset: usize, len: usize) -> NonNull<u8> {
        assert!(
            len <= self.len && offset <= self.len - len,
            "what is looked for is inside the memory"
        );
        // SAFETY: inside the mapping, as just asserted.
        unsafe { self.start.add(offset) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this mapping is ours, and nothing borrows from it any more.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// Which of a socket's rings, and where the kernel maps it.
pub(super) struct RingArea {
    pub(super) offset: u64,
    pub(super) layout: libc::xdp_ring_offset,
    /// How many entries: a power of two.
    pub(super) entries: NonZeroU32,
}

/// What both sides of a ring have.
struct XskRing<T> {
    mapping: Mapping,
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    first: NonNull<T>,
    entries: u32,
}

// SAFETY: the pointers are into `umem`, which goes along, and the entries may go to
// another thread.
unsafe impl<T: RingEntry> Send for XskRing<T> {}

impl<T: RingEntry> XskRing<T> {
    fn new(socket: &OwnedFd, area: &RingArea) -> io::Result<Self> {
        let entries = area.entries.get();
        assert!(entries.is_power_of_two(), "the kernel takes no other");
        let offset = |offset: u64| usize::try_from(offset).map_err(io::Error::other);
        let first = offset(area.layout.desc)?;
        let entries_len = entries as usize * size_of::<T>();
        let mapping = Mapping::of(socket, first + entries_len, area.offset)?;
        let index = |at: u64| {
            let at = offset(at)?;
            if !at.is_multiple_of(align_of::<AtomicU32>()) || at + 4 > first {
                return Err(ring_error("an index is where entries are"));
            }
            Ok(mapping.at(at, 4).cast::<AtomicU32>())
        };
        if !first.is_multiple_of(align_of::<T>()) {
            return Err(ring_error("entries are not aligned"));
        }
        Ok(Self {
            producer: index(area.layout.producer)?,
            consumer: index(area.layout.consumer)?,
            flags: index(area.layout.flags)?,
            first: mapping.at(first, entries_len).cast(),
            entries,
            mapping,
        })
    }

    fn load(&self, index: NonNull<AtomicU32>) -> u32 {
        let _ = &self.mapping;
        // Acquire: what the kernel did before it moved its index is visible to us.
        // SAFETY: the index is inside our mapping, aligned, and atomic on both sides.
        unsafe { index.as_ref() }.load(Ordering::Acquire)
    }

    fn store(&self, index: NonNull<AtomicU32>, value: u32) {
        // Release: what we did before is visible to the kernel when it sees the index.
        // SAFETY: as above.
        unsafe { index.as_ref() }.store(value, Ordering::Release);
    }

    /// Where the entry of this number is.
    fn entry(&self, number: u32) -> NonNull<T> {
        let index = number & (self.entries - 1);
        // SAFETY: less than `entries`, all of which are inside the mapping.
        unsafe { self.first.add(index as usize) }
    }

    /// Whether the kernel wants a system call before it goes on.
    fn needs_wakeup(&self) -> bool {
        self.load(self.flags) & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

/// A ring that we write and the kernel reads.
pub(super) struct Producer<T> {
    ring: XskRing<T>,
    /// The number of the next entry, and that up to which the kernel may read.
    next: u32,
    published: u32,
}

impl<T: RingEntry> Producer<T> {
    pub(super) fn new(socket: &OwnedFd, area: &RingArea) -> io::Result<Self> {
        let ring = XskRing::new(socket, area)?;
        let next = ring.load(ring.producer);
        Ok(Self {
            ring,
            next,
            published: next,
        })
    }

    /// How many entries the kernel has not yet read.
    pub(super) fn unread(&self) -> io::Result<u32> {
        let unread = self.next.wrapping_sub(self.ring.load(self.ring.consumer));
        if unread > self.ring.entries {
            return Err(ring_error("more was read than was written"));
        }
        Ok(unread)
    }

    /// Writes an entry. The caller knows that there is room: he has no more entries than fit.
    #[inline]
    pub(super) fn push(&mut self, value: T) {
        // SAFETY: inside the mapping; the kernel does not read it before it is told.
        unsafe { self.ring.entry(self.next).write(value) };
        self.next = self.next.wrapping_add(1);
    }

    /// Lets the kernel read what was written.
    #[inline]
    pub(super) fn publish(&mut self) {
        if self.published != self.next {
            self.ring.store(self.ring.producer, self.next);
            self.published = self.next;
        }
    }

    pub(super) fn needs_wakeup(&self) -> bool {
        self.ring.needs_wakeup()
    }
}

/// A ring that the kernel writes and we read.
pub(super) struct Consumer<T> {
    ring: XskRing<T>,
    /// The number of the next entry, that up to which we may read, and that up to which
    /// the kernel may write again.
    next: u32,
    end: u32,
    published: u32,
}

impl<T: RingEntry> Consumer<T> {
    pub(super) fn new(socket: &OwnedFd, area: &RingArea) -> io::Result<Self> {
        let ring = XskRing::new(socket, area)?;
        let next = ring.load(ring.consumer);
        Ok(Self {
            ring,
            next,
            end: next,
            published: next,
        })
    }

    /// How many entries there are to be taken. Reads memory only.
    #[inline]
    pub(super) fn available(&mut self) -> io::Result<u32> {
        let end = self.ring.load(self.ring.producer);
        let waiting = end.wrapping_sub(self.next);
        if waiting > self.ring.entries {
            return Err(ring_error("more was written than there is room for"));
        }
        self.end = end;
        Ok(waiting)
    }

    /// The next entry, if there is one. Reads memory only.
    #[inline]
    pub(super) fn pop(&mut self) -> io::Result<Option<T>> {
        if self.next == self.end && self.available()? == 0 {
            return Ok(None);
        }
        // SAFETY: inside the mapping, and ours until `tell`.
        let value = unsafe { self.ring.entry(self.next).read() };
        self.next = self.next.wrapping_add(1);
        Ok(Some(value))
    }

    /// Lets the kernel write where we have read.
    #[inline]
    pub(super) fn publish(&mut self) {
        if self.published != self.next {
            self.ring.store(self.ring.consumer, self.next);
            self.published = self.next;
        }
    }
}

/// The kernel's side of a ring, played by a test.
#[cfg(test)]
impl<T: RingEntry> Producer<T> {
    /// The entry that was written last.
    pub(super) fn last(&self) -> T {
        // SAFETY: inside the mapping, and written.
        unsafe { self.ring.entry(self.next.wrapping_sub(1)).read() }
    }
}

#[cfg(test)]
impl<T: RingEntry> Consumer<T> {
    /// Writes these entries and says that `count` more are there.
    pub(super) fn inject(&self, entries: &[T], count: u32) {
        for (number, entry) in (self.next..).zip(entries) {
            // SAFETY: inside the mapping; nobody reads it before the index is stored.
            unsafe { self.ring.entry(number).write(*entry) };
        }
        let end = self.next.wrapping_add(count);
        self.ring.store(self.ring.producer, end);
    }
}
