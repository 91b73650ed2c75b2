//! From headers that were read, of any frame, to words; and what goes with a frame.

use base::PortNo;
use flow::PipelineFields;
use flow::field::{REGISTERS, VID_PRESENT, frag};
use packet::wire::icmpv6::{Icmpv6, LinkLayerOption};
use packet::wire::nsh::Nsh;
use packet::wire::{Fragment, IpProto};
use packet::{Headers, Link, MacAddr, Network, Transport};

use super::{Lanes, Parts, halves, has, lane};

impl Lanes {
    /// Takes in `parts` of a frame, and of what goes with it. The words of others are
    /// anything then.
    #[inline]
    pub(crate) fn fill(&mut self, parts: Parts, headers: &Headers, registers: &PipelineFields) {
        self.0[lane::ARRIVAL] = u64::from(registers.in_port.0) << 32;
        if parts.have(Parts::LINK) {
            self.link(&headers.link);
        }
        if parts.have(Parts::UPPER) {
            self.network(&headers.network);
            self.transport(&headers.transport);
        }
        if parts.have(Parts::KNOWN) {
            self.known(registers);
        }
        if parts.have(Parts::REGISTERS) {
            self.registers(&registers.general);
        }
    }

    /// Takes in all that is of the frame itself, and its port of arrival.
    pub(crate) fn fill_frame(&mut self, headers: &Headers, from: PortNo) {
        self.0[lane::ARRIVAL] = u64::from(from.0) << 32;
        self.link(&headers.link);
        self.network(&headers.network);
        self.transport(&headers.transport);
    }

    /// The destination, of a frame of which that was taken in.
    #[inline]
    pub(crate) fn eth_dst(&self) -> MacAddr {
        MacAddr::from_u64(self.0[lane::DST] >> 16)
    }

    /// Puts a port in the place of that of arrival; of what may be there, nothing is.
    pub(crate) fn put_port(&mut self, port: PortNo) {
        self.0[lane::ARRIVAL] = u64::from(port.0) << 32;
    }

    pub(super) fn known(&mut self, registers: &PipelineFields) {
        self.0[lane::METADATA] = registers.metadata;
        self.0[lane::TUNNEL_ID] = registers.tunnel_id;
        self.0[lane::TUNNEL_V4] = pair(registers.tunnel_v4);
        self.wide(lane::TUNNEL_V6_SRC, registers.tunnel_v6[0]);
        self.wide(lane::TUNNEL_V6_DST, registers.tunnel_v6[1]);
        self.0[lane::TUNNEL_POLICY] = policy(registers);
        self.0[lane::MARK] = pair([registers.mark, registers.conjunction]);
        self.0[lane::SET_OUTPUT] = registers.set_output.0.into();
    }

    fn registers(&mut self, general: &[u32; REGISTERS]) {
        let places = &mut self.0[lane::REGISTERS..];
        let (pairs, _) = general.as_chunks::<2>();
        for (place, of_two) in places.iter_mut().zip(pairs) {
            *place = pair(*of_two);
        }
    }

    fn link(&mut self, link: &Link) {
        let tag = link.tag.map_or(0, |tag| {
            u64::from(tag.pcp) << 13 | u64::from(tag.vid | VID_PRESENT)
        });
        self.0[lane::DST] = link.dst.to_u64() << 16 | u64::from(link.eth_type.0);
        self.0[lane::SRC] = link.src.to_u64() << 16 | tag;
    }

