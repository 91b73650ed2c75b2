//! Packed flow key: the fields of a packet in 64-bit words, so that a match is a few masked
//! comparisons (Open vSwitch `struct miniflow`, which stores only the words that are not zero;
//! here every field has a fixed position).
//!
//! ```text
//! word   63            48            32            16             0
//!    0   | in_port                     |                 presence |
//!    1   | eth_dst                                     | eth_type |
//!    2   | eth_src                                     | vlan_tci |
//!    3   | ipv4_src / arp_spa          | ipv4_dst / arp_tpa       |
//!    4   | proto | tos  | ttl | frag   | src port    | dst port   |
//!   ...
//!   14   | metadata                                               |
//!   24   | reg0                        | reg1                     |
//!   ...
//!   32   | ct_mark                     | ct_zone | proto | state  |
//! ```
//!
//! Fields that exclude each other share a position, since a rule on one of them also matches the
//! packet type that has it: ARP addresses share the bits of IPv4 addresses, ICMP type and code
//! those of the ports. A field that may be missing although the packet type has it (a later
//! fragment has no ports) has a *presence* bit, and every match on the field includes that bit.
//!
//! Words 0 to 13 hold the headers and the ingress port. The others hold the pipeline fields
//! (OpenFlow 1.5, 7.2.3.9): they accompany the packet and are the same for all packets of a batch
//! until a rule writes them.

use flow::{Field, Match};

mod field_conditions;
mod fill;
mod optional_bits;
mod packed_match;
mod parse;
mod pipeline_fields;

pub(crate) use field_conditions::{BitRange, FieldCondition, field_conditions};
pub(crate) use optional_bits::{
    FIRST_OF_IPV6, FREE_WORD, IP_WORDS, IpVersion, MatchEvidence, OptionalBits,
};
pub(crate) use packed_match::MatchReader;
pub(crate) use parse::{UncommonFrame, is_untagged_frame};
pub(crate) use pipeline_fields::FieldWrite;

/// Words of a key: a power of two, so that an index is reduced by a mask.
pub(crate) const KEY_WORDS: usize = 64;

const _: () = assert!(
    KEY_WORDS <= u64::BITS as usize,
    "a mask of words has a bit for each"
);

/// Presence bits, in word [`word::INGRESS`].
mod presence {
    /// The header above IP.
    pub(super) const TRANSPORT: u64 = 1 << 0;
    /// ARP addresses; those of protocols other than IPv4 are not parsed.
    pub(super) const ARP_ADDRESSES: u64 = 1 << 1;
    /// The target of neighbour discovery.
    pub(super) const ND: u64 = 1 << 2;
    /// The source link-layer address option.
    pub(super) const SLL: u64 = 1 << 3;
    /// The target link-layer address option.
    pub(super) const TLL: u64 = 1 << 4;
}

/// Indices of the words. Each comment lists the fields from the upper bits down.
mod word {
    /// `in_port`, presence bits.
    pub(super) const INGRESS: usize = 0;
    /// `eth_dst`, `eth_type`.
    pub(super) const ETH_DST: usize = 1;
    /// `eth_src`, VLAN tag.
    pub(super) const ETH_SRC: usize = 2;
    /// Source and destination of IPv4 or ARP; MPLS; PBB; network service header; reserved word
    /// of neighbour discovery.
    pub(super) const NETWORK: usize = 3;
    /// Protocol, ToS, TTL, fragment; ports, or ICMP type and code.
    pub(super) const TRANSPORT: usize = 4;
    /// Type of the first neighbour discovery option, flow label, extension headers, TCP flags;
    /// ARP opcode.
    pub(super) const DETAILS: usize = 5;
    /// Two words each; context of the network service header.
    pub(super) const IPV6_SRC: usize = 6;
    pub(super) const IPV6_DST: usize = 8;
    pub(super) const ND_TARGET: usize = 10;
    /// `arp_sha`, `nd_sll`.
    pub(super) const SENDER: usize = 12;
    /// `arp_tha`, `nd_tll`.
    pub(super) const TARGET: usize = 13;
    pub(super) const METADATA: usize = 14;
    pub(super) const TUNNEL_ID: usize = 15;
    /// IPv4 source and destination of the tunnel.
    pub(super) const TUNNEL_V4: usize = 16;
    /// Two words each.
    pub(super) const TUNNEL_V6_SRC: usize = 17;
    pub(super) const TUNNEL_V6_DST: usize = 19;
    /// `pkt_mark`, `conj_id`.
    pub(super) const MARK: usize = 21;
    /// Fields that are zero for every packet that is looked up here; output of the action set.
    pub(super) const SET_OUTPUT: usize = 22;
    /// Tunnel flags, ERSPAN fields, group policy.
    pub(super) const TUNNEL_POLICY: usize = 23;
    /// Two registers a word.
    pub(super) const REGISTERS: usize = 24;
    /// `ct_mark`, `ct_zone`, `ct_nw_proto`, `ct_state`.
    pub(super) const CONNECTION: usize = 32;
    /// Two words.
    pub(super) const CT_LABEL: usize = 33;
    /// IPv4 source and destination of the connection.
    pub(super) const CT_V4: usize = 35;
    /// Two words each.
    pub(super) const CT_V6_SRC: usize = 36;
    pub(super) const CT_V6_DST: usize = 38;
    /// `eth_type` of the tracked packet, which no match reads; ports of the connection.
    pub(super) const CT_PORTS: usize = 40;
    /// Flags and message type of GTP-U: pipeline fields of the tunnel.
    pub(super) const TUNNEL_GTPU: usize = 41;
}

