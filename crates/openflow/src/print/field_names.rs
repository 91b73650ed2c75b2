//! The names of fields in table features, as Open vSwitch 3.1 prints them: all that it knows,
//! including fields that our rules cannot match.
//!
//! This is not the registry of match fields (`flow::field`): a table of another switch may have any
//! field.

use std::collections::BTreeSet;

use super::refusal_names::DecodeErrorName;
use crate::codec::Reader;
use crate::experimenter::ONF;
use crate::oxm::OxmHeader;
use ::flow::Refusal;

/// A field: its row, and its position in the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FieldIndex {
    row: usize,
    nth: u8,
}

/// Fields in the order of the output.
pub(super) type FieldSet = BTreeSet<FieldIndex>;

/// The class of experimenter fields, which begin with the experimenter id, and those ids.
const EXPERIMENTER: u16 = 0xffff;
const NICIRA: u32 = 0x2320;
const NSH: u32 = 0x005a_d650;

/// Bytes of an experimenter id.
const EXPERIMENTER_BYTES: usize = 4;

/// The class of the specification's fields.
const BASIC: u16 = 0x8000;

/// The newest field that has a bit in OpenFlow 1.2.
const NEWEST_OF_12: u8 = 35;

/// The minimum number of consecutive names that are printed as a range.
const RANGE: usize = 3;

/// Fields that differ only in a number: their name, their count, their length in bytes, and the
/// header of the first, or all headers.
struct FieldRow {
    stem: &'static str,
    count: u8,
    bytes: FieldLength,
    headers: &'static [HeaderId],
}

/// The length of a field in bytes.
#[derive(Clone, Copy)]
enum FieldLength {
    Exactly(usize),
    UpTo(usize),
}

impl FieldLength {
    /// Returns true if a header may have this length.
    const fn allows(self, length: usize, masked: bool) -> bool {
        match self {
            Self::Exactly(bytes) if masked => length == 2 * bytes,
            Self::Exactly(bytes) => length == bytes,
            Self::UpTo(bytes) => masked || length <= bytes,
        }
    }
}

/// The contents of a header: the class, the experimenter and the number.
#[derive(PartialEq, Eq)]
struct HeaderId(u16, Option<u32>, u8);

const fn of(number: u8) -> HeaderId {
    HeaderId(0, None, number)
}

const fn nx(number: u8) -> HeaderId {
    HeaderId(1, None, number)
}

const fn oxm(number: u8) -> HeaderId {
    HeaderId(BASIC, None, number)
}

const fn ext(experimenter: u32, number: u8) -> HeaderId {
    HeaderId(EXPERIMENTER, Some(experimenter), number)
}

const fn row(stem: &'static str, bytes: usize, headers: &'static [HeaderId]) -> FieldRow {
    many(stem, 1, FieldLength::Exactly(bytes), headers)
}

const fn many(
    stem: &'static str,
    count: u8,
    bytes: FieldLength,
    headers: &'static [HeaderId],
) -> FieldRow {
    FieldRow {
        stem,
        count,
        bytes,
        headers,
    }
}

