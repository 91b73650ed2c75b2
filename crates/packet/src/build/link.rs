//! Ethernet, LLC, VLAN tags, MPLS entries, service instance tags, ARP.

use std::net::Ipv4Addr;

use super::layer::{Layer, Part};
use super::text::Visit;
use super::{Around, short};
use crate::MacAddr;
use crate::wire::arp::Addresses;
use crate::wire::ethernet::{self, EtherType, Ethernet};
use crate::wire::vlan::Tag;
use crate::wire::{arp, mpls, pbb};

/// The station that test frames go to.
pub(super) const DST: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
/// The station that test frames come from.
pub(super) const SRC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);

/// An Ethernet header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Eth {
    /// To whom.
    pub dst: MacAddr,
    /// From whom.
    pub src: MacAddr,
    /// The type; by default that of the next layer, or the length before LLC.
    pub eth_type: Option<EtherType>,
}

/// A VLAN tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vlan {
    /// What announces the tag.
    pub tpid: EtherType,
    /// The VLAN.
    pub vid: u16,
    /// The priority.
    pub pcp: u8,
    /// May be dropped first.
    pub dei: bool,
    /// The type behind the tag; by default that of the next layer.
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
    /// Whether it is the bottom of the stack; by default, if no other follows.
    pub bos: Option<bool>,
    /// Time to live.
    pub ttl: u8,
}

/// A service instance tag; a layer of Ethernet is to follow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pbb {
    /// The service instance.
    pub isid: u32,
    /// The priority.
    pub pcp: u8,
    /// May be dropped first.
    pub dei: bool,
    /// Whether the customer's addresses are used as they are.
    pub uca: bool,
}

/// An ARP packet for IPv4 over Ethernet; in RARP the Ethernet header says so.
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
    /// That of a spanning tree's frame.
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

/// What stands before the layer inside: its type, or before LLC its length.
fn announced(given: Option<EtherType>, around: &Around<'_>) -> u16 {
    match (given, around.inner) {
        (Some(EtherType(number)), _) => number,
        (None, Some(Layer::Snap(_) | Layer::Llc(_))) => short(around.payload.len()),
        (None, Some(layer)) => layer.ether_type().0,
        (None, None) => 0x88b5,
    }
}

impl Part for Eth {
    fn fields(&mut self, visit: &mut Visit<'_>) {
        visit("dst", &mut self.dst);
        visit("src", &mut self.src);
        visit("type", &mut self.eth_type);
    }

    fn emit(&self, around: &Around<'_>) -> Vec<u8> {
        let header = Ethernet {
            dst: self.dst,
            src: self.src,
        };
        header.emit(announced(self.eth_type, around)).to_vec()
    }
}

impl Part for Vlan {
    fn fields(&mut self, visit: &mut Visit<'_>) {
        visit("tpid", &mut self.tpid);
        visit("vid", &mut self.vid);
        visit("pcp", &mut self.pcp);
        visit("dei", &mut self.dei);
        visit("type", &mut self.eth_type);
    }

    fn emit(&self, around: &Around<'_>) -> Vec<u8> {
        let tag = Tag {
            tpid: self.tpid.0,
            pcp: self.pcp,
            dei: self.dei,
            vid: self.vid,
        };
        // The tag's own type stands before this layer already.
        let inner_type = announced(self.eth_type, around).to_be_bytes();
        [&tag.emit()[2..], &inner_type].concat()
    }
}

impl Part for Snap {
    fn fields(&mut self, visit: &mut Visit<'_>) {
        visit("type", &mut self.eth_type);
    }

    fn emit(&self, around: &Around<'_>) -> Vec<u8> {
        ethernet::emit_snap(announced(self.eth_type, around)).to_vec()
    }
}

impl Part for Llc {
    fn fields(&mut self, visit: &mut Visit<'_>) {
        visit("dsap", &mut self.dsap);
        visit("ssap", &mut self.ssap);
        visit("control", &mut self.control);
    }

    fn emit(&self, _: &Around<'_>) -> Vec<u8> {
        vec![self.dsap, self.ssap, self.control]
    }
}

impl Part for Mpls {
    fn fields(&mut self, visit: &mut Visit<'_>) {
        visit("label", &mut self.label);
        visit("tc", &mut self.tc);
        visit("bos", &mut self.bos);
        visit("ttl", &mut self.ttl);
    }

    fn emit(&self, around: &Around<'_>) -> Vec<u8> {
        let another = matches!(around.inner, Some(Layer::Mpls(_)));
        let entry = mpls::Mpls {
            label: self.label,
            tc: self.tc,
            bottom: self.bos.unwrap_or(!another),
            ttl: self.ttl,
        };
        entry.emit().to_vec()
    }
}

impl Part for Pbb {
    fn fields(&mut self, visit: &mut Visit<'_>) {
        visit("isid", &mut self.isid);
        visit("pcp", &mut self.pcp);
        visit("dei", &mut self.dei);
        visit("uca", &mut self.uca);
    }

    fn emit(&self, _: &Around<'_>) -> Vec<u8> {
        let tag = pbb::Pbb {
            pcp: self.pcp,
            dei: self.dei,
            uca: self.uca,
            isid: self.isid,
        };
        tag.emit().to_vec()
    }
}

impl Part for Arp {
    fn fields(&mut self, visit: &mut Visit<'_>) {
        visit("op", &mut self.op);
        visit("sha", &mut self.sha);
        visit("spa", &mut self.spa);
        visit("tha", &mut self.tha);
        visit("tpa", &mut self.tpa);
    }

    fn emit(&self, _: &Around<'_>) -> Vec<u8> {
        let addresses = Addresses {
            sha: self.sha,
            spa: self.spa,
            tha: self.tha,
            tpa: self.tpa,
        };
        let packet: [u8; arp::LEN] = addresses.emit(self.op);
        packet.to_vec()
    }
}
