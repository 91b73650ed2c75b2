//! Comparison with `ovs-fields(7)` and `ovs-actions(7)` of Open vSwitch 3.1, row by row: supported
//! fields have the documented properties, others are refused by name. `cases` tests that case files
//! cover them.

use crate::field::{EXPERIMENTER, Field, Maskable, ONF, WireId};
use crate::text::{lexer, names, parse_actions, subfield};
use crate::{Instructions, Match};

/// Class and experimenter of a field number.
type FieldOwner = (u16, u32);

const NXM_OF: FieldOwner = (0x0000, 0);
const NXM_NX: FieldOwner = (0x0001, 0);
const OXM_OF: FieldOwner = (0x8000, 0);
const OXM_OF_PKT_REG: FieldOwner = (0x8001, 0);
const ONFOXM_ET: FieldOwner = (EXPERIMENTER, ONF);
const NXOXM_ET: FieldOwner = (EXPERIMENTER, 0x2320);
const NXOXM_NSH: FieldOwner = (EXPERIMENTER, 0x005a_d650);
const ERICOXM_OF: FieldOwner = (0x1000, 0);

/// A field of the manual.
struct ManualRow {
    /// Names, between spaces.
    names: &'static str,
    /// Properties, or the reason why it is not supported.
    properties: Result<FieldProperties, &'static str>,
}

/// Documented properties of a field: width, permitted masks, writability, and numbers.
struct FieldProperties {
    bits: u16,
    maskable: Maskable,
    writable: bool,
    numbers: &'static [(FieldOwner, u8)],
}

const fn supported(
    names: &'static str,
    bits: u16,
    maskable: Maskable,
    writable: bool,
    numbers: &'static [(FieldOwner, u8)],
) -> ManualRow {
    let properties = Ok(FieldProperties {
        bits,
        maskable,
        writable,
        numbers,
    });
    ManualRow { names, properties }
}

const fn unsupported(names: &'static str, why: &'static str) -> ManualRow {
    ManualRow {
        names,
        properties: Err(why),
    }
}

const SKB: &str = "no socket buffer priority, and no number on the wire";

