//! Network address and port translation (RFC 2663, 3022), as `ct(commit,nat(...))` requests it.
//!
//! A translation changes the reply key of a connection. Without it the reply key is the reversed
//! original key:
//!
//! ```text
//!                  original                        reply
//!  none            client:4000 -> server:80        server:80  -> client:4000
//!  src=public      client:4000 -> server:80        server:80  -> public:4000
//!  dst=backend     client:4000 -> server:80        backend:80 -> client:4000
//! ```
//!
//! A packet of either direction leaves with the reversed key of the other direction, so the table
//! needs no further state. A reply key must be unique in its zone. The search for a free one:
//!
//! 1. The address: the range's start plus a hash of the key, modulo the range; with `persistent`, a
//!    hash of the client's address only.
//! 2. The port: the connection's own if no range is given and it is free; else the ports after a
//!    start that a hash, or with `random` a random number, chooses. Without a range, a source port
//!    stays within its class: below 512, below 1024, or above.
//! 3. For destinations without a free port, source ports of the class.
//! 4. The identifier of ICMP queries: the connection's own if it is free, else one of all others. A
//!    range of ports does not apply to it.
//!
//! At most 128 consecutive ports are tried, then 64, 32 and 16 from random starts (Larsen and Gont,
//! RFC 6056, 3.3.2): 240 lookups. If none is free the connection is refused and counted.

use crate::key::{AddressFamily, ConnectionKey, CtAddress};
use crate::metadata::CtState;
use crate::siphash::{HashSeed, siphash};

/// Consecutive ports that are tried first.
const ATTEMPTS_MAX: u32 = 128;
/// Consecutive ports that are tried last.
const ATTEMPTS_MIN: u32 = 16;

/// Side of a packet of the original direction that is translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NatSide {
    /// Source address and port.
    Source,
    /// Destination address and port.
    Destination,
}

impl NatSide {
    /// Returns the side that packets of the other direction have translated.
    #[must_use]
    pub const fn reversed(self) -> Self {
        match self {
            Self::Source => Self::Destination,
            Self::Destination => Self::Source,
        }
    }

    /// Returns the flag of packets whose side was translated.
    #[must_use]
    pub const fn flag(self) -> CtState {
        match self {
            Self::Source => CtState::SOURCE_NAT,
            Self::Destination => CtState::DESTINATION_NAT,
        }
    }
}

/// Choice of the first port that is tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NatPortChoice {
    /// `hash`, and the default: equal keys begin at the same port.
    #[default]
    Hash,
    /// `random`: another port each time.
    Random,
}

/// Scope of a translated address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NatPersistence {
    /// Each connection has an address of its own.
    #[default]
    PerConnection,
    /// `persistent`: all connections of a client have the same address.
    PerClient,
}

/// The translation of a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NatRange {
    /// The side that is translated.
    pub side: NatSide,
    /// First and last address; none to keep the address. An address of all zeros keeps it too.
    pub addresses: Option<(CtAddress, CtAddress)>,
    /// First and last port; none to keep the port if it is free.
    pub ports: Option<(u16, u16)>,
    /// Choice of the first port.
    pub choice: NatPortChoice,
    /// Choice of the address.
    pub persistence: NatPersistence,
}

impl NatRange {
    /// Returns a translation of one side to one address.
    #[must_use]
    pub const fn to_address(side: NatSide, address: CtAddress) -> Self {
        Self {
            side,
            addresses: Some((address, address)),
            ports: None,
            choice: NatPortChoice::Hash,
            persistence: NatPersistence::PerConnection,
        }
    }
}

/// The argument `nat` of `ct`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CtNat {
    /// `nat` without arguments: translate packets of connections that have a translation.
    Existing,
    /// A new connection gets a translation; packets of others are translated as they have it.
    New(NatRange),
}

/// A range of ports, and the one that is tried first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PortSearch {
    /// May be outside the range: then the range follows it.
    first: u16,
    min: u16,
    max: u16,
}

