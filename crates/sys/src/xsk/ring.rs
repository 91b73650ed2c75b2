//! Single-producer, single-consumer rings shared with the kernel
//! (Documentation/networking/af_xdp.rst).
//!
//! ```text
//!  mapping: | producer | consumer | flags | ... | entry 0 | entry 1 | ... | entry 2^n - 1 |
//!
//!    consumer <= producer, both free-running u32; entry of index i: i & (2^n - 1)
//!    consumer .. producer          entries that the consumer may read
//!    producer .. consumer + 2^n    entries that the producer may write
//! ```
//!
//! Each side writes entries or its index and publishes the index with a release store; the other
//! loads it with acquire. Here [`Producer`] and [`Consumer`] publish once per batch. The
//! `need_wakeup` flag requests a system call (`XDP_USE_NEED_WAKEUP`).
//!
//! Indices from the kernel are checked before use. Not here: the meaning of entries.

use std::io;
use std::num::NonZeroU32;
use std::os::fd::OwnedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

/// An entry of a ring; every bit pattern is a value.
pub(super) trait RingEntry: Copy + Send {}
impl RingEntry for u64 {}
impl RingEntry for libc::xdp_desc {}

/// The error of an index or entry that cannot be correct.
pub(super) fn ring_error(what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("inconsistent AF_XDP ring: {what}"),
    )
}

