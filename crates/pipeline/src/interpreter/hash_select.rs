//! Selection by hash: links of `multipath`, ports of `bundle` (`ovs-actions(7)`). Groups have their
//! own selection.
//!
//! ```text
//!   fields --> hash --+--> modulo_n         hash mod n
//!                     +--> hash_threshold   which of n equal regions       (RFC 2992)
//!                     +--> hrw              highest of n hashes            (Thaler, Ravishankar 1998)
//!                     +--> iter_hash        rehash until below n
//! ```
//!
//! The hash is not standardized. This one is stable, so that a flow keeps its link after a restart,
//! and both directions of a flow have the same hash where the fields are symmetric. `hrw` costs n
//! hashes, `iter_hash` two on average, the others one.

use std::hash::Hash;

use base::PortNo;
use flow::{BundleAction, BundleAlgorithm, Field, HashFields, Multipath, MultipathAlgorithm};

use crate::stable_hash::StableHasher;

/// Returns the hash of a packet, whose fields `field` returns; a missing field is zero.
pub(crate) fn hash_fields(
    fields: HashFields,
    basis: u16,
    mut field: impl FnMut(Field) -> u128,
) -> u64 {
    let mut hash = u64::from(basis);
    let mut add = |value: u128| hash = mix(hash, value);
    match fields {
        HashFields::EthSrc => add(field(Field::EthSrc)),
        HashFields::NwSrc => add(address(&mut field, Field::Ipv4Src, Field::Ipv6Src)),
        HashFields::NwDst => add(address(&mut field, Field::Ipv4Dst, Field::Ipv6Dst)),
        HashFields::SymmetricL4 => {
            add(field(Field::EthSrc) ^ field(Field::EthDst));
            add(field(Field::VlanVid));
            add(field(Field::EthType));
            add(addresses(&mut field));
            add(field(Field::IpProto));
            add(ports(&mut field, UdpPorts::LeftOut));
        }
        HashFields::SymmetricL3L4 => {
            add(addresses(&mut field));
            add(field(Field::IpProto));
            add(ports(&mut field, UdpPorts::LeftOut));
        }
        HashFields::SymmetricL3L4Udp => {
            add(addresses(&mut field));
            add(field(Field::IpProto));
            add(ports(&mut field, UdpPorts::Included));
        }
        HashFields::SymmetricL3 => add(addresses(&mut field)),
    }
    hash
}

fn address(field: &mut impl FnMut(Field) -> u128, four: Field, six: Field) -> u128 {
    field(four) ^ field(six)
}

/// Returns both addresses combined, regardless of direction.
fn addresses(field: &mut impl FnMut(Field) -> u128) -> u128 {
    address(field, Field::Ipv4Src, Field::Ipv6Src) ^ address(field, Field::Ipv4Dst, Field::Ipv6Dst)
}

/// Selects if UDP ports are hashed. Only the first fragment has them, and all fragments must take
/// one link.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UdpPorts {
    Included,
    LeftOut,
}

/// Returns both ports combined, regardless of direction.
fn ports(field: &mut impl FnMut(Field) -> u128, datagrams: UdpPorts) -> u128 {
    let mut both = field(Field::TcpSrc) ^ field(Field::TcpDst);
    both ^= field(Field::SctpSrc) ^ field(Field::SctpDst);
    if datagrams == UdpPorts::Included {
        both ^= field(Field::UdpSrc) ^ field(Field::UdpDst);
    }
    both
}

/// Returns the link that a hash selects.
pub(crate) fn select_link(hash: u64, multipath: &Multipath) -> u16 {
    let links = u64::from(multipath.link_max) + 1;
    let chosen = match multipath.algorithm {
        MultipathAlgorithm::ModuloN => hash % links,
        // The upper half of the product: the region of the hash.
        MultipathAlgorithm::HashThreshold => ((hash >> 32) * links) >> 32,
        MultipathAlgorithm::HighestRandomWeight => (0..links)
            .max_by_key(|link| mix(hash, *link))
            .unwrap_or_default(),
        MultipathAlgorithm::IterHash => iterate(hash, links, multipath.argument),
    };
    u16::try_from(chosen).expect("below the number of links")
}

