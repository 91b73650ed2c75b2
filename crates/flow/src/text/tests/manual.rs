//! `ovs-fields(7)` and `ovs-actions(7)` of Open vSwitch 3.1, row by row: what is there is as
//! those pages have it, and what is not is refused by its name. That a case speaks of each
//! field and each action is tested in `cases`.

use crate::field::{EXPERIMENTER, Field, Maskable, ONF, WireId};
use crate::text::{lexer, names, parse_actions, subfield};
use crate::{Instructions, Match};

/// FieldOwner numbers fields have: a class, and an experimenter.
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
    /// Its names, between spaces.
    names: &'static str,
    /// What it is, or why it is refused.
    is: Result<Is, &'static str>,
}

/// What the manual says of a field: which bits may not be zero, whether it takes any mask,
/// whether it can be written, and its numbers.
struct Is {
    bits: u16,
    maskable: Maskable,
    writable: bool,
    numbers: &'static [(FieldOwner, u8)],
}

const fn here(
    names: &'static str,
    bits: u16,
    maskable: Maskable,
    writable: bool,
    numbers: &'static [(FieldOwner, u8)],
) -> ManualRow {
    let is = Ok(Is {
        bits,
        maskable,
        writable,
        numbers,
    });
    ManualRow { names, is }
}

const fn refused(names: &'static str, why: &'static str) -> ManualRow {
    ManualRow {
        names,
        is: Err(why),
    }
}

const CT: &str = "connections are not tracked";
const SKB: &str = "no kernel gives frames a priority here, and it has no number on the wire";

