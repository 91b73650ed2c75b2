//! What the experiment says to a device, and what of the answers it looks at.

use base::{Cookie, Instant};
use controller::{Kind, Link};
use flow::FlowStatsRequest;
use openflow::{FlowFormat, Message, MultipartRequest};
use testbed::{Clock, Failure, RawSocket};

use crate::generator;
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

/// A device between hosts, in the hands of one thread.
pub(super) trait Device {
    /// The time.
    fn now(&self) -> Instant;
    /// Sends a frame from the client, if there is room for it; whether there was.
    fn send(&mut self, frame: &[Vec<u8>]) -> Result<bool, TrialError>;
    /// Puts the next frame that has come to the server into `room` and tells its length.
    fn receive(&mut self, room: &mut [u8]) -> Result<Option<usize>, TrialError>;
    /// Says something.
    fn say(&mut self, message: &Message) -> Result<(), TrialError>;
    /// Whether more may be said without much waiting.
    fn has_room(&self) -> bool;
    /// Looks at some of what has come.
    fn listen(&mut self) -> Result<Answers, TrialError>;
    /// Has all of `messages` done, whose name is for an error.
    fn settle(&mut self, what: &'static str, messages: Vec<Message>) -> Result<(), TrialError>;
}

/// A real one.
pub(super) struct Live<'a> {
    pub(super) sender: RawSocket,
    pub(super) receiver: RawSocket,
    pub(super) link: &'a mut Link,
    pub(super) clock: Clock,
}

impl Device for Live<'_> {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn send(&mut self, frame: &[Vec<u8>]) -> Result<bool, TrialError> {
        match self.sender.send(frame) {
            Err(error) if generator::is_full(&error) => Ok(false),
            outcome => Ok(outcome.map_err(Failure::to("send a frame"))? > 0),
        }
    }

    fn receive(&mut self, room: &mut [u8]) -> Result<Option<usize>, TrialError> {
        let length = self.receiver.receive(room);
        Ok(length.map_err(Failure::to("receive a frame"))?)
    }

    fn say(&mut self, message: &Message) -> Result<(), TrialError> {
        self.link.say(message)?;
        Ok(())
    }

    fn has_room(&self) -> bool {
        self.link.has_room()
    }

    fn listen(&mut self) -> Result<Answers, TrialError> {
        self.link.turn()?;
        let mut answers = Answers::default();
        while let Some(heard) = self.link.hear()? {
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

    fn settle(&mut self, what: &'static str, messages: Vec<Message>) -> Result<(), TrialError> {
        self.link.request(messages)?.all_done(what)?;
        Ok(())
    }
}

/// The question for all flows.
pub(super) fn dump() -> Message {
    let all = FlowStatsRequest::all();
    Message::MultipartRequest(MultipartRequest::Flow(FlowFormat::Standard, all))
}
