//! For any rules, the form returns the same rule as a scan of all rules, among the visible ones.

use packet::build::Stack;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::testing::{keys_of, rules};

/// Nested prefixes, and masks that are no prefix.
const SOURCES: &[&str] = &[
    "",
    "",
    ",nw_src=10.0.0.0/8",
    ",nw_src=10.0.0.0/9",
    ",nw_src=10.1.0.0/16",
    ",nw_src=10.1.2.0/24",
    ",nw_src=10.1.2.3",
    ",nw_src=10.255.255.255",
    ",nw_src=0.0.0.0/1",
    ",nw_src=255.255.255.255",
    ",nw_src=10.0.2.0/255.0.255.0",
    ",nw_src=0.0.0.3/0.0.0.3",
];
const TARGETS: &[&str] = &[
    "",
    ",nw_dst=10.1.0.0/16",
    ",nw_dst=10.1.2.3",
    ",nw_dst=128.0.0.0/1",
];
const PORTS: &[&str] = &[
    "ip",
    "tcp",
    "udp",
    "tcp,tp_dst=80",
    "tcp,tp_dst=0x400/0xfc00",
    "tcp,tp_dst=0x800/0xf800",
    "tcp,tp_dst=0x1/0x1",
    "udp,tp_dst=0x50/0xf0f0",
    "tcp,tp_src=1000",
    "tcp,tcp_flags=+syn-ack",
];
const ADDRESSES: &[&str] = &[
    "0.0.0.1",
    "10.0.2.7",
    "10.1.2.2",
    "10.1.2.3",
    "10.1.2.4",
    "10.128.0.0",
    "10.255.255.255",
    "11.0.0.0",
    "127.255.255.255",
    "128.0.0.0",
    "255.255.255.255",
];

fn rule() -> impl Strategy<Value = String> {
    let words = (0..40_u16, select(PORTS), select(SOURCES), select(TARGETS));
    words.prop_map(|(priority, ports, source, target)| {
        format!("priority={priority},{ports}{source}{target},actions=drop")
    })
}

