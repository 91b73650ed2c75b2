//! A long answer: the rules of a bridge as they were when somebody asked, told
//! in parts, each when there is room for it. The snapshot costs the bridge
//! nothing; counts are those of the moment in which a part is told.

use base::Instant;
use flow::{FlowStatsRequest, Refusal};
use openflow::{Form, Message, MultipartReply};
use pipeline::{Pipeline, RuleCursor};

/// Rules in one part: some tens of KB, so that a part is never long in the way.
const RULES_PER_PART: usize = 256;

/// Rules still to be told.
#[derive(Debug)]
pub(crate) struct FlowDump {
    pipeline: Pipeline,
    form: Form,
    request: FlowStatsRequest,
    /// Where to go on; none when all is told.
    cursor: Option<RuleCursor>,
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
        let cursor = Some(pipeline.first_rule(&request)?);
        Ok(Self {
            pipeline,
            form,
            request,
            cursor,
        })
    }

    /// The next part; none after the last.
    pub(crate) fn next_part(&mut self, now: Instant) -> Option<Message> {
        let cursor = self.cursor.take()?;
        let (rules, next) =
            self.pipeline
                .flow_stats_from(cursor, &self.request, now, RULES_PER_PART);
        self.cursor = next;
        Some(Message::MultipartReply {
            reply: MultipartReply::Flow(self.form, rules),
            more: self.cursor.is_some(),
        })
    }
}