/// Finds a reply key for `original` that `is_free` accepts. `random` returns random numbers.
pub(crate) fn find_reply(
    seed: HashSeed,
    original: &ConnectionKey,
    range: &NatRange,
    mut random: impl FnMut() -> u32,
    mut is_free: impl FnMut(&ConnectionKey) -> bool,
) -> Option<ConnectionKey> {
    let mut reply = original.reversed();
    let port_hash = match range.choice {
        NatPortChoice::Hash => key_hash(seed, original),
        NatPortChoice::Random => random(),
    };
    let address = choose_address(seed, original, range);
    match range.side {
        NatSide::Source => reply.dst.address = address,
        NatSide::Destination => reply.src.address = address,
    }
    if original.has_identifier() {
        let search = PortSearch::of_identifier(original.src.port);
        search.find(&mut random, |identifier| {
            (reply.src.port, reply.dst.port) = (identifier, identifier);
            is_free(&reply)
        })?;
        return Some(reply);
    }
    if !original.protocol.has_nat_ports() {
        return is_free(&reply).then_some(reply);
    }
    let (sources, destinations) = searches(original, range, port_hash);
    reply.dst.port = sources.first;
    if let Some(search) = destinations {
        let port = search.find(&mut random, |port| {
            reply.src.port = port;
            is_free(&reply)
        });
        if port.is_some() {
            return Some(reply);
        }
        reply.src.port = search.first;
    }
    sources.find(&mut random, |port| {
        reply.dst.port = port;
        is_free(&reply)
    })?;
    Some(reply)
}

/// Returns the search for a source port, and the one for a destination port if it may change.
fn searches(
    original: &ConnectionKey,
    range: &NatRange,
    hash: u32,
) -> (PortSearch, Option<PortSearch>) {
    let ranged = range.ports.map(|(min, max)| {
        let max = max.max(min);
        let offset = hash % (u32::from(max - min) + 1);
        // The sum is at most `max`.
        let first = u16::try_from(u32::from(min) + offset).unwrap_or(max);
        PortSearch { first, min, max }
    });
    let own = PortSearch::of_class(original.src.port);
    match range.side {
        NatSide::Source => (ranged.unwrap_or(own), None),
        NatSide::Destination => (own, ranged),
    }
}

impl PortSearch {
    /// Returns the search in the class of a source port: privileged ports stay privileged.
    const fn of_class(port: u16) -> Self {
        let (min, max) = match port {
            0..512 => (1, 511),
            512..1024 => (600, 1023),
            _ => (1024, u16::MAX),
        };
        Self {
            first: port,
            min,
            max,
        }
    }

    /// Returns the search for an identifier of ICMP.
    const fn of_identifier(identifier: u16) -> Self {
        Self {
            first: identifier,
            min: 0,
            max: u16::MAX,
        }
    }

    /// Returns the first port that is free.
    fn find(
        self,
        mut random: impl FnMut() -> u32,
        mut is_free: impl FnMut(u16) -> bool,
    ) -> Option<u16> {
        let len = u32::from(self.max - self.min) + 1;
        let is_outside = !(self.min..=self.max).contains(&self.first);
        let mut port = self.first;
        let mut attempts = (len + u32::from(is_outside)).min(ATTEMPTS_MAX);
        loop {
            for _ in 0..attempts {
                if is_free(port) {
                    return Some(port);
                }
                port = self.after(port);
            }
            if attempts >= len || attempts <= ATTEMPTS_MIN {
                return None;
            }
            attempts /= 2;
            let start = u32::from(self.min) + random() % len;
            port = u16::try_from(start).unwrap_or(self.min);
        }
    }

    const fn after(self, port: u16) -> u16 {
        if port < self.min || port >= self.max {
            self.min
        } else {
            port + 1
        }
    }
}

