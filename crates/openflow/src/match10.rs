//! The match of OpenFlow 1.0: a fixed structure of forty bytes with a word of wildcard bits
//! (OF 1.0.1, 5.2.3).
//!
//! The decoder ignores a field without its prerequisites, as Open vSwitch does
//! (`ofputil_normalize_match`): the specification leaves this open, and controllers fill in
//! arbitrary values. The meaning of some members depends on others: `nw_proto` is also ARP's
//! opcode, and the transport ports are also ICMP's type and code.

use flow::field::VID_PRESENT;
use flow::{Field, Match, MatchBuilder, Refusal, Term};

use crate::codec::{EncodeError, Malformed, Reader, Writer};
use crate::fidelity::Fidelity;
use crate::port_no;

/// `OFPFW_*`: each bit wildcards a field.
pub(crate) mod wild {
    pub(crate) const IN_PORT: u32 = 1 << 0;
    pub(crate) const DL_VLAN: u32 = 1 << 1;
    pub(crate) const DL_SRC: u32 = 1 << 2;
    pub(crate) const DL_DST: u32 = 1 << 3;
    pub(crate) const DL_TYPE: u32 = 1 << 4;
    pub(crate) const NW_PROTO: u32 = 1 << 5;
    pub(crate) const TP_SRC: u32 = 1 << 6;
    pub(crate) const TP_DST: u32 = 1 << 7;
    /// Six bits: the number of ignored low bits of the address; 32 or more ignore all.
    pub(crate) const NW_SRC_SHIFT: u32 = 8;
    pub(crate) const NW_DST_SHIFT: u32 = 14;
    pub(crate) const NW_BITS: u32 = 0x3f;
    pub(crate) const DL_VLAN_PCP: u32 = 1 << 20;
    pub(crate) const NW_TOS: u32 = 1 << 21;
    /// All wildcards, as Open vSwitch encodes them.
    pub(crate) const ALL: u32 = 0x0038_20ff;
    /// Every defined bit.
    pub(crate) const KNOWN: u32 = (1 << 22) - 1;
}

/// `OFP_VLAN_NONE`: only packets without a VLAN tag.
pub(crate) const VLAN_NONE: u16 = 0xffff;

pub(crate) const IPV4: u128 = 0x0800;
pub(crate) const IPV6: u128 = 0x86dd;
pub(crate) const ARP: [u128; 2] = [0x0806, 0x8035];

/// The length of the structure in bytes.
const LENGTH: usize = 40;

/// `N` bytes at offset `at`.
fn part<const N: usize>(bytes: &[u8; LENGTH], at: usize) -> [u8; N] {
    *bytes[at..]
        .first_chunk()
        .expect("every member is within the structure")
}

/// A match. `exact` is true if it has no wildcard: the rule then has the highest priority,
/// regardless of the message's priority (OF 1.0.1, 3.4).
#[derive(Clone, Debug)]
pub(crate) struct Match10 {
    pub(crate) matching: Match,
    pub(crate) exact: bool,
}

/// The members of the structure.
#[derive(Clone, Copy, Debug)]
struct Raw {
    wildcards: u32,
    in_port: u16,
    dl_src: u64,
    dl_dst: u64,
    dl_vlan: u16,
    dl_vlan_pcp: u8,
    dl_type: u16,
    nw_tos: u8,
    nw_proto: u8,
    nw_src: u32,
    nw_dst: u32,
    tp_src: u16,
    tp_dst: u16,
}

