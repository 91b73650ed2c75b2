//! Matches as lists of type-length-value fields: OXM of OpenFlow 1.2 and later (OF 1.3.5, 7.2.3),
//! and NXM, Nicira's extension of 1.0 and the predecessor of OXM.
//!
//! The headers are in the field registry; the decoder accepts both kinds in every version. Three
//! NXM fields differ in width from the registry's (a 16-bit `in_port`, the VLAN tag as one number,
//! the whole ToS byte) and are converted here. The fixed match structure of 1.0 is in `match10`.

use base::{Cookie, PortNo};
use flow::field::{EXPERIMENTER, Maskable, ONF, WireId};
use flow::{Field, Match, MatchBuilder, OptionTerm, Refusal, Term, Wide};

use crate::codec::{EncodeError, Malformed, Reader, Writer};
use crate::experimenter::NICIRA;
use crate::fidelity::Fidelity;
use crate::match11;
use crate::port_no;
use crate::version::Version;

/// The class of the specification's fields.
const BASIC_CLASS: u16 = 0x8000;

/// The TCP flags and the action set's output port: ONF experimenter fields until 1.4, basic fields
/// with the same numbers in 1.5.
const BASIC_IN_15: [Field; 2] = [Field::TcpFlags, Field::ActsetOutput];

/// The field of a header that is basic in 1.5 and was ONF's before.
fn basic_in_15(header: WireId) -> Option<Field> {
    let onf = WireId::of_experimenter(ONF, header.number);
    let fields = BASIC_IN_15.into_iter();
    let mut same = fields.filter(|field| field.info().oxm == Some(onf));
    same.next().filter(|_| header.class == BASIC_CLASS)
}

const NXM_IN_PORT: WireId = id(0x0000, 0);
const NXM_VLAN_TCI: WireId = id(0x0000, 4);
const NXM_IP_TOS: WireId = id(0x0000, 5);
/// Has the same number as `mpls_ttl`, which has a length of one byte.
const NXM_COOKIE: WireId = id(0x0001, 30);

/// The second header of `dp_hash`, since Open vSwitch 2.4.
const NXOXM_ET_DP_HASH: WireId = WireId::of_experimenter(NICIRA, 0);

/// The tag control information of a VLAN tag: the id in the low bits, then the present bit, then
/// the priority.
const PCP_SHIFT: u32 = 13;

const fn id(class: u16, number: u8) -> WireId {
    WireId::new(class, number)
}

/// A field header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OxmHeader {
    pub(crate) id: WireId,
    pub(crate) masked: bool,
    /// The payload in bytes: the value, the mask and an experimenter id.
    pub(crate) length: usize,
}

impl OxmHeader {
    /// Decodes a header.
    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let class = r.u16()?;
        let [field, length] = r.take()?;
        Ok(Self {
            id: id(class, field >> 1),
            masked: field & 1 == 1,
            length: usize::from(length),
        })
    }

    /// The header of `field`, alone or with a mask.
    fn new(field: Field, id: WireId, masked: bool) -> Self {
        let experimenter = if id.class == EXPERIMENTER { 4 } else { 0 };
        Self {
            id,
            masked,
            length: experimenter + field.bytes() * (1 + usize::from(masked)),
        }
    }

    /// Appends the header, and the experimenter id if there is one.
    pub(crate) fn encode(mut self, w: &mut Writer<'_>) {
        let basic = id(BASIC_CLASS, self.id.number);
        if self.id.experimenter == ONF
            && w.version() == Version::V15
            && basic_in_15(basic).is_some()
        {
            (self.id, self.length) = (basic, self.length - 4);
        }
        w.u16(self.id.class);
        w.u8(self.id.number << 1 | u8::from(self.masked));
        w.number(1, self.length as u128);
        if self.id.class == EXPERIMENTER {
            w.u32(self.id.experimenter);
        }
    }

    /// The field of the header, unless its width differs from the field's. Reads the experimenter
    /// id if there is one.
    pub(crate) fn field(self, r: &mut Reader<'_>) -> Result<Option<Field>, Malformed> {
        let id = match self.id.class {
            EXPERIMENTER => WireId::of_experimenter(r.u32()?, self.id.number),
            _ => self.id,
        };
        if id == NXOXM_ET_DP_HASH {
            return Ok(Some(Field::DpHash));
        }
        let field = Field::from_oxm(id).or_else(|| Field::from_nxm(id));
        Ok(field.or_else(|| basic_in_15(id)))
    }
}

