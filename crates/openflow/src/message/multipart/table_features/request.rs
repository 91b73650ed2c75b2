//! Checks the capabilities in a request against those of every table. A table that has more than
//! the required capabilities is accepted; one that lacks any of them is refused.

use base::TableId;
use flow::field::Maskable;
use flow::{Field, Refusal};

use super::property;
use crate::action;
use crate::codec::{Malformed, Reader};
use crate::instruction;
use crate::oxm::OxmHeader;
use crate::version::Version;

/// Checks that a table has the capabilities in a property of this type.
pub(super) fn check(kind: u16, mut r: Reader<'_>, table: TableId) -> Result<(), Malformed> {
    let version = r.version();
    // The property for a table miss has the next odd number and the same check.
    match kind & !1 {
        property::INSTRUCTIONS => ids(&mut r, |number| {
            instruction::numbers_of_table(version, table).any(|known| known == number)
        }),
        property::NEXT_TABLES => {
            let bad = r.fail(Refusal::TableFeaturesBadFeatures);
            let follows = |next: &u8| *next > table.0 && TableId(*next) <= TableId::LAST;
            r.rest().iter().all(follows).then_some(()).ok_or(bad)
        }
        property::WRITE_ACTIONS | property::APPLY_ACTIONS => ids(&mut r, |number| {
            action::standard_numbers(version).any(|known| known == number)
        }),
        property::MATCH => fields(&mut r, |field, masked| {
            !masked || field.info().maskable != Maskable::No
        }),
        property::WILDCARDS => fields(&mut r, |_, _| true),
        property::WRITE_SETFIELD | property::APPLY_SETFIELD => {
            fields(&mut r, |field, _| field.info().writable)
        }
        property::WRITE_COPYFIELD | property::APPLY_COPYFIELD if version == Version::V15 => {
            fields(&mut r, |field, _| field.info().writable)
        }
        property::PACKET_TYPES if version == Version::V15 => packet_types(&mut r),
        property::SYNC_FROM if version > Version::V13 => {
            let bad = r.fail(Refusal::TableFeaturesBadFeatures);
            r.is_empty().then_some(()).ok_or(bad)
        }
        property::EXPERIMENTER => Err(r.fail(Refusal::PropertyBadExperimenter)),
        _ => Err(r.fail(Refusal::PropertyBadType)),
    }
}

/// Checks instructions or actions: headers without bodies.
fn ids(r: &mut Reader<'_>, can: impl Fn(u16) -> bool) -> Result<(), Malformed> {
    while !r.is_empty() {
        let place = r.clone();
        let (number, length) = (r.u16()?, usize::from(r.u16()?));
        let body = length.checked_sub(4);
        r.skip(body.ok_or_else(|| place.fail(Refusal::PropertyBadLength))?)?;
        if !can(number) {
            return Err(place.fail(Refusal::TableFeaturesBadFeatures));
        }
    }
    Ok(())
}

/// Checks headers of fields.
fn fields(r: &mut Reader<'_>, can: impl Fn(Field, bool) -> bool) -> Result<(), Malformed> {
    while !r.is_empty() {
        let bad = r.fail(Refusal::TableFeaturesBadFeatures);
        let header = OxmHeader::decode(r)?;
        let field = header.field(r)?.ok_or(bad)?;
        if !can(field, header.masked) {
            return Err(bad);
        }
    }
    Ok(())
}

/// Checks packet types: only Ethernet is supported.
fn packet_types(r: &mut Reader<'_>) -> Result<(), Malformed> {
    while !r.is_empty() {
        let bad = r.fail(Refusal::TableFeaturesBadFeatures);
        if r.u32()? != 0 {
            return Err(bad);
        }
    }
    Ok(())
}