/// Fields in the order of the manual. The first of a numbered series represents all.
#[rustfmt::skip]
const FIELDS: &[ManualRow] = { use Maskable::{Any, No}; &[
    supported("conj_id",                       32, No,  false, &[(NXM_NX, 37)]),
    supported("tun_id tunnel_id",              64, Any, true,  &[(OXM_OF, 38), (NXM_NX, 16)]),
    supported("tun_src",                       32, Any, true,  &[(NXM_NX, 31)]),
    supported("tun_dst",                       32, Any, true,  &[(NXM_NX, 32)]),
    supported("tun_ipv6_src",                 128, Any, true,  &[(NXM_NX, 109)]),
    supported("tun_ipv6_dst",                 128, Any, true,  &[(NXM_NX, 110)]),
    supported("tun_gbp_id",                    16, Any, true,  &[(NXM_NX, 38)]),
    supported("tun_gbp_flags",                  8, Any, true,  &[(NXM_NX, 39)]),
    supported("tun_erspan_ver",                 4, Any, true,  &[(NXOXM_ET, 12)]),
    supported("tun_erspan_idx",                20, Any, true,  &[(NXOXM_ET, 11)]),
    supported("tun_erspan_dir",                 1, Any, true,  &[(NXOXM_ET, 13)]),
    supported("tun_erspan_hwid",                6, Any, true,  &[(NXOXM_ET, 14)]),
    supported("tun_gtpu_flags",                 8, Any, false, &[(NXOXM_ET, 15)]),
    supported("tun_gtpu_msgtype",               8, Any, false, &[(NXOXM_ET, 16)]),
    supported("tun_metadata0",                992, Any, true,  &[(NXM_NX, 40)]),
    supported("tun_flags",                      1, Any, true,  &[(NXM_NX, 104)]),
    supported("in_port",                       16, No,  true,  &[(NXM_OF, 0)]),
    supported("in_port_oxm",                   32, No,  true,  &[(OXM_OF, 0)]),
    unsupported("skb_priority", SKB),
    supported("pkt_mark",                      32, Any, true,  &[(NXM_NX, 33)]),
    supported("actset_output",                 32, No,  false, &[(ONFOXM_ET, 43)]),
    supported("packet_type",                   32, No,  false, &[(OXM_OF, 44)]),
    supported("ct_state",                       32, Any, false,&[(NXM_NX, 105)]),
    supported("ct_zone",                        16, No , false,&[(NXM_NX, 106)]),
    supported("ct_mark",                        32, Any, true, &[(NXM_NX, 107)]),
    supported("ct_label",                      128, Any, true, &[(NXM_NX, 108)]),
    supported("ct_nw_src",                      32, Any, false,&[(NXM_NX, 120)]),
    supported("ct_nw_dst",                      32, Any, false,&[(NXM_NX, 121)]),
    supported("ct_ipv6_src",                   128, Any, false,&[(NXM_NX, 122)]),
    supported("ct_ipv6_dst",                   128, Any, false,&[(NXM_NX, 123)]),
    supported("ct_nw_proto",                     8, No , false,&[(NXM_NX, 119)]),
    supported("ct_tp_src",                      16, Any, false,&[(NXM_NX, 124)]),
    supported("ct_tp_dst",                      16, Any, false,&[(NXM_NX, 125)]),
    supported("metadata",                      64, Any, true,  &[(OXM_OF, 2)]),
    supported("reg0",                          32, Any, true,  &[(NXM_NX, 0)]),
    supported("xreg0",                         64, Any, true,  &[(OXM_OF_PKT_REG, 0)]),
    supported("xxreg0",                       128, Any, true,  &[(NXM_NX, 111)]),
    supported("eth_src dl_src",                48, Any, true,  &[(OXM_OF, 4), (NXM_OF, 2)]),
    supported("eth_dst dl_dst",                48, Any, true,  &[(OXM_OF, 3), (NXM_OF, 1)]),
    supported("eth_type dl_type",              16, No,  false, &[(OXM_OF, 5), (NXM_OF, 3)]),
    supported("vlan_vid",                      12, Any, true,  &[(OXM_OF, 6)]),
    supported("vlan_pcp",                       3, No,  true,  &[(OXM_OF, 7)]),
    supported("vlan_tci",                      16, Any, true,  &[(NXM_OF, 4)]),
    supported("mpls_label",                    20, No,  true,  &[(OXM_OF, 34)]),
    supported("mpls_tc",                        3, No,  true,  &[(OXM_OF, 35)]),
    supported("mpls_bos",                       1, No,  false, &[(OXM_OF, 36)]),
    supported("mpls_ttl",                       8, No,  true,  &[(NXM_NX, 30)]),
    supported("ip_src nw_src",                 32, Any, true,  &[(OXM_OF, 11), (NXM_OF, 7)]),
    supported("ip_dst nw_dst",                 32, Any, true,  &[(OXM_OF, 12), (NXM_OF, 8)]),
    supported("ipv6_src",                     128, Any, true,  &[(OXM_OF, 26), (NXM_NX, 19)]),
    supported("ipv6_dst",                     128, Any, true,  &[(OXM_OF, 27), (NXM_NX, 20)]),
    supported("ipv6_label",                    20, Any, true,  &[(OXM_OF, 28), (NXM_NX, 27)]),
    supported("nw_proto ip_proto",              8, No,  false, &[(OXM_OF, 10), (NXM_OF, 6)]),
    supported("nw_ttl",                         8, No,  true,  &[(NXM_NX, 29)]),
    supported("ip_frag nw_frag",                2, Any, false, &[(NXM_NX, 26)]),
    supported("nw_tos",                         8, No,  true,  &[(NXM_OF, 5)]),
    supported("ip_dscp",                        6, No,  true,  &[(OXM_OF, 8)]),
    supported("nw_ecn ip_ecn",                  2, No,  true,  &[(OXM_OF, 9), (NXM_NX, 28)]),
    supported("arp_op",                        16, No,  true,  &[(OXM_OF, 21), (NXM_OF, 15)]),
    supported("arp_spa",                       32, Any, true,  &[(OXM_OF, 22), (NXM_OF, 16)]),
    supported("arp_tpa",                       32, Any, true,  &[(OXM_OF, 23), (NXM_OF, 17)]),
    supported("arp_sha",                       48, Any, true,  &[(OXM_OF, 24), (NXM_NX, 17)]),
    supported("arp_tha",                       48, Any, true,  &[(OXM_OF, 25), (NXM_NX, 18)]),
    supported("nsh_flags",                      8, Any, true,  &[(NXOXM_NSH, 1)]),
    supported("nsh_ttl",                        8, No,  true,  &[(NXOXM_NSH, 10)]),
    supported("nsh_mdtype",                     8, No,  false, &[(NXOXM_NSH, 2)]),
    supported("nsh_np",                         8, No,  false, &[(NXOXM_NSH, 3)]),
    supported("nsh_spi nsp",                   24, No,  true,  &[(NXOXM_NSH, 4)]),
    supported("nsh_si nsi",                     8, No,  true,  &[(NXOXM_NSH, 5)]),
    supported("nsh_c1 nshc1",                  32, Any, true,  &[(NXOXM_NSH, 6)]),
    supported("nsh_c2 nshc2",                  32, Any, true,  &[(NXOXM_NSH, 7)]),
    supported("nsh_c3 nshc3",                  32, Any, true,  &[(NXOXM_NSH, 8)]),
    supported("nsh_c4 nshc4",                  32, Any, true,  &[(NXOXM_NSH, 9)]),
    supported("tcp_src tp_src",                16, Any, true,  &[(OXM_OF, 13), (NXM_OF, 9)]),
    supported("tcp_dst tp_dst",                16, Any, true,  &[(OXM_OF, 14), (NXM_OF, 10)]),
    supported("tcp_flags",                     12, Any, false, &[(ONFOXM_ET, 42), (NXM_NX, 34)]),
    supported("udp_src",                       16, Any, true,  &[(OXM_OF, 15), (NXM_OF, 11)]),
    supported("udp_dst",                       16, Any, true,  &[(OXM_OF, 16), (NXM_OF, 12)]),
    supported("sctp_src",                      16, Any, true,  &[(OXM_OF, 17)]),
    supported("sctp_dst",                      16, Any, true,  &[(OXM_OF, 18)]),
    supported("icmp_type",                      8, No,  true,  &[(OXM_OF, 19), (NXM_OF, 13)]),
    supported("icmp_code",                      8, No,  true,  &[(OXM_OF, 20), (NXM_OF, 14)]),
    supported("icmpv6_type",                    8, No,  true,  &[(OXM_OF, 29), (NXM_NX, 21)]),
    supported("icmpv6_code",                    8, No,  true,  &[(OXM_OF, 30), (NXM_NX, 22)]),
    supported("nd_target",                    128, Any, true,  &[(OXM_OF, 31), (NXM_NX, 23)]),
    supported("nd_sll",                        48, Any, true,  &[(OXM_OF, 32), (NXM_NX, 24)]),
    supported("nd_tll",                        48, Any, true,  &[(OXM_OF, 33), (NXM_NX, 25)]),
    supported("nd_reserved",                   32, No,  true,  &[(ERICOXM_OF, 1)]),
    supported("nd_options_type",                8, No,  true,  &[(ERICOXM_OF, 2)]),
] };

