//! What frames look like: sizes, protocols, encapsulations, addresses, and how many flows they belong to.
//!
//! A [`Template`] is a description. A pattern is what is made of it once, so that each frame costs
//! little more than a copy of what changes: the flow's fields, the signature, the checksum.

mod build;
mod flows;
mod mix;
mod numbered;
mod pattern;
mod reflected;
#[cfg(test)]
mod tests;

use std::net::{Ipv4Addr, Ipv6Addr};

pub use flows::{FlowField, FlowOrder, Flows};
pub use mix::Mix;
pub use numbered::{NUMBER, Numbered};
pub(super) use pattern::{Pattern, Stamp};
pub use reflected::Reflection;

/// The checksum at the end of a frame (FCS), which interfaces add and packet sockets never see. Sizes
/// of frames count it, as RFC 2544 does.
pub const FCS: u16 = 4;
/// The shortest frame of Ethernet, and the longest that is offered.
pub const FRAME_BYTES: std::ops::RangeInclusive<u16> = 64..=9_000;
/// The most flows.
pub const FLOWS_MAX: u32 = 1_000_000;

/// A frame to be sent many times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// Its size with its checksum.
    pub frame_bytes: u16,
    /// What it carries.
    pub protocol: Protocol,
    /// What stands before that.
    pub encapsulation: Encapsulation,
    /// Who sends it.
    pub source: Party,
    /// Whom it is for.
    pub destination: Party,
    /// Its class (RFC 2474), six bits.
    pub dscp: u8,
    /// How many routers it may pass.
    pub ttl: u8,
    /// Whether UDP over IPv4 has a checksum.
    pub udp_checksum: UdpChecksum,
    /// Which flows its frames belong to.
    pub flows: Flows,
}

/// The innermost protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// UDP over IPv4.
    Udp,
    /// UDP over IPv6.
    Udp6,
    /// TCP over IPv4: segments of a connection that nobody has.
    Tcp,
    /// ICMP over IPv4: echo requests.
    Icmp,
}

/// An address in each layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Party {
    /// Of Ethernet.
    pub mac: [u8; 6],
    /// Of IPv4.
    pub ipv4: Ipv4Addr,
    /// Of IPv6.
    pub ipv6: Ipv6Addr,
    /// Of UDP or TCP.
    pub port: u16,
}

/// What stands before the packet, or around its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encapsulation {
    /// Nothing.
    Plain,
    /// A tag of IEEE 802.1Q.
    Vlan(Tag),
    /// Two tags, the outer one of IEEE 802.1ad.
    QinQ {
        /// Of the service's provider.
        outer: Tag,
        /// Of the customer.
        inner: Tag,
    },
    /// A label (RFC 3032), the last of its stack.
    Mpls(Label),
    /// The whole frame in UDP (RFC 7348).
    Vxlan(Tunnel),
    /// The whole frame in GRE (RFC 2784).
    Gre(Tunnel),
    /// The whole frame in UDP (RFC 8926), without options.
    Geneve(Tunnel),
}

/// A VLAN tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// Twelve bits: which network.
    pub vid: u16,
    /// Three bits: how urgent.
    pub pcp: u8,
}

/// An MPLS label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// Twenty bits.
    pub value: u32,
    /// Three bits: how urgent.
    pub class: u8,
    /// How many routers it may pass.
    pub ttl: u8,
}

/// The ends of a tunnel; their ports are the tunnel's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunnel {
    /// Who sends.
    pub source: Party,
    /// Who receives.
    pub destination: Party,
    /// 24 bits: which network. GRE has no place for it.
    pub vni: u32,
}

/// Whether there is a checksum where the protocol may do without (RFC 768).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UdpChecksum {
    /// There is, as nearly everywhere.
    Computed,
    /// The field is zero. IPv4 only.
    Absent,
}

