//! Key of a walk: the headers of an IP packet, the walk before, and the fields of the connection.

use std::cell::Cell;

use packet::wire::ethernet::EtherType;

use crate::classifier::View;
use crate::key_hash::KeyHasher;
use crate::packed_key::{FIRST_OF_IPV6, FREE_WORD, IP_WORDS, OptionalBits, PackedKey};

/// Index of the start of the walk.
const START_WORD: usize = FREE_WORD;

/// Index of the word with the type of the packet in its lowest bits.
const ETH_DST_WORD: usize = 1;
const TYPE_BITS: u64 = 0xffff;
const IPV4: u64 = EtherType::IPV4.0 as u64;

/// Index of the word with the VLAN tag in its lowest bits, which are zero without a tag.
const ETH_SRC_WORD: usize = 2;
const TAG_BITS: u64 = 0xffff;

/// The start of a packet from a port.
pub(crate) const FROM_PORT: u64 = 0;

/// The words of a packet from which the keys of walks are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WalkWords([u64; IP_WORDS]);

/// Key of a walk, with its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WalkKey {
    pub(super) words: [u64; IP_WORDS],
    pub(super) place: KeyPlace,
}

/// Place of a key in the cache, from its hash.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyPlace {
    /// The lowest bits select the set.
    pub(super) bucket: u16,
    /// Never zero.
    pub(super) tag: u8,
}

impl WalkKey {
    /// True if both keys have the same words.
    #[inline]
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.words == other.words
    }
}

/// Number of levels.
pub(super) const LEVELS: usize = 3;

/// Most bits of a level that only show why packets do not match rules. Few bits show it for most
/// packets: of random numbers, one in 16 has the four upper bits of a small one. The last level is
/// for the others.
const EVIDENCE_MAX: [u32; LEVELS] = [4, 10, u32::MAX];

/// Optional bits on which a walk depends.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NeededBits {
    /// All bits.
    pub(super) all: OptionalBits,
    /// Bits among them that show why packets do not match rules.
    pub(super) evidence: OptionalBits,
}

/// The optional bits of keys with one start, by level. A level has the bits of the levels before.
#[derive(Clone, Debug, Default)]
pub(super) struct StartBits {
    pub(super) levels: [OptionalBits; LEVELS],
    /// Number of levels that have walks.
    used: usize,
    /// The level of the last walk that was found: mostly that of the next one.
    last_found: Cell<usize>,
    evidence: [OptionalBits; LEVELS],
}

impl StartBits {
    /// Adds the bits of a walk. Returns its level.
    fn add(&mut self, needed: &NeededBits) -> usize {
        let has_room = |level: &usize| {
            let mut evidence = self.evidence[*level];
            evidence.insert(&needed.evidence);
            evidence.len() <= EVIDENCE_MAX[*level]
        };
        let level = (0..LEVELS).find(has_room).unwrap_or(LEVELS - 1);
        for bits in &mut self.levels[level..] {
            bits.insert(&needed.all);
        }
        for evidence in &mut self.evidence[level..] {
            evidence.insert(&needed.evidence);
        }
        self.used = self.used.max(level + 1);
        level
    }
}

/// Number of sets of optional bits. Each start has one, which others may share.
const BIT_SETS: usize = 1024;

/// Sets of optional bits for walks that begin at a port.
const PORT_BIT_SETS: usize = 64;

/// Optional bits that keys have, for each start of walks. Bits are only added, until all walks are
/// removed, so a key with fewer bits still holds for all packets that it is found for.
#[derive(Debug)]
pub(super) struct KeyBits {
    hasher: KeyHasher,
    /// Bits of the word with the TCP flags that keys have: the flags only if tables read them.
    details: u64,
    sets: Box<[StartBits]>,
}

impl KeyBits {
    /// No optional bits, for the tables of a view.
    pub(super) fn of(view: &View) -> Self {
        Self {
            hasher: view.hasher,
            details: PackedKey::details_mask(view.header_mask()),
            sets: vec![StartBits::default(); BIT_SETS].into(),
        }
    }

    /// Returns the words of a packet whose walk begins at `start`, or `None` for other packets than
    /// those of IP, without fragments and neighbour discovery.
    pub(super) fn words_of(&self, key: &PackedKey, start: u64) -> Option<WalkWords> {
        let mut words = [0; IP_WORDS];
        key.copy_ip_words(&mut words, self.details, &OptionalBits::ALL)?;
        words[START_WORD] = start;
        Some(WalkWords(words))
    }

