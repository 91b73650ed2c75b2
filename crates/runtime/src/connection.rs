//! One connection: a socket, its `Channel`, and the queues to and from the control thread.
//!
//! The task answers requests that the channel can answer by itself, so an echo reply never waits
//! for a flow-mod. It reads no faster than the peer reads its replies. After each piece of work that
//! may be followed by more (a part of a dump, a read that filled a buffer) it yields to the other
//! tasks of the thread.

mod read_buffer;

use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use base::{MemoryBudget, Xid};
use flow::FlowStats;
use openflow::{
    BoxedMessage, Channel, ChannelEvent, ChannelSide, DownReason, FlowFormat, Malformed, Message,
    MultipartReply, Version,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, WriteHalf};
use tokio::sync::{Semaphore, oneshot};
use tokio::task;
use tokio::time::Instant as TokioInstant;

use super::clock::Clock;
use super::inbox::{Inbox, Input};
use super::message_log::{MessageDirection, MessageLog};
use super::outbox::{Credit, IN_FLIGHT_MAX, Outbox, OutboxReceiver, Outgoing, credit_of};
use super::purpose::Purpose;
use super::reaper::LARGE;
use super::snoop::SnoopDecoder;
use super::stream_decoder::StreamDecoder;
use super::streams::push;
use read_buffer::{READ_LEN, ReadBuffer};
use switch::connection::{ConnectionId, ConnectionKind};
use switch::dump::Dump;

/// The time that a peer has to read the last error message before its connection is closed.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// The reason for the end of a connection.
pub(crate) enum Reason {
    /// The peer closed it.
    Closed,
    /// The network or TLS failed.
    Broken(io::Error),
    /// The peer does not read, and too many other peers do not read either.
    Slow,
    /// The channel ended the connection.
    Channel(DownReason),
}

impl Reason {
    /// Returns true if the peer closed the connection, which is no fault.
    pub(crate) const fn is_close(&self) -> bool {
        matches!(self, Self::Closed)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the peer closed the connection"),
            Self::Broken(error) => error.fmt(f),
            Self::Slow => f.write_str(
                "the peer reads its flow-monitor updates too slowly, as do too many others",
            ),
            Self::Channel(reason) => reason.fmt(f),
        }
    }
}

/// The end of a connection.
pub(crate) struct Ending {
    /// The reason.
    pub(crate) reason: Reason,
    /// True if the peer had sent its hello.
    pub(crate) was_up: bool,
}

/// The limits of a connection.
pub(crate) struct ConnectionLimits {
    /// The memory for messages, which all connections share.
    pub(crate) memory: MemoryBudget,
    /// A permit allows a large read buffer.
    pub(crate) large_buffers: Arc<Semaphore>,
}

/// Serves one peer until either side ends the connection, and sends the negotiated version to `up`.
/// If the task is dropped, the control thread is still notified.
pub(crate) async fn serve(
    stream: impl AsyncRead + AsyncWrite,
    id: ConnectionId,
    purpose: Purpose,
    up: Option<oneshot::Sender<Version>>,
    (inbox, clock): (Inbox, Clock),
    limits: ConnectionLimits,
) -> Ending {
    let (outbox, receiver) = Outbox::new();
    let options = purpose.options();
    let snoops = [purpose.snoop_decoder(), purpose.snoop_decoder()];
    let directions = [MessageDirection::Sent, MessageDirection::Received];
    let logs = directions.map(|direction| purpose.message_log(direction));
    let connection = Connection {
        id,
        purpose,
        up,
        channel: Channel::new(ChannelSide::Switch, options, clock.now()),
        inbox,
        clock,
        outbox: Some(outbox),
        receiver,
        snoops,
        logs,
        credit: Arc::new(Semaphore::new(IN_FLIGHT_MAX as usize)),
        memory: limits.memory,
        pending_message: None,
        burst_len: 0,
        refused: 0,
        dump: None,
    };
    let input = ReadBuffer::new(limits.large_buffers);
    connection.run(stream, input).await
}