/// Number of words, from the first, that hold headers and the ingress port. The words after them
/// hold pipeline fields, which are the same for all packets of a batch until a rule writes them.
pub(crate) const HEADER_WORDS: usize = word::METADATA;

/// Position of a field in the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FieldPosition {
    /// Index of the word; of a field of 128 bits, that of the upper half.
    word: usize,
    /// Distance of the field's lowest bit from bit 0.
    shift: u32,
    /// Presence bit of the field; zero if it is always present.
    presence: u64,
    /// True for a field of 128 bits, which takes two words.
    is_wide: bool,
}

const fn at(word: usize, shift: u32) -> FieldPosition {
    if_present(word, shift, 0)
}

const fn if_present(word: usize, shift: u32, presence: u64) -> FieldPosition {
    FieldPosition {
        word,
        shift,
        presence,
        is_wide: false,
    }
}

const fn wide_at(word: usize) -> FieldPosition {
    wide_if_present(word, 0)
}

const fn wide_if_present(word: usize, presence: u64) -> FieldPosition {
    FieldPosition {
        word,
        shift: 0,
        presence,
        is_wide: true,
    }
}

/// Positions by field.
static POSITIONS: [Option<FieldPosition>; Field::COUNT] = {
    let mut positions = [None; Field::COUNT];
    let mut index = 0;
    while index < Field::COUNT {
        positions[index] = position(Field::ALL[index]);
        index += 1;
    }
    positions
};

/// Position of a field of a match.
#[inline]
fn position_of(field: Field) -> &'static FieldPosition {
    let position = POSITIONS[field as usize].as_ref();
    position.expect("a match has no views, and matches on tunnel options are not compiled")
}

/// Returns the position of `field`, or `None` for views, which no match contains, and for tunnel
/// options: rules on these are not compiled.
const fn position(field: Field) -> Option<FieldPosition> {
    if let Some(number) = field.register() {
        let shift = if number.is_multiple_of(2) { 32 } else { 0 };
        return Some(at(word::REGISTERS + number / 2, shift));
    }
    if field.view().is_some() {
        return None;
    }
    match header_position(field) {
        None => pipeline_position(field),
        position => position,
    }
}

