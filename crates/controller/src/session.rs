//! The thread behind a controller: it sleeps on the device's socket and on the bell that
//! announces orders, and deals with what comes.

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
use super::conversation::Kind;
use super::diagnosis::Diagnosis;
use super::events::{Event, Events};
use super::exchange::{Done, Exchange, Taken};
use super::link::{Backlog, Lent, Link, broken};
use super::tally::Tally;

/// Something that a session is to do.
#[derive(Debug)]
pub(super) enum Order {
    /// Have the device do something.
    Request(Request),
    /// Hand out the connection, and wait until it is given back.
    Lend(Sender<Lent>),
}

/// Something that the device is to do.
#[derive(Debug)]
pub(super) struct Request {
    /// The messages; a barrier is sent behind them.
    pub(super) messages: Vec<Message>,
    /// Where it is told what came of them, when the barrier's answer has come.
    pub(super) reply: Sender<Result<Done, ControllerError>>,
}

/// What a session shows to others.
#[derive(Debug)]
pub(super) struct Board {
    shown: Mutex<Shown>,
    datapath: DatapathId,
}

#[derive(Debug)]
struct Shown {
    tally: Tally,
    backlog: Backlog,
    events: Events,
    end: Option<String>,
}

impl Board {
    pub(super) fn new(link: &Link, datapath: DatapathId) -> Self {
        let shown = Mutex::new(Shown {
            tally: link.tally().clone(),
            backlog: Backlog::default(),
            events: Events::default(),
            end: None,
        });
        Self { shown, datapath }
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn tally(&self) -> Tally {
        self.shown().tally.clone()
    }

    pub(super) fn events(&self) -> Vec<Event> {
        self.shown().events.take()
    }

    pub(super) fn events_lost(&self) -> u64 {
        let shown = self.shown();
        shown.events.lost() + shown.events.unread()
    }

    pub(super) fn backlog(&self) -> Backlog {
        self.shown().backlog
    }

    /// Why the session is over, as far as is known.
    pub(super) fn end(&self) -> String {
        let end = self.shown().end.clone();
        end.unwrap_or_else(|| "its session has ended".to_owned())
    }

    pub(super) fn diagnosis(&self, version: Version, now: Instant) -> Diagnosis {
        let shown = self.shown();
        Diagnosis {
            datapath: Some(self.datapath),
            over: shown.end.clone(),
            ..Diagnosis::of(&shown.tally, Some(version), shown.backlog, now)
        }
    }
}

/// An order under way.
struct Pending {
    exchange: Exchange,
    reply: Sender<Result<Done, ControllerError>>,
    is_said: bool,
}

/// One connection with a device.
pub(super) struct Session {
    link: Link,
    rung: UnixStream,
    inbox: Receiver<Order>,
    board: Arc<Board>,
    application: Application,
    pending: Vec<Pending>,
    /// Who waits for the connection.
    borrower: Option<Sender<Lent>>,
    /// What the application says and there was no room for yet.
    unsaid: VecDeque<Message>,
}

/// Messages of an application that may wait; what it would say beyond them is not said.
const UNSAID_MAX: usize = 4096;

impl Session {
    pub(super) const fn new(
        link: Link,
        rung: UnixStream,
        inbox: Receiver<Order>,
        board: Arc<Board>,
        application: Application,
    ) -> Self {
        Self {
            link,
            rung,
            inbox,
            board,
            application,
            pending: Vec::new(),
            borrower: None,
            unsaid: VecDeque::new(),
        }
    }

    /// Goes on until the connection is over or nobody gives orders any more.
    pub(super) fn run(mut self) {
        let version = self.link.version().expect("it was agreed on");
        self.unsaid.extend(self.application.begin(version));
        let reason = loop {
            if self.pending.is_empty()
                && let Some(borrower) = self.borrower.take()
            {
                self = self.lend(borrower);
            }
            match self.turn(version) {
                Ok(true) => {}
                Ok(false) => return,
                Err(ControllerError::Down(reason)) => break reason,
                Err(error) => break error.to_string(),
            }
        };
        self.show(Some(reason.clone()));
        for pending in self.pending {
            // Whoever does not wait any more need not know.
            let _ = pending
                .reply
                .send(Err(ControllerError::Down(reason.clone())));
        }
        for order in self.inbox {
            // Who wants to borrow sees that nobody is there.
            if let Order::Request(request) = order {
                let over = ControllerError::Down(reason.clone());
                let _ = request.reply.send(Err(over));
            }
        }
    }

