//! What a lookup sees of a frame: the fields as machine words, packed so that a
//! rule's conditions are a handful of masked comparisons.
//!
//! Fields that exclude each other share a place, since a rule on one of them also
//! names the type of packet that has it: ARP's addresses lie where IPv4's do,
//! ICMP's type and code where the ports do. A field that may be missing though
//! the type of packet has it (a later fragment has no ports) has a bit that says
//! whether it is there, and every rule on the field asks for the bit too.

use flow::{Field, Match};

mod asked;
mod beside;
mod fill;
mod fit;
mod read;

pub(crate) use asked::{Asked, Spot, asked};
pub(crate) use beside::Write;
pub(crate) use fit::Reading;
pub(crate) use read::{Uncommon, is_whole_without_tag};

/// How many words there are.
pub(crate) const LANES: usize = 32;

// A bit for each tells which of them count.
const _: () = assert!(LANES <= u64::BITS as usize);

/// What may be missing, as bits of the first word.
mod has {
    /// The header above IP.
    pub(super) const TRANSPORT: u64 = 1 << 0;
    /// ARP's addresses: those of other protocols than IPv4 are not read.
    pub(super) const ARP_ADDRESSES: u64 = 1 << 1;
    /// The target of neighbour discovery.
    pub(super) const ND: u64 = 1 << 2;
    /// The source's link-layer address.
    pub(super) const SLL: u64 = 1 << 3;
    /// The target's link-layer address.
    pub(super) const TLL: u64 = 1 << 4;
}

/// The words, by what is in them, the first field in the upper bits.
mod lane {
    /// The port of arrival, and what is there.
    pub(super) const ARRIVAL: usize = 0;
    /// `eth_dst`, `eth_type`.
    pub(super) const DST: usize = 1;
    /// `eth_src`, the tag.
    pub(super) const SRC: usize = 2;
    /// Source and target of IPv4 or ARP; MPLS; PBB; the network service header; what is
    /// reserved in neighbour discovery.
    pub(super) const NETWORK: usize = 3;
    /// Protocol, ToS, TTL, fragment; the ports, or ICMP's type and code.
    pub(super) const UPPER: usize = 4;
    /// The type of the first option of neighbour discovery, the flow label, extension
    /// headers, TCP's flags; ARP's opcode.
    pub(super) const DETAILS: usize = 5;
    /// Two words each; the context of the network service header.
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
    /// The mark and the conjunction.
    pub(super) const MARK: usize = 21;
    /// What is zero of all frames that are looked up here; the output of the action set.
    pub(super) const SET_OUTPUT: usize = 22;
    /// The tunnel's flags: of ERSPAN, its own, of the group policy; with its group policy.
    pub(super) const TUNNEL_POLICY: usize = 23;
    /// Two registers a word.
    pub(super) const REGISTERS: usize = 24;
}

/// So many words, the first ones, are of the frame itself and the port of arrival. The others go
/// with it, and are the same for all before any rule has written them.
pub(crate) const OF_FRAMES: usize = lane::METADATA;

/// Where a field is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    /// The word; of a field of 128 bits, the one with the upper half.
    lane: usize,
    /// How far from the right.
    shift: u32,
    /// The bit that says whether it is there; zero if it always is.
    has: u64,
    /// Whether it has 128 bits.
    is_wide: bool,
}

const fn at(lane: usize, shift: u32) -> Place {
    if_there(lane, shift, 0)
}

const fn if_there(lane: usize, shift: u32, has: u64) -> Place {
    Place {
        lane,
        shift,
        has,
        is_wide: false,
    }
}

const fn wide_at(lane: usize) -> Place {
    wide_if_there(lane, 0)
}

const fn wide_if_there(lane: usize, has: u64) -> Place {
    Place {
        lane,
        shift: 0,
        has,
        is_wide: true,
    }
}

/// Where each field is.
static PLACES: [Option<Place>; Field::COUNT] = {
    let mut places = [None; Field::COUNT];
    let mut index = 0;
    while index < Field::COUNT {
        places[index] = place(Field::ALL[index]);
        index += 1;
    }
    places
};

/// Where the field of a match is.
#[inline]
fn place_of(field: Field) -> &'static Place {
    let place = PLACES[field as usize].as_ref();
    place.expect("a match holds no views, and those with tunnel options are not compiled")
}

/// Where `field` is; none for a view, which no match holds, and for tunnel options.
const fn place(field: Field) -> Option<Place> {
    if let Some(number) = field.register() {
        let shift = if number.is_multiple_of(2) { 32 } else { 0 };
        return Some(at(lane::REGISTERS + number / 2, shift));
    }
    if field.view().is_some() {
        return None;
    }
    match of_headers(field) {
        None => beside(field),
        place => place,
    }
}

