//! The datapath action that encapsulates a packet: `tnl_push(tnl_port(4789),header(..),out_port(1))`.

use std::fmt::Write;
use std::net::IpAddr;

use packet::tunnel::{
    ErspanHeader, GtpuHeader, OuterHeaders, OuterTransport, TunnelHeader, TunnelOption,
    TunnelProtocol,
};
use packet::wire::ethernet::EtherType;

/// The don't-fragment flag of IPv4.
const DONT_FRAGMENT: u16 = 0x4000;

/// Numbers of IP's next header.
const UDP: u8 = 17;
const GRE: u8 = 47;

const ROOM: &str = "a string has room";

/// Returns the action that adds these headers and sends the packet by `out_port`. `port` is the
/// datapath's port of the tunnel.
pub(crate) fn tunnel_push(
    port: &str,
    outer: &OuterHeaders,
    header: &TunnelHeader,
    out_port: &str,
) -> String {
    // As Open vSwitch builds it: the source port, the length and the checksum follow with the
    // packet.
    let bytes = header.to_bytes();
    let size = outer.len() + bytes.len();
    let kind = vport_type(header.protocol, outer.dst.is_ipv6());
    let mut text = format!("tnl_push(tnl_port({port}),header(size={size},type={kind},");
    write_link_and_network(&mut text, outer);
    if let OuterTransport::Udp { dst, summed, .. } = outer.upper {
        let sum = if summed { u16::MAX } else { 0 };
        write!(text, "udp(src=0,dst={dst},csum={sum:#x}),").expect(ROOM);
    }
    write_tunnel(&mut text, header, &bytes);
    write!(text, "),out_port({out_port}))").expect(ROOM);
    text
}

/// Returns Open vSwitch's number of a tunnel type (`OVS_VPORT_TYPE_*`).
const fn vport_type(protocol: TunnelProtocol, is_v6: bool) -> u8 {
    match (protocol, is_v6) {
        (TunnelProtocol::Gre, false) => 3,
        (TunnelProtocol::Vxlan(_), _) => 4,
        (TunnelProtocol::Geneve, _) => 5,
        (TunnelProtocol::Lisp, _) => 105,
        (TunnelProtocol::Erspan, false) => 107,
        (TunnelProtocol::Erspan, true) => 108,
        (TunnelProtocol::Gre, true) => 109,
        (TunnelProtocol::Gtpu, _) => 110,
    }
}

fn write_link_and_network(text: &mut String, outer: &OuterHeaders) {
    let OuterHeaders {
        eth_dst,
        eth_src,
        src,
        dst,
        tos,
        ttl,
        ..
    } = outer;
    let EtherType(eth_type) = match dst {
        IpAddr::V4(_) => EtherType::IPV4,
        IpAddr::V6(_) => EtherType::IPV6,
    };
    let protocol = match outer.upper {
        OuterTransport::Udp { .. } => UDP,
        OuterTransport::Gre => GRE,
    };
    write!(
        text,
        "eth(dst={eth_dst},src={eth_src},dl_type={eth_type:#06x}),"
    )
    .expect(ROOM);
    let fragment = if outer.dont_fragment {
        DONT_FRAGMENT
    } else {
        0
    };
    let written = match dst {
        IpAddr::V4(_) => write!(
            text,
            "ipv4(src={src},dst={dst},proto={protocol},tos={},ttl={ttl},frag={fragment:#x}),",
            hex((*tos).into())
        ),
        IpAddr::V6(_) => write!(
            text,
            "ipv6(src={src},dst={dst},label=0,proto={protocol},tclass={tos:#x},hlimit={ttl}),"
        ),
    };
    written.expect(ROOM);
}

/// Returns a number in hexadecimal; zero has no prefix, as in C.
fn hex(number: u32) -> String {
    match number {
        0 => "0".to_owned(),
        number => format!("{number:#x}"),
    }
}

