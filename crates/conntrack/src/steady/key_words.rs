//! The key of a TCP or UDP connection in five words, and its hash.

use crate::key::{AddressFamily, ConnectionKey, CtAddress, CtZone, Endpoint, KeyProtocol};
use crate::plain_packet::{AddressWords, PlainPacket};
use crate::siphash::{HashSeed, siphash};

/// Bits of the zone, the protocol and the family, which both directions have in common.
const COMMON: u64 = 0xffff_ffff;

/// A key in words.
///
/// ```text
///   addresses   IPv4: source, destination | 0 | 0 | 0       IPv6: source | destination, 2 words each
///   ports       source port | destination port | zone | protocol | family
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyWords {
    pub(crate) addresses: AddressWords,
    /// Not zero: the family is 4 or 6.
    pub(crate) ports: u64,
}

/// The words of a key over IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyWordsV4 {
    pub(crate) addresses: u64,
    pub(crate) ports: u64,
}

impl KeyWordsV4 {
    /// Returns the words of the reversed key.
    #[inline]
    pub(crate) const fn reversed(self) -> Self {
        Self {
            addresses: self.addresses.rotate_left(32),
            ports: reversed_ports(self.ports),
        }
    }

    /// True if these are the words of `key`.
    #[inline]
    pub(crate) const fn are(self, key: &KeyWords) -> bool {
        let [addresses, ..] = key.addresses;
        self.ports == key.ports && self.addresses == addresses
    }

    /// Source port, then destination port.
    #[inline]
    pub(crate) const fn ports(self) -> u32 {
        upper_half(self.ports)
    }
}

impl KeyWords {
    const V4: u64 = 4;
    const V6: u64 = 6;

    /// Returns the words of a key of TCP or UDP.
    pub(crate) fn of(key: &ConnectionKey) -> Option<Self> {
        let is_plain = matches!(key.protocol, KeyProtocol::TCP | KeyProtocol::UDP);
        let words = |address: CtAddress| {
            let [high, low] = halves(address.to_bits());
            (high, low)
        };
        let ((a, b), (c, d)) = (words(key.src.address), words(key.dst.address));
        let addresses = match key.family {
            AddressFamily::V4 => [b << 32 | d, 0, 0, 0],
            AddressFamily::V6 => [a, b, c, d],
        };
        let ports = u32::from(key.src.port) << 16 | u32::from(key.dst.port);
        is_plain.then(|| Self {
            addresses,
            ports: common_of(key.zone, key.protocol, key.family) | u64::from(ports) << 32,
        })
    }

    /// Returns the key with these words.
    pub(crate) fn to_key(self) -> ConnectionKey {
        let [a, b, c, d, zone_high, zone_low, protocol, _] = self.ports.to_be_bytes();
        let [first, second, third, fourth] = self.addresses;
        let wide = |high: u64, low: u64| u128::from(high) << 64 | u128::from(low);
        let (family, src, dst) = match self.is_v6() {
            true => (AddressFamily::V6, wide(first, second), wide(third, fourth)),
            false => (
                AddressFamily::V4,
                (first >> 32).into(),
                (first & COMMON).into(),
            ),
        };
        let end = |address: u128, port: [u8; 2]| Endpoint {
            address: CtAddress::from_bits(address),
            port: u16::from_be_bytes(port),
            message_type: 0,
        };
        ConnectionKey {
            src: end(src, [a, b]),
            dst: end(dst, [c, d]),
            zone: CtZone(u16::from_be_bytes([zone_high, zone_low])),
            protocol: KeyProtocol(protocol),
            family,
        }
    }

    pub(crate) const fn is_v6(&self) -> bool {
        self.ports & 0xff == Self::V6
    }

    /// The zone.
    #[inline]
    pub(crate) const fn zone(&self) -> CtZone {
        let [_, _, _, _, high, low, ..] = self.ports.to_be_bytes();
        CtZone(u16::from_be_bytes([high, low]))
    }

    /// Source port, then destination port.
    #[inline]
    pub(crate) const fn ports(&self) -> u32 {
        upper_half(self.ports)
    }

    /// The words of a key over IPv4.
    #[inline]
    pub(crate) const fn v4(&self) -> KeyWordsV4 {
        let [addresses, ..] = self.addresses;
        KeyWordsV4 {
            addresses,
            ports: self.ports,
        }
    }

    /// Returns the words of the reversed key.
    #[inline]
    pub(crate) const fn reversed(&self) -> Self {
        let [a, b, c, d] = self.addresses;
        let addresses = if self.is_v6() {
            [c, d, a, b]
        } else {
            [a.rotate_left(32), 0, 0, 0]
        };
        Self {
            addresses,
            ports: reversed_ports(self.ports),
        }
    }

