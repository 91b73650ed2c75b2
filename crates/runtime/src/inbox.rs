//! The inbox of the control thread: two queues and a wake-up. Each producer bounds its own share of
//! its queue (bytes in flight of a connection, slots of a worker's ring, changes of an interface).
//!
//! The inputs of peers that connected to listeners have a queue of their own, and both queues are
//! read in turns. So an input of a configured controller, of the database or of the kernel waits for
//! one input of such a peer at most, however many peers there are.

use std::sync::Arc;

use base::sync::mpsc::{self, TryRecvError};
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
    peers_queue: mpsc::Sender<Input>,
    control: Thread,
}

/// The receiving end.
pub(crate) struct InboxReceiver {
    queue: mpsc::Receiver<Input>,
    peers_queue: mpsc::Receiver<Input>,
    /// True if the queue of peers is read first.
    peers_first: bool,
}

impl InboxReceiver {
    /// Returns the next input. The queues are read in turns while both have inputs.
    pub(crate) fn try_recv(&mut self) -> Result<Input, TryRecvError> {
        let (first, second) = match self.peers_first {
            true => (&self.peers_queue, &self.queue),
            false => (&self.queue, &self.peers_queue),
        };
        self.peers_first = !self.peers_first;
        first.try_recv().or_else(|_| second.try_recv())
    }
}

impl Inbox {
    /// Returns an inbox for the thread `control`, and its receiving end.
    pub(crate) fn new(control: Thread) -> (Self, InboxReceiver) {
        let (queue, inputs) = mpsc::channel();
        let (peers_queue, peers_inputs) = mpsc::channel();
        let receiver = InboxReceiver {
            queue: inputs,
            peers_queue: peers_inputs,
            peers_first: false,
        };
        let inbox = Self {
            queue,
            peers_queue,
            control,
        };
        (inbox, receiver)
    }

    /// Returns the inbox for a peer that connected to a listener: all its inputs have the queue of
    /// peers.
    pub(crate) fn for_peer(&self) -> Self {
        Self {
            queue: self.peers_queue.clone(),
            ..self.clone()
        }
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

#[cfg(test)]
#[cfg(not(feature = "model"))]
mod tests {
    use base::sync::thread;

    use super::*;

    #[test]
    fn input_of_a_controller_waits_for_one_input_of_peers_at_most() {
        let (inbox, mut inputs) = Inbox::new(thread::current());
        let of_peer = inbox.for_peer();
        (0..100).for_each(|id| of_peer.send(Input::Down(ConnectionId(id))));
        assert!(matches!(inputs.try_recv(), Ok(Input::Down(_))));
        inbox.send(Input::Reload);
        inbox.send(Input::Stop);
        let mut received = std::iter::from_fn(|| inputs.try_recv().ok());
        let first: Vec<_> = received.by_ref().take(4).collect();
        let is_of_peer = |input: &Input| matches!(input, Input::Down(_));
        assert_eq!(first.iter().filter(|input| is_of_peer(input)).count(), 2);
        assert_eq!(received.filter(is_of_peer).count(), 97);
    }

    #[test]
    fn inputs_of_one_producer_stay_in_order() {
        let (inbox, mut inputs) = Inbox::new(thread::current());
        let of_peer = inbox.for_peer();
        for id in 0..10 {
            inbox.send(Input::Drained(ConnectionId(id)));
            of_peer.send(Input::Down(ConnectionId(id)));
        }
        let (mut drained, mut down) = (Vec::new(), Vec::new());
        while let Ok(input) = inputs.try_recv() {
            match input {
                Input::Drained(id) => drained.push(id.0),
                Input::Down(id) => down.push(id.0),
                _ => {}
            }
        }
        let expected: Vec<u64> = (0..10).collect();
        assert_eq!((drained, down), (expected.clone(), expected));
    }
}