/// A mapping that is unmapped when dropped.
pub(super) struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the memory belongs to the mapping, not to a thread.
unsafe impl Send for Mapping {}
// SAFETY: shared access only computes addresses.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps zeroed memory, aligned to a page.
    pub(super) fn anonymous(len: usize) -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let mut flags = MapFlags::PRIVATE;
        // Miri maps no memory in advance.
        flags.set(MapFlags::POPULATE, !cfg!(miri));
        // SAFETY: the kernel chooses an unused address.
        Self::at_start(
            unsafe { mmap_anonymous(ptr::null_mut(), len, access, flags) }?,
            len,
        )
    }

    /// Maps a ring of `socket`.
    fn of(socket: &OwnedFd, len: usize, offset: u64) -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: the kernel chooses an unused address.
        Self::at_start(
            unsafe { mmap(ptr::null_mut(), len, access, flags, socket, offset) }?,
            len,
        )
    }

    fn at_start(start: *mut libc::c_void, len: usize) -> io::Result<Self> {
        let start = NonNull::new(start.cast()).expect("the kernel never maps address zero");
        Ok(Self { start, len })
    }

    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Returns the address of the `len` bytes at `offset`.
    ///
    /// # Panics
    /// If they are not inside the mapping.
    #[inline]
    pub(super) fn at(&self, offset: usize, len: usize) -> NonNull<u8> {
        assert!(
            len <= self.len && offset <= self.len - len,
            "the range is inside the mapping"
        );
        // SAFETY: inside the mapping, as just asserted.
        unsafe { self.start.add(offset) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this value owns the mapping, and no borrow of it is left.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// Offset and layout of one ring of a socket.
pub(super) struct RingArea {
    pub(super) offset: u64,
    pub(super) layout: libc::xdp_ring_offset,
    /// Number of entries: a power of two.
    pub(super) entries: NonZeroU32,
}

/// The common part of [`Producer`] and [`Consumer`].
struct XskRing<T> {
    mapping: Mapping,
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    first: NonNull<T>,
    entries: u32,
}

// SAFETY: the pointers refer to `mapping`, which moves along, and entries may move to another
// thread.
unsafe impl<T: RingEntry> Send for XskRing<T> {}

impl<T: RingEntry> XskRing<T> {
    fn new(socket: &OwnedFd, area: &RingArea) -> io::Result<Self> {
        Self::in_mapping(area, |len| Mapping::of(socket, len, area.offset))
    }

    /// Creates a ring in the memory of this length that `map` returns.
    fn in_mapping(
        area: &RingArea,
        map: impl FnOnce(usize) -> io::Result<Mapping>,
    ) -> io::Result<Self> {
        let entries = area.entries.get();
        assert!(entries.is_power_of_two(), "the kernel takes no other");
        let offset = |offset: u64| usize::try_from(offset).map_err(io::Error::other);
        let first = offset(area.layout.desc)?;
        let entries_len = entries as usize * size_of::<T>();
        let mapping = map(first + entries_len)?;
        let index = |at: u64| {
            let at = offset(at)?;
            if !at.is_multiple_of(align_of::<AtomicU32>()) || at + 4 > first {
                return Err(ring_error("an index overlaps the entries"));
            }
            Ok(mapping.at(at, 4).cast::<AtomicU32>())
        };
        if !first.is_multiple_of(align_of::<T>()) {
            return Err(ring_error("the entries are not aligned"));
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
        // Acquire: the kernel's writes before it advanced its index are visible. SAFETY: the index
        // is inside the mapping, aligned, and accessed atomically on both sides.
        unsafe { index.as_ref() }.load(Ordering::Acquire)
    }

    fn store(&self, index: NonNull<AtomicU32>, value: u32) {
        // Release: our writes are visible to the kernel when it reads the index. SAFETY: as above.
        unsafe { index.as_ref() }.store(value, Ordering::Release);
    }

    /// Returns the address of the entry with this index.
    fn entry(&self, number: u32) -> NonNull<T> {
        let index = number & (self.entries - 1);
        // SAFETY: less than `entries`, all of which are inside the mapping.
        unsafe { self.first.add(index as usize) }
    }

    /// True if the kernel requires a system call to continue.
    fn needs_wakeup(&self) -> bool {
        self.load(self.flags) & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

/// A ring that user space writes and the kernel reads.
pub(super) struct Producer<T> {
    ring: XskRing<T>,
    /// Index of the next entry, and the published index.
    next: u32,
    published: u32,
}

impl<T: RingEntry> Producer<T> {
    pub(super) fn new(socket: &OwnedFd, area: &RingArea) -> io::Result<Self> {
        XskRing::new(socket, area).map(Self::of)
    }

    fn of(ring: XskRing<T>) -> Self {
        let next = ring.load(ring.producer);
        Self {
            ring,
            next,
            published: next,
        }
    }

    /// Number of published or pending entries that the kernel has not consumed.
    pub(super) fn unread(&self) -> io::Result<u32> {
        let unread = self.next.wrapping_sub(self.ring.load(self.ring.consumer));
        if unread > self.ring.entries {
            return Err(ring_error("more entries were consumed than produced"));
        }
        Ok(unread)
    }

    /// Writes an entry. The caller guarantees space: it has no more chunks than entries fit.
    #[inline]
    pub(super) fn push(&mut self, value: T) {
        // SAFETY: inside the mapping; the kernel does not read the entry before it is published.
        unsafe { self.ring.entry(self.next).write(value) };
        self.next = self.next.wrapping_add(1);
    }

    /// Publishes the written entries.
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

/// A ring that the kernel writes and user space reads.
pub(super) struct Consumer<T> {
    ring: XskRing<T>,
    /// Index of the next entry, end of the readable entries, and the published index.
    next: u32,
    end: u32,
    published: u32,
}

impl<T: RingEntry> Consumer<T> {
    pub(super) fn new(socket: &OwnedFd, area: &RingArea) -> io::Result<Self> {
        XskRing::new(socket, area).map(Self::of)
    }

    fn of(ring: XskRing<T>) -> Self {
        let next = ring.load(ring.consumer);
        Self {
            ring,
            next,
            end: next,
            published: next,
        }
    }

    /// Returns the number of readable entries. Reads memory only.
    #[inline]
    pub(super) fn available(&mut self) -> io::Result<u32> {
        let end = self.ring.load(self.ring.producer);
        let waiting = end.wrapping_sub(self.next);
        if waiting > self.ring.entries {
            return Err(ring_error("more entries were produced than fit"));
        }
        self.end = end;
        Ok(waiting)
    }

    /// Returns the next entry, or `None` if there is none. Reads memory only.
    #[inline]
    pub(super) fn pop(&mut self) -> io::Result<Option<T>> {
        if self.next == self.end && self.available()? == 0 {
            return Ok(None);
        }
        // SAFETY: inside the mapping, and not written by the kernel before `publish`.
        let value = unsafe { self.ring.entry(self.next).read() };
        self.next = self.next.wrapping_add(1);
        Ok(Some(value))
    }

    /// Publishes the consumed entries.
    #[inline]
    pub(super) fn publish(&mut self) {
        if self.published != self.next {
            self.ring.store(self.ring.consumer, self.next);
            self.published = self.next;
        }
    }
}

/// The kernel's side of a ring, simulated by tests.
#[cfg(test)]
impl<T: RingEntry> Producer<T> {
    /// Returns the entry that was written last.
    pub(super) fn last(&self) -> T {
        // SAFETY: inside the mapping, and written.
        unsafe { self.ring.entry(self.next.wrapping_sub(1)).read() }
    }
}

#[cfg(test)]
impl<T: RingEntry> Consumer<T> {
    /// Writes `entries` and advances the producer index by `count`.
    pub(super) fn inject(&self, entries: &[T], count: u32) {
        for (number, entry) in (self.next..).zip(entries) {
            // SAFETY: inside the mapping; the entry is not read before the index is stored.
            unsafe { self.ring.entry(number).write(*entry) };
        }
        let end = self.next.wrapping_add(count);
        self.ring.store(self.ring.producer, end);
    }
}

#[cfg(test)]
mod tests {
    use std::mem::{ManuallyDrop, offset_of};
    use std::{hint, thread};

    use super::*;

    /// Entries of the ring, and entries that pass it. Miri is slow.
    const ENTRIES: u32 = 4;
    const COUNT: u64 = if cfg!(miri) { 40 } else { 20_000 };

    /// Indices in front of the entries, each in a cache line.
    #[repr(C, align(64))]
    struct IndexLine(u32);

    #[repr(C)]
    struct RingHeader {
        producer: IndexLine,
        consumer: IndexLine,
        flags: IndexLine,
    }

    /// Returns both sides of a ring in the same memory, which belongs to the producer.
    fn pair() -> (Producer<u64>, ManuallyDrop<Consumer<u64>>) {
        let layout = libc::xdp_ring_offset {
            producer: offset_of!(RingHeader, producer) as u64,
            consumer: offset_of!(RingHeader, consumer) as u64,
            flags: offset_of!(RingHeader, flags) as u64,
            desc: size_of::<RingHeader>() as u64,
        };
        let area = RingArea {
            offset: 0,
            layout,
            entries: NonZeroU32::new(ENTRIES).expect("not zero"),
        };
        let ring = XskRing::in_mapping(&area, Mapping::anonymous).expect("memory");
        let (start, len) = (ring.mapping.start, ring.mapping.len);
        let other = XskRing::in_mapping(&area, |_| Ok(Mapping { start, len }));
        let other = other.expect("the same layout");
        (Producer::of(ring), ManuallyDrop::new(Consumer::of(other)))
    }

    #[test]
    fn ring_entry_is_never_accessed_by_both_sides() {
        let (mut producer, mut consumer) = pair();
        thread::scope(|scope| {
            scope.spawn(|| {
                for value in 0..COUNT {
                    while producer.unread().expect("indices are correct") == ENTRIES {
                        producer.publish();
                        hint::spin_loop();
                    }
                    producer.push(value);
                    // Batches of one to three.
                    if value % 5 % 2 == 0 {
                        producer.publish();
                    }
                }
                producer.publish();
            });
            scope.spawn(|| {
                for value in 0..COUNT {
                    let popped = loop {
                        if let Some(popped) = consumer.pop().expect("indices are correct") {
                            break popped;
                        }
                        consumer.publish();
                        hint::spin_loop();
                    };
                    assert_eq!(popped, value);
                }
                consumer.publish();
            });
        });
        assert_eq!(producer.unread().expect("indices are correct"), 0);
    }
}