/// Where a field of the frame itself is.
const fn of_headers(field: Field) -> Option<Place> {
    Some(match field {
        Field::EthDst => at(lane::DST, 16),
        Field::EthType => at(lane::DST, 0),
        Field::EthSrc => at(lane::SRC, 16),
        Field::VlanVid => at(lane::SRC, 0),
        Field::VlanPcp => at(lane::SRC, 13),
        Field::MplsLabel => at(lane::NETWORK, 12),
        Field::MplsTc => at(lane::NETWORK, 9),
        Field::MplsBos => at(lane::NETWORK, 8),
        Field::MplsTtl | Field::PbbIsid => at(lane::NETWORK, 0),
        Field::PbbUca => at(lane::NETWORK, 24),
        Field::Ipv4Src => at(lane::NETWORK, 32),
        Field::Ipv4Dst => at(lane::NETWORK, 0),
        Field::ArpSpa => if_there(lane::NETWORK, 32, has::ARP_ADDRESSES),
        Field::ArpTpa => if_there(lane::NETWORK, 0, has::ARP_ADDRESSES),
        Field::IpProto => at(lane::UPPER, 56),
        Field::IpDscp => at(lane::UPPER, 50),
        Field::IpEcn => at(lane::UPPER, 48),
        Field::IpTtl => at(lane::UPPER, 40),
        Field::IpFrag => at(lane::UPPER, 32),
        Field::TcpSrc | Field::UdpSrc | Field::SctpSrc | Field::Icmpv4Type | Field::Icmpv6Type => {
            if_there(lane::UPPER, 16, has::TRANSPORT)
        }
        Field::TcpDst | Field::UdpDst | Field::SctpDst | Field::Icmpv4Code | Field::Icmpv6Code => {
            if_there(lane::UPPER, 0, has::TRANSPORT)
        }
        Field::Ipv6Flabel => at(lane::DETAILS, 32),
        Field::Ipv6Exthdr => at(lane::DETAILS, 16),
        Field::TcpFlags => if_there(lane::DETAILS, 0, has::TRANSPORT),
        Field::ArpOp => at(lane::DETAILS, 0),
        Field::Ipv6Src => wide_at(lane::IPV6_SRC),
        Field::Ipv6Dst => wide_at(lane::IPV6_DST),
        Field::Ipv6NdTarget => wide_if_there(lane::ND_TARGET, has::ND),
        Field::ArpSha => if_there(lane::SENDER, 0, has::ARP_ADDRESSES),
        Field::ArpTha => if_there(lane::TARGET, 0, has::ARP_ADDRESSES),
        Field::Ipv6NdSll => if_there(lane::SENDER, 0, has::SLL),
        Field::Ipv6NdTll => if_there(lane::TARGET, 0, has::TLL),
        Field::NshFlags => at(lane::NETWORK, 56),
        Field::NshTtl => at(lane::NETWORK, 48),
        Field::NshMdtype => at(lane::NETWORK, 40),
        Field::NshNp => at(lane::NETWORK, 32),
        Field::NshSpi => at(lane::NETWORK, 8),
        Field::NshSi => at(lane::NETWORK, 0),
        Field::NshC1 => at(lane::IPV6_SRC, 32),
        Field::NshC2 => at(lane::IPV6_SRC, 0),
        Field::NshC3 => at(lane::IPV6_SRC + 1, 32),
        Field::NshC4 => at(lane::IPV6_SRC + 1, 0),
        Field::NdReserved => if_there(lane::NETWORK, 0, has::ND),
        Field::NdOptionsType => if_there(lane::DETAILS, 52, has::ND),
        _ => return None,
    })
}

/// Where a field is that goes with the frame.
const fn beside(field: Field) -> Option<Place> {
    Some(match field {
        Field::InPort | Field::InPhyPort => at(lane::ARRIVAL, 32),
        Field::Metadata => at(lane::METADATA, 0),
        Field::TunnelId => at(lane::TUNNEL_ID, 0),
        Field::TunSrc => at(lane::TUNNEL_V4, 32),
        Field::TunDst => at(lane::TUNNEL_V4, 0),
        Field::TunIpv6Src => wide_at(lane::TUNNEL_V6_SRC),
        Field::TunIpv6Dst => wide_at(lane::TUNNEL_V6_DST),
        Field::TunGbpId => at(lane::TUNNEL_POLICY, 32),
        Field::TunGbpFlags => at(lane::TUNNEL_POLICY, 0),
        Field::TunFlags => at(lane::TUNNEL_POLICY, 8),
        Field::TunErspanIdx => at(lane::TUNNEL_POLICY, 12),
        Field::TunErspanVer => at(lane::TUNNEL_POLICY, 48),
        Field::TunErspanDir => at(lane::TUNNEL_POLICY, 52),
        Field::TunErspanHwid => at(lane::TUNNEL_POLICY, 54),
        Field::PktMark => at(lane::MARK, 32),
        Field::ConjId => at(lane::MARK, 0),
        Field::ActsetOutput => at(lane::SET_OUTPUT, 0),
        Field::PacketType
        | Field::TunGtpuFlags
        | Field::TunGtpuMsgtype
        | Field::DpHash
        | Field::RecircId => at(lane::SET_OUTPUT, 32),
        _ => return None,
    })
}

