//! Memory of a frame: a box of its own, or a buffer that belongs to an external owner (a chunk of a
//! UMEM, an mbuf of DPDK) and is released to it when the frame is dropped.
//!
//! ```text
//!  Storage                                 boxed: Box<[u8]>, owner = None
//!  +------+-----+-------+      data, len
//!  | data | len | owner |----------------> external: bytes of a pool that others manage
//!  +------+-----+---|---+
//!                   v
//!             BufferOwner { release }      called once per buffer, on any thread
//! ```
//!
//! The equivalent in DPDK is an mbuf with an attached external buffer (`rte_pktmbuf_attach_extbuf`,
//! whose `free_cb` is `release` here). Readers and writers of the bytes do not distinguish the two
//! kinds and pay nothing for the difference; only dropping does.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};
use std::slice;

/// Owner of external buffers, identified by its address. An owner that is the first field of a
/// larger structure reaches the rest of it through that address.
#[derive(Debug)]
pub struct BufferOwner {
    /// Takes back the buffer at this address, which [`Storage::from_owner`] was given; the first
    /// argument is the owner. Called once for each buffer, on any thread.
    pub release: unsafe fn(NonNull<Self>, NonNull<u8>),
}

/// Bytes of a frame, owned by this value.
///
/// ```
/// let mut storage = sys::storage::Storage::new(vec![0; 64].into_boxed_slice());
/// storage[12..14].copy_from_slice(&[0x08, 0x00]);
/// assert_eq!(storage.len(), 64);
/// assert!(!storage.is_external());
/// ```
pub struct Storage {
    data: NonNull<u8>,
    // As wide as the other fields: a frame is then moved in whole words, and no word is read that
    // was written in two parts.
    len: usize,
    /// `None` for a box. The owner lives until all of its buffers are released.
    owner: Option<NonNull<BufferOwner>>,
}

// SAFETY: the bytes belong to this value alone, and an owner accepts a release from any thread.
unsafe impl Send for Storage {}
// SAFETY: shared references only read.
unsafe impl Sync for Storage {}

impl Storage {
    /// Creates a storage from boxed bytes.
    ///
    /// # Panics
    /// If they are four gigabytes or more.
    #[must_use]
    pub fn new(bytes: Box<[u8]>) -> Self {
        let len = bytes.len();
        assert!(u32::try_from(len).is_ok(), "a frame is shorter than 4 GiB");
        let data = NonNull::from(Box::leak(bytes)).cast();
        Self {
            data,
            len,
            owner: None,
        }
    }

    /// Creates a storage from the `len` bytes at `data`, which are released to `owner`.
    ///
    /// # Safety
    /// The bytes are initialised and exclusive until they are released; `len` is not zero and less
    /// than four gigabytes; `owner` lives until then and accepts the release.
    #[must_use]
    #[inline]
    pub unsafe fn from_owner(data: NonNull<u8>, len: usize, owner: NonNull<BufferOwner>) -> Self {
        Self {
            data,
            len,
            owner: Some(owner),
        }
    }

    /// True if the bytes belong to an external owner.
    #[must_use]
    #[inline]
    pub const fn is_external(&self) -> bool {
        self.owner.is_some()
    }

    /// Returns the start of the bytes if they belong to `owner`, otherwise `None`.
    #[must_use]
    #[inline]
    pub fn owned_by(&self, owner: *const BufferOwner) -> Option<NonNull<u8>> {
        let same = self.owner.is_some_and(|own| ptr::eq(own.as_ptr(), owner));
        same.then_some(self.data)
    }

    /// Drops the value without releasing the bytes: another party releases them.
    #[inline]
    pub fn forget(self) {
        let _ = ManuallyDrop::new(self);
    }
}

/// Frees boxed bytes or releases external ones. Not inlined, so that dropping a frame without bytes
/// stays short; and with arguments by value, so that a frame in transit need not be in memory for
/// this call.
///
/// # Safety
/// The arguments were the fields of a [`Storage`] that is being dropped.
#[inline(never)]
unsafe fn free(data: NonNull<u8>, len: usize, owner: Option<NonNull<BufferOwner>>) {
    match owner {
        // SAFETY: `new` leaked a box of this length at this address.
        None => drop(unsafe {
            let bytes = ptr::slice_from_raw_parts_mut(data.as_ptr(), len);
            Box::from_raw(bytes)
        }),
        // SAFETY: the bytes belong to this owner, which lives until they are released.
        Some(owner) => unsafe { (owner.as_ref().release)(owner, data) },
    }
}

impl Default for Storage {
    /// A storage without bytes.
    #[inline]
    fn default() -> Self {
        Self {
            data: NonNull::dangling(),
            len: 0,
            owner: None,
        }
    }
}

impl Drop for Storage {
    #[inline]
    fn drop(&mut self) {
        if self.len != 0 {
            // SAFETY: this value is the only owner of the bytes and is being dropped.
            unsafe { free(self.data, self.len, self.owner) };
        }
    }
}

impl Deref for Storage {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: `len` initialised bytes at `data` belong to this value; a dangling pointer is
        // valid for zero bytes.
        unsafe { slice::from_raw_parts(self.data.as_ptr(), self.len) }
    }
}

impl DerefMut for Storage {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and the reference is exclusive.
        unsafe { slice::from_raw_parts_mut(self.data.as_ptr(), self.len) }
    }
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Storage({} bytes)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    static RELEASED: AtomicUsize = AtomicUsize::new(0);

    /// Owner of leaked boxes of eight bytes.
    static OWNER: BufferOwner = BufferOwner { release };
    static OTHER_OWNER: BufferOwner = BufferOwner { release };

    unsafe fn release(_: NonNull<BufferOwner>, data: NonNull<u8>) {
        RELEASED.fetch_add(1, Ordering::Relaxed);
        // SAFETY: `external` leaked the box.
        drop(unsafe { Box::from_raw(data.cast::<[u8; 8]>().as_ptr()) });
    }

    fn external() -> Storage {
        let data = NonNull::from(Box::leak(Box::new([7_u8; 8]))).cast();
        // SAFETY: eight initialised bytes that nothing else refers to.
        unsafe { Storage::from_owner(data, 8, NonNull::from(&OWNER)) }
    }

    #[test]
    fn external_storage_is_released_once() {
        let mut storage = external();
        assert!(storage.is_external());
        storage[0] = 1;
        assert_eq!(storage[..], [1, 7, 7, 7, 7, 7, 7, 7]);
        assert!(storage.owned_by(&OTHER_OWNER).is_none());
        drop(storage);
        assert_eq!(RELEASED.load(Ordering::Relaxed), 1);
        let storage = external();
        let data = storage.owned_by(&OWNER).expect("OWNER owns the storage");
        storage.forget();
        assert_eq!(RELEASED.load(Ordering::Relaxed), 1);
        // SAFETY: the buffer belongs to `OWNER` and is not released yet.
        unsafe { release(NonNull::from(&OWNER), data) };
    }

    #[test]
    fn boxed_storage_is_not_external() {
        let mut storage = Storage::new(vec![1, 2, 3].into_boxed_slice());
        storage[1] = 9;
        assert_eq!(
            (&storage[..], storage.is_external()),
            (&[1, 9, 3][..], false)
        );
        assert!(Storage::default().is_empty());
        assert!(Storage::new(Box::default()).is_empty());
    }
}