fn write_tunnel(text: &mut String, header: &TunnelHeader, bytes: &[u8]) {
    let key = header.key.unwrap_or(0);
    let half = |at: usize| {
        let two = bytes.get(at..at + 2).unwrap_or(&[0; 2]);
        u16::from_be_bytes([two[0], two[1]])
    };
    let flags = u32::from(half(0)) << 16 | u32::from(half(2));
    let written = match header.protocol {
        TunnelProtocol::Vxlan(_) => write!(text, "vxlan(flags={flags:#x},vni={key:#x})"),
        TunnelProtocol::Geneve => {
            let is_critical = header.options.iter().any(TunnelOption::is_critical);
            let oam = if header.oam { "oam," } else { "" };
            let critical = if is_critical { "crit," } else { "" };
            let options = geneve_options(&header.options);
            write!(text, "geneve({oam}{critical}vni={key:#x}{options})")
        }
        TunnelProtocol::Gre => {
            let sum = if header.summed { ",csum=0x0" } else { "" };
            let key = header.key.map(|key| format!(",key={key:#x}"));
            let number = header.sequence.map(|number| format!(",seq={number:#x}"));
            let (key, number) = (key.unwrap_or_default(), number.unwrap_or_default());
            let (flags, protocol) = (half(0), half(2));
            write!(
                text,
                "gre((flags={flags:#x},proto={protocol:#x}){sum}{key}{number})"
            )
        }
        TunnelProtocol::Erspan => match header.erspan {
            Some(ErspanHeader::V2 {
                direction,
                hardware,
                ..
            }) => write!(
                text,
                "erspan(ver=2,sid={key:#x},dir={direction},hwid={hardware:#x})"
            ),
            Some(ErspanHeader::V1 { index }) => {
                write!(text, "erspan(ver=1,sid={key:#x},idx={index:#x})")
            }
            None => Ok(()),
        },
        TunnelProtocol::Gtpu => {
            let GtpuHeader { message, .. } = header.gtpu.unwrap_or_default();
            let flags = bytes.first().copied().unwrap_or_default();
            write!(
                text,
                "gtpu(flags={flags:#x},msgtype={message},teid={key:#x})"
            )
        }
        // Open vSwitch's userspace sends no LISP packets, and has no text for them.
        TunnelProtocol::Lisp => write!(text, "lisp(flags={flags:#x},iid={key:#x})"),
    };
    written.expect(ROOM);
}

/// Returns the options of GENEVE, with a comma before them.
fn geneve_options(options: &[TunnelOption]) -> String {
    if options.is_empty() {
        return String::new();
    }
    let mut text = ",options(".to_owned();
    for TunnelOption { class, kind, value } in options {
        let (class, kind, len) = (hex((*class).into()), hex((*kind).into()), value.len());
        write!(text, "{{class={class},type={kind},len={len}").expect(ROOM);
        if !value.is_empty() {
            let figures: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
            let figures = figures.trim_start_matches('0');
            let figures = if figures.is_empty() { "0" } else { figures };
            write!(text, ",0x{figures}").expect(ROOM);
        }
        text.push('}');
    }
    text.push(')');
    text
}

#[cfg(test)]
mod tests {
    use packet::MacAddr;
    use packet::tunnel::{TunnelPayload, VxlanExtension};

    use super::*;

    fn outer(is_v6: bool, upper: OuterTransport) -> OuterHeaders {
        let address = |v4: &str, v6: &str| {
            let text = if is_v6 { v6 } else { v4 };
            text.parse().expect("an address")
        };
        OuterHeaders {
            eth_dst: MacAddr([0xf8, 0xbc, 0x12, 0x44, 0x34, 0xb6]),
            eth_src: MacAddr([0xaa, 0x55, 0xaa, 0x55, 0, 0]),
            src: address("1.1.2.88", "2001:cafe::88"),
            dst: address("1.1.2.92", "2001:cafe::92"),
            tos: 0,
            ttl: 64,
            dont_fragment: true,
            upper,
        }
    }

    const fn udp(dst: u16, summed: bool) -> OuterTransport {
        OuterTransport::Udp {
            src: 9,
            dst,
            summed,
        }
    }

    const V4: &str = "eth(dst=f8:bc:12:44:34:b6,src=aa:55:aa:55:00:00,dl_type=0x0800),\
         ipv4(src=1.1.2.88,dst=1.1.2.92,proto=";
    const V6: &str = "eth(dst=f8:bc:12:44:34:b6,src=aa:55:aa:55:00:00,dl_type=0x86dd),\
         ipv6(src=2001:cafe::88,dst=2001:cafe::92,label=0,proto=";

