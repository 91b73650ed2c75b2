//! The match of OpenFlow 1.1: a fixed structure of 88 bytes, with a word of wildcard bits for the
//! fields without a mask, and with masks of which the ones are ignored bits (OF 1.1.0, A.2.3).
//!
//! As in 1.0, a field without its prerequisites is ignored, and the meaning of some members depends
//! on others.

use flow::field::VID_PRESENT;
use flow::{Field, Match, MatchBuilder, Refusal, Term};

use crate::codec::{EncodeError, Malformed, Reader, Writer};
use crate::fidelity::Fidelity;
use crate::match10::{ARP, IPV4, IPV6, VLAN_NONE, add_if, low8, low16, transport_fields};

/// `OFPMT_STANDARD`.
const STANDARD: u16 = 0;

/// The length of the structure in bytes.
const LENGTH: usize = 88;

/// `OFPFW_*`: each bit wildcards a field.
mod wild {
    pub(super) const IN_PORT: u32 = 1 << 0;
    pub(super) const DL_VLAN: u32 = 1 << 1;
    pub(super) const DL_VLAN_PCP: u32 = 1 << 2;
    pub(super) const DL_TYPE: u32 = 1 << 3;
    pub(super) const NW_TOS: u32 = 1 << 4;
    pub(super) const NW_PROTO: u32 = 1 << 5;
    pub(super) const TP_SRC: u32 = 1 << 6;
    pub(super) const TP_DST: u32 = 1 << 7;
    pub(super) const MPLS_LABEL: u32 = 1 << 8;
    pub(super) const MPLS_TC: u32 = 1 << 9;
    pub(super) const ALL: u32 = (1 << 10) - 1;
}

/// `OFPVID_ANY`: packets with a VLAN tag of any id.
const VLAN_ANY: u16 = 0xfffe;

const MPLS: [u128; 2] = [0x8847, 0x8848];

/// A value and its mask; the ones of the mask are the matched bits.
#[derive(Clone, Copy, Debug, Default)]
struct MaskedMember {
    value: u128,
    mask: u128,
}

impl MaskedMember {
    /// Decodes a value and a mask of `bytes` bytes each.
    fn decode(bytes: usize, r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let full = u128::MAX >> (128 - 8 * bytes);
        let (value, open) = (r.number(bytes)?, r.number(bytes)?);
        let mask = !open & full;
        Ok(Self {
            value: value & mask,
            mask,
        })
    }

    fn encode(self, bytes: usize, w: &mut Writer<'_>) {
        w.number(bytes, self.value);
        w.number(bytes, !self.mask);
    }

    fn of(term: &Term) -> Self {
        Self {
            value: term.value,
            mask: term.mask,
        }
    }
}

/// The members of the structure.
#[derive(Clone, Copy, Debug)]
struct Raw {
    in_port: u32,
    wildcards: u32,
    dl_src: MaskedMember,
    dl_dst: MaskedMember,
    dl_vlan: u16,
    dl_vlan_pcp: u8,
    dl_type: u16,
    nw_tos: u8,
    nw_proto: u8,
    nw_src: MaskedMember,
    nw_dst: MaskedMember,
    tp_src: u16,
    tp_dst: u16,
    mpls_label: u32,
    mpls_tc: u8,
    metadata: MaskedMember,
}

impl Raw {
    fn any() -> Self {
        Self {
            in_port: 0,
            wildcards: wild::ALL,
            dl_src: MaskedMember::default(),
            dl_dst: MaskedMember::default(),
            dl_vlan: 0,
            dl_vlan_pcp: 0,
            dl_type: 0,
            nw_tos: 0,
            nw_proto: 0,
            nw_src: MaskedMember::default(),
            nw_dst: MaskedMember::default(),
            tp_src: 0,
            tp_dst: 0,
            mpls_label: 0,
            mpls_tc: 0,
            metadata: MaskedMember::default(),
        }
    }

    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut raw = Self::any();
        (raw.in_port, raw.wildcards) = (r.u32()?, r.u32()?);
        (raw.dl_src, raw.dl_dst) = (MaskedMember::decode(6, r)?, MaskedMember::decode(6, r)?);
        (raw.dl_vlan, raw.dl_vlan_pcp) = (r.u16()?, r.u8()?);
        r.skip(1)?;
        raw.dl_type = r.u16()?;
        (raw.nw_tos, raw.nw_proto) = (r.u8()?, r.u8()?);
        (raw.nw_src, raw.nw_dst) = (MaskedMember::decode(4, r)?, MaskedMember::decode(4, r)?);
        (raw.tp_src, raw.tp_dst) = (r.u16()?, r.u16()?);
        (raw.mpls_label, raw.mpls_tc) = (r.u32()?, r.u8()?);
        r.skip(3)?;
        raw.metadata = MaskedMember::decode(8, r)?;
        Ok(raw)
    }

    fn encode(&self, w: &mut Writer<'_>) {
        w.u32(self.in_port);
        w.u32(self.wildcards);
        self.dl_src.encode(6, w);
        self.dl_dst.encode(6, w);
        w.u16(self.dl_vlan);
        w.u8(self.dl_vlan_pcp);
        w.zeros(1);
        w.u16(self.dl_type);
        w.u8(self.nw_tos);
        w.u8(self.nw_proto);
        self.nw_src.encode(4, w);
        self.nw_dst.encode(4, w);
        w.u16(self.tp_src);
        w.u16(self.tp_dst);
        w.u32(self.mpls_label);
        w.u8(self.mpls_tc);
        w.zeros(3);
        self.metadata.encode(8, w);
    }

    const fn counts(&self, bit: u32) -> bool {
        self.wildcards & bit == 0
    }
}

