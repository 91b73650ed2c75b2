//! For any rules and packets, a packet that agrees with another in the examined bits finds the same
//! rule, and the classifier finds the rule that a scan finds.

use base::{Instant, PortNo, TableId};
use flow::{FlowKey, Match, PipelineFields};
use packet::Depth;
use packet::build::Stack;
use pipeline::{Limits, Pipeline};
use proptest::prelude::*;

use super::*;

/// Returns a rule of a few fields with few values, so that many packets meet many rules.
fn rule() -> impl Strategy<Value = String> {
    let address = (0..4_u8, prop::sample::select(vec![24, 30, 31, 32]));
    (
        0..4_u16,
        prop::option::of(1..3_u8),
        prop::option::of(0..3_u8),
        prop::option::of(address.clone()),
        prop::option::of(address),
        prop::option::of(0..4_u16),
    )
        .prop_map(|(priority, port, src, nw_src, nw_dst, tp_dst)| {
            let mut text = format!("priority={priority}");
            if let Some(port) = port {
                text += &format!(",in_port={port}");
            }
            if let Some(src) = src {
                text += &format!(",dl_src=02:00:00:00:00:0{src}");
            }
            if nw_src.is_some() || nw_dst.is_some() || tp_dst.is_some() {
                text += if tp_dst.is_some() { ",udp" } else { ",ip" };
            }
            if let Some((last, len)) = nw_src {
                text += &format!(",nw_src=10.0.0.{last}/{len}");
            }
            if let Some((last, len)) = nw_dst {
                text += &format!(",nw_dst=10.0.0.{last}/{len}");
            }
            if let Some(tp_dst) = tp_dst {
                text += &format!(",tp_dst={tp_dst}");
            }
            text + ",actions=drop"
        })
}

/// Returns the fields of a packet with few values.
fn key() -> impl Strategy<Value = FlowKey> {
    (1..3_u32, 0..3_u8, 0..4_u8, 0..4_u8, 0..4_u16, any::<bool>()).prop_map(
        |(port, src, nw_src, nw_dst, tp_dst, is_udp)| {
            let transport = if is_udp { format!("udp(dst={tp_dst})") } else { "icmp".to_owned() };
            let text = format!(
                "eth(src=02:00:00:00:00:0{src}) / ipv4(src=10.0.0.{nw_src},dst=10.0.0.{nw_dst}) / {transport}"
            );
            let frame = text.parse::<Stack>().expect("a stack").build();
            let mut key = FlowKey::new();
            key.read(&frame, Depth::Transport, &PipelineFields::new(PortNo(port)));
            key
        },
    )
}

/// Returns the priority of the first rule that a packet matches.
fn scan(pipeline: &Pipeline, key: &FlowKey) -> Option<u16> {
    let accepts = |rule: &&Arc<Rule>| Match::accepts(rule.matching(), key);
    let mut rules = pipeline.rules(TableId(0));
    rules.find(accepts).map(|rule| rule.priority())
}

proptest! {
    #[test]
    fn examined_bits_decide_the_rule(
        rules in prop::collection::vec(rule(), 0..12),
        packets in prop::collection::vec(key(), 2..12),
        has_tries in any::<bool>(),
    ) {
        let mut pipeline = Pipeline::new(Limits::default(), 1);
        for rule in &rules {
            let rule = flow::text::parse_flow_line(rule).expect("a rule");
            pipeline.flow_mod(&rule, Instant::START).expect("the rule is valid");
        }
        let prefixes = match has_tries {
            true => vec![KeyField::NW_DST, KeyField::NW_SRC],
            false => Vec::new(),
        };
        let classifier = StagedClassifier::new(pipeline.rules(TableId(0)), &prefixes);
        for first in &packets {
            let mut bits = KeyBits::of_key(first);
            let mut examined = KeyBits::ZERO;
            let mut packet = ClassifiedPacket { bits: &mut bits, options: first.options() };
            let found = classifier.look_up(&mut packet, &mut examined);
            prop_assert_eq!(found, scan(&pipeline, first));
            // These are always examined.
            examined.add(KeyField::ETH_TYPE, 0xffff);
            for second in &packets {
                if KeyBits::of_key(second).equals_under(&bits, &examined) {
                    prop_assert_eq!(scan(&pipeline, second), found);
                }
            }
        }
    }
}
