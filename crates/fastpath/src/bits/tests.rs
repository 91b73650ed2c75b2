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
    for (place, rule) in rules.iter().enumerate() {
        let values = crate::lanes::Conditions::of(rule.matching()).values;
        assert_eq!(bits.find(&values, |_| true), Some(place));
        assert_eq!(bits.find(&values, |other| other != place), None);
    }
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