/// All fields in Open vSwitch's order of output. The two fields of its class `0x1000` belong to
/// neighbor discovery.
#[rustfmt::skip]
static FIELDS: &[FieldRow] = &[
    row("dp_hash",         4,  &[nx(35), ext(NICIRA, 0)]),
    row("recirc_id",       4,  &[nx(36)]),
    row("packet_type",     4,  &[oxm(44)]),
    row("conj_id",         4,  &[nx(37)]),
    row("tun_id",          8,  &[nx(16), oxm(38)]),
    row("tun_src",         4,  &[nx(31)]),
    row("tun_dst",         4,  &[nx(32)]),
    row("tun_ipv6_src",    16, &[nx(109)]),
    row("tun_ipv6_dst",    16, &[nx(110)]),
    row("tun_flags",       2,  &[nx(104)]),
    row("tun_gbp_id",      2,  &[nx(38)]),
    row("tun_gbp_flags",   1,  &[nx(39)]),
    row("tun_erspan_idx",  4,  &[ext(NICIRA, 11)]),
    row("tun_erspan_ver",  1,  &[ext(NICIRA, 12)]),
    row("tun_erspan_dir",  1,  &[ext(NICIRA, 13)]),
    row("tun_erspan_hwid", 1,  &[ext(NICIRA, 14)]),
    row("tun_gtpu_flags",  1,  &[ext(NICIRA, 15)]),
    row("tun_gtpu_msgtype", 1, &[ext(NICIRA, 16)]),
    many("tun_metadata", 64, FieldLength::UpTo(124), &[nx(40)]),
    row("metadata",        8,  &[oxm(2)]),
    row("in_port",         2,  &[of(0)]),
    row("in_port_oxm",     4,  &[oxm(0)]),
    row("actset_output",   4,  &[ext(ONF, 43), oxm(43)]),
    row("pkt_mark",        4,  &[nx(33)]),
    row("ct_state",        4,  &[nx(105)]),
    row("ct_zone",         2,  &[nx(106)]),
    row("ct_mark",         4,  &[nx(107)]),
    row("ct_label",        16, &[nx(108)]),
    row("ct_nw_proto",     1,  &[nx(119)]),
    row("ct_nw_src",       4,  &[nx(120)]),
    row("ct_nw_dst",       4,  &[nx(121)]),
    row("ct_ipv6_src",     16, &[nx(122)]),
    row("ct_ipv6_dst",     16, &[nx(123)]),
    row("ct_tp_src",       2,  &[nx(124)]),
    row("ct_tp_dst",       2,  &[nx(125)]),
    many("reg",   16, FieldLength::Exactly(4),  &[nx(0)]),
    many("xreg",  8,  FieldLength::Exactly(8),  &[HeaderId(0x8001, None, 0)]),
    many("xxreg", 4,  FieldLength::Exactly(16), &[nx(111)]),
    row("eth_src",         6,  &[of(2), oxm(4)]),
    row("eth_dst",         6,  &[of(1), oxm(3)]),
    row("eth_type",        2,  &[of(3), oxm(5)]),
    row("vlan_tci",        2,  &[of(4)]),
    row("vlan_vid",        2,  &[oxm(6)]),
    row("vlan_pcp",        1,  &[oxm(7)]),
    row("mpls_label",      4,  &[oxm(34)]),
    row("mpls_tc",         1,  &[oxm(35)]),
    row("mpls_bos",        1,  &[oxm(36)]),
    row("mpls_ttl",        1,  &[nx(30)]),
    row("ip_src",          4,  &[of(7), oxm(11)]),
    row("ip_dst",          4,  &[of(8), oxm(12)]),
    row("ipv6_src",        16, &[nx(19), oxm(26)]),
    row("ipv6_dst",        16, &[nx(20), oxm(27)]),
    row("ipv6_label",      4,  &[nx(27), oxm(28)]),
    row("nw_proto",        1,  &[of(6), oxm(10)]),
    row("nw_tos",          1,  &[of(5)]),
    row("ip_dscp",         1,  &[oxm(8)]),
    row("nw_ecn",          1,  &[nx(28), oxm(9)]),
    row("nw_ttl",          1,  &[nx(29)]),
    row("ip_frag",         1,  &[nx(26)]),
    row("arp_op",          2,  &[of(15), oxm(21)]),
    row("arp_spa",         4,  &[of(16), oxm(22)]),
    row("arp_tpa",         4,  &[of(17), oxm(23)]),
    row("arp_sha",         6,  &[nx(17), oxm(24)]),
    row("arp_tha",         6,  &[nx(18), oxm(25)]),
    row("tcp_src",         2,  &[of(9), oxm(13)]),
    row("tcp_dst",         2,  &[of(10), oxm(14)]),
    row("tcp_flags",       2,  &[nx(34), ext(ONF, 42), oxm(42)]),
    row("udp_src",         2,  &[of(11), oxm(15)]),
    row("udp_dst",         2,  &[of(12), oxm(16)]),
    row("sctp_src",        2,  &[oxm(17)]),
    row("sctp_dst",        2,  &[oxm(18)]),
    row("icmp_type",       1,  &[of(13), oxm(19)]),
    row("icmp_code",       1,  &[of(14), oxm(20)]),
    row("icmpv6_type",     1,  &[nx(21), oxm(29)]),
    row("icmpv6_code",     1,  &[nx(22), oxm(30)]),
    row("nd_target",       16, &[nx(23), oxm(31)]),
    row("nd_sll",          6,  &[nx(24), oxm(32)]),
    row("nd_tll",          6,  &[nx(25), oxm(33)]),
    row("nd_reserved",     4,  &[HeaderId(0x1000, None, 1)]),
    row("nd_options_type", 1,  &[HeaderId(0x1000, None, 2)]),
    row("nsh_flags",       1,  &[ext(NSH, 1)]),
    row("nsh_mdtype",      1,  &[ext(NSH, 2)]),
    row("nsh_np",          1,  &[ext(NSH, 3)]),
    row("nsh_spi",         4,  &[ext(NSH, 4)]),
    row("nsh_si",          1,  &[ext(NSH, 5)]),
    row("nsh_c1",          4,  &[ext(NSH, 6)]),
    row("nsh_c2",          4,  &[ext(NSH, 7)]),
    row("nsh_c3",          4,  &[ext(NSH, 8)]),
    row("nsh_c4",          4,  &[ext(NSH, 9)]),
    row("nsh_ttl",         1,  &[ext(NSH, 10)]),
];

