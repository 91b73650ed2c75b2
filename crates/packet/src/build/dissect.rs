//! Dissection of a frame into layers, so that a failed test can print the frame.
//!
//! Dissection never fails: bytes that no layer represents become [`RawBytes`], in the worst case
//! the whole frame. Building the layers again yields the same bytes.

use super::Stack;
use super::layer::{Data, Gso, Layer, Pad, RawBytes};
use super::link::{Arp, Eth, Llc, Mpls, Nsh, Pbb, Snap, Vlan};
use super::network::{Ah, DestinationOptions, FragmentHeader, HopByHop, Ipv4, Ipv6, RoutingHeader};
use super::text::{HexBytes, TcpFlags};
use super::transport::{ChecksumFill, Icmp, Icmpv6, Nd, Sctp, Tcp, Udp};
use crate::wire::ethernet::{self, EtherType, Ethernet};
use crate::wire::{self, Fragment, IpProto, icmpv6, ipv4, ipv6, tcp, u16_at};
use crate::{Checksum, Frame, MacAddr};

impl Stack {
    /// The layers of `frame`.
    #[must_use]
    pub fn dissect(frame: &Frame) -> Self {
        let mut stack = Self::new();
        stack.frame(frame.bytes());
        stack.mark_offload(frame);
        if stack.build().bytes() != frame.bytes() {
            stack = Self::new().with(raw(frame.bytes()));
        }
        stack.simplify();
        stack
    }

    /// Marks the outstanding offload work in the layers.
    fn mark_offload(&mut self, frame: &Frame) {
        if let Checksum::Partial { .. } = frame.offload.checksum {
            let fills = self.layers.iter_mut().rev();
            if let Some(fill) = fills.filter_map(Layer::fill).next() {
                *fill = ChecksumFill::Partial;
            }
        }
        if let Some(how) = frame.offload.segmentation {
            let pad = self.layers.pop_if(|layer| matches!(layer, Layer::Pad(_)));
            self.layers.push(Layer::Gso(Gso { size: how.size }));
            self.layers.extend(pad);
        }
    }

    /// Resets every field to its default where that does not change the frame.
    fn simplify(&mut self) {
        let frame = self.build();
        for index in 0..self.layers.len() {
            let defaults = self.layers[index].defaults();
            for (field, default) in defaults.iter().enumerate() {
                let before = self.layers[index].clone();
                self.layers[index].set_nth(field, default);
                if self.build() != frame {
                    self.layers[index] = before;
                }
            }
        }
    }

    fn frame(&mut self, bytes: &[u8]) {
        let whole = bytes.len();
        let trailing = self.ethernet(bytes);
        if trailing > 0 && bytes[whole - trailing..].iter().all(|byte| *byte == 0) {
            self.push(Pad { len: whole });
        } else {
            self.data(&bytes[whole - trailing..]);
        }
    }

    /// Dissects an Ethernet header and its payload. Returns the number of trailing bytes that
    /// belong to neither.
    fn ethernet(&mut self, bytes: &[u8]) -> usize {
        let Ok(Ethernet { dst, src }) = Ethernet::parse(bytes) else {
            return self.data(bytes);
        };
        let eth_type = u16_at(bytes, ethernet::TYPE);
        self.push(Eth {
            dst,
            src,
            eth_type: Some(EtherType(eth_type)),
        });
        self.typed(eth_type, &bytes[ethernet::LEN..])
    }

    /// Dissects the payload that `eth_type` announces. Returns the number of trailing bytes that do
    /// not belong to it.
    fn typed(&mut self, eth_type: u16, bytes: &[u8]) -> usize {
        let whole = EtherType(eth_type);
        match whole {
            _ if whole.is_vlan() && bytes.len() >= 4 => self.vlan(eth_type, bytes),
            _ if whole.is_mpls() && bytes.len() >= 4 => self.mpls(bytes),
            _ if eth_type < 0x0600 => self.llc(usize::from(eth_type), bytes),
            EtherType::PBB => self.pbb(bytes),
            EtherType::NSH => self.nsh(bytes),
            EtherType::ARP | EtherType::RARP => self.arp(bytes),
            EtherType::IPV4 => self.ipv4(bytes),
            EtherType::IPV6 => self.ipv6(bytes),
            _ => self.data(bytes),
        }
    }

