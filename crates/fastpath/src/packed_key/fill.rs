//! Packed keys from parsed headers and pipeline fields, for any frame.

use base::PortNo;
use flow::field::{REGISTERS, VID_PRESENT, frag};
use flow::{ConnectionFields, PipelineFields};
use packet::wire::ethernet::EtherType;
use packet::wire::icmpv6::{Icmpv6, LinkLayerOption};
use packet::wire::nsh::Nsh;
use packet::wire::{Fragment, IpProto};
use packet::{Headers, Link, MacAddr, Network, Transport};

use super::{KeyParts, PackedKey, halves, presence, word};

impl PackedKey {
    /// Fills `parts` of the key from the headers and the pipeline fields. The other words are
    /// unspecified.
    #[inline]
    pub(crate) fn fill(&mut self, parts: KeyParts, headers: &Headers, fields: &PipelineFields) {
        self.0[word::INGRESS] = u64::from(fields.in_port.0) << 32;
        if parts.contains(KeyParts::LINK) {
            self.fill_link(&headers.link);
        }
        if parts.contains(KeyParts::UPPER) {
            self.fill_network(&headers.network);
            self.fill_transport(&headers.transport);
        }
        if parts.contains(KeyParts::METADATA) {
            self.fill_metadata(fields);
        }
        if parts.contains(KeyParts::REGISTERS) {
            self.fill_registers(&fields.general);
        }
        if parts.contains(KeyParts::CONNECTION) {
            self.fill_connection(fields.connection.as_deref());
        }
    }

    /// Fills all header words, and the ingress port.
    pub(crate) fn fill_headers(&mut self, headers: &Headers, in_port: PortNo) {
        self.0[word::INGRESS] = u64::from(in_port.0) << 32;
        self.fill_link(&headers.link);
        self.fill_network(&headers.network);
        self.fill_transport(&headers.transport);
    }

    /// `eth_dst`; the link part must be filled.
    #[inline]
    pub(crate) fn eth_dst(&self) -> MacAddr {
        MacAddr::from_u64(self.0[word::ETH_DST] >> 16)
    }

    /// `eth_type`; the link part must be filled.
    #[inline]
    pub(crate) fn eth_type(&self) -> EtherType {
        let [.., high, low] = self.0[word::ETH_DST].to_be_bytes();
        EtherType(u16::from_be_bytes([high, low]))
    }

    /// Sets the ingress port and clears the presence bits.
    pub(crate) fn set_in_port(&mut self, port: PortNo) {
        self.0[word::INGRESS] = u64::from(port.0) << 32;
    }

    pub(super) fn fill_metadata(&mut self, fields: &PipelineFields) {
        self.0[word::METADATA] = fields.metadata;
        self.0[word::TUNNEL_ID] = fields.tunnel_id;
        self.0[word::TUNNEL_V4] = pair(fields.tunnel_v4);
        self.fill_wide(word::TUNNEL_V6_SRC, fields.tunnel_v6[0]);
        self.fill_wide(word::TUNNEL_V6_DST, fields.tunnel_v6[1]);
        self.0[word::TUNNEL_POLICY] = tunnel_policy(fields);
        self.0[word::MARK] = pair([fields.mark, fields.conjunction]);
        self.0[word::SET_OUTPUT] = fields.set_output.0.into();
        self.0[word::TUNNEL_GTPU] =
            u64::from(fields.gtpu.flags) << 8 | u64::from(fields.gtpu.message);
    }

    pub(super) fn fill_registers(&mut self, general: &[u32; REGISTERS]) {
        let words = &mut self.0[word::REGISTERS..];
        let (pairs, _) = general.as_chunks::<2>();
        for (word, two) in words.iter_mut().zip(pairs) {
            *word = pair(*two);
        }
    }

    pub(super) fn fill_connection(&mut self, connection: Option<&ConnectionFields>) {
        let Some(fields) = connection else {
            self.0[word::CONNECTION..=word::CT_PORTS].fill(0);
            return;
        };
        self.0[word::CONNECTION] = u64::from(fields.mark) << 32
            | u64::from(fields.zone) << 16
            | u64::from(fields.protocol) << 8
            | u64::from(fields.state);
        self.fill_wide(word::CT_LABEL, fields.label);
        self.0[word::CT_V4] = pair(fields.v4);
        self.fill_wide(word::CT_V6_SRC, fields.v6[0]);
        self.fill_wide(word::CT_V6_DST, fields.v6[1]);
        let [src, dst] = fields.ports.map(u64::from);
        self.0[word::CT_PORTS] = u64::from(fields.eth_type) << 32 | src << 16 | dst;
    }

    fn fill_link(&mut self, link: &Link) {
        let tag = link.tag.map_or(0, |tag| {
            u64::from(tag.pcp) << 13 | u64::from(tag.vid | VID_PRESENT)
        });
        self.0[word::ETH_DST] = link.dst.to_u64() << 16 | u64::from(link.eth_type.0);
        self.0[word::ETH_SRC] = link.src.to_u64() << 16 | tag;
    }

