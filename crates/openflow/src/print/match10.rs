//! The match of OpenFlow 1.0 in its wire form, member by member; a wildcarded member is a star
//! (OF 1.0.1, 5.2.3).

use std::net::Ipv4Addr;

use packet::MacAddr;

use super::port;
use super::refusal_names::DecodeErrorName;
use crate::codec::Reader;
use crate::match10::wild;
use crate::port_no;

/// The names of an EtherType, and of an EtherType with a protocol.
const TYPES: [(u16, &str); 5] = [
    (0x0800, "ip"),
    (0x0806, "arp"),
    (0x8035, "rarp"),
    (0x8847, "mpls"),
    (0x8848, "mplsm"),
];
const PROTOCOLS: [(u8, &str); 4] = [(ICMP, "icmp"), (6, "tcp"), (17, "udp"), (132, "sctp")];

const IPV4: u16 = 0x0800;
const ARP: u16 = 0x0806;
const ICMP: u8 = 1;

/// The EtherType and the protocol, unless they are wildcarded.
struct PacketProtocol {
    eth_type: Option<u16>,
    protocol: Option<u8>,
    /// Set if the protocol is ICMP, even if it is wildcarded.
    icmp: bool,
}

impl PacketProtocol {
    /// The name of the EtherType.
    fn named_type(&self) -> Option<&'static str> {
        let found = TYPES
            .iter()
            .find(|(known, _)| Some(*known) == self.eth_type);
        found.map(|(_, word)| *word)
    }

    /// The name of the EtherType and the protocol.
    fn named_protocol(&self) -> Option<&'static str> {
        let known = PROTOCOLS.iter().filter(|_| self.eth_type == Some(IPV4));
        let mut known = known.filter(|(known, _)| Some(*known) == self.protocol);
        known.next().map(|(_, word)| *word)
    }
}

/// Formats every member of the match at the start of `r`.
pub(super) fn members(r: &mut Reader<'_>) -> Result<String, DecodeErrorName> {
    let wildcards = r.u32()?;
    let counts = |bit: u32| wildcards & bit == 0;
    let member = |name: &str, bit: u32, value: String| match counts(bit) {
        true => format!("{name}={value}"),
        false => format!("{name}=*"),
    };
    let in_port = port::name(port_no::decode(r)?);
    let (src, dst) = (MacAddr(r.take()?), MacAddr(r.take()?));
    let (vlan, pcp) = (r.u16()?, r.u8()?);
    r.skip(1)?;
    let (eth_type, tos, protocol) = (r.u16()?, r.u8()?, r.u8()?);
    r.skip(2)?;
    let kind = PacketProtocol {
        eth_type: Some(eth_type).filter(|_| counts(wild::DL_TYPE)),
        protocol: Some(protocol).filter(|_| counts(wild::NW_PROTO)),
        icmp: protocol == ICMP,
    };
    let mut texts = vec![
        member("in_port", wild::IN_PORT, in_port),
        member("dl_vlan", wild::DL_VLAN, vlan.to_string()),
        member("dl_vlan_pcp", wild::DL_VLAN_PCP, pcp.to_string()),
        member("dl_src", wild::DL_SRC, src.to_string()),
        member("dl_dst", wild::DL_DST, dst.to_string()),
    ];
    match kind.named_protocol().or_else(|| kind.named_type()) {
        Some(word) => texts.insert(0, word.to_owned()),
        None => texts.push(member(
            "dl_type",
            wild::DL_TYPE,
            format!("0x{eth_type:04x}"),
        )),
    }
    texts.push(format!(
        "nw_src={}",
        network(r.u32()?, wildcards >> wild::NW_SRC_SHIFT)
    ));
    texts.push(format!(
        "nw_dst={}",
        network(r.u32()?, wildcards >> wild::NW_DST_SHIFT)
    ));
    if kind.named_protocol().is_none() {
        let is_arp = kind.eth_type == Some(ARP);
        let name = if is_arp { "arp_op" } else { "nw_proto" };
        texts.push(member(name, wild::NW_PROTO, protocol.to_string()));
    }
    texts.push(member("nw_tos", wild::NW_TOS, tos.to_string()));
    let [src, dst] = match kind.icmp {
        true => ["icmp_type", "icmp_code"],
        false => ["tp_src", "tp_dst"],
    };
    texts.push(member(src, wild::TP_SRC, r.u16()?.to_string()));
    texts.push(member(dst, wild::TP_DST, r.u16()?.to_string()));
    Ok(texts.join(","))
}

/// Formats an address; the lowest six bits of `open` are the number of its ignored low bits.
fn network(address: u32, open: u32) -> String {
    match open & wild::NW_BITS {
        0 => Ipv4Addr::from(address).to_string(),
        open @ 1..=31 => format!("{}/{}", Ipv4Addr::from(address), 32 - open),
        _ => "*".to_owned(),
    }
}
