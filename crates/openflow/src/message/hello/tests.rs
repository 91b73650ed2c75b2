//! Tests of the hello.

use super::*;

fn read(highest: u8, body: &[u8]) -> Hello {
    let mut r = Reader::new(body, Dialect::new(Version::V13));
    let hello = Hello::decode(highest, &mut r);
    assert!(r.is_empty(), "all bytes are consumed");
    hello
}

const BITMAP: [u8; 8] = [0, 1, 0, 8, 0, 0, 0, 0x12];

#[test]
fn unknown_hello_elements_are_skipped() {
    let known = Some(VersionSet(0x12));
    let unknown = [0, 9, 0, 5, 0xff, 0, 0, 0];
    assert_eq!(read(4, &BITMAP).versions, known);
    assert_eq!(read(4, &[unknown, BITMAP].concat()).versions, known);
    assert_eq!(read(4, &[BITMAP, unknown].concat()).versions, known);
}

#[test]
fn malformed_hello_elements_are_ignored() {
    for body in [
        &[][..],
        &[0],
        &[0, 1, 0, 0],
        &[0, 1, 0, 3, 0, 0],
        &[0, 1, 0, 4],
        &[0, 1, 0, 9, 0, 0, 0, 0],
        &[0xff; 64],
        &[0, 9, 0, 6, 1, 2],
    ] {
        assert_eq!(read(1, body).versions, None, "{body:?}");
    }
}

#[test]
fn first_bitmap_word_is_used() {
    let second = [0, 1, 0, 8, 0, 0, 0, 0x40];
    assert_eq!(
        read(4, &[BITMAP, second].concat()).versions,
        Some(VersionSet(0x12))
    );
    let long = [0, 1, 0, 12, 0, 0, 0, 0x12, 0xff, 0xff, 0xff, 0xff];
    assert_eq!(read(4, &long).versions, Some(VersionSet(0x12)));
}

#[test]
fn hello_without_bitmap_means_all_versions_up_to_highest() {
    let supported = |highest| {
        let versions = None;
        Hello { highest, versions }.supported()
    };
    assert_eq!(supported(0), VersionSet(0));
    assert_eq!(supported(1), VersionSet(0b10));
    assert_eq!(supported(4), VersionSet(0b1_1110));
    assert_eq!(supported(0x97), VersionSet(!1));
}
