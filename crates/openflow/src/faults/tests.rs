//! Tests of the number table of errors.

use super::*;

#[test]
fn rows_stand_in_the_order_of_the_enum() {
    for (index, row) in ROWS.iter().enumerate() {
        assert_eq!(row.refusal as usize, index, "{:?}", row.refusal);
    }
}

#[test]
fn a_number_of_its_own_leads_back_to_the_reason() {
    for version in Version::ALL {
        for row in ROWS.iter().filter(|row| row.entry(version).own) {
            let fault = Fault::of(row.refusal, version);
            assert_eq!(fault.refusal(version), Some(row.refusal), "{version}");
        }
    }
}

#[test]
fn a_stand_in_is_never_an_unknown_type() {
    // Types 0 to 5 in 1.0, 0 to 13 in 1.3 (OF 1.0.1, 5.4.4; OF 1.3.5, 7.4.4).
    for version in Version::ALL {
        let last = match version {
            Version::V10 => 5,
            Version::V13 => 13,
        };
        for row in &ROWS {
            match row.entry(version).fault {
                Fault::Plain { kind, .. } => assert!(kind <= last, "{:?}", row.refusal),
                Fault::Nicira { .. } => assert_eq!(version, Version::V10, "{:?}", row.refusal),
                Fault::Experimenter { .. } => assert!(version >= Version::V13),
            }
        }
    }
}

#[test]
fn numbers_that_nobody_gave_are_no_reason() {
    let fault = Fault::Plain { kind: 99, code: 1 };
    assert_eq!(fault.refusal(Version::V13), None);
}
