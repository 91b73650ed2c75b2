//! Statistics and descriptions: requests, and replies that may take several
//! messages (OF 1.0.1, 5.3.5; OF 1.3.5, 7.3.5; OF 1.5.1,
//! 7.3.5).
//!
//! A request may take several messages where it is a list, of table features or of
//! monitors; else it may not.

mod bundle_features;
mod description;
mod flow_monitor;
mod flow_stats;
mod flow_stats_v15;
mod groups;
mod ipfix;
mod meters;
mod parts;
mod port_stats;
mod queue_stats;
mod table_features;
mod table_stats;
mod whole;

use base::{GroupId, MeterId, PortNo, Xid};
use flow::{
    AggregateStats, Description, FlowStats, FlowStatsRequest, FlowUpdate, GroupDesc, GroupFeatures,
    GroupStats, IpfixOf, IpfixStats, MeterConfig, MeterFeatures, MeterStats, MonitorRequest,
    PortDesc, PortStats, QueueStats, Refusal, TableDesc, TableStats,
};

pub use bundle_features::{BundleFeatures, BundleFeaturesRequest, BundleTimes};
pub use queue_stats::QueueStatsRequest;
pub use table_features::{TableFeatures, TableFeaturesCommand};

use parts::Parts;

use super::Body;
use super::controller_status::ControllerStatus;
use super::queue_config::QueueDesc;
use crate::codec::{EncodeError, Malformed, Reader, Writer};
use crate::dialect::{Dialect, FlowFormat};
use crate::header::Header;
use crate::kinds::{EXPERIMENTER_PART, Number, Part, PartRow};
use crate::version::Version;

/// `OFPMPF_REQ_MORE` and `OFPMPF_REPLY_MORE`.
pub(crate) const MORE: u16 = 1;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MultipartRequest {
    /// Who made the switch?
    Description,
    /// Which rules are there?
    Flow(FlowFormat, FlowStatsRequest),
    /// The sums over which rules?
    Aggregate(FlowFormat, FlowStatsRequest),
    /// The counts of all tables.
    Table,
    /// The counts of a port; [`PortNo::ANY`] for all.
    Port(PortNo),
    /// The counts of queues.
    Queue(QueueStatsRequest),
    /// The counts of a group; [`GroupId::ALL`] for all.
    Group(GroupId),
    /// What is a group? [`GroupId::ALL`] for all, which is all that 1.3 can ask.
    GroupDesc(GroupId),
    /// Which kinds of group are there?
    GroupFeatures,
    /// The counts of a meter; [`MeterId::ALL`] for all (1.3).
    Meter(MeterId),
    /// What is this meter? [`MeterId::ALL`] for all (1.3).
    MeterConfig(MeterId),
    /// Which kinds of meter are there? (1.3)
    MeterFeatures,
    /// What can each table do? With tables, each shall do this. (1.3)
    TableFeatures(Vec<TableFeatures>),
    /// What is a port? [`PortNo::ANY`] for all, which is all that can be asked before
    /// 1.5.
    PortDesc(PortNo),
    /// How is each table configured? (1.4)
    TableDesc,
    /// What are queues? (1.4)
    QueueDesc(QueueStatsRequest),
    /// Tell me what becomes of rules.
    FlowMonitor(Vec<MonitorRequest>),
    /// What can bundles do? (1.5)
    BundleFeatures(BundleFeaturesRequest),
    /// How are the controllers that the switch goes to? (1.5)
    ControllerStatus,
    /// What has IPFIX told? (Nicira)
    Ipfix(IpfixOf),
}

