//! A connection with a device that one thread owns and polls: an instrument that sends and receives
//! both frames and messages must not wait for another thread to wake.
//!
//! [`Link::turn`] never waits; [`Link::request`] waits for a barrier.

use std::io;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::mpsc::Sender;
use std::time::Duration;

use base::{Instant, Xid};
use openflow::{Message, Version, VersionSet};
use testbed::{Clock, ControlStream, Readiness};

use super::ControllerError;
use super::conversation::{
    BACKLOG_MAX, Conversation, HELLO, IncomingKind, IncomingMessage, ProtocolViolation,
};
use super::diagnosis::Diagnosis;
use super::events::{Event, Events};
use super::exchange::{AnswerMatch, Exchange, RequestOutcome};
use super::tally::Tally;

/// Maximum number of bytes read in one turn, so that a long answer does not block the thread for
/// long.
const READ_LEN: usize = 64 * 1024;

/// Bytes that the device has not received yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Bytes that the system has not accepted.
    pub waiting: usize,
    /// Bytes that the system holds: unacknowledged bytes of TCP, or the memory of unread data in a
    /// Unix socket.
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
    timeout: Duration,
}

impl Link {
    /// Connects to a device that listens at this path, and negotiates one of `versions`.
    ///
    /// # Errors
    /// The connection is refused, or the negotiation fails.
    pub fn call(path: &Path, versions: VersionSet, clock: &Clock) -> Result<Self, ControllerError> {
        Self::over(ControlStream::connect(path)?, versions, clock)
    }

    /// Negotiates one of `versions` with the device at the other end.
    ///
    /// # Errors
    /// The negotiation does not complete within five seconds.
    pub fn over(
        stream: ControlStream,
        versions: VersionSet,
        clock: &Clock,
    ) -> Result<Self, ControllerError> {
        let mut link = Self::new(stream, versions, clock);
        let deadline = clock.now() + HELLO;
        loop {
            let received = link.turn()?;
            if let Some(incoming) = link.conversation.next_message().map_err(broken)? {
                link.events.store(&incoming);
            }
            if link.version().is_some() {
                break;
            }
            if !received {
                link.wait(deadline)?;
            }
        }
        Ok(link)
    }

    /// Returns a connection before the negotiation.
    pub(super) fn new(stream: ControlStream, versions: VersionSet, clock: &Clock) -> Self {
        Self {
            stream,
            conversation: Conversation::new(versions, clock.now()),
            clock: *clock,
            room: vec![0; READ_LEN],
            events: Events::default(),
            timeout: super::ANSWER,
        }
    }

    /// Sets the timeout of answers, which is ten seconds by default.
    #[must_use]
    pub const fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Returns the negotiated version.
    #[must_use]
    pub const fn version(&self) -> Option<Version> {
        self.conversation.version()
    }

    /// Writes pending output as far as there is room, and reads some input. Returns whether input
    /// arrived. Callers must have taken all earlier messages with [`Self::next_message`].
    ///
    /// # Errors
    /// The connection is closed.
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

    /// Hands pending output to the system, as far as there is room.
    fn write_pending(&mut self) -> io::Result<()> {
        while !self.conversation.pending().is_empty() {
            let count = self.stream.write(self.conversation.pending())?;
            // The time after the call counts: until then the data may have waited.
            self.conversation.transmitted(count, self.clock.now());
            if count == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Returns the next complete message. Echo requests are answered internally.
    ///
    /// # Errors
    /// The input violates the protocol.
    pub fn next_message(&mut self) -> Result<Option<IncomingMessage<'_>>, ControllerError> {
        self.conversation.next_message().map_err(broken)
    }

    /// Sends a message, and hands it to the system if there is room. Callers check
    /// [`Self::has_room`] first.
    ///
    /// # Errors
    /// The version cannot express the message, or the connection is closed.
    pub fn send(&mut self, message: &Message) -> Result<Xid, ControllerError> {
        let xid = self.queue(message)?;
        self.write()?;
        Ok(xid)
    }

    /// Queues a message, which [`Self::flush`] or the next turn hands to the system: many messages
    /// cost less together.
    ///
    /// # Errors
    /// The version cannot express the message.
    pub fn queue(&mut self, message: &Message) -> Result<Xid, ControllerError> {
        Ok(self.conversation.send(message)?)
    }

    /// Hands queued output to the system, as far as there is room.
    ///
    /// # Errors
    /// The connection is closed.
    pub fn flush(&mut self) -> Result<(), ControllerError> {
        self.write()
    }

    /// Sends encoded messages. Their times are not stored.
    ///
    /// # Errors
    /// The connection is closed.
    pub fn send_encoded(&mut self, messages: &[u8]) -> Result<(), ControllerError> {
        self.conversation.append(messages);
        self.write()
    }

    /// Returns whether the device and the system keep up with the output. If not, callers should
    /// not send more.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.conversation.has_room()
    }

    /// Returns the bytes that the device has not received yet.
    ///
    /// # Errors
    /// Those of ioctl(2).
    pub fn backlog(&self) -> Result<Backlog, ControllerError> {
        Ok(Backlog {
            waiting: self.conversation.pending().len(),
            held: self.stream.unsent().map_err(down)?,
        })
    }

    /// Returns the time at which the last byte of a message was handed to the system.
    #[must_use]
    pub fn handed_at(&self, xid: Xid) -> Option<Instant> {
        self.conversation.handed_at(xid)
    }

