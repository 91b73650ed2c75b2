//! Tests that every message and every multipart type of every version has a vector from another
//! program. The tests of the vectors are in `tests/vectors`.

use std::fs;
use std::path::Path;

use super::{
    EXPERIMENTER_MESSAGE, EXPERIMENTER_MULTIPART, MESSAGES, MULTIPARTS, MessageKind, MultipartKind,
    TypeNumber,
};
use crate::version::Version;

/// The type of a message and its multipart type.
type VectorKind = (MessageKind, Option<MultipartKind>);

/// Messages that no available program writes, with the reason.
#[rustfmt::skip]
const UNWRITTEN: &[(VectorKind, &[Version], &str)] = { use Version::*; &[
    ((MessageKind::RoleRequest, None), &[V11],
        "ovs-ofctl requests no role, and os-ken does not support 1.1; the reply is Open vSwitch's"),
    ((MessageKind::SetAsync, None), &[V11, V12],
        "ovs-ofctl never sends it, and os-ken has Nicira's in 1.0 only"),
    ((MessageKind::ControllerId, None), &[V11, V12, V13, V14, V15],
        "ovs-ofctl never sends it, and os-ken has Nicira's in 1.0 only"),
    ((MessageKind::TlvTableMod, None), &[V11],
        "ovs-ofctl does not send it in 1.1, and os-ken does not support it"),
    ((MessageKind::MultipartReply, Some(MultipartKind::BundleFeatures)), &[V15],
        "Open vSwitch refuses the request, os-ken decodes the reply but does not encode it, and \
         libofproto's has invalid times"),
] };

/// The bytes of all valid vectors of a version.
fn vectors(version: Version) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("vectors")
        .join(format!("v1{}", version as u8));
    let files = fs::read_dir(folder).expect("the folder is there");
    let text = |file: std::io::Result<fs::DirEntry>| {
        fs::read_to_string(file.expect("listed").path()).expect("readable")
    };
    let texts: Vec<String> = files.map(text).collect();
    let vectors = texts.iter().flat_map(|text| text.split("\n-- ").skip(1));
    let sound = vectors.filter(|vector| !vector.lines().any(|line| line.starts_with('!')));
    sound.map(bytes).collect()
}

fn bytes(vector: &str) -> Vec<u8> {
    let lines = vector.lines().filter_map(|line| line.strip_prefix("| "));
    let digits: String = lines.flat_map(str::split_whitespace).collect();
    let pairs = (0..digits.len() / 2).map(|at| &digits[2 * at..2 * at + 2]);
    pairs
        .map(|pair| u8::from_str_radix(pair, 16).expect("hexadecimal"))
        .collect()
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The type of a vector according to the tables.
fn kind_of(bytes: &[u8], version: Version) -> VectorKind {
    let number = match u16::from(bytes[1]) {
        EXPERIMENTER_MESSAGE => {
            TypeNumber::of(word(bytes, 8), word(bytes, 12)).expect("a known experimenter")
        }
        number => TypeNumber::Standard(number),
    };
    let kind = super::MessageKindRow::by_number(number, version)
        .expect("a known message")
        .kind;
    let part = matches!(
        kind,
        MessageKind::MultipartRequest | MessageKind::MultipartReply
    )
    .then(|| {
        // 1.0 has no padding after the flags.
        let at = if version == Version::V10 { 12 } else { 16 };
        let number = match half(bytes, 8) {
            EXPERIMENTER_MULTIPART => TypeNumber::of(word(bytes, at), word(bytes, at + 4)),
            number => Some(TypeNumber::Standard(number)),
        };
        let row =
            super::MultipartKindRow::by_number(number.expect("a known experimenter"), version);
        row.expect("known statistics").kind
    });
    (kind, part)
}

/// All types of `version`.
fn all(version: Version) -> Vec<VectorKind> {
    let rows = MESSAGES
        .iter()
        .filter(|row| row.versions.contains(&version));
    let kinds = rows.map(|row| row.kind);
    let parts = MULTIPARTS
        .iter()
        .filter(|row| row.versions.contains(&version));
    let parts: Vec<_> = parts.map(|row| Some(row.kind)).collect();
    kinds
        .flat_map(|kind| match kind {
            MessageKind::MultipartRequest | MessageKind::MultipartReply => {
                parts.iter().map(|part| (kind, *part)).collect()
            }
            kind => vec![(kind, None)],
        })
        .collect()
}

#[test]
fn messages_of_all_versions_have_foreign_vectors() {
    let mut wrong = Vec::new();
    for version in Version::ALL {
        let there: Vec<_> = vectors(version)
            .iter()
            .map(|bytes| kind_of(bytes, version))
            .collect();
        for (kind, part) in all(version) {
            let listed = UNWRITTEN.iter().any(|(unwritten, versions, why)| {
                (kind, part) == *unwritten && versions.contains(&version) && !why.is_empty()
            });
            match (there.contains(&(kind, part)), listed) {
                (false, false) => wrong.push(format!("{version}: no vector of {kind:?} {part:?}")),
                (true, true) => wrong.push(format!(
                    "{version}: listed as unwritten, but present: {kind:?} {part:?}"
                )),
                _ => {}
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
