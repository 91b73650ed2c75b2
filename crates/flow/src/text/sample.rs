//! Reader and writer of `sample`.

use std::fmt;

use super::address;
use super::error::ParseError;
use super::extension_read::options;
use super::lexer::{KeyValue, Token};
use super::name_map::{NameMap, WithNames};
use super::number::number;
use super::subfield::{is_subfield, subfield};
use crate::extension::{Extension, SampleAction, SampleDirection, SampleId};

/// Reads the arguments of `sample`.
pub(super) fn read(item: KeyValue<'_>) -> Result<Extension, ParseError> {
    let mut sample = SampleAction {
        probability: 0,
        collectors: 0,
        domain: SampleId::Number(0),
        point: SampleId::Number(0),
        port: None,
        direction: SampleDirection::Unspecified,
    };
    options(item, |option| {
        match option.key.text {
            "probability" => sample.probability = number(option.required_value()?)?,
            "collector_set_id" => sample.collectors = number(option.required_value()?)?,
            "obs_domain_id" => sample.domain = sample_id(option.required_value()?)?,
            "obs_point_id" => sample.point = sample_id(option.required_value()?)?,
            "sampling_port" => sample.port = Some(address::port(option.required_value()?)?),
            "ingress" => sample.direction = SampleDirection::Ingress,
            "egress" => sample.direction = SampleDirection::Egress,
            _ => return Err(option.key.error("unknown option of `sample`")),
        }
        Ok(())
    })?;
    if sample.probability == 0 {
        return Err(item.key.error("expected probability=1 to 65535"));
    }
    Ok(Extension::Sample(sample))
}

/// Parses a number, or bits of a field.
fn sample_id(token: Token<'_>) -> Result<SampleId, ParseError> {
    if !is_subfield(token.text) {
        return number(token).map(SampleId::Number);
    }
    let part = subfield(token)?;
    match part.bits() <= SampleId::BITS {
        true => Ok(SampleId::Subfield(part)),
        false => Err(token.error("expected at most 32 bits of a field")),
    }
}

/// Writes `sample` with its arguments.
pub(super) fn write(
    f: &mut fmt::Formatter<'_>,
    sample: &SampleAction,
    names: &NameMap,
) -> fmt::Result {
    let SampleAction {
        probability,
        collectors,
        domain,
        point,
        port,
        direction,
    } = sample;
    write!(
        f,
        "sample(probability={probability},collector_set_id={collectors},\
         obs_domain_id={domain},obs_point_id={point}"
    )?;
    if let Some(port) = port {
        write!(f, ",sampling_port={}", WithNames(port, names))?;
    }
    f.write_str(match direction {
        SampleDirection::Unspecified => ")",
        SampleDirection::Ingress => ",ingress)",
        SampleDirection::Egress => ",egress)",
    })
}