    fn header(protocol: TunnelProtocol, key: u32) -> TunnelHeader {
        let mut header = TunnelHeader::new(protocol);
        header.key = Some(key);
        header
    }

    /// Checks the text after the IP header, and the size and the type before it.
    fn check(is_v6: bool, header: &TunnelHeader, size: usize, kind: u8, rest: &str) {
        let upper = match header.protocol {
            TunnelProtocol::Gre | TunnelProtocol::Erspan => OuterTransport::Gre,
            TunnelProtocol::Geneve => udp(6081, is_v6),
            TunnelProtocol::Gtpu => udp(2152, is_v6),
            _ => udp(4789, is_v6),
        };
        let protocol = if upper == OuterTransport::Gre {
            GRE
        } else {
            UDP
        };
        let network = match is_v6 {
            true => format!("{V6}{protocol},tclass=0x0,hlimit=64)"),
            false => format!("{V4}{protocol},tos=0,ttl=64,frag=0x4000)"),
        };
        let expected = format!(
            "tnl_push(tnl_port(7),header(size={size},type={kind},{network},{rest}),out_port(100))"
        );
        let outer = outer(is_v6, upper);
        assert_eq!(tunnel_push("7", &outer, header, "100"), expected);
    }

    /// Texts are those of Open vSwitch's tests `tunnel_push_pop`.
    #[test]
    fn pushed_udp_tunnels_are_written_as_open_vswitch_writes_them() {
        let plain = header(TunnelProtocol::Vxlan(VxlanExtension::None), 0x7b);
        let text = "udp(src=0,dst=4789,csum=0x0),vxlan(flags=0x8000000,vni=0x7b)";
        check(false, &plain, 50, 4, text);
        let text = "udp(src=0,dst=4789,csum=0xffff),vxlan(flags=0x8000000,vni=0x7b)";
        check(true, &plain, 70, 4, text);
        let gpe = header(TunnelProtocol::Vxlan(VxlanExtension::Gpe), 0x159);
        let text = "udp(src=0,dst=4789,csum=0x0),vxlan(flags=0xc000003,vni=0x159)";
        check(false, &gpe, 50, 4, text);
        let mut geneve = header(TunnelProtocol::Geneve, 0x7b);
        geneve.options.push(TunnelOption {
            class: 0xffff,
            kind: 0x80,
            value: vec![0, 0, 0, 0xa],
        });
        let text = "udp(src=0,dst=6081,csum=0x0),\
             geneve(crit,vni=0x7b,options({class=0xffff,type=0x80,len=4,0xa}))";
        check(false, &geneve, 58, 5, text);
        let gtpu = header(TunnelProtocol::Gtpu, 0x7b);
        let text = "udp(src=0,dst=2152,csum=0x0),gtpu(flags=0x30,msgtype=255,teid=0x7b)";
        check(false, &gtpu, 50, 110, text);
    }

    #[test]
    fn pushed_gre_tunnels_are_written_as_open_vswitch_writes_them() {
        let mut gre = header(TunnelProtocol::Gre, 0x1c8);
        gre.payload = TunnelPayload::Packet(EtherType::IPV4);
        let text = "gre((flags=0x2000,proto=0x800),key=0x1c8)";
        check(false, &gre, 42, 3, text);
        check(true, &gre, 62, 109, text);
        let mut sequenced = header(TunnelProtocol::Gre, 0x1c8);
        sequenced.sequence = Some(0);
        let text = "gre((flags=0x3000,proto=0x6558),key=0x1c8,seq=0x0)";
        check(false, &sequenced, 46, 3, text);
        let mut v1 = header(TunnelProtocol::Erspan, 0x7b);
        v1.erspan = Some(ErspanHeader::V1 { index: 3 });
        check(false, &v1, 50, 107, "erspan(ver=1,sid=0x7b,idx=0x3)");
        let mut v2 = header(TunnelProtocol::Erspan, 0x237);
        v2.erspan = Some(ErspanHeader::V2 {
            direction: 1,
            hardware: 7,
            timestamp: 0,
        });
        check(true, &v2, 74, 108, "erspan(ver=2,sid=0x237,dir=1,hwid=0x7)");
    }
}