/// The fields in the order of the manual. Of those that are counted the first stands for all.
#[rustfmt::skip]
const FIELDS: &[ManualRow] = { use Maskable::{Any, No}; &[
    here("conj_id",                       32, No,  false, &[(NXM_NX, 37)]),
    here("tun_id tunnel_id",              64, Any, true,  &[(OXM_OF, 38), (NXM_NX, 16)]),
    here("tun_src",                       32, Any, true,  &[(NXM_NX, 31)]),
    here("tun_dst",                       32, Any, true,  &[(NXM_NX, 32)]),
    here("tun_ipv6_src",                 128, Any, true,  &[(NXM_NX, 109)]),
    here("tun_ipv6_dst",                 128, Any, true,  &[(NXM_NX, 110)]),
    here("tun_gbp_id",                    16, Any, true,  &[(NXM_NX, 38)]),
    here("tun_gbp_flags",                  8, Any, true,  &[(NXM_NX, 39)]),
    here("tun_erspan_ver",                 4, Any, true,  &[(NXOXM_ET, 12)]),
    here("tun_erspan_idx",                20, Any, true,  &[(NXOXM_ET, 11)]),
    here("tun_erspan_dir",                 1, Any, true,  &[(NXOXM_ET, 13)]),
    here("tun_erspan_hwid",                6, Any, true,  &[(NXOXM_ET, 14)]),
    here("tun_gtpu_flags",                 8, Any, false, &[(NXOXM_ET, 15)]),
    here("tun_gtpu_msgtype",               8, Any, false, &[(NXOXM_ET, 16)]),
    here("tun_metadata0",                992, Any, true,  &[(NXM_NX, 40)]),
    here("tun_flags",                      1, Any, true,  &[(NXM_NX, 104)]),
    here("in_port",                       16, No,  true,  &[(NXM_OF, 0)]),
    here("in_port_oxm",                   32, No,  true,  &[(OXM_OF, 0)]),
    refused("skb_priority", SKB),
    here("pkt_mark",                      32, Any, true,  &[(NXM_NX, 33)]),
    here("actset_output",                 32, No,  false, &[(ONFOXM_ET, 43)]),
    here("packet_type",                   32, No,  false, &[(OXM_OF, 44)]),
    refused("ct_state", CT),
    refused("ct_zone", CT),
    refused("ct_mark", CT),
    refused("ct_label", CT),
    refused("ct_nw_src", CT),
    refused("ct_nw_dst", CT),
    refused("ct_ipv6_src", CT),
    refused("ct_ipv6_dst", CT),
    refused("ct_nw_proto", CT),
    refused("ct_tp_src", CT),
    refused("ct_tp_dst", CT),
    here("metadata",                      64, Any, true,  &[(OXM_OF, 2)]),
    here("reg0",                          32, Any, true,  &[(NXM_NX, 0)]),
    here("xreg0",                         64, Any, true,  &[(OXM_OF_PKT_REG, 0)]),
    here("xxreg0",                       128, Any, true,  &[(NXM_NX, 111)]),
    here("eth_src dl_src",                48, Any, true,  &[(OXM_OF, 4), (NXM_OF, 2)]),
    here("eth_dst dl_dst",                48, Any, true,  &[(OXM_OF, 3), (NXM_OF, 1)]),
    here("eth_type dl_type",              16, No,  false, &[(OXM_OF, 5), (NXM_OF, 3)]),
    here("vlan_vid",                      12, Any, true,  &[(OXM_OF, 6)]),
    here("vlan_pcp",                       3, No,  true,  &[(OXM_OF, 7)]),
    here("vlan_tci",                      16, Any, true,  &[(NXM_OF, 4)]),
    here("mpls_label",                    20, No,  true,  &[(OXM_OF, 34)]),
    here("mpls_tc",                        3, No,  true,  &[(OXM_OF, 35)]),
    here("mpls_bos",                       1, No,  false, &[(OXM_OF, 36)]),
    here("mpls_ttl",                       8, No,  true,  &[(NXM_NX, 30)]),
    here("ip_src nw_src",                 32, Any, true,  &[(OXM_OF, 11), (NXM_OF, 7)]),
    here("ip_dst nw_dst",                 32, Any, true,  &[(OXM_OF, 12), (NXM_OF, 8)]),
    here("ipv6_src",                     128, Any, true,  &[(OXM_OF, 26), (NXM_NX, 19)]),
    here("ipv6_dst",                     128, Any, true,  &[(OXM_OF, 27), (NXM_NX, 20)]),
    here("ipv6_label",                    20, Any, true,  &[(OXM_OF, 28), (NXM_NX, 27)]),
    here("nw_proto ip_proto",              8, No,  false, &[(OXM_OF, 10), (NXM_OF, 6)]),
    here("nw_ttl",                         8, No,  true,  &[(NXM_NX, 29)]),
    here("ip_frag nw_frag",                2, Any, false, &[(NXM_NX, 26)]),
    here("nw_tos",                         8, No,  true,  &[(NXM_OF, 5)]),
    here("ip_dscp",                        6, No,  true,  &[(OXM_OF, 8)]),
    here("nw_ecn ip_ecn",                  2, No,  true,  &[(OXM_OF, 9), (NXM_NX, 28)]),
    here("arp_op",                        16, No,  true,  &[(OXM_OF, 21), (NXM_OF, 15)]),
    here("arp_spa",                       32, Any, true,  &[(OXM_OF, 22), (NXM_OF, 16)]),
    here("arp_tpa",                       32, Any, true,  &[(OXM_OF, 23), (NXM_OF, 17)]),
    here("arp_sha",                       48, Any, true,  &[(OXM_OF, 24), (NXM_NX, 17)]),
    here("arp_tha",                       48, Any, true,  &[(OXM_OF, 25), (NXM_NX, 18)]),
    here("nsh_flags",                      8, Any, true,  &[(NXOXM_NSH, 1)]),
    here("nsh_ttl",                        8, No,  true,  &[(NXOXM_NSH, 10)]),
    here("nsh_mdtype",                     8, No,  false, &[(NXOXM_NSH, 2)]),
    here("nsh_np",                         8, No,  false, &[(NXOXM_NSH, 3)]),
    here("nsh_spi nsp",                   24, No,  true,  &[(NXOXM_NSH, 4)]),
    here("nsh_si nsi",                     8, No,  true,  &[(NXOXM_NSH, 5)]),
    here("nsh_c1 nshc1",                  32, Any, true,  &[(NXOXM_NSH, 6)]),
    here("nsh_c2 nshc2",                  32, Any, true,  &[(NXOXM_NSH, 7)]),
    here("nsh_c3 nshc3",                  32, Any, true,  &[(NXOXM_NSH, 8)]),
    here("nsh_c4 nshc4",                  32, Any, true,  &[(NXOXM_NSH, 9)]),
    here("tcp_src tp_src",                16, Any, true,  &[(OXM_OF, 13), (NXM_OF, 9)]),
    here("tcp_dst tp_dst",                16, Any, true,  &[(OXM_OF, 14), (NXM_OF, 10)]),
    here("tcp_flags",                     12, Any, false, &[(ONFOXM_ET, 42), (NXM_NX, 34)]),
    here("udp_src",                       16, Any, true,  &[(OXM_OF, 15), (NXM_OF, 11)]),
    here("udp_dst",                       16, Any, true,  &[(OXM_OF, 16), (NXM_OF, 12)]),
    here("sctp_src",                      16, Any, true,  &[(OXM_OF, 17)]),
    here("sctp_dst",                      16, Any, true,  &[(OXM_OF, 18)]),
    here("icmp_type",                      8, No,  true,  &[(OXM_OF, 19), (NXM_OF, 13)]),
    here("icmp_code",                      8, No,  true,  &[(OXM_OF, 20), (NXM_OF, 14)]),
    here("icmpv6_type",                    8, No,  true,  &[(OXM_OF, 29), (NXM_NX, 21)]),
    here("icmpv6_code",                    8, No,  true,  &[(OXM_OF, 30), (NXM_NX, 22)]),
    here("nd_target",                    128, Any, true,  &[(OXM_OF, 31), (NXM_NX, 23)]),
    here("nd_sll",                        48, Any, true,  &[(OXM_OF, 32), (NXM_NX, 24)]),
    here("nd_tll",                        48, Any, true,  &[(OXM_OF, 33), (NXM_NX, 25)]),
    here("nd_reserved",                   32, No,  true,  &[(ERICOXM_OF, 1)]),
    here("nd_options_type",                8, No,  true,  &[(ERICOXM_OF, 2)]),
] };