/// Numbered series of fields: number of supported and of unsupported ones.
const COUNTED: [(&str, usize, usize); 4] = [
    ("tun_metadata", 64, 0),
    ("reg", 16, 0),
    ("xreg", 8, 0),
    ("xxreg", 4, 0),
];

/// Deviations of the field table from the manual, with reasons. (The codec handles the numbers of
/// ONF's fields in 1.5.)
const DEVIATIONS: [(&str, &str); 8] = [
    (
        "vlan_vid",
        "the presence bit is one of its bits (OF 1.3.5, 7.2.3.7)",
    ),
    (
        "in_port_oxm",
        "set-field of the ingress port is not permitted (OF 1.3.5, 7.2.5); `in_port` can be written",
    ),
    ("eth_type", SET),
    ("dl_type", SET),
    ("mpls_bos", SET),
    ("nw_proto", SET),
    ("ip_proto", SET),
    (
        "ct_state",
        "eight of its 32 bits have a meaning, and Open vSwitch refuses the others",
    ),
];

/// Fields that Open vSwitch does not set, although every switch may (OF 1.3.5, 7.2.5).
const SET: &str = "every header field can be set";

/// Returns the errors in the row of a field.
fn row_errors(row: &ManualRow) -> Vec<String> {
    let mut errors = Vec::new();
    for name in row.names.split(' ') {
        let read = lexer::line(name).and_then(subfield::field);
        match (&row.properties, read) {
            (Ok(properties), Ok(field)) => errors.extend(differences(name, properties, field)),
            (Ok(_), Err(error)) => errors.push(format!("{name}: {error}")),
            (Err(_), Ok(_)) => errors.push(format!("{name} exists, although it is listed")),
            (Err(_), Err(_)) => {
                let matched = format!("{name}=1").parse::<Match>();
                let error = matched.expect_err(name).problem;
                if !error.starts_with("not supported") {
                    errors.push(format!("{name}: {error}"));
                }
            }
        }
        if row.properties.is_ok() && names::meaning(name).is_none() && !name.contains("_oxm") {
            errors.push(format!("{name} is not a name in a match"));
        }
    }
    errors
}