    /// Sleeps until input arrives, or until there is room for pending output.
    ///
    /// # Errors
    /// The deadline has passed, or a system call fails.
    pub fn wait(&mut self, deadline: Instant) -> Result<(), ControllerError> {
        let now = self.clock.now();
        if now >= deadline {
            return Err(ControllerError::Silent(Box::new(self.diagnosis())));
        }
        let wait_events = self.wait_events();
        self.stream
            .wait(wait_events, Some(deadline.since(now)))
            .map_err(down)
    }

    /// Returns the events for which the connection waits.
    pub(super) fn wait_events(&self) -> Readiness {
        match self.conversation.pending().is_empty() {
            true => Readiness::Readable,
            false => Readiness::ReadableOrWritable,
        }
    }

    /// Sends `messages` and a barrier, and waits for its reply. The result contains the refusals;
    /// unsolicited messages are stored ([`Self::events`]).
    ///
    /// # Errors
    /// The connection is closed, or the device does not answer in time.
    pub fn request(&mut self, messages: Vec<Message>) -> Result<RequestOutcome, ControllerError> {
        let mut exchange = Exchange::new(messages);
        let mut deadline = self.clock.now() + self.timeout;
        loop {
            exchange.send_pending(&mut self.conversation);
            let received = self.turn()?;
            exchange.note(&self.conversation);
            if received {
                deadline = self.clock.now() + self.timeout;
            }
            if let Some(answered) = self.take(&mut exchange)? {
                return Ok(exchange.finish(answered, &self.conversation));
            }
            if !received {
                self.wait(deadline)?;
            }
        }
    }

    /// Sends encoded messages, and waits for a barrier after them.
    ///
    /// # Errors
    /// As [`Self::request`]; also if the device refuses a message.
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
                // Many messages may cause many replies, which the device must be able to send.
                self.process_refusals()?;
            }
        }
        let barrier = self.send(&Message::BarrierRequest)?;
        self.listen_until(|incoming| {
            incoming.expect_no_error("a message")?;
            Ok(incoming.kind == IncomingKind::Barrier && incoming.xid == barrier)
        })
    }

    /// Waits for room, and processes input meanwhile.
    fn process_refusals(&mut self) -> Result<(), ControllerError> {
        let deadline = self.clock.now() + self.timeout;
        self.wait(deadline)?;
        self.turn()?;
        while let Some(incoming) = self.next_message()? {
            incoming.expect_no_error("a message")?;
        }
        Ok(())
    }

    /// Passes all input to `look` until it returns `true`.
    ///
    /// # Errors
    /// Those of `look`; the connection is closed, or the device does not answer in time.
    pub fn listen_until(
        &mut self,
        mut look: impl FnMut(&IncomingMessage<'_>) -> Result<bool, ControllerError>,
    ) -> Result<(), ControllerError> {
        loop {
            let received = self.turn()?;
            while let Some(incoming) = self.next_message()? {
                if look(&incoming)? {
                    return Ok(());
                }
            }
            if !received {
                self.wait(self.clock.now() + self.timeout)?;
            }
        }
    }

    /// Passes received messages to an exchange. Returns the arrival of the barrier reply, if
    /// received.
    fn take(
        &mut self,
        exchange: &mut Exchange,
    ) -> Result<Option<testbed::Arrival>, ControllerError> {
        loop {
            let Some(incoming) = self.conversation.next_message().map_err(broken)? else {
                return Ok(None);
            };
            match exchange.take(&incoming) {
                AnswerMatch::Foreign => self.events.store(&incoming),
                AnswerMatch::Mine => {}
                AnswerMatch::Last(answered) => return Ok(Some(answered)),
                AnswerMatch::Broken(reason) => return Err(ControllerError::Down(reason)),
            }
        }
    }

    /// Returns the unsolicited messages received during requests, the oldest first.
    pub fn events(&mut self) -> Vec<Event> {
        self.events.take()
    }

    /// Returns the state of the connection.
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

    /// Returns the message counters.
    #[must_use]
    pub const fn tally(&self) -> &Tally {
        self.conversation.tally()
    }

    pub(super) fn write(&mut self) -> Result<(), ControllerError> {
        self.write_pending().map_err(down)
    }

    pub(super) const fn conversation(&mut self) -> &mut Conversation {
        &mut self.conversation
    }

    pub(super) const fn stream(&self) -> &ControlStream {
        &self.stream
    }
}

/// A connection on loan from a controller; dropping this returns it.
#[derive(Debug)]
pub struct LinkLoan {
    link: Option<Link>,
    back: Sender<Link>,
}

impl LinkLoan {
    pub(super) const fn new(link: Link, back: Sender<Link>) -> Self {
        let link = Some(link);
        Self { link, back }
    }
}

impl Deref for LinkLoan {
    type Target = Link;

    fn deref(&self) -> &Link {
        self.link
            .as_ref()
            .expect("the link is present until the drop")
    }
}

impl DerefMut for LinkLoan {
    fn deref_mut(&mut self) -> &mut Link {
        self.link
            .as_mut()
            .expect("the link is present until the drop")
    }
}

impl Drop for LinkLoan {
    fn drop(&mut self) {
        if let Some(link) = self.link.take() {
            // A closed session does not need the connection any more.
            let _ = self.back.send(link);
        }
    }
}

/// Converts a protocol violation.
pub(super) fn broken(broken: ProtocolViolation) -> ControllerError {
    ControllerError::Down(format!("it does not speak OpenFlow as agreed: {broken}"))
}

/// Converts an I/O error.
fn down(error: io::Error) -> ControllerError {
    let words = match error.kind() {
        io::ErrorKind::UnexpectedEof => "the device closed it".to_owned(),
        _ => error.to_string(),
    };
    ControllerError::Down(words)
}
