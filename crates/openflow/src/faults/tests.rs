//! Tests of the number table of errors.

mod witnesses;

use std::collections::BTreeMap;

use super::*;
use crate::codec::Writer;
use crate::message::Body as _;
use crate::message::error::ErrorMessage;

/// What another program calls our numbers.
const ELSEWHERE: &str = include_str!("../../vectors/errors.txt");

/// The bytes behind an error's header by reason and version, as the file has them.
fn elsewhere() -> BTreeMap<(String, Version), String> {
    let mut numbers = BTreeMap::new();
    let mut reason = "";
    let lines = ELSEWHERE.lines().filter(|line| !line.starts_with('#'));
    for line in lines.filter(|line| !line.is_empty()) {
        let Some(row) = line.strip_prefix("    ") else {
            reason = line;
            continue;
        };
        let mut words = row.split(' ').skip(1);
        let bytes = words.next().expect("bytes");
        for version in words {
            let number: usize = version[2..].parse().expect("a version");
            let key = (reason.to_owned(), Version::ALL[number]);
            assert_eq!(numbers.insert(key, bytes.to_owned()), None, "{line}");
        }
    }
    numbers
}

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
            let code = ErrorCode::of(row.refusal, version);
            assert_eq!(code.refusal(version), Some(row.refusal), "{version}");
        }
    }
}

#[test]
fn a_stand_in_is_never_an_unknown_type() {
    // The last type of each (OF 1.0.1, 5.4.4; OF 1.1.0, A.4.4; OF 1.2, A.4.4; OF 1.3.5,
    // 7.4.4; OF 1.4.1, 7.5.4; OF 1.5.1, 7.5.4).
    for version in Version::ALL {
        let last = match version {
            Version::V10 => 5,
            Version::V11 => 10,
            Version::V12 => 11,
            Version::V13 => 13,
            Version::V14 | Version::V15 => 17,
        };
        for row in &ROWS {
            match row.entry(version).code {
                ErrorCode::Plain { kind, .. } => assert!(kind <= last, "{:?}", row.refusal),
                ErrorCode::Nicira { .. } => assert!(version <= Version::V11, "{:?}", row.refusal),
                ErrorCode::Experimenter { .. } => assert!(version >= Version::V12),
            }
        }
    }
}

#[test]
fn an_exception_is_one_for_some_version_and_for_each_at_most_one() {
    for version in Version::ALL {
        for row in &ROWS {
            let count = EXCEPTIONS
                .iter()
                .filter(|exception| exception.applies(row.refusal, version))
                .count();
            assert!(count <= 1, "{:?} in {version}", row.refusal);
        }
    }
}

#[test]
fn a_reason_may_change_its_number() {
    let code = |version| ErrorCode::of(Refusal::InstructionDuplicate, version);
    assert_eq!(code(Version::V14), ErrorCode::Plain { kind: 3, code: 9 });
    assert_eq!(
        code(Version::V13),
        ErrorCode::Experimenter {
            experimenter: ONF,
            kind: 2600
        }
    );
    assert_eq!(code(Version::V11), ErrorCode::Nicira { kind: 3, code: 256 });
}

#[test]
fn numbers_that_nobody_gave_are_no_reason() {
    let code = ErrorCode::Plain { kind: 99, code: 1 };
    assert_eq!(code.refusal(Version::V13), None);
}

#[test]
fn another_program_knows_each_number_by_the_name_of_its_reason() {
    let mut elsewhere = elsewhere();
    for version in Version::ALL {
        for row in ROWS.iter().filter(|row| row.entry(version).own) {
            let mut bytes = Vec::new();
            let error = ErrorMessage::new(row.refusal, version, Vec::new());
            let mut w = Writer::new(&mut bytes, version.into());
            error.encode(&mut w).expect("errors are in all versions");
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let key = (format!("{:?}", row.refusal), version);
            assert_eq!(elsewhere.remove(&key), Some(hex), "{key:?}");
        }
    }
    assert_eq!(elsewhere, BTreeMap::new(), "numbers that we do not have");
}