    /// Returns the words of the key that [`ConnectionKey::symmetric_words`] returns.
    #[inline]
    pub(crate) fn symmetric_words(&self) -> [u64; 5] {
        let [a, b, c, d] = self.addresses;
        let (src, dst) = match self.is_v6() {
            true => ([a, b], [c, d]),
            false => ([0, a >> 32], [0, a & COMMON]),
        };
        let (src, dst) = ((src, self.ports >> 48), (dst, self.ports >> 32 & 0xffff));
        let (([a, b], low), ([c, d], high)) = (src.min(dst), src.max(dst));
        let family = u64::from(self.is_v6());
        [
            a,
            b,
            c,
            d,
            low << 48 | high << 32 | self.ports & 0xffff_ff00 | family,
        ]
    }

    /// Returns the hash. That of the reversed key is the same.
    #[inline]
    pub(crate) fn hash(&self, secrets: &HashSecrets) -> u64 {
        let HashSecrets([first, second, third]) = *secrets;
        let [a, b, c, d] = self.addresses;
        let (src, dst) = if self.is_v6() {
            let hash = |high: u64, low: u64| folded_multiply(high ^ first, low ^ second);
            (hash(a, b), hash(c, d))
        } else {
            (a >> 32, a & COMMON)
        };
        let src = src.rotate_left(16) ^ self.ports >> 48;
        let dst = dst.rotate_left(16) ^ self.ports >> 32 & 0xffff;
        let ends = folded_multiply(src.min(dst) ^ first, src.max(dst) ^ second);
        folded_multiply(ends ^ self.ports & COMMON, third)
    }
}

impl PlainPacket<'_> {
    /// Returns the words of the packet's key in a zone.
    #[inline]
    pub(crate) fn key(&self, zone: CtZone) -> KeyWords {
        let ports = u64::from(self.ports) << 32;
        KeyWords {
            addresses: self.addresses,
            ports: ports | common_of(zone, self.body.protocol, self.body.family),
        }
    }
}

/// Swaps the ports.
#[inline]
const fn reversed_ports(ports: u64) -> u64 {
    ports << 16 & (0xffff << 48) | ports >> 16 & (0xffff << 32) | ports & COMMON
}

#[inline]
const fn upper_half(word: u64) -> u32 {
    let [a, b, c, d, ..] = word.to_be_bytes();
    u32::from_be_bytes([a, b, c, d])
}

/// Secret numbers of the hash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HashSecrets([u64; 3]);

impl HashSecrets {
    /// Derives the numbers from the secret seed of the table.
    pub(crate) fn of(seed: HashSeed) -> Self {
        // Odd, so that no factor is zero.
        Self([1, 2, 3].map(|number| siphash::<2, 4>(seed, &[number]) | 1))
    }
}

/// Returns both halves of the product, added without carry (Yi Wang, "wyhash", 2019).
#[inline]
fn folded_multiply(a: u64, b: u64) -> u64 {
    let [high, low] = halves(u128::from(a) * u128::from(b));
    high ^ low
}

#[inline]
const fn halves(value: u128) -> [u64; 2] {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = value.to_be_bytes();
    [
        u64::from_be_bytes([a, b, c, d, e, f, g, h]),
        u64::from_be_bytes([i, j, k, l, m, n, o, p]),
    ]
}

#[inline]
fn common_of(zone: CtZone, protocol: KeyProtocol, family: AddressFamily) -> u64 {
    let family = match family {
        AddressFamily::V4 => KeyWords::V4,
        AddressFamily::V6 => KeyWords::V6,
    };
    u64::from(zone.0) << 16 | u64::from(protocol.0) << 8 | family
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_packets::{icmp_key, tcp_key, udp_key, udp_v6};

    #[test]
    fn key_words_reverse_as_their_key_does() {
        let secrets = HashSecrets::of(HashSeed([1, 2]));
        let v6 = udp_v6(1, 2).tuple.in_zone(CtZone(7));
        for key in [udp_key(1, 2), tcp_key(3, 1).in_zone(CtZone(9)), v6] {
            let words = KeyWords::of(&key).expect("TCP or UDP");
            let reversed = KeyWords::of(&key.reversed()).expect("TCP or UDP");
            assert_eq!(words.reversed(), reversed);
            assert_eq!((words.zone(), words.to_key()), (key.zone, key));
            assert_eq!(words.symmetric_words(), key.symmetric_words());
            assert_eq!(reversed.symmetric_words(), key.symmetric_words());
            assert_eq!(words.hash(&secrets), reversed.hash(&secrets));
            let other = KeyWords::of(&key.in_zone(CtZone(8))).expect("TCP or UDP");
            assert_ne!(words.hash(&secrets), other.hash(&secrets));
        }
        assert_eq!(KeyWords::of(&icmp_key(1, 2)), None);
    }
}