/// Fields that are counted, and how many there are; of the manual's, how many are refused.
const COUNTED: [(&str, usize, usize); 4] = [
    ("tun_metadata", 64, 0),
    ("reg", 16, 0),
    ("xreg", 8, 0),
    ("xxreg", 4, 0),
];

/// What this registry has otherwise than the manual, and why. (The numbers that ONF's fields
/// have in 1.5 the codec knows.)
const OTHERWISE: [(&str, &str); 7] = [
    (
        "vlan_vid",
        "the bit that says that there is a tag is one of its bits (OF 1.3.5, 7.2.3.7)",
    ),
    (
        "in_port_oxm",
        "a set-field may not be of the port of arrival (OF 1.3.5, 7.2.5); `in_port` can be written",
    ),
    ("eth_type", SET),
    ("dl_type", SET),
    ("mpls_bos", SET),
    ("nw_proto", SET),
    ("ip_proto", SET),
];

/// What Open vSwitch does not set, and every switch may (OF 1.3.5, 7.2.5).
const SET: &str = "every field of a header can be set";

/// What is wrong with the row of a field.
fn error(row: &ManualRow) -> Vec<String> {
    let mut wrong = Vec::new();
    for name in row.names.split(' ') {
        let read = lexer::line(name).and_then(subfield::field);
        match (&row.is, read) {
            (Ok(is), Ok(field)) => wrong.extend(differences(name, is, field)),
            (Ok(_), Err(error)) => wrong.push(format!("{name}: {error}")),
            (Err(_), Ok(_)) => wrong.push(format!("{name} is there, though it is listed")),
            (Err(_), Err(_)) => {
                let matched = format!("{name}=1").parse::<Match>();
                let error = matched.expect_err(name).problem;
                if !error.starts_with("not supported yet") {
                    wrong.push(format!("{name}: {error}"));
                }
            }
        }
        if row.is.is_ok() && names::meaning(name).is_none() && !name.contains("_oxm") {
            wrong.push(format!("{name} is no name in a match"));
        }
    }
    wrong
}

