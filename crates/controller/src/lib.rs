//! OpenFlow controller for measurements: versions 1.0 to 1.5 over a Unix socket or TCP; devices
//! connect to it, or it connects to them.
//!
//! It installs rules, waits for barriers and requests statistics. While a test runs it sends
//! nothing by itself unless it has an [`Application`]: a thread waits on the socket, answers echo
//! requests, and stores unsolicited messages with their times. A measurement that must not wait
//! for a thread holds the connection itself ([`Link`]).
//!
//! For every message the time is recorded at which its last byte was handed to the system, and for
//! every answer the time at which its last byte arrived: by TCP as the kernel received it, by a
//! Unix socket as it was read ([`testbed::Stamp`] says which). An error message is a value
//! ([`Refusal`]).
//!
//! Not here: what is measured with it.

pub mod application;
mod ask;
mod conversation;
mod diagnosis;
mod events;
mod exchange;
pub mod learning;
mod link;
mod listener;
mod refusal;
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
pub use ask::{Ask, packet_out};
pub use conversation::{BACKLOG_MAX, Broken, Conversation, Heard, Kind};
pub use diagnosis::{Diagnosis, Movements};
pub use events::Event;
pub use exchange::{Answer, Done};
pub use link::{Backlog, Lent, Link};
pub use listener::Listener;
pub use refusal::{Reason, Refusal};
pub use tally::Tally;

use session::{Board, Order, Request, Session};

/// How long a device may take over a request and the barrier behind it.
const ANSWER: Duration = Duration::from_secs(10);

/// Orders that may wait for a session: whoever gives more waits.
const ORDERS_MAX: usize = 16;

/// What a device's rules have counted: frames, by the rule's mark.
pub type Counts = Vec<(Cookie, u64)>;

/// Why a device could not be controlled.
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    /// The system refused.
    #[error(transparent)]
    Failure(#[from] Failure),
    /// The connection is over.
    #[error("the device's OpenFlow connection is down: {0}")]
    Down(String),
    /// The device refused a request.
    #[error("the device refused {request}: {fault}")]
    Refused {
        /// What was asked.
        request: &'static str,
        /// What was not done, and why.
        fault: Box<Refusal>,
    },
    /// The version that was agreed on has no words for it.
    #[error(transparent)]
    EncodeError(#[from] EncodeError),
    /// The device answers, and not what it was asked.
    #[error("the device did not answer {0}, but answered the barrier behind it")]
    Unanswered(&'static str),
    /// Two devices say that they are the same.
    #[error("two devices called with the same datapath id, {:016x}", .0.0)]
    SameDatapath(DatapathId),
    /// It does not call, or not as a device does.
    #[error(
        "not connected: of the calls to {at} in {waited:.1?} none led to a version; {last}; {program}"
    )]
    NeverCalled {
        /// Where it was to call.
        at: String,
        /// How long it was waited for.
        waited: Duration,
        /// What came of its last call, in words.
        last: String,
        /// How its program is, in words.
        program: String,
    },
    /// The device does not answer.
    #[error("the device did not answer in time: {0}")]
    Silent(Box<Diagnosis>),
}

/// How a controller is to be with its devices.
#[derive(Clone, Debug)]
pub struct Manner {
    /// The versions that it may speak.
    pub versions: VersionSet,
    /// What it does by itself.
    pub application: Application,
}

impl Manner {
    /// One that speaks this version only, and does nothing by itself.
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
    /// A byte written here wakes the session.
    bell: UnixStream,
    board: Arc<Board>,
    features: SwitchFeatures,
    version: Version,
    clock: Clock,
}

impl Controller {
    /// Calls a device that listens at this path.
    ///
    /// # Errors
    /// Nobody listens, or there is no agreement.
    pub fn call(path: &Path, manner: Manner, clock: &Clock) -> Result<Self, ControllerError> {
        Self::start(ControlStream::call(path)?, manner, clock)
    }