/// Which words a table asks for, in parts that are taken in together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts(u8);

impl Parts {
    /// Addresses, type and tag.
    const LINK: Self = Self(1);
    /// What is behind them, and which of it is there.
    const UPPER: Self = Self(2);
    /// What goes with the frame, but for the general registers.
    const KNOWN: Self = Self(4);
    /// The general registers.
    const REGISTERS: Self = Self(8);
    /// All of them.
    #[cfg(test)]
    pub(crate) const ALL: Self = Self(15);

    /// The part that has these bits of word `lane`. The port of arrival, which stands in
    /// one word with what is there, is no part: it is always taken in.
    pub(crate) const fn of(lane: usize, mask: u64) -> Self {
        match lane {
            lane::ARRIVAL if mask << 32 == 0 => Self(0),
            lane::DST | lane::SRC => Self::LINK,
            lane::METADATA..lane::REGISTERS => Self::KNOWN,
            lane::REGISTERS.. => Self::REGISTERS,
            _ => Self::UPPER,
        }
    }

    /// These and those.
    pub(crate) const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Whether it asks for more than the port of arrival.
    pub(crate) const fn are_any(self) -> bool {
        self.0 != 0
    }

    const fn have(self, part: Self) -> bool {
        self.0 & part.0 != 0
    }
}

/// The words of one frame.
#[derive(Clone, Debug)]
pub(crate) struct Lanes([u64; LANES]);

impl Lanes {
    pub(crate) const fn new() -> Self {
        Self([0; LANES])
    }

    /// Word `lane`; there are [`LANES`].
    #[inline]
    pub(crate) fn word(&self, lane: u8) -> u64 {
        self.0[usize::from(lane) % LANES]
    }

    /// The same, of a frame that fulfils the conjunction of this id.
    pub(crate) fn with_conjunction(&self, id: u32) -> Self {
        let mut words = self.clone();
        let mark = &mut words.0[lane::MARK];
        *mark = *mark >> 32 << 32 | u64::from(id);
        words
    }
}

/// The upper and the lower half.
fn halves(value: u128) -> (u64, u64) {
    let half = |value: u128| u64::try_from(value & u128::from(u64::MAX)).expect("64 bits");
    (half(value >> 64), half(value))
}

/// What a rule asks of each word: which bits count, and what they must be.
#[derive(Clone, Debug)]
pub(crate) struct Conditions {
    /// Which words count, a bit for each.
    counting: u64,
    masks: [u64; LANES],
    /// The words of a frame that has what is wanted, and nothing else.
    pub(crate) values: Lanes,
}

impl Conditions {
    /// Nothing.
    const fn none() -> Self {
        Self {
            counting: 0,
            masks: [0; LANES],
            values: Lanes::new(),
        }
    }

    /// What `matching` asks.
    ///
    /// # Panics
    /// If it asks for what words do not have.
    pub(crate) fn of(matching: &Match) -> Self {
        Self::if_of_words(matching).expect("it is compiled, and so of words")
    }

    /// And these bits of a word too.
    #[inline]
    fn and(&mut self, lane: u8, value: u64, mask: u64) {
        let place = usize::from(lane) % LANES;
        self.values.0[place] |= value;
        self.masks[place] |= mask;
        self.counting |= u64::from(mask != 0) << place;
    }

    /// The words that count, and which bits of them, put into `room`.
    pub(crate) fn masks<'a>(&self, room: &'a mut [(u8, u64); LANES]) -> &'a [(u8, u64)] {
        let (mut counting, mut count) = (self.counting, 0);
        while counting != 0 {
            let lane = counting.trailing_zeros();
            let mask = self.masks[lane as usize];
            room[count] = (lane.try_into().expect("there are not so many"), mask);
            counting &= counting - 1;
            count += 1;
        }
        &room[..count]
    }
}

#[cfg(test)]
mod tests;
