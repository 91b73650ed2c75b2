//! What is left of a hash whose tag stands in the slot of a bucket: it is kept beside the entry.

use crate::shape::Hash;

/// What is left of a hash without its tag.
pub(super) fn rest_of(hash: Hash) -> u32 {
    u32::from(hash.segment()) << 16 | u32::from(hash.bucket())
}

/// The hash with this tag and this rest.
pub(super) fn hash_of(tag: u16, rest: u32) -> Hash {
    let [segment, bucket] = split(rest);
    Hash::of(segment, tag, bucket)
}

/// The upper and the lower half.
const fn split(slot: u32) -> [u16; 2] {
    let [a, b, c, d] = slot.to_be_bytes();
    [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_put_together_again() {
        let hash = Hash::of(0x1234, 0x5678, 0x9abc);
        assert_eq!(hash_of(hash.tag(), rest_of(hash)), hash);
    }
}
