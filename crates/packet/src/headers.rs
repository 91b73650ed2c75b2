//! Header parsing to a given depth.
//!
//! [`Headers::parse`] reads a frame from the Ethernet header inwards and stops at the requested
//! [`Depth`], which is the deepest layer that the installed rules match:
//!
//! | depth | headers |
//! |---|---|
//! | `Link` | Ethernet, VLAN tags (at most eight are skipped), LLC and SNAP |
//! | `Network` | ARP, MPLS (outermost entry), PBB (outermost tag), NSH, IPv4, IPv6 with its extension headers |
//! | `Transport` | TCP, UDP, SCTP, ICMP, ICMPv6, neighbour discovery |
//!
//! A missing header and a header that was not parsed are both `None`. Nothing is parsed below MPLS,
//! because a label stack does not identify the protocol that follows; nothing behind a PBB tag or
//! an NSH; and no transport header in a later fragment. A lookup reads the ports of fragments as zero
//! ([`Headers::for_lookup`]).
//!
//! # Malformed
//! frames
//!
//! A frame is malformed ([`Malformed`]) if a header within the depth is truncated, has a wrong
//! version, or has a length that does not fit its contents or the frame. Deeper headers are not
//! judged: a frame with a damaged TCP header is well formed to a bridge that matches addresses.
//! Checksums are not verified, unknown types and padding after the datagram are legal, and so is
//! any value of an address. Offload metadata that do not fit the frame make it malformed as well.
//!
//! ```
//! use packet::build::Stack;
//! use packet::{Depth, Headers, Malformed, Network, Transport};
//!
//! let stack: Stack = "eth / vlan(vid=5) / ipv4(ttl=3) / tcp(dst=443)".parse().unwrap();
//! let mut frame = stack.build();
//! let headers = Headers::parse(&frame, Depth::Transport).unwrap();
//! assert_eq!(headers.link.tag.map(|tag| tag.vid), Some(5));
//! assert!(matches!(headers.transport, Transport::Tcp(tcp) if tcp.dst == 443));
//!
//! let headers = Headers::parse(&frame, Depth::Link).unwrap();
//! assert_eq!(headers.network, Network::None);
//!
//! frame.truncate(40);
//! let result = Headers::parse(&frame, Depth::Network);
//! assert_eq!(result, Err(Malformed::Ipv4TotalLength));
//! ```

use crate::link::Link;
use crate::wire::arp::Arp;
use crate::wire::ethernet::EtherType;
use crate::wire::icmpv4::Icmpv4;
use crate::wire::icmpv6::Icmpv6;
use crate::wire::ipv4::Ipv4;
use crate::wire::ipv6::Ipv6;
use crate::wire::mpls::Mpls;
use crate::wire::nsh::Nsh;
use crate::wire::pbb::Pbb;
use crate::wire::sctp::Sctp;
use crate::wire::tcp::Tcp;
use crate::wire::udp::Udp;
use crate::wire::{Fragment, IpProto};
use crate::{Frame, Malformed};

/// Last layer that is parsed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// The Ethernet header and VLAN tags.
    #[default]
    Link,
    /// The network layer too: ARP, MPLS, PBB, NSH, IPv4, IPv6 with its extension headers.
    Network,
    /// And TCP, UDP, SCTP, ICMP, ICMPv6, neighbour discovery.
    Transport,
}

impl Depth {
    /// All depths, in order.
    pub const ALL: [Self; 3] = [Self::Link, Self::Network, Self::Transport];
}

/// Header after the link layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// Not parsed, or of an unknown type.
    None,
    /// The outermost entry of an MPLS stack.
    Mpls(Mpls),
    /// Outermost service instance tag; the customer frame after it is not parsed.
    Pbb(Pbb),
    /// Network service header; its payload is not parsed.
    Nsh(Nsh),
    /// ARP or RARP.
    Arp(Arp),
    /// IPv4.
    Ipv4(Ipv4),
    /// IPv6.
    Ipv6(Ipv6),
}

/// The header above IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Not parsed, absent (a later fragment), or of an unknown protocol.
    None,
    /// TCP.
    Tcp(Tcp),
    /// UDP.
    Udp(Udp),
    /// SCTP.
    Sctp(Sctp),
    /// ICMP, in IPv4.
    Icmpv4(Icmpv4),
    /// ICMPv6, in IPv6.
    Icmpv6(Icmpv6),
}

