//! Names and value formats of match fields: one table for readers and writers.

use std::ops::RangeInclusive;

use crate::field::Field;

/// Format of a field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueFormat {
    /// A decimal number; with a mask, both are hexadecimal in a match.
    Decimal,
    /// A decimal number of eight bits; with a mask, both are hexadecimal and of two digits.
    Octet,
    /// Hexadecimal number with at least this many digits in a match.
    Hex(usize),
    /// An Ethernet address.
    Mac,
    /// An IPv4 address.
    Ipv4,
    /// An IPv6 address.
    Ipv6,
    /// A port number or the name of a reserved port.
    Port,
    /// TCP flags by name.
    Flags,
    /// Flags of a connection's state by name.
    ConnectionFlags,
    /// Flags of a tunnel by name.
    TunnelFlags,
    /// A kind of fragment by name.
    Fragment,
    /// A name space and a type in it.
    Typed,
}

/// Meaning of a name in a match. Some names denote different fields under different protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyMeaning {
    /// One field.
    Field(Field),
    /// The first field for ARP, otherwise the second.
    ArpOr(Field, Field),
    /// `tp_src` or `tp_dst`: port field of the transport protocol.
    Transport(TransportPort),
    /// The first field for IPv4, the second for IPv6.
    ByFamily(Field, Field),
    /// `nw_tos`: the DSCP as a ToS byte.
    Tos,
    /// `dl_vlan`: VLAN id of a tag, or 0xffff for no tag.
    DlVlan,
    /// `vlan_tci`: control information of a tag with the CFI bit as presence bit.
    Tci,
}

/// Port of a transport header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransportPort {
    Source,
    Destination,
}

/// Names of one field.
struct FieldNames {
    field: Field,
    /// Name in set-field, as `ovs-ofctl` prints it.
    set: &'static str,
    form: ValueFormat,
    /// Further names that denote only this field.
    also: &'static [&'static str],
}

