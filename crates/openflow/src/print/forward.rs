//! Messages within messages: what another controller asked. What is in bundles is in
//! `bundle`.

use ::flow::Refusal;

use super::names::Unreadable;
use super::text::Text;
use super::{group, meter};
use crate::codec::Reader;
use crate::header::Header;
use crate::kinds::Kind;
use crate::message::row_of;
use crate::version::Version;

/// The message in the rest of `r`, without what pads it.
pub(super) fn held<'a>(r: &mut Reader<'a>) -> Result<(Header, &'a [u8]), Unreadable> {
    let bad_length = r.fail(Refusal::BundleMessageBadLength);
    let version = r.version();
    let rest = r.rest();
    let header = Header::peek(rest).ok_or(bad_length)?;
    let bytes = rest.get(..usize::from(header.length));
    let bytes = bytes
        .filter(|bytes| bytes.len() >= Header::LENGTH)
        .ok_or(bad_length)?;
    if Version::from_number(header.version) != Some(version) {
        return Err(Unreadable("OFPBFC_BAD_VERSION"));
    }
    Ok((header, bytes))
}

/// Writes what another controller asked.
pub(super) fn print(r: &mut Reader<'_>, text: &mut Text<'_>) -> Result<(), Unreadable> {
    let unsupported = r.fail(Refusal::BundleMessageUnsupported);
    let dialect = r.dialect();
    let (header, bytes) = held(r)?;
    let mut inside = Reader::new(bytes, dialect);
    inside.skip(Header::LENGTH)?;
    match row_of(&header, &mut inside)?.kind {
        Kind::GroupMod => {
            text.push(" reason=group_mod");
            group::print_mod(&mut inside, text)
        }
        Kind::MeterMod => {
            text.push(" reason=meter_mod");
            meter::print_mod(&mut inside, text)
        }
        _ => Err(unsupported.into()),
    }
}