fn frame() -> impl Strategy<Value = String> {
    let ports = select(&[80_u16, 81, 1023, 1024, 2047, 2048, 65535][..]);
    let words = (
        select(ADDRESSES),
        select(ADDRESSES),
        ports,
        select(&["tcp(src=1000,", "udp("][..]),
    );
    words.prop_map(|(source, target, port, transport)| {
        format!("eth / ipv4(src={source},dst={target}) / {transport}dst={port})")
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn vectors_find_same_rule_as_scan(
        lines in vec(rule(), 1..200),
        frames in vec(frame(), 40),
        hidden in vec(any::<bool>(), 200),
    ) {
        let rules = rules(&lines);
        let vectors = BitVector::of(&rules).expect("the rules are few");
        let is_visible = |rank: usize| !hidden[rank];
        for text in &frames {
            let frame = text.parse::<Stack>().expect("a stack").build();
            let (packed, key) = keys_of(&frame);
            let mut visible = (0..rules.len()).filter(|rank| is_visible(*rank));
            let expected = visible.find(|rank| rules[*rank].matching().accepts(&key));
            prop_assert_eq!(vectors.find(&packed, is_visible), expected, "{}", text);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Batches, sparse ones included.
    #[test]
    fn vectors_find_same_rules_for_batch_as_scan(
        mut lines in vec(rule(), 1..1500),
        most in select(&[20_usize, 300, 1500][..]),
        frames in vec(frame(), LOOKUP_BATCH),
        packets in prop_oneof![Just(u32::MAX), any::<u32>(), select(&[0, 1, 1 << 31, 0x8010_0000][..])],
    ) {
        lines.truncate(most);
        let rules = rules(&lines);
        let vectors = BitVector::of(&rules).expect("the rules are few");
        let packets = BatchMask::from_bits(packets);
        let keys = |text: &String| keys_of(&text.parse::<Stack>().expect("a stack").build());
        let frames: Vec<_> = frames.iter().map(keys).collect();
        let keys = std::array::from_fn(|index| frames[index].0.clone());
        let found = vectors.likely_ranks(&keys, packets);
        for (index, (_, key)) in frames.iter().enumerate() {
            let mut ranks = (0..rules.len()).filter(|_| packets.contains(index));
            let expected = ranks.find(|rank| rules[*rank].matching().accepts(key));
            let expected = expected.map_or(NO_RULE, |rank| u32::try_from(rank).expect("few"));
            prop_assert_eq!(found[index], expected, "packet {}", index);
        }
    }
}

/// Asserts that each rule is found by its own values, in a batch and alone.
fn assert_each_found(rules: &[Arc<Rule>], vectors: &BitVector) {
    let values = |rule: &Arc<Rule>| crate::packed_key::PackedMatch::of(rule.matching()).values;
    for (number, rules) in rules.chunks(LOOKUP_BATCH).enumerate() {
        let key = |index: usize| values(&rules[index % rules.len()]);
        let found = vectors.likely_ranks(&std::array::from_fn(key), BatchMask::ALL);
        for (index, found) in found.into_iter().enumerate() {
            let expected = number * LOOKUP_BATCH + index % rules.len();
            assert_eq!(usize::try_from(found), Ok(expected));
        }
    }
    for (rank, rule) in rules.iter().enumerate() {
        assert_eq!(vectors.find(&values(rule), |_| true), Some(rank));
        assert_eq!(vectors.find(&values(rule), |other| other != rank), None);
    }
}

/// A few rules with so many fields and values that the fields cannot be multiplied.
#[test]
fn rules_of_many_fields_are_found_in_dense_and_aggregated_vectors() {
    for fields in [1, 3, 4, 7, 8, 12] {
        let line = |n: u32| {
            let fields = (0..fields).map(|field| format!(",reg{field}={}", n + field));
            let fields: String = fields.collect();
            format!("priority={n},ip{fields},actions=drop")
        };
        let lines: Vec<_> = (0..300).map(line).collect();
        let rules = rules(&lines);
        let vectors = BitVector::of(&rules).expect("the rules are within the limits");
        let is_aggregated = matches!(vectors.vectors, VectorForm::Aggregated(_));
        assert_eq!(is_aggregated, fields > 8, "{fields}");
        assert_each_found(&rules, &vectors);
    }
}

/// Rules with the same match that differ in their priorities.
#[test]
fn rules_without_dimension_are_tried_in_order() {
    for count in [20, 300, 2000] {
        let line = |n: usize| format!("priority={n},tcp,tp_dst=80,actions=drop");
        let lines: Vec<_> = (0..count).map(line).collect();
        let rules = rules(&lines);
        let vectors = BitVector::of(&rules).expect("the rules are within the limits");
        let values = crate::packed_key::PackedMatch::of(rules[0].matching()).values;
        for first in [0, 1, 17, count - 1, count] {
            let expected = Some(first).filter(|first| *first < count);
            assert_eq!(vectors.find(&values, |rank| rank >= first), expected);
        }
        let keys: [PackedKey; LOOKUP_BATCH] = std::array::from_fn(|_| values.clone());
        assert_eq!(
            vectors.likely_ranks(&keys, BatchMask::ALL),
            [0; LOOKUP_BATCH]
        );
        let others = std::array::from_fn(|_| PackedKey::new());
        assert_eq!(
            vectors.likely_ranks(&others, BatchMask::ALL),
            [NO_RULE; LOOKUP_BATCH]
        );
    }
}

/// So many rules that summaries have several words.
#[test]
fn thousands_of_rules_are_found_by_their_own_values() {
    let line = |n: u32| {
        let (upper, lower) = (n / 251, n % 251);
        let bits = 20 + n % 13;
        format!("priority={n},tcp,nw_src=10.{upper}.{lower}.128/{bits},tp_dst={n},actions=drop")
    };
    let lines: Vec<_> = (0..9000).map(line).collect();
    let rules = rules(&lines);
    let vectors = BitVector::of(&rules).expect("the rules are within the limits");
    assert_each_found(&rules, &vectors);
    let VectorForm::Aggregated(aggregated) = &vectors.vectors else {
        panic!("dense vectors have at most {} rules", dense::RULES_MAX);
    };
    assert!(aggregated.extent().1 < 16, "{:?}", aggregated.extent());
    assert!(
        vectors.bytes() < 200 * rules.len(),
        "{} bytes",
        vectors.bytes()
    );
}

#[test]
fn rules_beyond_limit_are_refused() {
    let line = |n: usize| format!("tcp,tp_src={},tp_dst={},actions=drop", n % 200, n / 200);
    let lines: Vec<_> = (0..=RULES_MAX).map(line).collect();
    assert_eq!(BitVector::of(&rules(&lines)).err(), Some(FormLimit));
}
