//! What the experiment says to a device, and what of the answers it looks at.

use base::Cookie;
use flow::FlowStatsRequest;
use openflow::{Form, Message, MultipartRequest};

use crate::controller::{Kind, Link};
use crate::trial::TrialError;

/// Marks what the experiment adds beside the rule of its frames, so that it can be deleted.
pub(super) const COOKIE: Cookie = Cookie(0x00c4_a17e);

/// What a device has answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Answers {
    /// Replies to barriers.
    pub(super) barriers: u32,
    /// Statistics that were the last part of theirs.
    pub(super) dumps: u32,
}

/// Looks at some of what has come.
pub(super) fn listen(link: &mut Link) -> Result<Answers, TrialError> {
    link.turn()?;
    let mut answers = Answers::default();
    while let Some(heard) = link.hear()? {
        match heard.kind {
            Kind::Barrier => answers.barriers += 1,
            Kind::Statistics => answers.dumps += 1,
            Kind::Error => {
                let what = heard.message();
                let reason = format!("the device refused a message: {what:?}");
                return Err(TrialError::Impossible(reason));
            }
            _ => {}
        }
    }
    Ok(answers)
}

/// The question for all flows.
pub(super) fn dump() -> Message {
    let all = FlowStatsRequest::all();
    Message::MultipartRequest(MultipartRequest::Flow(Form::Standard, all))
}
