//! Templates: the size, protocol, encapsulation, addresses and flows of generated frames.
//!
//! A [`Template`] is a description. A pattern is prebuilt from it once, so that each frame costs
//! little more than a copy of the fields that change: the flow's fields, the signature, the
//! checksum.

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
pub use numbered::{NUMBER, NumberedFrame};
pub(super) use pattern::{FramePattern, FrameStamp};
pub use reflected::Reflection;

/// The length of the frame check sequence (FCS), which interfaces add and packet sockets never see.
/// Frame sizes include it, as in RFC 2544.
pub const FCS: u16 = 4;
/// The shortest Ethernet frame, and the longest supported one.
pub const FRAME_BYTES: std::ops::RangeInclusive<u16> = 64..=9_000;
/// The most flows of a template.
pub const FLOWS_MAX: u32 = 1_000_000;

/// A description of frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// The size with FCS.
    pub frame_bytes: u16,
    /// The innermost protocol.
    pub protocol: Protocol,
    /// The headers before or around it.
    pub encapsulation: Encapsulation,
    /// The source addresses.
    pub source: Party,
    /// The destination addresses.
    pub destination: Party,
    /// The differentiated services codepoint (RFC 2474), six bits.
    pub dscp: u8,
    /// The IPv4 time to live or IPv6 hop limit.
    pub ttl: u8,
    /// The UDP checksum over IPv4.
    pub udp_checksum: UdpChecksum,
    /// The flows of the frames.
    pub flows: Flows,
}

/// The innermost protocol of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// UDP over IPv4.
    Udp,
    /// UDP over IPv6.
    Udp6,
    /// TCP over IPv4: segments without an established connection.
    Tcp,
    /// ICMP over IPv4: echo requests.
    Icmp,
}

/// Addresses of each layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Party {
    /// The Ethernet address.
    pub mac: [u8; 6],
    /// The IPv4 address.
    pub ipv4: Ipv4Addr,
    /// The IPv6 address.
    pub ipv6: Ipv6Addr,
    /// The UDP or TCP port.
    pub port: u16,
}

/// The headers before the IP packet, or around the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encapsulation {
    /// Nothing.
    Plain,
    /// An IEEE 802.1Q tag.
    Vlan(Tag),
    /// Two tags, the outer one of IEEE 802.1ad.
    QinQ {
        /// The service tag.
        outer: Tag,
        /// The customer tag.
        inner: Tag,
    },
    /// One MPLS label (RFC 3032), at the bottom of the stack.
    Mpls(Label),
    /// VXLAN: the frame in UDP (RFC 7348).
    Vxlan(Tunnel),
    /// GRE: the frame in IPv4 (RFC 2784).
    Gre(Tunnel),
    /// Geneve: the frame in UDP (RFC 8926), without options.
    Geneve(Tunnel),
}

/// A VLAN tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// The VLAN identifier, 12 bits.
    pub vid: u16,
    /// The priority code point, three bits.
    pub pcp: u8,
}

/// An MPLS label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// The label, 20 bits.
    pub value: u32,
    /// The traffic class, three bits.
    pub class: u8,
    /// The time to live.
    pub ttl: u8,
}

/// The endpoints of a tunnel. The UDP ports are those of the tunnel protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunnel {
    /// The source endpoint.
    pub source: Party,
    /// The destination endpoint.
    pub destination: Party,
    /// The virtual network identifier, 24 bits. GRE does not carry it.
    pub vni: u32,
}

/// The presence of a UDP checksum, which is optional over IPv4 (RFC 768).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UdpChecksum {
    /// Present, the usual case.
    Computed,
    /// Absent: the field is zero. IPv4 only.
    Absent,
}

/// The reason why a template is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadTemplate {
    /// The size is smaller than headers and signature, or larger than the largest frame.
    #[error("frame size {requested} out of range: {least} to {most} bytes with FCS")]
    Size {
        /// The requested size.
        requested: u16,
        /// The smallest possible size.
        least: u16,
        /// The largest possible size.
        most: u16,
    },
    /// A number does not fit into its field.
    #[error("{field} must be at most {limit}, not {requested}")]
    TooLarge {
        /// The field.
        field: &'static str,
        /// The requested value.
        requested: u32,
        /// The largest value.
        limit: u32,
    },
    /// More than one flow needs a field that differs.
    #[error("{count} flows must differ in at least one field")]
    NoField {
        /// The requested number of flows.
        count: u32,
    },
    /// The fields that distinguish flows have too few values.
    #[error("{count} flows need {bits} bits of each field, and {field:?} has {room}")]
    TooManyFlows {
        /// The requested number of flows.
        count: u32,
        /// The bits needed of each field.
        bits: u32,
        /// The field with fewer bits.
        field: FlowField,
        /// The bits that it has.
        room: u32,
    },
    /// ICMP has no ports.
    #[error("ICMP flows cannot differ in {0:?}")]
    NoPorts(FlowField),
    /// UDP over IPv6 requires a checksum (RFC 8200, section 8.1).
    #[error("UDP over IPv6 requires a checksum")]
    NoChecksum,
    /// A mix is empty, or one of its templates has no frames.
    #[error("a mix needs at least one template, and at least one frame of each")]
    EmptyMix,
}

impl Template {
    /// A UDP/IPv4 frame of this size, of one flow, between unused stations.
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

    /// The smallest frame of this description, with FCS.
    #[must_use]
    pub fn least_bytes(&self) -> u16 {
        let payload = super::Signature::LEN;
        let bytes = build::headers_length(self) + payload + usize::from(FCS);
        let bytes = u16::try_from(bytes).expect("headers are short");
        bytes.max(*FRAME_BYTES.start())
    }

    /// Validates the template and prebuilds the pattern for transmission.
    pub(super) fn pattern(&self) -> Result<FramePattern, BadTemplate> {
        self.check()?;
        Ok(FramePattern::new(self))
    }

    /// The bytes without FCS and signature, with a filled payload. The checksum of UDP, TCP or ICMP
    /// is zero, which for UDP over IPv4 means "none" (RFC 768).
    pub fn without_checksum(&self) -> Vec<u8> {
        let (bytes, _) = build::frame(self);
        bytes
    }

    /// Validates the template.
    ///
    /// # Errors
    /// The reason why it is invalid.
    pub fn check(&self) -> Result<(), BadTemplate> {
        let (least, most) = (self.least_bytes(), *FRAME_BYTES.end());
        if !(least..=most).contains(&self.frame_bytes) {
            return Err(BadTemplate::Size {
                requested: self.frame_bytes,
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
    /// The addresses of a station, by number: a locally administered MAC address, addresses of the
    /// benchmarking networks (198.18.0.0/15 of RFC 2544, 2001:2::/48 of RFC 5180), and an otherwise
    /// unused port.
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

fn fits(field: &'static str, requested: u32, limit: u32) -> Result<(), BadTemplate> {
    match requested <= limit {
        true => Ok(()),
        false => Err(BadTemplate::TooLarge {
            field,
            requested,
            limit,
        }),
    }
}
