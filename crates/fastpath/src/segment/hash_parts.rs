//! The parts of a hash that a bucket does not store. They are stored with the entry, so that the
//! hash is known without the rule when a segment is replaced.

use crate::key_hash::KeyHash;

/// The hash without its tag.
pub(super) fn without_tag(hash: KeyHash) -> u32 {
    u32::from(hash.segment()) << 16 | u32::from(hash.bucket())
}

/// The hash with this tag and these other parts.
pub(super) fn with_tag(tag: u16, rest: u32) -> KeyHash {
    let [segment, bucket] = halves(rest);
    KeyHash::of(segment, tag, bucket)
}

/// The upper and the lower half.
const fn halves(rest: u32) -> [u16; 2] {
    let [a, b, c, d] = rest.to_be_bytes();
    [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_is_restored_from_its_parts() {
        let hash = KeyHash::of(0x1234, 0x5678, 0x9abc);
        assert_eq!(with_tag(hash.tag(), without_tag(hash)), hash);
    }
}