/// Why there can be no such frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadTemplate {
    /// Headers and the signature need more, or nobody takes as much.
    #[error("such a frame has {least} to {most} bytes with its checksum, not {asked}")]
    Size {
        /// What was asked for.
        asked: u16,
        /// The smallest possible.
        least: u16,
        /// The largest possible.
        most: u16,
    },
    /// A number does not fit into its field.
    #[error("{field} is {limit} at most, not {asked}")]
    TooLarge {
        /// Which one.
        field: &'static str,
        /// What was asked for.
        asked: u32,
        /// The most.
        limit: u32,
    },
    /// A flow more than nothing must differ in something.
    #[error("{count} flows must differ in one field at least")]
    NoField {
        /// How many flows were asked for.
        count: u32,
    },
    /// The fields that flows are to differ in have too few values.
    #[error("{count} flows want {bits} bits of each field, and {field:?} has {room}")]
    TooManyFlows {
        /// How many flows were asked for.
        count: u32,
        /// Bits that fall to a field.
        bits: u32,
        /// The field that has fewer.
        field: FlowField,
        /// What it has.
        room: u32,
    },
    /// ICMP has no ports.
    #[error("flows of ICMP cannot differ in {0:?}")]
    NoPorts(FlowField),
    /// UDP over IPv6 must have a checksum (RFC 8200, section 8.1).
    #[error("UDP over IPv6 cannot do without its checksum")]
    NoChecksum,
    /// A mix of nothing.
    #[error("a mix has one template at least, and none of them no frames")]
    EmptyMix,
}

impl Template {
    /// A frame of UDP over IPv4, of this size, of one flow, between stations that belong to nobody.
    #[must_use]
    pub fn udp(frame_bytes: u16) -> Self {
        Self {
            frame_bytes,
            protocol: Protocol::Udp,
            encapsulation: Encapsulation::Plain,
            source: Party::numbered(1),
            destination: Party::numbered(2),
            dscp: 0,
            ttl: 64,
            udp_checksum: UdpChecksum::Computed,
            flows: Flows::ONE,
        }
    }

    /// The smallest frame of this kind, with its checksum.
    #[must_use]
    pub fn least_bytes(&self) -> u16 {
        let payload = super::Signature::LEN;
        let bytes = build::headers_length(self) + payload + usize::from(FCS);
        let bytes = u16::try_from(bytes).expect("headers are short");
        bytes.max(*FRAME_BYTES.start())
    }

    /// Looks whether there can be such a frame, and makes what it takes to send many.
    pub(super) fn pattern(&self) -> Result<Pattern, BadTemplate> {
        self.check()?;
        Ok(Pattern::new(self))
    }

    /// Its bytes without its checksum (FCS) and without a signature, its payload filled. That of UDP, TCP or
    /// ICMP is zero: for UDP over IPv4, "none" (RFC 768).
    pub fn unsummed(&self) -> Vec<u8> {
        let (bytes, _) = build::frame(self);
        bytes
    }

    /// Whether there can be such a frame.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self) -> Result<(), BadTemplate> {
        let (least, most) = (self.least_bytes(), *FRAME_BYTES.end());
        if !(least..=most).contains(&self.frame_bytes) {
            return Err(BadTemplate::Size {
                asked: self.frame_bytes,
                least,
                most,
            });
        }
        if self.protocol == Protocol::Udp6 && self.udp_checksum == UdpChecksum::Absent {
            return Err(BadTemplate::NoChecksum);
        }
        fits("a DSCP", u32::from(self.dscp), 0x3f)?;
        self.encapsulation.check()?;
        self.flows.check(self.protocol)
    }
}

impl Party {
    /// A station by its number: of a locally administered address, of the network for benchmarks
    /// (198.18.0.0/15 of RFC 2544, 2001:2::/48 of RFC 5180), and of a port that nothing else has.
    #[must_use]
    pub const fn numbered(number: u8) -> Self {
        Self {
            mac: [0x02, 0, 0, 0, 1, number],
            ipv4: Ipv4Addr::new(198, 18, 0, number),
            ipv6: Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, number as u16),
            port: 0xc000 + number as u16,
        }
    }
}

impl Encapsulation {
    fn check(self) -> Result<(), BadTemplate> {
        match self {
            Self::Plain | Self::Gre(_) => Ok(()),
            Self::Vlan(tag) => tag.check(),
            Self::QinQ { outer, inner } => outer.check().and_then(|()| inner.check()),
            Self::Mpls(label) => {
                fits("a label", label.value, 0xf_ffff)?;
                fits("a label's class", u32::from(label.class), 7)
            }
            Self::Vxlan(tunnel) | Self::Geneve(tunnel) => fits("a VNI", tunnel.vni, 0xff_ffff),
        }
    }
}

impl Tag {
    fn check(self) -> Result<(), BadTemplate> {
        fits("a VLAN", u32::from(self.vid), 0xfff)?;
        fits("a VLAN's priority", u32::from(self.pcp), 7)
    }
}

fn fits(field: &'static str, asked: u32, limit: u32) -> Result<(), BadTemplate> {
    match asked <= limit {
        true => Ok(()),
        false => Err(BadTemplate::TooLarge {
            field,
            asked,
            limit,
        }),
    }
}
