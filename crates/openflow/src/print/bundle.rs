//! Bundles: control messages and contained messages.

use ::flow::Refusal;

use super::forward::nested_message;
use super::refusal_names::DecodeErrorName;
use super::text::{AlternateHex, PrintBuffer};
use super::{NESTING_MAX, print_within};
use crate::codec::Reader;
use crate::header::Header;
use crate::kinds::MessageKind;
use crate::message::bundle::{self, WallTime};
use crate::message::multipart::{BundleFeatures, BundleFeaturesRequest, BundleTimes};
use crate::message::{WireFormat, message_row};
use crate::version::Version;

/// The names of the steps by number.
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

const FLAGS: [(u32, &str); 3] = [(1, "atomic"), (2, "ordered"), (4, "time")];

/// The flags of a version.
fn flags_of(version: Version) -> &'static [(u32, &'static str)] {
    match version {
        Version::V15 => &FLAGS,
        _ => &FLAGS[..2],
    }
}

/// Writes a bundle control message.
pub(super) fn print_control(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    let (bundle, step, flags) = (r.u32()?, r.u16()?, r.u16()?);
    write!(text, "\n bundle_id={} ", AlternateHex(bundle.into()));
    let step = STEPS.get(usize::from(step)).copied().unwrap_or_default();
    write!(text, "type={step} flags=");
    text.bits(flags.into(), flags_of(r.version()));
    if r.version() == Version::V15
        && let Some(time) = bundle::decode_time(r)?
    {
        write_time("time", time, text);
    }
    Ok(())
}

/// The flags of a bundle features request.
const REQUEST_FLAGS: [(u32, &str); 2] = [(1, "timestamp"), (2, "time_set_sched")];

/// The flags of a bundle.
const CAPABILITIES: [(u32, &str); 3] = [(1, "atomic"), (2, "ordered"), (4, "time")];

/// Writes a bundle features request.
pub(super) fn print_features_request(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    let BundleFeaturesRequest { flags, times } = BundleFeaturesRequest::decode(r)?;
    text.push(" flags=");
    text.bits(flags, &REQUEST_FLAGS);
    write_times(times, text);
    Ok(())
}

/// Writes the capabilities of bundles.
pub(super) fn print_features(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    let features = BundleFeatures::decode(r)?;
    text.push(" capabilities=");
    text.bits(features.capabilities.0.into(), &CAPABILITIES);
    write_times(features.times, text);
    Ok(())
}

fn write_times(times: Option<BundleTimes>, text: &mut PrintBuffer<'_>) {
    let Some(times) = times else { return };
    for (name, time) in [
        ("accuracy", times.accuracy),
        ("future_max", times.future_max),
        ("past_max", times.past_max),
        ("now", times.now),
    ] {
        write_time(name, time, text);
    }
}

fn write_time(name: &str, time: WallTime, text: &mut PrintBuffer<'_>) {
    let (seconds, nanos) = (time.0.as_secs(), time.0.subsec_nanos());
    write!(text, "\n {name}={seconds}.{nanos:09}s");
}

/// Writes a bundle add message.
pub(super) fn print_add(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    let xid = text.message.get(4..8);
    let bundle = r.u32()?;
    r.skip(2)?;
    let flags = r.u16()?;
    let start = r.clone();
    let (header, bytes) = nested_message(r)?;
    if bytes.get(4..8) != xid {
        return Err(start.fail(Refusal::BundleMessageBadXid).into());
    }
    let mut nested = Reader::new(bytes, r.dialect());
    nested.skip(Header::LENGTH)?;
    match message_row(&header, &mut nested)?.kind {
        MessageKind::FlowMod
        | MessageKind::GroupMod
        | MessageKind::MeterMod
        | MessageKind::PacketOut
        | MessageKind::PortMod => {}
        _ => return Err(start.fail(Refusal::BundleMessageUnsupported).into()),
    }
    write!(text, "\n bundle_id={} flags=", AlternateHex(bundle.into()));
    text.bits(flags.into(), flags_of(r.version()));
    text.push("\n");
    if text.context.depth < NESTING_MAX {
        let context = text.context.within(text.context.detail);
        text.push(&print_within(bytes, context));
    }
    Ok(())
}
