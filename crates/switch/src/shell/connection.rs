//! One connection: a socket, its `Channel`, and the way to and from the control
//! thread. It answers what the channel can answer by itself, so an echo reply
//! never waits for a rule, and it reads no faster than its peer does.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use openflow::{Channel, DownReason, Event, Excerpt, Message, Options, Received, Side};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::clock::Clock;
use super::dump::Dump;
use super::inbox::{Inbox, Input};
use crate::core::ConnectionId;
use crate::core::connection::Kind;
use base::Xid;
use flow::Refusal;

/// Bytes read from a socket at once.
const READ_LEN: usize = 8 * 1024;

/// Bytes waiting for the peer to read before nothing more is taken from it or
/// for it. More than one message, so that a fast reader is never starved.
const BACKLOG_MAX: usize = 256 * 1024;

/// Bytes of messages of one connection that the control thread has not handled
/// yet. A flow-mod has some hundred bytes, so bursts stay bursts.
const IN_FLIGHT_MAX: usize = 256 * 1024;

/// Messages sent unasked (packet-in, port-status, flow-removed) that may wait
/// for a connection; further ones are dropped and counted.
const UNASKED_MAX: usize = 1024;

/// What the control thread sends to a peer.
pub(crate) enum Outgoing {
    /// A reply.
    Reply(Xid, Box<Message>),
    /// A refusal of the message with this beginning.
    Refusal(Xid, Refusal, Excerpt),
    /// Flow statistics, to be read from a snapshot as the peer reads.
    Dump(Xid, Box<Dump>),
    /// Something it did not ask for.
    Unasked(Arc<Message>),
    /// The end of the connection.
    Close,
}

/// The control thread's end of the way to a peer.
#[derive(Clone)]
pub(crate) struct Outbox {
    queue: mpsc::UnboundedSender<(Outgoing, Option<OwnedSemaphorePermit>)>,
    unasked: Arc<AtomicUsize>,
}

impl Outbox {
    /// Sends the answer to a request. The request's `room` is given back when
    /// the answer has been written, so that answers are bounded as requests are.
    pub(crate) fn answer(&self, answer: Outgoing, room: Option<OwnedSemaphorePermit>) {
        // A peer that is gone needs no answer.
        drop(self.queue.send((answer, room)));
    }

    /// Sends something unasked. Tells whether there was room for it.
    pub(crate) fn tell(&self, message: &Arc<Message>) -> bool {
        if self.unasked.load(Ordering::Relaxed) >= UNASKED_MAX {
            return false;
        }
        self.unasked.fetch_add(1, Ordering::Relaxed);
        self.queue.send((Outgoing::Unasked(Arc::clone(message)), None)).is_ok()
    }
}

/// What a connection is for.
#[derive(Clone)]
pub(crate) struct Purpose {
    /// Its bridge, by name.
    pub(crate) bridge: String,
    /// What the peer is to the bridge.
    pub(crate) kind: Kind,
}

/// Serves one peer until either side ends it. Returns why, and whether the
/// peer ever said hello.
pub(crate) async fn serve(
    stream: impl AsyncRead + AsyncWrite,
    id: ConnectionId,
    purpose: Purpose,
    inbox: Inbox,
    clock: Clock,
) -> Ending {
    let (queue, answers) = mpsc::unbounded_channel();
    let unasked = Arc::new(AtomicUsize::new(0));
    let mut connection = Connection {
        id,
        purpose,
        channel: Channel::new(Side::Switch, Options::default(), clock.now()),
        inbox,
        clock,
        outbox: Some(Outbox { queue, unasked: Arc::clone(&unasked) }),
        room: Arc::new(Semaphore::new(IN_FLIGHT_MAX)),
        held: None,
        answers,
        unasked,
        dump: None,
    };
    connection.run(stream).await
}

/// How a connection ended.
pub(crate) struct Ending {
    /// Why.
    pub(crate) reason: DownReason,
    /// Whether the peer had said hello.
    pub(crate) was_up: bool,
}

struct Connection {
    id: ConnectionId,
    purpose: Purpose,
    channel: Channel,
    inbox: Inbox,
    clock: Clock,
    /// Given to the control thread when the peer has said hello.
    outbox: Option<Outbox>,
    room: Arc<Semaphore>,
    /// A message for which there was no room yet; nothing more is read meanwhile.
    held: Option<Box<Received>>,
    answers: mpsc::UnboundedReceiver<(Outgoing, Option<OwnedSemaphorePermit>)>,
    unasked: Arc<AtomicUsize>,
    /// A long answer under way; other answers wait behind it.
    dump: Option<(Xid, Box<Dump>, Option<OwnedSemaphorePermit>)>,
}

impl Connection {
    async fn run(&mut self, stream: impl AsyncRead + AsyncWrite) -> Ending {
        let (mut reader, mut writer) = tokio::io::split(stream);
        let mut input = vec![0; READ_LEN];
        let reason = loop {
            if let Some(reason) = self.handle_events() {
                break reason;
            }
            self.continue_dump();
            let ready = self.channel.pending().len() < BACKLOG_MAX;
            let timeout = self.channel.next_timeout().map(|instant| self.clock.to_system(instant));
            tokio::select! {
                biased;
                written = writer.write(self.channel.pending()), if !self.channel.pending().is_empty() => match written {
                    Ok(count @ 1..) => self.channel.transmitted(count),
                    Ok(0) => break DownReason::Closed,
                    Err(_) => break DownReason::Closed,
                },
                room = Arc::clone(&self.room).acquire_many_owned(self.held_len()), if self.held.is_some() => {
                    if let (Ok(room), Some(received)) = (room, self.held.take()) {
                        self.inbox.send(Input::Message(self.id, received, room));
                    }
                }
                Some((answer, room)) = self.answers.recv(), if ready && self.dump.is_none() => {
                    if self.send(answer, room) {
                        break DownReason::Closed;
                    }
                }
                count = reader.read(&mut input), if ready && self.held.is_none() => match count {
                    Ok(count @ 1..) => self.channel.handle_input(&input[..count], self.clock.now()),
                    Ok(0) | Err(_) => break DownReason::Closed,
                },
                () = sleep_until(timeout) => self.channel.handle_timeout(self.clock.now()),
            }
        };
        self.last_words(&mut writer).await;
        let was_up = self.outbox.is_none();
        if was_up {
            self.inbox.send(Input::Down(self.id));
        }
        Ending { reason, was_up }
    }
}
