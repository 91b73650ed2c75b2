//! Whatever the prefixes and their priorities, the form finds what a walk finds, and of
//! those rules that are seen.

use packet::build::Stack;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::testing::{rules, seen_of};

/// Addresses of which some have many bits in common.
const ADDRESSES: &[u32] = &[
    0,
    1,
    0x0a00_0000,
    0x0a01_0000,
    0x0a01_0203,
    0x0a01_0204,
    0x0a01_02ff,
    0x0aff_ffff,
    0x0b00_0000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_fffe,
    0xffff_ffff,
];

fn line() -> impl Strategy<Value = String> {
    let words = (0..6_u16, select(ADDRESSES), 1..=32_u32);
    words.prop_map(|(priority, address, bits)| {
        let network = std::net::Ipv4Addr::from_bits(address & u32::MAX << (32 - bits));
        format!("priority={priority},tcp,nw_dst={network}/{bits},actions=drop")
    })
}

/// The family of a rule on one address.
fn family(rule: &Rule) -> Family {
    let mut families = Family::all_of(rule);
    families
        .find(|family| family.spot.bits == 32)
        .expect("an address has 32 bits")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn prefixes_find_what_a_walk_finds(
        lines in vec(line(), 1..60),
        unseen in vec(any::<bool>(), 60),
    ) {
        let rules = rules(&lines);
        let family = family(&rules[0]);
        let prefix = Prefix::of(family, &rules).expect("all are of it");
        let seen = |place: usize| !unseen[place];
        for (address, upper) in ADDRESSES.iter().flat_map(|address| [(address, "tcp"), (address, "udp")]) {
            let address = std::net::Ipv4Addr::from_bits(*address);
            let text = format!("eth / ipv4(dst={address}) / {upper}");
            let frame = text.parse::<Stack>().expect("a stack").build();
            let (lanes, key) = seen_of(&frame);
            let mut walk = (0..rules.len()).filter(|place| seen(*place));
            let wanted = walk.find(|place| rules[*place].matching().accepts(&key));
            prop_assert_eq!(prefix.find(&lanes, seen), wanted, "{}", text);
        }
    }
}

#[test]
fn rules_of_another_family_are_none_of_this() {
    let lines = [
        "ip,nw_dst=10.0.0.0/8",
        "ip,nw_dst=10.1.0.0/16",
        "tcp,nw_dst=10.1.0.0/24",
        "ip,nw_src=10.0.0.0/8",
    ];
    let rules = rules(&lines.map(|line| format!("{line},actions=drop")));
    let family = family(&rules[0]);
    assert_eq!(
        rules
            .iter()
            .map(|rule| family.has(rule))
            .collect::<Vec<_>>(),
        [true, true, false, false]
    );
    assert!(Prefix::of(family.clone(), &rules[..2]).is_some());
    assert!(Prefix::of(family, &rules).is_none());
}