/// What is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MultipartReply {
    /// Who made the switch.
    Description(Description),
    /// Rules.
    Flow(FlowFormat, Vec<FlowStats>),
    /// Sums over rules.
    Aggregate(FlowFormat, AggregateStats),
    /// The counts of tables.
    Table(Vec<TableStats>),
    /// The counts of ports.
    Port(Vec<PortStats>),
    /// The counts of queues.
    Queue(Vec<QueueStats>),
    /// The counts of groups.
    Group(Vec<GroupStats>),
    /// What groups are.
    GroupDesc(Vec<GroupDesc>),
    /// Which groups there can be.
    GroupFeatures(GroupFeatures),
    /// The counts of meters (1.3).
    Meter(Vec<MeterStats>),
    /// What meters are (1.3).
    MeterConfig(Vec<MeterConfig>),
    /// Which meters there can be (1.3).
    MeterFeatures(MeterFeatures),
    /// What tables can do.
    TableFeatures(Vec<TableFeatures>),
    /// What ports are.
    PortDesc(Vec<PortDesc>),
    /// How tables are configured.
    TableDesc(Vec<TableDesc>),
    /// What queues are.
    QueueDesc(Vec<QueueDesc>),
    /// What became of rules.
    FlowMonitor(Vec<FlowUpdate>),
    /// What bundles can do (1.5).
    BundleFeatures(BundleFeatures),
    /// How the controllers are that the switch goes to (1.5).
    ControllerStatus(Vec<ControllerStatus>),
    /// What IPFIX has told (Nicira); of the bridge there is one.
    Ipfix(IpfixOf, Vec<IpfixStats>),
}

impl MultipartReply {
    const fn part(&self) -> Part {
        match self {
            Self::Description(_) => Part::Description,
            Self::Flow(FlowFormat::Standard, _) => Part::Flow,
            Self::Flow(FlowFormat::Nicira, _) => Part::NxFlow,
            Self::Flow(FlowFormat::Counts, _) => Part::FlowCounts,
            Self::Aggregate(FlowFormat::Standard | FlowFormat::Counts, _) => Part::Aggregate,
            Self::Aggregate(FlowFormat::Nicira, _) => Part::NxAggregate,
            Self::Table(_) => Part::Table,
            Self::Port(_) => Part::Port,
            Self::Queue(_) => Part::Queue,
            Self::Group(_) => Part::Group,
            Self::GroupDesc(_) => Part::GroupDesc,
            Self::GroupFeatures(_) => Part::GroupFeatures,
            Self::Meter(_) => Part::Meter,
            Self::MeterConfig(_) => Part::MeterConfig,
            Self::MeterFeatures(_) => Part::MeterFeatures,
            Self::TableFeatures(_) => Part::TableFeatures,
            Self::PortDesc(_) => Part::PortDesc,
            Self::TableDesc(_) => Part::TableDesc,
            Self::QueueDesc(_) => Part::QueueDesc,
            Self::FlowMonitor(_) => Part::FlowMonitor,
            Self::BundleFeatures(_) => Part::BundleFeatures,
            Self::ControllerStatus(_) => Part::ControllerStatus,
            Self::Ipfix(of, _) => ipfix::part(*of),
        }
    }
}

impl MultipartRequest {
    const fn part(&self) -> Part {
        match self {
            Self::Description => Part::Description,
            Self::Flow(FlowFormat::Standard, _) => Part::Flow,
            Self::Flow(FlowFormat::Nicira, _) => Part::NxFlow,
            Self::Flow(FlowFormat::Counts, _) => Part::FlowCounts,
            Self::Aggregate(FlowFormat::Standard | FlowFormat::Counts, _) => Part::Aggregate,
            Self::Aggregate(FlowFormat::Nicira, _) => Part::NxAggregate,
            Self::Table => Part::Table,
            Self::Port(_) => Part::Port,
            Self::Queue(_) => Part::Queue,
            Self::Group(_) => Part::Group,
            Self::GroupDesc(_) => Part::GroupDesc,
            Self::GroupFeatures => Part::GroupFeatures,
            Self::Meter(_) => Part::Meter,
            Self::MeterConfig(_) => Part::MeterConfig,
            Self::MeterFeatures => Part::MeterFeatures,
            Self::TableFeatures(_) => Part::TableFeatures,
            Self::PortDesc(_) => Part::PortDesc,
            Self::TableDesc => Part::TableDesc,
            Self::QueueDesc(_) => Part::QueueDesc,
            Self::FlowMonitor(_) => Part::FlowMonitor,
            Self::BundleFeatures(_) => Part::BundleFeatures,
            Self::ControllerStatus => Part::ControllerStatus,
            Self::Ipfix(of) => ipfix::part(*of),
        }
    }
}

