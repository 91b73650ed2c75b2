//! Tests of 1.0's setters in later versions.

use flow::Refusal;

use super::*;

fn modern_in(action: Action, matching: &Match, faith: Faith) -> Result<Vec<Action>, &'static str> {
    let context = Context { matching, faith };
    modern(&action, context, Tag::of(matching))
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
fn a_tag_is_pushed_where_the_match_says_that_there_is_none() {
    let set = || Action::set(Field::VlanVid, 0x1005);
    let push = || Action::PushVlan(0x8100);
    let vid = |value| matching(&[(Field::VlanVid, value)]);
    let told = |matching: &Match, faith| modern_in(Action::SetVlanVid(5), matching, faith);
    assert_eq!(told(&vid(0x100a), Faith::Exact), Ok(vec![set()]));
    assert_eq!(told(&vid(0), Faith::Exact), Ok(vec![push(), set()]));
    assert!(told(&Match::any(), Faith::Exact).is_err());
    assert_eq!(told(&Match::any(), Faith::Good), Ok(vec![push(), set()]));
    assert_eq!(
        modern_in(Action::SetVlanPcp(3), &vid(0), Faith::Exact),
        Ok(vec![push(), Action::set(Field::VlanPcp, 3)])
    );
}

#[test]
fn the_second_setter_of_a_list_finds_the_tag_that_the_first_pushed() {
    let untagged = matching(&[(Field::VlanVid, 0)]);
    let tag = Tag::of(&untagged).after(&Action::SetVlanVid(5));
    assert_eq!(tag, Tag::There);
    assert_eq!(tag.after(&Action::PopVlan), Tag::Unknown);
    assert_eq!(tag.after(&Action::DecIpTtl), Tag::There);
}

#[test]
fn the_port_of_the_protocol_that_the_match_names_is_set() {
    let proto = |proto| matching(&[(Field::EthType, 0x0800), (Field::IpProto, proto)]);
    let told = |matching: &Match| modern_in(Action::SetTpDst(80), matching, Faith::Exact);
    let set = |field| Action::set(field, 80);
    assert_eq!(told(&proto(6)), Ok(vec![set(Field::TcpDst)]));
    assert_eq!(told(&proto(17)), Ok(vec![set(Field::UdpDst)]));
    assert_eq!(told(&proto(132)), Ok(vec![set(Field::SctpDst)]));
    assert_eq!(told(&proto(1)), Ok(vec![]), "ICMP has none");
    let all = vec![set(Field::TcpDst), set(Field::UdpDst), set(Field::SctpDst)];
    assert_eq!(told(&Match::any()), Ok(all));
}

#[test]
fn addresses_and_type_of_service_are_set_as_fields() {
    let told = |action| modern_in(action, &Match::any(), Faith::Exact);
    assert_eq!(
        told(Action::SetNwSrc(9)),
        Ok(vec![Action::set(Field::Ipv4Src, 9)])
    );
    assert_eq!(
        told(Action::SetNwDst(9)),
        Ok(vec![Action::set(Field::Ipv4Dst, 9)])
    );
    assert_eq!(
        told(Action::SetNwTos(0xb8)),
        Ok(vec![Action::set(Field::IpDscp, 0x2e)])
    );
}