#[rustfmt::skip]
const NAMES: [FieldNames; Field::COUNT] = {
    use Field::*;
    use ValueFormat::*;
    const fn row(field: Field, set: &'static str, form: ValueFormat, also: &'static [&'static str]) -> FieldNames {
        FieldNames { field, set, form, also }
    }
    [
        row(InPort,       "in_port",     Port,     &[]),
        row(InPhyPort,    "in_phy_port", Port,     &[]),
        row(Metadata,     "metadata",    Hex(1),   &[]),
        row(TunnelId,     "tun_id",      Hex(1),   &["tunnel_id"]),
        row(PacketType,    "packet_type", Typed,    &[]),
        row(EthDst,       "eth_dst",     Mac,      &["dl_dst"]),
        row(EthSrc,       "eth_src",     Mac,      &["dl_src"]),
        row(EthType,      "eth_type",    Hex(4),   &["dl_type"]),
        row(VlanVid,      "vlan_vid",    Decimal,  &[]),
        row(VlanPcp,      "vlan_pcp",    Decimal,  &["dl_vlan_pcp"]),
        row(MplsLabel,    "mpls_label",  Decimal,  &[]),
        row(MplsTc,       "mpls_tc",     Decimal,  &[]),
        row(MplsBos,      "mpls_bos",    Decimal,  &[]),
        row(PbbIsid,      "pbb_isid",    Decimal,  &[]),
        row(PbbUca,       "pbb_uca",     Decimal,  &[]),
        row(ArpOp,        "arp_op",      Decimal,  &[]),
        row(ArpSpa,       "arp_spa",     Ipv4,     &[]),
        row(ArpTpa,       "arp_tpa",     Ipv4,     &[]),
        row(ArpSha,       "arp_sha",     Mac,      &[]),
        row(ArpTha,       "arp_tha",     Mac,      &[]),
        row(IpDscp,       "ip_dscp",     Decimal,  &[]),
        row(IpEcn,        "nw_ecn",      Decimal,  &["ip_ecn"]),
        row(IpProto,      "ip_proto",    Decimal,  &[]),
        row(IpTtl,        "nw_ttl",      Decimal,  &[]),
        row(IpFrag,       "ip_frag",     Fragment, &["nw_frag"]),
        row(Ipv4Src,      "ip_src",      Ipv4,     &["ipv4_src"]),
        row(Ipv4Dst,      "ip_dst",      Ipv4,     &["ipv4_dst"]),
        row(Ipv6Src,      "ipv6_src",    Ipv6,     &[]),
        row(Ipv6Dst,      "ipv6_dst",    Ipv6,     &[]),
        row(Ipv6Flabel,   "ipv6_label",  Hex(5),   &["ipv6_flabel"]),
        row(Ipv6Exthdr,   "ipv6_exthdr", Hex(1),   &[]),
        row(TcpSrc,       "tcp_src",     Decimal,  &[]),
        row(TcpDst,       "tcp_dst",     Decimal,  &[]),
        row(TcpFlags,     "tcp_flags",   Flags,    &[]),
        row(UdpSrc,       "udp_src",     Decimal,  &[]),
        row(UdpDst,       "udp_dst",     Decimal,  &[]),
        row(SctpSrc,      "sctp_src",    Decimal,  &[]),
        row(SctpDst,      "sctp_dst",    Decimal,  &[]),
        row(Icmpv4Type,   "icmp_type",   Decimal,  &["icmpv4_type"]),
        row(Icmpv4Code,   "icmp_code",   Decimal,  &["icmpv4_code"]),
        row(Icmpv6Type,   "icmpv6_type", Decimal,  &[]),
        row(Icmpv6Code,   "icmpv6_code", Decimal,  &[]),
        row(Ipv6NdTarget, "nd_target",   Ipv6,     &["ipv6_nd_target"]),
        row(Ipv6NdSll,    "nd_sll",      Mac,      &["ipv6_nd_sll"]),
        row(Ipv6NdTll,    "nd_tll",      Mac,      &["ipv6_nd_tll"]),
        row(MplsTtl,       "mpls_ttl",    Decimal,  &[]),
        row(PktMark,       "pkt_mark",    Hex(1),   &[]),
        row(TunSrc,        "tun_src",     Ipv4,     &[]),
        row(TunDst,        "tun_dst",     Ipv4,     &[]),
        row(TunIpv6Src,    "tun_ipv6_src",Ipv6,     &[]),
        row(TunIpv6Dst,    "tun_ipv6_dst",Ipv6,     &[]),
        row(ConjId,        "conj_id",     Decimal,  &[]),
        row(ActsetOutput,  "actset_output",Port,     &[]),
        row(TunGbpId,      "tun_gbp_id",  Decimal,  &[]),
        row(TunGbpFlags,   "tun_gbp_flags",Hex(1),  &[]),
        row(NshFlags,       "nsh_flags",       Octet, &[]),
        row(NshTtl,         "nsh_ttl",         Decimal, &[]),
        row(NshMdtype,      "nsh_mdtype",      Decimal, &[]),
        row(NshNp,          "nsh_np",          Decimal, &[]),
        row(NshSpi,         "nsh_spi",         Hex(1), &["nsp"]),
        row(NshSi,          "nsh_si",          Decimal, &["nsi"]),
        row(NshC1,          "nsh_c1",          Hex(1), &["nshc1"]),
        row(NshC2,          "nsh_c2",          Hex(1), &["nshc2"]),
        row(NshC3,          "nsh_c3",          Hex(1), &["nshc3"]),
        row(NshC4,          "nsh_c4",          Hex(1), &["nshc4"]),
        row(NdReserved,     "nd_reserved",     Decimal, &[]),
        row(NdOptionsType,  "nd_options_type", Decimal, &[]),
        row(TunFlags,       "tun_flags",       TunnelFlags, &[]),
        row(TunErspanVer,   "tun_erspan_ver",  Decimal, &[]),
        row(TunErspanIdx,   "tun_erspan_idx",  Hex(1), &[]),
        row(TunErspanDir,   "tun_erspan_dir",  Decimal, &[]),
        row(TunErspanHwid,  "tun_erspan_hwid", Hex(1), &[]),
        row(TunGtpuFlags,   "tun_gtpu_flags",  Hex(1), &["gtpu_flags"]),
        row(TunGtpuMsgtype, "tun_gtpu_msgtype", Decimal, &["gtpu_msgtype"]),
        row(DpHash,         "dp_hash",         Hex(1), &[]),
        row(RecircId,       "recirc_id",       Hex(1), &[]),
        row(CtState,        "ct_state", ConnectionFlags, &[]),
        row(CtZone,         "ct_zone", Decimal, &[]),
        row(CtMark,         "ct_mark", Hex(1), &[]),
        row(CtLabel,        "ct_label", Hex(1), &[]),
        row(CtNwProto,      "ct_nw_proto", Decimal, &[]),
        row(CtNwSrc,        "ct_nw_src", Ipv4, &[]),
        row(CtNwDst,        "ct_nw_dst", Ipv4, &[]),
        row(CtIpv6Src,      "ct_ipv6_src", Ipv6, &[]),
        row(CtIpv6Dst,      "ct_ipv6_dst", Ipv6, &[]),
        row(CtTpSrc,        "ct_tp_src", Decimal, &[]),
        row(CtTpDst,        "ct_tp_dst", Decimal, &[]),
        row(Reg0,          "reg0",        Hex(1),   &[]),
        row(Reg1,          "reg1",        Hex(1),   &[]),
        row(Reg2,          "reg2",        Hex(1),   &[]),
        row(Reg3,          "reg3",        Hex(1),   &[]),
        row(Reg4,          "reg4",        Hex(1),   &[]),
        row(Reg5,          "reg5",        Hex(1),   &[]),
        row(Reg6,          "reg6",        Hex(1),   &[]),
        row(Reg7,          "reg7",        Hex(1),   &[]),
        row(Reg8,          "reg8",        Hex(1),   &[]),
        row(Reg9,          "reg9",        Hex(1),   &[]),
        row(Reg10,         "reg10",       Hex(1),   &[]),
        row(Reg11,         "reg11",       Hex(1),   &[]),
        row(Reg12,         "reg12",       Hex(1),   &[]),
        row(Reg13,         "reg13",       Hex(1),   &[]),
        row(Reg14,         "reg14",       Hex(1),   &[]),
        row(Reg15,         "reg15",       Hex(1),   &[]),
        row(TunMetadata0, "tun_metadata0", Hex(1), &[]),
        row(TunMetadata1, "tun_metadata1", Hex(1), &[]),
        row(TunMetadata2, "tun_metadata2", Hex(1), &[]),
        row(TunMetadata3, "tun_metadata3", Hex(1), &[]),
        row(TunMetadata4, "tun_metadata4", Hex(1), &[]),
        row(TunMetadata5, "tun_metadata5", Hex(1), &[]),
        row(TunMetadata6, "tun_metadata6", Hex(1), &[]),
        row(TunMetadata7, "tun_metadata7", Hex(1), &[]),
        row(TunMetadata8, "tun_metadata8", Hex(1), &[]),
        row(TunMetadata9, "tun_metadata9", Hex(1), &[]),
        row(TunMetadata10, "tun_metadata10", Hex(1), &[]),
        row(TunMetadata11, "tun_metadata11", Hex(1), &[]),
        row(TunMetadata12, "tun_metadata12", Hex(1), &[]),
        row(TunMetadata13, "tun_metadata13", Hex(1), &[]),
        row(TunMetadata14, "tun_metadata14", Hex(1), &[]),
        row(TunMetadata15, "tun_metadata15", Hex(1), &[]),
        row(TunMetadata16, "tun_metadata16", Hex(1), &[]),
        row(TunMetadata17, "tun_metadata17", Hex(1), &[]),
        row(TunMetadata18, "tun_metadata18", Hex(1), &[]),
        row(TunMetadata19, "tun_metadata19", Hex(1), &[]),
        row(TunMetadata20, "tun_metadata20", Hex(1), &[]),
        row(TunMetadata21, "tun_metadata21", Hex(1), &[]),
        row(TunMetadata22, "tun_metadata22", Hex(1), &[]),
        row(TunMetadata23, "tun_metadata23", Hex(1), &[]),
        row(TunMetadata24, "tun_metadata24", Hex(1), &[]),
        row(TunMetadata25, "tun_metadata25", Hex(1), &[]),
        row(TunMetadata26, "tun_metadata26", Hex(1), &[]),
        row(TunMetadata27, "tun_metadata27", Hex(1), &[]),
        row(TunMetadata28, "tun_metadata28", Hex(1), &[]),
        row(TunMetadata29, "tun_metadata29", Hex(1), &[]),
        row(TunMetadata30, "tun_metadata30", Hex(1), &[]),
        row(TunMetadata31, "tun_metadata31", Hex(1), &[]),
        row(TunMetadata32, "tun_metadata32", Hex(1), &[]),
        row(TunMetadata33, "tun_metadata33", Hex(1), &[]),
        row(TunMetadata34, "tun_metadata34", Hex(1), &[]),
        row(TunMetadata35, "tun_metadata35", Hex(1), &[]),
        row(TunMetadata36, "tun_metadata36", Hex(1), &[]),
        row(TunMetadata37, "tun_metadata37", Hex(1), &[]),
        row(TunMetadata38, "tun_metadata38", Hex(1), &[]),
        row(TunMetadata39, "tun_metadata39", Hex(1), &[]),
        row(TunMetadata40, "tun_metadata40", Hex(1), &[]),
        row(TunMetadata41, "tun_metadata41", Hex(1), &[]),
        row(TunMetadata42, "tun_metadata42", Hex(1), &[]),
        row(TunMetadata43, "tun_metadata43", Hex(1), &[]),
        row(TunMetadata44, "tun_metadata44", Hex(1), &[]),
        row(TunMetadata45, "tun_metadata45", Hex(1), &[]),
        row(TunMetadata46, "tun_metadata46", Hex(1), &[]),
        row(TunMetadata47, "tun_metadata47", Hex(1), &[]),
        row(TunMetadata48, "tun_metadata48", Hex(1), &[]),
        row(TunMetadata49, "tun_metadata49", Hex(1), &[]),
        row(TunMetadata50, "tun_metadata50", Hex(1), &[]),
        row(TunMetadata51, "tun_metadata51", Hex(1), &[]),
        row(TunMetadata52, "tun_metadata52", Hex(1), &[]),
        row(TunMetadata53, "tun_metadata53", Hex(1), &[]),
        row(TunMetadata54, "tun_metadata54", Hex(1), &[]),
        row(TunMetadata55, "tun_metadata55", Hex(1), &[]),
        row(TunMetadata56, "tun_metadata56", Hex(1), &[]),
        row(TunMetadata57, "tun_metadata57", Hex(1), &[]),
        row(TunMetadata58, "tun_metadata58", Hex(1), &[]),
        row(TunMetadata59, "tun_metadata59", Hex(1), &[]),
        row(TunMetadata60, "tun_metadata60", Hex(1), &[]),
        row(TunMetadata61, "tun_metadata61", Hex(1), &[]),
        row(TunMetadata62, "tun_metadata62", Hex(1), &[]),
        row(TunMetadata63, "tun_metadata63", Hex(1), &[]),
        row(Xreg0,         "xreg0",       Hex(1),   &[]),
        row(Xreg1,         "xreg1",       Hex(1),   &[]),
        row(Xreg2,         "xreg2",       Hex(1),   &[]),
        row(Xreg3,         "xreg3",       Hex(1),   &[]),
        row(Xreg4,         "xreg4",       Hex(1),   &[]),
        row(Xreg5,         "xreg5",       Hex(1),   &[]),
        row(Xreg6,         "xreg6",       Hex(1),   &[]),
        row(Xreg7,         "xreg7",       Hex(1),   &[]),
        row(Xxreg0,        "xxreg0",      Hex(1),   &[]),
        row(Xxreg1,        "xxreg1",      Hex(1),   &[]),
        row(Xxreg2,        "xxreg2",      Hex(1),   &[]),
        row(Xxreg3,        "xxreg3",      Hex(1),   &[]),
        row(NxInPort,      "in_port_nxm", Port,     &[]),
        row(VlanTci,       "vlan_tci",    Hex(4),   &[]),
        row(IpTos,         "ip_tos",      Decimal,  &[]),
    ]
};

/// Returns all names that denote only this field.
#[cfg(test)]
pub(super) fn all(field: Field) -> Vec<&'static str> {
    let rows = NAMES.iter().filter(|row| row.field == field);
    let mut names = vec![field.info().name, field.info().ofctl];
    rows.for_each(|row| names.extend([row.set].iter().chain(row.also)));
    names
}