    fn network(&mut self, network: &Network) {
        self.0[lane::DETAILS] = 0;
        match network {
            Network::None => {}
            Network::Mpls(entry) => {
                self.0[lane::NETWORK] = u64::from(entry.label) << 12
                    | u64::from(entry.tc) << 9
                    | u64::from(entry.bottom) << 8
                    | u64::from(entry.ttl);
            }
            Network::Pbb(tag) => {
                self.0[lane::NETWORK] = u64::from(tag.uca) << 24 | u64::from(tag.isid);
            }
            Network::Nsh(header) => self.nsh(header),
            Network::Arp(arp) => {
                self.0[lane::DETAILS] = arp.op.into();
                if let Some(addresses) = &arp.addresses {
                    self.0[lane::ARRIVAL] |= has::ARP_ADDRESSES;
                    self.0[lane::NETWORK] =
                        pair([addresses.spa.to_bits(), addresses.tpa.to_bits()]);
                    self.0[lane::SENDER] = addresses.sha.to_u64();
                    self.0[lane::TARGET] = addresses.tha.to_u64();
                }
            }
            Network::Ipv4(ip) => {
                self.ip(ip.protocol, ip.tos, ip.ttl, ip.fragment);
                self.0[lane::NETWORK] = pair([ip.src.to_bits(), ip.dst.to_bits()]);
            }
            Network::Ipv6(ip) => {
                self.ip(ip.protocol, ip.traffic_class, ip.hop_limit, ip.fragment);
                self.wide(lane::IPV6_SRC, ip.src.to_bits());
                self.wide(lane::IPV6_DST, ip.dst.to_bits());
                self.0[lane::DETAILS] =
                    u64::from(ip.flow_label) << 32 | u64::from(ip.extensions.0) << 16;
            }
        }
    }

    fn nsh(&mut self, header: &Nsh) {
        self.0[lane::NETWORK] = u64::from(header.flags) << 56
            | u64::from(header.ttl) << 48
            | u64::from(header.md_type) << 40
            | u64::from(header.next) << 32
            | u64::from(header.path) << 8
            | u64::from(header.index);
        let [first, second, third, fourth] = header.context;
        self.0[lane::IPV6_SRC] = pair([first, second]);
        self.0[lane::IPV6_SRC + 1] = pair([third, fourth]);
    }

    fn ip(&mut self, protocol: IpProto, tos: u8, ttl: u8, fragment: Fragment) {
        let fragment = match fragment {
            Fragment::No => 0,
            Fragment::First => frag::ANY,
            Fragment::Later => frag::ANY | frag::LATER,
        };
        self.0[lane::UPPER] = u64::from(protocol.0) << 56
            | u64::from(tos) << 48
            | u64::from(ttl) << 40
            | u64::from(fragment) << 32;
    }

    fn transport(&mut self, transport: &Transport) {
        let (upper, lower) = match transport {
            Transport::None => return,
            Transport::Tcp(tcp) => {
                self.0[lane::DETAILS] |= u64::from(tcp.flags);
                (tcp.src, tcp.dst)
            }
            Transport::Udp(udp) => (udp.src, udp.dst),
            Transport::Sctp(sctp) => (sctp.src, sctp.dst),
            Transport::Icmpv4(icmp) => (icmp.kind.into(), icmp.code.into()),
            Transport::Icmpv6(icmp) => {
                self.neighbours(icmp);
                (icmp.kind.into(), icmp.code.into())
            }
        };
        self.0[lane::ARRIVAL] |= has::TRANSPORT;
        self.0[lane::UPPER] |= u64::from(upper) << 16 | u64::from(lower);
    }

    fn neighbours(&mut self, icmp: &Icmpv6) {
        let Some(nd) = &icmp.nd else {
            return;
        };
        self.0[lane::ARRIVAL] |= has::ND;
        self.wide(lane::ND_TARGET, nd.target.to_bits());
        self.0[lane::NETWORK] = nd.reserved.into();
        let option = nd.option.map_or(0, |option| option.kind);
        self.0[lane::DETAILS] |= u64::from(option) << 52;
        let address = |option: LinkLayerOption| option.address.to_u64();
        if let Some(source) = nd.sll {
            self.0[lane::ARRIVAL] |= has::SLL;
            self.0[lane::SENDER] = address(source);
        }
        if let Some(target) = nd.tll {
            self.0[lane::ARRIVAL] |= has::TLL;
            self.0[lane::TARGET] = address(target);
        }
    }

    fn wide(&mut self, lane: usize, value: u128) {
        (self.0[lane], self.0[lane + 1]) = halves(value);
    }
}

/// What a tunnel tells besides its ends and its key.
fn policy(registers: &PipelineFields) -> u64 {
    let erspan = registers.erspan;
    u64::from(registers.gbp_flags)
        | u64::from(registers.tunnel_flags) << 8
        | u64::from(erspan.index) << 12
        | u64::from(registers.gbp_id) << 32
        | u64::from(erspan.version) << 48
        | u64::from(erspan.direction) << 52
        | u64::from(erspan.hardware) << 54
}

fn pair(of: [u32; 2]) -> u64 {
    u64::from(of[0]) << 32 | u64::from(of[1])
}
