//! The lab's own controller: OpenFlow 1.0 over a Unix socket that the device calls.
//!
//! It installs rules, waits for the barrier, reads counters, and says nothing
//! while a test runs: a thread sleeps on the socket, answers the device's echo
//! requests, and counts the frames that the device sends up, of which there
//! should be none. It learns nothing and decides nothing.

mod session;

use std::io::{self, ErrorKind, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use base::{Cookie, TableId};
use flow::{FlowMod, FlowModCommand, FlowStatsRequest, Instructions, Match};
use openflow::{Form, Message, MultipartReply, MultipartRequest};
use testbed::{Clock, Failure};

use session::{Order, Session};

/// How long a device may take over a request and the barrier behind it.
const ANSWER: Duration = Duration::from_secs(10);

/// What a device's rules have counted: frames, by the rule's mark.
pub(crate) type Counts = Vec<(Cookie, u64)>;

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
        /// The error's numbers.
        fault: String,
    },
    /// The device does not answer.
    #[error("the device did not answer within {} s", ANSWER.as_secs())]
    Silent,
}

/// A socket where a device may call.
pub(crate) struct Listener {
    socket: UnixListener,
    path: PathBuf,
}

impl Listener {
    /// Listens at `path`, in place of whatever an earlier run left there.
    pub(crate) fn bind(path: &Path) -> Result<Self, ControllerError> {
        let failure = || Failure::to(format!("listen at {}", path.display()));
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(failure()(error).into());
            }
            _ => {}
        }
        let socket = UnixListener::bind(path).map_err(failure())?;
        socket.set_nonblocking(true).map_err(failure())?;
        Ok(Self {
            socket,
            path: path.to_owned(),
        })
    }

    /// Waits for the device's call and agrees with it on OpenFlow 1.0. `alive` says
    /// whether it is worth waiting.
    pub(crate) fn accept(
        self,
        clock: &Clock,
        limit: Duration,
        mut alive: impl FnMut() -> Result<(), Failure>,
    ) -> Result<Controller, ControllerError> {
        let failure = || Failure::to("accept the device's call");
        let stream = clock.wait_for("the device to call its controller", limit, || {
            alive()?;
            match self.socket.accept() {
                Ok((stream, _)) => Ok(Some(stream)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
                Err(error) => Err(failure()(error)),
            }
        })?;
        let controller = Controller::start(stream, *clock).map_err(failure())?;
        controller.transact("a barrier", Vec::new())?;
        Ok(controller)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Somebody else may have tidied up.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A connected device.
pub(crate) struct Controller {
    orders: Sender<Order>,
    /// A byte written here wakes the session.
    bell: UnixStream,
    packet_ins: Arc<AtomicU64>,
}

impl Controller {
    fn start(stream: UnixStream, clock: Clock) -> io::Result<Self> {
        let (bell, rung) = UnixStream::pair()?;
        let (orders, inbox) = mpsc::channel();
        let packet_ins = Arc::new(AtomicU64::new(0));
        let session = Session::new(stream, rung, inbox, Arc::clone(&packet_ins), clock)?;
        thread::Builder::new()
            .name("controller".to_owned())
            .spawn(move || session.run())?;
        Ok(Self {
            orders,
            bell,
            packet_ins,
        })
    }

    /// Leaves the device with `rules` and no others, their counters at zero, in
    /// force when this returns as far as its barrier can be trusted.
    pub(crate) fn install(&self, rules: &[FlowMod]) -> Result<(), ControllerError> {
        let mut clear = FlowMod::new(
            FlowModCommand::Delete,
            0,
            Match::any(),
            Instructions::default(),
        );
        clear.table = TableId::ALL;
        let messages = [&clear].into_iter().chain(rules);
        let messages = messages.cloned().map(Message::FlowMod).collect();
        self.transact("a rule", messages).map(drop)
    }

    /// What the rules have counted.
    pub(crate) fn counts(&self) -> Result<Counts, ControllerError> {
        let all = FlowStatsRequest::all();
        let request = MultipartRequest::Flow(Form::Standard, all);
        let request = Message::MultipartRequest(request);
        let replies = self.transact("flow statistics", vec![request])?;
        let flows = replies.into_iter().filter_map(|message| match message {
            Message::MultipartReply {
                reply: MultipartReply::Flow(_, flows),
                ..
            } => Some(flows),
            _ => None,
        });
        Ok(flows
            .flatten()
            .map(|flow| (flow.cookie, flow.packets))
            .collect())
    }

    /// How many frames the device has sent up since it called.
    pub(crate) fn packet_ins(&self) -> u64 {
        self.packet_ins.load(Ordering::Relaxed)
    }

    /// Sends `messages` and a barrier, and hands back what came before its reply.
    fn transact(
        &self,
        request: &'static str,
        messages: Vec<Message>,
    ) -> Result<Vec<Message>, ControllerError> {
        let (reply, answer) = mpsc::channel();
        let order = Order {
            request,
            messages,
            reply,
        };
        let over = || ControllerError::Down("its session has ended".to_owned());
        self.orders.send(order).map_err(|_| over())?;
        (&self.bell).write_all(&[0]).map_err(|_| over())?;
        match answer.recv_timeout(ANSWER) {
            Ok(outcome) => outcome,
            Err(mpsc::RecvTimeoutError::Timeout) => Err(ControllerError::Silent),
            Err(mpsc::RecvTimeoutError::Disconnected) => Err(over()),
        }
    }
}

#[cfg(test)]
mod tests;
