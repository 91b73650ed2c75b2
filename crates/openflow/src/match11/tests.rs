//! Tests of the match of OpenFlow 1.1.

use super::*;
use crate::dialect::Dialect;
use crate::version::Version;

const V11: Dialect = Dialect::new(Version::V11);

fn read(bytes: &[u8]) -> Result<Match, Refusal> {
    decode(&mut Reader::new(bytes, V11)).map_err(|malformed| malformed.refusal)
}

fn write(matching: &Match, fidelity: Fidelity) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    encode(matching, fidelity, &mut Writer::new(&mut out, V11))
        .ok()
        .map(|()| out)
}

/// A match of wildcards only, overwritten with these bytes.
fn patched(patches: &[(usize, &[u8])]) -> Vec<u8> {
    let mut bytes = write(&Match::any(), Fidelity::Lossless).expect("1.1 has the fields");
    for (at, patch) in patches {
        bytes[*at..*at + patch.len()].copy_from_slice(patch);
    }
    bytes
}

fn net(address: u128, mask: u128) -> Match {
    Match::any()
        .with(Field::EthType, IPV4)
        .and_then(|matching| matching.with_masked(Field::Ipv4Dst, address, mask))
        .expect("legal")
}

#[test]
fn structure_has_88_bytes_and_declares_them() {
    let bytes = patched(&[]);
    assert_eq!((bytes.len(), &bytes[..4]), (88, &[0, 0, 0, 88][..]));
    assert_eq!(read(&bytes), Ok(Match::any()));
}

#[test]
fn mask_ones_are_wildcards() {
    let bytes =
        write(&net(0x0a00_0000, 0xff00_0000), Fidelity::Lossless).expect("1.1 has the fields");
    assert_eq!(bytes[52..60], [10, 0, 0, 0, 0, 0xff, 0xff, 0xff]);
    assert_eq!(read(&bytes), Ok(net(0x0a00_0000, 0xff00_0000)));
}

#[test]
fn masks_need_not_be_prefixes() {
    let odd = net(0x0000_0001, 0x0000_0101);
    assert_eq!(
        read(&write(&odd, Fidelity::Lossless).expect("it can")),
        Ok(odd)
    );
}

#[test]
fn vlan_member_means_id_any_tag_or_no_tag() {
    let vlan = |vid: u16| {
        let open = (wild::ALL & !wild::DL_VLAN).to_be_bytes();
        read(&patched(&[(8, &open), (36, &vid.to_be_bytes())]))
    };
    let present = u128::from(VID_PRESENT);
    assert_eq!(vlan(5), Match::any().with(Field::VlanVid, present | 5));
    assert_eq!(vlan(VLAN_NONE), Match::any().with(Field::VlanVid, 0));
    assert_eq!(
        vlan(VLAN_ANY),
        Match::any().with_masked(Field::VlanVid, present, present)
    );
    assert_eq!(vlan(0x1000), Err(Refusal::MatchBadValue));
}

#[test]
fn field_without_prerequisites_is_ignored() {
    let open = (wild::ALL & !wild::NW_PROTO & !wild::TP_DST).to_be_bytes();
    let bytes = patched(&[(8, &open), (43, &[6]), (66, &[0, 80])]);
    assert_eq!(read(&bytes), Ok(Match::any()));
}

#[test]
fn wrong_match_type_or_length_is_refused() {
    assert_eq!(read(&patched(&[(0, &[0, 1])])), Err(Refusal::MatchBadType));
    assert_eq!(
        read(&patched(&[(2, &[0, 87])])),
        Err(Refusal::MatchBadLength)
    );
    assert_eq!(read(&patched(&[])[..87]), Err(Refusal::MatchBadLength));
}

#[test]
fn unsupported_terms_are_omitted_best_effort_only() {
    let ipv6 = Match::any()
        .with(Field::EthType, IPV6)
        .and_then(|matching| matching.with(Field::Ipv6Src, 1))
        .expect("legal");
    assert_eq!(write(&ipv6, Fidelity::Lossless), None);
    let decoded = read(&write(&ipv6, Fidelity::BestEffort).expect("best effort"));
    assert_eq!(decoded, Match::any().with(Field::EthType, IPV6));
}
