//! A switch under control with a host at either port, driven by one thread with one clock: messages
//! to and from the device, and frames that enter and leave it.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use base::{Instant, Xid};
use controller::{DeviceRequests, IncomingKind, Link, LinkLoan};
use openflow::{Message, Version, VersionSet};
use testbed::{Clock, Failure, RawSocket};

use crate::setup::TestSetup;
use crate::tools::Tools;
use crate::trial::TrialError;
use crate::{Interrupt, generator};

/// Management socket of a device's bridge, in the device's directory.
const SOCKET: &str = "br0.mgmt";

/// Time limit for a barrier reply.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);

/// Size of the receive buffer in bytes.
const FRAME_MAX: usize = 2048;

/// A message from the device.
#[derive(Clone, Debug)]
pub(in crate::catalogue) struct SwitchMessage {
    pub(in crate::catalogue) kind: IncomingKind,
    /// The transaction number.
    pub(in crate::catalogue) xid: Xid,
    /// Arrival of its last byte.
    pub(in crate::catalogue) at: Instant,
    /// Time at which the request of this reply was written to the socket, if known.
    pub(in crate::catalogue) written: Option<Instant>,
    /// Length in bytes.
    pub(in crate::catalogue) length: usize,
    /// The decoded message; none for kinds that no experiment reads.
    pub(in crate::catalogue) body: Option<Message>,
}

impl SwitchMessage {
    /// Returns the name of the error if the message is one.
    pub(super) fn refusal(&self, version: Version) -> Option<String> {
        match &self.body {
            Some(Message::Error(error)) => Some(match error.code.name(version) {
                Some(name) => format!("{name} ({})", error.code),
                None => error.code.to_string(),
            }),
            _ => None,
        }
    }
}

/// A frame that the server received.
#[derive(Clone, Debug)]
pub(in crate::catalogue) struct ServerFrame {
    /// Time of arrival.
    pub(in crate::catalogue) at: Instant,
    /// The frame, without its checksum.
    pub(in crate::catalogue) bytes: Vec<u8>,
}

/// A switch under control, between two hosts: the client at port 1, the server at port 2.
pub(in crate::catalogue) trait ControlRig {
    /// Returns the version of OpenFlow.
    fn version(&self) -> Version;
    /// Returns the current time.
    fn now(&self) -> Instant;
    /// Queues a message for [`ControlRig::flush`].
    fn queue(&mut self, message: &Message) -> Result<Xid, TrialError>;
    /// Writes queued messages to the socket, as far as it accepts them.
    fn flush(&mut self) -> Result<(), TrialError>;
    /// Returns true if a message can be queued without much waiting.
    fn has_room(&self) -> bool;
    /// Returns the time at which the last byte of a message was written to the socket.
    fn written_at(&self, xid: Xid) -> Option<Instant>;
    /// Returns the next message that has arrived. Never waits.
    fn receive(&mut self) -> Result<Option<SwitchMessage>, TrialError>;
    /// Sends a frame from the client. Returns false if the transmit queue is full.
    fn send(&mut self, frame: &[u8]) -> Result<bool, TrialError>;
    /// Returns the next frame that has arrived at the server. Never waits.
    fn receive_frame(&mut self) -> Result<Option<ServerFrame>, TrialError>;
}

/// Outcome of messages and the barrier after them.
#[derive(Clone, Debug)]
pub(super) struct BatchOutcome {
    /// Time at which the first message was written to the socket.
    pub(super) began: Instant,
    /// Time at which the barrier request was written to the socket.
    pub(super) barrier_sent: Instant,
    /// Arrival of the barrier reply.
    pub(super) answered: Instant,
    /// Errors by the index of the message.
    pub(super) refused: BTreeMap<usize, String>,
}

impl BatchOutcome {
    /// Returns the first error in words.
    pub(super) fn first_refusal(&self) -> Option<String> {
        let (index, words) = self.refused.first_key_value()?;
        let count = self.refused.len();
        Some(match count {
            1 => format!("refused message {}: {words}", index + 1),
            _ => format!(
                "refused {count} messages, the first (message {}): {words}",
                index + 1
            ),
        })
    }
}

/// Messages and a barrier request after them, sent over several turns.
pub(super) struct MessageBatch {
    messages: Vec<Message>,
    sent: Vec<Xid>,
    barrier: Option<Xid>,
    answered: Option<(Instant, Option<Instant>)>,
    began: Option<Instant>,
    refused: BTreeMap<usize, String>,
    deadline: Instant,
}

impl MessageBatch {
    pub(super) fn new(messages: Vec<Message>, now: Instant) -> Self {
        Self {
            messages,
            sent: Vec::new(),
            barrier: None,
            answered: None,
            began: None,
            refused: BTreeMap::new(),
            deadline: now + TIMEOUT,
        }
    }