/// Position of a header field.
const fn header_position(field: Field) -> Option<FieldPosition> {
    Some(match field {
        Field::EthDst => at(word::ETH_DST, 16),
        Field::EthType => at(word::ETH_DST, 0),
        Field::EthSrc => at(word::ETH_SRC, 16),
        Field::VlanVid => at(word::ETH_SRC, 0),
        Field::VlanPcp => at(word::ETH_SRC, 13),
        Field::MplsLabel => at(word::NETWORK, 12),
        Field::MplsTc => at(word::NETWORK, 9),
        Field::MplsBos => at(word::NETWORK, 8),
        Field::MplsTtl | Field::PbbIsid => at(word::NETWORK, 0),
        Field::PbbUca => at(word::NETWORK, 24),
        Field::Ipv4Src => at(word::NETWORK, 32),
        Field::Ipv4Dst => at(word::NETWORK, 0),
        Field::ArpSpa => if_present(word::NETWORK, 32, presence::ARP_ADDRESSES),
        Field::ArpTpa => if_present(word::NETWORK, 0, presence::ARP_ADDRESSES),
        Field::IpProto => at(word::TRANSPORT, 56),
        Field::IpDscp => at(word::TRANSPORT, 50),
        Field::IpEcn => at(word::TRANSPORT, 48),
        Field::IpTtl => at(word::TRANSPORT, 40),
        Field::IpFrag => at(word::TRANSPORT, 32),
        Field::TcpSrc | Field::UdpSrc | Field::SctpSrc | Field::Icmpv4Type | Field::Icmpv6Type => {
            if_present(word::TRANSPORT, 16, presence::TRANSPORT)
        }
        Field::TcpDst | Field::UdpDst | Field::SctpDst | Field::Icmpv4Code | Field::Icmpv6Code => {
            if_present(word::TRANSPORT, 0, presence::TRANSPORT)
        }
        Field::Ipv6Flabel => at(word::DETAILS, 32),
        Field::Ipv6Exthdr => at(word::DETAILS, 16),
        Field::TcpFlags => if_present(word::DETAILS, 0, presence::TRANSPORT),
        Field::ArpOp => at(word::DETAILS, 0),
        Field::Ipv6Src => wide_at(word::IPV6_SRC),
        Field::Ipv6Dst => wide_at(word::IPV6_DST),
        Field::Ipv6NdTarget => wide_if_present(word::ND_TARGET, presence::ND),
        Field::ArpSha => if_present(word::SENDER, 0, presence::ARP_ADDRESSES),
        Field::ArpTha => if_present(word::TARGET, 0, presence::ARP_ADDRESSES),
        Field::Ipv6NdSll => if_present(word::SENDER, 0, presence::SLL),
        Field::Ipv6NdTll => if_present(word::TARGET, 0, presence::TLL),
        Field::NshFlags => at(word::NETWORK, 56),
        Field::NshTtl => at(word::NETWORK, 48),
        Field::NshMdtype => at(word::NETWORK, 40),
        Field::NshNp => at(word::NETWORK, 32),
        Field::NshSpi => at(word::NETWORK, 8),
        Field::NshSi => at(word::NETWORK, 0),
        Field::NshC1 => at(word::IPV6_SRC, 32),
        Field::NshC2 => at(word::IPV6_SRC, 0),
        Field::NshC3 => at(word::IPV6_SRC + 1, 32),
        Field::NshC4 => at(word::IPV6_SRC + 1, 0),
        Field::NdReserved => if_present(word::NETWORK, 0, presence::ND),
        Field::NdOptionsType => if_present(word::DETAILS, 52, presence::ND),
        _ => return None,
    })
}

/// Position of a pipeline field.
const fn pipeline_position(field: Field) -> Option<FieldPosition> {
    Some(match field {
        Field::InPort | Field::InPhyPort => at(word::INGRESS, 32),
        Field::Metadata => at(word::METADATA, 0),
        Field::TunnelId => at(word::TUNNEL_ID, 0),
        Field::TunSrc => at(word::TUNNEL_V4, 32),
        Field::TunDst => at(word::TUNNEL_V4, 0),
        Field::TunIpv6Src => wide_at(word::TUNNEL_V6_SRC),
        Field::TunIpv6Dst => wide_at(word::TUNNEL_V6_DST),
        Field::TunGbpId => at(word::TUNNEL_POLICY, 32),
        Field::TunGbpFlags => at(word::TUNNEL_POLICY, 0),
        Field::TunFlags => at(word::TUNNEL_POLICY, 8),
        Field::TunErspanIdx => at(word::TUNNEL_POLICY, 12),
        Field::TunErspanVer => at(word::TUNNEL_POLICY, 48),
        Field::TunErspanDir => at(word::TUNNEL_POLICY, 52),
        Field::TunErspanHwid => at(word::TUNNEL_POLICY, 54),
        Field::PktMark => at(word::MARK, 32),
        Field::ConjId => at(word::MARK, 0),
        Field::ActsetOutput => at(word::SET_OUTPUT, 0),
        Field::PacketType | Field::DpHash | Field::RecircId => at(word::SET_OUTPUT, 32),
        Field::TunGtpuFlags => at(word::TUNNEL_GTPU, 8),
        Field::TunGtpuMsgtype => at(word::TUNNEL_GTPU, 0),
        Field::CtState => at(word::CONNECTION, 0),
        Field::CtNwProto => at(word::CONNECTION, 8),
        Field::CtZone => at(word::CONNECTION, 16),
        Field::CtMark => at(word::CONNECTION, 32),
        Field::CtLabel => wide_at(word::CT_LABEL),
        Field::CtNwSrc => at(word::CT_V4, 32),
        Field::CtNwDst => at(word::CT_V4, 0),
        Field::CtIpv6Src => wide_at(word::CT_V6_SRC),
        Field::CtIpv6Dst => wide_at(word::CT_V6_DST),
        Field::CtTpSrc => at(word::CT_PORTS, 16),
        Field::CtTpDst => at(word::CT_PORTS, 0),
        _ => return None,
    })
}

