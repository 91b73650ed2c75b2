//! IPv4, IPv6 and its extension headers.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::layer::{Layer, LayerFields};
use super::text::{FieldVisitor, HexBytes};
use super::{LayerContext, saturate_u16};
use crate::checksum::InternetSum;
use crate::wire::ipv6::Extensions;
use crate::wire::{Fragment, IpProto, ipv4, ipv6};

/// An IPv4 header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ipv4 {
    /// Source address.
    pub src: Ipv4Addr,
    /// Destination address.
    pub dst: Ipv4Addr,
    /// DSCP and ECN.
    pub tos: u8,
    /// Time to live.
    pub ttl: u8,
    /// Identification.
    pub id: u16,
    /// Not to be fragmented.
    pub df: bool,
    /// More fragments follow.
    pub mf: bool,
    /// Fragment offset, in units of eight bytes.
    pub offset: u16,
    /// The protocol; by default that of the next layer.
    pub proto: Option<u8>,
    /// Options, a multiple of four bytes.
    pub options: HexBytes,
    /// Length of the header in units of four bytes; by default the correct one.
    pub ihl: Option<u8>,
    /// The total length; by default the right one.
    pub length: Option<u16>,
    /// The header's checksum; by default the right one.
    pub checksum: Option<u16>,
}

/// An IPv6 header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ipv6 {
    /// Source address.
    pub src: Ipv6Addr,
    /// Destination address.
    pub dst: Ipv6Addr,
    /// DSCP and ECN.
    pub tclass: u8,
    /// Flow label.
    pub flabel: u32,
    /// Hop limit.
    pub hlim: u8,
    /// The next header's number; by default that of the next layer.
    pub next: Option<u8>,
    /// The payload length; by default the right one.
    pub length: Option<u16>,
}

/// Hop-by-hop options: padding of eight bytes in all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HopByHop {
    /// The next header's number; by default that of the next layer.
    pub next: Option<u8>,
}

/// Destination options: padding of eight bytes in all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DestinationOptions {
    /// The next header's number; by default that of the next layer.
    pub next: Option<u8>,
}

/// A routing header with one address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutingHeader {
    /// Segments left; with one, `to` is the final destination.
    pub segments_left: u8,
    /// The address.
    pub to: Ipv6Addr,
    /// The next header's number; by default that of the next layer.
    pub next: Option<u8>,
}

/// A fragment header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FragmentHeader {
    /// Fragment offset, in units of eight bytes.
    pub offset: u16,
    /// More fragments follow.
    pub more: bool,
    /// Identification.
    pub id: u32,
    /// The next header's number; by default that of the next layer.
    pub next: Option<u8>,
}

/// Authentication header of 24 bytes with a zero check value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ah {
    /// The security association.
    pub spi: u32,
    /// The next header's number; by default that of the next layer.
    pub next: Option<u8>,
}

impl Default for Ipv4 {
    fn default() -> Self {
        Self {
            src: Ipv4Addr::new(10, 0, 0, 1),
            dst: Ipv4Addr::new(10, 0, 0, 2),
            tos: 0,
            ttl: 64,
            id: 0,
            df: false,
            mf: false,
            offset: 0,
            proto: None,
            options: HexBytes::default(),
            ihl: None,
            length: None,
            checksum: None,
        }
    }
}

impl Default for Ipv6 {
    fn default() -> Self {
        Self {
            src: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1),
            dst: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2),
            tclass: 0,
            flabel: 0,
            hlim: 64,
            next: None,
            length: None,
        }
    }
}

impl Default for RoutingHeader {
    fn default() -> Self {
        Self {
            segments_left: 0,
            to: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 3),
            next: None,
        }
    }
}

/// Returns the sum of the pseudo-header for `len` bytes of `protocol` in these layers, or `None`
/// without IP.
pub(super) fn pseudo(outer: &[Layer], protocol: IpProto, len: usize) -> Option<InternetSum> {
    let mut routed_to = None;
    for layer in outer.iter().rev() {
        match layer {
            Layer::Routing(routing) if routing.segments_left > 0 => routed_to = Some(routing.to),
            Layer::Ipv4(ip) => return Some(InternetSum::pseudo_v4(ip.src, ip.dst, protocol, len)),
            Layer::Ipv6(ip) => {
                let dst = routed_to.unwrap_or(ip.dst);
                return Some(InternetSum::pseudo_v6(ip.src, dst, protocol, len));
            }
            _ => {}
        }
    }
    None
}

/// Returns the protocol number of the next layer, unless it is given.
fn next_protocol(given: Option<u8>, context: &LayerContext<'_>) -> IpProto {
    match (given, context.inner) {
        (Some(number), _) => IpProto(number),
        (None, Some(layer)) => layer.protocol(),
        (None, None) => IpProto::NO_NEXT,
    }
}

impl LayerFields for Ipv4 {
    fn fields(&mut self, visit: &mut FieldVisitor<'_>) {
        visit("src", &mut self.src);
        visit("dst", &mut self.dst);
        visit("tos", &mut self.tos);
        visit("ttl", &mut self.ttl);
        visit("id", &mut self.id);
        visit("df", &mut self.df);
        visit("mf", &mut self.mf);
        visit("offset", &mut self.offset);
        visit("proto", &mut self.proto);
        visit("options", &mut self.options);
        visit("ihl", &mut self.ihl);
        visit("length", &mut self.length);
        visit("checksum", &mut self.checksum);
    }

