//! What is read of a frame, to the depth that is asked for, and where it stands.
//!
//! A header is judged only if the depth reaches it: a frame with a damaged TCP
//! header is well formed to a bridge. What is not there, or not asked for, is
//! `None`; below MPLS nothing is read, since nothing says what it is.

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

/// How deep a frame is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// The Ethernet header and VLAN tags.
    #[default]
    Link,
    /// And ARP, MPLS, PBB, NSH, IPv4, IPv6 with its extension headers.
    Network,
    /// And TCP, UDP, SCTP, ICMP, ICMPv6, neighbour discovery.
    Transport,
}

impl Depth {
    /// All depths, in order.
    pub const ALL: [Self; 3] = [Self::Link, Self::Network, Self::Transport];
}

/// The header behind the link layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// Not read, or of a type that nothing is known about.
    None,
    /// The outermost entry of an MPLS stack.
    Mpls(Mpls),
    /// The outermost service instance tag; the customer's frame behind it is not read.
    Pbb(Pbb),
    /// A network service header; what follows it is not read.
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
    /// Not read, not there (a later fragment), or nothing is known about it.
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

/// Where the transport header is, whether it was read or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UpperLayer {
    pub(crate) protocol: IpProto,
    /// Its first byte, in the frame.
    pub(crate) at: usize,
    /// The end of the packet, in the frame; padding follows.
    pub(crate) end: usize,
}

/// What was read of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    /// The link layer.
    pub link: Link,
    /// What is behind it.
    pub network: Network,
    /// What is above that.
    pub transport: Transport,
    /// Of an IP packet or its first fragment.
    pub(crate) upper: Option<UpperLayer>,
    pub(crate) depth: Depth,
}

impl Headers {
    /// Reads `frame` to `depth`.
    ///
    /// # Errors
    /// The first header within that depth that is damaged, or metadata that
    /// cannot be true of the frame.
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

    /// The protocol above IP; none if this is no IP packet, or was not read.
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

    /// Which part of an IP packet this is; none if it is no IP packet, or was not read.
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

    /// Where the header behind the link layer begins, in bytes from the frame's first.
    #[must_use]
    pub const fn network_at(&self) -> usize {
        self.link.payload_at()
    }

    /// Where the header above IP begins; none if there is none, or it was not looked for.
    #[must_use]
    pub fn transport_at(&self) -> Option<usize> {
        self.upper.map(|upper| upper.at)
    }

    /// Where the packet ends, whose header above IP that is; padding may follow.
    #[must_use]
    pub fn transport_end(&self) -> Option<usize> {
        self.upper.map(|upper| upper.end)
    }

    /// Reads everything behind the link layer.
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

    /// Reads the header above IP, if there is one.
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
