//! Megaflows of packets that arrive by a tunnel.

use flow::{Gtpu, TlvCommand, TlvMapping, TlvTableMod, Wide};

use super::*;
use crate::odp::{DONT_FRAGMENT, KEY};

const PACKET: &str = "eth / ipv4(dst=10.0.0.1) / udp";

/// Returns the pipeline fields of a packet from tunnel 1.1.1.1 -> 1.1.1.2 with these options.
fn fields(options: &[(Field, u128)]) -> PipelineFields {
    let mut fields = PipelineFields::new(PortNo(1));
    fields.tunnel_id = 7;
    fields.tunnel_v4 = [0x0101_0101, 0x0101_0102];
    for (field, value) in options {
        fields.options.set(*field, Wide::from(*value));
    }
    fields
}

/// Returns the megaflow of the packet in tables with these rules.
fn megaflow(rules: &[&str], fields: &PipelineFields, outer: OuterHeader) -> Megaflow {
    let mut pipeline = pipeline(&[]);
    let mappings = (0..2).map(|index| TlvMapping {
        class: 0xffff,
        kind: u8::from(index == 1),
        length: 4,
        index,
    });
    let change = TlvTableMod {
        command: TlvCommand::Add,
        mappings: mappings.collect(),
    };
    pipeline.tlv_table_mod(&change).expect("there is space");
    for rule in rules {
        let rule = flow::text::parse_flow_line(rule).expect(rule);
        pipeline.flow_mod(&rule, Instant::START).expect("valid");
    }
    let frame = PACKET.parse::<Stack>().expect(PACKET).build();
    let key = key_of(&frame, fields).expect("well formed");
    let mut examined = MegaflowBuilder::new(&key, &frame);
    examined.leave_tunnel(outer);
    let classifiers = TableClassifiers::default();
    let recorder = PathRecorder::new(&pipeline, &classifiers);
    let mut recorder = recorder.after(Some(examined));
    let input = InputFrame {
        frame,
        in_port: PortNo(1),
        now: Instant::START,
    };
    let (mut pool, mut verdict) = (Pool::new(8), Verdict::new());
    Interpreter::observer().run_with_registers(
        (&pipeline).into(),
        input,
        fields.clone(),
        &mut pool,
        &mut recorder,
        &mut verdict,
    );
    recorder.megaflow().expect("the frame can be parsed")
}

#[test]
fn tunnel_packet_is_examined_by_addresses_key_tos_and_flags() {
    let outer = OuterHeader {
        tos: 0,
        flags: DONT_FRAGMENT | KEY,
    };
    let flow = megaflow(&["actions=output:2"], &fields(&[]), outer);
    assert_eq!(
        flow.to_string(),
        "recirc_id=0,eth,ip,tun_id=0x7,tun_src=1.1.1.1,tun_dst=1.1.1.2,tun_tos=0,\
         tun_flags=+df-csum+key,in_port=1,nw_frag=no"
    );
    assert_eq!(
        flow.to_odp("1", KeyDetail::Examined),
        "tunnel(tun_id=0x7,src=1.1.1.1,dst=1.1.1.2,flags(+df-csum+key)),recirc_id(0),in_port(1),\
         packet_type(ns=0,id=0),eth_type(0x0800),ipv4(frag=no)"
    );
}

#[test]
fn fields_of_gtpu_are_written_without_masks() {
    let mut fields = fields(&[]);
    fields.gtpu = Gtpu {
        flags: 0x32,
        message: 255,
    };
    let rule = "tun_gtpu_flags=0x30/0x30,tun_gtpu_msgtype=255,actions=output:2";
    let text = megaflow(&[rule], &fields, OuterHeader::default()).to_string();
    assert!(
        text.contains(",gtpu_flags=0x30,gtpu_msgtype=255,"),
        "{text}"
    );
}

#[test]
fn congestion_mark_of_a_tunnel_examines_the_inner_ecn() {
    let outer = OuterHeader { tos: 3, flags: 0 };
    let text = megaflow(&["actions=output:2"], &fields(&[]), outer).to_string();
    assert!(
        text.ends_with("tun_tos=3,tun_flags=-df-csum-key,in_port=1,nw_ecn=0,nw_frag=no"),
        "{text}"
    );
}

#[test]
fn tunnel_options_count_by_bits_and_by_presence() {
    let options = |rules: &[&str], present: &[(Field, u128)]| {
        let text = megaflow(rules, &fields(present), OuterHeader::default()).to_string();
        let options = text.split(',').filter(|item| item.contains("metadata"));
        options.collect::<Vec<_>>().join(",")
    };
    let masked = ["tun_metadata0=0xb/0xf,actions=output:2"];
    let first = [(Field::TunMetadata0, 0x1b)];
    assert_eq!(options(&masked, &first), "tun_metadata0=0xb/0xf");
    assert_eq!(options(&masked, &[]), "tun_metadata0=NP");
    assert_eq!(
        options(&["tun_metadata0,actions=drop"], &first),
        "tun_metadata0"
    );
    let written = ["actions=set_field:5->tun_metadata1,output:2"];
    assert_eq!(options(&written, &first), "tun_metadata1=NP");
    let other = ["tcp,tun_metadata0=0x1b,actions=drop"];
    assert_eq!(options(&other, &first), "tun_metadata0=0x1b");
}

#[test]
fn flows_with_other_options_differ() {
    let rules = ["tun_metadata0=0xb/0xf,actions=output:2"];
    let flow = |value| {
        let fields = fields(&[(Field::TunMetadata0, value)]);
        megaflow(&rules, &fields, OuterHeader::default())
    };
    assert!(flow(0xb).accepts(&flow(0x1b)));
    assert!(!flow(0xb).accepts(&flow(0xc)));
    assert_eq!(FlowUfid::of(&flow(0xb)), FlowUfid::of(&flow(0x1b)));
    assert_ne!(FlowUfid::of(&flow(0xb)), FlowUfid::of(&flow(0xc)));
}

#[test]
fn flow_of_a_geneve_tunnel_has_all_options_of_its_packet() {
    let option = |kind, last| OdpGeneveOption {
        class: 0xffff,
        kind,
        value: vec![0, 0, 0, last],
    };
    let mut tunnel = OdpTunnel::default();
    tunnel.options.extend([option(0, 0x1b), option(9, 5)]);
    let rules = ["tun_metadata0=0xb/0xf,actions=output:2"];
    let fields = fields(&[(Field::TunMetadata0, 0x1b)]);
    let flow = megaflow(&rules, &fields, OuterHeader::default());
    let flow = flow.with_tunnel(&tunnel, |option| {
        (option.kind == 0).then_some(Field::TunMetadata0)
    });
    let key = flow.to_odp("6081", KeyDetail::Examined);
    let expected = "tunnel(src=1.1.1.1,dst=1.1.1.2,geneve({class=0xffff,type=0,len=4,0x1b/0xf}\
                    {class=0xffff,type=0x9,len=4}),flags(-df-csum)),recirc_id(0),in_port(6081)";
    assert!(key.starts_with(expected), "{key}");
}
