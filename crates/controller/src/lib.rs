//! OpenFlow controller for measurements: versions 1.0 to 1.5 over a Unix socket or TCP; devices
//! connect to it, or it connects to them.
//!
//! It installs rules, waits for barriers and requests statistics. While a test runs it sends
//! nothing by itself unless it has an [`Application`]: a thread waits on the socket, answers echo
//! requests, and stores unsolicited messages with their times. A measurement that must not wait for
//! a thread holds the connection itself ([`Link`]).
//!
//! For every message the time is recorded at which its last byte was handed to the system, and for
//! every answer the time at which its last byte arrived: by TCP as the kernel received it, by a
//! Unix socket as it was read ([`testbed::Stamp`] distinguishes them). An error message is a value
//! ([`Refusal`]).
//!
//! The crate contains no measurements.

pub mod application;
mod conversation;
mod diagnosis;
mod events;
mod exchange;
pub mod learning;
mod link;
mod listener;
mod refusal;
mod requests;
mod session;
mod tally;

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::Duration;

use base::{Cookie, DatapathId};
use flow::{FlowMod, SwitchFeatures};
use openflow::{EncodeError, Message, Version, VersionSet};
use testbed::{Clock, ControlStream, Failure};

pub use application::Application;
pub use conversation::{
    BACKLOG_MAX, Conversation, IncomingKind, IncomingMessage, ProtocolViolation,
};
pub use diagnosis::{Diagnosis, Movements};
pub use events::Event;
pub use exchange::{Answer, RequestOutcome};
pub use link::{Backlog, Link, LinkLoan};
pub use listener::Listener;
pub use refusal::{Reason, Refusal};
pub use requests::{DeviceRequests, packet_out};
pub use tally::Tally;

use session::{Board, Order, Request, Session};

/// Timeout of a request and the barrier after it.
const ANSWER: Duration = Duration::from_secs(10);

/// Capacity of the order queue of a session; further callers wait.
const ORDERS_MAX: usize = 16;

/// Packet counts of a device's rules, with the cookies of the rules.
pub type Counts = Vec<(Cookie, u64)>;

/// A failure to control a device.
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    /// A system call failed.
    #[error(transparent)]
    Failure(#[from] Failure),
    /// The connection is closed.
    #[error("the device's OpenFlow connection is down: {0}")]
    Down(String),
    /// The device refused a request.
    #[error("the device refused {request}: {fault}")]
    Refused {
        /// The request.
        request: &'static str,
        /// The message that was refused, and the reason.
        fault: Box<Refusal>,
    },
    /// The negotiated version cannot express the message.
    #[error(transparent)]
    EncodeError(#[from] EncodeError),
    /// The device answered the barrier, but not the request.
    #[error("the device did not answer {0}, but answered the barrier after it")]
    Unanswered(&'static str),
    /// Two devices have the same datapath id.
    #[error("two devices connected with the same datapath id, {:016x}", .0.0)]
    SameDatapath(DatapathId),
    /// The device did not connect, or the negotiation failed.
    #[error(
        "not connected: no connection to {at} agreed on a version within {waited:.1?}; {last}; {program}"
    )]
    NeverCalled {
        /// The address of the controller.
        at: String,
        /// The time waited.
        waited: Duration,
        /// The result of the last connection, in words.
        last: String,
        /// The state of the device's program, in words.
        program: String,
    },
    /// The device does not answer.
    #[error("the device did not answer in time: {0}")]
    Silent(Box<Diagnosis>),
}

/// The behaviour of a controller towards its devices.
#[derive(Clone, Debug)]
pub struct ControllerSettings {
    /// The versions offered.
    pub versions: VersionSet,
    /// The application, which reacts to packet-ins.
    pub application: Application,
}

impl ControllerSettings {
    /// Returns a configuration with this version only and without an application.
    #[must_use]
    pub const fn silent(version: Version) -> Self {
        Self {
            versions: VersionSet::only(version),
            application: Application::Silent,
        }
    }
}

/// A connected device.
#[derive(Debug)]
pub struct Controller {
    orders: SyncSender<Order>,
    /// A byte written to this socket wakes the session.
    waker: UnixStream,
    board: Arc<Board>,
    features: SwitchFeatures,
    version: Version,
    clock: Clock,
}

impl Controller {
    /// Connects to a device that listens at this path.
    ///
    /// # Errors
    /// The connection is refused, or the negotiation fails.
    pub fn call(
        path: &Path,
        settings: ControllerSettings,
        clock: &Clock,
    ) -> Result<Self, ControllerError> {
        Self::start(ControlStream::connect(path)?, settings, clock)
    }

