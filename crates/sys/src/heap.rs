//! What the C library keeps of freed memory for later.

/// Gives memory that is free back to the system (`malloc_trim(3)`). The C library
/// does so by itself only for what lies at the end of a heap, and of a million small
/// pieces something always does not.
pub fn trim() {
    // SAFETY: the call takes a number, and may be made at any time from any thread.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn trim_keeps_live_allocations() {
        let boxes: Vec<_> = (0..200_000_u64).map(Box::new).collect();
        let (retained, freed): (Vec<_>, Vec<_>) = boxes.into_iter().partition(|p| **p % 4096 == 0);
        drop(freed);
        super::trim();
        assert_eq!(
            retained.iter().map(|value| **value).max(),
            Some(196_608 / 4096 * 4096)
        );
    }
}