/// Returns the deviations from the manual.
fn differences(name: &str, properties: &FieldProperties, field: Field) -> Vec<String> {
    let row = field.info();
    let mut errors = Vec::new();
    let listed = DEVIATIONS
        .iter()
        .any(|(other, why)| *other == name && !why.is_empty());
    let mut check = |what: &str, same: bool| {
        if !same {
            errors.push(format!("{name}: {what}"));
        }
    };
    check("bits", properties.bits == row.bits || listed);
    check("mask", properties.maskable == row.maskable || listed);
    check("writable", properties.writable == row.writable || listed);
    for ((class, experimenter), number) in properties.numbers {
        let id = match experimenter {
            0 => WireId::new(*class, *number),
            whose => WireId::of_experimenter(*whose, *number),
        };
        let known = Field::from_oxm(id).or_else(|| Field::from_nxm(id));
        check(&format!("{id:?} is {known:?}"), known == Some(field));
    }
    errors
}

#[test]
fn fields_of_manual_have_documented_properties_or_are_refused() {
    let errors: Vec<String> = FIELDS.iter().flat_map(row_errors).collect();
    assert!(errors.is_empty(), "\n{}", errors.join("\n"));
    for (name, here, missing) in COUNTED {
        for number in 0..here + missing {
            let name = format!("{name}{number}");
            let read = lexer::line(&name).and_then(subfield::field);
            assert_eq!(read.is_ok(), number < here, "{name}");
        }
    }
}