/// Decodes the structure, including its type and length.
pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Match, Malformed> {
    let start = r.clone();
    let mut head = r.clone().on_short(Refusal::MatchBadLength);
    if head.u16()? != STANDARD {
        return Err(start.fail(Refusal::MatchBadType));
    }
    if usize::from(head.u16()?) != LENGTH {
        return Err(start.fail(Refusal::MatchBadLength));
    }
    let mut structure = r.sub_or(LENGTH, Refusal::MatchBadLength)?;
    structure.skip(4)?;
    let raw = Raw::decode(&mut structure)?;
    let mut building = MatchBuilder::default();
    link(&mut building, &raw)
        .and_then(|()| network(&mut building, &raw))
        .and_then(|()| transport(&mut building, &raw))
        .map_err(|refusal| start.fail(refusal))?;
    Ok(building.build())
}

/// Adds the ingress port, Ethernet, VLAN and metadata fields.
fn link(building: &mut MatchBuilder, raw: &Raw) -> Result<(), Refusal> {
    let in_port = raw.in_port.into();
    add_if(raw.counts(wild::IN_PORT), building, Field::InPort, in_port)?;
    building.add(Field::Metadata, raw.metadata.value, raw.metadata.mask)?;
    building.add(Field::EthDst, raw.dl_dst.value, raw.dl_dst.mask)?;
    building.add(Field::EthSrc, raw.dl_src.value, raw.dl_src.mask)?;
    let dl_type = raw.dl_type.into();
    add_if(raw.counts(wild::DL_TYPE), building, Field::EthType, dl_type)?;
    if !raw.counts(wild::DL_VLAN) {
        return Ok(());
    }
    let present = u128::from(VID_PRESENT);
    match raw.dl_vlan {
        // The priority has no meaning without a tag.
        VLAN_NONE => return building.add_exact(Field::VlanVid, 0),
        VLAN_ANY => building.add(Field::VlanVid, present, present)?,
        vid if vid <= 0x0fff => building.add_exact(Field::VlanVid, present | u128::from(vid))?,
        _ => return Err(Refusal::MatchBadValue),
    }
    let pcp = raw.dl_vlan_pcp.into();
    add_if(raw.counts(wild::DL_VLAN_PCP), building, Field::VlanPcp, pcp)
}

/// Adds the fields of ARP, IP and MPLS.
fn network(building: &mut MatchBuilder, raw: &Raw) -> Result<(), Refusal> {
    let Some(eth_type) = building.exact(Field::EthType) else {
        return Ok(());
    };
    let addresses = |building: &mut MatchBuilder, src, dst| {
        building.add(src, raw.nw_src.value, raw.nw_src.mask)?;
        building.add(dst, raw.nw_dst.value, raw.nw_dst.mask)
    };
    let proto = (raw.counts(wild::NW_PROTO), raw.nw_proto.into());
    if ARP.contains(&eth_type) {
        add_if(proto.0, building, Field::ArpOp, proto.1)?;
        return addresses(building, Field::ArpSpa, Field::ArpTpa);
    }
    if MPLS.contains(&eth_type) {
        let (label, tc) = (raw.mpls_label.into(), raw.mpls_tc.into());
        add_if(
            raw.counts(wild::MPLS_LABEL),
            building,
            Field::MplsLabel,
            label,
        )?;
        return add_if(raw.counts(wild::MPLS_TC), building, Field::MplsTc, tc);
    }
    if eth_type != IPV4 && eth_type != IPV6 {
        return Ok(());
    }
    let tos = raw.counts(wild::NW_TOS);
    if tos && raw.nw_tos & 3 != 0 {
        return Err(Refusal::MatchBadValue);
    }
    add_if(tos, building, Field::IpDscp, (raw.nw_tos >> 2).into())?;
    add_if(proto.0, building, Field::IpProto, proto.1)?;
    if eth_type == IPV4 {
        addresses(building, Field::Ipv4Src, Field::Ipv4Dst)
    } else {
        Ok(())
    }
}

