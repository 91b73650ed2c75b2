//! The tunnel of a packet that this process has decapsulated.

use std::net::IpAddr;

use flow::PipelineFields;
use packet::tunnel::{OuterHeaders, OuterTransport, TunnelHeader};

use super::super::scan::MaskedNumber;
use super::{CHECKSUM, KEY, OdpGeneveOption, OdpTunnel};

impl OdpTunnel {
    /// Returns the tunnel of a packet with these headers, whose payload has these pipeline fields.
    /// As in Open vSwitch's userspace data path, the "don't fragment" flag is not read.
    #[must_use]
    pub fn received(outer: &OuterHeaders, header: &TunnelHeader, fields: &PipelineFields) -> Self {
        let mut tunnel = Self {
            id: exact(fields.tunnel_id),
            tos: exact(outer.tos),
            ttl: exact(outer.ttl),
            gbp: exact(u32::from(fields.gbp_flags) << 16 | u32::from(fields.gbp_id)),
            erspan: fields.erspan,
            gtpu: fields.gtpu,
            ..Self::default()
        };
        match (outer.src, outer.dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                (tunnel.src, tunnel.dst) = (exact(src.to_bits()), exact(dst.to_bits()));
            }
            (IpAddr::V6(src), IpAddr::V6(dst)) => {
                (tunnel.ipv6_src, tunnel.ipv6_dst) = (exact(src.to_bits()), exact(dst.to_bits()));
            }
            _ => {}
        }
        let mut flags = fields.tunnel_flags;
        let is_summed = match outer.upper {
            OuterTransport::Udp { src, dst, summed } => {
                (tunnel.tp_src, tunnel.tp_dst) = (exact(src), exact(dst));
                summed
            }
            OuterTransport::Gre => header.summed,
        };
        if is_summed {
            flags |= CHECKSUM;
        }
        if header.key.is_some() {
            flags |= KEY;
        }
        tunnel.flags = exact(flags);
        let options = header.options.iter().map(|option| OdpGeneveOption {
            class: option.class,
            kind: option.kind,
            value: option.value.clone(),
        });
        tunnel.options = options.collect();
        tunnel
    }
}

fn exact(value: impl Into<u128>) -> MaskedNumber {
    MaskedNumber {
        value: value.into(),
        mask: u128::MAX,
    }
}

#[cfg(test)]
mod tests {
    use packet::MacAddr;
    use packet::tunnel::{TunnelOption, TunnelPayload, TunnelProtocol};

    use super::*;

    #[test]
    fn received_tunnel_has_key_and_options_of_the_packet() {
        let outer = OuterHeaders {
            eth_dst: MacAddr([2, 0, 0, 0, 0, 1]),
            eth_src: MacAddr([2, 0, 0, 0, 0, 2]),
            src: IpAddr::from([1, 1, 2, 92]),
            dst: IpAddr::from([1, 1, 2, 88]),
            tos: 0,
            ttl: 64,
            dont_fragment: true,
            upper: OuterTransport::Udp {
                src: 9,
                dst: 6081,
                summed: false,
            },
        };
        let header = TunnelHeader {
            protocol: TunnelProtocol::Geneve,
            key: Some(0x7b),
            payload: TunnelPayload::Ethernet,
            policy: None,
            oam: false,
            summed: false,
            sequence: None,
            erspan: None,
            gtpu: None,
            options: vec![TunnelOption {
                class: 0xffff,
                kind: 0x80,
                value: vec![0, 0, 0, 10],
            }],
        };
        let mut fields = PipelineFields::new(base::PortNo(5));
        fields.tunnel_id = 0x7b;
        assert_eq!(
            OdpTunnel::received(&outer, &header, &fields).text(),
            "tun_id=0x7b,src=1.1.2.92,dst=1.1.2.88,ttl=64,tp_src=9,tp_dst=6081,\
             geneve({class=0xffff,type=0x80,len=4,0xa}),flags(key)"
        );
    }
}
