//! Features, descriptions and multipart replies of a bridge.

use base::{GroupId, Instant, MeterId, PortNo, TableId, Xid};
use flow::{
    Capabilities, FlowStatsRequest, IpfixScope, Refusal, SwitchDescription, SwitchFeatures,
    TableDesc,
};
use openflow::{FeaturesReply, FlowFormat, Message, MultipartReply, MultipartRequest, Version};
use pipeline::Pipeline;

use super::{Bridge, ConnectionId, Effect};
use crate::dump::{Dump, FlowDump, ObjectDump, Objects};

/// Packet buffers: none, so every packet-in carries the whole frame.
const BUFFERS: u32 = 0;

/// The capabilities of the switch.
const CAPABILITIES: Capabilities = Capabilities::FLOW_STATS
    .with(Capabilities::TABLE_STATS)
    .with(Capabilities::PORT_STATS)
    .with(Capabilities::QUEUE_STATS)
    .with(Capabilities::GROUP_STATS)
    .with(Capabilities::BUNDLES)
    .with(Capabilities::ARP_MATCH_IP);

impl Bridge {
    pub(super) fn features(&mut self, id: ConnectionId) -> Result<Message, Refusal> {
        let peer = self.peer(id)?;
        let auxiliary_id = peer.auxiliary().map_or(0, |auxiliary| auxiliary.number);
        let ports = match peer.version {
            Version::V10 | Version::V11 | Version::V12 => self.port_descs(PortNo::ANY)?,
            Version::V13 | Version::V14 | Version::V15 => Vec::new(),
        };
        let features = SwitchFeatures {
            datapath_id: self.identity.datapath_id,
            buffers: BUFFERS,
            tables: TableId::LAST.0 + 1,
            auxiliary_id,
            capabilities: CAPABILITIES,
        };
        Ok(Message::FeaturesReply(FeaturesReply { features, ports }))
    }

    /// Executes a multipart request: rules, and many groups or meters, as a dump, everything else
    /// in one reply.
    pub(super) fn multipart(
        &mut self,
        id: ConnectionId,
        xid: Xid,
        request: MultipartRequest,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) -> Result<Option<Message>, Refusal> {
        let request = self.complete_request(id, xid, request)?;
        let pipeline = &self.tables.pipeline;
        if let Some(dump) = objects(&request).and_then(|kind| ObjectDump::of(pipeline, kind)) {
            effects.push(Effect::Dump(
                id,
                xid,
                Box::new(Dump::Objects(Box::new(dump))),
            ));
            return Ok(None);
        }
        let reply = match request {
            MultipartRequest::Flow(form, request) => {
                let dump = FlowDump::new(pipeline.clone(), form, request)?;
                effects.push(Effect::Dump(id, xid, Box::new(Dump::Flows(Box::new(dump)))));
                return Ok(None);
            }
            MultipartRequest::FlowMonitor(requests) => {
                return self.monitor(id, xid, requests, effects);
            }
            MultipartRequest::Aggregate(form, request) => self.aggregate(form, &request)?,
            MultipartRequest::Description => MultipartReply::Description(self.description()),
            MultipartRequest::Table => MultipartReply::Table(pipeline.table_stats().collect()),
            MultipartRequest::Port(port) => MultipartReply::Port(self.port_stats(port, now)?),
            MultipartRequest::Queue(request) => self.queue_stats(request, now)?,
            MultipartRequest::PortDesc(port) => MultipartReply::PortDesc(self.port_descs(port)?),
            MultipartRequest::TableDesc => MultipartReply::TableDesc(self.table_descs()),
            MultipartRequest::QueueDesc(request) => self.queue_descs(request)?,
            MultipartRequest::Group(group) => {
                MultipartReply::Group(pipeline.group_stats(group, now).collect())
            }
            MultipartRequest::GroupDesc(group) => {
                MultipartReply::GroupDesc(pipeline.group_descs(group).collect())
            }
            MultipartRequest::GroupFeatures => {
                MultipartReply::GroupFeatures(Pipeline::group_features())
            }
            MultipartRequest::Meter(meter) => {
                MultipartReply::Meter(pipeline.meter_stats(meter, now)?)
            }
            MultipartRequest::MeterConfig(meter) => {
                MultipartReply::MeterConfig(pipeline.meter_configs(meter)?)
            }
            MultipartRequest::MeterFeatures => {
                MultipartReply::MeterFeatures(pipeline.meter_features())
            }
            MultipartRequest::TableFeatures(wanted) => {
                self.set_table_features(id, &wanted)?;
                self.all_table_features(id)?
            }
            MultipartRequest::ControllerStatus => {
                MultipartReply::ControllerStatus(self.controller_statuses())
            }
            MultipartRequest::Ipfix(scope) => self.ipfix_stats(scope)?,
            MultipartRequest::BundleFeatures(request) => {
                MultipartReply::BundleFeatures(self.bundle_features(request, now)?)
            }
        };
        Ok(Some(Message::reply(reply)))
    }

    /// Returns the IPFIX statistics of the bridge, or of its collector sets.
    fn ipfix_stats(&self, scope: IpfixScope) -> Result<MultipartReply, Refusal> {
        let stats: Vec<_> = match scope {
            IpfixScope::Bridge => self.exporters.ipfix_statistics().into_iter().collect(),
            IpfixScope::Collectors => self.exporters.ipfix_statistics_of_sets(),
        };
        match stats.is_empty() {
            true => Err(Refusal::IpfixNotConfigured),
            false => Ok(MultipartReply::Ipfix(scope, stats)),
        }
    }

    fn table_descs(&self) -> Vec<TableDesc> {
        let tables = (0..=TableId::LAST.0).map(TableId);
        let descs = tables.map(|table| self.tables.pipeline.table_desc(table));
        descs.collect()
    }

    fn aggregate(
        &self,
        form: FlowFormat,
        request: &FlowStatsRequest,
    ) -> Result<MultipartReply, Refusal> {
        let stats = self.tables.pipeline.aggregate_stats(request)?;
        Ok(MultipartReply::Aggregate(form, stats))
    }

    fn description(&self) -> SwitchDescription {
        SwitchDescription {
            manufacturer: "Comporta".to_owned(),
            hardware: "userspace data plane on Linux".to_owned(),
            software: crate::VERSION.to_owned(),
            serial_number: "None".to_owned(),
            datapath: self.identity.name.clone(),
        }
    }

    fn port_descs(&self, wanted: PortNo) -> Result<Vec<flow::PortDesc>, Refusal> {
        if wanted != PortNo::ANY && !self.ports.contains_key(&wanted) {
            return Err(Refusal::RequestBadPort);
        }
        let ports = self.ports().map(|(_, entry)| &entry.desc);
        let ports = ports.filter(|desc| wanted == PortNo::ANY || desc.number == wanted);
        Ok(ports.cloned().collect())
    }
}

/// Returns the kind of objects that a request for all groups or meters reads.
fn objects(request: &MultipartRequest) -> Option<Objects> {
    match request {
        MultipartRequest::Group(GroupId::ALL) => Some(Objects::GroupStats),
        MultipartRequest::GroupDesc(GroupId::ALL) => Some(Objects::GroupDescs),
        MultipartRequest::Meter(MeterId::ALL) => Some(Objects::MeterStats),
        MultipartRequest::MeterConfig(MeterId::ALL) => Some(Objects::MeterConfigs),
        _ => None,
    }
}
