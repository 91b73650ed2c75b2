//! Long answers, told in parts, each when there is room for it: the rules of a bridge as
//! they were when somebody asked, and what monitors tell. The snapshot costs the
//! bridge nothing; counts are those of the moment in which a part is told.

use std::sync::Arc;

use base::Instant;
use flow::{FlowStatsRequest, Refusal};
use openflow::{Form, Message, MultipartReply};
use pipeline::{Pipeline, Rule};

use super::monitors::{Comparison, Updates};

/// What is told in parts.
#[derive(Debug)]
pub(crate) enum Dump {
    /// Rules and their counts.
    Flows(Box<FlowDump>),
    /// What monitors tell of changes, as they are made.
    Updates(Updates),
    /// What monitors tell of the rules between two moments.
    Comparison(Box<Comparison>),
}

impl Dump {
    /// The next part; none after the last.
    pub(crate) fn next_part(&mut self, now: Instant) -> Option<Message> {
        match self {
            Self::Flows(dump) => dump.next_part(now),
            Self::Updates(updates) => updates.next_part(),
            Self::Comparison(comparison) => comparison.next_part(),
        }
    }

    /// How many rules it holds, or more.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Flows(dump) => dump.len(),
            Self::Updates(updates) => updates.len(),
            Self::Comparison(comparison) => comparison.len(),
        }
    }

    /// How many changes of rules it holds back until it is told.
    pub(crate) fn changes(&self) -> usize {
        match self {
            Self::Updates(updates) => updates.len(),
            Self::Flows(_) | Self::Comparison(_) => 0,
        }
    }
}

/// Rules in one part: some tens of KB, so that a part is never long in the way.
const RULES_PER_PART: usize = 256;

/// Rules still to be told.
#[derive(Debug)]
pub(crate) struct FlowDump {
    pipeline: Pipeline,
    form: Form,
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
        form: Form,
        request: FlowStatsRequest,
    ) -> Result<Self, Refusal> {
        drop(pipeline.rules_asked(&request, None)?);
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
            .rules_asked(&self.request, self.last.as_deref());
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
