//! Multipart messages: requests for statistics and descriptions, and replies, which can consist of
//! several messages (OF 1.0.1, 5.3.5; OF 1.3.5, 7.3.5; OF 1.5.1, 7.3.5).
//!
//! A request can consist of several messages only if it is a list, of table features or of
//! monitors.

mod bundle_features;
mod custom_counters;
mod description;
mod flow_monitor;
mod flow_stats;
mod flow_stats_v15;
mod groups;
mod ipfix;
mod meters;
mod port_stats;
mod queue_stats;
mod reassembly;
mod reply_writer;
mod table_features;
mod table_stats;

use base::{GroupId, MeterId, PortNo, Xid};
use flow::{
    AggregateStats, FlowStats, FlowStatsRequest, FlowUpdate, GroupDesc, GroupFeatures, GroupStats,
    IpfixScope, IpfixStats, MeterConfig, MeterFeatures, MeterStats, MonitorRequest, PortDesc,
    PortStats, QueueStats, Refusal, SwitchDescription, TableDesc, TableStats,
};

pub use bundle_features::{BundleFeatures, BundleFeaturesRequest, BundleTimes};
pub use queue_stats::QueueStatsRequest;
pub use table_features::{TableFeatures, TableFeaturesCommand};

use reply_writer::ReplyWriter;

use super::WireFormat;
use super::controller_status::ControllerStatus;
use super::queue_config::QueueDesc;
use crate::codec::{EncodeError, Malformed, Reader, Writer};
use crate::dialect::{Dialect, FlowFormat};
use crate::header::Header;
use crate::kinds::{EXPERIMENTER_MULTIPART, MultipartKind, MultipartKindRow, TypeNumber};
use crate::version::Version;

/// `OFPMPF_REQ_MORE` and `OFPMPF_REPLY_MORE`.
pub(crate) const MORE: u16 = 1;

/// A multipart request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MultipartRequest {
    /// The description of the switch.
    Description,
    /// Rules and their counters.
    Flow(FlowFormat, FlowStatsRequest),
    /// The sums of rules' counters.
    Aggregate(FlowFormat, FlowStatsRequest),
    /// The counters of all tables.
    Table,
    /// The counters of a port; [`PortNo::ANY`] for all.
    Port(PortNo),
    /// The counters of queues.
    Queue(QueueStatsRequest),
    /// The counters of a group; [`GroupId::ALL`] for all.
    Group(GroupId),
    /// The description of a group; [`GroupId::ALL`] for all, the only request of 1.3.
    GroupDesc(GroupId),
    /// The supported group types.
    GroupFeatures,
    /// The counters of a meter; [`MeterId::ALL`] for all (1.3).
    Meter(MeterId),
    /// The configuration of a meter; [`MeterId::ALL`] for all (1.3).
    MeterConfig(MeterId),
    /// The supported meters (1.3).
    MeterFeatures,
    /// The capabilities of tables. A list of tables changes them. (1.3)
    TableFeatures(Vec<TableFeatures>),
    /// The description of a port; [`PortNo::ANY`] for all, the only request before 1.5.
    PortDesc(PortNo),
    /// The configuration of tables (1.4).
    TableDesc,
    /// The descriptions of queues (1.4).
    QueueDesc(QueueStatsRequest),
    /// Monitors to add, modify or remove.
    FlowMonitor(Vec<MonitorRequest>),
    /// The capabilities of bundles (1.5).
    BundleFeatures(BundleFeaturesRequest),
    /// The state of the controllers that the switch connects to (1.5).
    ControllerStatus,
    /// The statistics of IPFIX export (Nicira).
    Ipfix(IpfixScope),
}