/// The fields of the wildcard bits of 1.0.
const WILDCARDS_V10: [(u32, &str); 12] = [
    (1 << 0, "in_port"),
    (1 << 1, "vlan_vid"),
    (1 << 2, "eth_src"),
    (1 << 3, "eth_dst"),
    (1 << 4, "eth_type"),
    (1 << 5, "nw_proto"),
    (1 << 6, "tcp_src"),
    (1 << 7, "tcp_dst"),
    (0x3f << 8, "ip_src"),
    (0x3f << 14, "ip_dst"),
    (1 << 20, "vlan_pcp"),
    (1 << 21, "nw_tos"),
];

/// The fields of the bits of 1.1; bit 10 has no field.
const BITS_V11: [(u32, &str); 15] = [
    (1 << 0, "in_port"),
    (1 << 1, "vlan_vid"),
    (1 << 2, "vlan_pcp"),
    (1 << 3, "eth_type"),
    (1 << 4, "nw_tos"),
    (1 << 5, "nw_proto"),
    (1 << 6, "tcp_src"),
    (1 << 7, "tcp_dst"),
    (1 << 8, "mpls_label"),
    (1 << 9, "mpls_tc"),
    (1 << 11, "eth_src"),
    (1 << 12, "eth_dst"),
    (1 << 13, "ip_src"),
    (1 << 14, "ip_dst"),
    (1 << 15, "metadata"),
];

/// The fields whose bits of 1.0 are set.
pub(super) fn of_wildcards_v10(bits: u32) -> FieldSet {
    by_bits(bits, &WILDCARDS_V10)
}

/// The fields whose bits of 1.1 are set.
pub(super) fn of_bits_v11(bits: u32) -> FieldSet {
    by_bits(bits, &BITS_V11)
}

fn by_bits(bits: u32, names: &[(u32, &str)]) -> FieldSet {
    let set = names.iter().filter(|(bit, _)| bits & bit != 0);
    set.filter_map(|(_, name)| {
        let row = FIELDS.iter().position(|row| row.stem == *name)?;
        Some(FieldIndex { row, nth: 0 })
    })
    .collect()
}

/// The fields of the bits of 1.2: each has the bit of its number.
pub(super) fn of_bits_v12(bits: u64) -> FieldSet {
    let set = (0..=NEWEST_OF_12).filter(|number| bits >> number & 1 == 1);
    set.filter_map(|number| find(&oxm(number)).map(|(index, _)| index))
        .collect()
}

/// Reads headers to the end of `r` and returns the exact and the masked fields. Skips unknown ones.
pub(super) fn read(r: &Reader<'_>) -> Result<(FieldSet, FieldSet), DecodeErrorName> {
    let mut r = r.clone().on_short(Refusal::MatchBadLength);
    let (mut exact, mut masked) = (FieldSet::new(), FieldSet::new());
    while !r.is_empty() {
        let header = OxmHeader::decode(&mut r)?;
        let (experimenter, length) = if header.id.class == EXPERIMENTER {
            let length = header.length.checked_sub(EXPERIMENTER_BYTES);
            (Some(r.u32()?), length.unwrap_or(0))
        } else {
            (None, header.length)
        };
        let id = HeaderId(header.id.class, experimenter, header.id.number);
        let found = find(&id).filter(|(_, bytes)| bytes.allows(length, header.masked));
        if let Some((index, _)) = found {
            let fields = if header.masked {
                &mut masked
            } else {
                &mut exact
            };
            fields.insert(index);
        }
    }
    Ok((exact, masked))
}

