//! Multipart requests and replies: the printer of each type, and the text before the body.

use ::flow::Refusal;

use super::ipfix;
use super::messages::{BodyLength, PrintBody};
use super::refusal_names::DecodeErrorName;
use super::text::PrintBuffer;
use super::{
    bundle, controllers, flow_stats, group, meter, monitor, port, queue, table, table_features,
};
use crate::codec::Reader;
use crate::kinds::{MessageKind, MultipartKind, MultipartKindRow, TypeNumber};
use crate::message::multipart::{MORE, decode_head};
use crate::message::port::{LENGTH_V10, LENGTH_V11};
use crate::version::Version;

/// The printer of a multipart type.
struct MultipartPrinter {
    kind: MultipartKind,
    name: &'static str,
    request: (BodyLength, PrintBody),
    reply: (BodyLength, PrintBody),
}

/// Prints a request that consists of its name only.
fn print_nothing(r: &mut Reader<'_>, _: &mut PrintBuffer<'_>) -> Result<(), DecodeErrorName> {
    r.rest();
    Ok(())
}

#[rustfmt::skip]
static PRINTERS: &[MultipartPrinter] = { use {MultipartKind::*, BodyLength::*}; &[
    row(Description,      "DESC",              (Exactly, print_nothing),                    (Exactly, print_description)),
    row(Flow,             "FLOW",              (More(8), flow_stats::print_request),        (More(1), flow_stats::print_reply)),
    row(NxFlow,           "FLOW",              (More(8), flow_stats::print_request_nicira), (More(8), flow_stats::print_reply_nicira)),
    row(Aggregate,        "AGGREGATE",         (More(8), flow_stats::print_request),        (More(8), flow_stats::print_sums)),
    row(NxAggregate,      "AGGREGATE",         (More(8), flow_stats::print_request_nicira), (Exactly, flow_stats::print_sums)),
    row(Table,            "TABLE",             (Exactly, print_nothing),                    (More(1), table::print_stats)),
    row(Port,             "PORT",              (Exactly, port::print_stats_request),        (More(8), port::print_stats)),
    row(Queue,            "QUEUE",             (Exactly, queue::print_stats_request),       (More(8), queue::print_stats)),
    row(Group,            "GROUP",             (Exactly, group::print_request),             (More(8), group::print_stats)),
    row(GroupDesc,        "GROUP_DESC",        (Exactly, group::print_desc_request),        (More(8), group::print_descs)),
    row(GroupFeatures,    "GROUP_FEATURES",    (Exactly, print_nothing),                    (Exactly, group::print_features)),
    row(Meter,            "METER",             (Exactly, meter::print_request),             (More(8), meter::print_stats)),
    row(MeterConfig,      "METER_CONFIG",      (Exactly, meter::print_request),             (More(8), meter::print_configs)),
    row(MeterFeatures,    "METER_FEATURES",    (Exactly, print_nothing),                    (Exactly, meter::print_features)),
    row(TableFeatures,    "TABLE_FEATURES",    (More(8), table_features::print),            (More(8), table_features::print)),
    row(PortDesc,         "PORT_DESC",         (Exactly, port::print_description_request),  (More(8), port::print_descriptions)),
    row(TableDesc,        "TABLE_DESC",        (Exactly, print_nothing),                    (More(8), table::print_descs)),
    row(QueueDesc,        "QUEUE_DESC",        (Exactly, queue::print_desc_request),        (More(8), queue::print_desc_reply)),
    row(FlowMonitor,      "FLOW_MONITOR",      (More(8), monitor::print_request),           (More(8), monitor::print_reply)),
    row(BundleFeatures,   "BUNDLE_FEATURES",   (More(8), bundle::print_features_request),   (More(8), bundle::print_features)),
    row(ControllerStatus, "CONTROLLER_STATUS", (Exactly, print_nothing),                    (More(8), controllers::print)),
    row(IpfixBridge,      "IPFIX_BRIDGE",      (Exactly, print_nothing),                    (Exactly, ipfix::print_bridge)),
    row(IpfixFlow,        "IPFIX_FLOW",        (Exactly, print_nothing),                    (More(8), ipfix::print_collectors)),
    row(FlowCounts,       "FLOW_STATS",        (More(8), flow_stats::print_request),        (More(8), flow_stats::print_counts)),
]};

const fn row(
    kind: MultipartKind,
    name: &'static str,
    request: (BodyLength, PrintBody),
    reply: (BodyLength, PrintBody),
) -> MultipartPrinter {
    MultipartPrinter {
        kind,
        name,
        request,
        reply,
    }
}

fn printer(kind: MultipartKind) -> &'static MultipartPrinter {
    let found = PRINTERS.iter().find(|row| row.kind == kind);
    found.expect("every kind has its row")
}