/// Names in a match that denote several fields, or none of the table's.
#[rustfmt::skip]
const MEANINGS: [(&str, KeyMeaning); 16] = {
    use KeyMeaning::*;
    use crate::field::Field::*;
    [
        ("nw_src",    ArpOr(ArpSpa, Ipv4Src)),
        ("ip_src",    ArpOr(ArpSpa, Ipv4Src)),
        ("nw_dst",    ArpOr(ArpTpa, Ipv4Dst)),
        ("ip_dst",    ArpOr(ArpTpa, Ipv4Dst)),
        ("nw_proto",  ArpOr(ArpOp, IpProto)),
        ("ip_proto",  ArpOr(ArpOp, IpProto)),
        ("tp_src",    Transport(TransportPort::Source)),
        ("tp_dst",    Transport(TransportPort::Destination)),
        ("icmp_type", ByFamily(Icmpv4Type, Icmpv6Type)),
        ("icmp_code", ByFamily(Icmpv4Code, Icmpv6Code)),
        ("nw_tos",    Tos),
        ("dl_vlan",   DlVlan),
        ("vlan_tci",  Tci),
        // Open vSwitch's other names for the same:
        ("icmp6_type", Field(Icmpv6Type)),
        ("icmp6_code", Field(Icmpv6Code)),
        ("in_port_oxm", Field(InPort)),
    ]
};