    fn vlan(&mut self, tpid: u16, bytes: &[u8]) -> usize {
        let [high, low] = tpid.to_be_bytes();
        let tag = wire::vlan::VlanTag::parse([high, low, bytes[0], bytes[1]]);
        let eth_type = u16_at(bytes, 2);
        self.push(Vlan {
            tpid: EtherType(tpid),
            vid: tag.vid,
            pcp: tag.pcp,
            dei: tag.dei,
            eth_type: Some(EtherType(eth_type)),
        });
        self.typed(eth_type, &bytes[4..])
    }

    fn mpls(&mut self, bytes: &[u8]) -> usize {
        let Ok(entry) = wire::mpls::Mpls::parse(bytes) else {
            return self.data(bytes);
        };
        self.push(Mpls {
            label: entry.label,
            tc: entry.tc,
            bos: Some(entry.bottom),
            ttl: entry.ttl,
        });
        let rest = &bytes[4..];
        match rest.first().map(|byte| byte >> 4) {
            _ if !entry.bottom && rest.len() >= 4 => self.mpls(rest),
            Some(4) => self.ipv4(rest),
            Some(6) => self.ipv6(rest),
            _ => self.data(rest),
        }
    }

    fn pbb(&mut self, bytes: &[u8]) -> usize {
        let Ok(tag) = wire::pbb::Pbb::parse(bytes) else {
            return self.data(bytes);
        };
        self.push(Pbb {
            isid: tag.isid,
            pcp: tag.pcp,
            dei: tag.dei,
            uca: tag.uca,
        });
        self.ethernet(&bytes[wire::pbb::LEN..])
    }

    fn nsh(&mut self, bytes: &[u8]) -> usize {
        let Ok(header) = wire::nsh::Nsh::parse(bytes) else {
            return self.data(bytes);
        };
        let (whole, rest) = bytes.split_at(header.len.into());
        self.push(Nsh {
            spi: header.path,
            si: header.index,
            ttl: header.ttl,
            flags: header.flags,
            mdtype: header.md_type,
            np: Some(header.next),
            md: HexBytes(whole[wire::nsh::BASE_LEN..].to_vec()),
        });
        match header.next {
            wire::nsh::next::IPV4 => self.ipv4(rest),
            wire::nsh::next::IPV6 => self.ipv6(rest),
            wire::nsh::next::ETHERNET => self.ethernet(rest),
            wire::nsh::next::NSH => self.nsh(rest),
            _ => self.data(rest),
        }
    }

    fn llc(&mut self, len: usize, bytes: &[u8]) -> usize {
        let (inside, padding) = bytes.split_at(len.min(bytes.len()));
        let trailing = match *inside {
            [0xaa, 0xaa, 3, 0, 0, 0, high, low, ref rest @ ..] => {
                let eth_type = u16::from_be_bytes([high, low]);
                self.push(Snap {
                    eth_type: Some(EtherType(eth_type)),
                });
                self.typed(eth_type, rest)
            }
            [dsap, ssap, control, ref rest @ ..] => {
                self.push(Llc {
                    dsap,
                    ssap,
                    control,
                });
                self.data(rest)
            }
            _ => self.data(inside),
        };
        trailing + padding.len()
    }

    fn arp(&mut self, bytes: &[u8]) -> usize {
        match wire::arp::Arp::parse(bytes) {
            Ok(wire::arp::Arp {
                op,
                addresses: Some(addresses),
            }) => {
                self.push(Arp {
                    op,
                    sha: addresses.sha,
                    spa: addresses.spa,
                    tha: addresses.tha,
                    tpa: addresses.tpa,
                });
                bytes.len() - wire::arp::LEN
            }
            _ => self.data(bytes),
        }
    }

