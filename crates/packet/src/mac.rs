//! Ethernet addresses.

use std::fmt;
use std::str::FromStr;

/// An Ethernet address, in the order of the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddr(pub [u8; 6]);

impl MacAddr {
    /// `ff:ff:ff:ff:ff:ff`.
    pub const BROADCAST: Self = Self([0xff; 6]);

    /// True for group addresses, broadcast included.
    #[must_use]
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 == 1
    }

    /// True for the broadcast address.
    #[must_use]
    pub fn is_broadcast(self) -> bool {
        self.0 == [0xff; 6]
    }

    /// True for addresses that a bridge does not forward: `01:80:c2:00:00:00` to `0f` (IEEE
    /// 802.1D-2004, table 7-10), and those of vendor protocols between switches
    /// (ovs-vswitchd.conf.db(5), `other_config:forward-bpdu`).
    #[must_use]
    pub fn is_bridge_reserved(self) -> bool {
        matches!(
            self.0,
            [0x01, 0x80, 0xc2, 0, 0, 0..=0x0f]
                | [0x01, 0, 0x0c, 0, 0, 0]
                | [0x01, 0, 0x0c, 0xcc, 0xcc, 0xc0..=0xc7 | 0xcc | 0xcd]
                | [0x01, 0, 0x0c, 0xcd, 0xcd, 0xcd]
                | [0, 0xe0, 0x2b, 0, 0, 0 | 4 | 6]
        )
    }

    /// The address as the lower 48 bits of a number.
    #[must_use]
    pub const fn to_u64(self) -> u64 {
        let [a, b, c, d, e, f] = self.0;
        u64::from_be_bytes([0, 0, a, b, c, d, e, f])
    }

    /// The address in the lower 48 bits of `number`.
    #[must_use]
    pub const fn from_u64(number: u64) -> Self {
        let [_, _, a, b, c, d, e, f] = number.to_be_bytes();
        Self([a, b, c, d, e, f])
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// Error: the text is not six hexadecimal bytes separated by colons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid Ethernet address: expected six hexadecimal bytes, such as 02:00:00:00:00:01")]
pub struct ParseMacAddrError;

impl FromStr for MacAddr {
    type Err = ParseMacAddrError;

    fn from_str(text: &str) -> Result<Self, ParseMacAddrError> {
        let mut bytes = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut bytes {
            let part = parts
                .next()
                .filter(|part| (1..=2).contains(&part.len()))
                .ok_or(ParseMacAddrError)?;
            *byte = u8::from_str_radix(part, 16).map_err(|_| ParseMacAddrError)?;
        }
        if parts.next().is_some() {
            Err(ParseMacAddrError)
        } else {
            Ok(Self(bytes))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips() {
        let text = "02:00:5e:10:0a:ff";
        assert_eq!(
            text.parse::<MacAddr>().map(|mac| mac.to_string()),
            Ok(text.to_owned())
        );
        assert_eq!(
            "2:0:5e:10:a:ff".parse(),
            "02:00:5e:10:0a:ff".parse::<MacAddr>()
        );
    }

    #[test]
    fn malformed_mac_address_is_refused() {
        for text in [
            "",
            "02:00:5e:10:0a",
            "02:00:5e:10:0a:ff:00",
            "02:00:5e:10:0a:1ff",
            "02-00-5e-10-0a-ff",
        ] {
            assert_eq!(text.parse::<MacAddr>(), Err(ParseMacAddrError), "{text}");
        }
    }

    #[test]
    fn bridge_reserved_addresses_end_at_0f() {
        assert!(MacAddr([1, 0x80, 0xc2, 0, 0, 0x0e]).is_bridge_reserved());
        assert!(!MacAddr([1, 0x80, 0xc2, 0, 0, 0x10]).is_bridge_reserved());
        assert!(MacAddr([1, 0, 0x0c, 0xcc, 0xcc, 0xcd]).is_bridge_reserved());
        assert!(!MacAddr([1, 0, 0x0c, 0xcc, 0xcc, 0xc8]).is_bridge_reserved());
    }
}
