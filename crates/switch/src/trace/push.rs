//! Outputs to tunnels whose headers the datapath adds itself: `tnl_push(...)` and the path of the
//! tunnel packet, and `tnl_pop(...)` for a tunnel packet that reaches the host.

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use config::TunnelConfig;
use dataplane::slots::PortKey;
use dataplane::tunnels;
use dataplane::underlay::NextHop;
use dataplane::virtual_links::VirtualLink;
use flow::PipelineFields;
use packet::tunnel::{self, OuterHeaders, OuterTransport, TunnelHeader, TunnelProtocol};
use packet::wire::ethernet;
use packet::{Frame, MacAddr, Pool};

use super::tunnel::local_and_remote;
use super::{TraceEgress, TraceOutput, TraceRequest, TraceVisit, TracedBridge, Tracer};
use crate::odp::{OdpGeneveOption, OdpHeaders};

/// Buffers for a tunnel packet.
const BUFFERS: usize = 4;

/// The types of tunnels in the datapath, as in Open vSwitch's `datapath-windows` and Linux.
const TYPE_GRE: u32 = 3;
const TYPE_VXLAN: u32 = 4;
const TYPE_GENEVE: u32 = 5;

/// GRE flags: a checksum, a key, a sequence number (RFC 2890, 2).
const GRE_CHECKSUM: u16 = 0x8000;
const GRE_KEY: u16 = 0x2000;
const GRE_SEQUENCE: u16 = 0x1000;

/// The length of an IPv4 header without options and of an IPv6 header, in bytes.
const IPV4_LEN: usize = 20;
const IPV6_LEN: usize = 40;

/// The length of a UDP header, in bytes.
const UDP_LEN: usize = 8;

impl Tracer {
    /// Adds a tunnel header to an output, and follows the packet into the bridge of its route.
    pub(super) fn push_tunnel(
        &self,
        visit: &TraceVisit,
        (bridge, tunnel): (&TracedBridge, &TunnelConfig),
        leaving: &TraceEgress,
        output: &mut TraceOutput,
    ) {
        let none = PipelineFields::new(leaving.port);
        let fields = leaving.registers.as_deref().unwrap_or(&none);
        output.text += "     -> output to native tunnel\n";
        let (local, remote) = local_and_remote(tunnel, fields);
        let hop = remote.and_then(|remote| Some((remote, self.underlay.hop(remote)?)));
        let Some((remote, hop)) = hop else {
            output.text += "     >> native tunnel routing failed\n";
            return;
        };
        let source = local.unwrap_or(hop.source);
        let name = self.host_port_name(hop.by);
        // Writing to a string cannot fail.
        let _ = writeln!(output.text, "     -> tunneling to {} via {name}", hop.next);
        let Some(station) = self.underlay.neighbours.get(&(hop.by, hop.next)) else {
            let next = hop.next;
            let _ = writeln!(
                output.text,
                "     >> neighbor cache miss for {next} on bridge {name}, sending ARP request"
            );
            return;
        };
        let (own, station) = (self.mac_of(&hop), *station);
        let _ = writeln!(
            output.text,
            "     -> tunneling from {own} {source} to {station} {remote}"
        );
        let mut outer = tunnels::outer(tunnel, (own, station), (source, remote));
        let within = tunnels::inner_headers(leaving.frame.bytes());
        (outer.tos, outer.ttl) = tunnels::outer_tos_ttl(tunnel, &within);
        let header = tunnels::tunnel_header(tunnel, fields, &bridge.pipeline);
        let mut packet = leaving.frame.clone();
        let mut pool = Pool::new(BUFFERS);
        let done = tunnel::encapsulate(&mut packet, 0, &outer, &header, &mut pool);
        if done.is_err() {
            output.text += "     >> the tunnel packet is too long\n";
            return;
        }
        let size = packet.len() - leaving.frame.len();
        let text = header_text(
            packet.bytes().get(..size).unwrap_or_default(),
            &outer,
            &header,
        );
        output.commit(&leaving.frame, leaving.registers.as_deref());
        let before = std::mem::take(&mut output.actions);
        let state = (output.headers.take(), output.tunnel.take());
        let (from, to) = (
            bridge.datapath_port(leaving.port, output.names),
            self.datapath_port_of(hop.by, output.names),
        );
        output.add(format!("tnl_push(tnl_port({from}),{text},out_port({to}))"));
        let arrival = PipelineFields::new(hop.by.port);
        output.headers = OdpHeaders::read(&packet, &arrival);
        output.text += "\n";
        let request = TraceRequest::received(packet, hop.by.port, visit.learns);
        self.follow(hop.by.bridge, request, output);
        output.close_clone(before);
        (output.headers, output.tunnel) = state;
    }