/// Reads what kind of thing a request or reply is about, and its flags.
pub(crate) fn decode_head(r: &mut Reader<'_>) -> Result<(Part, u16), Malformed> {
    let fail = |refusal| Malformed {
        refusal,
        at: Header::LENGTH,
    };
    let (number, flags) = (r.u16()?, r.u16()?);
    if r.version() != Version::V10 {
        r.skip(4)?;
    }
    let number = if number == EXPERIMENTER_PART {
        let (experimenter, number) = (r.u32()?, r.u32()?);
        let number = Number::of(experimenter, number);
        let number = number.ok_or_else(|| fail(Refusal::RequestBadExperimenter))?;
        let row = PartRow::numbered(number, r.version());
        row.ok_or_else(|| fail(Refusal::RequestBadExperimenterType))?;
        if r.version() == Version::V10 {
            r.skip(4)?;
        }
        number
    } else {
        Number::Own(number)
    };
    let row = PartRow::numbered(number, r.version());
    let row = row.ok_or_else(|| fail(Refusal::RequestBadMultipart))?;
    Ok((row.part, flags))
}

fn encode_head(part: Part, more: bool, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    let row = PartRow::of(part, w.version()).ok_or_else(|| w.cannot("this kind of statistics"))?;
    let flags = if more { MORE } else { 0 };
    match row.number {
        Number::Own(number) => {
            w.u16(number);
            w.u16(flags);
            if w.version() != Version::V10 {
                w.zeros(4);
            }
        }
        Number::Nicira(_) | Number::Onf(_) => {
            let numbers = row.number.experimenter();
            let (experimenter, number) = numbers.expect("both are experimenters'");
            w.u16(EXPERIMENTER_PART);
            w.u16(flags);
            if w.version() != Version::V10 {
                w.zeros(4);
            }
            w.u32(experimenter);
            w.u32(number);
            // 1.0 pads its own, shorter header here, to the same length.
            if w.version() == Version::V10 {
                w.zeros(4);
            }
        }
    }
    Ok(())
}

/// Reads the body of a request, and whether another message goes on with it.
pub(crate) fn decode_request(r: &mut Reader<'_>) -> Result<(MultipartRequest, bool), Malformed> {
    let (part, flags) = decode_head(r)?;
    let more = flags & MORE != 0;
    if more && !matches!(part, Part::TableFeatures | Part::FlowMonitor) {
        return Err(Malformed {
            refusal: Refusal::RequestMultipartOverflow,
            at: Header::LENGTH + 2,
        });
    }
    Ok((decode_request_body(part, r)?, more))
}

