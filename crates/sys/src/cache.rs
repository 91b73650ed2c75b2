//! The processor's caches, which a program may ask to have something near.

/// Asks for the memory where `value` begins, and does not wait for it. A read would do the same,
/// but hold up whatever stands behind it: so of many that are asked for, more are on their way
/// together.
///
/// It does nothing on processors other than those of x86-64.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the instruction is there on every processor of this architecture, and has no
        // effect that a program could see, whatever the address; and this one is that of a
        // reference.
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