/// The payload of `field` in bytes under the header `id`, without a mask.
pub(crate) fn length_of(field: Field, id: WireId) -> usize {
    OxmHeader::new(field, id, false).length
}

/// Decodes the value of a tunnel option and its optional mask; the sender chooses their length. A
/// mask of no bytes matches the presence of the option (`ovs-fields(7)`, "Tunnel Metadata").
pub(crate) fn decode_option(
    field: Field,
    header: OxmHeader,
    payload: &mut Reader<'_>,
) -> Result<OptionTerm, Malformed> {
    let width = header.length >> usize::from(header.masked);
    let too_wide = payload.fail(Refusal::MatchBadLength);
    let mut number = || Wide::from_be_bytes(payload.bytes(width)?).ok_or(too_wide);
    let value = number()?;
    let mask = match header.masked {
        true => number()?,
        false => Wide::ONES,
    };
    payload.end()?;
    Ok(OptionTerm { field, value, mask })
}

/// Appends the header of a tunnel option, the value, and the mask unless it is all ones.
pub(crate) fn encode_option(term: &OptionTerm, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    let masked = !term.is_exact();
    let header = header_of(term.field, HeaderFamily::Nxm, masked);
    let mut header = header.ok_or_else(|| w.unsupported("a field without header"))?;
    let width = term.width();
    header.length = width << usize::from(masked);
    header.encode(w);
    let mut put = |number: Wide| {
        let bytes = number.to_be_bytes();
        w.bytes(&bytes[bytes.len() - width..]);
    };
    put(term.value);
    if masked {
        put(term.mask);
    }
    Ok(())
}

/// Appends the header of `field`, the value, and the mask unless it is all ones.
pub(crate) fn encode_value(
    field: Field,
    family: HeaderFamily,
    (value, mask): (u128, u128),
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    let masked = mask != field.full_mask();
    let header = header_of(field, family, masked);
    let header = header.ok_or_else(|| w.unsupported("a field without header"))?;
    let width = field.bytes();
    header.encode(w);
    w.number(width, value);
    if masked {
        w.number(width, mask);
    }
    Ok(())
}

/// The header of a field, with or without a mask.
pub(crate) fn header_of(field: Field, family: HeaderFamily, masked: bool) -> Option<OxmHeader> {
    let row = field.info();
    let id = match family {
        HeaderFamily::Oxm => row.oxm.or(row.nxm),
        HeaderFamily::Nxm => row.nxm.or(row.oxm),
    }?;
    Some(OxmHeader::new(field, id, masked))
}

/// The preferred header family of a field that has two headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeaderFamily {
    Oxm,
    Nxm,
}

/// A condition on the cookie, which NXM encodes like a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CookieFilter {
    pub(crate) cookie: Cookie,
    pub(crate) mask: u64,
}

/// A match and the cookie condition of NXM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NxmMatch {
    pub(crate) matching: Match,
    pub(crate) cookies: CookieFilter,
}

impl NxmMatch {
    /// `matching` with any cookie.
    pub(crate) fn of(matching: Match) -> Self {
        Self {
            matching,
            cookies: CookieFilter::default(),
        }
    }
}

/// Decodes fields to the end of `r`. Refuses a cookie as an unknown field.
pub(crate) fn decode(r: Reader<'_>) -> Result<Match, Malformed> {
    let at_start = r.fail(Refusal::MatchBadField);
    let nxm_match = decode_nxm_fields(r)?;
    if nxm_match.cookies.mask == 0 {
        Ok(nxm_match.matching)
    } else {
        Err(at_start)
    }
}

/// Decodes fields and cookies to the end of `r`.
pub(crate) fn decode_nxm_fields(r: Reader<'_>) -> Result<NxmMatch, Malformed> {
    let mut r = r.on_short(Refusal::MatchBadLength);
    let mut building = MatchBuilder::default();
    let mut cookies = CookieFilter::default();
    while !r.is_empty() {
        let start = r.clone();
        let header = OxmHeader::decode(&mut r)?;
        let mut payload = r.sub(header.length)?;
        if header.id == NXM_COOKIE && header.length >= 8 {
            let (cookie, mask) = value_and_mask(&mut payload, header, u64::MAX, Reader::u64)?;
            if cookie & !mask != 0 {
                return Err(start.fail(Refusal::MatchBadWildcards));
            }
            let cookie = Cookie(cookie);
            cookies = CookieFilter { cookie, mask };
        } else {
            add(&mut building, header, &mut payload, &start)?;
        }
    }
    Ok(NxmMatch {
        matching: building.build(),
        cookies,
    })
}