/// A multipart reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MultipartReply {
    /// The description of the switch.
    Description(SwitchDescription),
    /// Rules and their counters.
    Flow(FlowFormat, Vec<FlowStats>),
    /// The sums of rules' counters.
    Aggregate(FlowFormat, AggregateStats),
    /// The counters of tables.
    Table(Vec<TableStats>),
    /// The counters of ports.
    Port(Vec<PortStats>),
    /// The counters of queues.
    Queue(Vec<QueueStats>),
    /// The counters of groups.
    Group(Vec<GroupStats>),
    /// The descriptions of groups.
    GroupDesc(Vec<GroupDesc>),
    /// The supported group types.
    GroupFeatures(GroupFeatures),
    /// The counters of meters (1.3).
    Meter(Vec<MeterStats>),
    /// The configuration of meters (1.3).
    MeterConfig(Vec<MeterConfig>),
    /// The supported meters (1.3).
    MeterFeatures(MeterFeatures),
    /// The capabilities of tables.
    TableFeatures(Vec<TableFeatures>),
    /// The descriptions of ports.
    PortDesc(Vec<PortDesc>),
    /// The configuration of tables.
    TableDesc(Vec<TableDesc>),
    /// The descriptions of queues.
    QueueDesc(Vec<QueueDesc>),
    /// Rule changes.
    FlowMonitor(Vec<FlowUpdate>),
    /// The capabilities of bundles (1.5).
    BundleFeatures(BundleFeatures),
    /// The state of the controllers that the switch connects to (1.5).
    ControllerStatus(Vec<ControllerStatus>),
    /// The statistics of IPFIX export (Nicira); the bridge has one entry.
    Ipfix(IpfixScope, Vec<IpfixStats>),
}

impl MultipartReply {
    const fn kind(&self) -> MultipartKind {
        match self {
            Self::Description(_) => MultipartKind::Description,
            Self::Flow(FlowFormat::Standard, _) => MultipartKind::Flow,
            Self::Flow(FlowFormat::Nicira, _) => MultipartKind::NxFlow,
            Self::Flow(FlowFormat::Counts, _) => MultipartKind::FlowCounts,
            Self::Aggregate(FlowFormat::Standard | FlowFormat::Counts, _) => {
                MultipartKind::Aggregate
            }
            Self::Aggregate(FlowFormat::Nicira, _) => MultipartKind::NxAggregate,
            Self::Table(_) => MultipartKind::Table,
            Self::Port(_) => MultipartKind::Port,
            Self::Queue(_) => MultipartKind::Queue,
            Self::Group(_) => MultipartKind::Group,
            Self::GroupDesc(_) => MultipartKind::GroupDesc,
            Self::GroupFeatures(_) => MultipartKind::GroupFeatures,
            Self::Meter(_) => MultipartKind::Meter,
            Self::MeterConfig(_) => MultipartKind::MeterConfig,
            Self::MeterFeatures(_) => MultipartKind::MeterFeatures,
            Self::TableFeatures(_) => MultipartKind::TableFeatures,
            Self::PortDesc(_) => MultipartKind::PortDesc,
            Self::TableDesc(_) => MultipartKind::TableDesc,
            Self::QueueDesc(_) => MultipartKind::QueueDesc,
            Self::FlowMonitor(_) => MultipartKind::FlowMonitor,
            Self::BundleFeatures(_) => MultipartKind::BundleFeatures,
            Self::ControllerStatus(_) => MultipartKind::ControllerStatus,
            Self::Ipfix(of, _) => ipfix::kind(*of),
        }
    }
}

