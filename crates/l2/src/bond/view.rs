//! What workers are told of a bond: by whom a frame leaves, and whether one that came in is
//! taken.

use std::collections::BTreeMap;

use base::PortNo;
use packet::MacAddr;

use super::BUCKETS;

/// What becomes of a frame that came in by a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BondVerdict {
    /// It is taken.
    Accept,
    /// It is dropped.
    Drop,
    /// It is taken, unless its sender is known to be behind another port: then it is one of
    /// ours that came back by another member.
    DropIfMoved,
}

/// By whom frames leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BondEgress {
    /// By none.
    None,
    /// All by this one.
    One(PortNo),
    /// By source address and VLAN.
    BySource(Box<[Option<PortNo>; BUCKETS]>),
    /// By addresses and ports.
    ByFlow(Box<[Option<PortNo>; BUCKETS]>),
}

/// A bond at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BondView {
    /// By whom frames leave.
    pub egress: BondEgress,
    /// What hashes begin with.
    pub basis: u32,
    /// What becomes of frames to one station, and of those to many, by member.
    pub(super) verdicts: BTreeMap<PortNo, (BondVerdict, BondVerdict)>,
}

impl BondView {
    /// What becomes of a frame to this address that came in by this member.
    pub fn verdict(&self, member: PortNo, dst: MacAddr) -> BondVerdict {
        match self.verdicts.get(&member) {
            None => BondVerdict::Drop,
            Some((_, many)) if dst.is_multicast() => *many,
            Some((one, _)) => *one,
        }
    }

    /// By whom a frame leaves that has this hash.
    pub fn egress_port(&self, hash: u32) -> Option<PortNo> {
        match &self.egress {
            BondEgress::None => None,
            BondEgress::One(port) => Some(*port),
            BondEgress::BySource(carriers) | BondEgress::ByFlow(carriers) => carriers[bucket(hash)],
        }
    }
}

/// The bucket of a hash.
pub const fn bucket(hash: u32) -> usize {
    hash as usize % BUCKETS
}

/// The hash of a source address and a VLAN, by which balance-slb shares: that of MurmurHash3 (x86,
/// 32 bits) over the eight bytes of both, which is what `bond/hash` of Open vSwitch tells.
pub fn hash_source(address: MacAddr, vid: u16, basis: u32) -> u32 {
    let [one, two] = vid.to_be_bytes();
    let [a, b, c, d, e, f] = address.0;
    let words = [[c, d, e, f], [one, two, a, b]];
    hash_words(words.into_iter().map(u32::from_be_bytes), basis)
}

/// The same hash of any words.
pub fn hash_words(words: impl IntoIterator<Item = u32>, basis: u32) -> u32 {
    let (mut hash, mut len) = (basis, 0);
    for word in words {
        hash = mix(hash, word);
        len += 4;
    }
    finish(hash ^ len)
}

/// One step of MurmurHash3.
const fn mix(hash: u32, word: u32) -> u32 {
    let word = word
        .wrapping_mul(0xcc9e_2d51)
        .rotate_left(15)
        .wrapping_mul(0x1b87_3593);
    (hash ^ word)
        .rotate_left(13)
        .wrapping_mul(5)
        .wrapping_add(0xe654_6b64)
}

/// The end of MurmurHash3.
const fn finish(hash: u32) -> u32 {
    let hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    let hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}
