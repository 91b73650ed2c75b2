//! Megaflows of packets through one bridge, with the texts of Open vSwitch.

mod tunnels;

use base::{Instant, PortNo};
use dataplane::punt::{BfdFilter, PuntedProtocols};
use packet::Pool;
use packet::build::Stack;
use pipeline::{InputFrame, Interpreter, Limits, Verdict};

use super::*;

const ICMP: &str = "eth(src=50:54:00:00:00:09,dst=50:54:00:00:00:0a) / ipv4(src=10.0.0.2,dst=10.0.0.1,ttl=64) / icmp(type=8)";

fn pipeline(rules: &[&str]) -> Pipeline {
    let mut pipeline = Pipeline::new(Limits::default(), 1);
    for port in [1, 2] {
        pipeline.set_port(&flow::PortDesc::new(PortNo(port)));
    }
    for rule in rules {
        let rule = flow::text::parse_flow_line(rule).expect(rule);
        pipeline
            .flow_mod(&rule, Instant::START)
            .expect("the rule is valid");
    }
    pipeline
}

/// Returns the megaflow of a frame that port 1 receives.
fn megaflow_with(rules: &[&str], frame: &str, prefixes: &[Field]) -> Megaflow {
    let pipeline = pipeline(rules);
    let frame = frame.parse::<Stack>().expect(frame).build();
    let prefixes = BTreeMap::from([(TableId(0), prefixes.to_vec())]);
    let classifiers = TableClassifiers::new(prefixes);
    let mut recorder = PathRecorder::new(&pipeline, &classifiers);
    let input = InputFrame {
        frame,
        in_port: PortNo(1),
        now: Instant::START,
    };
    let (mut pool, mut verdict) = (Pool::new(8), Verdict::new());
    Interpreter::observer().run(&pipeline, input, &mut pool, &mut recorder, &mut verdict);
    recorder.megaflow().expect("the frame can be parsed")
}

fn megaflow(rules: &[&str], frame: &str) -> Megaflow {
    megaflow_with(rules, frame, &DEFAULT_PREFIXES)
}

fn odp(rules: &[&str], frame: &str) -> String {
    megaflow(rules, frame)
        .for_datapath(1)
        .to_odp("1", KeyDetail::Examined)
}

#[test]
fn lookup_examines_fields_up_to_the_stage_that_excludes_a_rule() {
    let rules = ["in_port=1,dl_src=50:54:00:00:00:09,tcp,actions=output:2"];
    let other = ICMP.replace("src=50:54:00:00:00:09", "src=50:54:00:00:00:0b");
    assert_eq!(
        megaflow(&rules, &other).to_string(),
        "recirc_id=0,eth,ip,in_port=1,dl_src=50:54:00:00:00:0b,nw_frag=no"
    );
    assert_eq!(
        megaflow(&rules, ICMP).to_string(),
        "recirc_id=0,eth,icmp,in_port=1,dl_src=50:54:00:00:00:09,nw_frag=no"
    );
    let rules = ["in_port=2,tcp,actions=drop"];
    assert_eq!(
        megaflow(&rules, ICMP).to_string(),
        "recirc_id=0,eth,ip,in_port=1,nw_frag=no"
    );
}

#[test]
fn lookup_ends_at_the_priority_of_the_match() {
    let rules = [
        "priority=5,ip,actions=output:2",
        "priority=4,tcp,tp_dst=80,actions=drop",
    ];
    assert_eq!(
        megaflow(&rules, ICMP).to_string(),
        "recirc_id=0,eth,ip,in_port=1,nw_frag=no"
    );
}

#[test]
fn prefix_trie_excludes_by_part_of_an_address() {
    let rules = ["in_port=1,icmp,nw_src=10.0.0.4,actions=output:2"];
    let key = "recirc_id(0),in_port(1),packet_type(ns=0,id=0),eth_type(0x0800)";
    assert_eq!(
        odp(&rules, ICMP),
        format!("{key},ipv4(src=10.0.0.2/255.255.255.252,frag=no)")
    );
    let hit = ICMP.replace("src=10.0.0.2", "src=10.0.0.4");
    assert_eq!(
        odp(&rules, &hit),
        format!("{key},ipv4(src=10.0.0.4,proto=1,frag=no)")
    );
    let without = megaflow_with(&rules, ICMP, &[]);
    assert_eq!(
        without.to_string(),
        "recirc_id=0,eth,icmp,in_port=1,nw_src=10.0.0.2,nw_frag=no"
    );
}

