//! Decrementing a TTL, and copying it between the two outermost headers that have one (OF 1.3.5,
//! 5.12).

use super::Packet;
use super::checksum_update::{sum_delta, update_ipv4_checksum};
use crate::headers::Network;
use crate::wire::{IpProto, ipv4, ipv6, mpls};

/// Error: the TTL is one or zero and is not decremented. The frame is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("time to live expired")]
pub struct TtlExpired;

/// A TTL within the frame.
#[derive(Clone, Copy)]
struct TtlField {
    /// Offset of the TTL in the frame.
    at: usize,
    /// Offset of the IPv4 header whose checksum covers it.
    ipv4: Option<usize>,
}

impl Packet<'_> {
    /// Decrements the TTL of IPv4 or the hop limit of IPv6.
    ///
    /// # Errors
    /// The TTL was one or zero.
    pub fn dec_ip_ttl(&mut self) -> Result<(), TtlExpired> {
        let ttl = match &self.headers.network {
            Network::Ipv4(ip) => ip.ttl,
            Network::Ipv6(ip) => ip.hop_limit,
            Network::None
            | Network::Mpls(_)
            | Network::Pbb(_)
            | Network::Nsh(_)
            | Network::Arp(_) => return Ok(()),
        };
        self.set_ip_ttl(decremented(ttl)?);
        Ok(())
    }

    /// Decrements the TTL of the outermost MPLS entry.
    ///
    /// # Errors
    /// The TTL was one or zero.
    pub fn dec_mpls_ttl(&mut self) -> Result<(), TtlExpired> {
        if let Network::Mpls(entry) = &self.headers.network {
            let ttl = decremented(entry.ttl)?;
            self.set_mpls_ttl(ttl);
        }
        Ok(())
    }

    /// Copies the TTL outwards: from the second header with a TTL to the outermost.
    pub fn copy_ttl_out(&mut self) {
        let Some(inner) = self.inner_ttl() else {
            return;
        };
        let ttl = self.frame.bytes()[inner.at];
        match &self.headers.network {
            Network::Mpls(_) => self.set_mpls_ttl(ttl),
            Network::Ipv4(_) | Network::Ipv6(_) => self.set_ip_ttl(ttl),
            Network::None | Network::Pbb(_) | Network::Nsh(_) | Network::Arp(_) => {}
        }
    }

    /// Copies the TTL inwards: from the outermost header with a TTL to the second.
    pub fn copy_ttl_in(&mut self) {
        let outer = match &self.headers.network {
            Network::Mpls(entry) => entry.ttl,
            Network::Ipv4(ip) => ip.ttl,
            Network::Ipv6(ip) => ip.hop_limit,
            Network::None | Network::Pbb(_) | Network::Nsh(_) | Network::Arp(_) => return,
        };
        let Some(inner) = self.inner_ttl() else {
            return;
        };
        let old = std::mem::replace(&mut self.frame.bytes_mut()[inner.at], outer);
        if let Some(header) = inner.ipv4 {
            let change = sum_delta(inner.at - header, &[old], &[outer]);
            update_ipv4_checksum(self.frame, header, change);
        }
    }

    /// Returns the second TTL: of the next MPLS entry, of the IP packet at the bottom of the stack,
    /// or of an IP packet within IP.
    fn inner_ttl(&self) -> Option<TtlField> {
        match &self.headers.network {
            Network::Mpls(entry) => {
                let next = self.headers.network_at() + mpls::LEN;
                if entry.bottom {
                    self.ip_ttl(next, None)
                } else {
                    let at = next + mpls::TTL;
                    (at < self.frame.len()).then_some(TtlField { at, ipv4: None })
                }
            }
            Network::Ipv4(_) | Network::Ipv6(_) => {
                let upper = self.headers.upper?;
                match upper.protocol {
                    IpProto::IPV4 => self.ip_ttl(upper.at, Some(4)),
                    IpProto::IPV6 => self.ip_ttl(upper.at, Some(6)),
                    _ => None,
                }
            }
            Network::None | Network::Pbb(_) | Network::Nsh(_) | Network::Arp(_) => None,
        }
    }

    /// Returns the TTL of the IP packet at `header`, if it has the given version.
    fn ip_ttl(&self, header: usize, version: Option<u8>) -> Option<TtlField> {
        let packet = self.frame.bytes().get(header..)?;
        let found = packet.first()? >> 4;
        match found {
            _ if version.is_some_and(|version| version != found) => None,
            4 if packet.len() >= ipv4::LEN_MIN => Some(TtlField {
                at: header + ipv4::TTL,
                ipv4: Some(header),
            }),
            6 if packet.len() >= ipv6::LEN => Some(TtlField {
                at: header + ipv6::HOP_LIMIT,
                ipv4: None,
            }),
            _ => None,
        }
    }
}

pub(super) fn decremented(ttl: u8) -> Result<u8, TtlExpired> {
    match ttl {
        0 | 1 => Err(TtlExpired),
        _ => Ok(ttl - 1),
    }
}
