//! The queue from the control thread to one connection, and the flow-control credit of the
//! connection's requests.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use base::{MemoryShare, Xid};
use flow::Refusal;
use openflow::{BoxedMessage, Excerpt, Message, ReceivedMessage};
use switch::dump::Dump;
use switch::monitors;
use tokio::sync::{Notify, OwnedSemaphorePermit, mpsc};

/// The limit of unanswered requests of one connection, in bytes of memory. A flow-mod of up to 256
/// bytes is charged that many, so a burst of a thousand remains one burst.
pub(crate) const IN_FLIGHT_MAX: u32 = 256 * 1024;

/// The limit of queued asynchronous messages (packet-in, port-status, flow-removed) of one
/// connection; further ones are dropped and counted.
const ASYNC_QUEUE_MAX: usize = 1024;

/// The limit of bytes of frames in these messages: a hundred of the longest, or a thousand of the
/// size of an Ethernet frame.
const ASYNC_BYTES_MAX: usize = 8 << 20;

/// Returns the bytes of the frame in an asynchronous message.
const fn frame_bytes(message: &Message) -> usize {
    match message {
        Message::PacketIn(packet_in) => packet_in.data.len(),
        _ => 0,
    }
}

/// A message from the control thread to a peer.
pub(crate) enum Outgoing {
    /// A reply.
    Reply(Xid, Box<Message>),
    /// An error message for the request that begins with the excerpt.
    Refusal(Xid, Refusal, Excerpt),
    /// Rules, encoded in parts at the pace of the peer.
    Dump(Xid, Box<Dump>),
    /// An asynchronous message.
    Async(Arc<Message>),
    /// The notice that the flow monitors are paused; the bridge is notified when the peer has read
    /// it.
    Paused(Box<Message>),
}

/// Flow-control credit that a request holds until it is answered: of its connection, and as much of
/// the memory of all connections.
pub(crate) struct Credit {
    permit: OwnedSemaphorePermit,
    share: MemoryShare,
}

impl Credit {
    /// Joins the credit of a connection and an equal share of the memory.
    pub(crate) const fn new(permit: OwnedSemaphorePermit, share: MemoryShare) -> Self {
        Self { permit, share }
    }

    /// Takes a part of the credit; `None` if there is less.
    pub(crate) fn split(&mut self, amount: usize) -> Option<Self> {
        let share = self.share.split(amount)?;
        let permit = self.permit.split(amount)?;
        Some(Self { permit, share })
    }

    /// Adds credit of the same connection.
    pub(crate) fn merge(&mut self, other: Self) {
        self.permit.merge(other.permit);
        self.share.merge(other.share);
    }
}

/// The length up to which a message takes the least credit: that of ordinary flow-mods, so that a
/// burst of them remains one burst.
const SMALL_LEN: usize = 256;

/// Returns the credit that a message takes: its memory. A multipart request takes all of it: the
/// next request waits until the answer is sent.
pub(crate) fn credit_of(received: Option<&ReceivedMessage>) -> u32 {
    const ALL: u32 = IN_FLIGHT_MAX;
    let Some(received) = received else {
        return 256;
    };
    let length = received.excerpt.as_bytes().len();
    let memory = match &received.message {
        Message::MultipartRequest(_) => return ALL,
        // The bytes of the frame are kept twice, and are not actions.
        Message::PacketOut(message) => {
            let rest = length.saturating_sub(message.data.len());
            2 * message.data.len() + ReceivedMessage::memory_of(rest)
        }
        _ => ReceivedMessage::memory_of(length),
    };
    match length <= SMALL_LEN {
        true => 256,
        false => u32::try_from(memory).unwrap_or(ALL).min(ALL),
    }
}

/// Processed messages on their way back to the reader, which reuses their memory. The reader never
/// waits for them, and there are no more of them than messages in flight.
#[derive(Clone, Default)]
pub(crate) struct MessageRecycler(Arc<Mutex<Vec<BoxedMessage>>>);

impl MessageRecycler {
    fn put(&self, mut messages: Vec<BoxedMessage>) {
        self.lock().append(&mut messages);
    }

    /// Returns the messages whose memory is free.
    pub(crate) fn take(&self) -> Vec<BoxedMessage> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<BoxedMessage>> {
        self.0.lock().expect("nothing panics that holds it")
    }
}

/// The control thread's end of a connection.
#[derive(Clone)]
pub(crate) struct Outbox {
    queue: mpsc::UnboundedSender<(Outgoing, Option<Credit>)>,
    async_queued: Arc<AtomicUsize>,
    /// Bytes of the frames in queued asynchronous messages.
    async_bytes: Arc<AtomicUsize>,
    /// Rule changes for flow monitors that are not sent yet.
    changes: Arc<AtomicUsize>,
    recycler: MessageRecycler,
    /// Ends the connection, even if the peer reads nothing.
    end: Arc<Notify>,
}

/// The connection's end of its outbox.
pub(crate) struct OutboxReceiver {
    /// The messages, with the credit of the request that each answers.
    pub(crate) queue: mpsc::UnboundedReceiver<(Outgoing, Option<Credit>)>,
    /// The memory of processed messages.
    pub(crate) recycler: MessageRecycler,
    /// Notified when the connection must end.
    pub(crate) end: Arc<Notify>,
    async_queued: Arc<AtomicUsize>,
    async_bytes: Arc<AtomicUsize>,
    changes: Arc<AtomicUsize>,
}

