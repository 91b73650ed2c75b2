//! The way to the control thread: a queue and a nudge. What fills the queue is
//! bounded where it comes from (bytes in flight of a connection, slots of a
//! worker's ring, changes of an interface).

use std::sync::Arc;

use base::sync::mpsc;
use base::sync::thread::Thread;
use openflow::{BoxedMessage, Version};
use tokio::sync::oneshot;

use super::connection::{Outbox, Purpose, Room};
use super::control::Gathered;
use super::reaper::Remains;
use super::unixctl::Question;
use crate::facts::Facts;
use config::Config;
use dataplane::program::BridgeId;
use switch::connection::ConnectionId;
use switch::link::LinkEvent;
use switch::trace::TraceSideEffect;
use switch::underlay::KernelTables;

/// What the control thread is told.
pub(crate) enum Input {
    /// A controller or tool has said hello.
    Up {
        /// The connection.
        id: ConnectionId,
        /// What it is for.
        purpose: Purpose,
        /// What it speaks.
        version: Version,
        /// The way to it.
        outbox: Outbox,
    },
    /// A controller is not there, or no longer.
    Missed {
        /// The bridge that goes to it.
        bridge: Arc<str>,
        /// Where.
        uri: String,
        /// Why.
        problem: String,
    },
    /// Messages from it, and the room that they take together until they are handled.
    Messages(ConnectionId, Vec<BoxedMessage>, Room),
    /// It sent something that could not be understood, and was told so.
    Refused,
    /// It has read that its monitors are paused, and all that was sent before.
    Drained(ConnectionId),
    /// It is gone.
    Down(ConnectionId),
    /// Something large that nobody needs any more.
    Remains(Remains),
    /// News of interfaces.
    Link(LinkEvent),
    /// The kernel's routes, addresses and neighbours.
    Underlay(Box<KernelTables>),
    /// A question at the control socket.
    Question(Question),
    /// What a bridge is to learn of a frame that somebody had told, and meant to have it learned.
    Learned(BridgeId, TraceSideEffect),
    /// Go over to this configuration as far as that can be done, and say when it is.
    Configure(Box<Config>, oneshot::Sender<()>),
    /// Say how things are.
    Facts(oneshot::Sender<Facts>),
    /// Say how the switch is to those who watch it.
    Telemetry(oneshot::Sender<Gathered>),
    /// Read the configuration file again.
    Reload,
    /// End.
    Stop,
}

/// The sending end; any thread may have one.
#[derive(Clone)]
pub(crate) struct Inbox {
    queue: mpsc::Sender<Input>,
    control: Thread,
}

impl Inbox {
    /// An inbox for the thread `control`, and its reading end.
    pub(crate) fn new(control: Thread) -> (Self, mpsc::Receiver<Input>) {
        let (queue, inputs) = mpsc::channel();
        (Self { queue, control }, inputs)
    }

    /// Puts `input` in and wakes the control thread. After its end nobody listens.
    pub(crate) fn send(&self, input: Input) {
        if self.queue.send(input).is_ok() {
            self.control.unpark();
        }
    }

    /// Wakes the control thread without a word: there is news in a ring.
    pub(crate) fn wake(&self) {
        self.control.unpark();
    }
}
