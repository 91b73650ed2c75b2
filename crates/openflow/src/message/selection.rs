//! The selection method of a select group: Netronome's group property, which Open vSwitch supports
//! in versions with group properties (its `group-selection-method-property.txt`).

use flow::{Refusal, Selection, SelectionFields, SelectionMethod};

use super::property::{self, Property};
use crate::codec::{EncodeError, Malformed, Reader, Writer};
use crate::oxm::{self, HeaderFamily};
use crate::version::Version;

/// Netronome's experimenter id, and the id that it used before the assignment.
const NETRONOME: u32 = 0x0000_154d;
const NETRONOME_BEFORE: u32 = 0x0000_1540;

/// `NTRT_SELECTION_METHOD`.
const SELECTION_METHOD: u32 = 1;

/// Bytes of a method's name, including its terminating zero.
const NAME: usize = 16;

/// Decodes the properties of a group, at most this one. `allowed` is true where it has a meaning:
/// for a select group that is created or described.
pub(crate) fn decode(r: &mut Reader<'_>, allowed: bool) -> Result<Option<Selection>, Malformed> {
    let mut read = None;
    while !r.is_empty() {
        let mut property = property::next(r)?;
        if property.kind != property::EXPERIMENTER {
            return Err(property.unknown());
        }
        let mut value = property.value.clone().on_short(Refusal::PropertyBadLength);
        if ![NETRONOME, NETRONOME_BEFORE].contains(&value.u32()?) {
            return Err(property.unknown());
        }
        if value.u32()? != SELECTION_METHOD {
            return Err(property.fail(Refusal::PropertyBadExperimenterType));
        }
        if !allowed {
            return Err(property.fail(Refusal::PropertyBadValue));
        }
        let selection = selection(value, &property)?;
        property.value.rest();
        if read.replace(selection).is_some() {
            return Err(property.fail(Refusal::PropertyDuplicate));
        }
    }
    Ok(read)
}

/// Decodes the members after the experimenter's numbers.
fn selection(mut r: Reader<'_>, property: &Property<'_>) -> Result<Selection, Malformed> {
    r.skip(4)?;
    let name: [u8; NAME] = r.take()?;
    let param = r.u64()?;
    let bad = property.fail(Refusal::PropertyBadValue);
    let end = name.iter().position(|byte| *byte == 0).ok_or(bad)?;
    let method = match &name[..end] {
        b"hash" => SelectionMethod::Hash(fields(r)?),
        b"dp_hash" if r.is_empty() => SelectionMethod::Datapath,
        _ => return Err(bad),
    };
    Ok(Selection { method, param })
}

/// Decodes fields to the end of `r`. The value of a field is a mask here, and its header has none.
fn fields(r: Reader<'_>) -> Result<SelectionFields, Malformed> {
    let mut r = r.on_short(Refusal::MatchBadLength);
    let mut fields = SelectionFields::default();
    while !r.is_empty() {
        let start = r.clone();
        let header = oxm::OxmHeader::decode(&mut r)?;
        let mut payload = r.sub(header.length)?;
        let field = header.field(&mut payload)?;
        // A selection cannot use tunnel options.
        let field = field.filter(|field| field.option().is_none());
        let field = field.ok_or_else(|| start.fail(Refusal::MatchBadField))?;
        if header.masked {
            return Err(start.fail(Refusal::MatchBadMask));
        }
        let mask = payload.number(field.bytes())?;
        payload.end()?;
        let added = fields.add(field, mask);
        added.map_err(|refusal| start.fail(refusal))?;
    }
    Ok(fields)
}

/// Appends the property.
pub(crate) fn encode(selection: &Selection, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    property::put(property::EXPERIMENTER, w, |w| {
        w.u32(NETRONOME);
        w.u32(SELECTION_METHOD);
        w.zeros(4);
        w.text(NAME, selection.method.name());
        w.u64(selection.param);
        match &selection.method {
            SelectionMethod::Hash(fields) => encode_fields(fields, w),
            SelectionMethod::Datapath => Ok(()),
        }
    })
}

fn encode_fields(fields: &SelectionFields, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    let family = match w.version() {
        Version::V10 => HeaderFamily::Nxm,
        Version::V11 | Version::V12 | Version::V13 | Version::V14 | Version::V15 => {
            HeaderFamily::Oxm
        }
    };
    for (field, mask) in fields.iter() {
        let header = oxm::header_of(field, family, false);
        header
            .ok_or_else(|| w.unsupported("a field without header"))?
            .encode(w);
        // A whole field has all bytes set.
        let whole = mask == field.full_mask();
        w.number(field.bytes(), if whole { u128::MAX } else { mask });
    }
    Ok(())
}