    /// Returns the datapath number of the tunnels that receive a packet which is sent to a port of
    /// the host; none for other packets.
    pub(super) fn popping_port(&self, to: PortKey, frame: &Frame, named: bool) -> Option<String> {
        let host_port = self.underlay.ports_of_host.get(&to)?;
        let packet = tunnel::parse_outer(frame.bytes())?;
        if packet.outer.eth_dst != host_port.mac || !host_port.addresses.contains(&packet.outer.dst)
        {
            return None;
        }
        let udp_port = match packet.outer.upper {
            OuterTransport::Udp { dst, .. } => dst,
            OuterTransport::Gre => 0,
        };
        let ports = self.bridges.iter().flat_map(|(id, bridge)| {
            let ports = bridge.ports.keys();
            ports.map(move |port| {
                (
                    PortKey {
                        bridge: *id,
                        port: *port,
                    },
                    bridge,
                )
            })
        });
        let mut tunnels = ports.filter(|(key, _)| match self.virtual_links.find(*key) {
            Some(VirtualLink::Tunnel(tunnel)) => tunnel.port == udp_port,
            _ => false,
        });
        let (key, bridge) = tunnels.next()?;
        Some(bridge.datapath_port(key.port, named))
    }

    fn host_port_name(&self, port: PortKey) -> String {
        let host_port = self.underlay.ports_of_host.get(&port);
        host_port.map_or_else(String::new, |host_port| host_port.name.clone())
    }

    fn mac_of(&self, hop: &NextHop) -> MacAddr {
        let host_port = self.underlay.ports_of_host.get(&hop.by);
        host_port.map_or_else(MacAddr::default, |host_port| host_port.mac)
    }

    fn datapath_port_of(&self, port: PortKey, named: bool) -> String {
        let bridge = self.bridges.get(&port.bridge);
        bridge.map_or_else(
            || port.port.to_string(),
            |bridge| bridge.datapath_port(port.port, named),
        )
    }
}

/// Returns the text of the headers that a datapath adds. Lengths, checksums and the UDP source port
/// are those of each packet: the template has zeros, and ones where a checksum is filled in.
fn header_text(bytes: &[u8], outer: &OuterHeaders, header: &TunnelHeader) -> String {
    let kind = match header.protocol {
        TunnelProtocol::Vxlan(_) => TYPE_VXLAN,
        TunnelProtocol::Geneve => TYPE_GENEVE,
        _ => TYPE_GRE,
    };
    let (dst, src) = (outer.eth_dst, outer.eth_src);
    let eth_type = if outer.dst.is_ipv4() { 0x0800 } else { 0x86dd };
    let size = bytes.len();
    let mut text =
        format!("header(size={size},type={kind},eth(dst={dst},src={src},dl_type={eth_type:#06x}),");
    let after = network_text(
        bytes.get(ethernet::LEN..).unwrap_or_default(),
        outer,
        &mut text,
    );
    let tunnel = match outer.upper {
        OuterTransport::Udp { src, dst, summed } => {
            let sum = if summed { 0xffff } else { 0 };
            // Writing to a string cannot fail.
            let _ = write!(text, "udp(src={src},dst={dst},csum={sum:#x}),");
            after.get(UDP_LEN..).unwrap_or_default()
        }
        OuterTransport::Gre => after,
    };
    match header.protocol {
        TunnelProtocol::Vxlan(_) => vxlan_text(tunnel, &mut text),
        TunnelProtocol::Geneve => geneve_text(tunnel, header, &mut text),
        _ => gre_text(tunnel, &mut text),
    }
    text + ")"
}

/// Writes the IP header. Returns the bytes after it.
fn network_text<'a>(bytes: &'a [u8], outer: &OuterHeaders, text: &mut String) -> &'a [u8] {
    let (tos, ttl) = (outer.tos, outer.ttl);
    let octet = |at: usize| bytes.get(at).copied().unwrap_or_default();
    match (outer.src, outer.dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let frag = u16::from_be_bytes([octet(6), octet(7)]);
            let proto = octet(9);
            let _ = write!(
                text,
                "ipv4(src={src},dst={dst},proto={proto},tos={},ttl={ttl},frag={frag:#x}),",
                zero_or_hex(tos.into())
            );
            bytes.get(IPV4_LEN..).unwrap_or_default()
        }
        (src, dst) => {
            let address = |address: IpAddr| match address {
                IpAddr::V4(address) => Ipv4Addr::to_ipv6_mapped(&address),
                IpAddr::V6(address) => address,
            };
            let (src, dst): (Ipv6Addr, Ipv6Addr) = (address(src), address(dst));
            let proto = octet(6);
            let _ = write!(
                text,
                "ipv6(src={src},dst={dst},label=0,proto={proto},tclass={tos:#x},hlimit={ttl}),"
            );
            bytes.get(IPV6_LEN..).unwrap_or_default()
        }
    }
}

