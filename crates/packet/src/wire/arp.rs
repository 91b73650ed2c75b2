//! ARP and RARP (RFC 826, RFC 903), for IPv4 over Ethernet.
//!
//! ```text
//!  0      2      4    5    6    8      14     18     24     28
//! +------+------+----+----+----+------+------+------+------+
//! | 1    |0x0800| 6  | 4  | op | sha  | spa  | tha  | tpa  |
//! +------+------+----+----+----+------+------+------+------+
//! ```

use std::net::Ipv4Addr;

use super::u16_at;
use crate::{MacAddr, Malformed};

/// Length of a packet for IPv4 over Ethernet, in bytes.
pub const LEN: usize = 28;
/// Length before the addresses, in bytes.
const FIXED_LEN: usize = 8;

/// Offset of the operation.
pub const OP: usize = 6;
/// Offset of the sender's hardware address.
pub const SHA: usize = 8;
/// Offset of the sender's protocol address.
pub const SPA: usize = 14;
/// Offset of the target's hardware address.
pub const THA: usize = 18;
/// Offset of the target's protocol address.
pub const TPA: usize = 24;

/// Hardware type 1, protocol type IPv4, addresses of 6 and 4 bytes.
const ETHERNET_IPV4: [u8; 6] = [0, 1, 8, 0, 6, 4];

/// ARP or RARP message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arp {
    /// Operation code: 1 request and 2 reply; 3 and 4 in RARP.
    pub op: u16,
    /// Addresses, or `None` if the message is not for IPv4 over Ethernet.
    pub addresses: Option<ArpAddresses>,
}

/// The four addresses of an ARP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArpAddresses {
    /// The sender's hardware address.
    pub sha: MacAddr,
    /// The sender's protocol address.
    pub spa: Ipv4Addr,
    /// The target's hardware address.
    pub tha: MacAddr,
    /// The target's protocol address.
    pub tpa: Ipv4Addr,
}

impl Arp {
    /// Parses the message at the front of `bytes`.
    ///
    /// # Errors
    /// The message ends before the operation code or, if it is for IPv4 over Ethernet, before its
    /// last address.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        if bytes.len() < FIXED_LEN {
            return Err(Malformed::ArpTruncated);
        }
        let op = u16_at(bytes, OP);
        if bytes[..OP] != ETHERNET_IPV4 {
            return Ok(Self {
                op,
                addresses: None,
            });
        }
        let packet: &[u8; LEN] = bytes.first_chunk().ok_or(Malformed::ArpTruncated)?;
        let mac = |at| MacAddr(std::array::from_fn(|index| packet[at + index]));
        let ip = |at| Ipv4Addr::from(std::array::from_fn::<u8, 4, _>(|index| packet[at + index]));
        Ok(Self {
            op,
            addresses: Some(ArpAddresses {
                sha: mac(SHA),
                spa: ip(SPA),
                tha: mac(THA),
                tpa: ip(TPA),
            }),
        })
    }
}

impl ArpAddresses {
    /// Returns the message with operation `op` and these addresses.
    #[must_use]
    pub fn emit(&self, op: u16) -> [u8; LEN] {
        let mut packet = [0; LEN];
        packet[..OP].copy_from_slice(&ETHERNET_IPV4);
        packet[OP..SHA].copy_from_slice(&op.to_be_bytes());
        packet[SHA..SPA].copy_from_slice(&self.sha.0);
        packet[SPA..THA].copy_from_slice(&self.spa.octets());
        packet[THA..TPA].copy_from_slice(&self.tha.0);
        packet[TPA..].copy_from_slice(&self.tpa.octets());
        packet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arp_message_round_trips() {
        let addresses = ArpAddresses {
            sha: MacAddr([2, 0, 0, 0, 0, 1]),
            spa: Ipv4Addr::new(10, 0, 0, 1),
            tha: MacAddr([0; 6]),
            tpa: Ipv4Addr::new(10, 0, 0, 2),
        };
        let bytes = addresses.emit(1);
        let read = Arp {
            op: 1,
            addresses: Some(addresses),
        };
        assert_eq!(Arp::parse(&bytes), Ok(read));
        assert_eq!(Arp::parse(&bytes[..27]), Err(Malformed::ArpTruncated));
        assert_eq!(Arp::parse(&bytes[..7]), Err(Malformed::ArpTruncated));
    }

    #[test]
    fn arp_of_other_hardware_has_only_operation() {
        let infiniband = [0, 32, 8, 0, 20, 4, 0, 2];
        let read = Arp {
            op: 2,
            addresses: None,
        };
        assert_eq!(Arp::parse(&infiniband), Ok(read));
    }
}
