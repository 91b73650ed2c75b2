//! Snooping (`ovs-ofctl snoop`): the OpenFlow messages between a bridge and its controllers, in
//! both directions, are copied to the clients of the socket `BRIDGE.snoop` in the run directory.
//!
//! Input of the clients is ignored. A client that reads too slowly misses whole messages; the
//! bridge never waits for it. Without clients, bytes are counted to find message boundaries, but
//! not copied.

#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Semaphore, broadcast};
use tokio::task::JoinSet;

use super::task::Task;

/// The limit of messages queued for the slowest client, which misses the rest. A burst of flow-mods
/// has some hundred messages; at their largest, the queued ones take 16 MB.
const WAITING_MAX: usize = 256;

/// The limit of concurrent clients of one bridge; further ones are rejected.
const LISTENERS_MAX: usize = 16;

/// The length of an OpenFlow header, and the end of the length field in it (OF 1.3.5, 7.1).
const HEADER_LEN: usize = 8;
const LENGTH_END: usize = 4;

/// A hello that offers all versions from 1.0 to 1.5 (OF 1.3.5, 7.5.1), so that messages of any
/// version may follow.
const HELLO: [u8; 16] = [
    0x06, 0, 0, 16, 0, 0, 0, 1, // version, type, length, transaction
    0, 1, 0, 8, 0, 0, 0, 0x7e, // the versions as bits
];

/// The messages of a bridge and its controllers, for the snoop clients.
#[derive(Clone)]
pub(crate) struct SnoopFeed(broadcast::Sender<Arc<[u8]>>);

impl Default for SnoopFeed {
    fn default() -> Self {
        Self(broadcast::channel(WAITING_MAX).0)
    }
}

impl SnoopFeed {
    fn has_clients(&self) -> bool {
        self.0.receiver_count() > 0
    }
}

/// One direction of one connection, split into messages.
pub(super) struct SnoopDecoder {
    feed: SnoopFeed,
    /// The first bytes of the current message's header, up to its length field.
    length: [u8; LENGTH_END],
    /// The number of bytes of the current message so far.
    received: usize,
    /// A copy of these bytes, if a client was connected when the message began.
    copied: Option<Vec<u8>>,
}

impl SnoopDecoder {
    /// Returns a decoder for a connection from its first byte on.
    pub(super) fn new(feed: SnoopFeed) -> Self {
        Self {
            feed,
            length: [0; LENGTH_END],
            received: 0,
            copied: None,
        }
    }

    /// Decodes the next bytes.
    pub(super) fn decode(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.received == 0 {
                self.copied = self.feed.has_clients().then(Vec::new);
            }
            let (now, rest) = bytes.split_at(bytes.len().min(self.next_boundary() - self.received));
            let header = self.length.iter_mut().skip(self.received);
            header.zip(now).for_each(|(to, from)| *to = *from);
            self.received += now.len();
            bytes = rest;
            if let Some(copied) = &mut self.copied {
                copied.extend_from_slice(now);
            }
            if self.received >= LENGTH_END && self.received == self.next_boundary() {
                self.received = 0;
                if let Some(message) = self.copied.take() {
                    // The last client may have left.
                    let _ = self.feed.0.send(message.into());
                }
            }
        }
    }

    /// Returns the number of bytes of the message that are needed for the next decision.
    fn next_boundary(&self) -> usize {
        let [_, _, high, low] = self.length;
        match self.received {
            ..LENGTH_END => LENGTH_END,
            // A length below that of a header ends the connection.
            _ => usize::from(u16::from_be_bytes([high, low])).max(HEADER_LEN),
        }
    }
}

/// Accepts snoop clients at the socket and serves them.
pub(crate) fn serve(socket: UnixListener, bridge: Arc<str>, feed: SnoopFeed) -> Task {
    Task::spawn(async move {
        let slots = Arc::new(Semaphore::new(LISTENERS_MAX));
        let mut listeners = JoinSet::new();
        loop {
            while listeners.try_join_next().is_some() {}
            let Ok((stream, _)) = socket.accept().await else {
                continue;
            };
            let Ok(slot) = Arc::clone(&slots).try_acquire_owned() else {
                tracing::warn!(bridge = &*bridge, "more than {LISTENERS_MAX} snoop clients");
                continue;
            };
            let (bridge, receiver) = (Arc::clone(&bridge), feed.0.subscribe());
            listeners.spawn(async move {
                let ended = stream_messages(stream, receiver, &bridge).await;
                tracing::debug!(bridge = &*bridge, ?ended, "snoop client disconnected");
                drop(slot);
            });
        }
    })
}

/// Sends messages to a client until it leaves.
async fn stream_messages(
    mut stream: UnixStream,
    mut receiver: broadcast::Receiver<Arc<[u8]>>,
    bridge: &str,
) -> io::Result<()> {
    let (mut reader, mut writer) = stream.split();
    writer.write_all(&HELLO).await?;
    let mut ignored = [0; 512];
    loop {
        tokio::select! {
            message = receiver.recv() => match message {
                Ok(message) => writer.write_all(&message).await?,
                Err(RecvError::Lagged(missed)) => {
                    tracing::warn!(bridge, missed, "snoop client too slow; dropped messages");
                }
                Err(RecvError::Closed) => return Ok(()),
            },
            count = reader.read(&mut ignored) => if count? == 0 {
                return Ok(());
            },
        }
    }
}
