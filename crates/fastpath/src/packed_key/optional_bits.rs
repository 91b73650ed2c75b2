//! Fields that most tables do not read, or of which they read a few bits, so that a walk of the
//! [walk cache](crate::walk_cache) may hold for packets that differ in them: addresses and ports,
//! and those of the connection.

use flow::field::frag;
use flow::{Field, Match};
use packet::wire::ethernet::EtherType;

use super::{PackedKey, position, presence, word};
use crate::tuple::CommonWord;

/// Words of a key whose optional bits are chosen one by one, and these bits.
const BITWISE: [(usize, u64); 6] = [
    (word::ETH_DST, ADDRESS),
    (word::ETH_SRC, ADDRESS),
    (word::NETWORK, u64::MAX),
    (word::TRANSPORT, PORTS),
    (word::CT_V4, u64::MAX),
    (word::CT_PORTS, u64::MAX),
];

/// Positions in [`BITWISE`].
const ETH_DST: usize = 0;
const ETH_SRC: usize = 1;
const NETWORK: usize = 2;
const TRANSPORT: usize = 3;
const CT_V4: usize = 4;
const CT_PORTS: usize = 5;

/// The words of which a bit is chosen first to show a difference.
const PREFERRED: [usize; 6] = [TRANSPORT, CT_PORTS, NETWORK, CT_V4, ETH_DST, ETH_SRC];

/// Bits of the Ethernet address in its word.
const ADDRESS: u64 = 0xffff_ffff_ffff_0000;

/// Bits of the ports in their word, or of type and code of ICMP.
const PORTS: u64 = 0xffff_ffff;

/// Bits of the TCP flags in their word.
const TCP_FLAGS: u64 = 0x0fff;

/// First word of each field of 128 bits, which is optional as a whole.
const WIDE: [usize; 4] = [
    word::IPV6_SRC,
    word::IPV6_DST,
    word::CT_V6_SRC,
    word::CT_V6_DST,
];

/// Words that [`PackedKey::copy_ip_words`] writes.
pub(crate) const IP_WORDS: usize = 20;

/// The word of them that is left to the caller, and the first that only IPv6 has.
pub(crate) const FREE_WORD: usize = 11;
pub(crate) const FIRST_OF_IPV6: usize = 12;

/// Version of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IpVersion {
    V4,
    V6,
}

/// A set of bits of optional fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(align(64))]
pub(crate) struct OptionalBits {
    /// Bits of the words in [`BITWISE`].
    words: [u64; BITWISE.len()],
    /// A bit for each field in [`WIDE`].
    wide: u8,
}

/// Evidence that a packet satisfies a match, or does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MatchEvidence {
    /// Other fields or known bits show that it does not.
    Known,
    /// This bit shows that it does not.
    Bit(OptionalBits),
    /// The packet matches if all these bits are the same.
    All(OptionalBits),
}

/// Comparison of a packet with conditions, word by word.
#[derive(Default)]
struct KeyComparison {
    /// Optional bits in which they differ.
    differing: OptionalBits,
    /// Optional bits of the conditions.
    all: OptionalBits,
    /// True if other fields or known bits differ.
    is_shown: bool,
}

impl KeyComparison {
    /// Adds the condition on these bits of a word. Keys have the bits `known`.
    #[inline]
    fn add(&mut self, known: &OptionalBits, (index, mask): (u8, u64), difference: u64) {
        match OptionalPart::of_word(index) {
            OptionalPart::Bits(word, optional) => {
                self.all.words[word] |= mask & optional;
                self.differing.words[word] |= difference & optional;
                self.is_shown |= difference & (known.words[word] | !optional) != 0;
            }
            OptionalPart::Wide(field) => {
                self.all.wide |= if mask != 0 { field } else { 0 };
                self.differing.wide |= if difference != 0 { field } else { 0 };
                self.is_shown |= difference != 0 && known.wide & field != 0;
            }
            OptionalPart::None => self.is_shown |= difference != 0,
        }
    }

    fn evidence(&self, preferred: &[OptionalBits]) -> MatchEvidence {
        match self.differing.is_empty() {
            _ if self.is_shown => MatchEvidence::Known,
            true => MatchEvidence::All(self.all),
            false => {
                let common = preferred.iter().map(|bits| bits.common(&self.differing));
                let common = common.into_iter().find(|common| !common.is_empty());
                MatchEvidence::Bit(common.unwrap_or(self.differing).one())
            }
        }
    }
}

/// Part of an optional field.
enum OptionalPart {
    /// Bits of a word in [`BITWISE`], and of these the optional ones.
    Bits(usize, u64),
    /// A field in [`WIDE`].
    Wide(u8),
    /// No part.
    None,
}

