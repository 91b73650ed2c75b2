//! Words that are taken together, by the wide registers of the processor where it has them: what
//! is compiled for every processor of an architecture must do without.
//!
//! It knows nothing of what the words are.

/// Four words, as many as a wide register has.
pub type Quad = [u64; 4];

/// Rows of bits, and which of them each of some has.
#[derive(Clone, Copy, Debug)]
pub struct BitmapColumn<'a, const Q: usize> {
    /// All rows.
    pub rows: &'a [[Quad; Q]],
    /// By place: the number of a row.
    pub of: &'a [u16],
}

/// There is no such bit.
pub const NONE: u32 = u32::MAX;

/// For each place of `first` the first bit that its rows in all columns have; [`NONE`] if there
/// is none. The lowest bit of the first word is the first.
///
/// # Panics
/// If a column does not say of a place which row it has, or it has none of this number.
#[inline]
pub fn first_common_bit<const Q: usize>(columns: &[BitmapColumn<'_, Q>], first: &mut [u32]) {
    const { assert!(Q <= 8, "their words have a bit each in one of 32") };
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("bmi1") {
        // SAFETY: the processor has what the function is compiled for.
        unsafe { wide::first_common_bit(columns, first) };
        return;
    }
    first_common_bit_scalar(columns, first);
}

/// The same, for processors of which no more is known.
fn first_common_bit_scalar<const Q: usize>(columns: &[BitmapColumn<'_, Q>], first: &mut [u32]) {
    for (place, first) in first.iter_mut().enumerate() {
        let mut common = [[u64::MAX; 4]; Q];
        for column in columns {
            let row = column.rows[usize::from(column.of[place])].as_flattened();
            for (common, word) in common.as_flattened_mut().iter_mut().zip(row) {
                *common &= word;
            }
        }
        let mut words = (0..).zip(common.as_flattened());
        let found = words.find(|(_, word)| **word != 0);
        *first = found.map_or(NONE, |(number, word)| {
            number * u64::BITS + word.trailing_zeros()
        });
    }
}

/// Places of a column of words.
pub const LANES: usize = 32;

/// What is wanted of the words of a column: these bits of them.
#[derive(Clone, Copy, Debug)]
pub struct WordCondition {
    /// The column's number.
    pub column: usize,
    /// Which bits count.
    pub mask: u64,
    /// What they are to be.
    pub value: u64,
}

/// In which places words are as they are wanted, in all columns of which something is wanted: a
/// bit for each, the lowest for the first. Of no more than those of `of` it is asked; if none of
/// them has one thing, nothing more is asked.
///
/// # Panics
/// If there is no column of which something is wanted.
#[inline]
pub fn match_words(columns: &[[u64; LANES]], conditions: &[WordCondition], of: u32) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has what the function is compiled for.
        return unsafe { wide::match_words(columns, conditions, of) };
    }
    match_words_scalar(columns, conditions, of)
}