#[test]
fn ports_trie_excludes_by_part_of_the_ports() {
    let rules = [
        "priority=2,tcp,tp_src=80,actions=drop",
        "priority=1,actions=drop",
    ];
    let frame = "eth / ipv4 / tcp(src=0x8050,dst=9)";
    assert_eq!(
        megaflow(&rules, frame).to_string(),
        "recirc_id=0,eth,tcp,in_port=1,nw_frag=no,tp_src=0x8000/0x8000"
    );
}

#[test]
fn conjunction_examines_the_clauses_and_the_second_lookup() {
    let rules = [
        "priority=100,ip,ip_src=10.0.0.2,actions=conjunction(1,1/2)",
        "priority=100,ip,ip_dst=10.0.0.1,actions=conjunction(1,2/2)",
        "conj_id=1,actions=output:2",
        "priority=1,actions=drop",
    ];
    assert_eq!(
        megaflow(&rules, ICMP).to_string(),
        "recirc_id=0,eth,ip,in_port=1,nw_src=10.0.0.2,nw_dst=10.0.0.1,nw_frag=no"
    );
}

#[test]
fn actions_examine_the_fields_that_they_read_and_write() {
    let cases = [
        ("dec_ttl", "icmp", "nw_ttl=64"),
        ("mod_nw_tos:16", "icmp", "nw_tos=0"),
        ("mod_dl_dst:50:54:00:00:00:01", "ip", ""),
        ("move:NXM_OF_IP_SRC[]->NXM_NX_REG0[]", "ip", ""),
        ("push:NXM_OF_IP_SRC[]", "ip", ""),
        ("load:5->NXM_NX_REG0[]", "ip", ""),
    ];
    for (action, protocol, field) in cases {
        let text = megaflow(&[&format!("ip,actions={action},output:2")], ICMP).to_string();
        assert!(
            text.contains(&format!("eth,{protocol},in_port=1")),
            "{action}: {text}"
        );
        assert!(text.contains(field), "{action}: {text}");
        let reads_source = action.contains("IP_SRC");
        assert_eq!(
            text.contains("nw_src=10.0.0.2"),
            reads_source,
            "{action}: {text}"
        );
        let writes_dst = action.starts_with("mod_dl_dst");
        assert_eq!(
            text.contains("dl_dst=50:54:00:00:00:0a"),
            writes_dst,
            "{action}: {text}"
        );
    }
}

#[test]
fn vlan_id_counts_in_the_datapath_unless_another_part_is_examined() {
    let tagged = "eth / vlan(vid=99,pcp=7) / data(46)";
    let key = |rules: &[&str]| odp(rules, tagged);
    let cases = [
        ("actions=output:2", "vlan(vid=99,pcp=7/0x0)"),
        (
            "vlan_tci=0x0000/0x1fff,actions=output:2",
            "vlan(vid=99,pcp=7/0x0)",
        ),
        (
            "vlan_tci=0xf000/0xf000,actions=output:2",
            "vlan(vid=99/0x0,pcp=7)",
        ),
    ];
    for (rule, tag) in cases {
        let text = key(&[rule]);
        let part = format!("eth_type(0x8100),{tag},encap(");
        assert!(text.contains(&part), "{rule}: {text}");
    }
    let plain = megaflow(&["actions=output:2"], "eth / data(46)").for_datapath(1);
    let tagged = megaflow(&["actions=output:2"], tagged).for_datapath(1);
    assert!(!plain.accepts(&tagged) && plain.accepts(&plain));
}

