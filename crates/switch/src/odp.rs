//! Open vSwitch's datapath flow syntax (ovs-dpctl(8)):
//! `in_port(1),eth(dst=02:00:00:00:00:01),eth_type(0x0800),ipv4(frag=no)`.
//!
//! There is no such datapath here. Tools still read and write the syntax, so matches can be printed
//! in it and frames can be given in it.

mod commit;
mod parse;
mod push;
mod scan;
mod text;
mod tunnel;
mod value;

use std::fmt::Write;

use base::PortNo;
use flow::{Field, Match};

pub(crate) use commit::key_of;
pub use commit::{ExaminedBits, OdpHeaders};
pub use parse::{OdpFlow, OdpFlowError, OdpTag};
pub(crate) use push::tunnel_push;
pub use scan::MaskedNumber;
pub(crate) use tunnel::{CHECKSUM, DONT_FRAGMENT, KEY, OAM, TUNNEL_FLAGS};
pub use tunnel::{OdpGeneveOption, OdpTunnel};
use value::OdpFormat;

/// The EtherType of IPv4.
const TYPE_IPV4: u128 = 0x0800;

/// The EtherType of MPLS.
const TYPE_MPLS: u128 = 0x8847;

/// The EtherType of a VLAN tag.
const TYPE_VLAN: u128 = 0x8100;

/// The EtherType of IPv6, whose fields have their own groups.
const TYPE_IPV6: u128 = 0x86dd;

/// A key of the syntax: a group and an attribute in it, which some groups do not have.
struct OdpKey {
    group: &'static str,
    attribute: &'static str,
    field: Field,
    form: OdpFormat,
}

/// The keys in the order of output; prerequisites precede the fields that need them.
#[rustfmt::skip]
const KEYS: [OdpKey; 58] = {
    use Field as F;
    use OdpFormat::{Decimal, Frag, Hex, Ipv4, Ipv6, Mac, PlainHex, Vid};
    const fn key(group: &'static str, attribute: &'static str, field: Field, form: OdpFormat) -> OdpKey {
        OdpKey { group, attribute, field, form }
    }
    [
        key("skb_mark", "",       F::PktMark,      Hex),
        key("recirc_id", "",      F::RecircId,     Hex),
        key("dp_hash", "",        F::DpHash,       Hex),
        key("eth",      "src",    F::EthSrc,       Mac),
        key("eth",      "dst",    F::EthDst,       Mac),
        key("vlan",     "vid",    F::VlanVid,      Vid),
        key("vlan",     "pcp",    F::VlanPcp,      Decimal),
        key("eth_type", "",       F::EthType,      Hex),
        key("mpls",     "label",  F::MplsLabel,    Decimal),
        key("mpls",     "tc",     F::MplsTc,       Decimal),
        key("mpls",     "ttl",    F::MplsTtl,      Decimal),
        key("mpls",     "bos",    F::MplsBos,      Decimal),
        key("ipv4",     "src",    F::Ipv4Src,      Ipv4),
        key("ipv4",     "dst",    F::Ipv4Dst,      Ipv4),
        key("ipv4",     "proto",  F::IpProto,      Decimal),
        key("ipv4",     "tos",    F::IpDscp,       Hex),
        key("ipv4",     "ecn",    F::IpEcn,        Hex),
        key("ipv4",     "ttl",    F::IpTtl,        Decimal),
        key("ipv4",     "frag",   F::IpFrag,       Frag),
        key("ipv6",     "src",    F::Ipv6Src,      Ipv6),
        key("ipv6",     "dst",    F::Ipv6Dst,      Ipv6),
        key("ipv6",     "label",  F::Ipv6Flabel,   Hex),
        key("ipv6",     "proto",  F::IpProto,      Decimal),
        key("ipv6",     "tclass", F::IpDscp,       Hex),
        key("ipv6",     "ecn",    F::IpEcn,        Hex),
        key("ipv6",     "hlimit", F::IpTtl,        Decimal),
        key("ipv6",     "frag",   F::IpFrag,       Frag),
        key("tcp",      "src",    F::TcpSrc,       Decimal),
        key("tcp",      "dst",    F::TcpDst,       Decimal),
        key("tcp_flags", "",      F::TcpFlags,     Hex),
        key("udp",      "src",    F::UdpSrc,       Decimal),
        key("udp",      "dst",    F::UdpDst,       Decimal),
        key("sctp",     "src",    F::SctpSrc,      Decimal),
        key("sctp",     "dst",    F::SctpDst,      Decimal),
        key("icmp",     "type",   F::Icmpv4Type,   Decimal),
        key("icmp",     "code",   F::Icmpv4Code,   Decimal),
        key("icmpv6",   "type",   F::Icmpv6Type,   Decimal),
        key("icmpv6",   "code",   F::Icmpv6Code,   Decimal),
        key("nd",       "target", F::Ipv6NdTarget, Ipv6),
        key("nd",       "sll",    F::Ipv6NdSll,    Mac),
        key("nd",       "tll",    F::Ipv6NdTll,    Mac),
        key("nd_ext",   "nd_reserved", F::NdReserved,         PlainHex),
        key("nd_ext",   "nd_options_type", F::NdOptionsType,  Decimal),
        key("arp",      "sip",    F::ArpSpa,       Ipv4),
        key("arp",      "tip",    F::ArpTpa,       Ipv4),
        key("arp",      "op",     F::ArpOp,        Decimal),
        key("arp",      "sha",    F::ArpSha,       Mac),
        key("arp",      "tha",    F::ArpTha,       Mac),
        key("nsh",      "flags",  F::NshFlags,     Decimal),
        key("nsh",      "ttl",    F::NshTtl,       Decimal),
        key("nsh",      "mdtype", F::NshMdtype,    Decimal),
        key("nsh",      "np",     F::NshNp,        Decimal),
        key("nsh",      "spi",    F::NshSpi,       PlainHex),
        key("nsh",      "si",     F::NshSi,        Decimal),
        key("nsh",      "c1",     F::NshC1,        PlainHex),
        key("nsh",      "c2",     F::NshC2,        PlainHex),
        key("nsh",      "c3",     F::NshC3,        PlainHex),
        key("nsh",      "c4",     F::NshC4,        PlainHex),
    ]
};

