//! Fields that most tables do not read, so that a walk of the [walk cache](crate::walk_cache) may
//! hold for packets that differ in them: addresses and ports, and those of the connection.

use flow::field::frag;
use flow::{Field, Match};
use packet::wire::ethernet::EtherType;

use super::{PackedKey, position, presence, word};

/// A set of fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OptionalFields(u8);

/// Bits of the TCP flags in their word.
const TCP_FLAGS: u64 = 0x0fff;

/// Upper and lower half of the word of addresses.
const UPPER: u64 = 0xffff_ffff_0000_0000;
const LOWER: u64 = 0xffff_ffff;

/// Bits of the ports in their word.
const SRC_PORT_BITS: u64 = 0xffff_0000;
const DST_PORT_BITS: u64 = 0xffff;

impl OptionalFields {
    pub(crate) const NONE: Self = Self(0);
    /// Source and destination port, or type and code of ICMP.
    const SRC_PORT: Self = Self(1);
    const DST_PORT: Self = Self(2);
    const SRC_ADDRESS: Self = Self(4);
    const DST_ADDRESS: Self = Self(8);
    /// Addresses and ports of the connection.
    const CONNECTION: Self = Self(16);
    pub(crate) const ALL: Self = Self(31);

    /// The set as a number.
    pub(crate) const fn bits(self) -> u8 {
        self.0
    }

    #[inline]
    pub(crate) const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub(crate) const fn insert(&mut self, others: Self) {
        self.0 |= others.0;
    }

    const fn is_disjoint(self, other: Self) -> bool {
        self.0 & other.0 == 0
    }

    /// The first of the fields.
    const fn first(self) -> Self {
        Self(self.0 & self.0.wrapping_neg())
    }

    /// Returns the optional fields that have some of these bits, and true if other bits are among
    /// them.
    pub(crate) const fn of_bits(index: u8, bits: u64) -> (Self, bool) {
        let mut fields = Self::NONE;
        let known = match index as usize {
            word::TRANSPORT => {
                if bits & SRC_PORT_BITS != 0 {
                    fields.insert(Self::SRC_PORT);
                }
                if bits & DST_PORT_BITS != 0 {
                    fields.insert(Self::DST_PORT);
                }
                SRC_PORT_BITS | DST_PORT_BITS
            }
            word::NETWORK => {
                if bits & UPPER != 0 {
                    fields.insert(Self::SRC_ADDRESS);
                }
                if bits & LOWER != 0 {
                    fields.insert(Self::DST_ADDRESS);
                }
                u64::MAX
            }
            word::IPV6_SRC..word::IPV6_DST => {
                fields.insert(Self::SRC_ADDRESS);
                u64::MAX
            }
            word::IPV6_DST..word::ND_TARGET => {
                fields.insert(Self::DST_ADDRESS);
                u64::MAX
            }
            word::CT_V4..=word::CT_PORTS => {
                fields.insert(Self::CONNECTION);
                u64::MAX
            }
            _ => 0,
        };
        (fields, bits & !known != 0)
    }

    /// Returns the optional field that has the bits of this one, if any.
    pub(crate) fn of_field(field: Field) -> Self {
        let Some(position) = position(field) else {
            return Self::NONE;
        };
        let [index, ..] = position.word.to_le_bytes();
        let bits = match position.is_wide {
            true => u64::MAX,
            false => {
                let bits = field.full_mask() << position.shift;
                u64::try_from(bits & u128::from(u64::MAX)).unwrap_or(u64::MAX)
            }
        };
        Self::of_bits(index, bits).0
    }

    /// Returns fields that show why a packet does not satisfy a match: none if other fields or the
    /// `known` ones do. If it satisfies the match, all fields of the match.
    pub(crate) fn examined_by(self, key: &PackedKey, matching: &Match) -> Self {
        let (mut differing, mut all, mut other_differs) = (Self::NONE, Self::NONE, false);
        let is_compiled = key.compare_terms(matching, |index, mask, difference| {
            all.insert(Self::of_bits(index, mask).0);
            let (fields, others) = Self::of_bits(index, difference);
            differing.insert(fields);
            other_differs |= others;
        });
        match differing {
            _ if !is_compiled => Self::ALL,
            _ if other_differs => Self::NONE,
            Self::NONE => all,
            some if !some.is_disjoint(self) => Self::NONE,
            some => some.first(),
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

    /// Copies all words that an IP packet has, and those of its connection, to the first words of
    /// `to`; `None` for packets of other types, fragments, and neighbour discovery.
    #[inline]
    pub(crate) fn copy_ip_words<const N: usize>(
        &self,
        to: &mut [u64; N],
        details: u64,
    ) -> Option<()> {
        const { assert!(N > 17, "the words of IPv6") };
        let is_fragment = self.0[word::TRANSPORT] & u64::from(frag::ANY) << 32 != 0;
        to[0] = self.0[word::INGRESS];
        to[1] = self.0[word::ETH_DST];
        to[2] = self.0[word::ETH_SRC];
        to[3] = self.0[word::TRANSPORT];
        to[4] = self.0[word::DETAILS] & details;
        to[5] = self.0[word::CONNECTION];
        to[6] = self.0[word::CT_LABEL];
        to[7] = self.0[word::CT_LABEL + 1];
        to[8] = self.0[word::CT_PORTS];
        match self.eth_type() {
            _ if is_fragment => return None,
            EtherType::IPV4 => {
                to[9] = self.0[word::NETWORK] & UPPER;
                to[11] = self.0[word::NETWORK] & LOWER;
                to[13] = self.0[word::CT_V4];
            }
            EtherType::IPV6 if self.0[word::INGRESS] & presence::ND == 0 => {
                to[9..13].copy_from_slice(&self.0[word::IPV6_SRC..word::ND_TARGET]);
                to[13..17].copy_from_slice(&self.0[word::CT_V6_SRC..word::CT_PORTS]);
            }
            _ => return None,
        }
        Some(())
    }
}

impl OptionalFields {
    /// Clears the fields that are not in the set in words of [`PackedKey::copy_ip_words`].
    #[inline]
    pub(crate) fn mask_ip_words<const N: usize>(self, words: &mut [u64; N]) {
        const { assert!(N > 17, "the words of IPv6") };
        if !self.contains(Self::SRC_PORT) {
            words[3] &= !SRC_PORT_BITS;
        }
        if !self.contains(Self::DST_PORT) {
            words[3] &= !DST_PORT_BITS;
        }
        if !self.contains(Self::SRC_ADDRESS) {
            words[9..11].fill(0);
        }
        if !self.contains(Self::DST_ADDRESS) {
            words[11..13].fill(0);
        }
        if !self.contains(Self::CONNECTION) {
            words[8] = 0;
            words[13..17].fill(0);
        }
    }
}