    fn ipv4(&mut self, bytes: &[u8]) -> usize {
        let Ok(ip) = ipv4::Ipv4::parse(bytes) else {
            return self.data(bytes);
        };
        let bits = u16_at(bytes, ipv4::FRAGMENT);
        let (header, total) = (usize::from(ip.header_len), usize::from(ip.total_len));
        self.push(Ipv4 {
            src: ip.src,
            dst: ip.dst,
            tos: ip.tos,
            ttl: ip.ttl,
            id: u16_at(bytes, ipv4::ID),
            df: bits & ipv4::DONT_FRAGMENT != 0,
            mf: bits & ipv4::MORE_FRAGMENTS != 0,
            offset: bits & ipv4::OFFSET_MASK,
            proto: Some(ip.protocol.0),
            options: HexBytes(bytes[ipv4::LEN_MIN..header].to_vec()),
            ihl: Some(ip.header_len / 4),
            length: Some(ip.total_len),
            checksum: Some(u16_at(bytes, ipv4::CHECKSUM)),
        });
        self.above_ip(ip.protocol, ip.fragment, &bytes[header..total]);
        bytes.len() - total
    }

    fn ipv6(&mut self, bytes: &[u8]) -> usize {
        let Ok(ip) = ipv6::Ipv6::parse(bytes) else {
            return self.data(bytes);
        };
        let mut next = IpProto(bytes[ipv6::NEXT]);
        self.push(Ipv6 {
            src: ip.src,
            dst: ip.dst,
            tclass: ip.traffic_class,
            flabel: ip.flow_label,
            hlim: ip.hop_limit,
            next: Some(next.0),
            length: Some(u16_at(bytes, ipv6::PAYLOAD_LEN)),
        });
        let mut rest = &bytes[ipv6::LEN..ip.total_len];
        while let Some(len) = self.extension(next, rest) {
            next = IpProto(rest[0]);
            rest = &rest[len..];
        }
        self.above_ip(next, ip.fragment, rest);
        bytes.len() - ip.total_len
    }

    /// Dissects the extension header at the front if a layer represents it. Returns its length.
    fn extension(&mut self, number: IpProto, bytes: &[u8]) -> Option<usize> {
        let header: &[u8; 8] = bytes.first_chunk()?;
        let next = Some(header[0]);
        let plain = header[1..] == [0, 1, 4, 0, 0, 0, 0];
        let (layer, len): (Layer, _) = match number {
            IpProto::HOP_BY_HOP if plain => (HopByHop { next }.into(), 8),
            IpProto::DESTINATION if plain => (DestinationOptions { next }.into(), 8),
            IpProto::ROUTING if header[1..3] == [2, 2] => {
                let to: [u8; 16] = *bytes.get(8..)?.first_chunk()?;
                let (segments_left, to) = (header[3], to.into());
                (
                    RoutingHeader {
                        segments_left,
                        to,
                        next,
                    }
                    .into(),
                    24,
                )
            }
            IpProto::FRAGMENT => {
                let bits = u16_at(header, 2);
                let fragment = FragmentHeader {
                    offset: bits >> 3,
                    more: bits & 1 == 1,
                    id: u32::from_be_bytes([header[4], header[5], header[6], header[7]]),
                    next,
                };
                (fragment.into(), 8)
            }
            IpProto::AH if header[1] == 4 && bytes.len() >= 24 => {
                let spi = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
                (Ah { spi, next }.into(), 24)
            }
            _ => return None,
        };
        self.push(layer);
        Some(len)
    }

    fn above_ip(&mut self, protocol: IpProto, fragment: Fragment, bytes: &[u8]) {
        let whole = fragment == Fragment::No;
        let trailing = match protocol {
            IpProto::IPV4 if whole => self.ipv4(bytes),
            IpProto::IPV6 if whole => self.ipv6(bytes),
            _ => {
                self.transport(protocol, fragment, bytes);
                return;
            }
        };
        self.data(&bytes[bytes.len() - trailing..]);
    }

    fn transport(&mut self, protocol: IpProto, fragment: Fragment, bytes: &[u8]) {
        let layer = match fragment {
            Fragment::Later => None,
            Fragment::No | Fragment::First => transport(protocol, bytes),
        };
        let Some((layer, len)) = layer else {
            self.data(bytes);
            return;
        };
        self.push(layer);
        self.data(&bytes[len..]);
    }

    /// Appends bytes without a layer of their own, up to the end.
    fn data(&mut self, bytes: &[u8]) -> usize {
        let rising = |(index, byte): (usize, &u8)| *byte == u8::try_from(index % 256).unwrap_or(0);
        if bytes.iter().enumerate().all(rising) {
            if !bytes.is_empty() {
                self.push(Data { len: bytes.len() });
            }
        } else {
            self.push(raw(bytes));
        }
        0
    }

