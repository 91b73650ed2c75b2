//! `NXAST_SAMPLE` to `NXAST_SAMPLE3`: reports sampled packets to a collector.

use base::PortNo;
use flow::{Extension, Refusal, SampleAction, SampleDirection};

use super::{ActionKind, BodyError, encode_u16_port, put};
use crate::codec::{EncodeError, Reader, Writer};
use crate::port_no;

/// Decodes any of the three forms: the second adds a port, the third also a direction.
pub(super) fn decode(kind: ActionKind, r: &mut Reader<'_>) -> Result<Extension, BodyError> {
    let mut sample = SampleAction {
        probability: r.u16()?,
        collectors: r.u32()?,
        domain: r.u32()?,
        point: r.u32()?,
        port: None,
        direction: SampleDirection::Unspecified,
    };
    if kind != ActionKind::Sample {
        let port = port_no::from_u16(r.u16()?);
        sample.port = (port != PortNo::ANY).then_some(port);
    }
    if kind == ActionKind::Sample3 {
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

/// Appends the shortest form that has all parameters.
pub(super) fn encode(sample: &SampleAction, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    let kind = match (sample.port, sample.direction) {
        (None, SampleDirection::Unspecified) => ActionKind::Sample,
        (Some(_), SampleDirection::Unspecified) => ActionKind::Sample2,
        (_, SampleDirection::Ingress | SampleDirection::Egress) => ActionKind::Sample3,
    };
    put(kind, w, |w| {
        w.u16(sample.probability);
        w.u32(sample.collectors);
        w.u32(sample.domain);
        w.u32(sample.point);
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
