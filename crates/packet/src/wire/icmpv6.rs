//! The ICMPv6 header (RFC 4443) and neighbour discovery (RFC 4861, 4.3, 4.4, 4.6).
//!
//! ```text
//!  0      1      2          4          8         24
//! +------+------+----------+----------+---------+--------------------
//! | type | code | checksum | reserved | target  | options: type, length / 8, value
//! +------+------+----------+----------+---------+--------------------
//!  135: solicitation, 136: advertisement        option 1: source, 2: target link-layer address
//! ```

use std::net::Ipv6Addr;

use crate::{MacAddr, Malformed};

/// Length of the header, in bytes.
pub const LEN: usize = 4;
/// Length of a solicitation or advertisement before its options, in bytes.
pub const ND_LEN: usize = 24;

/// Offset of the type.
pub const TYPE: usize = 0;
/// Offset of the code.
pub const CODE: usize = 1;
/// Offset of the checksum.
pub const CHECKSUM: usize = 2;
/// Offset of the reserved bytes of a solicitation or advertisement.
pub const RESERVED: usize = 4;
/// Offset of the target of a solicitation or advertisement.
pub const TARGET: usize = 8;

/// The type of a neighbour solicitation.
pub const SOLICITATION: u8 = 135;
/// The type of a neighbour advertisement.
pub const ADVERTISEMENT: u8 = 136;
/// The option with the sender's link-layer address.
pub const OPTION_SOURCE: u8 = 1;
/// The option with the target's link-layer address.
pub const OPTION_TARGET: u8 = 2;
/// Length of an option that carries an Ethernet address, in bytes.
pub const OPTION_LEN: usize = 8;

/// Header fields that rules can match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Icmpv6 {
    /// The type.
    pub kind: u8,
    /// The code.
    pub code: u8,
    /// Neighbour solicitation or advertisement, or `None` for other messages.
    pub nd: Option<Nd>,
}

/// A neighbour solicitation or advertisement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nd {
    /// Four bytes before the target: flags of an advertisement, otherwise zero.
    pub reserved: u32,
    /// Target address: the address to resolve or the address that is advertised.
    pub target: Ipv6Addr,
    /// The sender's, in a solicitation.
    pub sll: Option<LinkLayerOption>,
    /// The target's, in an advertisement.
    pub tll: Option<LinkLayerOption>,
    /// The first option that carries an Ethernet address.
    pub option: Option<NdOption>,
}

/// A link-layer address option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkLayerOption {
    /// The address.
    pub address: MacAddr,
    /// Offset of the address from the ICMPv6 header, in bytes.
    pub at: usize,
}

/// An option with an address, whoever's it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NdOption {
    /// The sender's or the target's.
    pub kind: u8,
    /// Offset of the option's type from the ICMPv6 header, in bytes.
    pub at: usize,
}

impl Icmpv6 {
    /// Parses the message at the front of `bytes`, which end where the packet ends. (Neighbour
    /// discovery messages are never fragmented: RFC 6980.)
    ///
    /// # Errors
    /// The header is truncated, a solicitation or advertisement is truncated, or one of its options
    /// has length zero or exceeds the packet.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let [kind, code, _, _]: [u8; LEN] =
            *bytes.first_chunk().ok_or(Malformed::Icmpv6Truncated)?;
        let nd = match kind {
            SOLICITATION | ADVERTISEMENT => Some(Nd::parse(kind, bytes)?),
            _ => None,
        };
        Ok(Self { kind, code, nd })
    }

    /// The header.
    #[must_use]
    pub const fn emit(&self) -> [u8; LEN] {
        [self.kind, self.code, 0, 0]
    }
}

impl Nd {
    fn parse(kind: u8, bytes: &[u8]) -> Result<Self, Malformed> {
        let message: &[u8; ND_LEN] = bytes.first_chunk().ok_or(Malformed::NdTruncated)?;
        let target = std::array::from_fn::<u8, 16, _>(|index| message[TARGET + index]);
        let reserved = std::array::from_fn(|index| message[RESERVED + index]);
        let mut nd = Self {
            reserved: u32::from_be_bytes(reserved),
            target: Ipv6Addr::from(target),
            sll: None,
            tll: None,
            option: None,
        };
        let mut at = ND_LEN;
        while at < bytes.len() {
            let [option, eighths] = *bytes[at..].first_chunk().ok_or(Malformed::NdOption)?;
            let len = usize::from(eighths) * 8;
            if len == 0 || len > bytes.len() - at {
                return Err(Malformed::NdOption);
            }
            if len == OPTION_LEN && matches!(option, OPTION_SOURCE | OPTION_TARGET) {
                nd.option.get_or_insert(NdOption { kind: option, at });
            }
            let slot = match (kind, option) {
                (SOLICITATION, OPTION_SOURCE) => Some(&mut nd.sll),
                (ADVERTISEMENT, OPTION_TARGET) => Some(&mut nd.tll),
                _ => None,
            };
            if let Some(slot) = slot
                && len == OPTION_LEN
            {
                // The first of several options counts.
                let address = MacAddr(std::array::from_fn(|index| bytes[at + 2 + index]));
                slot.get_or_insert(LinkLayerOption {
                    address,
                    at: at + 2,
                });
            }
            at += len;
        }
        Ok(nd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn solicitation() -> Vec<u8> {
        let mut bytes = vec![SOLICITATION, 0, 0, 0, 0, 0, 0, 0];
        bytes.extend(Ipv6Addr::LOCALHOST.octets());
        bytes.extend([14, 1, 0, 0, 0, 0, 0, 0]);
        bytes.extend([OPTION_SOURCE, 1, 2, 0, 0, 0, 0, 7]);
        bytes.extend([OPTION_SOURCE, 1, 2, 0, 0, 0, 0, 8]);
        bytes
    }

    #[test]
    fn solicitation_has_target_and_source_address() {
        let read = Icmpv6::parse(&solicitation()).expect("well formed");
        let nd = read.nd.expect("a solicitation");
        assert_eq!(nd.target, Ipv6Addr::LOCALHOST);
        let first = LinkLayerOption {
            address: MacAddr([2, 0, 0, 0, 0, 7]),
            at: 34,
        };
        assert_eq!((nd.sll, nd.tll), (Some(first), None));
        let option = NdOption { kind: 1, at: 32 };
        assert_eq!((nd.reserved, nd.option), (0, Some(option)));
    }

    #[test]
    fn icmpv6_message_without_discovery_is_header_only() {
        let echo = Icmpv6 {
            kind: 128,
            code: 0,
            nd: None,
        };
        assert_eq!(Icmpv6::parse(&echo.emit()), Ok(echo));
    }

    #[test]
    fn malformed_icmpv6_message_is_refused() {
        let good = solicitation();
        assert_eq!(Icmpv6::parse(&good[..3]), Err(Malformed::Icmpv6Truncated));
        assert_eq!(Icmpv6::parse(&good[..23]), Err(Malformed::NdTruncated));
        assert_eq!(Icmpv6::parse(&good[..25]), Err(Malformed::NdOption));
        assert_eq!(Icmpv6::parse(&good[..31]), Err(Malformed::NdOption));
        let mut endless = good;
        endless[25] = 0;
        assert_eq!(Icmpv6::parse(&endless), Err(Malformed::NdOption));
    }
}
