//! Key of a walk: the headers of an IP packet, the walk before, and the fields of the connection.

use crate::classifier::View;
use crate::key_hash::KeyHasher;
use crate::packed_key::{OptionalFields, PackedKey};

/// Words of a key.
pub(super) const WALK_WORDS: usize = 20;

/// Indices of the optional fields that a key has, and of the start of the walk.
const FIELDS_WORD: usize = 18;
const START_WORD: usize = 19;

/// The start of a packet from a port.
pub(crate) const FROM_PORT: u64 = 0;

/// The words of a packet from which the keys of walks are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WalkWords([u64; WALK_WORDS]);

/// Key of a walk, with its hash.
#[derive(Clone, Copy, Debug)]
pub(super) struct WalkKey {
    pub(super) words: [u64; WALK_WORDS],
    /// The lowest bits select the set.
    pub(super) bucket: u16,
    /// Never zero.
    pub(super) tag: u8,
}

/// The part of a key that depends on the tables.
#[derive(Clone, Copy, Debug)]
pub(super) struct WalkKeyMask {
    hasher: KeyHasher,
    /// Bits of the word with the TCP flags that keys have.
    details: u64,
}

impl WalkKeyMask {
    /// The mask for a view: keys have TCP flags only if tables read them.
    pub(super) fn of(view: &View) -> Self {
        Self {
            hasher: view.hasher,
            details: PackedKey::details_mask(view.header_mask()),
        }
    }

    /// Returns the words of a packet whose walk begins at `start`, or `None` for other packets than
    /// those of IP, without fragments and neighbour discovery.
    #[inline]
    pub(super) fn words_of(&self, key: &PackedKey, start: u64) -> Option<WalkWords> {
        let mut words = [0; WALK_WORDS];
        key.copy_ip_words(&mut words, self.details)?;
        words[START_WORD] = start;
        Some(WalkWords(words))
    }

    /// Returns the key that has these optional fields.
    #[inline]
    pub(super) fn key_of(&self, words: &WalkWords, fields: OptionalFields) -> WalkKey {
        let WalkWords(mut words) = *words;
        fields.mask_ip_words(&mut words);
        words[FIELDS_WORD] = fields.bits().into();
        let hash = self.hasher.hash_pairs(&words);
        let [tag, _] = hash.tag().to_le_bytes();
        WalkKey {
            words,
            bucket: hash.bucket(),
            tag: tag.max(1),
        }
    }
}

impl WalkWords {
    /// True if the walk begins at a port.
    #[inline]
    pub(super) const fn is_from_port(&self) -> bool {
        self.0[START_WORD] == FROM_PORT
    }
}
