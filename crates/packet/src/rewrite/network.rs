//! ARP, IPv4 and IPv6.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::checksum_update::Coverage;
use super::{Packet, RewriteError};
use crate::MacAddr;
use crate::headers::Network;
use crate::wire::arp::{self, ArpAddresses};
use crate::wire::{IpProto, ipv4, ipv6};

/// DSCP bits of a ToS byte or traffic class.
const DSCP: u8 = 0xfc;

impl Packet<'_> {
    /// Sets the operation of ARP.
    pub fn set_arp_op(&mut self, op: u16) {
        if let Network::Arp(arp) = &mut self.headers.network {
            arp.op = op;
            self.write_network(arp::OP, op.to_be_bytes(), Coverage::Nothing);
        }
    }

    /// Sets the sender's hardware address in ARP.
    pub fn set_arp_sha(&mut self, address: MacAddr) {
        if let Some(addresses) = self.arp_addresses() {
            addresses.sha = address;
            self.write_network(arp::SHA, address.0, Coverage::Nothing);
        }
    }

    /// Sets the sender's protocol address in ARP.
    pub fn set_arp_spa(&mut self, address: Ipv4Addr) {
        if let Some(addresses) = self.arp_addresses() {
            addresses.spa = address;
            self.write_network(arp::SPA, address.octets(), Coverage::Nothing);
        }
    }

    /// Sets the target's hardware address in ARP.
    pub fn set_arp_tha(&mut self, address: MacAddr) {
        if let Some(addresses) = self.arp_addresses() {
            addresses.tha = address;
            self.write_network(arp::THA, address.0, Coverage::Nothing);
        }
    }

    /// Sets the target's protocol address in ARP.
    pub fn set_arp_tpa(&mut self, address: Ipv4Addr) {
        if let Some(addresses) = self.arp_addresses() {
            addresses.tpa = address;
            self.write_network(arp::TPA, address.octets(), Coverage::Nothing);
        }
    }

    /// Sets the DSCP: the lower six bits of `dscp`.
    pub fn set_ip_dscp(&mut self, dscp: u8) {
        self.change_tos(|tos| dscp << 2 | tos & !DSCP);
    }

    /// Sets the ECN: the lower two bits of `ecn`.
    pub fn set_ip_ecn(&mut self, ecn: u8) {
        self.change_tos(|tos| tos & DSCP | ecn & !DSCP);
    }

    fn change_tos(&mut self, change: impl FnOnce(u8) -> u8) {
        match &mut self.headers.network {
            Network::Ipv4(ip) => {
                ip.tos = change(ip.tos);
                let tos = ip.tos;
                self.write_network(ipv4::TOS, [tos], Coverage::Header);
            }
            Network::Ipv6(ip) => {
                ip.traffic_class = change(ip.traffic_class);
                self.write_first_word();
            }
            Network::None
            | Network::Mpls(_)
            | Network::Pbb(_)
            | Network::Nsh(_)
            | Network::Arp(_) => {}
        }
    }

    /// Sets the TTL of IPv4 or the hop limit of IPv6.
    pub fn set_ip_ttl(&mut self, ttl: u8) {
        match &mut self.headers.network {
            Network::Ipv4(ip) => {
                ip.ttl = ttl;
                self.write_network(ipv4::TTL, [ttl], Coverage::Header);
            }
            Network::Ipv6(ip) => {
                ip.hop_limit = ttl;
                self.write_network(ipv6::HOP_LIMIT, [ttl], Coverage::Nothing);
            }
            Network::None
            | Network::Mpls(_)
            | Network::Pbb(_)
            | Network::Nsh(_)
            | Network::Arp(_) => {}
        }
    }

    /// Sets the protocol number above IP, after all extension headers. The checksum of the present
    /// transport header covers it and is updated.
    ///
    /// # Errors
    /// None for an IP packet: no header before the transport header changes.
    pub fn set_ip_proto(&mut self, protocol: u8) -> Result<(), RewriteError> {
        let (old, at, coverage) = match &self.headers.network {
            Network::Ipv4(ip) => (ip.protocol, ipv4::PROTOCOL, Coverage::Header),
            Network::Ipv6(ip) => (ip.protocol, usize::from(ip.protocol_at), Coverage::Nothing),
            Network::None
            | Network::Mpls(_)
            | Network::Pbb(_)
            | Network::Nsh(_)
            | Network::Arp(_) => return Ok(()),
        };
        self.write_network(at, [protocol], coverage);
        self.update_for_protocol(old, IpProto(protocol));
        Ok(self.reparse_leniently()?)
    }

    /// Sets the source of IPv4.
    pub fn set_ipv4_src(&mut self, address: Ipv4Addr) {
        if let Network::Ipv4(ip) = &mut self.headers.network {
            ip.src = address;
            self.write_network(ipv4::SRC, address.octets(), Coverage::HeaderAndPseudo);
        }
    }

    /// Sets the destination of IPv4.
    pub fn set_ipv4_dst(&mut self, address: Ipv4Addr) {
        if let Network::Ipv4(ip) = &mut self.headers.network {
            ip.dst = address;
            self.write_network(ipv4::DST, address.octets(), Coverage::HeaderAndPseudo);
        }
    }

    /// Sets the source of IPv6.
    pub fn set_ipv6_src(&mut self, address: Ipv6Addr) {
        if let Network::Ipv6(ip) = &mut self.headers.network {
            ip.src = address;
            self.write_network(ipv6::SRC, address.octets(), Coverage::Pseudo);
        }
    }

    /// Sets the destination of IPv6. While a routing header has segments left, the transport
    /// checksum covers the last of them instead of this address.
    pub fn set_ipv6_dst(&mut self, address: Ipv6Addr) {
        if let Network::Ipv6(ip) = &mut self.headers.network {
            ip.dst = address;
            let coverage = if ip.routed {
                Coverage::Nothing
            } else {
                Coverage::Pseudo
            };
            self.write_network(ipv6::DST, address.octets(), coverage);
        }
    }

    /// Sets the flow label of IPv6 to the lower twenty bits of `label`.
    pub fn set_ipv6_flabel(&mut self, label: u32) {
        if let Network::Ipv6(ip) = &mut self.headers.network {
            ip.flow_label = label & 0x000f_ffff;
            self.write_first_word();
        }
    }

    fn write_first_word(&mut self) {
        if let Network::Ipv6(ip) = &self.headers.network {
            let [a, b, c, d, ..] = ip.emit(ip.protocol);
            self.write_network(0, [a, b, c, d], Coverage::Nothing);
        }
    }

    fn arp_addresses(&mut self) -> Option<&mut ArpAddresses> {
        match &mut self.headers.network {
            Network::Arp(arp) => arp.addresses.as_mut(),
            _ => None,
        }
    }

    /// Writes the length of IP. The transport checksum does not follow: its caller computes it.
    pub(super) fn write_ip_len(&mut self, offset: usize, len: u16) {
        let coverage = match &self.headers.network {
            Network::Ipv4(_) => Coverage::Header,
            _ => Coverage::Nothing,
        };
        self.write_network(offset, len.to_be_bytes(), coverage);
    }

    fn write_network<const N: usize>(&mut self, offset: usize, new: [u8; N], coverage: Coverage) {
        self.write(self.headers.network_at() + offset, new, coverage);
    }
}