    /// Negotiates the version with the device at the other end, and requests its features.
    ///
    /// # Errors
    /// The negotiation fails, or the device does not answer.
    pub fn start(
        stream: ControlStream,
        settings: ControllerSettings,
        clock: &Clock,
    ) -> Result<Self, ControllerError> {
        let mut link = Link::over(stream, settings.versions, clock)?;
        let features = link.features()?;
        let version = link.version().expect("the version is negotiated");
        let board = Arc::new(Board::new(&link, features.datapath_id));
        let (orders, inbox) = mpsc::sync_channel(ORDERS_MAX);
        let start = || -> io::Result<UnixStream> {
            let (waker, wakeup) = UnixStream::pair()?;
            waker.set_nonblocking(true)?;
            wakeup.set_nonblocking(true)?;
            let board = Arc::clone(&board);
            let session = Session::new(link, wakeup, inbox, board, settings.application);
            thread::Builder::new()
                .name("controller".to_owned())
                .spawn(move || session.run())?;
            Ok(waker)
        };
        let waker = start().map_err(Failure::to("start a controller session"))?;
        Ok(Self {
            orders,
            waker,
            board,
            features,
            version,
            clock: *clock,
        })
    }

    /// Returns the datapath id of the device.
    #[must_use]
    pub const fn datapath_id(&self) -> DatapathId {
        self.features.datapath_id
    }

    /// Replaces all rules of the device by `rules`, with counters at zero. They are in effect on
    /// return, as far as the device's barrier is reliable.
    ///
    /// # Errors
    /// The device refuses a rule, does not answer, or is disconnected.
    pub fn install(&self, rules: &[FlowMod]) -> Result<(), ControllerError> {
        let clear = requests::delete_all();
        let messages = [&clear].into_iter().chain(rules);
        let messages = messages.cloned().map(Message::FlowMod).collect();
        self.transact("a rule", messages).map(drop)
    }

    /// Waits for a barrier, which proves that the connection is up.
    ///
    /// # Errors
    /// The device does not answer, or is disconnected.
    pub fn check_connection(&self) -> Result<(), ControllerError> {
        self.attempt(Vec::new()).map(drop)
    }

    /// Returns the packet counts of the rules.
    ///
    /// # Errors
    /// The device refuses, does not answer, or is disconnected.
    pub fn counts(&self) -> Result<Counts, ControllerError> {
        let flows = (&mut &*self).flows(flow::FlowStatsRequest::all())?;
        Ok(flows
            .into_iter()
            .map(|flow| (flow.cookie, flow.packets))
            .collect())
    }

    /// Returns the number of packet-ins since the device connected.
    #[must_use]
    pub fn packet_ins(&self) -> u64 {
        self.board.tally().received(IncomingKind::PacketIn)
    }

    /// Returns the message counters of the connection.
    #[must_use]
    pub fn tally(&self) -> Tally {
        self.board.tally()
    }

    /// Returns the unsolicited messages since the last call, the oldest first.
    #[must_use]
    pub fn events(&self) -> Vec<Event> {
        self.board.events()
    }

    /// Returns the number of unsolicited messages that were not stored.
    #[must_use]
    pub fn events_lost(&self) -> u64 {
        self.board.events_lost()
    }

    /// Returns the bytes that the device has not received yet.
    #[must_use]
    pub fn backlog(&self) -> Backlog {
        self.board.backlog()
    }

    /// Returns the state of the connection in words.
    #[must_use]
    pub fn diagnosis(&self) -> Diagnosis {
        self.board.diagnosis(self.version, self.clock.now())
    }

    /// Sends `messages` and a barrier, and returns the answers received before its reply.
    pub(crate) fn transact(
        &self,
        request: &'static str,
        messages: Vec<Message>,
    ) -> Result<Vec<Message>, ControllerError> {
        let done = self.attempt(messages)?.all_done(request)?;
        Ok(done.answers.into_iter().map(|one| one.message).collect())
    }

    /// Sends `messages` and a barrier, and returns the result.
    fn attempt(&self, messages: Vec<Message>) -> Result<RequestOutcome, ControllerError> {
        let (reply, answer) = mpsc::channel();
        self.order(Order::Request(Request { messages, reply }))?;
        self.await_answer(&answer)?
    }

    /// Lends the connection to a caller that must not wait for another thread. All other requests
    /// wait until the loan is dropped.
    ///
    /// # Errors
    /// The connection is closed, or another caller holds it for longer than ten seconds.
    pub fn lend(&self) -> Result<LinkLoan, ControllerError> {
        let (reply, answer) = mpsc::channel();
        self.order(Order::Lend(reply))?;
        self.await_answer(&answer)
    }

    fn over(&self) -> ControllerError {
        ControllerError::Down(self.board.end())
    }

    fn order(&self, order: Order) -> Result<(), ControllerError> {
        self.orders.send(order).map_err(|_| self.over())?;
        match (&self.waker).write_all(&[0]) {
            // The socket is full of wake-ups: the session will wake.
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(self.over()),
            _ => Ok(()),
        }
    }

    fn await_answer<T>(&self, answer: &Receiver<T>) -> Result<T, ControllerError> {
        match answer.recv_timeout(ANSWER) {
            Ok(outcome) => Ok(outcome),
            Err(RecvTimeoutError::Timeout) => {
                Err(ControllerError::Silent(Box::new(self.diagnosis())))
            }
            Err(RecvTimeoutError::Disconnected) => Err(self.over()),
        }
    }
}

impl DeviceRequests for &Controller {
    fn version(&self) -> Version {
        self.version
    }

    fn request(&mut self, messages: Vec<Message>) -> Result<RequestOutcome, ControllerError> {
        self.attempt(messages)
    }
}

#[cfg(test)]
mod tests;