/// An example of each action and instruction, in the order of the manual, with the reason if it is
/// not supported.
#[rustfmt::skip]
const ACTIONS: &[(&str, Option<&str>)] = &[
    ("2", None),
    ("output:2", None),
    ("output:NXM_NX_REG0[0..15]", None),
    ("output(port=2,max_len=64)", None),
    ("controller", None),
    ("controller:128", None),
    ("controller(max_len=128,reason=no_match,id=5,userdata=01.02,pause,meter_id=1)", None),
    ("enqueue(2,3)", None),
    ("enqueue:2:3", None),
    ("bundle(eth_src,0,hrw,ofport,members:1,2)", None),
    ("bundle_load(eth_src,0,hrw,ofport,NXM_NX_REG0[],members:1,2)", None),
    ("group:5", None),
    ("strip_vlan", None),
    ("pop_vlan", None),
    ("push_vlan:0x8100", None),
    ("push_mpls:0x8847", None),
    ("pop_mpls:0x0800", None),
    ("encap(nsh(md_type=1))", None),
    ("encap(nsh(md_type=2,tlv(0x1000,10,0x12345678)))", None),
    ("encap(ethernet)", None),
    ("encap(mpls)", None),
    ("encap(mpls_mc)", None),
    ("decap", None),
    ("decap(packet_type(ns=1,type=0x894f))", None),
    ("set_field:10.0.0.0/255.0.0.0->ip_src", None),
    ("load:5->NXM_NX_REG0[0..15]", None),
    ("move:NXM_NX_REG0[]->NXM_NX_REG1[]", None),
    ("mod_dl_src:02:00:00:00:00:01", None),
    ("mod_dl_dst:02:00:00:00:00:01", None),
    ("mod_nw_src:10.0.0.1", None),
    ("mod_nw_dst:10.0.0.1", None),
    ("mod_nw_tos:16", None),
    ("mod_nw_ecn:2", None),
    ("mod_tp_src:80", None),
    ("mod_tp_dst:80", None),
    ("dec_ttl", None),
    ("dec_ttl(1,2)", None),
    ("set_mpls_label:5", None),
    ("set_mpls_tc:5", None),
    ("set_mpls_ttl:5", None),
    ("dec_mpls_ttl", None),
    ("dec_nsh_ttl", None),
    ("check_pkt_larger(1500)->NXM_NX_REG0[0]", None),
    ("delete_field:tun_metadata0", None),
    ("set_tunnel:5", None),
    ("set_tunnel64:0x100000000", None),
    ("set_queue:5", None),
    ("pop_queue", None),
    ("ct(zone=1)", None),
    ("ct(commit,nat(src=10.0.0.1))", None),
    ("ct_clear", None),
    ("learn(table=1,idle_timeout=5,NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],output:NXM_OF_IN_PORT[])", None),
    ("fin_timeout(idle_timeout=5,hard_timeout=9)", None),
    ("resubmit:2", None),
    ("resubmit(2,5)", None),
    ("resubmit(,5)", None),
    ("resubmit(,5,ct)", None),
    ("clone(output:2)", None),
    ("push:NXM_NX_REG0[]", None),
    ("pop:NXM_NX_REG0[]", None),
    ("exit", None),
    ("multipath(eth_src,50,modulo_n,1,0,NXM_NX_REG0[])", None),
    ("conjunction(5,1/2)", None),
    ("note:01.02", None),
    ("sample(probability=1)", None),
    ("sample(probability=1,obs_domain_id=NXM_NX_REG0[],obs_point_id=reg1[0..7])", None),
    ("meter:5", None),
    ("clear_actions", None),
    ("write_actions(output:2)", None),
    ("write_metadata:0x5/0xff", None),
    ("goto_table:5", None),
    // Actions for tests of Open vSwitch itself, which the manual omits.
    ("debug_recirc", None),
    ("debug_slow", None),
];

#[test]
fn actions_of_manual_are_accepted_or_refused() {
    let mut errors = Vec::new();
    for (text, refused) in ACTIONS {
        match (text.parse::<Instructions>(), refused) {
            (Ok(_), None) => {}
            (Ok(_), Some(_)) => errors.push(format!("{text} is accepted, although it is listed")),
            (Err(error), None) => errors.push(format!("{text}: {error}")),
            (Err(error), Some(why)) => {
                if !error.problem.starts_with("not supported") || why.is_empty() {
                    errors.push(format!("{text}: {error}"));
                }
            }
        }
    }
    assert!(errors.is_empty(), "\n{}", errors.join("\n"));
    assert!(parse_actions("no_such_action:1").is_err());
}