    /// Hands out the connection, and goes on when it is given back.
    fn lend(self, borrower: Sender<Lent>) -> Self {
        let Self { link, .. } = self;
        let (back, returned) = mpsc::channel();
        // What nobody takes comes back at once, as all that is lent does when it is dropped.
        drop(borrower.send(Lent::new(link, back)));
        let link = returned.recv().expect("what is lent is given back");
        Self { link, ..self }
    }

    /// Deals with what there is, and waits for more. False when nobody gives orders any more.
    fn turn(&mut self, version: Version) -> Result<bool, ControllerError> {
        if !self.take_orders()? {
            return Ok(false);
        }
        self.say()?;
        let came = self.link.turn()?;
        self.hear(version)?;
        self.say()?;
        self.show(None);
        let lends = self.borrower.is_some() && self.pending.is_empty();
        if !came && !lends {
            let also = Some(self.rung.as_fd());
            let waited = self.link.stream().wait_also(self.link.wanted(), also, None);
            waited.map_err(|error| ControllerError::Down(error.to_string()))?;
        }
        Ok(true)
    }

    /// Takes orders in, unless one waits for room already. False if there will be none any
    /// more.
    fn take_orders(&mut self) -> Result<bool, ControllerError> {
        let mut bytes = [0; 64];
        match self.rung.read(&mut bytes) {
            Ok(0) => return Ok(false),
            Err(error) if error.kind() != ErrorKind::WouldBlock => {
                return Err(down(&error));
            }
            _ => {}
        }
        while self.borrower.is_none() && self.pending.iter().all(|pending| pending.is_said) {
            match self.inbox.try_recv() {
                Ok(Order::Request(request)) => self.pending.push(Pending {
                    exchange: Exchange::new(request.messages),
                    reply: request.reply,
                    is_said: false,
                }),
                Ok(Order::Lend(borrower)) => {
                    self.borrower = Some(borrower);
                    break;
                }
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
            }
            self.say()?;
        }
        Ok(true)
    }

    /// Says what is to be said, as far as there is room.
    fn say(&mut self) -> Result<(), ControllerError> {
        let conversation = self.link.conversation();
        while conversation.has_room()
            && let Some(message) = self.unsaid.pop_front()
        {
            // What the version has no words for is not said.
            let _ = conversation.say(&message);
        }
        for pending in &mut self.pending {
            pending.is_said = pending.exchange.say(conversation);
        }
        self.link.write()?;
        let conversation = self.link.conversation();
        for pending in &mut self.pending {
            pending.exchange.note(conversation);
        }
        Ok(())
    }

    /// Deals with all messages that are whole.
    fn hear(&mut self, version: Version) -> Result<(), ControllerError> {
        loop {
            let Some(heard) = self.link.conversation().hear().map_err(broken)? else {
                return Ok(());
            };
            let mut taken = Taken::Foreign;
            let mut place = 0;
            for (index, pending) in self.pending.iter_mut().enumerate() {
                taken = pending.exchange.take(&heard);
                place = index;
                if !matches!(taken, Taken::Foreign) {
                    break;
                }
            }
            match taken {
                Taken::Foreign => {
                    if heard.kind == Kind::PacketIn && !self.application.is_silent() {
                        if let Ok(Message::PacketIn(frame)) = heard.message() {
                            let room = UNSAID_MAX.saturating_sub(self.unsaid.len());
                            let says = self.application.packet_in(&frame, version);
                            self.unsaid.extend(says.into_iter().take(room));
                        }
                    } else {
                        self.board.shown().events.keep(&heard);
                    }
                }
                Taken::Mine => {}
                Taken::Last(answered) => {
                    let done = self.pending.remove(place);
                    let outcome = done.exchange.finish(answered, self.link.conversation());
                    self.show(None);
                    // Whoever does not wait any more need not know.
                    let _ = done.reply.send(Ok(outcome));
                }
                Taken::Broken(what) => return Err(ControllerError::Down(what)),
            }
        }
    }

    /// Lets others see how the connection is.
    fn show(&self, end: Option<String>) {
        let backlog = self.link.backlog().unwrap_or_default();
        let tally = self.link.tally().clone();
        let mut shown = self.board.shown();
        shown.tally = tally;
        shown.backlog = backlog;
        shown.end = end;
    }
}

fn down(error: &io::Error) -> ControllerError {
    ControllerError::Down(error.to_string())
}
