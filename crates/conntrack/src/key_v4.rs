//! The key of a connection over IPv4 in two words.
//!
//! ```text
//!   addresses   source | destination
//!   numbers     source port | destination port | zone | protocol | spare
//!               identifier  | both types       | zone | protocol | spare      ICMP
//! ```
//!
//! The spare byte is no part of the key.

use crate::key::{AddressFamily, ConnectionKey, CtAddress, CtZone, Endpoint, KeyProtocol};

/// The byte of the second word that is no part of the key.
const SPARE: u64 = 0xff;
/// Lower half of a word.
const LOW: u64 = 0xffff_ffff;

/// A key of IPv4.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyV4 {
    addresses: u64,
    numbers: u64,
}

impl KeyV4 {
    /// Returns the words of a key, if they can express it: those of all packets over IPv4.
    #[inline]
    pub(crate) fn of(key: &ConnectionKey) -> Option<Self> {
        let ConnectionKey { src, dst, .. } = key;
        let [high, low] = [src, dst].map(|end| {
            let bits = end.address.to_bits();
            u32::try_from(bits).ok()
        });
        let addresses = u64::from(high?) << 32 | u64::from(low?);
        let has_types = src.message_type | dst.message_type != 0;
        let second = if key.protocol == KeyProtocol::ICMPV4 {
            u16::from_be_bytes([src.message_type, dst.message_type])
        } else {
            dst.port
        };
        let is_icmp = key.protocol == KeyProtocol::ICMPV4;
        let is_exact = match is_icmp {
            true => src.port == dst.port,
            false => !has_types,
        };
        let numbers = u64::from(src.port) << 48
            | u64::from(second) << 32
            | u64::from(key.zone.0) << 16
            | u64::from(key.protocol.0) << 8;
        (is_exact && key.family == AddressFamily::V4).then_some(Self { addresses, numbers })
    }

    /// True if these are the words of `key`.
    #[inline]
    pub(crate) fn is(&self, key: &ConnectionKey) -> bool {
        let Self { addresses, numbers } = *self;
        let numbers = numbers & !SPARE;
        Self::of(key) == Some(Self { addresses, numbers })
    }

    /// Returns the spare byte.
    #[inline]
    pub(crate) const fn spare(&self) -> u8 {
        let [.., spare] = self.numbers.to_be_bytes();
        spare
    }

    /// Writes the spare byte.
    pub(crate) const fn set_spare(&mut self, spare: u8) {
        self.numbers = self.numbers & !SPARE | spare as u64;
    }

    /// The zone.
    #[inline]
    pub(crate) const fn zone(&self) -> CtZone {
        let [_, _, _, _, high, low, ..] = self.numbers.to_be_bytes();
        CtZone(u16::from_be_bytes([high, low]))
    }

    /// Returns the key with these words.
    #[inline]
    pub(crate) fn to_key(self) -> ConnectionKey {
        let [a, b, c, d, _, _, protocol, _] = self.numbers.to_be_bytes();
        let (first, second) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let protocol = KeyProtocol(protocol);
        let [src, dst] = match protocol {
            KeyProtocol::ICMPV4 => [(first, c), (first, d)],
            _ => [(first, 0), (second, 0)],
        };
        let end = |address: u64, (port, message_type)| Endpoint {
            address: CtAddress::from_bits(u128::from(address)),
            port,
            message_type,
        };
        ConnectionKey {
            src: end(self.addresses >> 32, src),
            dst: end(self.addresses & LOW, dst),
            zone: self.zone(),
            protocol,
            family: AddressFamily::V4,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_packets::{icmp_key, tcp_key, udp_key, udp_v6};

    #[test]
    fn words_of_ipv4_hold_the_key() {
        let keys = [udp_key(1, 2), tcp_key(3, 1), icmp_key(1, 9)];
        for key in keys.map(|key| key.in_zone(CtZone(0xabcd))) {
            for key in [key, key.reversed()] {
                let words = KeyV4::of(&key).expect("IPv4");
                assert_eq!((words.to_key(), words.zone()), (key, key.zone));
                assert!(words.is(&key) && !words.is(&key.reversed()));
            }
        }
    }

    #[test]
    fn key_of_another_kind_has_no_words() {
        assert_eq!(KeyV4::of(&udp_v6(1, 2).tuple.in_zone(CtZone(3))), None);
        let mut key = icmp_key(1, 2);
        key.dst.port += 1;
        assert_eq!(KeyV4::of(&key), None);
        let mut key = udp_key(1, 2);
        key.src.message_type = 8;
        assert_eq!(KeyV4::of(&key), None);
        let mut key = udp_key(1, 2);
        key.src.address = CtAddress::from_bits(0xffff_0a00_0001);
        assert_eq!(KeyV4::of(&key), None);
    }
}