impl Outbox {
    /// Returns both ends of an empty outbox.
    pub(crate) fn new() -> (Self, OutboxReceiver) {
        let (sender, queue) = mpsc::unbounded_channel();
        let receiver = OutboxReceiver {
            queue,
            recycler: MessageRecycler::default(),
            end: Arc::default(),
            async_queued: Arc::default(),
            async_bytes: Arc::default(),
            changes: Arc::default(),
        };
        let outbox = Self {
            queue: sender,
            async_queued: Arc::clone(&receiver.async_queued),
            async_bytes: Arc::clone(&receiver.async_bytes),
            changes: Arc::clone(&receiver.changes),
            recycler: receiver.recycler.clone(),
            end: Arc::clone(&receiver.end),
        };
        (outbox, receiver)
    }

    /// Ends the connection at once.
    pub(crate) fn leave(&self) {
        self.end.notify_one();
    }

    /// Sends the answer to a request. The request's credit returns when the answer is in the
    /// channel's buffer, so answers are bounded like requests.
    pub(crate) fn answer(&self, answer: Outgoing, credit: Option<Credit>) {
        // A closed connection needs no answer.
        drop(self.queue.send((answer, credit)));
    }

    /// Sends flow-monitor updates. Returns true if the peer is so slow that its monitors must
    /// pause; no update is lost.
    pub(crate) fn update(&self, updates: Box<Dump>) -> bool {
        let more = updates.changes();
        let waiting = self.changes.fetch_add(more, Ordering::Relaxed) + more;
        self.answer(Outgoing::Dump(Xid(0), updates), None);
        waiting > monitors::WAITING_MAX
    }

    /// Returns the memory of processed messages to the reader.
    pub(crate) fn recycle(&self, messages: Vec<BoxedMessage>) {
        self.recycler.put(messages);
    }

    /// Sends an asynchronous message. Returns false if the queue is full.
    pub(crate) fn send_async(&self, message: &Arc<Message>) -> bool {
        let bytes = frame_bytes(message);
        let is_full = self.async_queued.load(Ordering::Relaxed) >= ASYNC_QUEUE_MAX
            || self.async_bytes.load(Ordering::Relaxed) + bytes > ASYNC_BYTES_MAX;
        if is_full {
            return false;
        }
        self.async_queued.fetch_add(1, Ordering::Relaxed);
        self.async_bytes.fetch_add(bytes, Ordering::Relaxed);
        let queued = Outgoing::Async(Arc::clone(message));
        self.queue.send((queued, None)).is_ok()
    }
}

impl OutboxReceiver {
    /// Records that an asynchronous message has been taken from the queue.
    pub(crate) fn record_async(&self, message: &Message) {
        self.async_queued.fetch_sub(1, Ordering::Relaxed);
        self.async_bytes
            .fetch_sub(frame_bytes(message), Ordering::Relaxed);
    }

    /// Records that the updates of a dump are sent, or never will be.
    pub(crate) fn record_changes(&self, dump: &Dump) {
        self.changes.fetch_sub(dump.changes(), Ordering::Relaxed);
    }
}

#[cfg(test)]
#[cfg(not(feature = "model"))]
mod tests {
    use base::{Cookie, MemoryBudget, PortNo, TableId};
    use flow::{PacketIn, PacketInReason, PipelineFields};
    use tokio::sync::Semaphore;

    use super::*;

    fn received(message: Message, length: usize) -> ReceivedMessage {
        ReceivedMessage {
            xid: Xid(7),
            message,
            excerpt: Excerpt::of(&vec![0; length]),
        }
    }

    #[test]
    fn credit_is_the_memory_of_a_message() {
        let credit = |length| credit_of(Some(&received(Message::BarrierRequest, length)));
        assert_eq!((credit(8), credit(SMALL_LEN)), (256, 256));
        // A thousand messages of the longest kind do not fit at once.
        assert!(credit(10_000) >= 70_000);
        assert_eq!(credit(65_535), IN_FLIGHT_MAX);
    }

    #[test]
    fn asynchronous_messages_are_limited_by_bytes() {
        let message = Arc::new(Message::PacketIn(PacketIn {
            reason: PacketInReason::Action,
            table: TableId::FIRST,
            cookie: Cookie::NONE,
            registers: PipelineFields::new(PortNo(1)),
            total_len: 65_000,
            data: vec![0; 65_000],
            userdata: Vec::new(),
            continuation: Vec::new(),
        }));
        let (outbox, mut receiver) = Outbox::new();
        let sent = (0..ASYNC_QUEUE_MAX).filter(|_| outbox.send_async(&message));
        assert_eq!(sent.count(), ASYNC_BYTES_MAX / 65_000);
        let Ok((Outgoing::Async(taken), None)) = receiver.queue.try_recv() else {
            panic!("an asynchronous message");
        };
        receiver.record_async(&taken);
        assert!(outbox.send_async(&message) && !outbox.send_async(&message));
    }

    #[test]
    fn credit_returns_to_connection_and_process() {
        let (semaphore, memory) = (Arc::new(Semaphore::new(100)), MemoryBudget::new(1000));
        let permit = Arc::clone(&semaphore).try_acquire_many_owned(60);
        let share = memory.reserve(60).expect("there is room");
        let mut credit = Credit::new(permit.expect("there are permits"), share);
        let part = credit.split(20).expect("a part");
        assert!(credit.split(41).is_none());
        drop(credit);
        assert_eq!((semaphore.available_permits(), memory.used()), (80, 20));
        drop(part);
        assert_eq!((semaphore.available_permits(), memory.used()), (100, 0));
    }
}
