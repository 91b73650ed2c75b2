//! The thread of a controller: it sleeps on the device's socket and on the wake-up socket of the
//! order queue, and processes both.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::{DatapathId, Instant};
use openflow::{Message, Version};

use super::ControllerError;
use super::application::Application;
use super::conversation::IncomingKind;
use super::diagnosis::Diagnosis;
use super::events::{Event, Events};
use super::exchange::{AnswerMatch, Exchange, RequestOutcome};
use super::link::{Backlog, Link, LinkLoan, broken};
use super::tally::Tally;

/// An order to a session.
#[derive(Debug)]
pub(super) enum Order {
    /// Send a request to the device.
    Request(Request),
    /// Lend the connection, and wait until it is returned.
    Lend(Sender<LinkLoan>),
}

/// A request to the device.
#[derive(Debug)]
pub(super) struct Request {
    /// The messages; a barrier follows them.
    pub(super) messages: Vec<Message>,
    /// Receives the result after the barrier reply.
    pub(super) reply: Sender<Result<RequestOutcome, ControllerError>>,
}

/// The published state of a session.
#[derive(Debug)]
pub(super) struct Board {
    status: Mutex<SessionStatus>,
    datapath: DatapathId,
}

#[derive(Debug)]
struct SessionStatus {
    tally: Tally,
    backlog: Backlog,
    events: Events,
    end: Option<String>,
}

impl Board {
    pub(super) fn new(link: &Link, datapath: DatapathId) -> Self {
        let status = Mutex::new(SessionStatus {
            tally: link.tally().clone(),
            backlog: Backlog::default(),
            events: Events::default(),
            end: None,
        });
        Self { status, datapath }
    }

    fn status(&self) -> MutexGuard<'_, SessionStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn tally(&self) -> Tally {
        self.status().tally.clone()
    }

    pub(super) fn events(&self) -> Vec<Event> {
        self.status().events.take()
    }

    pub(super) fn events_lost(&self) -> u64 {
        let status = self.status();
        status.events.lost() + status.events.unread()
    }

    pub(super) fn backlog(&self) -> Backlog {
        self.status().backlog
    }

    /// Returns the reason for the end of the session, if known.
    pub(super) fn end(&self) -> String {
        let end = self.status().end.clone();
        end.unwrap_or_else(|| "its session has ended".to_owned())
    }

    pub(super) fn diagnosis(&self, version: Version, now: Instant) -> Diagnosis {
        let status = self.status();
        Diagnosis {
            datapath: Some(self.datapath),
            over: status.end.clone(),
            ..Diagnosis::of(&status.tally, Some(version), status.backlog, now)
        }
    }
}

/// A request in progress.
struct Pending {
    exchange: Exchange,
    reply: Sender<Result<RequestOutcome, ControllerError>>,
    is_sent: bool,
}

/// A connection with a device.
pub(super) struct Session {
    link: Link,
    wakeup: UnixStream,
    inbox: Receiver<Order>,
    board: Arc<Board>,
    application: Application,
    pending: Vec<Pending>,
    /// The caller that waits for the connection.
    loan_request: Option<Sender<LinkLoan>>,
    /// Messages of the application that wait for room.
    queued_messages: VecDeque<Message>,
}

/// Maximum number of waiting messages of an application; further ones are discarded.
const QUEUED_MESSAGES_MAX: usize = 4096;

impl Session {
    pub(super) const fn new(
        link: Link,
        wakeup: UnixStream,
        inbox: Receiver<Order>,
        board: Arc<Board>,
        application: Application,
    ) -> Self {
        Self {
            link,
            wakeup,
            inbox,
            board,
            application,
            pending: Vec::new(),
            loan_request: None,
            queued_messages: VecDeque::new(),
        }
    }

    /// Runs until the connection is closed or all order senders are dropped.
    pub(super) fn run(mut self) {
        let version = self.link.version().expect("the version is negotiated");
        self.queued_messages.extend(self.application.begin(version));
        let reason = loop {
            if self.pending.is_empty()
                && let Some(loan_request) = self.loan_request.take()
            {
                self = self.lend(loan_request);
            }
            match self.turn(version) {
                Ok(true) => {}
                Ok(false) => return,
                Err(ControllerError::Down(reason)) => break reason,
                Err(error) => break error.to_string(),
            }
        };
        self.publish(Some(reason.clone()));
        for pending in self.pending {
            // The caller may have stopped waiting.
            let _ = pending
                .reply
                .send(Err(ControllerError::Down(reason.clone())));
        }
        for order in self.inbox {
            // A borrower detects the end by its closed channel.
            if let Order::Request(request) = order {
                let over = ControllerError::Down(reason.clone());
                let _ = request.reply.send(Err(over));
            }
        }
    }

