//! A connection with a device in the hands of one thread, which decides itself when to
//! look at it: an instrument that sends frames and messages and receives both must not
//! wait for another thread to wake.
//!
//! [`Link::turn`] never waits; [`Link::request`] waits for a barrier.

use std::io;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::mpsc::Sender;
use std::time::Duration;

use base::{Instant, Xid};
use openflow::{Message, Version, VersionSet};
use testbed::{Clock, ControlStream, Wanted};

use super::ControllerError;
use super::conversation::{BACKLOG_MAX, Broken, Conversation, HELLO, Heard, Kind};
use super::diagnosis::Diagnosis;
use super::events::{Event, Events};
use super::exchange::{Done, Exchange, Taken};
use super::tally::Tally;

/// Bytes that are looked at in one turn, so that a long answer keeps nobody for long.
const READ_LEN: usize = 64 * 1024;

/// What is on its way to the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Bytes that the system has not taken.
    pub waiting: usize,
    /// What the system has taken and holds: of TCP bytes that are not acknowledged, of a
    /// Unix socket the memory of what is not read.
    pub held: usize,
}

/// A connection.
#[derive(Debug)]
pub struct Link {
    stream: ControlStream,
    conversation: Conversation,
    clock: Clock,
    room: Vec<u8>,
    events: Events,
    patience: Duration,
}

impl Link {
    /// Calls a device that listens at this path, and agrees with it on one of `versions`.
    ///
    /// # Errors
    /// Nobody listens, or there is no agreement.
    pub fn call(path: &Path, versions: VersionSet, clock: &Clock) -> Result<Self, ControllerError> {
        Self::over(ControlStream::call(path)?, versions, clock)
    }

    /// Agrees on one of `versions` with the device at the other end.
    ///
    /// # Errors
    /// There is no agreement within five seconds.
    pub fn over(
        stream: ControlStream,
        versions: VersionSet,
        clock: &Clock,
    ) -> Result<Self, ControllerError> {
        let mut link = Self::new(stream, versions, clock);
        let deadline = clock.now() + HELLO;
        loop {
            let came = link.turn()?;
            if let Some(heard) = link.conversation.hear().map_err(broken)? {
                link.events.keep(&heard);
            }
            if link.version().is_some() {
                break;
            }
            if !came {
                link.wait(deadline)?;
            }
        }
        Ok(link)
    }

    /// A connection on which nothing is agreed yet.
    pub(super) fn new(stream: ControlStream, versions: VersionSet, clock: &Clock) -> Self {
        Self {
            stream,
            conversation: Conversation::new(versions, clock.now()),
            clock: *clock,
            room: vec![0; READ_LEN],
            events: Events::default(),
            patience: super::ANSWER,
        }
    }

    /// Waits for an answer for so long, in place of ten seconds.
    #[must_use]
    pub const fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The version agreed on.
    #[must_use]
    pub const fn version(&self) -> Option<Version> {
        self.conversation.version()
    }

    /// Writes what waits, as far as there is room, and reads some of what has come. Whether
    /// anything has. All that came before must have been heard.
    ///
    /// # Errors
    /// The connection is over.
    pub fn turn(&mut self) -> Result<bool, ControllerError> {
        self.write()?;
        let chunk = self
            .stream
            .read(&mut self.room, &self.clock)
            .map_err(down)?;
        if let Some(chunk) = chunk {
            let bytes = &self.room[..chunk.length];
            self.conversation.handle_input(bytes, chunk.arrival);
        }
        Ok(chunk.is_some())
    }

    /// Hands what waits to the system, as far as there is room.
    fn hand_over(&mut self) -> io::Result<()> {
        while !self.conversation.pending().is_empty() {
            let count = self.stream.write(self.conversation.pending())?;
            // Handed over when the call is done: until then it may have waited its turn.
            self.conversation.transmitted(count, self.clock.now());
            if count == 0 {
                break;
            }
        }
        Ok(())
    }