/// Messages that the control thread receives together.
struct Burst {
    messages: Vec<BoxedMessage>,
    /// The number of messages of the previous burst: the capacity to reserve.
    expected: usize,
    /// The credit that the messages take, and the credit that is available.
    credit: usize,
    credit_max: usize,
}

impl Burst {
    /// Adds a message, or returns it if the credit is exhausted.
    fn take(&mut self, received: BoxedMessage) -> Result<(), BoxedMessage> {
        let credit = self.credit + credit_of(Some(&received)) as usize;
        if credit > self.credit_max {
            return Err(received);
        }
        self.credit = credit;
        if self.messages.is_empty() {
            self.messages.reserve_exact(self.expected);
        }
        self.messages.push(received);
        Ok(())
    }
}

struct Connection {
    id: ConnectionId,
    purpose: Purpose,
    /// Receives the version when the peer has sent its hello.
    up: Option<oneshot::Sender<Version>>,
    channel: Channel,
    inbox: Inbox,
    clock: Clock,
    /// Handed to the control thread when the peer has sent its hello.
    outbox: Option<Outbox>,
    receiver: OutboxReceiver,
    /// The snoop decoders for sent and for received bytes.
    snoops: [Option<SnoopDecoder>; 2],
    /// The logs of sent and of received messages.
    logs: [StreamDecoder<MessageLog>; 2],
    credit: Arc<Semaphore>,
    /// The memory that all connections share.
    memory: MemoryBudget,
    /// A message without credit; nothing is read until it has some.
    pending_message: Option<BoxedMessage>,
    /// The number of messages of the previous burst.
    burst_len: usize,
    /// The number of refused messages.
    refused: u64,
    /// A dump in progress; other answers wait behind it.
    dump: Option<(Xid, Box<Dump>, Option<Credit>)>,
}

impl Connection {
    async fn run(mut self, stream: impl AsyncRead + AsyncWrite, mut input: ReadBuffer) -> Ending {
        let (mut reader, mut writer) = tokio::io::split(stream);
        // True if written bytes may still be in the TLS buffer, not in the socket.
        let mut is_flushing = false;
        let reason = loop {
            if let Some(reason) = self.handle_events() {
                break Reason::Channel(reason);
            }
            if self.continue_dump() {
                task::yield_now().await;
            }
            let can_send = !self.channel.is_congested();
            let timeout = self.channel.next_timeout();
            let timeout = timeout.map(|at| TokioInstant::from_std(self.clock.to_system(at)));
            let pending = self.channel.pending();
            tokio::select! {
                biased;
                sent = push(&mut writer, pending), if !pending.is_empty() || is_flushing => match sent {
                    Ok(count) => {
                        self.handle_sent(count);
                        is_flushing = count > 0;
                    }
                    Err(error) => break Reason::Broken(error),
                },
                answer = self.receiver.queue.recv(), if can_send && self.dump.is_none() => {
                    if let Some((answer, credit)) = answer {
                        self.send(answer, credit);
                    }
                }
                // The credit returns at once: the next burst takes it for this message and the ones
                // behind it.
                () = wait_for_credit(&self.credit, &self.memory, credit_of(self.pending_message.as_deref())),
                    if self.pending_message.is_some() => {}
                count = reader.read(&mut input.bytes), if can_send && self.pending_message.is_none() => match count {
                    Ok(count @ 1..) => {
                        self.handle_read(&mut input, count);
                        if count >= READ_LEN {
                            task::yield_now().await;
                        }
                    }
                    Ok(0) => break Reason::Closed,
                    Err(error) => break Reason::Broken(error),
                },
                () = self.receiver.end.notified() => break Reason::Slow,
                Ok(()) = self.purpose.tuning.changed() => {
                    self.channel.set_echo_interval(self.purpose.options().echo_interval);
                }
                () = sleep_until(timeout) => {
                    self.channel.handle_timeout(self.clock.now());
                    input.shrink();
                    self.release_memory();
                }
            }
        };
        self.flush_pending(&mut writer).await;
        let was_up = self.outbox.is_none();
        Ending { reason, was_up }
    }