/// Adds the field of a decoded header.
fn add(
    building: &mut MatchBuilder,
    header: OxmHeader,
    payload: &mut Reader<'_>,
    start: &Reader<'_>,
) -> Result<(), Malformed> {
    let refused = |refusal| start.fail(refusal);
    let unknown = || refused(Refusal::MatchBadField);
    let field = header.field(payload)?.ok_or_else(unknown)?;
    if field.option().is_some() {
        let OptionTerm { field, value, mask } = decode_option(field, header, payload)?;
        return building.add_option(field, value, mask).map_err(refused);
    }
    let width = field.bytes();
    let number = |r: &mut Reader<'_>| r.number(width);
    let (value, mask) = value_and_mask(payload, header, field.full_mask(), number)?;
    if field == Field::InPort && !is_port(value, payload) {
        return Err(refused(Refusal::MatchBadValue));
    }
    building.add(field, value, mask).map_err(refused)?;
    if header.masked && !is_possible_mask(field, mask) {
        return Err(refused(Refusal::MatchBadMask));
    }
    Ok(())
}

/// Returns true if the field may have this mask, unused bits included: that of a field that cannot
/// be masked consists of zeros or of ones, as in Open vSwitch.
fn is_possible_mask(field: Field, mask: u128) -> bool {
    let ones = u128::MAX >> (128 - 8 * field.bytes());
    field.info().maskable != Maskable::No || mask == 0 || mask == ones
}

/// Returns true if a port can have this number in the version of `r`.
fn is_port(number: u128, r: &Reader<'_>) -> bool {
    let port = u32::try_from(number).ok().map(PortNo);
    match r.version() {
        Version::V10 => port.and_then(port_no::to_u16).is_some(),
        Version::V11 | Version::V12 | Version::V13 | Version::V14 | Version::V15 => port.is_some(),
    }
}

/// Decodes the value and the mask of a field up to the end of `r`. Without a mask, all bits are
/// ones.
fn value_and_mask<'a, T>(
    payload: &mut Reader<'a>,
    header: OxmHeader,
    ones: T,
    read: impl Fn(&mut Reader<'a>) -> Result<T, Malformed>,
) -> Result<(T, T), Malformed> {
    let value = read(payload)?;
    let mask = if header.masked { read(payload)? } else { ones };
    payload.end()?;
    Ok((value, mask))
}

/// Appends `matching` as OXM.
pub(crate) fn encode(matching: &Match, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    let mut terms = matching.terms();
    for term in terms.by_ref() {
        encode_term(&term, HeaderFamily::Oxm, w)?;
    }
    terms.options().try_for_each(|term| encode_option(&term, w))
}

/// Appends `nxm_match` as NXM.
pub(crate) fn encode_nxm_fields(
    nxm_match: &NxmMatch,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    let mut terms = nxm_match.matching.terms();
    for term in terms.by_ref() {
        match term.field {
            Field::InPort => encode_in_port(&term, w)?,
            Field::IpDscp => {
                OxmHeader {
                    id: NXM_IP_TOS,
                    masked: false,
                    length: 1,
                }
                .encode(w);
                w.number(1, term.value << 2);
            }
            Field::VlanVid => encode_tci(&nxm_match.matching, &term, w),
            // Encoded together with the VLAN id, its prerequisite.
            Field::VlanPcp => {}
            _ => encode_term(&term, HeaderFamily::Nxm, w)?,
        }
    }
    terms
        .options()
        .try_for_each(|term| encode_option(&term, w))?;
    let CookieFilter { cookie, mask } = nxm_match.cookies;
    if mask != 0 {
        let masked = mask != u64::MAX;
        let length = if masked { 16 } else { 8 };
        OxmHeader {
            id: NXM_COOKIE,
            masked,
            length,
        }
        .encode(w);
        w.u64(cookie.0 & mask);
        if masked {
            w.u64(mask);
        }
    }
    Ok(())
}

fn encode_in_port(term: &Term, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    let port = u32::try_from(term.value).ok().map(PortNo);
    let number = match port.and_then(port_no::to_u16) {
        Some(number) => number,
        None if w.version() == Version::V10 => {
            return Err(w.unsupported("a port number beyond 0xff00"));
        }
        // A port of 32 bits has an OXM field.
        None => return encode_term(term, HeaderFamily::Oxm, w),
    };
    OxmHeader {
        id: NXM_IN_PORT,
        masked: false,
        length: 2,
    }
    .encode(w);
    w.u16(number);
    Ok(())
}

