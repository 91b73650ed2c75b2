//! Tests of 1.0's setters in later versions.

use flow::Refusal;

use super::*;

fn translate_in(
    action: Action,
    matching: &Match,
    fidelity: Fidelity,
) -> Result<Vec<Action>, &'static str> {
    let context = EncodeContext { matching, fidelity };
    translate(&action, context, VlanTagState::of(matching))
}

fn matching(terms: &[(Field, u128)]) -> Match {
    let all: Result<_, Refusal> = terms
        .iter()
        .try_fold(Match::any(), |matching, (field, value)| {
            matching.with(*field, *value)
        });
    all.expect("legal")
}

#[test]
fn vlan_setter_pushes_tag_if_match_is_untagged() {
    let set = || Action::set(Field::VlanVid, 0x1005);
    let push = || Action::PushVlan(0x8100);
    let vid = |value| matching(&[(Field::VlanVid, value)]);
    let translated =
        |matching: &Match, fidelity| translate_in(Action::SetVlanVid(5), matching, fidelity);
    assert_eq!(
        translated(&vid(0x100a), Fidelity::Lossless),
        Ok(vec![set()])
    );
    assert_eq!(
        translated(&vid(0), Fidelity::Lossless),
        Ok(vec![push(), set()])
    );
    assert!(translated(&Match::any(), Fidelity::Lossless).is_err());
    assert_eq!(
        translated(&Match::any(), Fidelity::BestEffort),
        Ok(vec![push(), set()])
    );
    assert_eq!(
        translate_in(Action::SetVlanPcp(3), &vid(0), Fidelity::Lossless),
        Ok(vec![push(), Action::set(Field::VlanPcp, 3)])
    );
}

#[test]
fn second_vlan_setter_reuses_tag_pushed_by_first() {
    let untagged = matching(&[(Field::VlanVid, 0)]);
    let tag = VlanTagState::of(&untagged).after(&Action::SetVlanVid(5));
    assert_eq!(tag, VlanTagState::Present);
    assert_eq!(tag.after(&Action::PopVlan), VlanTagState::Unknown);
    assert_eq!(tag.after(&Action::DecIpTtl), VlanTagState::Present);
}

#[test]
fn transport_setter_follows_protocol_of_match() {
    let proto = |proto| matching(&[(Field::EthType, 0x0800), (Field::IpProto, proto)]);
    let translated =
        |matching: &Match| translate_in(Action::SetTpDst(80), matching, Fidelity::Lossless);
    let set = |field| Action::set(field, 80);
    assert_eq!(translated(&proto(6)), Ok(vec![set(Field::TcpDst)]));
    assert_eq!(translated(&proto(17)), Ok(vec![set(Field::UdpDst)]));
    assert_eq!(translated(&proto(132)), Ok(vec![set(Field::SctpDst)]));
    assert_eq!(translated(&proto(1)), Ok(vec![]), "ICMP has none");
    let all = vec![set(Field::TcpDst), set(Field::UdpDst), set(Field::SctpDst)];
    assert_eq!(translated(&Match::any()), Ok(all));
}

#[test]
fn address_and_tos_setters_become_set_field() {
    let translated = |action| translate_in(action, &Match::any(), Fidelity::Lossless);
    assert_eq!(
        translated(Action::SetNwSrc(9)),
        Ok(vec![Action::set(Field::Ipv4Src, 9)])
    );
    assert_eq!(
        translated(Action::SetNwDst(9)),
        Ok(vec![Action::set(Field::Ipv4Dst, 9)])
    );
    assert_eq!(
        translated(Action::SetNwTos(0xb8)),
        Ok(vec![Action::set(Field::IpDscp, 0x2e)])
    );
}