/// What is otherwise than the manual says.
fn differences(name: &str, is: &Is, field: Field) -> Vec<String> {
    let row = field.info();
    let mut wrong = Vec::new();
    let listed = OTHERWISE
        .iter()
        .any(|(other, why)| *other == name && !why.is_empty());
    let mut check = |what: &str, same: bool| {
        if !same {
            wrong.push(format!("{name}: {what}"));
        }
    };
    check("bits", is.bits == row.bits || listed);
    check("mask", is.maskable == row.maskable || listed);
    check("writable", is.writable == row.writable || listed);
    for ((class, experimenter), number) in is.numbers {
        let id = match experimenter {
            0 => WireId::new(*class, *number),
            whose => WireId::of_experimenter(*whose, *number),
        };
        let known = Field::from_oxm(id).or_else(|| Field::from_nxm(id));
        check(&format!("{id:?} is {known:?}"), known == Some(field));
    }
    wrong
}

#[test]
fn each_field_of_the_manual_is_as_it_says_or_refused_by_name() {
    let wrong: Vec<String> = FIELDS.iter().flat_map(error).collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    for (name, here, missing) in COUNTED {
        for number in 0..here + missing {
            let name = format!("{name}{number}");
            let read = lexer::line(&name).and_then(subfield::field);
            assert_eq!(read.is_ok(), number < here, "{name}");
        }
    }
}

/// The syntax of each action and instruction of the manual by an example, in its order; and
/// why it is refused.
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
    ("ct(zone=1)", Some(CT)),
    ("ct(commit,nat(src=10.0.0.1))", Some(CT)),
    ("ct_clear", Some(CT)),
    ("learn(table=1,idle_timeout=5,NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],output:NXM_OF_IN_PORT[])", None),
    ("fin_timeout(idle_timeout=5,hard_timeout=9)", None),
    ("resubmit:2", None),
    ("resubmit(2,5)", None),
    ("resubmit(,5)", None),
    ("resubmit(,5,ct)", Some(CT)),
    ("clone(output:2)", None),
    ("push:NXM_NX_REG0[]", None),
    ("pop:NXM_NX_REG0[]", None),
    ("exit", None),
    ("multipath(eth_src,50,modulo_n,1,0,NXM_NX_REG0[])", None),
    ("conjunction(5,1/2)", None),
    ("note:01.02", None),
    ("sample(probability=1)", None),
    ("meter:5", None),
    ("clear_actions", None),
    ("write_actions(output:2)", None),
    ("write_metadata:0x5/0xff", None),
    ("goto_table:5", None),
    // Those that there are for tests of Open vSwitch itself, which the manual leaves out.
    ("debug_recirc", Some("there is no other data path to go around in")),
    ("debug_slow", Some("there is no slower path")),
];

#[test]
fn each_action_of_the_manual_is_read_or_refused_by_name() {
    let mut wrong = Vec::new();
    for (text, refused) in ACTIONS {
        match (text.parse::<Instructions>(), refused) {
            (Ok(_), None) => {}
            (Ok(_), Some(_)) => wrong.push(format!("{text} is read, though it is listed")),
            (Err(error), None) => wrong.push(format!("{text}: {error}")),
            (Err(error), Some(why)) => {
                if !error.problem.starts_with("not supported yet") || why.is_empty() {
                    wrong.push(format!("{text}: {error}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(parse_actions("no_such_action:1").is_err());
}
