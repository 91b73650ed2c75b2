//! The view of a bond for workers: egress members, and verdicts on received frames.

use std::collections::BTreeMap;

use base::PortNo;
use packet::MacAddr;

use super::BUCKETS;

/// The verdict on a frame received from a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BondVerdict {
    /// The frame is accepted.
    Accept,
    /// The frame is dropped.
    Drop,
    /// The frame is accepted, unless its source address is known on another port: then it is one of
    /// our own frames, returned by another member.
    DropIfMoved,
}

/// The selection of the egress member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BondEgress {
    /// No member.
    None,
    /// This member for all frames.
    One(PortNo),
    /// A member for each bucket of source address and VLAN.
    BySource(Box<[Option<PortNo>; BUCKETS]>),
    /// A member for each bucket of addresses and transport ports.
    ByFlow(Box<[Option<PortNo>; BUCKETS]>),
}

/// An immutable view of a bond.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BondView {
    /// The selection of the egress member.
    pub egress: BondEgress,
    /// The seed of the hash.
    pub basis: u32,
    /// Verdicts on unicast and on multicast frames, for each member.
    pub(super) verdicts: BTreeMap<PortNo, (BondVerdict, BondVerdict)>,
}

impl BondView {
    /// Returns the verdict on a frame to `dst` received from `member`.
    pub fn verdict(&self, member: PortNo, dst: MacAddr) -> BondVerdict {
        match self.verdicts.get(&member) {
            None => BondVerdict::Drop,
            Some((_, many)) if dst.is_multicast() => *many,
            Some((one, _)) => *one,
        }
    }

    /// Returns the egress member for a hash.
    pub fn egress_port(&self, hash: u32) -> Option<PortNo> {
        match &self.egress {
            BondEgress::None => None,
            BondEgress::One(port) => Some(*port),
            BondEgress::BySource(bucket_members) | BondEgress::ByFlow(bucket_members) => {
                bucket_members[bucket(hash)]
            }
        }
    }
}

/// Returns the bucket of a hash.
pub const fn bucket(hash: u32) -> usize {
    hash as usize % BUCKETS
}

/// Returns the hash of source address and VLAN for balance-slb: MurmurHash3 (x86, 32 bits) over the
/// eight bytes of both, equal to `bond/hash` of Open vSwitch.
pub fn hash_source(address: MacAddr, vid: u16, basis: u32) -> u32 {
    let [one, two] = vid.to_be_bytes();
    let [a, b, c, d, e, f] = address.0;
    let words = [[c, d, e, f], [one, two, a, b]];
    hash_words(words.into_iter().map(u32::from_be_bytes), basis)
}

/// Returns MurmurHash3 of any words.
pub fn hash_words(words: impl IntoIterator<Item = u32>, basis: u32) -> u32 {
    let (mut hash, mut len) = (basis, 0);
    for word in words {
        hash = mix(hash, word);
        len += 4;
    }
    finish(hash ^ len)
}

/// One round of MurmurHash3.
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

/// The finalizer of MurmurHash3.
const fn finish(hash: u32) -> u32 {
    let hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    let hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}
