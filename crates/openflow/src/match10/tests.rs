//! Tests of OpenFlow 1.0's match.

use super::*;
use crate::dialect::Dialect;
use crate::version::Version;

const V10: Dialect = Dialect::new(Version::V10);

/// Decodes a structure with changed members.
fn read(change: impl FnOnce(&mut Raw)) -> Match {
    let mut raw = Raw::ANY;
    change(&mut raw);
    let mut out = Vec::new();
    raw.encode(&mut Writer::new(&mut out, V10));
    assert_eq!(out.len(), 40);
    decode(&mut Reader::new(&out, V10))
        .expect("it is never refused")
        .matching
}

fn matching(terms: &[(Field, u128)]) -> Match {
    terms
        .iter()
        .try_fold(Match::any(), |matching, (field, value)| {
            matching.with(*field, *value)
        })
        .expect("legal")
}

/// The match after an encoding with [`Fidelity::BestEffort`].
fn best_effort(matching: &Match) -> Match {
    let mut out = Vec::new();
    encode(
        matching,
        Fidelity::BestEffort,
        &mut Writer::new(&mut out, V10),
    )
    .expect("best effort");
    decode(&mut Reader::new(&out, V10))
        .expect("own encoding decodes")
        .matching
}

#[test]
fn field_without_prerequisites_is_ignored() {
    let all = read(|raw| {
        raw.wildcards = wild::DL_TYPE;
        raw.dl_vlan = 0xffff;
        raw.nw_proto = 6;
        raw.tp_dst = 80;
    });
    let link = [
        (Field::InPort, 0),
        (Field::EthDst, 0),
        (Field::EthSrc, 0),
        (Field::VlanVid, 0),
    ];
    assert_eq!(all, matching(&link));
    let lldp = read(|raw| {
        raw.wildcards &= !(wild::DL_TYPE | wild::NW_PROTO | wild::NW_TOS | wild::TP_SRC);
        raw.dl_type = 0x88cc;
        raw.nw_src = 0x0a00_0001;
        raw.set_nw_bits(wild::NW_SRC_SHIFT, 32);
    });
    assert_eq!(lldp, matching(&[(Field::EthType, 0x88cc)]));
    let igmp = read(|raw| {
        raw.wildcards &= !(wild::DL_TYPE | wild::NW_PROTO | wild::TP_SRC | wild::TP_DST);
        (raw.dl_type, raw.nw_proto) = (0x0800, 2);
    });
    assert_eq!(
        igmp,
        matching(&[(Field::EthType, 0x0800), (Field::IpProto, 2)])
    );
}

#[test]
fn arp_reuses_protocol_and_address_members() {
    let arp = read(|raw| {
        raw.wildcards &= !(wild::DL_TYPE | wild::NW_PROTO | wild::NW_TOS | wild::TP_SRC);
        (raw.dl_type, raw.nw_proto) = (0x0806, 2);
        (raw.nw_src, raw.nw_dst) = (0x0a00_0001, 0x0b01_0203);
        raw.set_nw_bits(wild::NW_SRC_SHIFT, 32);
        raw.set_nw_bits(wild::NW_DST_SHIFT, 8);
    });
    let expected = matching(&[
        (Field::EthType, 0x0806),
        (Field::ArpOp, 2),
        (Field::ArpSpa, 0x0a00_0001),
    ])
    .with_masked(Field::ArpTpa, 0x0b00_0000, 0xff00_0000);
    assert_eq!(Ok(arp.clone()), expected);
    assert_eq!(best_effort(&arp), arp);
}

#[test]
fn icmp_reuses_port_members() {
    for (eth_type, proto, kind, code) in [
        (0x0800, 1, Field::Icmpv4Type, Field::Icmpv4Code),
        (0x86dd, 58, Field::Icmpv6Type, Field::Icmpv6Code),
    ] {
        let icmp = read(|raw| {
            raw.wildcards &= !(wild::DL_TYPE | wild::NW_PROTO | wild::TP_SRC | wild::TP_DST);
            (raw.dl_type, raw.nw_proto) = (eth_type, proto);
            (raw.tp_src, raw.tp_dst) = (8, 3);
        });
        let expected = matching(&[
            (Field::EthType, eth_type.into()),
            (Field::IpProto, proto.into()),
            (kind, 8),
            (code, 3),
        ]);
        assert_eq!(icmp, expected);
        assert_eq!(best_effort(&icmp), icmp);
    }
}