impl MultipartRequest {
    const fn kind(&self) -> MultipartKind {
        match self {
            Self::Description => MultipartKind::Description,
            Self::Flow(FlowFormat::Standard, _) => MultipartKind::Flow,
            Self::Flow(FlowFormat::Nicira, _) => MultipartKind::NxFlow,
            Self::Flow(FlowFormat::Counts, _) => MultipartKind::FlowCounts,
            Self::Aggregate(FlowFormat::Standard | FlowFormat::Counts, _) => {
                MultipartKind::Aggregate
            }
            Self::Aggregate(FlowFormat::Nicira, _) => MultipartKind::NxAggregate,
            Self::Table => MultipartKind::Table,
            Self::Port(_) => MultipartKind::Port,
            Self::Queue(_) => MultipartKind::Queue,
            Self::Group(_) => MultipartKind::Group,
            Self::GroupDesc(_) => MultipartKind::GroupDesc,
            Self::GroupFeatures => MultipartKind::GroupFeatures,
            Self::Meter(_) => MultipartKind::Meter,
            Self::MeterConfig(_) => MultipartKind::MeterConfig,
            Self::MeterFeatures => MultipartKind::MeterFeatures,
            Self::TableFeatures(_) => MultipartKind::TableFeatures,
            Self::PortDesc(_) => MultipartKind::PortDesc,
            Self::TableDesc => MultipartKind::TableDesc,
            Self::QueueDesc(_) => MultipartKind::QueueDesc,
            Self::FlowMonitor(_) => MultipartKind::FlowMonitor,
            Self::BundleFeatures(_) => MultipartKind::BundleFeatures,
            Self::ControllerStatus => MultipartKind::ControllerStatus,
            Self::Ipfix(of) => ipfix::kind(*of),
        }
    }
}

/// Decodes the multipart type and the flags of a request or reply.
pub(crate) fn decode_head(r: &mut Reader<'_>) -> Result<(MultipartKind, u16), Malformed> {
    let fail = |refusal| Malformed {
        refusal,
        at: Header::LENGTH,
    };
    let (number, flags) = (r.u16()?, r.u16()?);
    if r.version() != Version::V10 {
        r.skip(4)?;
    }
    let number = if number == EXPERIMENTER_MULTIPART {
        let (experimenter, number) = (r.u32()?, r.u32()?);
        let number = TypeNumber::of(experimenter, number);
        let number = number.ok_or_else(|| fail(Refusal::RequestBadExperimenter))?;
        let row = MultipartKindRow::by_number(number, r.version());
        row.ok_or_else(|| fail(Refusal::RequestBadExperimenterType))?;
        if r.version() == Version::V10 {
            r.skip(4)?;
        }
        number
    } else {
        TypeNumber::Standard(number)
    };
    let row = MultipartKindRow::by_number(number, r.version());
    let row = row.ok_or_else(|| fail(Refusal::RequestBadMultipart))?;
    Ok((row.kind, flags))
}

fn encode_head(part: MultipartKind, more: bool, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    let row = MultipartKindRow::by_kind(part, w.version())
        .ok_or_else(|| w.unsupported("this multipart type"))?;
    let flags = if more { MORE } else { 0 };
    match row.number {
        TypeNumber::Standard(number) => {
            w.u16(number);
            w.u16(flags);
            if w.version() != Version::V10 {
                w.zeros(4);
            }
        }
        TypeNumber::Nicira(_) | TypeNumber::Onf(_) => {
            let numbers = row.number.experimenter();
            let (experimenter, number) = numbers.expect("both are experimenters'");
            w.u16(EXPERIMENTER_MULTIPART);
            w.u16(flags);
            if w.version() != Version::V10 {
                w.zeros(4);
            }
            w.u32(experimenter);
            w.u32(number);
            // 1.0 has this padding after its own, shorter header, so that the lengths are equal.
            if w.version() == Version::V10 {
                w.zeros(4);
            }
        }
    }
    Ok(())
}

/// Decodes the body of a request; the flag is true if another message continues it.
pub(crate) fn decode_request(r: &mut Reader<'_>) -> Result<(MultipartRequest, bool), Malformed> {
    let (part, flags) = decode_head(r)?;
    let more = flags & MORE != 0;
    if more
        && !matches!(
            part,
            MultipartKind::TableFeatures | MultipartKind::FlowMonitor
        )
    {
        return Err(Malformed {
            refusal: Refusal::RequestMultipartOverflow,
            at: Header::LENGTH + 2,
        });
    }
    Ok((decode_request_body(part, r)?, more))
}

