//! Release of freed memory to the system.

/// Returns free heap memory to the system (`malloc_trim(3)`). By itself the C library returns only
/// memory at the end of a heap; after a million small allocations some allocation always remains
/// there.
pub fn trim() {
    // SAFETY: the call takes an integer and is allowed at any time from any thread.
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