impl Raw {
    const ANY: Self = Self {
        wildcards: wild::ALL,
        in_port: 0,
        dl_src: 0,
        dl_dst: 0,
        dl_vlan: 0,
        dl_vlan_pcp: 0,
        dl_type: 0,
        nw_tos: 0,
        nw_proto: 0,
        nw_src: 0,
        nw_dst: 0,
        tp_src: 0,
        tp_dst: 0,
    };

    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let bytes: [u8; LENGTH] = r.take()?;
        let [wildcards, nw_src, nw_dst] =
            [0, 28, 32].map(|at| u32::from_be_bytes(part(&bytes, at)));
        let short = |at| u16::from_be_bytes(part(&bytes, at));
        // Eight bytes: the address and two bytes before or after it.
        let long = |at| u64::from_be_bytes(part(&bytes, at));
        Ok(Self {
            wildcards,
            in_port: short(4),
            dl_src: long(6) >> 16,
            dl_dst: long(12) >> 16,
            dl_vlan: short(18),
            dl_vlan_pcp: bytes[20],
            dl_type: short(22),
            nw_tos: bytes[24],
            nw_proto: bytes[25],
            nw_src,
            nw_dst,
            tp_src: short(36),
            tp_dst: short(38),
        })
    }

    fn encode(&self, w: &mut Writer<'_>) {
        w.u32(self.wildcards);
        w.u16(self.in_port);
        w.number(6, self.dl_src.into());
        w.number(6, self.dl_dst.into());
        w.u16(self.dl_vlan);
        w.u8(self.dl_vlan_pcp);
        w.zeros(1);
        w.u16(self.dl_type);
        w.u8(self.nw_tos);
        w.u8(self.nw_proto);
        w.zeros(2);
        w.u32(self.nw_src);
        w.u32(self.nw_dst);
        w.u16(self.tp_src);
        w.u16(self.tp_dst);
    }

    const fn counts(&self, bit: u32) -> bool {
        self.wildcards & bit == 0
    }

    /// The EtherType, unless it is wildcarded.
    fn eth_type(&self) -> Option<u128> {
        self.counts(wild::DL_TYPE).then_some(self.dl_type.into())
    }

    /// The IP protocol, unless it is wildcarded or the EtherType is not IP.
    fn ip_proto(&self) -> Option<u128> {
        let is_ip = [Some(IPV4), Some(IPV6)].contains(&self.eth_type());
        (is_ip && self.counts(wild::NW_PROTO)).then_some(self.nw_proto.into())
    }

    /// The mask of the address with the wildcard bits at `shift`.
    const fn nw_mask(&self, shift: u32) -> u32 {
        let open = self.wildcards >> shift & wild::NW_BITS;
        match u32::MAX.checked_shl(open) {
            Some(mask) => mask,
            None => 0,
        }
    }

    /// Sets the prefix length of an address.
    const fn set_nw_bits(&mut self, shift: u32, counting: u32) {
        self.wildcards &= !(wild::NW_BITS << shift);
        self.wildcards |= (32 - counting) << shift;
    }
}

/// Decodes the structure.
pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Match10, Malformed> {
    let start = r.fail(Refusal::MatchBadValue);
    let raw = Raw::decode(r)?;
    let mut building = MatchBuilder::default();
    link(&mut building, &raw)
        .and_then(|()| network(&mut building, &raw))
        .and_then(|()| transport(&mut building, &raw))
        .map_err(|refusal| Malformed { refusal, ..start })?;
    let exact = raw.wildcards & wild::KNOWN == 0;
    let matching = building.build();
    Ok(Match10 { matching, exact })
}

/// Adds `field == value` if `is_matched`.
#[inline]
pub(crate) fn add_if(
    is_matched: bool,
    building: &mut MatchBuilder,
    field: Field,
    value: u64,
) -> Result<(), Refusal> {
    if is_matched {
        building.add_number(field, value)
    } else {
        Ok(())
    }
}

/// Adds the ingress port, Ethernet and VLAN fields.
fn link(building: &mut MatchBuilder, raw: &Raw) -> Result<(), Refusal> {
    let in_port = port_no::from_u16(raw.in_port).0.into();
    let dl_type = raw.dl_type.into();
    add_if(raw.counts(wild::IN_PORT), building, Field::InPort, in_port)?;
    add_if(
        raw.counts(wild::DL_DST),
        building,
        Field::EthDst,
        raw.dl_dst,
    )?;
    add_if(
        raw.counts(wild::DL_SRC),
        building,
        Field::EthSrc,
        raw.dl_src,
    )?;
    add_if(raw.counts(wild::DL_TYPE), building, Field::EthType, dl_type)?;
    match (raw.counts(wild::DL_VLAN), raw.counts(wild::DL_VLAN_PCP)) {
        (false, false) => Ok(()),
        // The priority has no meaning without a tag.
        (true, _) if raw.dl_vlan == VLAN_NONE => building.add_number(Field::VlanVid, 0),
        (true, pcp) => {
            let vid = VID_PRESENT | raw.dl_vlan & 0x0fff;
            building.add_number(Field::VlanVid, vid.into())?;
            add_if(pcp, building, Field::VlanPcp, (raw.dl_vlan_pcp & 7).into())
        }
        (false, true) => {
            building.add(Field::VlanVid, VID_PRESENT.into(), VID_PRESENT.into())?;
            building.add_exact(Field::VlanPcp, (raw.dl_vlan_pcp & 7).into())
        }
    }
}