/// Parts of a key that a table reads. A single lookup fills only these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyParts(u8);

impl KeyParts {
    /// Addresses, type and VLAN tag.
    const LINK: Self = Self(1);
    /// Headers above the link layer, and the presence bits.
    const UPPER: Self = Self(2);
    /// Pipeline fields, except the general registers.
    const METADATA: Self = Self(4);
    /// General registers.
    const REGISTERS: Self = Self(8);
    /// Fields of the connection.
    const CONNECTION: Self = Self(16);
    /// All parts.
    #[cfg(test)]
    pub(crate) const ALL: Self = Self(31);

    /// The part that has these bits of a word. The ingress port, which shares a word with the
    /// presence bits, belongs to no part: it is always filled.
    pub(crate) const fn of_word(word: usize, mask: u64) -> Self {
        match word {
            word::INGRESS if mask << 32 == 0 => Self(0),
            word::ETH_DST | word::ETH_SRC => Self::LINK,
            word::METADATA..word::REGISTERS | word::TUNNEL_GTPU => Self::METADATA,
            word::REGISTERS..word::CONNECTION => Self::REGISTERS,
            word::CONNECTION.. => Self::CONNECTION,
            _ => Self::UPPER,
        }
    }

    /// Parts that these words and bits of them are in.
    pub(crate) fn of_mask(mask: &[(u8, u64)]) -> Self {
        let parts = mask
            .iter()
            .map(|(word, mask)| Self::of_word(usize::from(*word), *mask));
        parts.fold(Self::default(), Self::union)
    }

    /// Parts of either set.
    pub(crate) const fn union(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// True if the table reads anything but the ingress port.
    pub(crate) const fn is_any(self) -> bool {
        self.0 != 0
    }

    const fn contains(self, part: Self) -> bool {
        self.0 & part.0 != 0
    }
}

/// The key of one packet.
#[derive(Clone, Debug)]
pub(crate) struct PackedKey([u64; KEY_WORDS]);

impl PackedKey {
    pub(crate) const fn new() -> Self {
        Self([0; KEY_WORDS])
    }

    /// The word at `index`, which is less than [`KEY_WORDS`].
    #[inline]
    pub(crate) fn word(&self, index: u8) -> u64 {
        self.0[usize::from(index) % KEY_WORDS]
    }

    /// The same key with `conj_id` set to `id`.
    pub(crate) fn with_conjunction(&self, id: u32) -> Self {
        let mut key = self.clone();
        let mark = &mut key.0[word::MARK];
        *mark = *mark >> 32 << 32 | u64::from(id);
        key
    }
}

/// The upper and the lower half.
fn halves(value: u128) -> (u64, u64) {
    let half = |value: u128| u64::try_from(value & u128::from(u64::MAX)).expect("64 bits");
    (half(value >> 64), half(value))
}

/// The match of a rule in the layout of a key: masks and values by word (Open vSwitch
/// `struct minimatch`).
#[derive(Clone, Debug)]
pub(crate) struct PackedMatch {
    /// Bit for each word whose mask is not zero.
    used_words: u64,
    masks: [u64; KEY_WORDS],
    /// Key of a packet that has the matched values, and zeros elsewhere.
    pub(crate) values: PackedKey,
}

impl PackedMatch {
    const fn wildcard() -> Self {
        Self {
            used_words: 0,
            masks: [0; KEY_WORDS],
            values: PackedKey::new(),
        }
    }

    /// Packs a match.
    ///
    /// # Panics
    /// If it is on a field that has no position.
    pub(crate) fn of(matching: &Match) -> Self {
        Self::try_of(matching).expect("rules on fields without a position are not compiled")
    }

    /// Adds a condition on these bits of a word.
    #[inline]
    fn require(&mut self, word: u8, value: u64, mask: u64) {
        let index = usize::from(word) % KEY_WORDS;
        self.values.0[index] |= value;
        self.masks[index] |= mask;
        self.used_words |= u64::from(mask != 0) << index;
    }

    /// Writes the words with a mask, and the masks, into `buffer`, and returns them.
    pub(crate) fn mask<'a>(&self, buffer: &'a mut [(u8, u64); KEY_WORDS]) -> &'a [(u8, u64)] {
        let (mut remaining, mut count) = (self.used_words, 0);
        while remaining != 0 {
            let word = remaining.trailing_zeros();
            let mask = self.masks[word as usize];
            let word = word.try_into().expect("a key has fewer than 256 words");
            buffer[count] = (word, mask);
            remaining &= remaining - 1;
            count += 1;
        }
        &buffer[..count]
    }
}

#[cfg(test)]
mod tests;
