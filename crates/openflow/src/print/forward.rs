//! Forwarded requests of other controllers. `bundle` prints the messages in bundles.

use ::flow::Refusal;

use super::refusal_names::DecodeErrorName;
use super::text::PrintBuffer;
use super::{group, meter};
use crate::codec::Reader;
use crate::header::Header;
use crate::kinds::MessageKind;
use crate::message::message_row;
use crate::version::Version;

/// The message in the remainder of `r`, without its padding.
pub(super) fn nested_message<'a>(
    r: &mut Reader<'a>,
) -> Result<(Header, &'a [u8]), DecodeErrorName> {
    let bad_length = r.fail(Refusal::BundleMessageBadLength);
    let version = r.version();
    let rest = r.rest();
    let header = Header::peek(rest).ok_or(bad_length)?;
    let bytes = rest.get(..usize::from(header.length));
    let bytes = bytes
        .filter(|bytes| bytes.len() >= Header::LENGTH)
        .ok_or(bad_length)?;
    if Version::from_number(header.version) != Some(version) {
        return Err(DecodeErrorName("OFPBFC_BAD_VERSION"));
    }
    Ok((header, bytes))
}

/// Writes a forwarded request.
pub(super) fn print(r: &mut Reader<'_>, text: &mut PrintBuffer<'_>) -> Result<(), DecodeErrorName> {
    let unsupported = r.fail(Refusal::BundleMessageUnsupported);
    let dialect = r.dialect();
    let (header, bytes) = nested_message(r)?;
    let mut nested = Reader::new(bytes, dialect);
    nested.skip(Header::LENGTH)?;
    match message_row(&header, &mut nested)?.kind {
        MessageKind::GroupMod => {
            text.push(" reason=group_mod");
            group::print_mod(&mut nested, text)
        }
        MessageKind::MeterMod => {
            text.push(" reason=meter_mod");
            meter::print_mod(&mut nested, text)
        }
        _ => Err(unsupported.into()),
    }
}