/// Name of a protocol, which denotes an EtherType and possibly an IP protocol.
pub(super) struct ProtocolName {
    pub(super) name: &'static str,
    pub(super) eth_type: u128,
    pub(super) ip_proto: Option<u128>,
}

/// Names of protocols; the first of several for the same is printed.
#[rustfmt::skip]
pub(super) const PROTOCOLS: [ProtocolName; 17] = {
    const fn row(name: &'static str, eth_type: u128, ip_proto: Option<u128>) -> ProtocolName {
        ProtocolName { name, eth_type, ip_proto }
    }
    [
        row("ip",    0x0800, None),
        row("ipv4",  0x0800, None),
        row("ip4",   0x0800, None),
        row("icmp",  0x0800, Some(1)),
        row("tcp",   0x0800, Some(6)),
        row("udp",   0x0800, Some(17)),
        row("sctp",  0x0800, Some(132)),
        row("arp",   0x0806, None),
        row("rarp",  0x8035, None),
        row("ipv6",  0x86dd, None),
        row("ip6",   0x86dd, None),
        row("icmp6", 0x86dd, Some(58)),
        row("tcp6",  0x86dd, Some(6)),
        row("udp6",  0x86dd, Some(17)),
        row("sctp6", 0x86dd, Some(132)),
        row("mpls",  0x8847, None),
        row("mplsm", 0x8848, None),
    ]
};