    /// The next message that came, if one is whole. Echo requests are answered here.
    ///
    /// # Errors
    /// What came is no OpenFlow.
    pub fn hear(&mut self) -> Result<Option<Heard<'_>>, ControllerError> {
        self.conversation.hear().map_err(broken)
    }

    /// Says something, and hands it to the system if there is room. Ask [`Self::has_room`]
    /// before.
    ///
    /// # Errors
    /// The version has no words for it, or the connection is over.
    pub fn say(&mut self, message: &Message) -> Result<Xid, ControllerError> {
        let xid = self.queue(message)?;
        self.write()?;
        Ok(xid)
    }

    /// Says something, which is handed to the system by [`Self::flush`] or by the next turn:
    /// many are handed over together at less cost.
    ///
    /// # Errors
    /// The version has no words for it.
    pub fn queue(&mut self, message: &Message) -> Result<Xid, ControllerError> {
        Ok(self.conversation.say(message)?)
    }

    /// Hands what is said to the system, as far as there is room.
    ///
    /// # Errors
    /// The connection is over.
    pub fn flush(&mut self) -> Result<(), ControllerError> {
        self.write()
    }

    /// Says messages that were encoded before. Their times are not kept.
    ///
    /// # Errors
    /// The connection is over.
    pub fn say_encoded(&mut self, messages: &[u8]) -> Result<(), ControllerError> {
        self.conversation.append(messages);
        self.write()
    }

    /// Whether the device, and the system before it, take what is said: if not, nothing more
    /// should be.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.conversation.has_room()
    }

    /// What is on its way to the device.
    ///
    /// # Errors
    /// Those of ioctl(2).
    pub fn backlog(&self) -> Result<Backlog, ControllerError> {
        Ok(Backlog {
            waiting: self.conversation.pending().len(),
            held: self.stream.unsent().map_err(down)?,
        })
    }

    /// When the last byte of a message was handed to the system.
    #[must_use]
    pub fn handed_at(&self, xid: Xid) -> Option<Instant> {
        self.conversation.handed_at(xid)
    }

    /// Sleeps until something comes, or there is room for what waits.
    ///
    /// # Errors
    /// The deadline has come, or the system refuses.
    pub fn wait(&mut self, deadline: Instant) -> Result<(), ControllerError> {
        let now = self.clock.now();
        if now >= deadline {
            return Err(ControllerError::Silent(Box::new(self.diagnosis())));
        }
        let wanted = self.wanted();
        self.stream
            .wait(wanted, Some(deadline.since(now)))
            .map_err(down)
    }

    /// What the connection waits for.
    pub(super) fn wanted(&self) -> Wanted {
        match self.conversation.pending().is_empty() {
            true => Wanted::Bytes,
            false => Wanted::BytesOrRoom,
        }
    }

    /// Has all of `messages` done, and waits for the barrier behind them. What the device
    /// would not do is in what comes of it; what it tells unasked is kept
    /// ([`Self::events`]).
    ///
    /// # Errors
    /// The connection is over, or the device is silent for longer than it may be.
    pub fn request(&mut self, messages: Vec<Message>) -> Result<Done, ControllerError> {
        let mut exchange = Exchange::new(messages);
        let mut deadline = self.clock.now() + self.patience;
        loop {
            exchange.say(&mut self.conversation);
            let came = self.turn()?;
            exchange.note(&self.conversation);
            if came {
                deadline = self.clock.now() + self.patience;
            }
            if let Some(answered) = self.take(&mut exchange)? {
                return Ok(exchange.finish(answered, &self.conversation));
            }
            if !came {
                self.wait(deadline)?;
            }
        }
    }

    /// Says messages that were encoded before, and waits for the barrier behind them.
    ///
    /// # Errors
    /// As [`Self::request`]; and the device refuses one of them.
    pub fn request_encoded(&mut self, messages: &[u8]) -> Result<(), ControllerError> {
        let mut rest = messages;
        while !rest.is_empty() {
            if self.has_room() {
                let (part, behind) = rest.split_at(rest.len().min(BACKLOG_MAX));
                self.conversation.append(part);
                rest = behind;
            }
            self.write()?;
            if !self.has_room() {
                // Who is told much may tell much, and wait for it to be taken.
                self.hear_refusals()?;
            }
        }
        let barrier = self.say(&Message::BarrierRequest)?;
        self.listen_until(|heard| {
            heard.expect_no_error("a message")?;
            Ok(heard.kind == Kind::Barrier && heard.xid == barrier)
        })
    }

    /// Waits for room, and takes what comes meanwhile.
    fn hear_refusals(&mut self) -> Result<(), ControllerError> {
        let deadline = self.clock.now() + self.patience;
        self.wait(deadline)?;
        self.turn()?;
        while let Some(heard) = self.hear()? {
            heard.expect_no_error("a message")?;
        }
        Ok(())
    }

    /// Has `look` see all that comes until it has seen enough.
    ///
    /// # Errors
    /// Those of `look`; the connection is over, or the device is silent for longer than it
    /// may be.
    pub fn listen_until(
        &mut self,
        mut look: impl FnMut(&Heard<'_>) -> Result<bool, ControllerError>,
    ) -> Result<(), ControllerError> {
        loop {
            let came = self.turn()?;
            while let Some(heard) = self.hear()? {
                if look(&heard)? {
                    return Ok(());
                }
            }
            if !came {
                self.wait(self.clock.now() + self.patience)?;
            }
        }
    }

    /// Gives an exchange what has come; when its barrier was answered, if it was.
    fn take(
        &mut self,
        exchange: &mut Exchange,
    ) -> Result<Option<testbed::Arrival>, ControllerError> {
        loop {
            let Some(heard) = self.conversation.hear().map_err(broken)? else {
                return Ok(None);
            };
            match exchange.take(&heard) {
                Taken::Foreign => self.events.keep(&heard),
                Taken::Mine => {}
                Taken::Last(answered) => return Ok(Some(answered)),
                Taken::Broken(what) => return Err(ControllerError::Down(what)),
            }
        }
    }

    /// What the device told unasked while requests were under way, the oldest first.
    pub fn events(&mut self) -> Vec<Event> {
        self.events.take()
    }

    /// How the connection is.
    #[must_use]
    pub fn diagnosis(&self) -> Diagnosis {
        let backlog = self.backlog().unwrap_or_default();
        Diagnosis::of(
            self.conversation.tally(),
            self.version(),
            backlog,
            self.clock.now(),
        )
    }

    /// What came and went so far.
    #[must_use]
    pub const fn tally(&self) -> &Tally {
        self.conversation.tally()
    }

    pub(super) fn write(&mut self) -> Result<(), ControllerError> {
        self.hand_over().map_err(down)
    }

    pub(super) const fn conversation(&mut self) -> &mut Conversation {
        &mut self.conversation
    }

    pub(super) const fn stream(&self) -> &ControlStream {
        &self.stream
    }
}

/// A connection that a controller has lent, and that is given back when this is dropped.
#[derive(Debug)]
pub struct Lent {
    link: Option<Link>,
    back: Sender<Link>,
}

impl Lent {
    pub(super) const fn new(link: Link, back: Sender<Link>) -> Self {
        let link = Some(link);
        Self { link, back }
    }
}

impl Deref for Lent {
    type Target = Link;

    fn deref(&self) -> &Link {
        self.link.as_ref().expect("it is there until it is dropped")
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut Link {
        self.link.as_mut().expect("it is there until it is dropped")
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(link) = self.link.take() {
            // A session that has ended needs it no more.
            let _ = self.back.send(link);
        }
    }
}

/// What came is no OpenFlow.
pub(super) fn broken(broken: Broken) -> ControllerError {
    ControllerError::Down(format!("it does not speak OpenFlow as agreed: {broken}"))
}

/// The connection is over.
fn down(error: io::Error) -> ControllerError {
    let words = match error.kind() {
        io::ErrorKind::UnexpectedEof => "the device closed it".to_owned(),
        _ => error.to_string(),
    };
    ControllerError::Down(words)
}