/// The minimum bytes after the multipart header.
fn body_min(kind: MessageKind, multipart: MultipartKind, version: Version) -> usize {
    match (kind == MessageKind::MultipartRequest, multipart) {
        (true, MultipartKind::Flow | MultipartKind::Aggregate | MultipartKind::FlowCounts) => {
            match version {
                Version::V10 => 44,
                Version::V11 => 120,
                // The decoder of the match checks the length of the match.
                _ => 32,
            }
        }
        (true, MultipartKind::NxFlow | MultipartKind::NxAggregate) => 8,
        (true, MultipartKind::PortDesc) if version != Version::V15 => 0,
        (true, MultipartKind::GroupDesc) if !matches!(version, Version::V10 | Version::V15) => 0,
        (
            true,
            MultipartKind::Port
            | MultipartKind::Queue
            | MultipartKind::Group
            | MultipartKind::GroupDesc
            | MultipartKind::PortDesc,
        ) => 8,
        (true, MultipartKind::Meter | MultipartKind::MeterConfig | MultipartKind::QueueDesc) => 8,
        (false, MultipartKind::Description) => 1056,
        (false, MultipartKind::Aggregate | MultipartKind::NxAggregate)
            if version != Version::V15 =>
        {
            24
        }
        (false, MultipartKind::Aggregate) => 8,
        (false, MultipartKind::GroupFeatures) => 40,
        (false, MultipartKind::MeterFeatures) => 16,
        (_, MultipartKind::BundleFeatures) => 8,
        (false, MultipartKind::IpfixBridge) => ipfix::LENGTH,
        _ => 0,
    }
}

/// Refuses an unknown multipart type, and a length that the type does not allow.
pub(super) fn check(kind: MessageKind, mut r: Reader<'_>) -> Result<(), DecodeErrorName> {
    let (multipart, _) = decode_head(&mut r)?;
    let row = printer(multipart);
    let (version, is_request) = (r.version(), kind == MessageKind::MultipartRequest);
    let length = match (is_request, entry_length(multipart, version)) {
        (true, _) => row.request.0,
        (false, Some(entry)) => BodyLength::More(entry),
        (false, None) => row.reply.0,
    };
    if length.takes(body_min(kind, multipart, version), r.len(), version) {
        Ok(())
    } else {
        Err(r.fail(Refusal::RequestBadLength).into())
    }
}

/// Bytes of an entry in a reply, if all have the same length.
const fn entry_length(multipart: MultipartKind, version: Version) -> Option<usize> {
    Some(match (multipart, version) {
        (MultipartKind::Table, Version::V10) => 64,
        (MultipartKind::Table, Version::V11) => 88,
        (MultipartKind::Table, Version::V12) => 128,
        (MultipartKind::Table, _) => 24,
        (MultipartKind::IpfixFlow, _) => ipfix::LENGTH,
        (_, Version::V14 | Version::V15) => return None,
        (MultipartKind::Port, Version::V13) => 112,
        (MultipartKind::Port, _) => 104,
        (MultipartKind::Queue, Version::V13) => 40,
        (MultipartKind::Queue, _) => 32,
        (MultipartKind::PortDesc, Version::V10) => LENGTH_V10,
        (MultipartKind::PortDesc, _) => LENGTH_V11,
        _ => return None,
    })
}

/// Writes the name of a request or reply.
pub(super) fn write_name(kind: MessageKind, mut r: Reader<'_>, text: &mut PrintBuffer<'_>) {
    let Ok((multipart, _)) = decode_head(&mut r) else {
        return;
    };
    let number = MultipartKindRow::by_kind(multipart, r.version()).map(|row| row.number);
    let prefix = match number {
        Some(TypeNumber::Nicira(_)) => "NXST",
        Some(TypeNumber::Onf(_)) => "ONFST",
        Some(TypeNumber::Standard(_)) | None => "OFPST",
    };
    let side = if kind == MessageKind::MultipartRequest {
        "request"
    } else {
        "reply"
    };
    write!(text, "{prefix}_{} {side}", printer(multipart).name);
}

/// Writes a request.
pub(super) fn print_request(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    // Before 1.3 a request was one message.
    let known = if r.version() >= Version::V13 { MORE } else { 0 };
    let multipart = print_flags(known, r, text)?;
    (printer(multipart).request.1)(r, text)
}

/// Writes a reply.
pub(super) fn print_reply(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    let multipart = print_flags(MORE, r, text)?;
    (printer(multipart).reply.1)(r, text)
}

/// Reads the multipart header and writes its flags.
fn print_flags(
    known: u16,
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<MultipartKind, DecodeErrorName> {
    let (multipart, flags) = decode_head(r)?;
    if flags != 0 {
        text.push(" flags=");
        text.push(if flags & known != 0 { "[more]" } else { "" });
        match flags & !known {
            0 => {}
            rest => write!(text, "[***unknown flags 0x{rest:04x}***]"),
        }
    }
    Ok(multipart)
}

/// Writes the description of a switch.
fn print_description(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    for (name, length) in [
        ("Manufacturer", 256),
        ("Hardware", 256),
        ("Software", 256),
        ("Serial Num", 32),
        ("DP Description", 256),
    ] {
        write!(text, "\n{name}: {}", r.text(length)?);
    }
    Ok(())
}