fn decode_request_body(part: Part, r: &mut Reader<'_>) -> Result<MultipartRequest, Malformed> {
    Ok(match part {
        Part::Description => MultipartRequest::Description,
        Part::Flow => MultipartRequest::Flow(FlowFormat::Standard, Body::decode(r)?),
        Part::NxFlow => {
            MultipartRequest::Flow(FlowFormat::Nicira, flow_stats::decode_nx_request(r)?)
        }
        Part::Aggregate => MultipartRequest::Aggregate(FlowFormat::Standard, Body::decode(r)?),
        Part::NxAggregate => {
            MultipartRequest::Aggregate(FlowFormat::Nicira, flow_stats::decode_nx_request(r)?)
        }
        Part::Table => MultipartRequest::Table,
        Part::Port => MultipartRequest::Port(port_stats::decode_request(r)?),
        Part::Queue => MultipartRequest::Queue(Body::decode(r)?),
        Part::Group => MultipartRequest::Group(groups::decode_request(r)?),
        Part::GroupDesc if names_group(r.version()) => {
            MultipartRequest::GroupDesc(groups::decode_request(r)?)
        }
        Part::GroupDesc => MultipartRequest::GroupDesc(GroupId::ALL),
        Part::GroupFeatures => MultipartRequest::GroupFeatures,
        Part::Meter => MultipartRequest::Meter(meters::decode_request(r)?),
        Part::MeterConfig => MultipartRequest::MeterConfig(meters::decode_request(r)?),
        Part::MeterFeatures => MultipartRequest::MeterFeatures,
        Part::TableFeatures => {
            MultipartRequest::TableFeatures(entries(r, table_features::decode_request)?)
        }
        Part::BundleFeatures => MultipartRequest::BundleFeatures(Body::decode(r)?),
        Part::PortDesc => MultipartRequest::PortDesc(match r.version() {
            Version::V15 => port_stats::decode_request(r)?,
            _ => PortNo::ANY,
        }),
        Part::TableDesc => MultipartRequest::TableDesc,
        Part::QueueDesc => MultipartRequest::QueueDesc(Body::decode(r)?),
        Part::FlowCounts => MultipartRequest::Flow(FlowFormat::Counts, Body::decode(r)?),
        Part::FlowMonitor => MultipartRequest::FlowMonitor(entries(r, Body::decode)?),
        Part::ControllerStatus => MultipartRequest::ControllerStatus,
        Part::IpfixBridge => MultipartRequest::Ipfix(IpfixOf::Bridge),
        Part::IpfixFlow => MultipartRequest::Ipfix(IpfixOf::Collectors),
    })
}

/// Appends the body of a request. `more` says whether another message goes on with it.
pub(crate) fn encode_request(
    request: &MultipartRequest,
    more: bool,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    encode_head(request.part(), more, w)?;
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
            (_, _) => return Err(w.cannot("a question after one port's description")),
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
        MultipartRequest::GroupDesc(_) => return Err(w.cannot("a question about one group")),
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
        MultipartRequest::BundleFeatures(asked) => asked.encode(w)?,
    }
    Ok(())
}

/// Reads the body of a reply, and whether another message goes on with it.
pub(crate) fn decode_reply(r: &mut Reader<'_>) -> Result<(MultipartReply, bool), Malformed> {
    let (part, flags) = decode_head(r)?;
    let reply = match part {
        Part::Description => MultipartReply::Description(Body::decode(r)?),
        Part::Flow => MultipartReply::Flow(FlowFormat::Standard, entries(r, Body::decode)?),
        Part::NxFlow => {
            MultipartReply::Flow(FlowFormat::Nicira, entries(r, flow_stats::decode_nx)?)
        }
        Part::Aggregate => MultipartReply::Aggregate(FlowFormat::Standard, Body::decode(r)?),
        Part::NxAggregate => MultipartReply::Aggregate(FlowFormat::Nicira, Body::decode(r)?),
        Part::Table => MultipartReply::Table(entries(r, Body::decode)?),
        Part::Port => MultipartReply::Port(entries(r, Body::decode)?),
        Part::Queue => MultipartReply::Queue(entries(r, Body::decode)?),
        Part::Group => MultipartReply::Group(entries(r, Body::decode)?),
        Part::GroupDesc => MultipartReply::GroupDesc(entries(r, Body::decode)?),
        Part::GroupFeatures => MultipartReply::GroupFeatures(Body::decode(r)?),
        Part::Meter => MultipartReply::Meter(entries(r, Body::decode)?),
        Part::MeterConfig => MultipartReply::MeterConfig(entries(r, Body::decode)?),
        Part::MeterFeatures => MultipartReply::MeterFeatures(Body::decode(r)?),
        Part::TableFeatures => MultipartReply::TableFeatures(entries(r, Body::decode)?),
        Part::PortDesc => MultipartReply::PortDesc(entries(r, Body::decode)?),
        Part::TableDesc => MultipartReply::TableDesc(entries(r, Body::decode)?),
        Part::QueueDesc => MultipartReply::QueueDesc(entries(r, Body::decode)?),
        Part::FlowMonitor => MultipartReply::FlowMonitor(entries(r, Body::decode)?),
        Part::BundleFeatures => MultipartReply::BundleFeatures(Body::decode(r)?),
        Part::ControllerStatus => MultipartReply::ControllerStatus(entries(r, Body::decode)?),
        Part::IpfixBridge => MultipartReply::Ipfix(IpfixOf::Bridge, vec![Body::decode(r)?]),
        Part::IpfixFlow => MultipartReply::Ipfix(IpfixOf::Collectors, entries(r, Body::decode)?),
        Part::FlowCounts => MultipartReply::Flow(
            FlowFormat::Counts,
            entries(r, flow_stats::decode_counts_alone)?,
        ),
    };
    Ok((reply, flags & MORE != 0))
}

