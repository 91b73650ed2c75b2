//! The inbox of the control thread: a queue and a wake-up. Each producer bounds its own share of
//! the queue (bytes in flight of a connection, slots of a worker's ring, changes of an interface).

use std::sync::Arc;

use base::sync::mpsc;
use base::sync::thread::Thread;
use openflow::{BoxedMessage, Version};
use tokio::sync::oneshot;

use super::facts::Facts;
use super::outbox::{Credit, Outbox};
use super::purpose::Purpose;
use super::reaper::Garbage;
use super::telemetry_snapshot::TelemetrySnapshot;
use config::Config;
use dataplane::program::BridgeId;
use switch::connection::ConnectionId;
use switch::link::LinkEvent;
use switch::trace::TraceSideEffect;
use switch::underlay::KernelTables;

/// An event for the control thread.
pub(crate) enum Input {
    /// A controller or tool has sent its hello.
    Up {
        /// The connection.
        id: ConnectionId,
        /// Bridge and kind of the connection.
        purpose: Purpose,
        /// The negotiated version.
        version: Version,
        /// The connection's queue.
        outbox: Outbox,
    },
    /// A controller could not be reached, or its connection was lost.
    Missed {
        /// The bridge that connects to it.
        bridge: Arc<str>,
        /// The controller's URI.
        uri: String,
        /// The reason.
        problem: String,
    },
    /// Messages of a peer, and the credit that they hold until they are handled.
    Messages(ConnectionId, Vec<BoxedMessage>, Credit),
    /// A peer sent a malformed message; the channel has answered it.
    Refused,
    /// A peer has read the notice that its monitors are paused, and everything before it.
    Drained(ConnectionId),
    /// A connection has ended.
    Down(ConnectionId),
    /// A large structure to be freed.
    Garbage(Garbage),
    /// A change of an interface.
    Link(LinkEvent),
    /// The kernel's routes, addresses and neighbours.
    Underlay(Box<KernelTables>),
    /// A command from the control socket.
    CommandRequest(CommandRequest),
    /// A forwarding-database entry from a trace that was run with side effects.
    Learned(BridgeId, TraceSideEffect),
    /// Applies this configuration as far as possible, then notifies the sender.
    Configure(Box<Config>, oneshot::Sender<()>),
    /// Requests the state of the bridges.
    Facts(oneshot::Sender<Facts>),
    /// Requests the telemetry of the switch.
    Telemetry(oneshot::Sender<TelemetrySnapshot>),
    /// Reads the configuration file again.
    Reload,
    /// Ends the switch.
    Stop,
}

/// A command for the control thread.
pub(crate) struct CommandRequest {
    /// The command's name.
    pub(crate) command: String,
    /// Its arguments.
    pub(crate) arguments: Vec<String>,
    /// The format of the answer, for commands that have both.
    pub(crate) format: OutputFormat,
    /// Receives the answer, or an error of one line.
    pub(crate) answer: oneshot::Sender<Result<CommandReply, String>>,
}

/// The format of answers on a connection of the control socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum OutputFormat {
    /// Text.
    #[default]
    Text,
    /// JSON; the text within a JSON object for commands without a JSON form.
    Json,
}

/// The answer of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CommandReply {
    /// Text.
    Text(String),
    /// The JSON form of the answer.
    Json(serde_json::Value),
}

/// The sending end; any thread may own one.
#[derive(Clone)]
pub(crate) struct Inbox {
    queue: mpsc::Sender<Input>,
    control: Thread,
}

impl Inbox {
    /// Returns an inbox for the thread `control`, and its receiving end.
    pub(crate) fn new(control: Thread) -> (Self, mpsc::Receiver<Input>) {
        let (queue, inputs) = mpsc::channel();
        (Self { queue, control }, inputs)
    }

    /// Queues `input` and wakes the control thread. After its end, the input is dropped.
    pub(crate) fn send(&self, input: Input) {
        if self.queue.send(input).is_ok() {
            self.control.unpark();
        }
    }

    /// Wakes the control thread without an input: a worker's ring has events.
    pub(crate) fn wake(&self) {
        self.control.unpark();
    }
}