/// Maximum number of iterations; at least every second one succeeds.
const ITERATIONS: u64 = 64;

/// Rehashes until the result is a link. `modulus` is the number of values; if it does not suit the
/// number of links, it is replaced by the next power of two.
fn iterate(hash: u64, links: u64, modulus: u32) -> u64 {
    let modulus = match u64::from(modulus) {
        suits if suits >= links && suits <= 2 * links => suits,
        _ => links.next_power_of_two(),
    };
    (0..ITERATIONS)
        .map(|round| mix(hash, round) % modulus)
        .find(|number| *number < links)
        .unwrap_or(hash % links)
}

/// Returns the port that a hash selects among those that are up.
pub(crate) fn select_member(
    hash: u64,
    bundle: &BundleAction,
    is_up: impl Fn(PortNo) -> bool,
) -> Option<PortNo> {
    let mut alive = bundle.members.iter().copied().filter(|port| is_up(*port));
    match bundle.algorithm {
        BundleAlgorithm::ActiveBackup => alive.next(),
        BundleAlgorithm::HighestRandomWeight => {
            alive.max_by_key(|port| mix(hash, u64::from(port.0)))
        }
    }
}

/// Returns the hash of the previous input and `word`.
fn mix(hash: u64, word: impl Hash) -> u64 {
    StableHasher::new().of((hash, word))
}

#[cfg(test)]
mod tests {
    use flow::Subfield;

    use super::*;

    fn choices(algorithm: MultipathAlgorithm, links: u16) -> Vec<u32> {
        let multipath = Multipath {
            fields: HashFields::EthSrc,
            basis: 0,
            algorithm,
            link_max: links - 1,
            argument: 0,
            to: Subfield::whole(Field::Reg0),
        };
        let mut counts = vec![0; usize::from(links)];
        for source in 0..u128::from(links) * 1000 {
            let hash = hash_fields(HashFields::EthSrc, 50, |_| source);
            counts[usize::from(select_link(hash, &multipath))] += 1;
        }
        counts
    }

    #[test]
    fn algorithms_give_each_link_its_share() {
        for (algorithm, name) in MultipathAlgorithm::ALL {
            for links in [1, 2, 3, 7, 16] {
                for count in choices(algorithm, links) {
                    assert!((850..1150).contains(&count), "{name} of {links}: {count}");
                }
            }
        }
    }

    #[test]
    fn directions_of_a_flow_select_one_link() {
        use Field as F;
        let there = |field| match field {
            F::EthSrc | F::Ipv4Src | F::TcpSrc => 5,
            F::EthDst | F::Ipv4Dst | F::TcpDst => 9,
            _ => 0,
        };
        let back = |field| match field {
            F::EthSrc | F::Ipv4Src | F::TcpSrc => 9,
            F::EthDst | F::Ipv4Dst | F::TcpDst => 5,
            _ => 0,
        };
        for fields in [
            HashFields::SymmetricL4,
            HashFields::SymmetricL3L4,
            HashFields::SymmetricL3L4Udp,
            HashFields::SymmetricL3,
        ] {
            assert_eq!(hash_fields(fields, 7, there), hash_fields(fields, 7, back));
        }
        assert_ne!(
            hash_fields(HashFields::NwSrc, 7, there),
            hash_fields(HashFields::NwSrc, 7, back)
        );
    }

    #[test]
    fn port_failure_moves_only_its_own_flows() {
        let bundle = BundleAction {
            fields: HashFields::EthSrc,
            basis: 0,
            algorithm: BundleAlgorithm::HighestRandomWeight,
            to: None,
            members: (1..=5).map(PortNo).collect(),
        };
        for hash in (0..1000).map(|source| hash_fields(HashFields::EthSrc, 0, |_| source)) {
            let all = select_member(hash, &bundle, |_| true);
            let fewer = select_member(hash, &bundle, |port| port != PortNo(3));
            assert!(all == fewer || all == Some(PortNo(3)));
        }
        assert_eq!(select_member(1, &bundle, |_| false), None);
    }
}
