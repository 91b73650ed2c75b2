//! Tests of the table of error numbers.

mod coverage;

use std::collections::BTreeMap;

use super::*;
use crate::codec::Writer;
use crate::message::WireFormat as _;
use crate::message::error::ErrorMessage;

/// The numbers of another implementation.
const RECORDED_CODES: &str = include_str!("../../vectors/errors.txt");

/// The bytes after an error's header by refusal and version, from the file.
fn recorded() -> BTreeMap<(String, Version), String> {
    let mut numbers = BTreeMap::new();
    let mut reason = "";
    let lines = RECORDED_CODES.lines().filter(|line| !line.starts_with('#'));
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
fn rows_are_in_order_of_refusal_enum() {
    for (index, row) in ERROR_CODES.iter().enumerate() {
        assert_eq!(row.refusal as usize, index, "{:?}", row.refusal);
    }
}

#[test]
fn exact_code_maps_back_to_refusal() {
    for version in Version::ALL {
        for row in ERROR_CODES.iter().filter(|row| row.entry(version).is_exact) {
            let code = ErrorCode::of(row.refusal, version);
            assert_eq!(code.refusal(version), Some(row.refusal), "{version}");
        }
    }
}

#[test]
fn substitute_code_uses_type_of_its_version() {
    // The last type of each version (OF 1.0.1, 5.4.4; OF 1.1.0, A.4.4; OF 1.2, A.4.4; OF 1.3.5,
    // 7.4.4; OF 1.4.1, 7.5.4; OF 1.5.1, 7.5.4).
    for version in Version::ALL {
        let last = match version {
            Version::V10 => 5,
            Version::V11 => 10,
            Version::V12 => 11,
            Version::V13 => 13,
            Version::V14 | Version::V15 => 17,
        };
        for row in &ERROR_CODES {
            match row.entry(version).code {
                ErrorCode::Plain { kind, .. } => assert!(kind <= last, "{:?}", row.refusal),
                ErrorCode::Nicira { .. } => assert!(version <= Version::V11, "{:?}", row.refusal),
                ErrorCode::Experimenter { .. } => assert!(version >= Version::V12),
            }
        }
    }
}

#[test]
fn exceptions_do_not_overlap_per_version() {
    for version in Version::ALL {
        for row in &ERROR_CODES {
            let count = EXCEPTIONS
                .iter()
                .filter(|exception| exception.applies(row.refusal, version))
                .count();
            assert!(count <= 1, "{:?} in {version}", row.refusal);
        }
    }
}

#[test]
fn refusal_code_changes_between_versions() {
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
fn unassigned_code_has_no_refusal() {
    let code = ErrorCode::Plain { kind: 99, code: 1 };
    assert_eq!(code.refusal(Version::V13), None);
}

#[test]
fn ovs_ofctl_names_exact_codes_like_our_refusals() {
    let mut recorded = recorded();
    for version in Version::ALL {
        for row in ERROR_CODES.iter().filter(|row| row.entry(version).is_exact) {
            let mut bytes = Vec::new();
            let error = ErrorMessage::new(row.refusal, version, Vec::new());
            let mut w = Writer::new(&mut bytes, version.into());
            error.encode(&mut w).expect("errors are in all versions");
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let key = (format!("{:?}", row.refusal), version);
            assert_eq!(recorded.remove(&key), Some(hex), "{key:?}");
        }
    }
    assert_eq!(recorded, BTreeMap::new(), "numbers missing in the table");
}
