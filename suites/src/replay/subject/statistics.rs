//! What Open vSwitch is asked for: its rules, groups and meters, and their counts.

use base::{GroupId, MeterId, TableId};
use flow::text::Brief;
use flow::{FlowMod, FlowStats, FlowStatsRequest};
use openflow::{Form, Message, MultipartReply, MultipartRequest, Version};
use testkit::case::counts::{self, Counts};
use testkit::case::words;

use super::{OpenVswitchSubject, Told};

impl OpenVswitchSubject {
    fn multipart(&mut self, request: MultipartRequest) -> Result<Vec<MultipartReply>, String> {
        let heard = self.ask(Version::V13, &[Message::MultipartRequest(request)])?;
        heard
            .into_iter()
            .filter_map(|message| match message {
                Message::MultipartReply { reply, .. } => Some(Ok(reply)),
                Message::Error(error) => Some(Err(error.fault.to_string())),
                _ => None,
            })
            .collect()
    }

    fn flows(&mut self, request: FlowStatsRequest) -> Result<Vec<FlowStats>, String> {
        let replies = self.multipart(MultipartRequest::Flow(Form::Standard, request))?;
        let rules = replies.into_iter().map(|reply| match reply {
            MultipartReply::Flow(_, rules) => rules,
            _ => Vec::new(),
        });
        Ok(rules.flatten().collect())
    }

    pub(super) fn dump(&mut self, request: FlowStatsRequest) -> Told {
        let rules = self.flows(request)?;
        let lines = rules.iter().map(|rule| Brief(rule).to_string());
        Ok(lines.map(|line| words::indented("=", &line)).collect())
    }

    pub(super) fn groups(&mut self) -> Told {
        let replies = self.multipart(MultipartRequest::GroupDesc(GroupId::ALL))?;
        let groups = replies.into_iter().flat_map(|reply| match reply {
            MultipartReply::GroupDesc(groups) => groups,
            _ => Vec::new(),
        });
        Ok(groups
            .map(|group| words::indented("=", &group.to_string()))
            .collect())
    }

    pub(super) fn meters(&mut self) -> Told {
        let replies = self.multipart(MultipartRequest::MeterConfig(MeterId::ALL))?;
        let meters = replies.into_iter().flat_map(|reply| match reply {
            MultipartReply::MeterConfig(meters) => meters,
            _ => Vec::new(),
        });
        Ok(meters
            .map(|meter| words::indented("=", &meter.to_string()))
            .collect())
    }

    pub(super) fn flow_counts(&mut self, rule: &FlowMod) -> Result<Counts, String> {
        let rules = self.flows(FlowStatsRequest {
            table: rule.table,
            ..FlowStatsRequest::all()
        })?;
        let same =
            |stats: &&FlowStats| stats.priority == rule.priority && stats.matching == rule.matching;
        let Some(stats) = rules.iter().find(same) else {
            return Ok(Counts::new());
        };
        let mut counts = counts::of_flow(stats);
        // 1.3 does not say for how long a rule has been idle.
        counts.extend(["idle_age", "hard_age"].map(|name| (name.to_owned(), String::new())));
        Ok(counts)
    }

    pub(super) fn table_counts(&mut self, table: u8) -> Result<Counts, String> {
        let replies = self.multipart(MultipartRequest::Table)?;
        let mut tables = replies.into_iter().flat_map(|reply| match reply {
            MultipartReply::Table(tables) => tables,
            _ => Vec::new(),
        });
        let stats = tables.find(|stats| stats.table == TableId(table));
        Ok(stats.as_ref().map(counts::of_table).unwrap_or_default())
    }

    pub(super) fn group_counts(&mut self, group: GroupId) -> Result<Counts, String> {
        let replies = self.multipart(MultipartRequest::Group(group))?;
        let mut groups = replies.into_iter().flat_map(|reply| match reply {
            MultipartReply::Group(groups) => groups,
            _ => Vec::new(),
        });
        Ok(groups
            .next()
            .as_ref()
            .map(counts::of_group)
            .unwrap_or_default())
    }

    /// Of a meter that is not there, which is refused, nothing.
    pub(super) fn meter_counts(&mut self, meter: MeterId) -> Counts {
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
            .map(counts::of_meter)
            .unwrap_or_default()
    }
}
