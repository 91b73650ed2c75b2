//! Tests with the simulated switch.

use std::collections::BTreeSet;

use base::Xid;
use openflow::Version;

use super::super::simulated::{SimulatedSwitch, SwitchFaults, assert_near, point, why_not};
use super::*;
use record::Value;

fn at(field: &str) -> Point {
    let few = point(&TUPLE_MATRIX, &[("packets", 50), ("pps", 10_000)]);
    few.with("field", Value::word(field))
        .with("with", Value::word("each"))
}

#[test]
fn field_pairs_encode_in_both_versions_and_differ() {
    for version in [Version::V10, Version::V13] {
        let mut all = BTreeSet::new();
        for (index, one) in FIELDS.into_iter().enumerate() {
            for other in FIELDS.into_iter().skip(index) {
                let is_tagged = [one, other].contains(&Field::VlanPcp);
                let rule = rule(&[one, other], &frame(is_tagged));
                all.insert(rule.matching.clone());
                let encoded = Message::FlowMod(rule).encode(Xid(1), version, &mut Vec::new());
                assert!(encoded.is_ok(), "{one:?} {other:?}: {encoded:?}");
            }
        }
        // Some of the 78 pairs are equal by their prerequisites: the Ethernet type with each IP
        // field, the protocol with each port, the VLAN ID with the VLAN priority.
        assert_eq!(all.len(), 78 - 4 - 2 - 2 - 1);
    }
}

#[test]
fn field_pair_delays_are_those_of_the_device() {
    let faults = SwitchFaults {
        forward: Duration::from_micros(70),
        ..SwitchFaults::default()
    };
    for field in ["in-port", "dl-vlan-pcp", "tp-dst"] {
        let mut rig = SimulatedSwitch::new(Version::V13, faults.clone());
        let report = measure(&at(field), &mut rig).unwrap();
        assert_near(&report, "alone_us", 72.0, 3.0);
        assert_near(&report, "refused", 0.0, 0.0);
        assert_near(&report, "lost", 0.0, 0.0);
        let cells = FIGURES[..13].iter();
        let present = cells.filter(|one| report.reading.figures.contains_key(one.name));
        assert_eq!(present.count(), 12, "{:?}", report.reading.absent);
        let own = format!("{}_us", field.replace('-', "_"));
        assert_eq!(why_not(&report, &own), "the field itself");
    }
}

#[test]
fn single_field_is_one_rule() {
    let mut rig = SimulatedSwitch::new(Version::V13, SwitchFaults::default());
    let alone = at("nw-src").with("with", Value::word("none"));
    let report = measure(&alone, &mut rig).unwrap();
    assert_near(&report, "alone_us", 12.0, 3.0);
    assert_eq!(why_not(&report, "tp_dst_us"), "pairs were not requested");
}

#[test]
fn rejected_pairs_are_absent_with_the_error() {
    // The table has room for the rule that drops other frames, and for no other.
    let faults = SwitchFaults {
        capacity: 1,
        ..SwitchFaults::default()
    };
    let mut rig = SimulatedSwitch::new(Version::V10, faults);
    let report = measure(&at("dl-src"), &mut rig).unwrap();
    assert_near(&report, "refused", 12.0, 0.0);
    assert!(why_not(&report, "alone_us").contains("FULL"), "{report:?}");
    assert!(why_not(&report, "slowest_us").contains("no frame"));
}
