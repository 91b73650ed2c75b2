//! Tests of OXM and NXM matches.

use flow::field::Maskable;

use super::*;
use crate::dialect::Dialect;

const V10: Dialect = Dialect::new(Version::V10);
const V13: Dialect = Dialect::new(Version::V13);

fn nxm(matching: &Match) -> Vec<u8> {
    let mut out = Vec::new();
    let nxm_match = NxmMatch::of(matching.clone());
    encode_nxm_fields(&nxm_match, &mut Writer::new(&mut out, V10)).expect("NXM has the fields");
    out
}

fn read(bytes: &[u8]) -> Result<Match, Refusal> {
    decode(Reader::new(bytes, V10)).map_err(|malformed| malformed.refusal)
}

/// The match of a masked `vlan_tci`.
fn tci(value: u16, mask: u16) -> Result<Match, Refusal> {
    let [a, b] = value.to_be_bytes();
    let [c, d] = mask.to_be_bytes();
    read(&[0, 0, 9, 4, a, b, c, d])
}

fn vid(value: u128, mask: u128) -> Match {
    Match::any()
        .with_masked(Field::VlanVid, value, mask)
        .expect("legal")
}

/// The shortest match on this field, with its prerequisites.
fn least(field: Field) -> Match {
    let before: &[(Field, u128)] = match field {
        Field::InPhyPort => &[(Field::InPort, 1)],
        Field::VlanPcp => &[(Field::VlanVid, 0x1005)],
        Field::MplsLabel | Field::MplsTc | Field::MplsBos | Field::MplsTtl => {
            &[(Field::EthType, 0x8847)]
        }
        Field::PbbIsid | Field::PbbUca => &[(Field::EthType, 0x88e7)],
        Field::ArpOp | Field::ArpSpa | Field::ArpTpa | Field::ArpSha | Field::ArpTha => {
            &[(Field::EthType, 0x0806)]
        }
        Field::IpDscp
        | Field::IpEcn
        | Field::IpProto
        | Field::IpTtl
        | Field::IpFrag
        | Field::Ipv4Src
        | Field::Ipv4Dst => &[(Field::EthType, 0x0800)],
        Field::Ipv6Src | Field::Ipv6Dst | Field::Ipv6Flabel | Field::Ipv6Exthdr => {
            &[(Field::EthType, 0x86dd)]
        }
        Field::TcpSrc | Field::TcpDst | Field::TcpFlags => {
            &[(Field::EthType, 0x0800), (Field::IpProto, 6)]
        }
        Field::UdpSrc | Field::UdpDst => &[(Field::EthType, 0x0800), (Field::IpProto, 17)],
        Field::SctpSrc | Field::SctpDst => &[(Field::EthType, 0x0800), (Field::IpProto, 132)],
        Field::Icmpv4Type | Field::Icmpv4Code => &[(Field::EthType, 0x0800), (Field::IpProto, 1)],
        Field::Icmpv6Type | Field::Icmpv6Code => &[(Field::EthType, 0x86dd), (Field::IpProto, 58)],
        Field::NshFlags
        | Field::NshTtl
        | Field::NshMdtype
        | Field::NshNp
        | Field::NshSpi
        | Field::NshSi
        | Field::NshC1
        | Field::NshC2
        | Field::NshC3
        | Field::NshC4 => &[(Field::EthType, 0x894f)],
        Field::CtNwProto | Field::CtNwSrc | Field::CtNwDst | Field::CtTpSrc | Field::CtTpDst => {
            &[(Field::EthType, 0x0800)]
        }
        Field::CtIpv6Src | Field::CtIpv6Dst => &[(Field::EthType, 0x86dd)],
        Field::Ipv6NdTarget | Field::Ipv6NdSll | Field::NdReserved | Field::NdOptionsType => &[
            (Field::EthType, 0x86dd),
            (Field::IpProto, 58),
            (Field::Icmpv6Type, 135),
        ],
        Field::Ipv6NdTll => &[
            (Field::EthType, 0x86dd),
            (Field::IpProto, 58),
            (Field::Icmpv6Type, 136),
        ],
        _ => &[],
    };
    before
        .iter()
        .try_fold(Match::any(), |matching, (field, value)| {
            matching.with(*field, *value)
        })
        .expect("the prerequisites of the prerequisites are there")
}

#[test]
fn fields_round_trip_exact_and_masked() {
    for row in Field::all().filter(|row| row.field.view().is_none()) {
        let full = row.field.full_mask();
        let masks = match row.maskable {
            Maskable::No => vec![full],
            Maskable::Any => vec![full, full & !1, full ^ (full >> 1)],
        };
        for mask in masks {
            let matching = least(row.field)
                .with_masked(row.field, full & mask, mask)
                .unwrap_or_else(|error| panic!("{}: {error}", row.name));
            let mut out = Vec::new();
            encode_structure(&matching, &mut Writer::new(&mut out, V13))
                .expect("OXM has the fields");
            let mut r = Reader::new(&out, V13);
            assert_eq!(
                decode_structure(&mut r),
                Ok(matching.clone()),
                "{}",
                row.name
            );
            assert!(r.is_empty());
            // An ingress port of 32 ones is OFPP_NONE in 16.
            assert_eq!(read(&nxm(&matching)), Ok(matching), "{}", row.name);
        }
    }
}

