//! Tests of tunnel headers on egress and of pipeline fields on ingress.

use base::PortNo;
use flow::{TlvCommand, TlvMapping, TlvTableMod};
use packet::build;
use pipeline::Limits;

use super::*;
use config::{PortKind, PortSpec};

fn tunnel(text: &str) -> std::sync::Arc<TunnelConfig> {
    let spec: PortSpec = text.parse().expect("a tunnel");
    match spec.kind {
        PortKind::Tunnel(tunnel) => tunnel,
        _ => unreachable!("it is one"),
    }
}

fn pipeline() -> Pipeline {
    let mut pipeline = Pipeline::new(Limits::default(), 1);
    let mappings = vec![TlvMapping {
        class: 0x102,
        kind: 3,
        length: 4,
        index: 5,
    }];
    let command = TlvCommand::Add;
    let change = TlvTableMod { command, mappings };
    pipeline.tlv_table_mod(&change).expect("room");
    pipeline
}

fn frame(stack: &str) -> Vec<u8> {
    let frame: build::Stack = stack.parse().expect("a stack");
    frame.build().bytes().to_vec()
}

#[test]
fn tunnel_endpoints_are_configured_or_set_by_rules() {
    let mut fields = PipelineFields::new(PortNo(1));
    let flow = tunnel("vxlan:t,remote=flow,local=flow,key=flow");
    assert_eq!(endpoints(&flow, &fields), None);
    fields.tunnel_v4 = [0x0a00_0001, 0x0a00_0002];
    let both = endpoints(&flow, &fields).expect("an end");
    assert_eq!(both.remote.to_string(), "10.0.0.2");
    assert_eq!(
        both.local.map(|end| end.to_string()).as_deref(),
        Some("10.0.0.1")
    );
    let given = tunnel("vxlan:t,remote=fd00::1,key=3");
    let one = endpoints(&given, &fields).expect("an end");
    assert_eq!(
        (one.remote.to_string().as_str(), one.local),
        ("fd00::1", None)
    );
    fields.tunnel_id = 77;
    let key = |tunnel: &TunnelConfig| {
        let header = tunnel_header(tunnel, &fields, &pipeline());
        header.expect("it has no fields that rules set").key
    };
    assert_eq!((key(&flow), key(&given)), (Some(77), Some(3)));
    assert_eq!(key(&tunnel("gre:t,remote=1.1.1.1")), None);
}

#[test]
fn tunnel_options_survive_encode_and_decode_by_the_tlv_map() {
    let pipeline = pipeline();
    let mut fields = PipelineFields::new(PortNo::ANY);
    fields.tunnel_v4 = [1, 2];
    fields.tunnel_id = 9;
    fields.options.set(Field::TunMetadata5, 0xabcd_u128.into());
    // A field without a mapping is not sent.
    let geneve = tunnel("geneve:t,remote=flow,key=flow");
    let mut header = tunnel_header(&geneve, &fields, &pipeline).expect("a header");
    let option = TunnelOption {
        class: 0x102,
        kind: 3,
        value: vec![0, 0, 0xab, 0xcd],
    };
    assert_eq!(header.options, [option]);
    let there = endpoints(&geneve, &fields).expect("an end");
    let macs = (MacAddr::default(), MacAddr::default());
    let headers = outer(&geneve, macs, (Ipv4Addr::from_bits(1).into(), there.remote));
    assert_eq!(
        decapsulated_fields(&headers, &header, &pipeline),
        Some(fields)
    );
    // An unknown option is ignored, unless it is critical.
    header.options[0].class = 1;
    assert!(
        decapsulated_fields(&headers, &header, &pipeline)
            .is_some_and(|fields| fields.options.is_empty())
    );
    header.options[0].kind = 0x83;
    assert_eq!(decapsulated_fields(&headers, &header, &pipeline), None);
}

#[test]
fn tunnel_headers_inherit_from_the_inner_packet() {
    let v4 = frame("eth() / ipv4(tos=0xb9,ttl=9) / udp(src=1,dst=2)");
    let v4 = inner_headers(&v4);
    let arp = inner_headers(&frame("eth() / arp()"));
    let plain = tunnel("vxlan:t,remote=1.1.1.1");
    let inherits = tunnel("vxlan:t,remote=1.1.1.1,tos=inherit,ttl=inherit");
    // ECN is always inherited.
    assert_eq!(outer_tos_ttl(&plain, &v4), (1, 64));
    assert_eq!(outer_tos_ttl(&inherits, &v4), (0xb9, 9));
    assert_eq!(outer_tos_ttl(&inherits, &arp), (0, 64));
    let congested = inner_headers(&frame("eth() / ipv4(tos=3) / udp()"));
    assert_eq!(outer_tos_ttl(&plain, &congested).0, 2);
}