#[test]
fn mpls_actions_examine_labels() {
    let rules = [
        "mpls,dl_src=50:54:00:00:00:09,actions=push_mpls:0x8847,output:2",
        "mpls,dl_src=50:54:00:00:00:0b,actions=pop_mpls:0x0800,output:2",
    ];
    let frame =
        |src: &str| format!("eth(src=50:54:00:00:00:{src}) / mpls(label=11,tc=3,ttl=64) / ipv4");
    let key = |src| {
        format!(
            "recirc_id(0),in_port(1),packet_type(ns=0,id=0),eth(src=50:54:00:00:00:{src}),eth_type(0x8847)"
        )
    };
    assert_eq!(
        odp(&rules, &frame("09")),
        format!("{},mpls(label=11,tc=3,ttl=64,bos=1)", key("09"))
    );
    assert_eq!(
        odp(&rules, &frame("0b")),
        format!("{},mpls(label=11/0x0,tc=3/0,ttl=64/0x0,bos=1/1)", key("0b"))
    );
}

#[test]
fn verbose_key_has_all_fields_with_masks() {
    let flow = megaflow(&["actions=drop"], ICMP).for_datapath(1);
    assert_eq!(
        flow.to_odp("p1", KeyDetail::All),
        "skb_priority(0/0),skb_mark(0/0),ct_state(0/0),ct_zone(0/0),ct_mark(0/0),ct_label(0/0),\
         recirc_id(0),dp_hash(0/0),in_port(p1),packet_type(ns=0,id=0),\
         eth(src=50:54:00:00:00:09/00:00:00:00:00:00,dst=50:54:00:00:00:0a/00:00:00:00:00:00),\
         eth_type(0x0800),ipv4(src=10.0.0.2/0.0.0.0,dst=10.0.0.1/0.0.0.0,proto=1/0,tos=0/0,\
         ttl=64/0,frag=no),icmp(type=8/0,code=0/0)"
    );
}

#[test]
fn exact_key_has_all_fields_without_masks() {
    let frame = ICMP.parse::<Stack>().expect("a stack").build();
    let key = key_of(&frame, &PipelineFields::new(PortNo(1))).expect("well formed");
    let exact = Megaflow::exact(&key, &frame).for_datapath(1);
    let rest = "recirc_id(0),dp_hash(0),in_port(1),packet_type(ns=0,id=0),\
         eth(src=50:54:00:00:00:09,dst=50:54:00:00:00:0a),eth_type(0x0800),\
         ipv4(src=10.0.0.2,dst=10.0.0.1,proto=1,tos=0,ttl=64,frag=no),icmp(type=8,code=0)";
    assert_eq!(
        exact.to_odp("1", KeyDetail::Examined),
        format!(
            "skb_priority(0),skb_mark(0),ct_state(-new-est-rel-rpl-inv-trk-snat-dnat),ct_zone(0),\
             ct_mark(0),ct_label(0),{rest}"
        )
    );
    assert_eq!(
        exact.to_odp("1", KeyDetail::Packet),
        format!("skb_priority(0),skb_mark(0),ct_state(0),ct_zone(0),ct_mark(0),ct_label(0),{rest}")
    );
}

#[test]
fn filter_compares_the_bits_that_count() {
    let flow = megaflow(&["ip,nw_src=10.0.0.2,actions=drop"], ICMP).for_datapath(1);
    let accepts = |text: &str| FlowFilter::new(&text.parse().expect(text)).accepts(&flow);
    assert!(accepts("in_port=1") && !accepts("in_port=2"));
    assert!(accepts("ip,nw_src=10.0.0.2") && !accepts("ip,nw_src=10.0.0.3"));
    assert!(
        accepts("ip,nw_dst=10.9.9.9"),
        "the destination does not count"
    );
}

#[test]
fn check_for_bfd_examines_the_destination_port() {
    let check = |dst: u16| {
        let frame = format!("eth / ipv4 / udp(dst={dst})");
        let frame = frame.parse::<Stack>().expect("a stack").build();
        let key = key_of(&frame, &PipelineFields::new(PortNo(1))).expect("well formed");
        let mut examined = MegaflowBuilder::new(&key, &frame);
        examined.check_for_monitors(PuntedProtocols {
            bfd: Some(BfdFilter::default()),
            ..PuntedProtocols::default()
        });
        examined.megaflow().to_string()
    };
    let key = "recirc_id=0,eth,udp,in_port=1,nw_frag=no";
    assert_eq!(check(3784), format!("{key},tp_dst=3784"));
    assert_eq!(check(80), format!("{key},tp_dst=0x0/0x800"));
}