/// Adds the fields of ARP and IP.
fn network(building: &mut MatchBuilder, raw: &Raw) -> Result<(), Refusal> {
    let Some(eth_type) = raw.eth_type() else {
        return Ok(());
    };
    let proto = (raw.counts(wild::NW_PROTO), raw.nw_proto.into());
    let (src_mask, dst_mask) = (
        raw.nw_mask(wild::NW_SRC_SHIFT),
        raw.nw_mask(wild::NW_DST_SHIFT),
    );
    let addresses = |building: &mut MatchBuilder, src, dst| {
        building.add(src, (raw.nw_src & src_mask).into(), src_mask.into())?;
        building.add(dst, (raw.nw_dst & dst_mask).into(), dst_mask.into())
    };
    if ARP.contains(&eth_type) {
        add_if(proto.0, building, Field::ArpOp, proto.1)?;
        return addresses(building, Field::ArpSpa, Field::ArpTpa);
    }
    if eth_type != IPV4 && eth_type != IPV6 {
        return Ok(());
    }
    let dscp = (raw.nw_tos >> 2).into();
    add_if(raw.counts(wild::NW_TOS), building, Field::IpDscp, dscp)?;
    add_if(proto.0, building, Field::IpProto, proto.1)?;
    if eth_type == IPV4 {
        addresses(building, Field::Ipv4Src, Field::Ipv4Dst)
    } else {
        Ok(())
    }
}

/// Adds the fields of the transport protocol.
fn transport(building: &mut MatchBuilder, raw: &Raw) -> Result<(), Refusal> {
    let (eth_type, ip_proto) = (raw.eth_type(), raw.ip_proto());
    let Some((src, dst)) = transport_fields(eth_type, ip_proto) else {
        return Ok(());
    };
    // Only the lower eight bits of ICMP's type and code count (OF 1.0.1, 5.2.3).
    let mask = match src {
        Field::Icmpv4Type | Field::Icmpv6Type => 0xff,
        _ => u16::MAX,
    };
    let (tp_src, tp_dst) = (raw.tp_src & mask, raw.tp_dst & mask);
    add_if(raw.counts(wild::TP_SRC), building, src, tp_src.into())?;
    add_if(raw.counts(wild::TP_DST), building, dst, tp_dst.into())
}

/// The fields that the transport ports mean for this EtherType and IP protocol.
pub(crate) fn transport_fields(
    eth_type: Option<u128>,
    ip_proto: Option<u128>,
) -> Option<(Field, Field)> {
    match (ip_proto?, eth_type?) {
        (6, _) => Some((Field::TcpSrc, Field::TcpDst)),
        (17, _) => Some((Field::UdpSrc, Field::UdpDst)),
        (132, _) => Some((Field::SctpSrc, Field::SctpDst)),
        (1, IPV4) => Some((Field::Icmpv4Type, Field::Icmpv4Code)),
        (58, IPV6) => Some((Field::Icmpv6Type, Field::Icmpv6Code)),
        _ => None,
    }
}

/// Appends the structure. With [`Fidelity::BestEffort`] it omits fields that the structure lacks,
/// so that it is wider than `matching`.
pub(crate) fn encode(
    matching: &Match,
    fidelity: Fidelity,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    let raw = build_raw(matching, fidelity).map_err(|part| w.unsupported(part))?;
    raw.encode(w);
    Ok(())
}

/// Returns the match if the structure can express all of it; `exact` is true if the structure then
/// has no wildcard.
pub(crate) fn lossless(matching: &Match) -> Option<Match10> {
    let raw = build_raw(matching, Fidelity::Lossless).ok()?;
    Some(Match10 {
        matching: matching.clone(),
        exact: raw.wildcards & wild::KNOWN == 0,
    })
}

/// The structure for `matching`, or the name of the part that it lacks.
fn build_raw(matching: &Match, fidelity: Fidelity) -> Result<Raw, &'static str> {
    let mut raw = Raw::ANY;
    let mut terms = matching.terms();
    for term in terms.by_ref() {
        let stored = put_link(&term, &mut raw)
            || put_vlan(&term, matching, fidelity, &mut raw)
            || put_network(&term, matching, fidelity, &mut raw)
            || put_transport(&term, matching, fidelity, &mut raw);
        if !stored && fidelity == Fidelity::Lossless {
            return Err("this match field or mask");
        }
    }
    if fidelity == Fidelity::Lossless && terms.options().next().is_some() {
        return Err("tunnel options");
    }
    Ok(raw)
}

/// Stores `term` in `raw` if it is an ingress port or Ethernet field that the structure can
/// express.
fn put_link(term: &Term, raw: &mut Raw) -> bool {
    let exact = term.is_exact();
    match term.field {
        Field::InPort => {
            let port = u32::try_from(term.value).ok().map(base::PortNo);
            let Some(number) = port.and_then(port_no::to_u16) else {
                return false;
            };
            (raw.in_port, raw.wildcards) = (number, raw.wildcards & !wild::IN_PORT);
        }
        Field::EthDst if exact => {
            (raw.dl_dst, raw.wildcards) = (low48(term.value), raw.wildcards & !wild::DL_DST);
        }
        Field::EthSrc if exact => {
            (raw.dl_src, raw.wildcards) = (low48(term.value), raw.wildcards & !wild::DL_SRC);
        }
        Field::EthType => {
            (raw.dl_type, raw.wildcards) = (low16(term.value), raw.wildcards & !wild::DL_TYPE);
        }
        _ => return false,
    }
    true
}

