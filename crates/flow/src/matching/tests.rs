//! Validity, equality and representation of matches.

use crate::field::Field;
use crate::flow_key::FlowKey;
use crate::refusal::Refusal;
use crate::wide::Wide;

use super::builder::LONGEST;
use super::*;

fn tcp_port(port: u128) -> Match {
    Match::any()
        .with(Field::EthType, 0x0800)
        .and_then(|m| m.with(Field::IpProto, 6))
        .and_then(|m| m.with(Field::TcpDst, port))
        .expect("prerequisites are there")
}

#[test]
fn field_without_prerequisite_is_refused() {
    assert_eq!(
        Match::any().with(Field::TcpDst, 80),
        Err(Refusal::MatchBadPrerequisite)
    );
    assert_eq!(tcp_port(80).terms().count(), 3);
}

#[test]
fn invalid_terms_are_refused_with_specific_reason() {
    let any = Match::any;
    assert_eq!(
        any().with(Field::VlanVid, 0x2000),
        Err(Refusal::MatchBadValue)
    );
    assert_eq!(
        any().with_masked(Field::EthSrc, 3, 1),
        Err(Refusal::MatchBadWildcards)
    );
    assert_eq!(
        any().with_masked(Field::EthType, 0x0800, 0xff00),
        Err(Refusal::MatchBadMask)
    );
    assert_eq!(
        tcp_port(80).with(Field::TcpDst, 80),
        Err(Refusal::MatchDuplicateField)
    );
    let untagged = any().with(Field::VlanVid, 0).expect("legal");
    assert_eq!(
        untagged.with(Field::VlanPcp, 1),
        Err(Refusal::MatchBadPrerequisite)
    );
}

/// Match of a controller that specifies all fields of a TCP segment.
fn twelve_fields() -> Match {
    let fields = [
        (Field::InPort, 1),
        (Field::EthDst, 0x0200_0000_0002),
        (Field::EthSrc, 0x0200_0000_0001),
        (Field::EthType, 0x0800),
        (Field::VlanVid, 0x1005),
        (Field::VlanPcp, 3),
        (Field::IpDscp, 9),
        (Field::IpProto, 6),
        (Field::Ipv4Src, 0x0a00_0001),
        (Field::Ipv4Dst, 0x0a00_0002),
        (Field::TcpSrc, 1000),
        (Field::TcpDst, 80),
    ];
    let all = fields.into_iter();
    all.fold(Match::any(), |m, (field, value)| {
        m.with(field, value).expect("legal")
    })
}

/// Match on fields of IPv6 with masks that exceeds the inline bytes.
fn long() -> Match {
    let fields = [
        (Field::Metadata, 7, 0xff),
        (Field::EthType, 0x86dd, 0xffff),
        (Field::IpProto, 58, 0xff),
        (Field::Ipv6Src, 0x11, 0xffff),
        (Field::Ipv6Dst, 0x22, 0xffff),
        (Field::Icmpv6Type, 135, 0xff),
        (Field::Ipv6NdTarget, 0x33, 0xffff),
    ];
    let all = fields.into_iter();
    all.fold(Match::any(), |m, (field, value, mask)| {
        m.with_masked(field, value, mask).expect("legal")
    })
}

#[test]
fn twelve_exact_fields_are_stored_inline() {
    assert_eq!(size_of::<Match>(), 48);
    assert!(matches!(twelve_fields().packed, PackedTerms::Inline(_)));
    assert!(matches!(long().packed, PackedTerms::Boxed(_)));
}

#[test]
fn terms_round_trip() {
    let told: Vec<_> = twelve_fields().terms().collect();
    assert_eq!(told.len(), 12);
    assert!(told.is_sorted() && told.iter().all(Term::is_exact));
    assert_eq!(twelve_fields().exact(Field::TcpDst), Some(80));
    let target = Term {
        field: Field::Ipv6NdTarget,
        value: 0x33,
        mask: 0xffff,
    };
    assert_eq!(long().term(Field::Ipv6NdTarget), Some(target));
    assert_eq!(long().terms().count(), 7);
    assert!(Match::any().terms().next().is_none());
}