    /// Records that `count` bytes were sent.
    fn handle_sent(&mut self, count: usize) {
        let bytes = &self.channel.pending()[..count];
        if let [Some(snoop_decoder), _] = &mut self.snoops {
            snoop_decoder.decode(bytes);
        }
        let [log, _] = &mut self.logs;
        log.decode(bytes);
        self.channel.transmitted(count);
    }

    /// Decodes `count` bytes that were read.
    fn handle_read(&mut self, input: &mut ReadBuffer, count: usize) {
        let bytes = &input.bytes[..count];
        if let [_, Some(snoop_decoder)] = &mut self.snoops {
            snoop_decoder.decode(bytes);
        }
        let [_, log] = &mut self.logs;
        log.decode(bytes);
        self.channel.recycle(self.receiver.recycler.take());
        self.channel.handle_input(bytes, self.clock.now());
        if input.fit(count) {
            self.release_memory();
        }
    }

    /// Forwards decoded messages to the control thread within the credit. Returns the reason if the
    /// channel is down.
    fn handle_events(&mut self) -> Option<DownReason> {
        let mut share = self.memory.reserve_at_most(self.credit.available_permits());
        let mut burst = Burst {
            messages: Vec::new(),
            expected: self.burst_len,
            credit: 0,
            credit_max: share.bytes(),
        };
        let over = self.poll_events(&mut burst);
        if !burst.messages.is_empty() {
            self.burst_len = burst.messages.len();
            let share = share.split(burst.credit).expect("a burst fits its share");
            let credit = u32::try_from(burst.credit).expect("it is no more than there is");
            let credit = Arc::clone(&self.credit).try_acquire_many_owned(credit);
            let credit = credit.expect("no other task takes of it");
            let credit = Credit::new(credit, share);
            self.inbox
                .send(Input::Messages(self.id, burst.messages, credit));
        }
        over
    }

    /// Takes the channel's events and collects messages into `burst` within the credit.
    fn poll_events(&mut self, burst: &mut Burst) -> Option<DownReason> {
        self.pending_message = self
            .pending_message
            .take()
            .and_then(|pending_message| burst.take(pending_message).err());
        while self.pending_message.is_none() {
            match self.channel.poll_event()? {
                ChannelEvent::Up(version) => self.handle_hello(version),
                ChannelEvent::Received(received) => {
                    self.pending_message = burst.take(received).err()
                }
                ChannelEvent::Refused(malformed) => self.handle_refused(malformed),
                ChannelEvent::Down(reason) => return Some(reason),
            }
        }
        None
    }

    /// Counts and logs a message that the channel has refused. A controller's are warnings, each
    /// doubling of their number; a tool prints the error itself.
    fn handle_refused(&mut self, malformed: Malformed) {
        self.refused += 1;
        let (bridge, target) = (&*self.purpose.bridge, self.purpose.uri.as_deref());
        let (fault, at, refused) = (malformed.refusal, malformed.at, self.refused);
        let is_controller = self.purpose.kind != ConnectionKind::Service;
        match is_controller && refused.is_power_of_two() {
            true => tracing::warn!(bridge, target, %fault, at, refused, "message refused"),
            false => tracing::debug!(bridge, target, %fault, at, refused, "message refused"),
        }
        self.inbox.send(Input::Refused);
    }

    /// Frees the memory that was reserved for a burst.
    fn release_memory(&mut self) {
        drop(self.receiver.recycler.take());
        self.channel.release_spare();
    }

    fn handle_hello(&mut self, version: Version) {
        if let Some(up) = self.up.take() {
            // The receiver may have stopped waiting.
            let _ = up.send(version);
        }
        if let Some(outbox) = self.outbox.take() {
            if self.purpose.kind == ConnectionKind::Primary {
                let (bridge, target) = (&*self.purpose.bridge, self.purpose.uri.as_deref());
                tracing::info!(bridge, target, %version, "controller connected");
            }
            self.inbox.send(Input::Up {
                id: self.id,
                purpose: self.purpose.clone(),
                version,
                outbox,
            });
        }
    }