/// Prefixes of Open vSwitch fields that are not supported.
const UNSUPPORTED_FIELDS: [&str; 2] = ["igmp_", "skb_priority"];

/// Names and numbers of the registers that Open vSwitch 3.7 added, which are not supported.
const LATER_REGISTERS: [(&str, RangeInclusive<u8>); 3] =
    [("reg", 16..=31), ("xreg", 8..=15), ("xxreg", 4..=7)];

/// Returns the meaning of `name` in a match, or `None` if it is no field's name.
pub(super) fn meaning(name: &str) -> Option<KeyMeaning> {
    let special = MEANINGS.iter().find(|(known, _)| *known == name);
    special
        .map(|(_, meaning)| *meaning)
        .or_else(|| settable(name).map(KeyMeaning::Field))
}

/// Returns the only field with this name, for set-field.
pub(super) fn settable(name: &str) -> Option<Field> {
    NAMES
        .iter()
        .find(|row| row.set == name || row.also.contains(&name))
        .map(|row| row.field)
}

/// True for the name of an Open vSwitch field that is not supported.
pub(super) fn is_unsupported_field(name: &str) -> bool {
    let mut prefixes = UNSUPPORTED_FIELDS.iter();
    prefixes.any(|prefix| name.starts_with(prefix)) || is_later_register(name)
}

fn is_later_register(name: &str) -> bool {
    LATER_REGISTERS.iter().any(|(series, numbers)| {
        let number = name.strip_prefix(series).map(str::parse::<u8>);
        number.is_some_and(|number| number.is_ok_and(|number| numbers.contains(&number)))
    })
}

/// The field's name in set-field.
pub(super) fn set_name(field: Field) -> &'static str {
    match field {
        // As in Open vSwitch, the plain name is that of Nicira's field.
        Field::NxInPort => "in_port",
        Field::InPort => "in_port_oxm",
        _ => NAMES[field as usize].set,
    }
}

/// Returns the field's name in `learn`.
pub(super) fn learn_name(field: Field) -> &'static str {
    match field {
        Field::IpProto => "nw_proto",
        Field::IpTos => "nw_tos",
        _ => set_name(field),
    }
}

/// Returns the format of the field's values.
pub(super) fn form(field: Field) -> ValueFormat {
    NAMES[field as usize].form
}

/// Returns all names that are permitted in a match.
pub(super) fn match_names() -> impl Iterator<Item = &'static str> {
    let fields = NAMES
        .iter()
        .flat_map(|row| row.also.iter().chain([&row.set]));
    let meanings = MEANINGS.iter().map(|(name, _)| *name);
    let protocols = PROTOCOLS.iter().map(|protocol| protocol.name);
    fields.copied().chain(meanings).chain(protocols)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_order_of_fields() {
        for (row, info) in NAMES.iter().zip(Field::all()) {
            assert_eq!(row.field, info.field);
        }
    }

    #[test]
    fn names_of_field_table_are_accepted() {
        for row in Field::all() {
            assert_eq!(
                settable(row.name).map(Field::info).map(|r| r.name),
                Some(row.name)
            );
            assert!(
                meaning(row.name).is_some() && meaning(row.ofctl).is_some(),
                "{}",
                row.name
            );
        }
    }

    #[test]
    fn names_are_unambiguous() {
        let mut names: Vec<_> = NAMES
            .iter()
            .flat_map(|row| row.also.iter().chain([&row.set]))
            .collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