#[test]
fn congestion_mark_is_copied_to_the_inner_packet_or_drops_it() {
    let geneve = tunnel("geneve:t,remote=1.1.1.1");
    let macs = (MacAddr::default(), MacAddr::default());
    let ends = (Ipv4Addr::from_bits(1).into(), Ipv4Addr::from_bits(2).into());
    let mut headers = outer(&geneve, macs, ends);
    headers.tos = 3;
    let mark = |stack: &str| {
        let mut frame = Frame::from_bytes(&frame(stack));
        copy_congestion_mark(&mut frame, &headers).then_some(frame)
    };
    let expected = |stack: &str| Some(Frame::from_bytes(&frame(stack)));
    assert_eq!(
        mark("eth() / ipv4(tos=0x29) / udp()"),
        expected("eth() / ipv4(tos=0x2b) / udp()")
    );
    assert_eq!(
        mark("eth() / ipv4(tos=3) / udp()"),
        expected("eth() / ipv4(tos=3) / udp()")
    );
    assert_eq!(mark("eth() / ipv4(tos=4) / udp()"), None);
    assert!(mark("eth() / arp()").is_some());
}

#[test]
fn tunnel_source_port_is_constant_per_flow_and_spreads_flows() {
    let range = (40_000, 40_099);
    let port = |number: u16| {
        let bytes = frame(&format!("eth() / ipv4() / tcp(src={number})"));
        source_port(&bytes, &inner_headers(&bytes), range)
    };
    assert_eq!(port(1), port(1));
    let all: std::collections::BTreeSet<_> = (1..200).map(port).collect();
    assert!(all.len() > 50 && all.iter().all(|port| (40_000..40_100).contains(port)));
}

/// Returns the pipeline fields after a packet with this header was decapsulated.
fn received(header: &TunnelHeader) -> PipelineFields {
    let geneve = tunnel("geneve:t,remote=1.1.1.1");
    let macs = (MacAddr::default(), MacAddr::default());
    let ends = (Ipv4Addr::from_bits(1).into(), Ipv4Addr::from_bits(2).into());
    let headers = outer(&geneve, macs, ends);
    decapsulated_fields(&headers, header, &pipeline()).expect("no option")
}

#[test]
fn erspan_fields_are_configured_or_set_by_rules() {
    let mut fields = PipelineFields::new(PortNo(1));
    let header = |text: &str, fields: &PipelineFields| {
        tunnel_header(&tunnel(text), fields, &pipeline()).and_then(|header| header.erspan)
    };
    let given = "erspan:t,remote=1.1.1.1,key=7,erspan_ver=1,erspan_idx=3";
    let v1 = Some(ErspanHeader::V1 { index: 3 });
    assert_eq!(header(given, &fields), v1);
    let flow = "erspan:t,remote=1.1.1.1,key=flow,erspan_ver=flow";
    assert_eq!(header(flow, &fields), None, "no version");
    fields.erspan.version = 2;
    (fields.erspan.direction, fields.erspan.hardware) = (1, 9);
    let v2 = ErspanHeader::V2 {
        direction: 1,
        hardware: 9,
        timestamp: 0,
    };
    assert_eq!(header(flow, &fields), Some(v2));
    fields.tunnel_id = 1024;
    assert_eq!(header(flow, &fields), None, "the session id has ten bits");
    let mut arrived = TunnelHeader::new(TunnelProtocol::Erspan);
    arrived.erspan = Some(v2);
    assert_eq!(received(&arrived).erspan, fields.erspan);
    arrived.erspan = v1;
    let erspan = received(&arrived).erspan;
    assert_eq!((erspan.version, erspan.index), (1, 3));
}

#[test]
fn gtpu_fields_have_defaults_and_are_matched_on_arrival() {
    let fields = PipelineFields::new(PortNo(1));
    let gtpu = tunnel("gtpu:t,remote=1.1.1.1,key=3");
    let header = tunnel_header(&gtpu, &fields, &pipeline()).expect("a header");
    let fields = received(&header);
    assert_eq!((fields.gtpu.flags, fields.gtpu.message), (0x30, 255));
    assert!(!fields.need_interpreter(), "compiled tables match them");
}

#[test]
fn tunnel_payload_depends_on_packet_type_mode() {
    let ethernet = Some(TunnelPayload::Ethernet);
    let packet = TunnelPayload::Packet(EtherType::IPV4);
    let ipv4 = Some(packet);
    let bare = PacketType::of_ether_type(0x0800);
    for (text, of_frame, of_packet) in [
        ("gre:t,remote=1.1.1.1", ethernet, None),
        ("gre:t,remote=1.1.1.1,packet_type=legacy_l3", ipv4, ipv4),
        ("gre:t,remote=1.1.1.1,packet_type=ptap", ethernet, ipv4),
        ("gtpu:t,remote=1.1.1.1", ipv4, ipv4),
    ] {
        let tunnel = tunnel(text);
        let payload = |packet_type| payload(&tunnel, 0x0800, packet_type);
        assert_eq!(payload(PacketType::ETHERNET), of_frame, "{text}");
        assert_eq!(payload(bare), of_packet, "{text}");
        let expected = match text.ends_with("ptap") {
            true => bare,
            false => PacketType::ETHERNET,
        };
        assert_eq!(packet_type(&tunnel, packet), expected);
    }
    let gtpu = tunnel("gtpu:t,remote=1.1.1.1");
    assert_eq!(payload(&gtpu, 0x8847, PacketType::ETHERNET), None);
}