fn encode_tci(matching: &Match, vid: &Term, w: &mut Writer<'_>) {
    let (mut value, mut mask) = (vid.value, vid.mask);
    if let Some(pcp) = matching.term(Field::VlanPcp) {
        value |= pcp.value << PCP_SHIFT;
        mask |= pcp.mask << PCP_SHIFT;
    } else if vid.is_exact() && vid.value == 0 {
        // No tag: all bits of the tag are zero.
        mask = 0xffff;
    }
    let masked = mask != 0xffff;
    let length = if masked { 4 } else { 2 };
    OxmHeader {
        id: NXM_VLAN_TCI,
        masked,
        length,
    }
    .encode(w);
    w.number(2, value);
    if masked {
        w.number(2, mask);
    }
}

/// Appends a field under a header of the same width.
fn encode_term(term: &Term, family: HeaderFamily, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    encode_value(term.field, family, (term.value, term.mask), w)
}

/// Decodes an `ofp_match` structure with its padding (OF 1.3.5, 7.2.3.1); in 1.1 it is a fixed
/// structure.
pub(crate) fn decode_structure(r: &mut Reader<'_>) -> Result<Match, Malformed> {
    if r.version() == Version::V11 {
        return match11::decode(r);
    }
    let bad_length = Refusal::MatchBadLength;
    let mut head = r.clone().on_short(bad_length);
    if head.u16()? != OFPMT_OXM {
        return Err(r.fail(Refusal::MatchBadType));
    }
    let length = usize::from(head.u16()?);
    let Some(fields) = length.checked_sub(4) else {
        return Err(r.fail(bad_length));
    };
    let mut structure = r.sub_or(length.next_multiple_of(8), bad_length)?;
    structure.skip(4)?;
    decode(structure.sub(fields)?)
}

/// Appends an `ofp_match` structure with its padding, equivalent to `matching`.
pub(crate) fn encode_structure(matching: &Match, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    encode_structure_with(matching, Fidelity::Lossless, w)
}

/// Appends an `ofp_match` structure with its padding. With [`Fidelity::BestEffort`] the structure
/// of 1.1 may be wider than `matching`; those of later versions are exact.
pub(crate) fn encode_structure_with(
    matching: &Match,
    fidelity: Fidelity,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    if w.version() == Version::V11 {
        return match11::encode(matching, fidelity, w);
    }
    w.nested_padded(2, |w| {
        w.u16(OFPMT_OXM);
        w.u16(0);
        encode(matching, w)
    })
    .map(drop)
}

/// Appends the length of an `ofp_match` structure without its padding, then the output of
/// `between`, then the structure and its padding.
pub(crate) fn encode_structure_with_length(
    matching: &Match,
    w: &mut Writer<'_>,
    between: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let match_len = w.counted(between, |w| {
        w.nested(2, |w| {
            w.u16(OFPMT_OXM);
            w.u16(0);
            encode(matching, w)
        })
        .map(drop)
    })?;
    w.zeros(match_len.next_multiple_of(8) - match_len);
    Ok(())
}

/// Decodes `match_len` bytes of NXM fields and their padding.
pub(crate) fn decode_nxm(r: &mut Reader<'_>, match_len: usize) -> Result<NxmMatch, Malformed> {
    let padded = match_len.next_multiple_of(8);
    let mut whole = r.sub_or(padded, Refusal::MatchBadLength)?;
    decode_nxm_fields(whole.sub(match_len)?)
}

/// Appends the length of NXM fields, the output of `between`, the fields and their padding.
pub(crate) fn encode_nxm_with_length(
    nxm_match: &NxmMatch,
    w: &mut Writer<'_>,
    between: impl FnOnce(&mut Writer<'_>),
) -> Result<(), EncodeError> {
    let between = |w: &mut Writer<'_>| {
        between(w);
        Ok(())
    };
    let match_len = w.counted(between, |w| encode_nxm_fields(nxm_match, w))?;
    w.zeros(match_len.next_multiple_of(8) - match_len);
    Ok(())
}

/// The type of a match in OXM format.
const OFPMT_OXM: u16 = 1;

#[cfg(test)]
mod tests;