/// The field of this header, and its length.
fn find(id: &HeaderId) -> Option<(FieldIndex, FieldLength)> {
    FIELDS.iter().enumerate().find_map(|(index, row)| {
        let nth = row.headers.iter().find_map(|first| {
            let nth = id.2.checked_sub(first.2)?;
            (first.0 == id.0 && first.1 == id.1 && nth < row.count).then_some(nth)
        })?;
        Some((FieldIndex { row: index, nth }, row.bytes))
    })
}

/// The abbreviated names of fields.
pub(super) fn names(fields: &FieldSet) -> String {
    let names = fields.iter().map(|index| {
        let row = &FIELDS[index.row];
        match row.count {
            1 => row.stem.to_owned(),
            _ => format!("{}{}", row.stem, index.nth),
        }
    });
    let names: Vec<String> = names.collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    abbreviate(&names).join(" ")
}

/// Abbreviates names: those with a common prefix form a group, and consecutive numbers form a
/// range.
fn abbreviate(mut names: &[&str]) -> Vec<String> {
    let mut texts = Vec::new();
    while let [first, ..] = names {
        let alike = alike(names);
        let counting = counting(names);
        let taken = if alike > 1 {
            let (prefix, _) = first.split_once('_').expect("names alike have a prefix");
            let rests = names[..alike].iter().map(|name| &name[prefix.len() + 1..]);
            let rests = abbreviate(&rests.collect::<Vec<_>>()).join(",");
            texts.push(format!("{prefix}_{{{rests}}}"));
            alike
        } else if counting >= RANGE {
            texts.push(format!("{first}...{}", names[counting - 1]));
            counting
        } else {
            texts.push((*first).to_owned());
            1
        };
        names = &names[taken..];
    }
    texts
}

/// The number of leading names with the same prefix before the first underscore.
fn alike(names: &[&str]) -> usize {
    let prefix = |name: &&str| name.split_once('_').map(|(prefix, _)| prefix.to_owned());
    let Some(first) = names.first().and_then(prefix) else {
        return 0;
    };
    let same = |name: &&&str| prefix(name).as_ref() == Some(&first);
    names.iter().take_while(same).count()
}

/// The number of leading names that are equal except for a consecutive number.
fn counting(names: &[&str]) -> usize {
    let Some(first) = names.first() else {
        return 0;
    };
    let stem = first.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let Ok(start) = first[stem.len()..].parse::<usize>() else {
        return 0;
    };
    let numbered = names.iter().zip(start..);
    let same = |(name, number): &(&&str, usize)| **name == format!("{stem}{number}");
    numbered.take_while(same).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(names: &str) -> String {
        abbreviate(&names.split(' ').collect::<Vec<_>>()).join(" ")
    }

    #[test]
    fn names_with_common_prefix_are_grouped() {
        assert_eq!(
            short("tcp_src tcp_dst tcp_flags nw_tos"),
            "tcp_{src,dst,flags} nw_tos"
        );
        assert_eq!(short("in_port in_port_oxm"), "in_{port,port_oxm}");
        assert_eq!(
            short("ct_mark ct_nw_src ct_nw_dst ct_tp_src"),
            "ct_{mark,nw_{src,dst},tp_src}"
        );
        assert_eq!(short("ip_dscp nw_ecn"), "ip_dscp nw_ecn");
    }

    #[test]
    fn consecutive_numbered_names_become_range() {
        assert_eq!(short("reg1 reg2 reg3 reg5 reg6"), "reg1...reg3 reg5 reg6");
        assert_eq!(short("nsh_c1 nsh_c2 nsh_c3 nsh_ttl"), "nsh_{c1...c3,ttl}");
    }

    #[test]
    fn names_of_legacy_bits_are_fields() {
        assert_eq!(of_wildcards_v10(u32::MAX).len(), WILDCARDS_V10.len());
        assert_eq!(of_bits_v11(u32::MAX).len(), BITS_V11.len());
        // The physical ingress port has no field here.
        assert_eq!(of_bits_v12(u64::MAX).len(), usize::from(NEWEST_OF_12));
    }
}
