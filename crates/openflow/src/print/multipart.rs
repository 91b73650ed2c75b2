//! Questions about statistics and descriptions, and the answers: which printer a
//! kind has, and what stands before each.

use ::flow::Refusal;

use super::ipfix;
use super::names::Unreadable;
use super::rows::{Length, Printer};
use super::text::Text;
use super::{
    bundle, controllers, flow_stats, group, meter, monitor, port, queue, table, table_features,
};
use crate::codec::Reader;
use crate::kinds::{Kind, Number, Part, PartRow};
use crate::message::multipart::{MORE, decode_head};
use crate::message::port::{LENGTH_V10, LENGTH_V11};
use crate::version::Version;

/// How a kind is printed.
struct Row {
    part: Part,
    name: &'static str,
    request: (Length, Printer),
    reply: (Length, Printer),
}

/// A question that says nothing but its name.
fn nothing(r: &mut Reader<'_>, _: &mut Text<'_>) -> Result<(), Unreadable> {
    r.rest();
    Ok(())
}

#[rustfmt::skip]
static ROWS: &[Row] = { use {Part::*, Length::*}; &[
    row(Description,   "DESC",           (Exactly, nothing),                       (Exactly, print_description)),
    row(Flow,          "FLOW",           (More(8), flow_stats::print_request),           (More(1), flow_stats::print_reply)),
    row(NxFlow,        "FLOW",           (More(8), flow_stats::print_request_nicira),    (More(8), flow_stats::print_reply_nicira)),
    row(Aggregate,     "AGGREGATE",      (More(8), flow_stats::print_request),           (More(8), flow_stats::print_sums)),
    row(NxAggregate,   "AGGREGATE",      (More(8), flow_stats::print_request_nicira),    (Exactly, flow_stats::print_sums)),
    row(Table,         "TABLE",          (Exactly, nothing),                       (More(1), table::print_stats)),
    row(Port,          "PORT",           (Exactly, port::print_stats_request),     (More(8), port::print_stats)),
    row(Queue,         "QUEUE",          (Exactly, queue::print_stats_request),    (More(8), queue::print_stats)),
    row(Group,         "GROUP",          (Exactly, group::print_request),          (More(8), group::print_stats)),
    row(GroupDesc,     "GROUP_DESC",     (Exactly, group::print_desc_request),     (More(8), group::print_descs)),
    row(GroupFeatures, "GROUP_FEATURES", (Exactly, nothing),                       (Exactly, group::print_features)),
    row(Meter,         "METER",          (Exactly, meter::print_request),          (More(8), meter::print_stats)),
    row(MeterConfig,   "METER_CONFIG",   (Exactly, meter::print_request),          (More(8), meter::print_configs)),
    row(MeterFeatures, "METER_FEATURES", (Exactly, nothing),                       (Exactly, meter::print_features)),
    row(TableFeatures, "TABLE_FEATURES", (More(8), table_features::print),         (More(8), table_features::print)),
    row(PortDesc,      "PORT_DESC",      (Exactly, port::print_description_request), (More(8), port::print_descriptions)),
    row(TableDesc,     "TABLE_DESC",     (Exactly, nothing),                       (More(8), table::print_descs)),
    row(QueueDesc,     "QUEUE_DESC",     (Exactly, queue::print_desc_request),     (More(8), queue::print_desc_reply)),
    row(FlowMonitor,   "FLOW_MONITOR",   (More(8), monitor::print_request),        (More(8), monitor::print_reply)),
    row(BundleFeatures, "BUNDLE_FEATURES", (More(8), bundle::print_features_request), (More(8), bundle::print_features)),
    row(ControllerStatus, "CONTROLLER_STATUS", (Exactly, nothing),                 (More(8), controllers::print)),
    row(IpfixBridge,   "IPFIX_BRIDGE",   (Exactly, nothing),                       (Exactly, ipfix::print_bridge)),
    row(IpfixFlow,     "IPFIX_FLOW",     (Exactly, nothing),                       (More(8), ipfix::print_collectors)),
    row(FlowCounts,    "FLOW_STATS",     (More(8), flow_stats::print_request),           (More(8), flow_stats::print_counts)),
]};

const fn row(
    part: Part,
    name: &'static str,
    request: (Length, Printer),
    reply: (Length, Printer),
) -> Row {
    Row {
        part,
        name,
        request,
        reply,
    }
}

fn of(part: Part) -> &'static Row {
    let found = ROWS.iter().find(|row| row.part == part);
    found.expect("every kind has its row")
}