fn decode_request_body(
    part: MultipartKind,
    r: &mut Reader<'_>,
) -> Result<MultipartRequest, Malformed> {
    Ok(match part {
        MultipartKind::Description => MultipartRequest::Description,
        MultipartKind::Flow => MultipartRequest::Flow(FlowFormat::Standard, WireFormat::decode(r)?),
        MultipartKind::NxFlow => {
            MultipartRequest::Flow(FlowFormat::Nicira, flow_stats::decode_nx_request(r)?)
        }
        MultipartKind::Aggregate => {
            MultipartRequest::Aggregate(FlowFormat::Standard, WireFormat::decode(r)?)
        }
        MultipartKind::NxAggregate => {
            MultipartRequest::Aggregate(FlowFormat::Nicira, flow_stats::decode_nx_request(r)?)
        }
        MultipartKind::Table => MultipartRequest::Table,
        MultipartKind::Port => MultipartRequest::Port(port_stats::decode_request(r)?),
        MultipartKind::Queue => MultipartRequest::Queue(WireFormat::decode(r)?),
        MultipartKind::Group => MultipartRequest::Group(groups::decode_request(r)?),
        MultipartKind::GroupDesc if names_group(r.version()) => {
            MultipartRequest::GroupDesc(groups::decode_request(r)?)
        }
        MultipartKind::GroupDesc => MultipartRequest::GroupDesc(GroupId::ALL),
        MultipartKind::GroupFeatures => MultipartRequest::GroupFeatures,
        MultipartKind::Meter => MultipartRequest::Meter(meters::decode_request(r)?),
        MultipartKind::MeterConfig => MultipartRequest::MeterConfig(meters::decode_request(r)?),
        MultipartKind::MeterFeatures => MultipartRequest::MeterFeatures,
        MultipartKind::TableFeatures => {
            MultipartRequest::TableFeatures(decode_all(r, table_features::decode_request)?)
        }
        MultipartKind::BundleFeatures => MultipartRequest::BundleFeatures(WireFormat::decode(r)?),
        MultipartKind::PortDesc => MultipartRequest::PortDesc(match r.version() {
            Version::V15 => port_stats::decode_request(r)?,
            _ => PortNo::ANY,
        }),
        MultipartKind::TableDesc => MultipartRequest::TableDesc,
        MultipartKind::QueueDesc => MultipartRequest::QueueDesc(WireFormat::decode(r)?),
        MultipartKind::FlowCounts => {
            MultipartRequest::Flow(FlowFormat::Counts, WireFormat::decode(r)?)
        }
        MultipartKind::FlowMonitor => {
            MultipartRequest::FlowMonitor(decode_all(r, WireFormat::decode)?)
        }
        MultipartKind::ControllerStatus => MultipartRequest::ControllerStatus,
        MultipartKind::IpfixBridge => MultipartRequest::Ipfix(IpfixScope::Bridge),
        MultipartKind::IpfixFlow => MultipartRequest::Ipfix(IpfixScope::Collectors),
    })
}