    fn emit(&self, context: &LayerContext<'_>) -> Vec<u8> {
        let header_len = ipv4::LEN_MIN + self.options.0.len();
        let words = self.ihl.map_or(header_len, |words| usize::from(words) * 4);
        let fixed = ipv4::Ipv4 {
            src: self.src,
            dst: self.dst,
            protocol: next_protocol(self.proto, context),
            tos: self.tos,
            ttl: self.ttl,
            fragment: Fragment::No,
            header_len: u8::try_from(words).unwrap_or(u8::MAX),
            total_len: self
                .length
                .unwrap_or_else(|| saturate_u16(header_len + context.payload.len())),
        };
        let mut bits = self.offset & ipv4::OFFSET_MASK;
        if self.df {
            bits |= ipv4::DONT_FRAGMENT;
        }
        if self.mf {
            bits |= ipv4::MORE_FRAGMENTS;
        }
        let mut header = [&fixed.emit()[..], &self.options.0].concat();
        header[ipv4::ID..][..2].copy_from_slice(&self.id.to_be_bytes());
        header[ipv4::FRAGMENT..][..2].copy_from_slice(&bits.to_be_bytes());
        let checksum = self
            .checksum
            .unwrap_or_else(|| InternetSum::of(&header).checksum());
        header[ipv4::CHECKSUM..][..2].copy_from_slice(&checksum.to_be_bytes());
        header
    }
}

impl LayerFields for Ipv6 {
    fn fields(&mut self, visit: &mut FieldVisitor<'_>) {
        visit("src", &mut self.src);
        visit("dst", &mut self.dst);
        visit("tclass", &mut self.tclass);
        visit("flabel", &mut self.flabel);
        visit("hlim", &mut self.hlim);
        visit("next", &mut self.next);
        visit("length", &mut self.length);
    }

    fn emit(&self, context: &LayerContext<'_>) -> Vec<u8> {
        let payload_len = self.length.map_or(context.payload.len(), usize::from);
        let next = next_protocol(self.next, context);
        let header = ipv6::Ipv6 {
            src: self.src,
            dst: self.dst,
            protocol: next,
            traffic_class: self.tclass,
            flow_label: self.flabel,
            hop_limit: self.hlim,
            fragment: Fragment::No,
            extensions: Extensions::default(),
            routed: false,
            protocol_at: saturate_u16(ipv6::NEXT),
            header_len: saturate_u16(ipv6::LEN),
            total_len: ipv6::LEN + payload_len,
        };
        header.emit(next).to_vec()
    }
}

/// Options of an option header: six bytes of padding.
const PAD_N: [u8; 6] = [1, 4, 0, 0, 0, 0];

impl LayerFields for HopByHop {
    fn fields(&mut self, visit: &mut FieldVisitor<'_>) {
        visit("next", &mut self.next);
    }

    fn emit(&self, context: &LayerContext<'_>) -> Vec<u8> {
        [&[next_protocol(self.next, context).0, 0], &PAD_N[..]].concat()
    }
}

impl LayerFields for DestinationOptions {
    fn fields(&mut self, visit: &mut FieldVisitor<'_>) {
        visit("next", &mut self.next);
    }

    fn emit(&self, context: &LayerContext<'_>) -> Vec<u8> {
        [&[next_protocol(self.next, context).0, 0], &PAD_N[..]].concat()
    }
}

impl LayerFields for RoutingHeader {
    fn fields(&mut self, visit: &mut FieldVisitor<'_>) {
        visit("left", &mut self.segments_left);
        visit("to", &mut self.to);
        visit("next", &mut self.next);
    }

    fn emit(&self, context: &LayerContext<'_>) -> Vec<u8> {
        let fixed = [
            next_protocol(self.next, context).0,
            2,
            2,
            self.segments_left,
            0,
            0,
            0,
            0,
        ];
        [&fixed[..], &self.to.octets()].concat()
    }
}

impl LayerFields for FragmentHeader {
    fn fields(&mut self, visit: &mut FieldVisitor<'_>) {
        visit("offset", &mut self.offset);
        visit("more", &mut self.more);
        visit("id", &mut self.id);
        visit("next", &mut self.next);
    }

    fn emit(&self, context: &LayerContext<'_>) -> Vec<u8> {
        let bits = self.offset << 3 | u16::from(self.more);
        [
            &[next_protocol(self.next, context).0, 0][..],
            &bits.to_be_bytes(),
            &self.id.to_be_bytes(),
        ]
        .concat()
    }
}

impl LayerFields for Ah {
    fn fields(&mut self, visit: &mut FieldVisitor<'_>) {
        visit("spi", &mut self.spi);
        visit("next", &mut self.next);
    }

    fn emit(&self, context: &LayerContext<'_>) -> Vec<u8> {
        [
            &[next_protocol(self.next, context).0, 4, 0, 0][..],
            &self.spi.to_be_bytes(),
            &[0; 16],
        ]
        .concat()
    }
}
