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

use super::peers::Task;

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
    fn is_heard(&self) -> bool {
        self.0.receiver_count() > 0
    }
}

/// One direction of one connection, split into messages.
pub(super) struct SnoopDecoder {
    talk: SnoopFeed,
    /// The first bytes of the current message's header, up to its length field.
    length: [u8; LENGTH_END],
    /// The number of bytes of the current message so far.
    seen: usize,
    /// A copy of these bytes, if a client was connected when the message began.
    kept: Option<Vec<u8>>,
}

impl SnoopDecoder {
    /// Returns a decoder for a connection from its first byte on.
    pub(super) fn new(talk: SnoopFeed) -> Self {
        Self {
            talk,
            length: [0; LENGTH_END],
            seen: 0,
            kept: None,
        }
    }

    /// Decodes the next bytes.
    pub(super) fn hear(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.seen == 0 {
                self.kept = self.talk.is_heard().then(Vec::new);
            }
            let (now, rest) = bytes.split_at(bytes.len().min(self.until() - self.seen));
            let header = self.length.iter_mut().skip(self.seen);
            header.zip(now).for_each(|(to, from)| *to = *from);
            self.seen += now.len();
            bytes = rest;
            if let Some(kept) = &mut self.kept {
                kept.extend_from_slice(now);
            }
            if self.seen >= LENGTH_END && self.seen == self.until() {
                self.seen = 0;
                if let Some(message) = self.kept.take() {
                    // The last client may have left.
                    let _ = self.talk.0.send(message.into());
                }
            }
        }
    }

    /// Returns the number of bytes of the message that are needed for the next decision.
    fn until(&self) -> usize {
        let [_, _, high, low] = self.length;
        match self.seen {
            ..LENGTH_END => LENGTH_END,
            // A length below that of a header ends the connection.
            _ => usize::from(u16::from_be_bytes([high, low])).max(HEADER_LEN),
        }
    }
}

/// Accepts snoop clients at the socket and serves them.
pub(crate) fn serve(socket: UnixListener, bridge: Arc<str>, talk: SnoopFeed) -> Task {
    Task::spawn(async move {
        let places = Arc::new(Semaphore::new(LISTENERS_MAX));
        let mut listeners = JoinSet::new();
        loop {
            while listeners.try_join_next().is_some() {}
            let Ok((stream, _)) = socket.accept().await else {
                continue;
            };
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                tracing::warn!(bridge = &*bridge, "more than {LISTENERS_MAX} listen in");
                continue;
            };
            let (bridge, heard) = (Arc::clone(&bridge), talk.0.subscribe());
            listeners.spawn(async move {
                let ended = tell(stream, heard, &bridge).await;
                tracing::debug!(bridge = &*bridge, ?ended, "one who listened has left");
                drop(place);
            });
        }
    })
}

/// Sends messages to a client until it leaves.
async fn tell(
    mut stream: UnixStream,
    mut heard: broadcast::Receiver<Arc<[u8]>>,
    bridge: &str,
) -> io::Result<()> {
    let (mut reader, mut writer) = stream.split();
    writer.write_all(&HELLO).await?;
    let mut unheard = [0; 512];
    loop {
        tokio::select! {
            message = heard.recv() => match message {
                Ok(message) => writer.write_all(&message).await?,
                Err(RecvError::Lagged(missed)) => {
                    tracing::warn!(bridge, missed, "one who listens reads too slowly");
                }
                Err(RecvError::Closed) => return Ok(()),
            },
            count = reader.read(&mut unheard) => if count? == 0 {
                return Ok(());
            },
        }
    }
}
