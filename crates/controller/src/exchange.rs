//! A request: messages, a barrier after them, and their answers, matched by transaction id. This
//! module has no socket and no clock.

use std::vec::IntoIter;

use base::{Instant, Xid};
use openflow::{Message, MultipartReply};
use testbed::Arrival;

use super::conversation::{Conversation, IncomingKind, IncomingMessage};
use super::refusal::{Reason, Refusal, message_name};

/// Maximum size of the answers to one request, in bytes: about three million flows.
const ANSWERS_MAX: usize = 512 << 20;

/// Maximum number of stored refusals of one request; further ones are counted.
const REFUSALS_MAX: usize = 1024;

/// An answer to one of the messages. The parts of a multipart reply are one answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The transaction id of the message and the answer.
    pub xid: Xid,
    /// The time at which the message was handed to the system, if known.
    pub handed: Option<Instant>,
    /// The arrival time of the last byte of the answer.
    pub arrival: Arrival,
    /// The content.
    pub message: Message,
}

/// The result of a request, complete with the reply to its barrier.
#[derive(Clone, Debug)]
pub struct RequestOutcome {
    /// The time at which the first message was handed to the system (the barrier, if there was
    /// none).
    pub began: Option<Instant>,
    /// The time at which the barrier was handed to the system.
    pub handed: Option<Instant>,
    /// The arrival time of the barrier reply.
    pub answered: Arrival,
    /// The answers, in the order of their completion.
    pub answers: Vec<Answer>,
    /// The refused messages; the first 1,024.
    pub refusals: Vec<Refusal>,
    /// Number of refused messages.
    pub refused: u64,
}

/// A request in progress.
#[derive(Debug)]
pub(super) struct Exchange {
    rest: IntoIter<Message>,
    names: Vec<&'static str>,
    first: Option<u32>,
    sent: usize,
    barrier: Option<Xid>,
    began: Option<Instant>,
    bytes: usize,
    parts: Vec<(Xid, MultipartReply)>,
    answers: Vec<Answer>,
    refusals: Vec<Refusal>,
    refused: u64,
}

/// The relation of a received message to an exchange.
#[derive(Debug)]
pub(super) enum AnswerMatch {
    /// The message belongs to another exchange.
    Foreign,
    /// The message is an answer of this exchange.
    Mine,
    /// The message is the barrier reply, which ends the exchange.
    Last(Arrival),
    /// The message violates the protocol, or exceeds the storage limit.
    Broken(String),
}

impl Exchange {
    pub(super) fn new(messages: Vec<Message>) -> Self {
        Self {
            names: messages.iter().map(message_name).collect(),
            rest: messages.into_iter(),
            first: None,
            sent: 0,
            barrier: None,
            began: None,
            bytes: 0,
            parts: Vec::new(),
            answers: Vec::new(),
            refusals: Vec::new(),
            refused: 0,
        }
    }

    /// Sends messages while there is room. Returns whether all are sent.
    pub(super) fn send_pending(&mut self, conversation: &mut Conversation) -> bool {
        while self.barrier.is_none() && conversation.has_room() {
            let Some(message) = self.rest.next() else {
                let sent = conversation.send(&Message::BarrierRequest);
                let xid = sent.expect("every version has barriers");
                self.first.get_or_insert(xid.0);
                self.barrier = Some(xid);
                break;
            };
            let sent = conversation.send(&message);
            let xid = conversation.last_xid();
            self.first.get_or_insert(xid.0);
            self.sent += 1;
            if let Err(error) = sent {
                self.refuse(xid, Reason::NotSent(error));
            }
        }
        self.barrier.is_some()
    }

    /// Processes a message, if it answers this request.
    pub(super) fn take(&mut self, incoming: &IncomingMessage<'_>) -> AnswerMatch {
        if incoming.kind.is_unsolicited() || self.position(incoming.xid).is_none() {
            return AnswerMatch::Foreign;
        }
        let is_barrier = self.barrier == Some(incoming.xid);
        if incoming.kind == IncomingKind::Barrier && is_barrier {
            return AnswerMatch::Last(incoming.arrival);
        }
        self.bytes += incoming.bytes.len();
        if self.bytes > ANSWERS_MAX {
            return AnswerMatch::Broken(format!("its answers exceed {ANSWERS_MAX} bytes"));
        }
        let message = match incoming.message() {
            Ok(message) => message,
            Err(malformed) => {
                let kind = incoming.kind.name();
                return AnswerMatch::Broken(format!("its {kind} is malformed: {malformed}"));
            }
        };
        match message {
            Message::Error(error) => {
                let reason = Reason::Error {
                    fault: error.code,
                    version: incoming.version(),
                    arrival: incoming.arrival,
                };
                self.refuse(incoming.xid, reason);
                match is_barrier {
                    true => AnswerMatch::Last(incoming.arrival),
                    false => AnswerMatch::Mine,
                }
            }
            Message::MultipartReply { reply, more } => self.append_part(incoming, reply, more),
            message => {
                self.answer(incoming, message);
                AnswerMatch::Mine
            }
        }
    }

    /// Records the time at which the first message was handed to the system, while it is stored.
    pub(super) fn note(&mut self, conversation: &Conversation) {
        if let (None, Some(first)) = (self.began, self.first) {
            self.began = conversation.handed_at(Xid(first));
        }
    }

    /// Returns the position of a transaction id among the messages of the request.
    fn position(&self, xid: Xid) -> Option<usize> {
        let position = usize::try_from(xid.0.wrapping_sub(self.first?)).ok()?;
        let all = self.sent + usize::from(self.barrier.is_some());
        (position < all).then_some(position)
    }

    fn refuse(&mut self, xid: Xid, reason: Reason) {
        self.refused += 1;
        let position = self.position(xid).unwrap_or(self.sent);
        if self.refusals.len() < REFUSALS_MAX {
            self.refusals.push(Refusal {
                position,
                xid,
                message: self.names.get(position).copied().unwrap_or("a barrier"),
                reason,
            });
        }
    }

    /// Appends a part of a multipart reply to the earlier parts.
    fn append_part(
        &mut self,
        incoming: &IncomingMessage<'_>,
        reply: MultipartReply,
        more: bool,
    ) -> AnswerMatch {
        let before = self.parts.iter().position(|(xid, _)| *xid == incoming.xid);
        let whole = match before {
            None => reply,
            Some(index) => {
                let (_, mut whole) = self.parts.swap_remove(index);
                if whole.append(reply).is_err() {
                    return AnswerMatch::Broken(
                        "the parts of its statistics do not match".to_owned(),
                    );
                }
                whole
            }
        };
        if more {
            self.parts.push((incoming.xid, whole));
        } else {
            self.answer(incoming, Message::reply(whole));
        }
        AnswerMatch::Mine
    }

    fn answer(&mut self, incoming: &IncomingMessage<'_>, message: Message) {
        self.answers.push(Answer {
            xid: incoming.xid,
            handed: incoming.handed,
            arrival: incoming.arrival,
            message,
        });
    }

    /// Returns the result after the barrier reply.
    pub(super) fn finish(self, answered: Arrival, conversation: &Conversation) -> RequestOutcome {
        RequestOutcome {
            began: self.began,
            handed: self.barrier.and_then(|xid| conversation.handed_at(xid)),
            answered,
            answers: self.answers,
            refusals: self.refusals,
            refused: self.refused,
        }
    }
}
