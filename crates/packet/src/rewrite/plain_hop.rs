//! The rewrites of a router in one step: Ethernet addresses and TTL of an untagged packet of IP.
//!
//! All of them are at fixed offsets, so no header is parsed. The result is that of the setters of
//! [`Packet`](super::Packet).

use super::plain_ends::{summand, updated};
use crate::MacAddr;
use crate::wire::ethernet::{self, EtherType};
use crate::wire::{ipv4, ipv6};

/// Rewrites of a router.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlainHop {
    /// New Ethernet destination.
    pub eth_dst: Option<MacAddr>,
    /// New Ethernet source.
    pub eth_src: Option<MacAddr>,
    /// True if the TTL of IPv4 or the hop limit of IPv6 is decremented.
    pub dec_ttl: bool,
}

/// Applies the rewrites to a frame. Returns false, without a change, if a TTL is decremented and the
/// frame is no untagged packet of IP, or its TTL expires.
#[inline]
pub fn set_plain_hop(frame: &mut [u8], hop: &PlainHop) -> bool {
    if hop.dec_ttl && dec_ttl(frame).is_none() {
        return false;
    }
    let Some(link) = frame.first_chunk_mut::<{ ethernet::TYPE }>() else {
        return false;
    };
    // Arrays, since the length of a slice is no constant and would cost a call.
    if let (Some(address), Some(field)) = (hop.eth_dst, link.first_chunk_mut()) {
        *field = address.0;
    }
    if let (Some(address), Some(field)) = (hop.eth_src, link.last_chunk_mut()) {
        *field = address.0;
    }
    true
}

#[inline]
fn dec_ttl(frame: &mut [u8]) -> Option<()> {
    let (link, packet) = frame.split_first_chunk_mut::<{ ethernet::TYPE + 2 }>()?;
    let [.., high, low] = *link;
    match EtherType(u16::from_be_bytes([high, low])) {
        EtherType::IPV4 => {
            let header = packet.first_chunk_mut::<{ ipv4::LEN_MIN }>()?;
            let old = header[ipv4::TTL];
            let new = old.checked_sub(1).filter(|ttl| *ttl > 0)?;
            header[ipv4::TTL] = new;
            let checksum: &mut [u8; 2] = header[ipv4::CHECKSUM..].first_chunk_mut()?;
            let [old, new] = [old, new].map(|ttl| u32::from(ttl) << 8);
            *checksum = updated(u16::from_be_bytes(*checksum), summand(old, new)).to_be_bytes();
        }
        EtherType::IPV6 => {
            let hop_limit = packet.get_mut(ipv6::HOP_LIMIT)?;
            *hop_limit = hop_limit.checked_sub(1).filter(|limit| *limit > 0)?;
        }
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::build::Stack;
    use crate::{Depth, Frame, Packet};

    proptest! {
        #[test]
        fn hops_are_written_as_the_setters_do(
            is_v6 in any::<bool>(),
            ttl in any::<u8>(),
            checksum in any::<u16>(),
            addresses in any::<[Option<[u8; 6]>; 2]>(),
            dec_ttl in any::<bool>(),
        ) {
            let network = if is_v6 { "ipv6" } else { "ipv4" };
            let stack: Stack = format!("eth / {network} / udp / data(9)").parse().expect("a packet");
            let mut bytes = stack.build().bytes().to_vec();
            match is_v6 {
                true => bytes[14 + 7] = ttl,
                false => {
                    bytes[14 + 8] = ttl;
                    bytes[24..26].copy_from_slice(&checksum.to_be_bytes());
                }
            }
            let [eth_dst, eth_src] = addresses.map(|address| address.map(MacAddr));
            let mut expected = Frame::from_bytes(&bytes);
            let mut packet = Packet::parse(&mut expected, Depth::Transport).expect("a packet");
            let is_expired = dec_ttl && packet.dec_ip_ttl().is_err();
            if !is_expired {
                eth_dst.into_iter().for_each(|address| packet.set_eth_dst(address));
                eth_src.into_iter().for_each(|address| packet.set_eth_src(address));
            }
            let hop = PlainHop { eth_dst, eth_src, dec_ttl };
            prop_assert_eq!(set_plain_hop(&mut bytes, &hop), !is_expired);
            prop_assert_eq!(bytes, expected.bytes());
        }
    }

    #[test]
    fn frames_without_plain_ip_are_left_alone() {
        let hop = PlainHop {
            eth_dst: Some(MacAddr([2; 6])),
            eth_src: None,
            dec_ttl: true,
        };
        for stack in ["eth / vlan / ipv4 / udp", "eth / arp"] {
            let stack: Stack = stack.parse().expect("a frame");
            let before = stack.build().bytes().to_vec();
            let mut after = before.clone();
            assert!(!set_plain_hop(&mut after, &hop));
            assert_eq!(after, before);
        }
        assert!(!set_plain_hop(&mut [8; 13], &hop));
    }
}