/// Ports of the first fragment of a packet in a lookup, with type and code of ICMP
/// (`ovs-ofctl(8)`, set-frags). Later fragments have none of their own; theirs are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FragmentPorts {
    /// Zero, as in later fragments.
    Hidden,
    /// Those of the fragment's transport header.
    Visible,
}

/// Location of the transport header, parsed or not. RFC 8200 calls it the upper-layer header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UpperLayer {
    pub(crate) protocol: IpProto,
    /// Offset of its first byte in the frame.
    pub(crate) at: usize,
    /// Offset of the packet's end in the frame; padding follows.
    pub(crate) end: usize,
}

/// Parsed headers of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    /// The link layer.
    pub link: Link,
    /// Network layer.
    pub network: Network,
    /// Transport layer.
    pub transport: Transport,
    /// Location of the transport header, for an IP packet that is no later fragment.
    pub(crate) upper: Option<UpperLayer>,
    pub(crate) depth: Depth,
}

impl Headers {
    /// Parses the headers of `frame` to `depth`.
    ///
    /// # Errors
    /// The first malformed header within that depth, or metadata that do not fit the frame.
    #[inline]
    pub fn parse(frame: &Frame, depth: Depth) -> Result<Self, Malformed> {
        let link = Link::parse(frame.bytes())?;
        frame.offload.validate(link.payload_at(), frame.len())?;
        let mut headers = Self {
            link,
            network: Network::None,
            transport: Transport::None,
            upper: None,
            depth,
        };
        headers.read_network(frame.bytes())?;
        Ok(headers)
    }

    /// Protocol above IP, or `None` if the frame is no IP packet or was not parsed so far.
    #[must_use]
    pub const fn ip_proto(&self) -> Option<IpProto> {
        match &self.network {
            Network::Ipv4(ip) => Some(ip.protocol),
            Network::Ipv6(ip) => Some(ip.protocol),
            Network::None
            | Network::Mpls(_)
            | Network::Pbb(_)
            | Network::Nsh(_)
            | Network::Arp(_) => None,
        }
    }

    /// Part of the IP packet in this frame, or `None` if it is no IP packet or was not parsed so
    /// far.
    #[must_use]
    pub const fn fragment(&self) -> Option<Fragment> {
        match &self.network {
            Network::Ipv4(ip) => Some(ip.fragment),
            Network::Ipv6(ip) => Some(ip.fragment),
            Network::None
            | Network::Mpls(_)
            | Network::Pbb(_)
            | Network::Nsh(_)
            | Network::Arp(_) => None,
        }
    }

    /// Offset of the network header from the start of the frame, in bytes.
    #[must_use]
    pub const fn network_at(&self) -> usize {
        self.link.payload_at()
    }

    /// Offset of the transport header, or `None` if there is none or it was not located.
    #[must_use]
    pub fn transport_at(&self) -> Option<usize> {
        self.upper.map(|upper| upper.at)
    }

    /// Offset of the end of the packet with that transport header; padding may follow.
    #[must_use]
    pub fn transport_end(&self) -> Option<usize> {
        self.upper.map(|upper| upper.end)
    }

    /// Returns the headers that a lookup of this frame reads, if they differ: those of a fragment,
    /// with ports, type and code of zero where they are hidden or missing.
    #[inline]
    #[must_use]
    pub fn for_lookup(&self, ports: FragmentPorts) -> Option<Self> {
        match self.fragment()? {
            Fragment::No => None,
            Fragment::First if ports == FragmentPorts::Visible => None,
            Fragment::First | Fragment::Later => self.without_ports(),
        }
    }

    /// Returns the headers of a fragment with a transport header of zeros, except for TCP flags.
    #[cold]
    fn without_ports(&self) -> Option<Self> {
        if self.depth != Depth::Transport {
            return None;
        }
        let flags = match self.transport {
            Transport::Tcp(tcp) => tcp.flags,
            _ => 0,
        };
        let transport = match (self.ip_proto()?, &self.network) {
            (IpProto::TCP, _) => Transport::Tcp(Tcp {
                flags,
                ..Tcp::default()
            }),
            (IpProto::UDP, _) => Transport::Udp(Udp::default()),
            (IpProto::SCTP, _) => Transport::Sctp(Sctp::default()),
            (IpProto::ICMPV4, Network::Ipv4(_)) => Transport::Icmpv4(Icmpv4 { kind: 0, code: 0 }),
            (IpProto::ICMPV6, Network::Ipv6(_)) => Transport::Icmpv6(Icmpv6 {
                kind: 0,
                code: 0,
                nd: None,
            }),
            _ => Transport::None,
        };
        Some(Self { transport, ..*self })
    }