impl OptionalPart {
    /// Returns the part that is in a word of a key.
    #[inline]
    const fn of_word(index: u8) -> Self {
        match index as usize {
            word::ETH_DST => Self::Bits(ETH_DST, ADDRESS),
            word::ETH_SRC => Self::Bits(ETH_SRC, ADDRESS),
            word::NETWORK => Self::Bits(NETWORK, u64::MAX),
            word::TRANSPORT => Self::Bits(TRANSPORT, PORTS),
            word::CT_V4 => Self::Bits(CT_V4, u64::MAX),
            word::CT_PORTS => Self::Bits(CT_PORTS, u64::MAX),
            word::IPV6_SRC..word::IPV6_DST => Self::Wide(1),
            word::IPV6_DST..word::ND_TARGET => Self::Wide(2),
            word::CT_V6_SRC..word::CT_V6_DST => Self::Wide(4),
            word::CT_V6_DST..word::CT_PORTS => Self::Wide(8),
            _ => Self::None,
        }
    }
}

impl OptionalBits {
    pub(crate) const NONE: Self = Self {
        words: [0; BITWISE.len()],
        wide: 0,
    };

    pub(crate) const ALL: Self = Self {
        words: {
            let mut words = [0; BITWISE.len()];
            let mut at = 0;
            while at < BITWISE.len() {
                words[at] = BITWISE[at].1;
                at += 1;
            }
            words
        },
        wide: (1 << WIDE.len()) - 1,
    };

    pub(crate) fn insert(&mut self, others: &Self) {
        for (word, other) in self.words.iter_mut().zip(others.words) {
            *word |= other;
        }
        self.wide |= others.wide;
    }

    fn is_empty(&self) -> bool {
        *self == Self::NONE
    }

    /// Returns the optional bits of a mask.
    pub(crate) fn of_mask(mask: &[(u8, u64)]) -> Self {
        let mut bits = Self::NONE;
        for (index, mask) in mask {
            bits.insert_bits(*index, *mask);
        }
        bits
    }

    /// Adds those of these bits of a key's word that are optional.
    pub(crate) const fn insert_bits(&mut self, index: u8, bits: u64) {
        match OptionalPart::of_word(index) {
            OptionalPart::Bits(word, optional) => self.words[word] |= bits & optional,
            OptionalPart::Wide(field) if bits != 0 => self.wide |= field,
            OptionalPart::Wide(_) | OptionalPart::None => {}
        }
    }

    /// Returns the optional bits of a field.
    pub(crate) fn of_field(field: Field) -> Self {
        let mut all = Self::NONE;
        let Some(position) = position(field) else {
            return all;
        };
        let [index, ..] = position.word.to_le_bytes();
        let bits = match position.is_wide {
            true => u64::MAX,
            false => {
                let bits = field.full_mask() << position.shift;
                u64::try_from(bits & u128::from(u64::MAX)).unwrap_or(u64::MAX)
            }
        };
        all.insert_bits(index, bits);
        all
    }

    /// Bits that both sets have.
    fn common(&self, other: &Self) -> Self {
        let mut common = *self;
        for (word, other) in common.words.iter_mut().zip(other.words) {
            *word &= other;
        }
        common.wide &= other.wide;
        common
    }

    /// Number of bits; a field of 128 bits counts as four.
    pub(crate) fn len(&self) -> u32 {
        let bits: u32 = self.words.iter().map(|word| word.count_ones()).sum();
        bits + 4 * self.wide.count_ones()
    }

    /// One of these bits, or one field of 128 bits: the uppermost one, by which a prefix or a small
    /// number is told from most others.
    fn one(&self) -> Self {
        let mut one = Self::NONE;
        match PREFERRED.iter().find(|word| self.words[**word] != 0) {
            Some(word) => one.words[*word] = 1 << self.words[*word].ilog2(),
            None => one.wide = self.wide & self.wide.wrapping_neg(),
        }
        one
    }

    /// Returns why a packet does not satisfy a match. The bits of this set are known to be in the
    /// key; of other bits, those that are `preferred` are chosen first.
    pub(crate) fn examined_by(
        &self,
        key: &PackedKey,
        matching: &Match,
        preferred: &[Self],
    ) -> MatchEvidence {
        let mut comparison = KeyComparison::default();
        let is_compiled = key.compare_terms(matching, |index, mask, difference| {
            comparison.add(self, (index, mask), difference);
        });
        match is_compiled {
            true => comparison.evidence(preferred),
            false => MatchEvidence::All(Self::ALL),
        }
    }