    /// Lends the connection, and continues when it is returned.
    fn lend(self, loan_request: Sender<LinkLoan>) -> Self {
        let Self { link, .. } = self;
        let (back, returned) = mpsc::channel();
        // If the borrower has disappeared, the loan is dropped, which returns the connection at
        // once.
        drop(loan_request.send(LinkLoan::new(link, back)));
        let link = returned.recv().expect("a loan always returns its link");
        Self { link, ..self }
    }

    /// Processes orders and input, and waits for more. Returns `false` when all order senders are
    /// dropped.
    fn turn(&mut self, version: Version) -> Result<bool, ControllerError> {
        if !self.process_orders()? {
            return Ok(false);
        }
        self.send_pending()?;
        let received = self.link.turn()?;
        self.process_input(version)?;
        self.send_pending()?;
        self.publish(None);
        let lends = self.loan_request.is_some() && self.pending.is_empty();
        if !received && !lends {
            let also = Some(self.wakeup.as_fd());
            let waited = self
                .link
                .stream()
                .wait_also(self.link.wait_events(), also, None);
            waited.map_err(|error| ControllerError::Down(error.to_string()))?;
        }
        Ok(true)
    }

    /// Takes orders, unless a request already waits for room. Returns `false` when all order
    /// senders are dropped.
    fn process_orders(&mut self) -> Result<bool, ControllerError> {
        let mut bytes = [0; 64];
        match self.wakeup.read(&mut bytes) {
            Ok(0) => return Ok(false),
            Err(error) if error.kind() != ErrorKind::WouldBlock => {
                return Err(down(&error));
            }
            _ => {}
        }
        while self.loan_request.is_none() && self.pending.iter().all(|pending| pending.is_sent) {
            match self.inbox.try_recv() {
                Ok(Order::Request(request)) => self.pending.push(Pending {
                    exchange: Exchange::new(request.messages),
                    reply: request.reply,
                    is_sent: false,
                }),
                Ok(Order::Lend(loan_request)) => {
                    self.loan_request = Some(loan_request);
                    break;
                }
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
            }
            self.send_pending()?;
        }
        Ok(true)
    }

    /// Sends pending messages, as far as there is room.
    fn send_pending(&mut self) -> Result<(), ControllerError> {
        let conversation = self.link.conversation();
        while conversation.has_room()
            && let Some(message) = self.queued_messages.pop_front()
        {
            // A message that the version cannot express is discarded.
            let _ = conversation.send(&message);
        }
        for pending in &mut self.pending {
            pending.is_sent = pending.exchange.send_pending(conversation);
        }
        self.link.write()?;
        let conversation = self.link.conversation();
        for pending in &mut self.pending {
            pending.exchange.note(conversation);
        }
        Ok(())
    }

    /// Processes all complete messages.
    fn process_input(&mut self, version: Version) -> Result<(), ControllerError> {
        loop {
            let Some(incoming) = self.link.conversation().next_message().map_err(broken)? else {
                return Ok(());
            };
            let mut answer_match = AnswerMatch::Foreign;
            let mut position = 0;
            for (index, pending) in self.pending.iter_mut().enumerate() {
                answer_match = pending.exchange.take(&incoming);
                position = index;
                if !matches!(answer_match, AnswerMatch::Foreign) {
                    break;
                }
            }
            match answer_match {
                AnswerMatch::Foreign => {
                    if incoming.kind == IncomingKind::PacketIn && !self.application.is_silent() {
                        if let Ok(Message::PacketIn(frame)) = incoming.message() {
                            let room =
                                QUEUED_MESSAGES_MAX.saturating_sub(self.queued_messages.len());
                            let replies = self.application.packet_in(&frame, version);
                            self.queued_messages.extend(replies.into_iter().take(room));
                        }
                    } else {
                        self.board.status().events.store(&incoming);
                    }
                }
                AnswerMatch::Mine => {}
                AnswerMatch::Last(answered) => {
                    let done = self.pending.remove(position);
                    let outcome = done.exchange.finish(answered, self.link.conversation());
                    self.publish(None);
                    // The caller may have stopped waiting.
                    let _ = done.reply.send(Ok(outcome));
                }
                AnswerMatch::Broken(reason) => return Err(ControllerError::Down(reason)),
            }
        }
    }

    /// Publishes the state of the connection.
    fn publish(&self, end: Option<String>) {
        let backlog = self.link.backlog().unwrap_or_default();
        let tally = self.link.tally().clone();
        let mut status = self.board.status();
        status.tally = tally;
        status.backlog = backlog;
        status.end = end;
    }
}

fn down(error: &io::Error) -> ControllerError {
    ControllerError::Down(error.to_string())
}