/// Adds the fields of the transport protocol.
fn transport(building: &mut MatchBuilder, raw: &Raw) -> Result<(), Refusal> {
    let exact = |field| building.exact(field);
    let Some((src, dst)) = transport_fields(exact(Field::EthType), exact(Field::IpProto)) else {
        return Ok(());
    };
    add_if(raw.counts(wild::TP_SRC), building, src, raw.tp_src.into())?;
    add_if(raw.counts(wild::TP_DST), building, dst, raw.tp_dst.into())
}

/// Appends the structure, including its type and length. With [`Fidelity::BestEffort`] it omits
/// fields that the structure lacks, so that it is wider than `matching`.
pub(crate) fn encode(
    matching: &Match,
    fidelity: Fidelity,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    let mut raw = Raw::any();
    let mut terms = matching.terms();
    for term in terms.by_ref() {
        let stored = put_link(&term, &mut raw)
            || put_vlan(&term, &mut raw)
            || put_network(&term, &mut raw)
            || put_transport(&term, matching, &mut raw);
        if !stored && fidelity == Fidelity::Lossless {
            return Err(w.unsupported("this match field or mask"));
        }
    }
    if fidelity == Fidelity::Lossless && terms.options().next().is_some() {
        return Err(w.unsupported("tunnel options"));
    }
    w.nested(2, |w| {
        w.u16(STANDARD);
        w.u16(0);
        raw.encode(w);
        Ok(())
    })
    .map(drop)
}

/// Stores `term` in `raw` if it is an ingress port, Ethernet or metadata field.
fn put_link(term: &Term, raw: &mut Raw) -> bool {
    match term.field {
        Field::InPort => {
            raw.in_port = u32::try_from(term.value).expect("a field of 32 bits");
            raw.wildcards &= !wild::IN_PORT;
        }
        Field::Metadata => raw.metadata = MaskedMember::of(term),
        Field::EthDst => raw.dl_dst = MaskedMember::of(term),
        Field::EthSrc => raw.dl_src = MaskedMember::of(term),
        Field::EthType => {
            raw.dl_type = low16(term.value);
            raw.wildcards &= !wild::DL_TYPE;
        }
        _ => return false,
    }
    true
}

/// Stores `term` in `raw` if it is a VLAN field that the structure can express.
fn put_vlan(term: &Term, raw: &mut Raw) -> bool {
    let present = u128::from(VID_PRESENT);
    match term.field {
        Field::VlanVid if term.is_exact() && term.value == 0 => raw.dl_vlan = VLAN_NONE,
        Field::VlanVid if term.is_exact() && term.value & present != 0 => {
            raw.dl_vlan = low16(term.value) & 0x0fff;
        }
        Field::VlanVid if term.mask == present && term.value == present => raw.dl_vlan = VLAN_ANY,
        Field::VlanPcp if raw.counts(wild::DL_VLAN) => {
            raw.dl_vlan_pcp = low8(term.value);
            raw.wildcards &= !wild::DL_VLAN_PCP;
            return true;
        }
        _ => return false,
    }
    raw.wildcards &= !wild::DL_VLAN;
    true
}

/// Stores `term` in `raw` if it is an ARP, IP or MPLS field that the structure can express.
fn put_network(term: &Term, raw: &mut Raw) -> bool {
    let cleared = match term.field {
        Field::Ipv4Src | Field::ArpSpa => {
            raw.nw_src = MaskedMember::of(term);
            return true;
        }
        Field::Ipv4Dst | Field::ArpTpa => {
            raw.nw_dst = MaskedMember::of(term);
            return true;
        }
        Field::IpDscp => {
            raw.nw_tos = low8(term.value) << 2;
            wild::NW_TOS
        }
        Field::IpProto => {
            raw.nw_proto = low8(term.value);
            wild::NW_PROTO
        }
        Field::ArpOp if term.is_exact() && term.value <= 0xff => {
            raw.nw_proto = low8(term.value);
            wild::NW_PROTO
        }
        Field::MplsLabel => {
            raw.mpls_label = u32::try_from(term.value).expect("a field of 20 bits");
            wild::MPLS_LABEL
        }
        Field::MplsTc => {
            raw.mpls_tc = low8(term.value);
            wild::MPLS_TC
        }
        _ => return false,
    };
    raw.wildcards &= !cleared;
    true
}

/// Stores `term` in `raw` if it is a transport field that the structure can express.
fn put_transport(term: &Term, matching: &Match, raw: &mut Raw) -> bool {
    let exact = |field| matching.exact(field);
    let fields = transport_fields(exact(Field::EthType), exact(Field::IpProto));
    let Some((src, dst)) = fields.filter(|_| term.is_exact()) else {
        return false;
    };
    if term.field == src {
        (raw.tp_src, raw.wildcards) = (low16(term.value), raw.wildcards & !wild::TP_SRC);
    } else if term.field == dst {
        (raw.tp_dst, raw.wildcards) = (low16(term.value), raw.wildcards & !wild::TP_DST);
    } else {
        return false;
    }
    true
}

#[cfg(test)]
mod tests;