    /// Returns why a packet does not have the bits that all rules of a tuple have in common.
    pub(crate) fn examined_by_words(
        &self,
        key: &PackedKey,
        words: &[CommonWord],
        preferred: &[Self],
    ) -> MatchEvidence {
        let mut comparison = KeyComparison::default();
        for word in words {
            let difference = (key.word(word.index) ^ word.value) & word.mask;
            comparison.add(self, (word.index, word.mask), difference);
        }
        comparison.evidence(preferred)
    }

    /// Clears optional bits that are not in the set in words of [`PackedKey::copy_ip_words`].
    pub(crate) fn mask_ip_words(&self, words: &mut [u64; IP_WORDS]) {
        words[1] &= self.words[ETH_DST] | !ADDRESS;
        words[2] &= self.words[ETH_SRC] | !ADDRESS;
        words[3] &= self.words[TRANSPORT] | !PORTS;
        words[8] &= self.words[CT_PORTS];
        words[9] &= self.words[NETWORK];
        words[10] &= self.words[CT_V4];
        let wide = words[FIRST_OF_IPV6..].chunks_exact_mut(2);
        for (number, field) in wide.enumerate() {
            if self.wide & 1 << number == 0 {
                field.fill(0);
            }
        }
    }
}

impl PackedKey {
    /// Bits of the word with the TCP flags that tell packets apart: all but the flags, unless tables
    /// read these.
    pub(crate) fn details_mask(masks: impl Iterator<Item = (u8, u64)>) -> u64 {
        let mut masks = masks.filter(|(word, _)| usize::from(*word) == word::DETAILS);
        let read = masks.next().map_or(0, |(_, mask)| mask);
        match read & TCP_FLAGS {
            0 => !TCP_FLAGS,
            _ => u64::MAX,
        }
    }

    /// Returns the number of the ingress port.
    #[inline]
    pub(crate) const fn in_port_number(&self) -> u64 {
        self.0[word::INGRESS] >> u32::BITS
    }

    /// Version of a packet of IP, fragments and neighbour discovery excepted.
    #[inline]
    pub(crate) fn ip_version(&self) -> Option<IpVersion> {
        let is_fragment = self.0[word::TRANSPORT] & u64::from(frag::ANY) << 32 != 0;
        match self.eth_type() {
            _ if is_fragment => None,
            EtherType::IPV4 => Some(IpVersion::V4),
            EtherType::IPV6 if self.0[word::INGRESS] & presence::ND == 0 => Some(IpVersion::V6),
            _ => None,
        }
    }

    /// Returns the words of [`PackedKey::copy_ip_words`] that a packet of IPv4 has, without a copy in
    /// memory.
    #[inline]
    pub(crate) fn ipv4_words(&self, details: u64, bits: &OptionalBits) -> [u64; FIRST_OF_IPV6] {
        [
            self.0[word::INGRESS],
            self.0[word::ETH_DST] & (bits.words[ETH_DST] | !ADDRESS),
            self.0[word::ETH_SRC] & (bits.words[ETH_SRC] | !ADDRESS),
            self.0[word::TRANSPORT] & (bits.words[TRANSPORT] | !PORTS),
            self.0[word::DETAILS] & details,
            self.0[word::CONNECTION],
            self.0[word::CT_LABEL],
            self.0[word::CT_LABEL + 1],
            self.0[word::CT_PORTS] & bits.words[CT_PORTS],
            self.0[word::NETWORK] & bits.words[NETWORK],
            self.0[word::CT_V4] & bits.words[CT_V4],
            0,
        ]
    }

    /// Copies the words that an IP packet has, and those of its connection, without optional bits
    /// that are not in `bits`; `None` for packets of other types, fragments, and neighbour discovery.
    #[inline]
    pub(crate) fn copy_ip_words(
        &self,
        to: &mut [u64; IP_WORDS],
        details: u64,
        bits: &OptionalBits,
    ) -> Option<()> {
        let version = self.ip_version()?;
        to[..FIRST_OF_IPV6].copy_from_slice(&self.ipv4_words(details, bits));
        match version {
            IpVersion::V4 => {}
            IpVersion::V6 => {
                (to[9], to[10]) = (0, 0);
                for (number, first) in WIDE.iter().enumerate() {
                    if bits.wide & 1 << number != 0 {
                        let at = FIRST_OF_IPV6 + 2 * number;
                        to[at..at + 2].copy_from_slice(&self.0[*first..first + 2]);
                    }
                }
            }
        }
        Some(())
    }
}
