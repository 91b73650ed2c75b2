//! Snooping (`ovs-ofctl snoop`): the OpenFlow messages between a bridge and its controllers, in
//! both directions, are copied to the clients of the socket `BRIDGE.snoop` in the run directory.
//!
//! Input of the clients is ignored. A client that reads too slowly misses whole messages; the
//! bridge never waits for it.

#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Semaphore, broadcast};
use tokio::task::JoinSet;

use super::stream_decoder::{MessageObserver, StreamDecoder};
use super::task::Task;
use crate::accept_pause::AcceptPause;

/// The limit of messages queued for the slowest client, which misses the rest. A burst of flow-mods
/// has some hundred messages; at their largest, the queued ones take 16 MB.
const WAITING_MAX: usize = 256;

/// The limit of concurrent clients of one bridge; further ones are rejected.
const LISTENERS_MAX: usize = 16;

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

/// The decoder of one direction of one connection.
pub(super) type SnoopDecoder = StreamDecoder<SnoopFeed>;

impl MessageObserver for SnoopFeed {
    fn is_present(&self) -> bool {
        self.0.receiver_count() > 0
    }

    fn observe(&mut self, message: Vec<u8>) {
        // The last client may have left.
        let _ = self.0.send(message.into());
    }
}

/// Accepts snoop clients at the socket and serves them.
pub(crate) fn serve(socket: UnixListener, bridge: Arc<str>, feed: SnoopFeed) -> Task {
    Task::spawn(async move {
        let slots = Arc::new(Semaphore::new(LISTENERS_MAX));
        let mut listeners = JoinSet::new();
        let mut pause = AcceptPause::new("snoop clients");
        loop {
            while listeners.try_join_next().is_some() {}
            let Some((stream, _)) = pause.check(socket.accept().await).await else {
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
