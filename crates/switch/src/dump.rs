//! Long answers, told in parts, each when there is room for it: the rules, groups and
//! meters of a bridge as they were when somebody asked, and what monitors tell. The snapshot costs the
//! bridge nothing; counts are those of the moment in which a part is told.

use std::sync::Arc;

use base::{GroupId, Instant, MeterId};
use flow::{FlowStatsRequest, Refusal};
use openflow::{FlowFormat, Message, MultipartReply};
use pipeline::{Pipeline, Rule};

use super::monitors::{Comparison, Updates};

/// What is told in parts.
#[derive(Debug)]
pub enum Dump {
    /// Rules and their counts.
    Flows(Box<FlowDump>),
    /// Groups or meters.
    Objects(Box<ObjectDump>),
    /// What monitors tell of changes, as they are made.
    Updates(Updates),
    /// What monitors tell of the rules between two moments.
    Comparison(Box<Comparison>),
}

impl Dump {
    /// The next part; none after the last.
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

    /// How many changes of rules it holds back until it is told.
    pub fn changes(&self) -> usize {
        match self {
            Self::Updates(updates) => updates.len(),
            Self::Flows(_) | Self::Objects(_) | Self::Comparison(_) => 0,
        }
    }
}

/// Rules in one part: some tens of KB, so that a part is never long in the way.
const RULES_PER_PART: usize = 256;

/// Rules still to be told.
#[derive(Debug)]
pub struct FlowDump {
    pipeline: Pipeline,
    form: FlowFormat,
    request: FlowStatsRequest,
    /// The last rule looked at; the next part goes on behind it.
    last: Option<Arc<Rule>>,
    told: bool,
}

impl FlowDump {
    /// The answer to `request`.
    ///
    /// # Errors
    /// It names a table that does not exist.
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
            told: false,
        })
    }

    /// How many rules it holds.
    const fn len(&self) -> usize {
        self.pipeline.len()
    }

    /// The next part; none after the last.
    fn next_part(&mut self, now: Instant) -> Option<Message> {
        if self.told {
            return None;
        }
        let asked = self
            .pipeline
            .rules_selected(&self.request, self.last.as_deref());
        let mut rules = asked.ok()?;
        let part: Vec<_> = rules.by_ref().take(RULES_PER_PART).cloned().collect();
        self.told = rules.next().is_none();
        drop(rules);
        let told = part.iter().map(|rule| rule.statistics(now)).collect();
        self.last = part.last().cloned();
        Some(Message::MultipartReply {
            reply: MultipartReply::Flow(self.form, told),
            more: !self.told,
        })
    }
}

/// What groups and meters are told as.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Objects {
    /// The counts of groups.
    GroupStats,
    /// What groups are.
    GroupDescs,
    /// The counts of meters.
    MeterStats,
    /// What meters are.
    MeterConfigs,
}

/// Groups or meters still to be told: those that were there when somebody asked.
#[derive(Debug)]
pub struct ObjectDump {
    pipeline: Pipeline,
    what: Objects,
    /// The numbers of those that are left.
    left: std::vec::IntoIter<u32>,
    told: bool,
}

impl ObjectDump {
    /// Groups and meters in one part, with their buckets and bands: as long as one of
    /// rules.
    const PER_PART: usize = 256;

    /// So many are told at once: most tables are short.
    const AT_ONCE_MAX: usize = 64;

    /// All of them, if they are too many for one part.
    pub(crate) fn of(pipeline: &Pipeline, what: Objects) -> Option<Self> {
        let left: Vec<u32> = match what {
            Objects::GroupStats | Objects::GroupDescs => {
                pipeline.group_ids().map(|group| group.0).collect()
            }
            Objects::MeterStats | Objects::MeterConfigs => {
                pipeline.meter_ids().map(|meter| meter.0).collect()
            }
        };
        (left.len() > Self::AT_ONCE_MAX).then(|| Self {
            pipeline: pipeline.clone(),
            what,
            left: left.into_iter(),
            told: false,
        })
    }

    /// The next part; none after the last.
    fn next_part(&mut self, now: Instant) -> Option<Message> {
        if self.told {
            return None;
        }
        let reply = match self.what {
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
        self.told = self.left.len() == 0;
        Some(Message::MultipartReply {
            reply,
            more: !self.told,
        })
    }

    /// Takes the next from the front, as many as make a part.
    fn take<T>(
        &mut self,
        find: impl Fn(&Pipeline, u32) -> Vec<T>,
        inside: impl Fn(&T) -> usize,
    ) -> Vec<T> {
        let (mut part, mut weight) = (Vec::new(), 0);
        while weight < Self::PER_PART
            && let Some(id) = self.left.next()
        {
            for object in find(&self.pipeline, id) {
                weight += 1 + inside(&object);
                part.push(object);
            }
        }
        part
    }
}
