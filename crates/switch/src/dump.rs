//! Long replies in parts, each encoded when the peer has room for it: rules, groups and meters of a
//! bridge at the time of a request, and flow monitor updates. The snapshot costs the bridge
//! nothing; counters are those at the time a part is encoded.

use std::sync::Arc;

use base::{GroupId, Instant, MeterId};
use flow::{FlowStatsRequest, Refusal};
use openflow::{FlowFormat, Message, MultipartReply};
use pipeline::{Pipeline, Rule};

use super::monitors::{Comparison, Updates};

/// A reply or update in several parts.
#[derive(Debug)]
pub enum Dump {
    /// Rules and their counters.
    Flows(Box<FlowDump>),
    /// Groups or meters.
    Objects(Box<ObjectDump>),
    /// Flow monitor updates about recorded changes.
    Updates(Updates),
    /// Flow monitor updates about the difference between two snapshots.
    Comparison(Box<Comparison>),
}

impl Dump {
    /// Returns the next part; none after the last.
    pub fn next_part(&mut self, now: Instant) -> Option<Message> {
        match self {
            Self::Flows(dump) => dump.next_part(now),
            Self::Objects(dump) => dump.next_part(now),
            Self::Updates(updates) => updates.next_part(),
            Self::Comparison(comparison) => comparison.next_part(),
        }
    }

    /// Returns an upper bound of the number of rules that it holds.
    #[must_use]
    pub fn rules_max(&self) -> usize {
        match self {
            Self::Flows(dump) => dump.len(),
            Self::Objects(dump) => dump.pipeline.len(),
            Self::Updates(updates) => updates.len(),
            Self::Comparison(comparison) => comparison.len(),
        }
    }

    /// Returns the number of rule changes that the dump keeps in memory.
    pub fn changes(&self) -> usize {
        match self {
            Self::Updates(updates) => updates.len(),
            Self::Flows(_) | Self::Objects(_) | Self::Comparison(_) => 0,
        }
    }
}

/// Rules in one part: some tens of KB, so that a part delays other messages little.
const RULES_PER_PART: usize = 256;

/// A reply to a flow statistics request.
#[derive(Debug)]
pub struct FlowDump {
    pipeline: Pipeline,
    form: FlowFormat,
    request: FlowStatsRequest,
    /// The last rule visited; the next part continues after it.
    last: Option<Arc<Rule>>,
    is_done: bool,
}

impl FlowDump {
    /// Returns the reply to `request`.
    ///
    /// # Errors
    /// The table does not exist.
    pub(crate) fn new(
        pipeline: Pipeline,
        form: FlowFormat,
        request: FlowStatsRequest,
    ) -> Result<Self, Refusal> {
        drop(pipeline.rules_selected(&request, None)?);
        Ok(Self {
            pipeline,
            form,
            request,
            last: None,
            is_done: false,
        })
    }

    /// Returns the number of rules in the snapshot.
    const fn len(&self) -> usize {
        self.pipeline.len()
    }

    /// Returns the next part; none after the last.
    fn next_part(&mut self, now: Instant) -> Option<Message> {
        if self.is_done {
            return None;
        }
        let selected = self
            .pipeline
            .rules_selected(&self.request, self.last.as_deref());
        let mut rules = selected.ok()?;
        let part: Vec<_> = rules.by_ref().take(RULES_PER_PART).cloned().collect();
        self.is_done = rules.next().is_none();
        drop(rules);
        let stats = part.iter().map(|rule| rule.statistics(now)).collect();
        self.last = part.last().cloned();
        Some(Message::MultipartReply {
            reply: MultipartReply::Flow(self.form, stats),
            more: !self.is_done,
        })
    }
}

/// The kind of a group or meter request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Objects {
    /// Counters of groups.
    GroupStats,
    /// Descriptions of groups.
    GroupDescs,
    /// Counters of meters.
    MeterStats,
    /// Configurations of meters.
    MeterConfigs,
}

/// A reply about the groups or meters that existed at the time of the request.
#[derive(Debug)]
pub struct ObjectDump {
    pipeline: Pipeline,
    kind: Objects,
    /// The ids that are not sent yet.
    remaining: std::vec::IntoIter<u32>,
    is_done: bool,
}

impl ObjectDump {
    /// Groups and meters in one part, counted with their buckets and bands: as many as rules.
    const PER_PART: usize = 256;

    /// The maximum number of objects in an undivided reply: most tables are short.
    const AT_ONCE_MAX: usize = 64;

    /// Returns a dump of all objects, if they are too many for one message.
    pub(crate) fn of(pipeline: &Pipeline, kind: Objects) -> Option<Self> {
        let remaining: Vec<u32> = match kind {
            Objects::GroupStats | Objects::GroupDescs => {
                pipeline.group_ids().map(|group| group.0).collect()
            }
            Objects::MeterStats | Objects::MeterConfigs => {
                pipeline.meter_ids().map(|meter| meter.0).collect()
            }
        };
        (remaining.len() > Self::AT_ONCE_MAX).then(|| Self {
            pipeline: pipeline.clone(),
            kind,
            remaining: remaining.into_iter(),
            is_done: false,
        })
    }

    /// Returns the next part; none after the last.
    fn next_part(&mut self, now: Instant) -> Option<Message> {
        if self.is_done {
            return None;
        }
        let reply = match self.kind {
            Objects::GroupStats => MultipartReply::Group(self.take(
                |pipeline, id| pipeline.group_stats(GroupId(id), now).collect(),
                |group| group.buckets.len(),
            )),
            Objects::GroupDescs => MultipartReply::GroupDesc(self.take(
                |pipeline, id| pipeline.group_descs(GroupId(id)).collect(),
                |group| group.buckets.len(),
            )),
            Objects::MeterStats => MultipartReply::Meter(self.take(
                |pipeline, id| pipeline.meter_stats(MeterId(id), now).unwrap_or_default(),
                |meter| meter.bands.len(),
            )),
            Objects::MeterConfigs => MultipartReply::MeterConfig(self.take(
                |pipeline, id| pipeline.meter_configs(MeterId(id)).unwrap_or_default(),
                |meter| meter.bands.len(),
            )),
        };
        self.is_done = self.remaining.len() == 0;
        Some(Message::MultipartReply {
            reply,
            more: !self.is_done,
        })
    }

    /// Takes the objects of one part.
    fn take<T>(
        &mut self,
        find: impl Fn(&Pipeline, u32) -> Vec<T>,
        inside: impl Fn(&T) -> usize,
    ) -> Vec<T> {
        let (mut part, mut weight) = (Vec::new(), 0);
        while weight < Self::PER_PART
            && let Some(id) = self.remaining.next()
        {
            for object in find(&self.pipeline, id) {
                weight += 1 + inside(&object);
                part.push(object);
            }
        }
        part
    }
}
