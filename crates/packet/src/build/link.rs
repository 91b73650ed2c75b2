//! Ethernet, LLC, VLAN tags, MPLS entries, service instance tags, network service
//! headers, ARP.

use std::net::Ipv4Addr;

use super::layer::{Layer, LayerFields};
use super::text::{FieldVisitor, HexBytes};
use super::{LayerContext, saturate_u16};
use crate::MacAddr;
use crate::wire::arp::ArpAddresses;
use crate::wire::ethernet::{self, EtherType, Ethernet};
use crate::wire::vlan::VlanTag;
use crate::wire::{arp, mpls, nsh, pbb};

/// Destination address of test frames.
pub(super) const DST: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
/// Source address of test frames.
pub(super) const SRC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);

/// An Ethernet header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Eth {
    /// Destination address.
    pub dst: MacAddr,
    /// Source address.
    pub src: MacAddr,
    /// EtherType; by default that of the next layer, or the length before LLC.
    pub eth_type: Option<EtherType>,
}

/// A VLAN tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vlan {
    /// Tag protocol identifier.
    pub tpid: EtherType,
    /// The VLAN.
    pub vid: u16,
    /// The priority.
    pub pcp: u8,
    /// Drop eligible indicator.
    pub dei: bool,
    /// EtherType after the tag; by default that of the next layer.
    pub eth_type: Option<EtherType>,
}

/// LLC with SNAP.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snap {
    /// The type; by default that of the next layer.
    pub eth_type: Option<EtherType>,
}

/// LLC without SNAP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Llc {
    /// The destination's access point.
    pub dsap: u8,
    /// The source's access point.
    pub ssap: u8,
    /// The control byte.
    pub control: u8,
}

/// An MPLS entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mpls {
    /// The label.
    pub label: u32,
    /// The traffic class.
    pub tc: u8,
    /// Bottom of stack; by default true if no other entry follows.
    pub bos: Option<bool>,
    /// Time to live.
    pub ttl: u8,
}

/// Service instance tag; an Ethernet layer must follow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pbb {
    /// The service instance.
    pub isid: u32,
    /// The priority.
    pub pcp: u8,
    /// Drop eligible indicator.
    pub dei: bool,
    /// Use customer address.
    pub uca: bool,
}

/// A network service header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nsh {
    /// The service path.
    pub spi: u32,
    /// Service index.
    pub si: u8,
    /// Time to live.
    pub ttl: u8,
    /// The two flags.
    pub flags: u8,
    /// The type of the metadata.
    pub mdtype: u8,
    /// Next protocol number; by default that of the next layer, or zero.
    pub np: Option<u8>,
    /// The metadata: sixteen bytes of type 1.
    pub md: HexBytes,
}

/// ARP message for IPv4 over Ethernet; for RARP the Ethernet header has another type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arp {
    /// The operation.
    pub op: u16,
    /// The sender's hardware address.
    pub sha: MacAddr,
    /// The sender's protocol address.
    pub spa: Ipv4Addr,
    /// The target's hardware address.
    pub tha: MacAddr,
    /// The target's protocol address.
    pub tpa: Ipv4Addr,
}

impl Default for Eth {
    fn default() -> Self {
        Self {
            dst: DST,
            src: SRC,
            eth_type: None,
        }
    }
}

impl Default for Vlan {
    fn default() -> Self {
        Self {
            tpid: EtherType::VLAN,
            vid: 1,
            pcp: 0,
            dei: false,
            eth_type: None,
        }
    }
}

impl Default for Llc {
    /// LLC header of a spanning tree BPDU.
    fn default() -> Self {
        Self {
            dsap: 0x42,
            ssap: 0x42,
            control: 3,
        }
    }
}

impl Default for Mpls {
    fn default() -> Self {
        Self {
            label: 16,
            tc: 0,
            bos: None,
            ttl: 64,
        }
    }
}

impl Default for Nsh {
    /// Header with metadata type 1 and zero context.
    fn default() -> Self {
        Self {
            spi: 1,
            si: nsh::INDEX_DEFAULT,
            ttl: nsh::TTL_DEFAULT,
            flags: 0,
            mdtype: nsh::MD_TYPE1,
            np: None,
            md: HexBytes(vec![0; nsh::LEN_MD1 - nsh::BASE_LEN]),
        }
    }
}

impl Default for Arp {
    /// A request.
    fn default() -> Self {
        Self {
            op: 1,
            sha: SRC,
            spa: Ipv4Addr::new(10, 0, 0, 1),
            tha: MacAddr::default(),
            tpa: Ipv4Addr::new(10, 0, 0, 2),
        }
    }
}

/// Returns the EtherType of the next layer, or the length before LLC.
fn next_type(given: Option<EtherType>, context: &LayerContext<'_>) -> u16 {
    match (given, context.inner) {
        (Some(EtherType(number)), _) => number,
        (None, Some(Layer::Snap(_) | Layer::Llc(_))) => saturate_u16(context.payload.len()),
        (None, Some(layer)) => layer.ether_type().0,
        (None, None) => 0x88b5,
    }
}

