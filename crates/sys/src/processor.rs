//! Dispatch on instruction set extensions that not every processor of the architecture has.

/// Runs `body` compiled for AVX2, BMI1, BMI2, LZCNT and POPCNT if the processor has all of them,
/// and compiled for the architecture's baseline otherwise. Only code that is inlined into `body`
/// uses the extensions.
///
/// The check costs a few loads of cached feature bits, so `body` should be a whole batch and not
/// one element.
#[inline(always)]
pub fn with_avx2<T>(body: impl FnOnce() -> T) -> T {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected;

        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        fn avx2<T>(body: impl FnOnce() -> T) -> T {
            body()
        }

        let is_supported = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        if is_supported {
            // SAFETY: the processor has the extensions that the function is compiled for.
            return unsafe { avx2(body) };
        }
    }
    body()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn avx2_variant_computes_same_result() {
        let words = [0_u64, 1, 0xf0f0, u64::MAX];
        let count = || words.map(|word| (word.count_ones(), word.trailing_zeros()));
        assert_eq!(with_avx2(count), [(0, 64), (1, 0), (8, 4), (64, 0)]);
    }
}
