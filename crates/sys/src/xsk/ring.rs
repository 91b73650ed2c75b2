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
pub(super) trait Entry: Copy + Send {}
impl Entry for u64 {}
impl Entry for libc::xdp_desc {}

/// The kernel's index is where no index can be.
pub(super) fn nonsense(what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("the kernel's ring makes no sense: {what}"),
    )
}

/// Memory that is ours until it is dropped.
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
    fn of(socket: &OwnedFd, len: usize, place: u64) -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: the kernel chooses a place that nothing else uses.
        Self::at_start(
            unsafe { mmap(ptr::null_mut(), len, access, flags, socket, place) }?,
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
pub(super) struct Place {
    pub(super) offset: u64,
    pub(super) layout: libc::xdp_ring_offset,
    /// How many entries: a power of two.
    pub(super) entries: NonZeroU32,
}

/// What both sides of a ring have.
struct Ring<T> {
    memory: Mapping,
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    first: NonNull<T>,
    entries: u32,
}

// SAFETY: the pointers are into `memory`, which goes along, and the entries may go to
// another thread.
unsafe impl<T: Entry> Send for Ring<T> {}

impl<T: Entry> Ring<T> {
    fn new(socket: &OwnedFd, place: &Place) -> io::Result<Self> {
        let entries = place.entries.get();
        assert!(entries.is_power_of_two(), "the kernel takes no other");
        let offset = |offset: u64| usize::try_from(offset).map_err(io::Error::other);
        let first = offset(place.layout.desc)?;
        let entries_len = entries as usize * size_of::<T>();
        let memory = Mapping::of(socket, first + entries_len, place.offset)?;
        let index = |at: u64| {
            let at = offset(at)?;
            if !at.is_multiple_of(align_of::<AtomicU32>()) || at + 4 > first {
                return Err(nonsense("an index is where entries are"));
            }
            Ok(memory.at(at, 4).cast::<AtomicU32>())
        };
        if !first.is_multiple_of(align_of::<T>()) {
            return Err(nonsense("entries are not aligned"));
        }
        Ok(Self {
            producer: index(place.layout.producer)?,
            consumer: index(place.layout.consumer)?,
            flags: index(place.layout.flags)?,
            first: memory.at(first, entries_len).cast(),
            entries,
            memory,
        })
    }

    fn load(&self, index: NonNull<AtomicU32>) -> u32 {
        let _ = &self.memory;
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
        let place = number & (self.entries - 1);
        // SAFETY: less than `entries`, all of which are inside the mapping.
        unsafe { self.first.add(place as usize) }
    }

    /// Whether the kernel wants a system call before it goes on.
    fn wants_a_call(&self) -> bool {
        self.load(self.flags) & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

/// A ring that we write and the kernel reads.
pub(super) struct Producer<T> {
    ring: Ring<T>,
    /// The number of the next entry, and that up to which the kernel may read.
    next: u32,
    told: u32,
}

impl<T: Entry> Producer<T> {
    pub(super) fn new(socket: &OwnedFd, place: &Place) -> io::Result<Self> {
        let ring = Ring::new(socket, place)?;
        let next = ring.load(ring.producer);
        Ok(Self {
            ring,
            next,
            told: next,
        })
    }

    /// How many entries the kernel has not yet read.
    pub(super) fn unread(&self) -> io::Result<u32> {
        let unread = self.next.wrapping_sub(self.ring.load(self.ring.consumer));
        if unread > self.ring.entries {
            return Err(nonsense("more was read than was written"));
        }
        Ok(unread)
    }

    /// Writes an entry. The caller knows that there is room: he has no more entries than fit.
    #[inline]
    pub(super) fn put(&mut self, value: T) {
        // SAFETY: inside the mapping; the kernel does not read it before it is told.
        unsafe { self.ring.entry(self.next).write(value) };
        self.next = self.next.wrapping_add(1);
    }

    /// Lets the kernel read what was written.
    #[inline]
    pub(super) fn tell(&mut self) {
        if self.told != self.next {
            self.ring.store(self.ring.producer, self.next);
            self.told = self.next;
        }
    }

    pub(super) fn wants_a_call(&self) -> bool {
        self.ring.wants_a_call()
    }
}

/// A ring that the kernel writes and we read.
pub(super) struct Consumer<T> {
    ring: Ring<T>,
    /// The number of the next entry, that up to which we may read, and that up to which
    /// the kernel may write again.
    next: u32,
    end: u32,
    told: u32,
}

impl<T: Entry> Consumer<T> {
    pub(super) fn new(socket: &OwnedFd, place: &Place) -> io::Result<Self> {
        let ring = Ring::new(socket, place)?;
        let next = ring.load(ring.consumer);
        Ok(Self {
            ring,
            next,
            end: next,
            told: next,
        })
    }

    /// How many entries there are to be taken. Reads memory only.
    #[inline]
    pub(super) fn waiting(&mut self) -> io::Result<u32> {
        let end = self.ring.load(self.ring.producer);
        let waiting = end.wrapping_sub(self.next);
        if waiting > self.ring.entries {
            return Err(nonsense("more was written than there is room for"));
        }
        self.end = end;
        Ok(waiting)
    }

    /// The next entry, if there is one. Reads memory only.
    #[inline]
    pub(super) fn take(&mut self) -> io::Result<Option<T>> {
        if self.next == self.end && self.waiting()? == 0 {
            return Ok(None);
        }
        // SAFETY: inside the mapping, and ours until `tell`.
        let value = unsafe { self.ring.entry(self.next).read() };
        self.next = self.next.wrapping_add(1);
        Ok(Some(value))
    }

    /// Lets the kernel write where we have read.
    #[inline]
    pub(super) fn tell(&mut self) {
        if self.told != self.next {
            self.ring.store(self.ring.consumer, self.next);
            self.told = self.next;
        }
    }
}

/// The kernel's side of a ring, played by a test.
#[cfg(test)]
impl<T: Entry> Producer<T> {
    /// The entry that was written last.
    pub(super) fn last(&self) -> T {
        // SAFETY: inside the mapping, and written.
        unsafe { self.ring.entry(self.next.wrapping_sub(1)).read() }
    }
}

#[cfg(test)]
impl<T: Entry> Consumer<T> {
    /// Writes these entries and says that `count` more are there.
    pub(super) fn pretend(&self, entries: &[T], count: u32) {
        for (number, entry) in (self.next..).zip(entries) {
            // SAFETY: inside the mapping; nobody reads it before the index is stored.
            unsafe { self.ring.entry(number).write(*entry) };
        }
        let end = self.next.wrapping_add(count);
        self.ring.store(self.ring.producer, end);
    }
}