    fn send(&mut self, answer: Outgoing, credit: Option<Credit>) {
        match answer {
            Outgoing::Reply(xid, message) => self.send_message(xid, &message),
            Outgoing::Refusal(xid, refusal, excerpt) => self.channel.refuse(xid, refusal, &excerpt),
            Outgoing::Dump(xid, dump) => self.dump = Some((xid, dump, credit)),
            Outgoing::Async(message) => {
                self.receiver.record_async(&message);
                self.send_message(Xid(0), &message);
            }
            Outgoing::Paused(message) => {
                self.send_message(Xid(0), &message);
                self.inbox.send(Input::Drained(self.id));
            }
        }
    }

    fn send_message(&mut self, xid: Xid, message: &Message) {
        let Err(inexpressible) = self.channel.send(xid, message) else {
            return;
        };
        match message {
            Message::MultipartReply {
                reply: MultipartReply::Flow(form, flows),
                more,
            } => self.send_flows(xid, (*form, flows), *more),
            _ => tracing::debug!(%inexpressible, "message not sent"),
        }
    }

    /// Sends rules one by one, because the version cannot express one of them: in OpenFlow 1.0 its
    /// actions may be longer than a message. The peer receives the others, as from Open vSwitch.
    fn send_flows(&mut self, xid: Xid, (form, flows): (FlowFormat, &[FlowStats]), more: bool) {
        let reply = |flows| MultipartReply::Flow(form, flows);
        for flow in flows {
            let alone = Message::MultipartReply {
                reply: reply(vec![flow.clone()]),
                more: true,
            };
            if let Err(inexpressible) = self.channel.send(xid, &alone) {
                tracing::warn!(
                    target: "ofp_flow",
                    reason = %inexpressible,
                    "Flow exceeded the maximum flow statistics reply size and was excluded from \
                     the response set"
                );
            }
        }
        let end = Message::MultipartReply {
            reply: reply(Vec::new()),
            more,
        };
        let sent = self.channel.send(xid, &end);
        debug_assert!(sent.is_ok(), "every version has an empty reply: {sent:?}");
    }

    /// Encodes the next part of a dump, if the channel has room. Returns true if it did.
    fn continue_dump(&mut self) -> bool {
        if self.channel.is_congested() {
            return false;
        }
        let Some((xid, mut dump, credit)) = self.dump.take() else {
            return false;
        };
        let Some(part) = dump.next_part(self.clock.now()) else {
            self.end_dump(dump);
            return false;
        };
        self.send_message(xid, &part);
        self.dump = Some((xid, dump, credit));
        true
    }

    /// Drops a dump. A large one is freed by the reaper, because it may hold the last references to
    /// its rules.
    fn end_dump(&self, dump: Box<Dump>) {
        self.receiver.record_changes(&dump);
        if dump.rules_max() >= LARGE {
            self.inbox.send(Input::Garbage(dump));
        }
    }

    /// Sends the pending bytes, such as an error message, if the peer reads them.
    async fn flush_pending<S: AsyncWrite>(&self, writer: &mut WriteHalf<S>) {
        let sending = async {
            writer.write_all(self.channel.pending()).await?;
            writer.shutdown().await
        };
        // A failure has no consequence: the connection ends.
        drop(tokio::time::timeout(FLUSH_TIMEOUT, sending).await);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some((_, dump, _)) = self.dump.take() {
            self.end_dump(dump);
        }
        if self.outbox.is_none() {
            self.inbox.send(Input::Down(self.id));
        }
    }
}

/// The pause between two looks at the memory of all connections while it is exhausted.
const MEMORY_RETRY: Duration = Duration::from_millis(50);

/// Waits until a message has credit of its connection and of the memory of all connections.
async fn wait_for_credit(credit: &Arc<Semaphore>, memory: &MemoryBudget, amount: u32) {
    drop(Arc::clone(credit).acquire_many_owned(amount).await);
    while !memory.has_room(amount as usize) {
        tokio::time::sleep(MEMORY_RETRY).await;
    }
}

async fn sleep_until(timeout: Option<TokioInstant>) {
    match timeout {
        Some(timeout) => tokio::time::sleep_until(timeout).await,
        None => std::future::pending().await,
    }
}