    /// Agrees with the device at the other end, and asks who it is.
    ///
    /// # Errors
    /// There is no agreement, or no answer.
    pub fn start(
        stream: ControlStream,
        manner: Manner,
        clock: &Clock,
    ) -> Result<Self, ControllerError> {
        let mut link = Link::over(stream, manner.versions, clock)?;
        let features = link.features()?;
        let version = link.version().expect("it was agreed on");
        let board = Arc::new(Board::new(&link, features.datapath_id));
        let (orders, inbox) = mpsc::sync_channel(ORDERS_MAX);
        let start = || -> io::Result<UnixStream> {
            let (bell, rung) = UnixStream::pair()?;
            bell.set_nonblocking(true)?;
            rung.set_nonblocking(true)?;
            let board = Arc::clone(&board);
            let session = Session::new(link, rung, inbox, board, manner.application);
            thread::Builder::new()
                .name("controller".to_owned())
                .spawn(move || session.run())?;
            Ok(bell)
        };
        let bell = start().map_err(Failure::to("start a controller's session"))?;
        Ok(Self {
            orders,
            bell,
            board,
            features,
            version,
            clock: *clock,
        })
    }

    /// Who the device is.
    #[must_use]
    pub const fn datapath_id(&self) -> DatapathId {
        self.features.datapath_id
    }

    /// Leaves the device with `rules` and no others, their counters at zero, in
    /// force when this returns as far as its barrier can be trusted.
    ///
    /// # Errors
    /// The device refuses one of them, or is silent or gone.
    pub fn install(&self, rules: &[FlowMod]) -> Result<(), ControllerError> {
        let clear = ask::delete_all();
        let messages = [&clear].into_iter().chain(rules);
        let messages = messages.cloned().map(Message::FlowMod).collect();
        self.transact("a rule", messages).map(drop)
    }

    /// Waits for a barrier: that the connection is up.
    ///
    /// # Errors
    /// The device is silent or gone.
    pub fn is_there(&self) -> Result<(), ControllerError> {
        self.attempt(Vec::new()).map(drop)
    }

    /// What the rules have counted.
    ///
    /// # Errors
    /// The device does not tell, or is silent or gone.
    pub fn counts(&self) -> Result<Counts, ControllerError> {
        let flows = (&mut &*self).flows(flow::FlowStatsRequest::all())?;
        Ok(flows
            .into_iter()
            .map(|flow| (flow.cookie, flow.packets))
            .collect())
    }

    /// How many frames the device has sent up since it called.
    #[must_use]
    pub fn packet_ins(&self) -> u64 {
        self.board.tally().heard(Kind::PacketIn)
    }

    /// What came and went so far.
    #[must_use]
    pub fn tally(&self) -> Tally {
        self.board.tally()
    }

    /// What the device told unasked since this was asked last, the oldest first.
    #[must_use]
    pub fn events(&self) -> Vec<Event> {
        self.board.events()
    }

    /// What the device told unasked and there was no room for.
    #[must_use]
    pub fn events_lost(&self) -> u64 {
        self.board.events_lost()
    }

    /// What is on its way to the device.
    #[must_use]
    pub fn backlog(&self) -> Backlog {
        self.board.backlog()
    }

    /// How the device is, in words.
    #[must_use]
    pub fn diagnosis(&self) -> Diagnosis {
        self.board.diagnosis(self.version, self.clock.now())
    }

    /// Sends `messages` and a barrier, and hands back what came before its reply.
    pub(crate) fn transact(
        &self,
        request: &'static str,
        messages: Vec<Message>,
    ) -> Result<Vec<Message>, ControllerError> {
        let done = self.attempt(messages)?.all_done(request)?;
        Ok(done.answers.into_iter().map(|one| one.message).collect())
    }

    /// Sends `messages` and a barrier, and tells what came of them.
    fn attempt(&self, messages: Vec<Message>) -> Result<Done, ControllerError> {
        let (reply, answer) = mpsc::channel();
        self.order(Order::Request(Request { messages, reply }))?;
        self.await_answer(&answer)?
    }

    /// Hands out the connection to whoever must not wait for another thread. Until it is
    /// given back, which it is when it is dropped, all other requests wait.
    ///
    /// # Errors
    /// The connection is over, or somebody has it for longer than ten seconds.
    pub fn lend(&self) -> Result<Lent, ControllerError> {
        let (reply, answer) = mpsc::channel();
        self.order(Order::Lend(reply))?;
        self.await_answer(&answer)
    }

    fn over(&self) -> ControllerError {
        ControllerError::Down(self.board.end())
    }

    fn order(&self, order: Order) -> Result<(), ControllerError> {
        self.orders.send(order).map_err(|_| self.over())?;
        match (&self.bell).write_all(&[0]) {
            // A bell that is rung so often will be heard.
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

impl Ask for &Controller {
    fn version(&self) -> Version {
        self.version
    }

    fn request(&mut self, messages: Vec<Message>) -> Result<Done, ControllerError> {
        self.attempt(messages)
    }
}

#[cfg(test)]
mod tests;