    /// Sends the next messages that the socket accepts. Call it repeatedly.
    pub(super) fn turn(&mut self, rig: &mut dyn ControlRig) -> Result<(), TrialError> {
        // Few at a time, so that frames are sent meanwhile.
        for _ in 0..SENT_PER_TURN {
            if self.barrier.is_some() || !rig.has_room() {
                break;
            }
            match self.messages.get(self.sent.len()) {
                Some(message) => self.sent.push(rig.queue(message)?),
                None => self.barrier = Some(rig.queue(&Message::BarrierRequest)?),
            }
            self.deadline = rig.now() + TIMEOUT;
        }
        rig.flush()?;
        if self.began.is_none() {
            let first = self.sent.first().copied().or(self.barrier);
            self.began = first.and_then(|xid| rig.written_at(xid));
        }
        if self.answered.is_none() && rig.now() > self.deadline {
            let seconds = TIMEOUT.as_secs();
            let reason = format!("the device did not answer a barrier within {seconds} s");
            return Err(TrialError::Impossible(reason));
        }
        Ok(())
    }

    /// Processes a message of the device. Returns true if it belongs to this batch.
    pub(super) fn process(&mut self, message: &SwitchMessage, version: Version) -> bool {
        if message.kind == IncomingKind::Barrier && self.barrier == Some(message.xid) {
            self.answered = Some((message.at, message.written));
            return true;
        }
        let Some(first) = self.sent.first() else {
            return false;
        };
        let index = usize::try_from(message.xid.0.wrapping_sub(first.0)).unwrap_or(usize::MAX);
        if index >= self.sent.len() {
            return false;
        }
        if let Some(words) = message.refusal(version) {
            self.refused.insert(index, words);
        }
        true
    }

    /// Returns the arrival of the barrier reply.
    pub(super) fn answered(&self) -> Option<Instant> {
        self.answered.map(|(at, _)| at)
    }

    /// Returns true if the device rejected a message so far.
    pub(super) fn is_refused(&self) -> bool {
        !self.refused.is_empty()
    }

    /// Returns the transaction number of the message at this index if it was sent.
    pub(super) fn xid(&self, index: usize) -> Option<Xid> {
        self.sent.get(index).copied()
    }

    /// Returns the outcome after the barrier reply.
    pub(super) fn outcome(&self) -> Option<BatchOutcome> {
        let (answered, written) = self.answered?;
        Some(BatchOutcome {
            began: self.began.unwrap_or(answered),
            barrier_sent: written.unwrap_or(answered),
            answered,
            refused: self.refused.clone(),
        })
    }
}

/// Limit of the messages received in one turn, so that a device that never stops sending does not
/// block the experiment.
pub(super) struct LimitedInbox(usize);

impl Default for LimitedInbox {
    fn default() -> Self {
        Self(RECEIVED_PER_TURN)
    }
}

impl LimitedInbox {
    /// Returns the next message that has arrived, up to the limit.
    pub(super) fn receive(
        &mut self,
        rig: &mut dyn ControlRig,
    ) -> Result<Option<SwitchMessage>, TrialError> {
        if self.0 == 0 {
            return Ok(None);
        }
        self.0 -= 1;
        rig.receive()
    }
}

/// Discards the messages that have arrived, up to the limit. Returns true if there were any.
pub(super) fn discard_messages(rig: &mut dyn ControlRig) -> Result<bool, TrialError> {
    let mut inbox = LimitedInbox::default();
    let mut any = false;
    while inbox.receive(rig)?.is_some() {
        any = true;
    }
    Ok(any)
}

/// Greatest number of messages received in one turn.
const RECEIVED_PER_TURN: usize = 64;

/// Greatest number of messages sent in one turn.
const SENT_PER_TURN: usize = 64;

/// Sends `messages` and a barrier request, and waits for the barrier reply.
pub(super) fn send_batch(
    rig: &mut dyn ControlRig,
    messages: Vec<Message>,
) -> Result<BatchOutcome, TrialError> {
    let mut batch = MessageBatch::new(messages, rig.now());
    loop {
        batch.turn(rig)?;
        let mut inbox = LimitedInbox::default();
        while let Some(message) = inbox.receive(rig)? {
            batch.process(&message, rig.version());
        }
        if let Some(outcome) = batch.outcome() {
            return Ok(outcome);
        }
    }
}

/// The OpenFlow connection of an experiment.
enum RigConnection {
    /// A connection that the experiment opened to a listening device.
    Own(Link),
    /// The connection that the device opened to the controller.
    Lent(LinkLoan),
}

