//! Bundles: the steps of their life, and the messages in them.

use ::flow::Refusal;

use super::names::Unreadable;
use super::text::{Hex, Text};
use super::{NESTING_MAX, print_within};
use crate::codec::{Malformed, Reader};
use crate::header::Header;
use crate::kinds::Kind;
use crate::message::row_of;
use crate::version::Version;

/// The steps, by number.
const STEPS: [&str; 8] = [
    "OPEN_REQUEST",
    "OPEN_REPLY",
    "CLOSE_REQUEST",
    "CLOSE_REPLY",
    "COMMIT_REQUEST",
    "COMMIT_REPLY",
    "DISCARD_REQUEST",
    "DISCARD_REPLY",
];

const FLAGS: [(u32, &str); 2] = [(1, "atomic"), (2, "ordered")];

/// Writes a step.
pub(super) fn print_control(r: &mut Reader<'_>, text: &mut Text<'_>) -> Result<(), Unreadable> {
    let (bundle, step, flags) = (r.u32()?, r.u16()?, r.u16()?);
    write!(text, "\n bundle_id={} ", Hex(bundle.into()));
    let step = STEPS.get(usize::from(step)).copied().unwrap_or_default();
    write!(text, "type={step} flags=");
    text.bits(flags.into(), &FLAGS);
    Ok(())
}

/// Writes a message for a bundle.
pub(super) fn print_add(r: &mut Reader<'_>, text: &mut Text<'_>) -> Result<(), Unreadable> {
    let xid = text.message.get(4..8);
    let bundle = r.u32()?;
    r.skip(2)?;
    let flags = r.u16()?;
    let bad_length = r.fail(Refusal::BundleMessageBadLength);
    let rest = r.rest();
    let header = Header::peek(rest).ok_or(bad_length)?;
    let bytes = rest.get(..usize::from(header.length));
    let bytes = bytes
        .filter(|bytes| bytes.len() >= Header::LENGTH)
        .ok_or(bad_length)?;
    let refused = |fault| Malformed {
        fault,
        ..bad_length
    };
    if Version::from_wire(header.version) != Some(r.version()) {
        return Err(Unreadable("OFPBFC_BAD_VERSION"));
    }
    if bytes.get(4..8) != xid {
        return Err(refused(Refusal::BundleMessageBadXid).into());
    }
    let mut inside = Reader::new(bytes, r.dialect());
    inside.skip(Header::LENGTH)?;
    match row_of(&header, &mut inside)?.kind {
        Kind::FlowMod | Kind::GroupMod | Kind::MeterMod | Kind::PortMod => {}
        _ => return Err(refused(Refusal::BundleMessageUnsupported).into()),
    }
    write!(text, "\n bundle_id={} flags=", Hex(bundle.into()));
    text.bits(flags.into(), &FLAGS);
    text.push("\n");
    if text.depth < NESTING_MAX {
        let (detail, depth) = (text.detail, text.depth + 1);
        text.push(&print_within(bytes, detail, depth));
    }
    Ok(())
}