/// The bits of a byte `tos` or `tclass` below the DSCP (RFC 3168).
const ECN_BITS: u32 = 2;

/// A group under construction.
struct OdpGroup {
    name: &'static str,
    parts: Vec<String>,
}

/// Writes a match. `port` returns the datapath's name of a port. Fields that the syntax lacks
/// (registers, metadata, tunnel fields) are written as `ovs-ofctl` does.
pub fn write(matching: &Match, port: impl Fn(PortNo) -> String) -> String {
    let mut text = String::new();
    let mut list = |item: String| {
        let comma = if text.is_empty() { "" } else { "," };
        // Writing to a string cannot fail.
        let _ = write!(text, "{comma}{item}");
    };
    if let Some(number) = matching.exact(Field::InPort) {
        let number = u32::try_from(number).unwrap_or(PortNo::ANY.0);
        list(format!("in_port({})", port(PortNo(number))));
    }
    let tagged = matching
        .term(Field::VlanVid)
        .is_some_and(|term| term.value != 0);
    let (outer, inner): (Vec<_>, Vec<_>) = groups(matching).into_iter().partition(|group| {
        ["eth", "vlan", "skb_mark", "recirc_id", "dp_hash"].contains(&group.name)
    });
    for group in outer {
        if group.name == "vlan" && tagged {
            list(format!("eth_type({TYPE_VLAN:#06x})"));
        }
        list(group.text());
    }
    let inner: Vec<_> = inner.iter().map(OdpGroup::text).collect();
    if tagged && !inner.is_empty() {
        list(format!("encap({})", inner.join(",")));
    } else {
        inner.into_iter().for_each(&mut list);
    }
    let has_key =
        |field: Field| field == Field::InPort || KEYS.iter().any(|key| key.field == field);
    for term in matching.terms().filter(|term| !has_key(term.field)) {
        let (name, value, mask) = (term.field.info().ofctl, term.value, term.mask);
        list(match term.is_exact() {
            true => format!("{name}({value:#x})"),
            false => format!("{name}({value:#x}/{mask:#x})"),
        });
    }
    text
}

fn groups(matching: &Match) -> Vec<OdpGroup> {
    let ipv6 = matching.exact(Field::EthType) == Some(TYPE_IPV6);
    let mut groups: Vec<OdpGroup> = Vec::new();
    for key in &KEYS {
        let other_version = (key.group == "ipv4" && ipv6) || (key.group == "ipv6" && !ipv6);
        let attribute = match matching.term(key.field) {
            Some(_) if other_version || key.attribute == "ecn" => None,
            Some(term) if key.field == Field::IpDscp => {
                let ecn = matching.term(Field::IpEcn);
                let (low, low_mask) = ecn.map_or((0, 0), |ecn| (ecn.value, ecn.mask));
                let value = term.value << ECN_BITS | low;
                let mask = term.mask << ECN_BITS | low_mask;
                Some(OdpFormat::Hex.write(value, (mask != 0xff).then_some(mask)))
            }
            Some(term) => Some(key.form.write_term(&term)),
            None if key.field == Field::IpDscp && !other_version => {
                let ecn = matching.term(Field::IpEcn);
                ecn.map(|ecn| OdpFormat::Hex.write(ecn.value, Some(ecn.mask)))
            }
            None => None,
        };
        let Some(attribute) = attribute else { continue };
        add_part(&mut groups, key, attribute);
    }
    groups
}

/// Adds an attribute to its group, which is the last one if it exists.
fn add_part(groups: &mut Vec<OdpGroup>, key: &OdpKey, attribute: String) {
    let attribute = match key.attribute {
        "" => attribute,
        name => format!("{name}={attribute}"),
    };
    match groups.last_mut().filter(|group| group.name == key.group) {
        Some(group) => group.parts.push(attribute),
        None => groups.push(OdpGroup {
            name: key.group,
            parts: vec![attribute],
        }),
    }
}

/// Returns the EtherType that the protocols of a flow imply, which is in effect without an
/// `eth_type()`, as in Open vSwitch.
fn implied_ether_type(flow: &OdpFlow) -> Option<u128> {
    let has = |group: &str| {
        let mut places = flow.fields.iter();
        places.any(|(place, _)| KEYS[*place].group == group)
    };
    match (has("ipv4"), has("ipv6"), flow.labels.is_empty()) {
        (true, _, _) => Some(TYPE_IPV4),
        (false, true, _) => Some(TYPE_IPV6),
        (false, false, false) => Some(TYPE_MPLS),
        (false, false, true) => None,
    }
}

impl OdpGroup {
    fn text(&self) -> String {
        format!("{}({})", self.name, self.parts.join(","))
    }
}

#[cfg(test)]
mod tests;
