//! Loops over 64-bit words with AVX2, selected at run time: code compiled for every x86-64
//! processor may use 128-bit registers only.
//!
//! Two kernels of the compiled tables are here. Each has a scalar variant, which the tests compare
//! with the AVX2 variant and with a naive evaluation.
//!
//! [`match_words`] evaluates mask/value conditions on [`LANES`] (32) packets. Words are stored by
//! column, so that one register holds the same field of four packets:
//!
//! ```text
//!  column c:  | p0 | p1 | p2 | p3 | p4 ...                    | p31 |   32 x 8 bytes
//!             +----- ymm ---------+
//!                 and mask, cmpeq value, movmskpd -> 4 result bits
//!  condition: 8 x (load, and, compare, movmsk), then one AND with the bits so far
//! ```
//!
//! A condition costs about 32 vector instructions for 32 packets, one per packet; evaluation ends
//! as soon as no packet is left.
//!
//! [`first_common_bit`] intersects bit vectors: for each packet it ANDs one row of every column and
//! returns the lowest bit that remains, the best rule of a bit-vector classifier (Lakshman and
//! Stiliadis 1998). A row is `Q` quads of 256 bits, so `Q` loads and ANDs for each column.

/// Four words: the contents of one 256-bit register.
pub type Quad = [u64; 4];

/// Bit vectors of one column, and the row that each packet selects.
#[derive(Clone, Copy, Debug)]
pub struct BitmapColumn<'a, const Q: usize> {
    /// All bit vectors of the column.
    pub rows: &'a [[Quad; Q]],
    /// Index into `rows` for each packet.
    pub of: &'a [u16],
}

/// Result for an empty intersection.
pub const NONE: u32 = u32::MAX;

/// Writes, for each packet, the lowest bit that its rows of all columns have in common, or
/// [`NONE`]. Bit 0 is the lowest bit of the first word.
///
/// ```
/// use sys::vectors::{BitmapColumn, NONE, first_common_bit};
///
/// // Rules 0 to 255 as bits: row 0 has rules 3 and 70, row 1 rule 70 only, row 2 none.
/// let rows = [[[1 << 3, 1 << 6, 0, 0]], [[0, 1 << 6, 0, 0]], [[0; 4]]];
/// let address = BitmapColumn { rows: &rows, of: &[0, 0, 2] };
/// let port = BitmapColumn { rows: &rows, of: &[0, 1, 1] };
/// let mut first = [0; 3];
/// first_common_bit(&[address, port], &mut first);
/// assert_eq!(first, [3, 70, NONE]);
/// ```
///
/// # Panics
/// If a column has no row number for a packet, or no row of that number.
#[inline]
pub fn first_common_bit<const Q: usize>(columns: &[BitmapColumn<'_, Q>], first: &mut [u32]) {
    const { assert!(Q <= 8, "a row has at most 32 words, one bit each in a u32") };
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("bmi1") {
        // SAFETY: the processor has the extensions that the function is compiled for.
        unsafe { wide::first_common_bit(columns, first) };
        return;
    }
    first_common_bit_scalar(columns, first);
}

/// Scalar variant of [`first_common_bit`].
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

/// Number of packets in a column.
pub const LANES: usize = 32;

/// A condition on the words of one column: `word & mask == value`.
#[derive(Clone, Copy, Debug)]
pub struct WordCondition {
    /// Index of the column.
    pub column: usize,
    /// Bits that are compared.
    pub mask: u64,
    /// Required value of these bits.
    pub value: u64,
}

/// Returns the packets that satisfy all conditions: bit `i` is set if packet `i` does. Only the
/// packets in `of` are considered; evaluation ends when none is left.
///
/// ```
/// use sys::vectors::{LANES, WordCondition, match_words};
///
/// let mut ports = [80; LANES];
/// ports[5] = 443;
/// let https = WordCondition { column: 0, mask: 0xffff, value: 443 };
/// assert_eq!(match_words(&[ports], &[https], u32::MAX), 1 << 5);
/// assert_eq!(match_words(&[ports], &[https], 0b1111), 0);
/// ```
///
/// # Panics
/// If a condition names a column that does not exist.
#[inline]
pub fn match_words(columns: &[[u64; LANES]], conditions: &[WordCondition], of: u32) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has the extension that the function is compiled for.
        return unsafe { wide::match_words(columns, conditions, of) };
    }
    match_words_scalar(columns, conditions, of)
}

/// Scalar variant of [`match_words`].
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
        // Three columns are the common case; the constant lets the compiler unroll the loop.
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

    /// Returns the index of the lowest bit that is set, or [`NONE`].
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
        // Without a nonzero word the index is beyond the last word.
        let word = (!empty).trailing_zeros();
        match quads.as_flattened().get(word as usize) {
            Some(bits) => word * u64::BITS + bits.trailing_zeros(),
            None => NONE,
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn load(quad: &Quad) -> __m256i {
        // SAFETY: the reference is valid for 32 bytes, and the load needs no alignment.
        unsafe { _mm256_loadu_si256(quad.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn store(from: __m256i, to: &mut Quad) {
        // SAFETY: the reference is valid for 32 bytes, and the store needs no alignment.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), from) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pseudo-random words with few bits set.
    fn sparse(seed: u64) -> u64 {
        let mut random = base::SplitMix64::new(seed);
        (0..5).fold(u64::MAX, |bits, _| bits & random.next_u64())
    }

    /// Compares both variants with a search bit by bit.
    fn check<const Q: usize>() {
        // Miri would take many minutes for all of them.
        const LANES: usize = if cfg!(miri) { 8 } else { 200 };
        let row = |seed: u64| -> [Quad; Q] {
            std::array::from_fn(|quad| {
                std::array::from_fn(|word| sparse(seed * 64 + (quad * 4 + word) as u64))
            })
        };
        let mut rows: Vec<_> = (0..40).map(row).collect();
        rows.push([[0; 4]; Q]);
        rows.push([[u64::MAX; 4]; Q]);
        let number =
            |place: usize| u16::try_from(place % rows.len()).expect("fewer than 65,536 rows");
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
        // The maximum number of quads is 8: `lowest_bit` has one bit for each of 32 words.
        check::<7>();
    }
}