/// Whether a question after descriptions of groups names one, as Nicira's and that
/// of 1.5 do.
const fn names_group(version: Version) -> bool {
    matches!(version, Version::V10 | Version::V15)
}

fn entries<T>(
    r: &mut Reader<'_>,
    decode: impl Fn(&mut Reader<'_>) -> Result<T, Malformed>,
) -> Result<Vec<T>, Malformed> {
    let mut entries = Vec::new();
    while !r.is_empty() {
        entries.push(decode(r)?);
    }
    Ok(entries)
}

/// Appends a reply, in as many messages as it takes. `more` says whether other
/// messages go on with it.
pub(crate) fn encode_reply(
    reply: &MultipartReply,
    more: bool,
    xid: Xid,
    dialect: Dialect,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let mut parts = Parts::new(reply.part(), xid, dialect, out)?;
    match reply {
        MultipartReply::Description(body) => parts.one(|w| body.encode(w))?,
        MultipartReply::Aggregate(_, body) => parts.one(|w| body.encode(w))?,
        MultipartReply::Flow(FlowFormat::Standard, list) => parts.all(list, Body::encode)?,
        MultipartReply::Flow(FlowFormat::Nicira, list) => parts.all(list, flow_stats::encode_nx)?,
        MultipartReply::Flow(FlowFormat::Counts, list) => {
            parts.all(list, flow_stats::encode_counts_alone)?;
        }
        MultipartReply::Table(list) => parts.all(list, Body::encode)?,
        MultipartReply::Port(list) => parts.all(list, Body::encode)?,
        MultipartReply::Queue(list) => parts.all(list, Body::encode)?,
        MultipartReply::TableFeatures(list) => parts.all(list, Body::encode)?,
        MultipartReply::PortDesc(list) => parts.all(list, Body::encode)?,
        MultipartReply::TableDesc(list) => parts.all(list, Body::encode)?,
        MultipartReply::QueueDesc(list) => parts.all(list, Body::encode)?,
        MultipartReply::FlowMonitor(list) => parts.all(list, Body::encode)?,
        MultipartReply::Group(list) => parts.all(list, Body::encode)?,
        MultipartReply::GroupDesc(list) => parts.all(list, Body::encode)?,
        MultipartReply::GroupFeatures(body) => parts.one(|w| body.encode(w))?,
        MultipartReply::Meter(list) => parts.all(list, Body::encode)?,
        MultipartReply::MeterConfig(list) => parts.all(list, Body::encode)?,
        MultipartReply::MeterFeatures(body) => parts.one(|w| body.encode(w))?,
        MultipartReply::BundleFeatures(body) => parts.one(|w| body.encode(w))?,
        MultipartReply::ControllerStatus(list) => parts.all(list, Body::encode)?,
        MultipartReply::Ipfix(_, list) => parts.all(list, Body::encode)?,
    }
    parts.close(more);
    Ok(())
}

#[cfg(test)]
mod tests;