impl RigConnection {
    fn open(setup: &TestSetup, version: Version, clock: &Clock) -> Result<Self, TrialError> {
        let socket = setup.directory.join(SOCKET);
        if socket.exists() {
            let link = Link::call(&socket, VersionSet::only(version), clock)?;
            return Ok(Self::Own(link));
        }
        let Some(controller) = setup.controller() else {
            let reason = "the device has no controller in this mode".to_owned();
            return Err(TrialError::Impossible(reason));
        };
        let lent = controller.lend()?;
        match lent.version() {
            Some(agreed) if agreed == version => Ok(Self::Lent(lent)),
            Some(agreed) => {
                let reason = format!("the device has agreed on {agreed}, not on {version}");
                Err(TrialError::Impossible(reason))
            }
            None => Err(TrialError::Impossible(
                "the device and the controller have agreed on no version".to_owned(),
            )),
        }
    }
}

impl Deref for RigConnection {
    type Target = Link;

    fn deref(&self) -> &Link {
        match self {
            Self::Own(link) => link,
            Self::Lent(lent) => lent,
        }
    }
}

impl DerefMut for RigConnection {
    fn deref_mut(&mut self) -> &mut Link {
        match self {
            Self::Own(link) => link,
            Self::Lent(lent) => lent,
        }
    }
}

/// The device under test of a test setup.
pub(super) struct LiveSwitch<'a> {
    link: RigConnection,
    client: RawSocket,
    server: RawSocket,
    clock: Clock,
    interrupt: &'a Interrupt,
    buffer: Vec<u8>,
}

impl<'a> LiveSwitch<'a> {
    /// Opens a connection to the device of a test setup, and a socket at either host.
    pub(super) fn open(
        setup: &TestSetup,
        version: Version,
        tools: &Tools<'a>,
    ) -> Result<Self, TrialError> {
        let (client, server) = (setup.bench.client(), setup.bench.server());
        Ok(Self {
            link: RigConnection::open(setup, version, tools.clock)?,
            client: client.namespace.raw_sender(client.interface)?,
            server: server.namespace.raw_receiver(server.interface)?,
            clock: *tools.clock,
            interrupt: tools.interrupt,
            buffer: vec![0; FRAME_MAX],
        })
    }

    /// Deletes all rules of the device.
    pub(super) fn clear(&mut self) -> Result<(), TrialError> {
        Ok(self.link.clear()?)
    }
}

impl ControlRig for LiveSwitch<'_> {
    fn version(&self) -> Version {
        DeviceRequests::version(&*self.link)
    }

    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn queue(&mut self, message: &Message) -> Result<Xid, TrialError> {
        Ok(self.link.queue(message)?)
    }

    fn flush(&mut self) -> Result<(), TrialError> {
        Ok(self.link.flush()?)
    }

    fn has_room(&self) -> bool {
        self.link.has_room()
    }

    fn written_at(&self, xid: Xid) -> Option<Instant> {
        self.link.handed_at(xid)
    }

    fn receive(&mut self) -> Result<Option<SwitchMessage>, TrialError> {
        if self.interrupt.is_set() {
            return Err(TrialError::Interrupted);
        }
        if let Some(message) = next(&mut self.link)? {
            return Ok(Some(message));
        }
        self.link.turn()?;
        next(&mut self.link)
    }

    fn send(&mut self, frame: &[u8]) -> Result<bool, TrialError> {
        match self.client.send(&[frame]) {
            Err(error) if generator::is_full(&error) => Ok(false),
            outcome => {
                let taken = outcome.map_err(Failure::to("send a frame"))?;
                Ok(taken > 0)
            }
        }
    }

    fn receive_frame(&mut self) -> Result<Option<ServerFrame>, TrialError> {
        let length = self.server.receive(&mut self.buffer);
        let length = length.map_err(Failure::to("receive a frame"))?;
        Ok(length.map(|length| ServerFrame {
            at: self.clock.now(),
            bytes: self.buffer[..length].to_vec(),
        }))
    }
}

/// Returns the next message of a link. Only kinds that experiments read are decoded, and no long
/// statistics.
fn next(link: &mut Link) -> Result<Option<SwitchMessage>, TrialError> {
    let Some(received) = link.next_message()? else {
        return Ok(None);
    };
    let wanted = match received.kind {
        IncomingKind::Error
        | IncomingKind::PacketIn
        | IncomingKind::FlowRemoved
        | IncomingKind::PortStatus => true,
        IncomingKind::Statistics | IncomingKind::StatisticsPart => {
            received.bytes.len() <= STATISTICS_MAX
        }
        _ => false,
    };
    let message = match wanted {
        true => Some(received.message().map_err(|malformed| {
            let what = received.kind.name();
            TrialError::Impossible(format!("malformed {what} from the device: {malformed}"))
        })?),
        false => None,
    };
    Ok(Some(SwitchMessage {
        kind: received.kind,
        xid: received.xid,
        at: received.arrival.at,
        written: received.handed,
        length: received.bytes.len(),
        body: message,
    }))
}

/// Greatest length in bytes of statistics that are decoded: enough for aggregate statistics.
const STATISTICS_MAX: usize = 256;