/// Appends the body of a request. `more` is true if another message continues it.
pub(crate) fn encode_request(
    request: &MultipartRequest,
    more: bool,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    encode_head(request.kind(), more, w)?;
    match request {
        MultipartRequest::Flow(FlowFormat::Standard | FlowFormat::Counts, request)
        | MultipartRequest::Aggregate(FlowFormat::Standard | FlowFormat::Counts, request) => {
            request.encode(w)?;
        }
        MultipartRequest::Flow(FlowFormat::Nicira, request)
        | MultipartRequest::Aggregate(FlowFormat::Nicira, request) => {
            flow_stats::encode_nx_request(request, w)?;
        }
        MultipartRequest::Port(port) => port_stats::encode_request(*port, w)?,
        MultipartRequest::Queue(request) | MultipartRequest::QueueDesc(request) => {
            request.encode(w)?;
        }
        MultipartRequest::PortDesc(port) => match (w.version(), *port) {
            (Version::V15, port) => port_stats::encode_request(port, w)?,
            (_, PortNo::ANY) => {}
            (_, _) => return Err(w.unsupported("a request for the description of one port")),
        },
        MultipartRequest::Group(group) => groups::encode_request(*group, w),
        MultipartRequest::Meter(meter) | MultipartRequest::MeterConfig(meter) => {
            w.u32(meter.0);
            w.zeros(4);
        }
        MultipartRequest::GroupDesc(group) if names_group(w.version()) => {
            groups::encode_request(*group, w);
        }
        MultipartRequest::GroupDesc(GroupId::ALL) => {}
        MultipartRequest::GroupDesc(_) => {
            return Err(w.unsupported("a request for the description of one group"));
        }
        MultipartRequest::FlowMonitor(list) => {
            list.iter().try_for_each(|request| request.encode(w))?;
        }
        MultipartRequest::Description
        | MultipartRequest::Table
        | MultipartRequest::GroupFeatures
        | MultipartRequest::MeterFeatures
        | MultipartRequest::TableDesc
        | MultipartRequest::ControllerStatus
        | MultipartRequest::Ipfix(_) => {}
        MultipartRequest::TableFeatures(tables) => {
            let encode = |table| table_features::encode_request(table, w);
            tables.iter().try_for_each(encode)?;
        }
        MultipartRequest::BundleFeatures(request) => request.encode(w)?,
    }
    Ok(())
}

/// Decodes the body of a reply; the flag is true if another message continues it.
pub(crate) fn decode_reply(r: &mut Reader<'_>) -> Result<(MultipartReply, bool), Malformed> {
    let (part, flags) = decode_head(r)?;
    let reply = match part {
        MultipartKind::Description => MultipartReply::Description(WireFormat::decode(r)?),
        MultipartKind::Flow => {
            MultipartReply::Flow(FlowFormat::Standard, decode_all(r, WireFormat::decode)?)
        }
        MultipartKind::NxFlow => {
            MultipartReply::Flow(FlowFormat::Nicira, decode_all(r, flow_stats::decode_nx)?)
        }
        MultipartKind::Aggregate => {
            MultipartReply::Aggregate(FlowFormat::Standard, WireFormat::decode(r)?)
        }
        MultipartKind::NxAggregate => {
            MultipartReply::Aggregate(FlowFormat::Nicira, WireFormat::decode(r)?)
        }
        MultipartKind::Table => MultipartReply::Table(decode_all(r, WireFormat::decode)?),
        MultipartKind::Port => MultipartReply::Port(decode_all(r, WireFormat::decode)?),
        MultipartKind::Queue => MultipartReply::Queue(decode_all(r, WireFormat::decode)?),
        MultipartKind::Group => MultipartReply::Group(decode_all(r, WireFormat::decode)?),
        MultipartKind::GroupDesc => MultipartReply::GroupDesc(decode_all(r, WireFormat::decode)?),
        MultipartKind::GroupFeatures => MultipartReply::GroupFeatures(WireFormat::decode(r)?),
        MultipartKind::Meter => MultipartReply::Meter(decode_all(r, WireFormat::decode)?),
        MultipartKind::MeterConfig => {
            MultipartReply::MeterConfig(decode_all(r, WireFormat::decode)?)
        }
        MultipartKind::MeterFeatures => MultipartReply::MeterFeatures(WireFormat::decode(r)?),
        MultipartKind::TableFeatures => {
            MultipartReply::TableFeatures(decode_all(r, WireFormat::decode)?)
        }
        MultipartKind::PortDesc => MultipartReply::PortDesc(decode_all(r, WireFormat::decode)?),
        MultipartKind::TableDesc => MultipartReply::TableDesc(decode_all(r, WireFormat::decode)?),
        MultipartKind::QueueDesc => MultipartReply::QueueDesc(decode_all(r, WireFormat::decode)?),
        MultipartKind::FlowMonitor => {
            MultipartReply::FlowMonitor(decode_all(r, WireFormat::decode)?)
        }
        MultipartKind::BundleFeatures => MultipartReply::BundleFeatures(WireFormat::decode(r)?),
        MultipartKind::ControllerStatus => {
            MultipartReply::ControllerStatus(decode_all(r, WireFormat::decode)?)
        }
        MultipartKind::IpfixBridge => {
            MultipartReply::Ipfix(IpfixScope::Bridge, vec![WireFormat::decode(r)?])
        }
        MultipartKind::IpfixFlow => {
            MultipartReply::Ipfix(IpfixScope::Collectors, decode_all(r, WireFormat::decode)?)
        }
        MultipartKind::FlowCounts => MultipartReply::Flow(
            FlowFormat::Counts,
            decode_all(r, flow_stats::decode_counts_only)?,
        ),
    };
    Ok((reply, flags & MORE != 0))
}