impl LayerFields for Eth {
    fn fields(&mut self, visit: &mut FieldVisitor<'_>) {
        visit("dst", &mut self.dst);
        visit("src", &mut self.src);
        visit("type", &mut self.eth_type);
    }

    fn emit(&self, context: &LayerContext<'_>) -> Vec<u8> {
        let header = Ethernet {
            dst: self.dst,
            src: self.src,
        };
        header.emit(next_type(self.eth_type, context)).to_vec()
    }
}

impl LayerFields for Vlan {
    fn fields(&mut self, visit: &mut FieldVisitor<'_>) {
        visit("tpid", &mut self.tpid);
        visit("vid", &mut self.vid);
        visit("pcp", &mut self.pcp);
        visit("dei", &mut self.dei);
        visit("type", &mut self.eth_type);
    }

    fn emit(&self, context: &LayerContext<'_>) -> Vec<u8> {
        let tag = VlanTag {
            tpid: self.tpid.0,
            pcp: self.pcp,
            dei: self.dei,
            vid: self.vid,
        };
        // The previous layer has written the tag's own type.
        let inner_type = next_type(self.eth_type, context).to_be_bytes();
        [&tag.emit()[2..], &inner_type].concat()
    }
}

impl LayerFields for Snap {
    fn fields(&mut self, visit: &mut FieldVisitor<'_>) {
        visit("type", &mut self.eth_type);
    }

    fn emit(&self, context: &LayerContext<'_>) -> Vec<u8> {
        ethernet::emit_snap(next_type(self.eth_type, context)).to_vec()
    }
}

impl LayerFields for Llc {
    fn fields(&mut self, visit: &mut FieldVisitor<'_>) {
        visit("dsap", &mut self.dsap);
        visit("ssap", &mut self.ssap);
        visit("control", &mut self.control);
    }

    fn emit(&self, _: &LayerContext<'_>) -> Vec<u8> {
        vec![self.dsap, self.ssap, self.control]
    }
}

impl LayerFields for Mpls {
    fn fields(&mut self, visit: &mut FieldVisitor<'_>) {
        visit("label", &mut self.label);
        visit("tc", &mut self.tc);
        visit("bos", &mut self.bos);
        visit("ttl", &mut self.ttl);
    }

    fn emit(&self, context: &LayerContext<'_>) -> Vec<u8> {
        let another = matches!(context.inner, Some(Layer::Mpls(_)));
        let entry = mpls::Mpls {
            label: self.label,
            tc: self.tc,
            bottom: self.bos.unwrap_or(!another),
            ttl: self.ttl,
        };
        entry.emit().to_vec()
    }
}

impl LayerFields for Pbb {
    fn fields(&mut self, visit: &mut FieldVisitor<'_>) {
        visit("isid", &mut self.isid);
        visit("pcp", &mut self.pcp);
        visit("dei", &mut self.dei);
        visit("uca", &mut self.uca);
    }

    fn emit(&self, _: &LayerContext<'_>) -> Vec<u8> {
        let tag = pbb::Pbb {
            pcp: self.pcp,
            dei: self.dei,
            uca: self.uca,
            isid: self.isid,
        };
        tag.emit().to_vec()
    }
}

impl LayerFields for Nsh {
    fn fields(&mut self, visit: &mut FieldVisitor<'_>) {
        visit("spi", &mut self.spi);
        visit("si", &mut self.si);
        visit("ttl", &mut self.ttl);
        visit("flags", &mut self.flags);
        visit("mdtype", &mut self.mdtype);
        visit("np", &mut self.np);
        visit("md", &mut self.md);
    }

    fn emit(&self, context: &LayerContext<'_>) -> Vec<u8> {
        let next = match context.inner {
            Some(Layer::Ipv4(_)) => nsh::next::IPV4,
            Some(Layer::Ipv6(_)) => nsh::next::IPV6,
            Some(Layer::Eth(_)) => nsh::next::ETHERNET,
            Some(Layer::Nsh(_)) => nsh::next::NSH,
            _ => 0,
        };
        let header = nsh::Nsh {
            flags: self.flags,
            ttl: self.ttl,
            len: u8::try_from(nsh::BASE_LEN + self.md.0.len()).unwrap_or(u8::MAX),
            md_type: self.mdtype,
            next: self.np.unwrap_or(next),
            path: self.spi,
            index: self.si,
            context: [0; 4],
        };
        [&header.emit()[..], &self.md.0].concat()
    }
}

impl LayerFields for Arp {
    fn fields(&mut self, visit: &mut FieldVisitor<'_>) {
        visit("op", &mut self.op);
        visit("sha", &mut self.sha);
        visit("spa", &mut self.spa);
        visit("tha", &mut self.tha);
        visit("tpa", &mut self.tpa);
    }

    fn emit(&self, _: &LayerContext<'_>) -> Vec<u8> {
        let addresses = ArpAddresses {
            sha: self.sha,
            spa: self.spa,
            tha: self.tha,
            tpa: self.tpa,
        };
        let packet: [u8; arp::LEN] = addresses.emit(self.op);
        packet.to_vec()
    }
}
