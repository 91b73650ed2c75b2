//! The bytes that a frame lies in: a box of its own, or memory that somebody has lent and
//! gets back when nobody has the bytes any more.
//!
//! Whoever reads and writes them sees no difference, and pays for none.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};
use std::slice;

/// Who lends memory. Lenders are told from each other by where they are: one that is the
/// first part of something larger finds the rest of it by that.
#[derive(Debug)]
pub struct BufferOwner {
    /// Takes memory back that begins there and was lent by [`Storage::from_owner`]; it is told
    /// which lender it was. Called once for each, by any thread.
    pub release: unsafe fn(NonNull<Self>, NonNull<u8>),
}

/// Bytes that belong to whoever has this.
pub struct Storage {
    data: NonNull<u8>,
    // As wide as the others: what a frame is moved with is in whole words then, and none is
    // read back that was written in two parts.
    len: usize,
    /// None for a box. It is there until it has all back that it lent.
    owner: Option<NonNull<BufferOwner>>,
}

// SAFETY: the bytes belong to this value alone; a lender takes them back from any thread.
unsafe impl Send for Storage {}
// SAFETY: who shares it can only read.
unsafe impl Sync for Storage {}

impl Storage {
    /// These bytes.
    ///
    /// # Panics
    /// If they are four gigabytes.
    #[must_use]
    pub fn new(bytes: Box<[u8]>) -> Self {
        let len = bytes.len();
        assert!(u32::try_from(len).is_ok(), "a frame is shorter than that");
        let data = NonNull::from(Box::leak(bytes)).cast();
        Self {
            data,
            len,
            owner: None,
        }
    }

    /// The `len` bytes at `data`, which `owner` gets back.
    ///
    /// # Safety
    /// They are there, initialized, and nobody else's until they are given back; `len` is not
    /// zero, and less than four gigabytes; and `owner` is there until then, and takes them back.
    #[must_use]
    #[inline]
    pub unsafe fn from_owner(data: NonNull<u8>, len: usize, owner: NonNull<BufferOwner>) -> Self {
        Self {
            data,
            len,
            owner: Some(owner),
        }
    }

    /// Whether somebody has lent it.
    #[must_use]
    #[inline]
    pub const fn is_external(&self) -> bool {
        self.owner.is_some()
    }

    /// Where it begins, if `owner` has lent it.
    #[must_use]
    #[inline]
    pub fn owned_by(&self, owner: *const BufferOwner) -> Option<NonNull<u8>> {
        let same = self.owner.is_some_and(|own| ptr::eq(own.as_ptr(), owner));
        same.then_some(self.data)
    }

    /// Lets go of it without giving it back: somebody else does that.
    #[inline]
    pub fn forget(self) {
        let _ = ManuallyDrop::new(self);
    }
}

/// Frees bytes or gives them back. A function of its own, so that little is in the way of
/// those who drop frames of which there is nothing left; and of values, so that a frame on
/// its way from place to place need not be in memory for it.
///
/// # Safety
/// They were a [`Storage`]'s, which is dropped with this.
#[inline(never)]
unsafe fn free(data: NonNull<u8>, len: usize, owner: Option<NonNull<BufferOwner>>) {
    match owner {
        // SAFETY: `new` leaked a box of so many bytes there.
        None => drop(unsafe {
            let bytes = ptr::slice_from_raw_parts_mut(data.as_ptr(), len);
            Box::from_raw(bytes)
        }),
        // SAFETY: it was lent by this one, which is there until it has it back.
        Some(owner) => unsafe { (owner.as_ref().release)(owner, data) },
    }
}

impl Default for Storage {
    /// No bytes.
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
            // SAFETY: this is the only one to have them, and has them no more.
            unsafe { free(self.data, self.len, self.owner) };
        }
    }
}

impl Deref for Storage {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: so many initialized bytes are there, and are ours; a dangling pointer is
        // good for none.
        unsafe { slice::from_raw_parts(self.data.as_ptr(), self.len) }
    }
}

impl DerefMut for Storage {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and nobody else has them.
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

    /// Lends leaked boxes of eight bytes.
    static OWNER: BufferOwner = BufferOwner { release };
    static OTHER_OWNER: BufferOwner = BufferOwner { release };

    unsafe fn release(_: NonNull<BufferOwner>, data: NonNull<u8>) {
        RELEASED.fetch_add(1, Ordering::Relaxed);
        // SAFETY: `external` leaked it.
        drop(unsafe { Box::from_raw(data.cast::<[u8; 8]>().as_ptr()) });
    }

    fn external() -> Storage {
        let data = NonNull::from(Box::leak(Box::new([7_u8; 8]))).cast();
        // SAFETY: eight bytes that nobody else has.
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
        let data = storage.owned_by(&OWNER).expect("it is its");
        storage.forget();
        assert_eq!(RELEASED.load(Ordering::Relaxed), 1);
        // SAFETY: it was lent, and not given back yet.
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
