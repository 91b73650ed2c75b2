//! Tests of error messages.

use super::*;
use crate::dialect::Dialect;

fn rewritten(error: &ErrorMessage, version: Version) -> ErrorMessage {
    let mut out = Vec::new();
    let dialect = Dialect::new(version);
    error
        .encode(&mut Writer::new(&mut out, dialect))
        .expect("every version has errors");
    ErrorMessage::decode(&mut Reader::new(&out, dialect)).expect("own encoding decodes")
}

#[test]
fn error_code_forms_round_trip() {
    for (refusal, version) in [
        (Refusal::RequestBadType, Version::V10),
        (Refusal::MatchBadField, Version::V10),
        (Refusal::RequestBadType, Version::V13),
        (Refusal::InstructionDuplicate, Version::V13),
    ] {
        let error = ErrorMessage::new(refusal, version, vec![1, 2, 3]);
        let read = rewritten(&error, version);
        assert_eq!(read, error);
        assert_eq!(read.code.refusal(version), Some(refusal));
    }
}

#[test]
fn unassigned_code_round_trips() {
    let error = ErrorMessage {
        code: ErrorCode::Plain {
            kind: 77,
            code: 0xffff,
        },
        data: Vec::new(),
    };
    assert_eq!(rewritten(&error, Version::V13), error);
}

#[test]
fn foreign_vendor_error_of_1_0_stays_plain() {
    let body = [0xb0, 0xc2, 0, 0, 0, 0, 0x12, 0x34, 0, 1, 0, 2];
    let mut r = Reader::new(&body, Dialect::new(Version::V10));
    let error = ErrorMessage::decode(&mut r).expect("it is long enough");
    let code = ErrorCode::Plain {
        kind: 0xb0c2,
        code: 0,
    };
    assert_eq!(error.code, code);
    assert_eq!(error.data, body[4..]);
    assert_eq!(rewritten(&error, Version::V10), error);
}
