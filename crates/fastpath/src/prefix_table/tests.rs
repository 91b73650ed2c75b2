//! For any prefixes and priorities, the form returns the same rule as a scan of all rules, among
//! the visible ones.

use packet::build::Stack;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::testing::{keys_of, rules};

/// Addresses, some of which share long prefixes.
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
    let parts = (0..6_u16, select(ADDRESSES), 1..=32_u32);
    parts.prop_map(|(priority, address, bits)| {
        let network = std::net::Ipv4Addr::from_bits(address & u32::MAX << (32 - bits));
        format!("priority={priority},tcp,nw_dst={network}/{bits},actions=drop")
    })
}

/// Family of a rule on one address.
fn family(rule: &Rule) -> PrefixFamily {
    let mut families = PrefixFamily::all_of(rule);
    families
        .find(|family| family.range.bits == 32)
        .expect("the rule matches on an address")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn prefix_table_finds_same_rule_as_scan(
        lines in vec(line(), 1..60),
        hidden in vec(any::<bool>(), 60),
    ) {
        let rules = rules(&lines);
        let family = family(&rules[0]);
        let table = PrefixTable::of(family, &rules).expect("all rules are of the family");
        let is_visible = |rank: usize| !hidden[rank];
        for (address, upper) in ADDRESSES.iter().flat_map(|address| [(address, "tcp"), (address, "udp")]) {
            let address = std::net::Ipv4Addr::from_bits(*address);
            let text = format!("eth / ipv4(dst={address}) / {upper}");
            let frame = text.parse::<Stack>().expect("a stack").build();
            let (packed, key) = keys_of(&frame);
            let mut visible = (0..rules.len()).filter(|rank| is_visible(*rank));
            let expected = visible.find(|rank| rules[*rank].matching().accepts(&key));
            prop_assert_eq!(table.find(&packed, is_visible), expected, "{}", text);
        }
    }
}

#[test]
fn rule_of_another_family_is_not_a_member() {
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
            .map(|rule| family.contains(rule))
            .collect::<Vec<_>>(),
        [true, true, false, false]
    );
    assert!(PrefixTable::of(family.clone(), &rules[..2]).is_some());
    assert!(PrefixTable::of(family, &rules).is_none());
}