/// Stores `term` in `raw` if it is a VLAN field that the structure can express.
fn put_vlan(term: &Term, matching: &Match, fidelity: Fidelity, raw: &mut Raw) -> bool {
    let present = u128::from(VID_PRESENT);
    match term.field {
        Field::VlanVid if term.mask & present != 0 && term.value & present == 0 => {
            if term.value != 0 || fidelity == Fidelity::Lossless && !term.is_exact() {
                return false;
            }
            // An untagged frame has no priority to ignore, so the bit for it is clear, as in the
            // exact matches of controllers.
            let both = wild::DL_VLAN | wild::DL_VLAN_PCP;
            (raw.dl_vlan, raw.wildcards) = (VLAN_NONE, raw.wildcards & !both);
        }
        Field::VlanVid if term.is_exact() => {
            let vid = low16(term.value) & 0x0fff;
            (raw.dl_vlan, raw.wildcards) = (vid, raw.wildcards & !wild::DL_VLAN);
        }
        // The priority implies that there is a tag.
        Field::VlanVid => {
            return term.mask == present && matching.term(Field::VlanPcp).is_some();
        }
        Field::VlanPcp => {
            raw.dl_vlan_pcp = low8(term.value);
            raw.wildcards &= !wild::DL_VLAN_PCP;
        }
        _ => return false,
    }
    true
}

/// Stores `term` in `raw` if it is an ARP or IP field that the structure can express.
fn put_network(term: &Term, matching: &Match, fidelity: Fidelity, raw: &mut Raw) -> bool {
    // Only Open vSwitch reads these members in a match on IPv6.
    let foreign = matching.exact(Field::EthType) == Some(IPV6) && fidelity == Fidelity::Lossless;
    match term.field {
        Field::Ipv4Src | Field::ArpSpa => {
            let (address, bits) = prefix(term);
            raw.nw_src = address;
            raw.set_nw_bits(wild::NW_SRC_SHIFT, bits);
            return bits == low32(term.mask).count_ones();
        }
        Field::Ipv4Dst | Field::ArpTpa => {
            let (address, bits) = prefix(term);
            raw.nw_dst = address;
            raw.set_nw_bits(wild::NW_DST_SHIFT, bits);
            return bits == low32(term.mask).count_ones();
        }
        Field::IpDscp if !foreign => {
            (raw.nw_tos, raw.wildcards) = (low8(term.value) << 2, raw.wildcards & !wild::NW_TOS);
        }
        Field::IpProto if !foreign => {
            (raw.nw_proto, raw.wildcards) = (low8(term.value), raw.wildcards & !wild::NW_PROTO);
        }
        Field::ArpOp if term.is_exact() && term.value <= 0xff => {
            (raw.nw_proto, raw.wildcards) = (low8(term.value), raw.wildcards & !wild::NW_PROTO);
        }
        _ => return false,
    }
    true
}

/// Stores `term` in `raw` if it is a transport field that the structure can express.
fn put_transport(term: &Term, matching: &Match, fidelity: Fidelity, raw: &mut Raw) -> bool {
    let foreign = matching.exact(Field::EthType) == Some(IPV6) && fidelity == Fidelity::Lossless;
    let exact = |field| matching.exact(field);
    let Some((src, dst)) = transport_fields(exact(Field::EthType), exact(Field::IpProto)) else {
        return false;
    };
    if foreign || !term.is_exact() {
        return false;
    }
    if term.field == src {
        (raw.tp_src, raw.wildcards) = (low16(term.value), raw.wildcards & !wild::TP_SRC);
    } else if term.field == dst {
        (raw.tp_dst, raw.wildcards) = (low16(term.value), raw.wildcards & !wild::TP_DST);
    } else {
        return false;
    }
    true
}

/// The prefix of a masked address and its length in bits.
fn prefix(term: &Term) -> (u32, u32) {
    let bits = low32(term.mask).leading_ones();
    let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
    (low32(term.value) & mask, bits)
}

pub(crate) fn low8(value: u128) -> u8 {
    value.to_be_bytes()[15]
}

pub(crate) fn low16(value: u128) -> u16 {
    u16::from_be_bytes([value.to_be_bytes()[14], value.to_be_bytes()[15]])
}

fn low48(value: u128) -> u64 {
    let [.., a, b, c, d, e, f] = value.to_be_bytes();
    u64::from_be_bytes([0, 0, a, b, c, d, e, f])
}

fn low32(value: u128) -> u32 {
    (value & 0xffff_ffff) as u32
}

#[cfg(test)]
mod tests;