#[test]
fn match_is_independent_of_order_of_terms() {
    let with = |fields: [Field; 3]| {
        let mut builder = MatchBuilder::default();
        for field in fields {
            builder.add(field, 7, 0xff).expect("legal");
        }
        builder.build()
    };
    let one = with([Field::Metadata, Field::EthSrc, Field::Reg3]);
    assert_eq!(one, with([Field::Reg3, Field::Metadata, Field::EthSrc]));
    assert_eq!(one, with([Field::EthSrc, Field::Reg3, Field::Metadata]));
    assert!(Match::any() < one && one < long() && long().overlaps(&one));
}

#[test]
fn builder_capacity_holds_longest_match() {
    let all = Field::all().filter(|row| row.field < Field::FIRST_TUNNEL_OPTION);
    let longest: usize = all
        .map(|row| 1 + 2 * usize::from(row.bits.div_ceil(8)))
        .sum();
    assert!(longest <= LONGEST, "{longest} bytes");
}

#[test]
fn match_requires_all_terms() {
    let mut key = FlowKey::new();
    for term in twelve_fields().terms() {
        assert!(!twelve_fields().accepts(&key));
        key.set(term.field, term.value);
    }
    assert!(twelve_fields().accepts(&key) && Match::any().accepts(&key));
    key.set(Field::VlanPcp, 4);
    assert!(!twelve_fields().accepts(&key));
}

#[test]
fn zero_mask_is_wildcard() {
    assert_eq!(
        Match::any().with_masked(Field::EthSrc, 0, 0),
        Ok(Match::any())
    );
}

#[test]
fn match_without_a_field_keeps_the_other_terms() {
    let both = tcp_port(80).with(Field::PacketType, 0).expect("legal");
    assert_eq!(both.without(Field::PacketType), tcp_port(80));
    assert_eq!(both.without(Field::InPort), both);
    let option = Match::any()
        .with(Field::TunMetadata0, 5)
        .and_then(|m| m.with(Field::PacketType, 0))
        .expect("legal");
    let rest = option.without(Field::PacketType);
    assert_eq!(rest.terms().count(), 0);
    assert_eq!(rest.terms().options().count(), 1);
}

#[test]
fn covering_and_overlapping() {
    let net = |value, mask| {
        Match::any()
            .with(Field::EthType, 0x0800)
            .and_then(|m| m.with_masked(Field::Ipv4Dst, value, mask))
            .expect("legal")
    };
    let (eight, sixteen, other) = (
        net(0x0a00_0000, 0xff00_0000),
        net(0x0a01_0000, 0xffff_0000),
        net(0x0b00_0000, 0xff00_0000),
    );
    assert!(Match::any().covers(&eight) && eight.covers(&sixteen) && !sixteen.covers(&eight));
    assert!(eight.overlaps(&sixteen) && sixteen.overlaps(&eight) && !eight.overlaps(&other));
    assert!(eight.overlaps(&tcp_port(80)) && !eight.covers(&tcp_port(80)));
}

#[test]
fn tunnel_options_follow_all_terms() {
    let last = Field::TunMetadata63;
    let wide = Wide::ONES >> 3;
    let with = |options: &[(Field, Wide, Wide)]| {
        let mut builder = MatchBuilder::from(&tcp_port(80));
        for (field, value, mask) in options {
            builder.add_option(*field, *value, *mask).expect("once");
        }
        builder.build()
    };
    let is_there = (Field::TunMetadata7, Wide::ZERO, Wide::ZERO);
    let one = with(&[(last, wide, Wide::ONES), is_there]);
    assert_eq!(one, with(&[is_there, (last, wide, Wide::ONES)]));
    assert_eq!(MatchBuilder::from(&one).build(), one);
    assert_eq!(one.terms().count(), 3);
    let told: Vec<_> = one
        .options()
        .map(|term| (term.field, term.value, term.mask))
        .collect();
    assert_eq!(told, [is_there, (last, wide, Wide::ONES)]);
    assert!(tcp_port(80).covers(&one) && !one.covers(&tcp_port(80)) && !one.is_any());
    assert!(one.overlaps(&with(&[(last, Wide::ZERO, Wide::ONES << 989)])));
    assert!(!one.overlaps(&with(&[(last, Wide::ZERO, Wide::ONES)])));
    let mut again = MatchBuilder::from(&one);
    let twice = again.add_option(last, wide, Wide::ONES);
    assert_eq!(twice, Err(Refusal::MatchDuplicateField));
    let outside = again.add_option(Field::TunMetadata1, wide, Wide::ZERO);
    assert_eq!(outside, Err(Refusal::MatchBadWildcards));
}