/// The same, for processors of which no more is known.
fn match_words_scalar(columns: &[[u64; LANES]], conditions: &[WordCondition], of: u32) -> u32 {
    let mut matching = of;
    for condition in conditions {
        let matches = |word: &u64| (word ^ condition.value) & condition.mask == 0;
        let words = columns[condition.column].iter().rev();
        matching &= words.fold(0, |bits, word| bits << 1 | u32::from(matches(word)));
        if matching == 0 {
            break;
        }
    }
    matching
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use std::arch::x86_64::{
        __m256i, _mm256_and_si256, _mm256_castsi256_pd, _mm256_cmpeq_epi64, _mm256_loadu_si256,
        _mm256_movemask_pd, _mm256_set1_epi64x, _mm256_setzero_si256, _mm256_storeu_si256,
    };
    use std::borrow::Borrow;

    use super::{BitmapColumn, LANES, NONE, Quad, WordCondition};

    #[target_feature(enable = "avx2")]
    pub(super) fn match_words(
        columns: &[[u64; LANES]],
        conditions: &[WordCondition],
        of: u32,
    ) -> u32 {
        let mut matching = of;
        for condition in conditions {
            let [mask, value] = [condition.mask, condition.value]
                .map(|word| _mm256_set1_epi64x(word.cast_signed()));
            let (quads, _) = columns[condition.column].as_chunks::<4>();
            let matches = |quad: &Quad| {
                let bits = _mm256_and_si256(load(quad), mask);
                let equal = _mm256_cmpeq_epi64(bits, value);
                _mm256_movemask_pd(_mm256_castsi256_pd(equal)).cast_unsigned()
            };
            let each = quads.iter().rev();
            matching &= each.fold(0, |bits, quad| bits << 4 | matches(quad));
            if matching == 0 {
                break;
            }
        }
        matching
    }

    #[target_feature(enable = "avx2,bmi1")]
    pub(super) fn first_common_bit<const Q: usize>(
        columns: &[BitmapColumn<'_, Q>],
        first: &mut [u32],
    ) {
        // So many as there mostly are, so that the number is known when this is compiled.
        match <&[BitmapColumn<'_, Q>; 3]>::try_from(columns) {
            Ok(three) => first_common_bit_unrolled(three, first),
            Err(_) => first_common_bit_unrolled(columns, first),
        }
    }

    #[inline]
    #[target_feature(enable = "avx2,bmi1")]
    fn first_common_bit_unrolled<'a, const Q: usize>(
        columns: &(impl Borrow<[BitmapColumn<'a, Q>]> + ?Sized),
        first: &mut [u32],
    ) {
        let columns = columns.borrow();
        for (place, first) in first.iter_mut().enumerate() {
            let mut common = [_mm256_set1_epi64x(-1); Q];
            for column in columns {
                let row = &column.rows[usize::from(column.of[place])];
                for (common, quad) in common.iter_mut().zip(row) {
                    *common = _mm256_and_si256(*common, load(quad));
                }
            }
            *first = lowest_bit(&common);
        }
    }

    /// The first of these bits.
    #[inline]
    #[target_feature(enable = "avx2,bmi1")]
    fn lowest_bit<const Q: usize>(common: &[__m256i; Q]) -> u32 {
        let mut quads: [Quad; Q] = [[0; 4]; Q];
        let (mut empty, mut place) = (0, 0);
        for (common, quad) in common.iter().zip(&mut quads) {
            let is_zero = _mm256_cmpeq_epi64(*common, _mm256_setzero_si256());
            let zero_mask = _mm256_movemask_pd(_mm256_castsi256_pd(is_zero)).cast_unsigned();
            empty |= zero_mask << place;
            place += 4;
            store(*common, quad);
        }
        // Beyond the last word there is none.
        let word = (!empty).trailing_zeros();
        match quads.as_flattened().get(word as usize) {
            Some(bits) => word * u64::BITS + bits.trailing_zeros(),
            None => NONE,
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn load(quad: &Quad) -> __m256i {
        // SAFETY: so many bytes are there, and any address will do.
        unsafe { _mm256_loadu_si256(quad.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn store(from: __m256i, to: &mut Quad) {
        // SAFETY: there is room for so many bytes, and any address will do.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), from) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look like chance (splitmix64), few bits of each set.
    fn sparse(seed: u64) -> u64 {
        let mixed = |seed: u64| {
            let mixed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed ^ (mixed >> 31)
        };
        (0..5).fold(u64::MAX, |bits, more| bits & mixed(8 * seed + more))
    }

    /// Both ways find what a walk along all bits finds.
    fn check<const Q: usize>() {
        const LANES: usize = 200;
        let row = |seed: u64| -> [Quad; Q] {
            std::array::from_fn(|quad| {
                std::array::from_fn(|word| sparse(seed * 64 + (quad * 4 + word) as u64))
            })
        };
        let mut rows: Vec<_> = (0..40).map(row).collect();
        rows.push([[0; 4]; Q]);
        rows.push([[u64::MAX; 4]; Q]);
        let number = |place: usize| u16::try_from(place % rows.len()).expect("few rows");
        let of = [1, 5, 11].map(|step| (0..LANES).map(|place| number(place * step)).collect());
        let of: [Vec<u16>; 3] = of;
        let columns = of.each_ref().map(|of| BitmapColumn { rows: &rows, of });
        for columns in [&columns[..], &columns[..1], &columns[..2], &[]] {
            let [mut either, mut by_words] = [[7; LANES]; 2];
            first_common_bit(columns, &mut either);
            first_common_bit_scalar(columns, &mut by_words);
            assert_eq!(either, by_words);
            for (place, first) in either.into_iter().enumerate() {
                let matches = |bit: &usize| {
                    let mut rows = columns.iter();
                    rows.all(|column| {
                        let row = column.rows[usize::from(column.of[place])].as_flattened();
                        row[bit / 64] >> (bit % 64) & 1 == 1
                    })
                };
                let conditions = (0..Q * 256).find(matches);
                assert_eq!(
                    usize::try_from(first).ok().filter(|_| first != NONE),
                    conditions
                );
            }
        }
    }

    #[test]
    fn word_conditions_match_naive_evaluation() {
        let word = |column: u64, place: u64| sparse(1000 + column) ^ (place % 7);
        let columns: [[u64; LANES]; 3] =
            [0, 1, 2].map(|column| std::array::from_fn(|place| word(column, place as u64)));
        let condition = |(column, mask, place): (usize, u64, usize)| WordCondition {
            column,
            mask,
            value: columns[column][place] & mask,
        };
        let sets: &[&[(usize, u64, usize)]] = &[
            &[],
            &[(0, 1, 0)],
            &[(0, 3, 5), (1, 4, 2)],
            &[(2, u64::MAX, 3)],
            &[(0, u64::MAX, 0), (1, u64::MAX, 1)],
        ];
        for set in sets {
            let conditions: Vec<_> = set.iter().copied().map(condition).collect();
            for of in [u32::MAX, 0, 0x8000_0001, 0x00ff_ff00] {
                let matches = |place: &usize| {
                    let mut conditions = conditions.iter();
                    of >> place & 1 == 1
                        && conditions.all(|one| columns[one.column][*place] & one.mask == one.value)
                };
                let each = (0..LANES).filter(matches);
                let naive = each.fold(0_u32, |bits, place| bits | 1 << place);
                assert_eq!(match_words(&columns, &conditions, of), naive);
                assert_eq!(match_words_scalar(&columns, &conditions, of), naive);
            }
        }
    }

    #[test]
    fn first_common_bit_matches_naive_search() {
        check::<1>();
        check::<2>();
        check::<4>();
        // As many words as `lowest_bit` has bits for them.
        check::<7>();
    }
}