fn vxlan_text(bytes: &[u8], text: &mut String) {
    let [flags, vni] = [0, 4].map(|at| word(bytes, at));
    let _ = write!(text, "vxlan(flags={flags:#x},vni={:#x})", vni >> 8);
}

fn geneve_text(bytes: &[u8], header: &TunnelHeader, text: &mut String) {
    let flags = bytes.get(1).copied().unwrap_or_default();
    let oam = if flags & 0x80 != 0 { "oam," } else { "" };
    let critical = if flags & 0x40 != 0 { "crit," } else { "" };
    let vni = word(bytes, 4) >> 8;
    let _ = write!(text, "geneve({oam}{critical}vni={vni:#x}");
    if !header.options.is_empty() {
        let options = header.options.iter().map(|option| {
            let option = OdpGeneveOption {
                class: option.class,
                kind: option.kind,
                value: option.value.clone(),
            };
            option.text()
        });
        let _ = write!(text, ",options({})", options.collect::<String>());
    }
    text.push(')');
}

fn gre_text(bytes: &[u8], text: &mut String) {
    let first = word(bytes, 0);
    let flags = u16::try_from(first >> 16).unwrap_or_default();
    let _ = write!(text, "gre((flags={flags:#x},proto={:#x})", first & 0xffff);
    let mut at = 4;
    if flags & GRE_CHECKSUM != 0 {
        text.push_str(",csum=0x0");
        at += 4;
    }
    if flags & GRE_KEY != 0 {
        let _ = write!(text, ",key={:#x}", word(bytes, at));
    }
    if flags & GRE_SEQUENCE != 0 {
        text.push_str(",seq=0x0");
    }
    text.push(')');
}

fn word(bytes: &[u8], at: usize) -> u32 {
    let bytes = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
    bytes.map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

/// Formats a number in hexadecimal, and zero without a prefix.
fn zero_or_hex(number: u32) -> String {
    match number {
        0 => "0".to_owned(),
        number => format!("{number:#x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(
        protocol: TunnelProtocol,
        change: impl Fn(&mut OuterHeaders, &mut TunnelHeader),
    ) -> String {
        let mut outer = OuterHeaders {
            eth_dst: MacAddr([0xaa, 0x55, 0xaa, 0x66, 0, 0]),
            eth_src: MacAddr([0xaa, 0x55, 0xaa, 0x55, 0, 0]),
            src: Ipv4Addr::new(10, 0, 0, 2).into(),
            dst: Ipv4Addr::new(10, 0, 0, 11).into(),
            tos: 0,
            ttl: 64,
            dont_fragment: true,
            upper: match protocol {
                TunnelProtocol::Gre => OuterTransport::Gre,
                _ => OuterTransport::Udp {
                    src: 0,
                    dst: 4789,
                    summed: false,
                },
            },
        };
        let mut header = TunnelHeader::new(protocol);
        change(&mut outer, &mut header);
        let mut frame = Frame::from_bytes(&[0; 60]);
        tunnel::encapsulate(&mut frame, 0, &outer, &header, &mut Pool::new(1)).expect("it fits");
        let size = frame.len() - 60;
        header_text(&frame.bytes()[..size], &outer, &header)
    }

    #[test]
    fn pushed_header_is_written_as_open_vswitch_writes_it() {
        let vxlan = TunnelProtocol::Vxlan(tunnel::VxlanExtension::None);
        assert_eq!(
            text(vxlan, |_, header| header.key = Some(0)),
            "header(size=50,type=4,eth(dst=aa:55:aa:66:00:00,src=aa:55:aa:55:00:00,\
             dl_type=0x0800),ipv4(src=10.0.0.2,dst=10.0.0.11,proto=17,tos=0,ttl=64,\
             frag=0x4000),udp(src=0,dst=4789,csum=0x0),vxlan(flags=0x8000000,vni=0x0))"
        );
        let gre = text(TunnelProtocol::Gre, |_, header| header.key = Some(0x1c8));
        assert!(
            gre.ends_with("gre((flags=0x2000,proto=0x6558),key=0x1c8))"),
            "{gre}"
        );
        let geneve = text(TunnelProtocol::Geneve, |_, header| {
            header.key = Some(123);
            header.options = vec![tunnel::TunnelOption {
                class: 0xffff,
                kind: 0x80,
                value: vec![0, 0, 0, 10],
            }];
        });
        assert!(
            geneve.ends_with("geneve(crit,vni=0x7b,options({class=0xffff,type=0x80,len=4,0xa})))"),
            "{geneve}"
        );
    }
}