/// The least bytes behind the head.
fn least(kind: Kind, part: Part, version: Version) -> usize {
    match (kind == Kind::MultipartRequest, part) {
        (true, Part::Flow | Part::Aggregate | Part::FlowCounts) => match version {
            Version::V10 => 44,
            Version::V11 => 120,
            // The match behind it is judged as a match.
            _ => 32,
        },
        (true, Part::NxFlow | Part::NxAggregate) => 8,
        (true, Part::PortDesc) if version != Version::V15 => 0,
        (true, Part::GroupDesc) if !matches!(version, Version::V10 | Version::V15) => 0,
        (true, Part::Port | Part::Queue | Part::Group | Part::GroupDesc | Part::PortDesc) => 8,
        (true, Part::Meter | Part::MeterConfig | Part::QueueDesc) => 8,
        (false, Part::Description) => 1056,
        (false, Part::Aggregate | Part::NxAggregate) if version != Version::V15 => 24,
        (false, Part::Aggregate) => 8,
        (false, Part::GroupFeatures) => 40,
        (false, Part::MeterFeatures) => 16,
        (_, Part::BundleFeatures) => 8,
        (false, Part::IpfixBridge) => ipfix::LENGTH,
        _ => 0,
    }
}

/// Refuses what has no kind that is known, or a length that its kind does not have.
pub(super) fn check(kind: Kind, mut r: Reader<'_>) -> Result<(), Unreadable> {
    let (part, _) = decode_head(&mut r)?;
    let row = of(part);
    let (version, is_request) = (r.version(), kind == Kind::MultipartRequest);
    let length = match (is_request, entry(part, version)) {
        (true, _) => row.request.0,
        (false, Some(entry)) => Length::More(entry),
        (false, None) => row.reply.0,
    };
    if length.takes(least(kind, part, version), r.len(), version) {
        Ok(())
    } else {
        Err(r.fail(Refusal::RequestBadLength).into())
    }
}

/// Bytes of an entry in an answer, where all are as long.
const fn entry(part: Part, version: Version) -> Option<usize> {
    Some(match (part, version) {
        (Part::Table, Version::V10) => 64,
        (Part::Table, Version::V11) => 88,
        (Part::Table, Version::V12) => 128,
        (Part::Table, _) => 24,
        (Part::IpfixFlow, _) => ipfix::LENGTH,
        (_, Version::V14 | Version::V15) => return None,
        (Part::Port, Version::V13) => 112,
        (Part::Port, _) => 104,
        (Part::Queue, Version::V13) => 40,
        (Part::Queue, _) => 32,
        (Part::PortDesc, Version::V10) => LENGTH_V10,
        (Part::PortDesc, _) => LENGTH_V11,
        _ => return None,
    })
}

/// Writes what a question or an answer is called.
pub(super) fn write_name(kind: Kind, mut r: Reader<'_>, text: &mut Text<'_>) {
    let Ok((part, _)) = decode_head(&mut r) else {
        return;
    };
    let number = PartRow::of(part, r.version()).map(|row| row.number);
    let prefix = match number {
        Some(Number::Nicira(_)) => "NXST",
        Some(Number::Onf(_)) => "ONFST",
        Some(Number::Own(_)) | None => "OFPST",
    };
    let side = if kind == Kind::MultipartRequest {
        "request"
    } else {
        "reply"
    };
    write!(text, "{prefix}_{} {side}", of(part).name);
}

/// Writes a question.
pub(super) fn print_request(r: &mut Reader<'_>, text: &mut Text<'_>) -> Result<(), Unreadable> {
    // Before 1.3 a question was one message.
    let known = if r.version() >= Version::V13 { MORE } else { 0 };
    let part = head(known, r, text)?;
    (of(part).request.1)(r, text)
}

/// Writes an answer.
pub(super) fn print_reply(r: &mut Reader<'_>, text: &mut Text<'_>) -> Result<(), Unreadable> {
    let part = head(MORE, r, text)?;
    (of(part).reply.1)(r, text)
}

/// Reads the head and writes its flags.
fn head(known: u16, r: &mut Reader<'_>, text: &mut Text<'_>) -> Result<Part, Unreadable> {
    let (part, flags) = decode_head(r)?;
    if flags != 0 {
        text.push(" flags=");
        text.push(if flags & known != 0 { "[more]" } else { "" });
        match flags & !known {
            0 => {}
            rest => write!(text, "[***unknown flags 0x{rest:04x}***]"),
        }
    }
    Ok(part)
}

/// Writes what a switch says of itself.
fn print_description(r: &mut Reader<'_>, text: &mut Text<'_>) -> Result<(), Unreadable> {
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