    /// Parses the layers after the link layer.
    pub(crate) fn read_network(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        self.network = Network::None;
        self.transport = Transport::None;
        self.upper = None;
        if self.depth == Depth::Link {
            return Ok(());
        }
        let rest = &bytes[self.network_at()..];
        match self.link.eth_type {
            EtherType::IPV4 => {
                let ip = Ipv4::parse(rest)?;
                let (header, total) = (usize::from(ip.header_len), usize::from(ip.total_len));
                self.network = Network::Ipv4(ip);
                self.find_upper(ip.protocol, ip.fragment, header, total);
            }
            EtherType::IPV6 => {
                let ip = Ipv6::parse(rest)?;
                self.network = Network::Ipv6(ip);
                self.find_upper(
                    ip.protocol,
                    ip.fragment,
                    usize::from(ip.header_len),
                    ip.total_len,
                );
            }
            EtherType::ARP | EtherType::RARP => self.network = Network::Arp(Arp::parse(rest)?),
            EtherType::MPLS | EtherType::MPLS_MULTICAST => {
                self.network = Network::Mpls(Mpls::parse(rest)?);
            }
            EtherType::NSH => self.network = Network::Nsh(Nsh::parse(rest)?),
            EtherType::PBB => self.network = Network::Pbb(Pbb::parse(rest)?),
            _ => {}
        }
        self.read_transport(bytes)
    }

    fn find_upper(&mut self, protocol: IpProto, fragment: Fragment, header: usize, total: usize) {
        let at = self.network_at();
        self.upper = (fragment != Fragment::Later).then_some(UpperLayer {
            protocol,
            at: at + header,
            end: at + total,
        });
    }

    /// Parses the transport header, if present.
    pub(crate) fn read_transport(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        self.transport = Transport::None;
        let Some(upper) = self.upper.filter(|_| self.depth == Depth::Transport) else {
            return Ok(());
        };
        let rest = &bytes[upper.at..upper.end];
        self.transport = match (upper.protocol, &self.network) {
            (IpProto::TCP, _) => Transport::Tcp(Tcp::parse(rest)?),
            (IpProto::UDP, _) => Transport::Udp(Udp::parse(rest)?),
            (IpProto::SCTP, _) => Transport::Sctp(Sctp::parse(rest)?),
            (IpProto::ICMPV4, Network::Ipv4(_)) => Transport::Icmpv4(Icmpv4::parse(rest)?),
            (IpProto::ICMPV6, Network::Ipv6(_)) => Transport::Icmpv6(Icmpv6::parse(rest)?),
            _ => Transport::None,
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::build::Stack;

    use super::*;

    fn ports(text: &str, ports: FragmentPorts) -> Option<Transport> {
        let frame = text.parse::<Stack>().expect("a stack").build();
        let headers = Headers::parse(&frame, Depth::Transport).expect("well formed");
        headers.for_lookup(ports).map(|headers| headers.transport)
    }

    #[test]
    fn lookup_headers_have_no_ports_of_fragments() {
        use FragmentPorts::{Hidden, Visible};
        let tcp = |flags| {
            Transport::Tcp(Tcp {
                flags,
                ..Tcp::default()
            })
        };
        assert_eq!(ports("eth / ipv4 / tcp", Hidden), None);
        assert_eq!(ports("eth / arp", Hidden), None);
        let first = "eth / ipv4(mf) / tcp(flags=S) / data(4)";
        assert_eq!(ports(first, Hidden), Some(tcp(2)));
        assert_eq!(ports(first, Visible), None);
        let later = "eth / ipv4(offset=1,proto=6) / data(8)";
        assert_eq!(ports(later, Visible), Some(tcp(0)));
        let udp = "eth / ipv6 / fragment(more) / udp / data(8)";
        assert_eq!(ports(udp, Hidden), Some(Transport::Udp(Udp::default())));
    }
}