    fn fill_network(&mut self, network: &Network) {
        self.0[word::DETAILS] = 0;
        match network {
            Network::None => {}
            Network::Mpls(entry) => {
                self.0[word::NETWORK] = u64::from(entry.label) << 12
                    | u64::from(entry.tc) << 9
                    | u64::from(entry.bottom) << 8
                    | u64::from(entry.ttl);
            }
            Network::Pbb(tag) => {
                self.0[word::NETWORK] = u64::from(tag.uca) << 24 | u64::from(tag.isid);
            }
            Network::Nsh(header) => self.fill_nsh(header),
            Network::Arp(arp) => {
                self.0[word::DETAILS] = arp.op.into();
                if let Some(addresses) = &arp.addresses {
                    self.0[word::INGRESS] |= presence::ARP_ADDRESSES;
                    self.0[word::NETWORK] =
                        pair([addresses.spa.to_bits(), addresses.tpa.to_bits()]);
                    self.0[word::SENDER] = addresses.sha.to_u64();
                    self.0[word::TARGET] = addresses.tha.to_u64();
                }
            }
            Network::Ipv4(ip) => {
                self.fill_ip(ip.protocol, ip.tos, ip.ttl, ip.fragment);
                self.0[word::NETWORK] = pair([ip.src.to_bits(), ip.dst.to_bits()]);
            }
            Network::Ipv6(ip) => {
                self.fill_ip(ip.protocol, ip.traffic_class, ip.hop_limit, ip.fragment);
                self.fill_wide(word::IPV6_SRC, ip.src.to_bits());
                self.fill_wide(word::IPV6_DST, ip.dst.to_bits());
                self.0[word::DETAILS] =
                    u64::from(ip.flow_label) << 32 | u64::from(ip.extensions.0) << 16;
            }
        }
    }

    fn fill_nsh(&mut self, header: &Nsh) {
        self.0[word::NETWORK] = u64::from(header.flags) << 56
            | u64::from(header.ttl) << 48
            | u64::from(header.md_type) << 40
            | u64::from(header.next) << 32
            | u64::from(header.path) << 8
            | u64::from(header.index);
        let [first, second, third, fourth] = header.context;
        self.0[word::IPV6_SRC] = pair([first, second]);
        self.0[word::IPV6_SRC + 1] = pair([third, fourth]);
    }

    fn fill_ip(&mut self, protocol: IpProto, tos: u8, ttl: u8, fragment: Fragment) {
        let fragment = match fragment {
            Fragment::No => 0,
            Fragment::First => frag::ANY,
            Fragment::Later => frag::ANY | frag::LATER,
        };
        self.0[word::TRANSPORT] = u64::from(protocol.0) << 56
            | u64::from(tos) << 48
            | u64::from(ttl) << 40
            | u64::from(fragment) << 32;
    }

    fn fill_transport(&mut self, transport: &Transport) {
        let (upper, lower) = match transport {
            Transport::None => return,
            Transport::Tcp(tcp) => {
                self.0[word::DETAILS] |= u64::from(tcp.flags);
                (tcp.src, tcp.dst)
            }
            Transport::Udp(udp) => (udp.src, udp.dst),
            Transport::Sctp(sctp) => (sctp.src, sctp.dst),
            Transport::Icmpv4(icmp) => (icmp.kind.into(), icmp.code.into()),
            Transport::Icmpv6(icmp) => {
                self.fill_neighbour_discovery(icmp);
                (icmp.kind.into(), icmp.code.into())
            }
        };
        self.0[word::INGRESS] |= presence::TRANSPORT;
        self.0[word::TRANSPORT] |= u64::from(upper) << 16 | u64::from(lower);
    }

    fn fill_neighbour_discovery(&mut self, icmp: &Icmpv6) {
        let Some(nd) = &icmp.nd else {
            return;
        };
        self.0[word::INGRESS] |= presence::ND;
        self.fill_wide(word::ND_TARGET, nd.target.to_bits());
        self.0[word::NETWORK] = nd.reserved.into();
        let option = nd.option.map_or(0, |option| option.kind);
        self.0[word::DETAILS] |= u64::from(option) << 52;
        let address = |option: LinkLayerOption| option.address.to_u64();
        if let Some(source) = nd.sll {
            self.0[word::INGRESS] |= presence::SLL;
            self.0[word::SENDER] = address(source);
        }
        if let Some(target) = nd.tll {
            self.0[word::INGRESS] |= presence::TLL;
            self.0[word::TARGET] = address(target);
        }
    }

    pub(super) fn fill_wide(&mut self, word: usize, value: u128) {
        (self.0[word], self.0[word + 1]) = halves(value);
    }
}

/// Word of the tunnel fields other than addresses and key.
fn tunnel_policy(fields: &PipelineFields) -> u64 {
    let erspan = fields.erspan;
    u64::from(fields.gbp_flags)
        | u64::from(fields.tunnel_flags) << 8
        | u64::from(erspan.index) << 12
        | u64::from(fields.gbp_id) << 32
        | u64::from(erspan.version) << 48
        | u64::from(erspan.direction) << 52
        | u64::from(erspan.hardware) << 54
}

fn pair([upper, lower]: [u32; 2]) -> u64 {
    u64::from(upper) << 32 | u64::from(lower)
}
