//! `NXAST_SAMPLE` to `NXAST_SAMPLE4`: reports sampled packets to a collector. The fourth form is of
//! Open vSwitch 3.5, with bits of fields as identifiers; no public source confirms its number and
//! layout.

use base::PortNo;
use flow::{Extension, Field, Refusal, SampleAction, SampleDirection, SampleId, Subfield};

use super::super::encode::short_header;
use super::{
    ActionKind, BodyError, encode_u16_port, has_length_of, ofs_nbits, put, split_ofs_nbits,
};
use crate::codec::{EncodeError, Reader, Writer};
use crate::oxm::OxmHeader;
use crate::port_no;

/// Decodes any of the four forms: the second adds a port, the third also a direction, and the
/// fourth identifiers from fields.
pub(super) fn decode(kind: ActionKind, r: &mut Reader<'_>) -> Result<Extension, BodyError> {
    let id = match kind {
        ActionKind::Sample4 => decode_id,
        _ => decode_number,
    };
    let mut sample = SampleAction {
        probability: r.u16()?,
        collectors: r.u32()?,
        domain: id(r)?,
        point: id(r)?,
        port: None,
        direction: SampleDirection::Unspecified,
    };
    if kind != ActionKind::Sample {
        let port = port_no::from_u16(r.u16()?);
        sample.port = (port != PortNo::ANY).then_some(port);
    }
    if matches!(kind, ActionKind::Sample3 | ActionKind::Sample4) {
        sample.direction = match r.u8()? {
            0 => SampleDirection::Unspecified,
            1 => SampleDirection::Ingress,
            2 => SampleDirection::Egress,
            _ => return Err(Refusal::ActionBadArgument.into()),
        };
    }
    if sample.probability == 0 {
        return Err(Refusal::ActionBadArgument.into());
    }
    Ok(Extension::Sample(sample))
}

fn decode_number(r: &mut Reader<'_>) -> Result<SampleId, BodyError> {
    Ok(SampleId::Number(r.u32()?))
}

/// Decodes a constant, or the header of a field and the position of at most 32 bits.
fn decode_id(r: &mut Reader<'_>) -> Result<SampleId, BodyError> {
    if r.clone().u32()? == 0 {
        r.skip(4)?;
        return decode_number(r);
    }
    let header = OxmHeader::decode(r)?;
    let (offset, bits) = split_ofs_nbits(r.u16()?);
    r.skip(2)?;
    let field = Field::from_nxm(header.id).or_else(|| Field::from_oxm(header.id));
    let field = field.filter(|field| !header.masked && has_length_of(*field, header));
    let field = field.ok_or(Refusal::ActionBadSetType)?;
    let part = Subfield::new(field, offset, bits).ok_or(Refusal::ActionBadArgument)?;
    if part.bits() > SampleId::BITS {
        return Err(Refusal::ActionBadSetLength.into());
    }
    Ok(SampleId::Subfield(part))
}

/// Appends the shortest form that has all parameters.
pub(super) fn encode(sample: &SampleAction, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    let reads_fields = sample.sources().next().is_some();
    let kind = match (sample.port, sample.direction) {
        _ if reads_fields => ActionKind::Sample4,
        (None, SampleDirection::Unspecified) => ActionKind::Sample,
        (Some(_), SampleDirection::Unspecified) => ActionKind::Sample2,
        (_, SampleDirection::Ingress | SampleDirection::Egress) => ActionKind::Sample3,
    };
    put(kind, w, |w| {
        w.u16(sample.probability);
        w.u32(sample.collectors);
        for id in [sample.domain, sample.point] {
            match kind {
                ActionKind::Sample4 => encode_id(id, w)?,
                _ => w.u32(id.number()),
            }
        }
        if kind != ActionKind::Sample {
            encode_u16_port(sample.port.unwrap_or(PortNo::ANY), w)?;
        }
        match sample.direction {
            SampleDirection::Unspecified => {}
            SampleDirection::Ingress => w.u8(1),
            SampleDirection::Egress => w.u8(2),
        }
        Ok(())
    })
}

fn encode_id(id: SampleId, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    match id {
        SampleId::Number(number) => {
            w.zeros(4);
            w.u32(number);
        }
        SampleId::Subfield(part) => {
            let header = short_header(part.field());
            let mut header = header.ok_or_else(|| w.unsupported("an identifier of this field"))?;
            if let Some(bytes) = part.option_bytes() {
                header.length = usize::from(bytes);
            }
            header.encode(w);
            let ofs_nbits = ofs_nbits(part, w)?;
            w.u16(ofs_nbits);
            w.zeros(2);
        }
    }
    Ok(())
}
