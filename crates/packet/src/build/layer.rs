//! Kinds of layers, and the values that each contributes to the layers around it.

use super::text::{FieldVisitor, HexBytes};
use super::transport::ChecksumFill;
use super::{
    Ah, Arp, DestinationOptions, Eth, FragmentHeader, HopByHop, Icmp, Icmpv6, Ipv4, Ipv6,
    LayerContext, Llc, Mpls, Nd, Nsh, Pbb, RoutingHeader, Sctp, Snap, Tcp, Udp, Vlan,
};
use crate::SegmentationKind;
use crate::wire::ethernet::EtherType;
use crate::wire::{IpProto, icmpv6, sctp, tcp, udp};

/// Layer of a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "each variant is a type of its own, with its own words"
)]
pub enum Layer {
    Eth(Eth),
    Vlan(Vlan),
    Snap(Snap),
    Llc(Llc),
    Mpls(Mpls),
    Pbb(Pbb),
    Nsh(Nsh),
    Arp(Arp),
    Ipv4(Ipv4),
    Ipv6(Ipv6),
    HopByHop(HopByHop),
    Destination(DestinationOptions),
    Routing(RoutingHeader),
    Fragment(FragmentHeader),
    Ah(Ah),
    Tcp(Tcp),
    Udp(Udp),
    Sctp(Sctp),
    Icmp(Icmp),
    Icmpv6(Icmpv6),
    Nd(Nd),
    Data(Data),
    Raw(RawBytes),
    Gso(Gso),
    Pad(Pad),
}

/// Bytes that count up from zero, so that a displaced byte is detected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Data {
    /// Number of bytes.
    pub len: usize,
}

/// Given bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawBytes {
    /// The bytes.
    pub bytes: HexBytes,
}

/// No bytes: the frame awaits segmentation. Its checksum must be partial.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gso {
    /// Payload bytes of each segment.
    pub size: u16,
}

/// Zero bytes at the end that no header counts, up to a given length of the frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pad {
    /// Bytes of the frame.
    pub len: usize,
}

/// Operations of every layer.
pub(super) trait LayerFields {
    /// Passes each field with its name to `visit`, to print or to set it.
    fn fields(&mut self, visit: &mut FieldVisitor<'_>);

    /// The bytes of this layer.
    fn emit(&self, context: &LayerContext<'_>) -> Vec<u8>;
}

macro_rules! layers {
    ($($variant:ident($type:ty) = $name:literal,)+) => {
        $(impl From<$type> for Layer {
            fn from(layer: $type) -> Self {
                Self::$variant(layer)
            }
        })+

        impl Layer {
            /// The layer's name in the text form.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $name,)+
                }
            }

            /// Returns the layer `name` with default fields.
            pub(super) fn named(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant(<$type>::default())),)+
                    _ => None,
                }
            }

            pub(super) fn fields(&mut self, visit: &mut FieldVisitor<'_>) {
                match self {
                    $(Self::$variant(layer) => layer.fields(visit),)+
                }
            }

            pub(super) fn emit(&self, context: &LayerContext<'_>) -> Vec<u8> {
                match self {
                    $(Self::$variant(layer) => layer.emit(context),)+
                }
            }
        }
    };
}

layers! {
    Eth(Eth) = "eth",
    Vlan(Vlan) = "vlan",
    Snap(Snap) = "snap",
    Llc(Llc) = "llc",
    Mpls(Mpls) = "mpls",
    Pbb(Pbb) = "pbb",
    Nsh(Nsh) = "nsh",
    Arp(Arp) = "arp",
    Ipv4(Ipv4) = "ipv4",
    Ipv6(Ipv6) = "ipv6",
    HopByHop(HopByHop) = "hop_by_hop",
    Destination(DestinationOptions) = "destination",
    Routing(RoutingHeader) = "routing",
    Fragment(FragmentHeader) = "fragment",
    Ah(Ah) = "ah",
    Tcp(Tcp) = "tcp",
    Udp(Udp) = "udp",
    Sctp(Sctp) = "sctp",
    Icmp(Icmp) = "icmp",
    Icmpv6(Icmpv6) = "icmpv6",
    Nd(Nd) = "nd",
    Data(Data) = "data",
    Raw(RawBytes) = "raw",
    Gso(Gso) = "gso",
    Pad(Pad) = "pad",
}