fn choose_address(seed: HashSeed, original: &ConnectionKey, range: &NatRange) -> CtAddress {
    let own = match range.side {
        NatSide::Source => original.src.address,
        NatSide::Destination => original.dst.address,
    };
    let Some((min, max)) = range.addresses.filter(|(min, _)| min.to_bits() != 0) else {
        return own;
    };
    let hash = match range.persistence {
        NatPersistence::PerConnection => key_hash(seed, original),
        NatPersistence::PerClient => client_hash(seed, original),
    };
    // Ranges of IPv6 are used up to 2^32 addresses, as in Open vSwitch.
    let last = max.to_bits().saturating_sub(min.to_bits());
    let len = last.min(u128::from(u32::MAX)) + 1;
    CtAddress::from_bits(min.to_bits() + u128::from(hash) % len)
}

fn key_hash(seed: HashSeed, key: &ConnectionKey) -> u32 {
    // A word more than the table's hash has: ports are visible, and must not reveal that hash.
    let [a, b, c, d, e] = key.symmetric_words();
    low_word(siphash::<1, 3>(seed, &[a, b, c, d, e, 0]))
}

fn client_hash(seed: HashSeed, key: &ConnectionKey) -> u32 {
    let bits = key.src.address.to_bits();
    let [high, low] = crate::entry::label_words(bits);
    let zone = u64::from(key.zone.0) << 1 | u64::from(key.family == AddressFamily::V6);
    low_word(siphash::<1, 3>(seed, &[high, low, zone]))
}

