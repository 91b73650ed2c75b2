//! What the processor can do that not every one of its architecture can, and what is compiled
//! for those that can.

/// Does what it is given to do, as it is compiled for processors with AVX2 and what goes with
/// it (bits counted and found in one instruction) where this is one. What is not inlined into
/// it is compiled as always.
#[inline(always)]
pub fn at_its_best<T>(work: impl FnOnce() -> T) -> T {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected;

        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        fn best<T>(work: impl FnOnce() -> T) -> T {
            work()
        }

        let has_all = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        if has_all {
            // SAFETY: the processor has what the function is compiled for.
            return unsafe { best(work) };
        }
    }
    work()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_at_its_best_is_the_same() {
        let words = [0_u64, 1, 0xf0f0, u64::MAX];
        let count = || words.map(|word| (word.count_ones(), word.trailing_zeros()));
        assert_eq!(at_its_best(count), [(0, 64), (1, 0), (8, 4), (64, 0)]);
    }
}