impl Layer {
    /// EtherType of this layer; for a layer without one, the first local experimental EtherType of
    /// IEEE 802.
    pub(super) const fn ether_type(&self) -> EtherType {
        match self {
            Self::Vlan(vlan) => vlan.tpid,
            Self::Mpls(_) => EtherType::MPLS,
            Self::Pbb(_) => EtherType::PBB,
            Self::Nsh(_) => EtherType::NSH,
            Self::Arp(_) => EtherType::ARP,
            Self::Ipv4(_) => EtherType::IPV4,
            Self::Ipv6(_) => EtherType::IPV6,
            _ => EtherType(0x88b5),
        }
    }

    /// IP protocol number of this layer; for a layer without one, the first experimental number
    /// (RFC 3692).
    pub(super) const fn protocol(&self) -> IpProto {
        match self {
            Self::Ipv4(_) => IpProto::IPV4,
            Self::Ipv6(_) => IpProto::IPV6,
            Self::HopByHop(_) => IpProto::HOP_BY_HOP,
            Self::Destination(_) => IpProto::DESTINATION,
            Self::Routing(_) => IpProto::ROUTING,
            Self::Fragment(_) => IpProto::FRAGMENT,
            Self::Ah(_) => IpProto::AH,
            Self::Tcp(_) => IpProto::TCP,
            Self::Udp(_) => IpProto::UDP,
            Self::Sctp(_) => IpProto::SCTP,
            Self::Icmp(_) => IpProto::ICMPV4,
            Self::Icmpv6(_) | Self::Nd(_) => IpProto::ICMPV6,
            _ => IpProto(253),
        }
    }

    /// Returns the offset of the checksum field in this layer if the checksum is to be partial.
    pub(super) fn partial(&self) -> Option<u16> {
        let (fill, offset) = match self {
            Self::Tcp(layer) => (layer.checksum, tcp::CHECKSUM),
            Self::Udp(layer) => (layer.checksum, udp::CHECKSUM),
            Self::Sctp(layer) => (layer.checksum, sctp::CHECKSUM),
            Self::Icmpv6(layer) => (layer.checksum, icmpv6::CHECKSUM),
            Self::Nd(layer) => (layer.checksum, icmpv6::CHECKSUM),
            _ => return None,
        };
        (fill == ChecksumFill::Partial).then_some(super::saturate_u16(offset))
    }

    /// Bytes of payload in this layer.
    pub(super) fn payload_len(&self) -> usize {
        match self {
            Self::Data(data) => data.len,
            Self::Raw(raw) => raw.bytes.0.len(),
            _ => 0,
        }
    }
}

/// Returns the segmentation kind of a frame of these layers.
pub(super) fn segmentation_kind(layers: &[Layer]) -> SegmentationKind {
    let over_v4 = layers.iter().any(|layer| matches!(layer, Layer::Ipv4(_)));
    let tcp = layers.iter().find_map(|layer| match layer {
        Layer::Tcp(tcp) => Some(tcp),
        _ => None,
    });
    match (tcp.map(|tcp| tcp.flags.0 & tcp::CWR != 0), over_v4) {
        (None, _) => SegmentationKind::Udp,
        (Some(false), true) => SegmentationKind::Tcp4,
        (Some(true), true) => SegmentationKind::Tcp4Ecn,
        (Some(false), false) => SegmentationKind::Tcp6,
        (Some(true), false) => SegmentationKind::Tcp6Ecn,
    }
}

impl LayerFields for Data {
    fn fields(&mut self, visit: &mut FieldVisitor<'_>) {
        visit("len", &mut self.len);
    }

    fn emit(&self, _: &LayerContext<'_>) -> Vec<u8> {
        (0..=u8::MAX).cycle().take(self.len).collect()
    }
}

impl LayerFields for RawBytes {
    fn fields(&mut self, visit: &mut FieldVisitor<'_>) {
        visit("bytes", &mut self.bytes);
    }

    fn emit(&self, _: &LayerContext<'_>) -> Vec<u8> {
        self.bytes.0.clone()
    }
}

impl LayerFields for Gso {
    fn fields(&mut self, visit: &mut FieldVisitor<'_>) {
        visit("size", &mut self.size);
    }

    fn emit(&self, _: &LayerContext<'_>) -> Vec<u8> {
        Vec::new()
    }
}

impl LayerFields for Pad {
    fn fields(&mut self, visit: &mut FieldVisitor<'_>) {
        visit("len", &mut self.len);
    }

    fn emit(&self, _: &LayerContext<'_>) -> Vec<u8> {
        Vec::new()
    }
}
