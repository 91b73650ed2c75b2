//! A long answer: the rules of a bridge as they were when somebody asked, told
//! in parts, each when there is room for it. The snapshot costs the bridge
//! nothing; counts are those of the moment in which a part is told.

use std::sync::Arc;

use base::Instant;
use flow::{FlowStatsRequest, Refusal};
use openflow::{Form, Message, MultipartReply};
use pipeline::{Pipeline, Rule};

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
    pub(crate) const fn len(&self) -> usize {
        self.pipeline.len()
    }

    /// The next part; none after the last.
    pub(crate) fn next_part(&mut self, now: Instant) -> Option<Message> {
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