#[test]
fn vlan_tci_splits_into_vid_and_pcp() {
    let pcp = |matching: Match, pcp| matching.with(Field::VlanPcp, pcp).expect("there is a tag");
    assert_eq!(tci(0, 0), Ok(Match::any()));
    assert_eq!(tci(0, 0xffff), Ok(vid(0, 0x1fff)), "no tag");
    assert_eq!(tci(0, 0x1fff), Ok(vid(0, 0x1fff)), "no tag");
    assert_eq!(tci(0, 0x1000), Ok(vid(0, 0x1000)), "no tag");
    assert_eq!(tci(0x1000, 0x1000), Ok(vid(0x1000, 0x1000)), "any tag");
    assert_eq!(tci(0x100a, 0x1fff), Ok(vid(0x100a, 0x1fff)));
    assert_eq!(tci(0xb00a, 0xffff), Ok(pcp(vid(0x100a, 0x1fff), 5)));
    assert_eq!(tci(0x1000, 0xf000), Ok(pcp(vid(0x1000, 0x1000), 0)));
    assert_eq!(tci(0x000a, 0x0fff), Ok(vid(0x000a, 0x0fff)), "tag or not");
    // Only a present tag has a priority other than zero.
    assert_eq!(tci(0xa000, 0xe000), Ok(pcp(vid(0x1000, 0x1000), 5)));
}

#[test]
fn unsupported_vlan_tci_mask_is_refused() {
    assert_eq!(tci(0, 0xe000), Err(Refusal::MatchBadMask));
    assert_eq!(tci(0x3000, 0x3000), Err(Refusal::MatchBadMask));
    assert_eq!(tci(0x2000, 0xf000), Err(Refusal::MatchBadMask));
    assert_eq!(tci(0x1005, 0x1000), Err(Refusal::MatchBadWildcards));
}

#[test]
fn vid_and_pcp_join_into_vlan_tci() {
    assert_eq!(nxm(&vid(0, 0x1fff)), [0, 0, 8, 2, 0, 0]);
    assert_eq!(nxm(&vid(0x1005, 0x1fff)), [0, 0, 9, 4, 0x10, 5, 0x1f, 0xff]);
    let tagged = vid(0x1005, 0x1fff)
        .with(Field::VlanPcp, 3)
        .expect("there is a tag");
    assert_eq!(nxm(&tagged), [0, 0, 8, 2, 0x70, 5]);
}

#[test]
fn wide_port_number_does_not_encode_as_nxm() {
    let matching = Match::any().with(Field::InPort, 0x1_0000).expect("legal");
    let mut out = Vec::new();
    let error = encode_nxm_fields(&NxmMatch::of(matching), &mut Writer::new(&mut out, V10));
    assert!(error.is_err());
}

#[test]
fn wide_port_number_is_refused_in_openflow_1_0() {
    // OXM_OF_IN_PORT, 32 bits, in either version.
    let wide = [0x80, 0, 0, 4, 0, 1, 0, 0];
    assert_eq!(read(&wide), Err(Refusal::MatchBadValue));
    let in_v13 = decode(Reader::new(&wide, V13));
    assert_eq!(in_v13.ok(), Match::any().with(Field::InPort, 0x1_0000).ok());
    let local = [0x80, 0, 0, 4, 0xff, 0xff, 0xff, 0xfe];
    assert_eq!(read(&local), Match::any().with(Field::InPort, 0xffff_fffe));
}

#[test]
fn cookie_field_is_accepted_only_in_nxm() {
    let nxm_match = NxmMatch {
        matching: Match::any(),
        cookies: CookieFilter {
            cookie: Cookie(5),
            mask: 7,
        },
    };
    let mut out = Vec::new();
    encode_nxm_fields(&nxm_match, &mut Writer::new(&mut out, V10)).expect("NXM has the fields");
    assert_eq!(decode_nxm_fields(Reader::new(&out, V10)), Ok(nxm_match));
    assert_eq!(read(&out), Err(Refusal::MatchBadField));
}

#[test]
fn full_mask_is_exact_and_zero_mask_is_wildcard() {
    let eth = |mask: u8| {
        let mut bytes = vec![0x80, 0, 0x07, 12, 0, 0, 0, 0, 0, 0];
        bytes.extend([mask; 6]);
        read(&bytes)
    };
    assert_eq!(eth(0), Ok(Match::any()));
    assert_eq!(eth(0xff), Match::any().with(Field::EthDst, 0));
}