#[test]
fn address_wildcard_of_32_or_more_bits_matches_any_address() {
    for bits in [32, 33, 63] {
        let any = read(|raw| {
            raw.wildcards &= !(wild::DL_TYPE | wild::NW_BITS << wild::NW_SRC_SHIFT);
            raw.wildcards |= bits << wild::NW_SRC_SHIFT;
            (raw.dl_type, raw.nw_src) = (0x0800, 0x0a00_0001);
        });
        assert_eq!(any, matching(&[(Field::EthType, 0x0800)]), "{bits}");
    }
}

#[test]
fn vlan_members_map_to_vlan_match() {
    let vlan = |vid: u16, counts: u32, pcp: u8| {
        read(|raw| {
            raw.wildcards &= !counts;
            (raw.dl_vlan, raw.dl_vlan_pcp) = (vid, pcp);
        })
    };
    assert_eq!(
        vlan(0xffff, wild::DL_VLAN, 0),
        matching(&[(Field::VlanVid, 0)])
    );
    let both = wild::DL_VLAN | wild::DL_VLAN_PCP;
    assert_eq!(vlan(0xffff, both, 3), matching(&[(Field::VlanVid, 0)]));
    assert_eq!(
        vlan(5, wild::DL_VLAN, 3),
        matching(&[(Field::VlanVid, 0x1005)])
    );
    let tagged = matching(&[(Field::VlanVid, 0x1005), (Field::VlanPcp, 3)]);
    assert_eq!(vlan(5, both, 3), tagged);
    let any_tag = Match::any()
        .with_masked(Field::VlanVid, 0x1000, 0x1000)
        .and_then(|any| any.with(Field::VlanPcp, 3))
        .expect("legal");
    assert_eq!(vlan(5, wild::DL_VLAN_PCP, 3), any_tag);
    for matching in [tagged, any_tag, matching(&[(Field::VlanVid, 0)])] {
        assert_eq!(best_effort(&matching), matching);
        assert!(lossless(&matching).is_some());
    }
}

#[test]
fn unsupported_terms_are_omitted_best_effort_and_refused_lossless() {
    let ipv6 = matching(&[(Field::EthType, 0x86dd), (Field::Ipv6Src, 1)]);
    assert_eq!(best_effort(&ipv6), matching(&[(Field::EthType, 0x86dd)]));
    assert!(lossless(&ipv6).is_none());
    let odd = matching(&[(Field::EthType, 0x0800)])
        .with_masked(Field::Ipv4Dst, 0x0a00_0001, 0xff00_00ff)
        .expect("legal");
    let prefix = matching(&[(Field::EthType, 0x0800)])
        .with_masked(Field::Ipv4Dst, 0x0a00_0000, 0xff00_0000)
        .expect("legal");
    assert_eq!(best_effort(&odd), prefix);
    assert!(lossless(&odd).is_none());
    let any_tag = Match::any()
        .with_masked(Field::VlanVid, 0x1000, 0x1000)
        .expect("legal");
    assert_eq!(best_effort(&any_tag), Match::any());
    assert!(lossless(&any_tag).is_none());
    let mut out = Vec::new();
    assert!(
        encode(
            &any_tag,
            Fidelity::Lossless,
            &mut Writer::new(&mut out, V10)
        )
        .is_err()
    );
}

#[test]
fn match_without_wildcards_is_exact() {
    let mut raw = Raw::ANY;
    raw.wildcards = 0;
    raw.dl_type = 0x88cc;
    let mut out = Vec::new();
    raw.encode(&mut Writer::new(&mut out, V10));
    let read = decode(&mut Reader::new(&out, V10)).expect("legal");
    assert!(read.exact);
    // The encoding wildcards a member without a meaning.
    assert!(lossless(&read.matching).is_some_and(|encoded| !encoded.exact));
}

#[test]
fn reserved_ports_are_widened() {
    let local = read(|raw| {
        raw.wildcards &= !wild::IN_PORT;
        raw.in_port = 0xfffe;
    });
    assert_eq!(local, matching(&[(Field::InPort, 0xffff_fffe)]));
    assert_eq!(best_effort(&local), local);
}
