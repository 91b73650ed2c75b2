//! Statistics of a switch: rules, groups, meters and ports with their counters.

use base::{GroupId, MeterId, PortNo, TableId};
use flow::text::FlowWithoutStats;
use flow::{FlowMod, FlowStats, FlowStatsRequest, PortDesc, PortStats};
use openflow::{FlowFormat, Message, MultipartReply, MultipartRequest, Version};
use testkit::case::counts::{self, NamedCounts};
use testkit::case::{CountQuery, notation};

use super::{EffectLines, Peers};

impl Peers {
    /// Returns a count, in the notation of the query.
    pub(crate) fn count(&mut self, count: &CountQuery) -> Result<String, String> {
        let counts = match count {
            CountQuery::Flow { rule, .. } => self.flow_counts(rule)?,
            CountQuery::Table { table, .. } => self.table_counts(*table)?,
            CountQuery::Group { group, .. } => self.group_counts(*group)?,
            CountQuery::Meter { meter, .. } => self.meter_counts(*meter),
        };
        count.answer(&counts)
    }

    pub(super) fn port_descs(&mut self, port: PortNo) -> Result<Vec<PortDesc>, String> {
        let replies = self.multipart(MultipartRequest::PortDesc(port))?;
        let ports = replies.into_iter().map(|reply| match reply {
            MultipartReply::PortDesc(ports) => ports,
            _ => Vec::new(),
        });
        Ok(ports.flatten().collect())
    }

    /// Returns the number of frames received at this port.
    pub(crate) fn received(&mut self, port: PortNo) -> Result<u64, String> {
        let replies = self.multipart(MultipartRequest::Port(port))?;
        let ports = replies.into_iter().map(|reply| match reply {
            MultipartReply::Port(ports) => ports,
            _ => Vec::new(),
        });
        let ports: Vec<PortStats> = ports.flatten().collect();
        ports
            .first()
            .map(|stats| stats.rx_packets)
            .ok_or_else(|| format!("port {port} does not exist"))
    }

    fn multipart(&mut self, request: MultipartRequest) -> Result<Vec<MultipartReply>, String> {
        let received = self.request(Version::V13, &[Message::MultipartRequest(request)])?;
        received
            .into_iter()
            .filter_map(|message| match message {
                Message::MultipartReply { reply, .. } => Some(Ok(reply)),
                Message::Error(error) => Some(Err(error.code.to_string())),
                _ => None,
            })
            .collect()
    }

    fn flows(&mut self, request: FlowStatsRequest) -> Result<Vec<FlowStats>, String> {
        let replies = self.multipart(MultipartRequest::Flow(FlowFormat::Standard, request))?;
        let rules = replies.into_iter().map(|reply| match reply {
            MultipartReply::Flow(_, rules) => rules,
            _ => Vec::new(),
        });
        Ok(rules.flatten().collect())
    }

    pub(crate) fn dump(&mut self, request: FlowStatsRequest) -> EffectLines {
        let rules = self.flows(request)?;
        let lines = rules.iter().map(|rule| FlowWithoutStats(rule).to_string());
        Ok(lines
            .map(|line| notation::effect_line("=", &line))
            .collect())
    }

    pub(crate) fn groups(&mut self) -> EffectLines {
        let replies = self.multipart(MultipartRequest::GroupDesc(GroupId::ALL))?;
        let groups = replies.into_iter().flat_map(|reply| match reply {
            MultipartReply::GroupDesc(groups) => groups,
            _ => Vec::new(),
        });
        Ok(groups
            .map(|group| notation::effect_line("=", &group.to_string()))
            .collect())
    }

    pub(crate) fn meters(&mut self) -> EffectLines {
        let replies = self.multipart(MultipartRequest::MeterConfig(MeterId::ALL))?;
        let meters = replies.into_iter().flat_map(|reply| match reply {
            MultipartReply::MeterConfig(meters) => meters,
            _ => Vec::new(),
        });
        Ok(meters
            .map(|meter| notation::effect_line("=", &meter.to_string()))
            .collect())
    }

    fn flow_counts(&mut self, rule: &FlowMod) -> Result<NamedCounts, String> {
        let rules = self.flows(FlowStatsRequest {
            table: rule.table,
            ..FlowStatsRequest::all()
        })?;
        let same =
            |stats: &&FlowStats| stats.priority == rule.priority && stats.matching == rule.matching;
        let Some(stats) = rules.iter().find(same) else {
            return Ok(NamedCounts::new());
        };
        let mut counts = counts::flow_counts(stats);
        // OpenFlow 1.3 does not report the idle time of a rule.
        counts.extend(["idle_age", "hard_age"].map(|name| (name.to_owned(), String::new())));
        Ok(counts)
    }

    fn table_counts(&mut self, table: u8) -> Result<NamedCounts, String> {
        let replies = self.multipart(MultipartRequest::Table)?;
        let mut tables = replies.into_iter().flat_map(|reply| match reply {
            MultipartReply::Table(tables) => tables,
            _ => Vec::new(),
        });
        let stats = tables.find(|stats| stats.table == TableId(table));
        Ok(stats.as_ref().map(counts::table_counts).unwrap_or_default())
    }

    fn group_counts(&mut self, group: GroupId) -> Result<NamedCounts, String> {
        let replies = self.multipart(MultipartRequest::Group(group))?;
        let mut groups = replies.into_iter().flat_map(|reply| match reply {
            MultipartReply::Group(groups) => groups,
            _ => Vec::new(),
        });
        Ok(groups
            .next()
            .as_ref()
            .map(counts::group_counts)
            .unwrap_or_default())
    }

    /// Returns the counts of a meter; none if it does not exist, which the switch refuses.
    fn meter_counts(&mut self, meter: MeterId) -> NamedCounts {
        let replies = self
            .multipart(MultipartRequest::Meter(meter))
            .unwrap_or_default();
        let mut meters = replies.into_iter().flat_map(|reply| match reply {
            MultipartReply::Meter(meters) => meters,
            _ => Vec::new(),
        });
        meters
            .next()
            .as_ref()
            .map(counts::meter_counts)
            .unwrap_or_default()
    }
}