fn low_word(hash: u64) -> u32 {
    let [.., a, b, c, d] = hash.to_be_bytes();
    u32::from_be_bytes([a, b, c, d])
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use base::SplitMix64;

    use super::*;
    use crate::key::KeyProtocol;
    use crate::test_packets::{icmp_key, tcp_key};

    const SEED: HashSeed = HashSeed([1, 2]);

    fn find(
        original: &ConnectionKey,
        range: &NatRange,
        is_free: impl FnMut(&ConnectionKey) -> bool,
    ) -> Option<ConnectionKey> {
        let mut numbers = SplitMix64::new(1);
        let random = || low_word(numbers.next_u64());
        find_reply(SEED, original, range, random, is_free)
    }

    fn address(last: u8) -> CtAddress {
        Ipv4Addr::new(192, 0, 2, last).into()
    }

    #[test]
    fn nat_keeps_a_free_port() {
        let key = tcp_key(1, 2);
        let range = NatRange::to_address(NatSide::Source, address(9));
        let reply = find(&key, &range, |_| true).expect("all are free");
        assert_eq!(reply.dst.address, address(9));
        assert_eq!(reply.dst.port, key.src.port);
        assert_eq!(reply.src, key.dst);
        let range = NatRange::to_address(NatSide::Destination, address(9));
        let reply = find(&key, &range, |_| true).expect("all are free");
        assert_eq!(
            (reply.src.address, reply.src.port),
            (address(9), key.dst.port)
        );
        assert_eq!(reply.dst, key.src);
    }

    #[test]
    fn nat_uses_each_port_of_its_range_once() {
        let range = NatRange {
            ports: Some((5_000, 5_099)),
            ..NatRange::to_address(NatSide::Source, address(9))
        };
        let mut used = std::collections::BTreeSet::new();
        for _ in 0..100 {
            let reply = find(&tcp_key(1, 2), &range, |reply| !used.contains(reply));
            let reply = reply.expect("a port is free");
            assert!((5_000..=5_099).contains(&reply.dst.port));
            used.insert(reply);
        }
        let reply = find(&tcp_key(1, 2), &range, |reply| !used.contains(reply));
        assert_eq!(reply, None);
    }

    #[test]
    fn nat_search_is_bounded() {
        let mut lookups = 0;
        let range = NatRange::to_address(NatSide::Source, address(9));
        let reply = find(&tcp_key(1, 2), &range, |_| {
            lookups += 1;
            false
        });
        assert_eq!((reply, lookups), (None, 128 + 64 + 32 + 16));
    }

    #[test]
    fn nat_source_port_stays_in_its_class() {
        let mut key = tcp_key(1, 2);
        let range = NatRange::to_address(NatSide::Source, address(9));
        for (port, class) in [(22, 1..=511), (700, 600..=1023), (1023, 600..=1023)] {
            key.src.port = port;
            let reply = find(&key, &range, |reply| reply.dst.port != port).expect("a port");
            assert!(class.contains(&reply.dst.port), "{port} {reply}");
        }
    }

    #[test]
    fn nat_changes_the_source_port_if_the_destination_is_in_use() {
        let key = tcp_key(1, 2);
        let range = NatRange::to_address(NatSide::Destination, address(9));
        let reply = find(&key, &range, |reply| reply.dst.port != key.src.port);
        let reply = reply.expect("another source port");
        assert_eq!(reply.src.port, key.dst.port);
        assert_ne!(reply.dst.port, key.src.port);
    }

    #[test]
    fn persistent_nat_gives_a_client_one_address() {
        let addresses = Some((address(1), address(200)));
        let range = NatRange {
            addresses,
            persistence: NatPersistence::PerClient,
            ..NatRange::to_address(NatSide::Source, address(1))
        };
        let count = |range: &NatRange| {
            let replies = (1..50).map(|server| find(&tcp_key(1, server), range, |_| true));
            let addresses = replies.flatten().map(|reply| reply.dst.address);
            addresses.collect::<std::collections::BTreeSet<_>>().len()
        };
        assert_eq!(count(&range), 1);
        let range = NatRange {
            persistence: NatPersistence::PerConnection,
            ..range
        };
        assert!(count(&range) > 10);
    }

    #[test]
    fn nat_without_address_keeps_it() {
        let range = NatRange {
            addresses: None,
            ..NatRange::to_address(NatSide::Source, address(1))
        };
        let key = tcp_key(1, 2);
        assert_eq!(find(&key, &range, |_| true), Some(key.reversed()));
    }

    #[test]
    fn nat_of_icmp_keeps_the_identifier() {
        let key = icmp_key(1, 2);
        let range = NatRange::to_address(NatSide::Source, address(9));
        let reply = find(&key, &range, |_| true).expect("free");
        assert_eq!(reply.dst.port, key.src.port);
        assert_eq!(find(&key, &range, |_| false), None);
    }

    #[test]
    fn nat_of_icmp_changes_an_identifier_in_use() {
        let key = icmp_key(1, 2);
        let range = NatRange {
            ports: Some((5_000, 5_000)),
            ..NatRange::to_address(NatSide::Source, address(9))
        };
        let reply = find(&key, &range, |reply| reply.dst.port != key.src.port);
        let reply = reply.expect("another identifier");
        assert_ne!(reply.dst.port, key.src.port);
        assert_eq!(reply.src.port, reply.dst.port);
        assert_eq!(reply.src.message_type, key.dst.message_type);
    }

    #[test]
    fn nat_of_sctp_changes_a_port_in_use() {
        let key = ConnectionKey {
            protocol: KeyProtocol::SCTP,
            ..tcp_key(1, 2)
        };
        let range = NatRange::to_address(NatSide::Source, address(9));
        let reply = find(&key, &range, |reply| reply.dst.port != key.src.port);
        let reply = reply.expect("another port");
        assert_ne!(reply.dst.port, key.src.port);
        assert_eq!(reply.src, key.dst);
    }

    #[test]
    fn nat_of_other_protocols_has_no_ports() {
        let mut key = tcp_key(1, 2);
        (key.protocol, key.src.port, key.dst.port) = (KeyProtocol(47), 0, 0);
        let range = NatRange::to_address(NatSide::Source, address(9));
        let reply = find(&key, &range, |_| true).expect("free");
        assert_eq!((reply.src.port, reply.dst.port), (0, 0));
        assert_eq!(find(&key, &range, |_| false), None);
    }
}
