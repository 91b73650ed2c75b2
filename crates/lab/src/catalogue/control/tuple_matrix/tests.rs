//! Tests with the simulated switch.

use std::collections::BTreeSet;

use base::Xid;
use openflow::Version;

use super::super::simulated::{Faults, Simulated, assert_near, point, why_not};
use super::*;
use record::Value;

fn at(field: &str) -> Point {
    let few = point(&TUPLE_MATRIX, &[("packets", 50), ("pps", 10_000)]);
    few.with("field", Value::word(field))
        .with("with", Value::word("each"))
}

#[test]
fn every_pair_can_be_said_in_both_versions_and_no_two_are_the_same() {
    for version in [Version::V10, Version::V13] {
        let mut all = BTreeSet::new();
        for (place, one) in FIELDS.into_iter().enumerate() {
            for other in FIELDS.into_iter().skip(place) {
                let is_tagged = [one, other].contains(&Field::VlanPcp);
                let rule = rule(&[one, other], &frame(is_tagged));
                all.insert(rule.matching.clone());
                let said = Message::FlowMod(rule).encode(Xid(1), version, &mut Vec::new());
                assert!(said.is_ok(), "{one:?} {other:?}: {said:?}");
            }
        }
        // Some of the 78 pairs are equal by their prerequisites: the Ethernet type with each IP
        // field, the protocol with each port, the VLAN ID with the VLAN priority.
        assert_eq!(all.len(), 78 - 4 - 2 - 2 - 1);
    }
}

#[test]
fn every_field_is_met_and_takes_what_the_device_takes() {
    let faults = Faults {
        forward: Duration::from_micros(70),
        ..Faults::default()
    };
    for field in ["in-port", "dl-vlan-pcp", "tp-dst"] {
        let mut rig = Simulated::new(Version::V13, faults.clone());
        let found = measure(&at(field), &mut rig).unwrap();
        assert_near(&found, "alone_us", 72.0, 3.0);
        assert_near(&found, "refused", 0.0, 0.0);
        assert_near(&found, "lost", 0.0, 0.0);
        let cells = FIGURES[..13].iter();
        let there = cells.filter(|one| found.reading.figures.contains_key(one.name));
        assert_eq!(there.count(), 12, "{:?}", found.reading.absent);
        let own = format!("{}_us", field.replace('-', "_"));
        assert_eq!(why_not(&found, &own), "the field itself");
    }
}

#[test]
fn a_field_alone_is_one_rule() {
    let mut rig = Simulated::new(Version::V13, Faults::default());
    let alone = at("nw-src").with("with", Value::word("none"));
    let found = measure(&alone, &mut rig).unwrap();
    assert_near(&found, "alone_us", 12.0, 3.0);
    assert_eq!(why_not(&found, "tp_dst_us"), "pairs were not asked for");
}

#[test]
fn a_device_that_refuses_them_leaves_cells_with_its_words() {
    // The table has room for the rule that drops other frames, and for no other.
    let faults = Faults {
        capacity: 1,
        ..Faults::default()
    };
    let mut rig = Simulated::new(Version::V10, faults);
    let found = measure(&at("dl-src"), &mut rig).unwrap();
    assert_near(&found, "refused", 12.0, 0.0);
    assert!(why_not(&found, "alone_us").contains("FULL"), "{found:?}");
    assert!(why_not(&found, "slowest_us").contains("no frame"));
}