    /// Searches the keys of a packet of IPv4 whose walk begins at `start`, level by level. `find`
    /// searches one of them.
    #[inline]
    pub(super) fn find_v4(
        &self,
        key: &PackedKey,
        start: u64,
        find: impl Fn(&[u64; FIRST_OF_IPV6], KeyPlace) -> Option<u16>,
    ) -> Option<u16> {
        let bits = &self.sets[set_at(start, key.in_port_number()) % BIT_SETS];
        let find_in = |level: usize| {
            let mut words = key.ipv4_words(self.details, &bits.levels[level % LEVELS]);
            words[START_WORD] = start;
            find(&words, self.place_of(&words))
        };
        let last = bits.last_found.get();
        if last < bits.used
            && let Some(found) = find_in(last)
        {
            return Some(found);
        }
        let mut others = (0..bits.used).filter(|level| *level != last);
        let (level, found) = others.find_map(|level| Some((level, find_in(level)?)))?;
        bits.last_found.set(level);
        Some(found)
    }

    /// Returns the keys of a packet whose walk begins at `start`, for each level with walks.
    pub(super) fn keys_of(&self, key: &PackedKey, start: u64) -> impl Iterator<Item = WalkKey> {
        let bits = &self.sets[set_at(start, key.in_port_number()) % BIT_SETS];
        let levels = bits.levels[..bits.used.min(LEVELS)].iter();
        levels.filter_map(move |bits| self.key_with(bits, key, start))
    }

    /// Returns the key of a packet whose walk begins at `start`, in the first level.
    pub(super) fn first_key_of(&self, key: &PackedKey, start: u64) -> Option<WalkKey> {
        let bits = &self.sets[set_at(start, key.in_port_number()) % BIT_SETS];
        self.key_with(&bits.levels[0], key, start)
    }

    fn key_with(&self, bits: &OptionalBits, key: &PackedKey, start: u64) -> Option<WalkKey> {
        let mut words = [0; IP_WORDS];
        key.copy_ip_words(&mut words, self.details, bits)?;
        words[START_WORD] = start;
        Some(self.hashed(words))
    }

    /// Returns the bits that keys of these words have.
    pub(super) fn bits_of(&self, words: &WalkWords) -> &StartBits {
        &self.sets[words.set() % BIT_SETS]
    }

    /// Adds the bits of a walk to the keys with the start of these words. Returns its key.
    pub(super) fn add(&mut self, words: &WalkWords, needed: &NeededBits) -> WalkKey {
        let bits = &mut self.sets[words.set() % BIT_SETS];
        let level = bits.add(needed);
        let WalkWords(mut words) = *words;
        bits.levels[level].mask_ip_words(&mut words);
        self.hashed(words)
    }

    fn hashed(&self, words: [u64; IP_WORDS]) -> WalkKey {
        let place = match words.first_chunk::<FIRST_OF_IPV6>() {
            Some(words) if words[ETH_DST_WORD] & TYPE_BITS == IPV4 => self.place_of(words),
            _ => self.place_of(&words),
        };
        WalkKey { words, place }
    }

    /// Returns the place of a key with these words.
    #[inline]
    fn place_of<const N: usize>(&self, words: &[u64; N]) -> KeyPlace {
        let hash = self.hasher.hash_fours(words);
        let [tag, _] = hash.tag().to_le_bytes();
        KeyPlace {
            bucket: hash.bucket(),
            tag: tag.max(1),
        }
    }
}

impl WalkWords {
    /// True if the packet has no VLAN tag.
    pub(super) const fn is_untagged(&self) -> bool {
        let Self(words) = self;
        words[ETH_SRC_WORD] & TAG_BITS == 0
    }

    /// Position of the optional bits of the start.
    fn set(&self) -> usize {
        let Self(words) = self;
        set_at(words[START_WORD], words[0] >> u32::BITS)
    }
}

/// Position of the optional bits of a start. Walks from one port have their own.
#[inline]
fn set_at(start: u64, in_port: u64) -> usize {
    let set = match start {
        FROM_PORT => in_port % PORT_BIT_SETS as u64,
        _ => PORT_BIT_SETS as u64 + start % (BIT_SETS - PORT_BIT_SETS) as u64,
    };
    usize::try_from(set).unwrap_or(0)
}
