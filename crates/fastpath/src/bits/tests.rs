//! Whatever the rules, the form finds what a walk along them finds, and of those that are
//! seen.

use packet::build::Stack;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::testing::{rules, seen_of};

/// Addresses within each other, and such as no prefix tells apart.
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
    fn vectors_find_what_a_walk_finds(
        lines in vec(rule(), 1..200),
        frames in vec(frame(), 40),
        unseen in vec(any::<bool>(), 200),
    ) {
        let rules = rules(&lines);
        let bits = Bits::of(&rules).expect("they are few");
        let seen = |place: usize| !unseen[place];
        for text in &frames {
            let frame = text.parse::<Stack>().expect("a stack").build();
            let (lanes, key) = seen_of(&frame);
            let mut walk = (0..rules.len()).filter(|place| seen(*place));
            let wanted = walk.find(|place| rules[*place].matching().accepts(&key));
            prop_assert_eq!(bits.find(&lanes, seen), wanted, "{}", text);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Frames of a group together, few among many of them too.
    #[test]
    fn vectors_find_of_a_group_what_a_walk_finds(
        mut lines in vec(rule(), 1..1500),
        most in select(&[20_usize, 300, 1500][..]),
        frames in vec(frame(), AHEAD),
        of in prop_oneof![Just(u32::MAX), any::<u32>(), select(&[0, 1, 1 << 31, 0x8010_0000][..])],
    ) {
        lines.truncate(most);
        let rules = rules(&lines);
        let bits = Bits::of(&rules).expect("they are few");
        let of = Places::of_bits(of);
        let seen = |text: &String| seen_of(&text.parse::<Stack>().expect("a stack").build());
        let frames: Vec<_> = frames.iter().map(seen).collect();
        let lanes = std::array::from_fn(|place| frames[place].0.clone());
        let found = bits.likely_each(&lanes, of);
        for (place, (_, key)) in frames.iter().enumerate() {
            let mut walk = (0..rules.len()).filter(|_| of.have(place));
            let wanted = walk.find(|place| rules[*place].matching().accepts(key));
            let wanted = wanted.map_or(NONE, |wanted| u32::try_from(wanted).expect("few"));
            prop_assert_eq!(found[place], wanted, "place {}", place);
        }
    }
}

/// Each rule is found by its own values, alone and among others.
fn check_each(rules: &[Arc<Rule>], bits: &Bits) {
    let values = |rule: &Arc<Rule>| crate::lanes::Conditions::of(rule.matching()).values;
    for (number, rules) in rules.chunks(AHEAD).enumerate() {
        let each = |place: usize| values(&rules[place % rules.len()]);
        let found = bits.likely_each(&std::array::from_fn(each), Places::ALL);
        for (place, found) in found.into_iter().enumerate() {
            let wanted = number * AHEAD + place % rules.len();
            assert_eq!(usize::try_from(found), Ok(wanted));
        }
    }
    for (place, rule) in rules.iter().enumerate() {
        assert_eq!(bits.find(&values(rule), |_| true), Some(place));
        assert_eq!(bits.find(&values(rule), |other| other != place), None);
    }
}

/// Few rules, of so many fields with so many values that they cannot be joined.
#[test]
fn rules_of_many_fields_are_found_whatever_their_vectors() {
    for fields in [1, 3, 4, 7, 8, 12] {
        let line = |n: u32| {
            let fields = (0..fields).map(|field| format!(",reg{field}={}", n + field));
            let fields: String = fields.collect();
            format!("priority={n},ip{fields},actions=drop")
        };
        let lines: Vec<_> = (0..300).map(line).collect();
        let rules = rules(&lines);
        let bits = Bits::of(&rules).expect("they fit");
        let is_sparse = matches!(bits.vectors, Vectors::Sparse(_));
        assert_eq!(is_sparse, fields > 8, "{fields}");
        check_each(&rules, &bits);
    }
}

/// All ask for the same, and differ by their priorities.
#[test]
fn rules_without_a_dimension_are_tried_in_order() {
    for count in [20, 300, 2000] {
        let line = |n: usize| format!("priority={n},tcp,tp_dst=80,actions=drop");
        let lines: Vec<_> = (0..count).map(line).collect();
        let rules = rules(&lines);
        let bits = Bits::of(&rules).expect("they fit");
        let values = crate::lanes::Conditions::of(rules[0].matching()).values;
        for first in [0, 1, 17, count - 1, count] {
            let wanted = Some(first).filter(|first| *first < count);
            assert_eq!(bits.find(&values, |place| place >= first), wanted);
        }
        let each: [Lanes; AHEAD] = std::array::from_fn(|_| values.clone());
        assert_eq!(bits.likely_each(&each, Places::ALL), [0; AHEAD]);
        let none = std::array::from_fn(|_| Lanes::new());
        assert_eq!(bits.likely_each(&none, Places::ALL), [NONE; AHEAD]);
    }
}

/// Enough that summaries have several words.
#[test]
fn thousands_of_rules_are_found_each_by_its_own_values() {
    let line = |n: u32| {
        let (upper, lower) = (n / 251, n % 251);
        let bits = 20 + n % 13;
        format!("priority={n},tcp,nw_src=10.{upper}.{lower}.128/{bits},tp_dst={n},actions=drop")
    };
    let lines: Vec<_> = (0..9000).map(line).collect();
    let rules = rules(&lines);
    let bits = Bits::of(&rules).expect("they fit");
    check_each(&rules, &bits);
    let Vectors::Sparse(sparse) = &bits.vectors else {
        panic!("they are many");
    };
    assert!(sparse.extent().1 < 16, "{:?}", sparse.extent());
    assert!(bits.bytes() < 200 * rules.len(), "{}", bits.bytes());
}

#[test]
fn too_many_rules_do_not_fit() {
    let line = |n: usize| format!("tcp,tp_src={},tp_dst={},actions=drop", n % 200, n / 200);
    let lines: Vec<_> = (0..=RULES_MAX).map(line).collect();
    assert_eq!(Bits::of(&rules(&lines)).err(), Some(Unfit));
}