    fn push(&mut self, layer: impl Into<Layer>) {
        self.layers.push(layer.into());
    }
}

fn raw(bytes: &[u8]) -> RawBytes {
    RawBytes {
        bytes: HexBytes(bytes.to_vec()),
    }
}

/// Returns the transport layer and its length, or `None` if it is unknown or malformed.
fn transport(protocol: IpProto, bytes: &[u8]) -> Option<(Layer, usize)> {
    let checksum = |at| ChecksumFill::Value(u32::from(u16_at(bytes, at)));
    match protocol {
        IpProto::TCP => tcp_layer(bytes),
        IpProto::UDP => {
            let header = wire::udp::Udp::parse(bytes).ok()?;
            let udp = Udp {
                src: header.src,
                dst: header.dst,
                length: Some(u16_at(bytes, wire::udp::LENGTH)),
                checksum: checksum(wire::udp::CHECKSUM),
            };
            Some((udp.into(), wire::udp::LEN))
        }
        IpProto::SCTP => {
            let header = wire::sctp::Sctp::parse(bytes).ok()?;
            let sctp = Sctp {
                src: header.src,
                dst: header.dst,
                tag: u32_at(bytes, wire::sctp::TAG),
                checksum: ChecksumFill::Value(u32_at(bytes, wire::sctp::CHECKSUM)),
            };
            Some((sctp.into(), wire::sctp::LEN))
        }
        IpProto::ICMPV4 => {
            let header = wire::icmpv4::Icmpv4::parse(bytes).ok()?;
            let icmp = Icmp {
                kind: header.kind,
                code: header.code,
                rest: u32_at(bytes, 4),
                checksum: checksum(wire::icmpv4::CHECKSUM),
            };
            Some((icmp.into(), wire::icmpv4::LEN))
        }
        IpProto::ICMPV6 => icmpv6_layer(bytes),
        _ => None,
    }
}

fn tcp_layer(bytes: &[u8]) -> Option<(Layer, usize)> {
    let header = tcp::Tcp::parse(bytes).ok()?;
    let offset = bytes[tcp::FLAGS] >> 4;
    let len = usize::from(offset) * 4;
    let tcp = Tcp {
        src: header.src,
        dst: header.dst,
        seq: u32_at(bytes, tcp::SEQUENCE),
        ack: u32_at(bytes, tcp::ACKNOWLEDGMENT),
        flags: TcpFlags(header.flags),
        window: u16_at(bytes, tcp::WINDOW),
        urgent: u16_at(bytes, tcp::CHECKSUM + 2),
        options: HexBytes(bytes[tcp::LEN_MIN..len].to_vec()),
        offset: Some(offset),
        checksum: ChecksumFill::Value(u32::from(u16_at(bytes, tcp::CHECKSUM))),
    };
    Some((tcp.into(), len))
}

fn icmpv6_layer(bytes: &[u8]) -> Option<(Layer, usize)> {
    let header = icmpv6::Icmpv6::parse(bytes).ok()?;
    let checksum = ChecksumFill::Value(u32::from(u16_at(bytes, icmpv6::CHECKSUM)));
    let Some(nd) = header.nd else {
        let icmp = Icmpv6 {
            kind: header.kind,
            code: header.code,
            rest: u32_at(bytes.get(..8)?, 4),
            checksum,
        };
        return Some((icmp.into(), 8));
    };
    let mut len = icmpv6::ND_LEN;
    let mut option = |kind| {
        let [found, 1, address @ ..] = *bytes.get(len..)?.first_chunk::<8>()? else {
            return None;
        };
        len += if found == kind { 8 } else { 0 };
        (found == kind).then_some(MacAddr(address))
    };
    let nd = Nd {
        kind: header.kind,
        code: header.code,
        flags: u32_at(bytes, 4),
        target: nd.target,
        sll: option(icmpv6::OPTION_SOURCE),
        tll: option(icmpv6::OPTION_TARGET),
        checksum,
    };
    Some((nd.into(), len))
}

/// Returns the four bytes at `at`, which the caller has checked to exist.
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) << 16 | u32::from(u16_at(bytes, at + 2))
}