/// Returns true if a request for group descriptions has a group id, as in Nicira's extension and in
/// 1.5.
const fn names_group(version: Version) -> bool {
    matches!(version, Version::V10 | Version::V15)
}

fn decode_all<T>(
    r: &mut Reader<'_>,
    decode: impl Fn(&mut Reader<'_>) -> Result<T, Malformed>,
) -> Result<Vec<T>, Malformed> {
    let mut entries = Vec::new();
    while !r.is_empty() {
        entries.push(decode(r)?);
    }
    Ok(entries)
}

/// Appends a reply as one or several messages. `more` is true if other messages continue it.
pub(crate) fn encode_reply(
    reply: &MultipartReply,
    more: bool,
    xid: Xid,
    dialect: Dialect,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let mut writer = ReplyWriter::new(reply.kind(), xid, dialect, out)?;
    match reply {
        MultipartReply::Description(body) => writer.write_entry(|w| body.encode(w))?,
        MultipartReply::Aggregate(_, body) => writer.write_entry(|w| body.encode(w))?,
        MultipartReply::Flow(FlowFormat::Standard, list) => {
            writer.write_all(list, WireFormat::encode)?
        }
        MultipartReply::Flow(FlowFormat::Nicira, list) => {
            writer.write_all(list, flow_stats::encode_nx)?
        }
        MultipartReply::Flow(FlowFormat::Counts, list) => {
            writer.write_all(list, flow_stats::encode_counts_only)?;
        }
        MultipartReply::Table(list) => writer.write_all(list, WireFormat::encode)?,
        MultipartReply::Port(list) => writer.write_all(list, WireFormat::encode)?,
        MultipartReply::Queue(list) => writer.write_all(list, WireFormat::encode)?,
        MultipartReply::TableFeatures(list) => writer.write_all(list, WireFormat::encode)?,
        MultipartReply::PortDesc(list) => writer.write_all(list, WireFormat::encode)?,
        MultipartReply::TableDesc(list) => writer.write_all(list, WireFormat::encode)?,
        MultipartReply::QueueDesc(list) => writer.write_all(list, WireFormat::encode)?,
        MultipartReply::FlowMonitor(list) => writer.write_all(list, WireFormat::encode)?,
        MultipartReply::Group(list) => writer.write_all(list, WireFormat::encode)?,
        MultipartReply::GroupDesc(list) => writer.write_all(list, WireFormat::encode)?,
        MultipartReply::GroupFeatures(body) => writer.write_entry(|w| body.encode(w))?,
        MultipartReply::Meter(list) => writer.write_all(list, WireFormat::encode)?,
        MultipartReply::MeterConfig(list) => writer.write_all(list, WireFormat::encode)?,
        MultipartReply::MeterFeatures(body) => writer.write_entry(|w| body.encode(w))?,
        MultipartReply::BundleFeatures(body) => writer.write_entry(|w| body.encode(w))?,
        MultipartReply::ControllerStatus(list) => writer.write_all(list, WireFormat::encode)?,
        MultipartReply::Ipfix(_, list) => writer.write_all(list, WireFormat::encode)?,
    }
    writer.close(more);
    Ok(())
}

#[cfg(test)]
mod tests;
