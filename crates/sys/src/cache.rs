//! Prefetch into the processor's caches.

/// Prefetches the cache line at the start of `value` without waiting for it. A load would also
/// fetch it, but instructions that depend on the load would wait; several prefetches proceed in
/// parallel.
///
/// No operation on architectures other than x86-64.
///
/// ```
/// let table = vec![7_u64; 1 << 16];
/// let positions = [5, 40_000, 12_345];
/// for position in positions {
///     sys::cache::prefetch(&table[position]);
/// }
/// // The misses overlap: these loads find their lines in the cache or on the way to it.
/// assert_eq!(positions.map(|position| table[position]), [7, 7, 7]);
/// ```
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every x86-64 processor has the instruction; it has no architectural effect for
        // any address, and this address is that of a reference.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefetch_leaves_values_unchanged() {
        let (words, empty) = ([1_u64, 2, 3], ());
        words.iter().for_each(prefetch);
        prefetch(&empty);
        assert_eq!(words, [1, 2, 3]);
    }
}
