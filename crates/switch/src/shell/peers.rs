//! How connections come about: going to controllers, with a pause that grows
//! while they do not answer, and waiting for peers at sockets.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};

use super::clock::Clock;
use super::connection::{Ending, Purpose, Reason, serve};
use super::inbox::Inbox;
use crate::config::Target;
use crate::core::connection::ConnectionId;

/// The first pause after a controller did not answer; each further one is twice as long.
const BACKOFF_FIRST: Duration = Duration::from_millis(500);

/// The longest pause: Open vSwitch's `max_backoff`.
const BACKOFF_MAX: Duration = Duration::from_secs(8);

/// How long a controller may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Peers served at once by one listener; further ones are turned away. A peer
/// costs a socket, a task and at most a few hundred KB of messages under way.
const PEERS_MAX: usize = 2048;

/// How long a listener rests when the system has no file descriptor left for a peer.
const ACCEPT_REST: Duration = Duration::from_millis(100);

/// What every connection needs.
#[derive(Clone)]
pub(crate) struct Exchange {
    inbox: Inbox,
    clock: Clock,
    next_id: Arc<AtomicU64>,
}

impl Exchange {
    pub(crate) fn new(inbox: Inbox, clock: Clock) -> Self {
        Self {
            inbox,
            clock,
            next_id: Arc::new(AtomicU64::new(1)),
        }
    }

    async fn serve(&self, stream: impl AsyncRead + AsyncWrite, purpose: Purpose) -> Ending {
        let id = ConnectionId(self.next_id.fetch_add(1, Ordering::Relaxed));
        serve(stream, id, purpose, self.inbox.clone(), self.clock).await
    }
}

/// A task that ends when it is dropped, with every connection it serves.
pub(crate) struct Task(JoinHandle<()>);

impl Task {
    /// Spawns it. To be called within the runtime.
    pub(crate) fn spawn(task: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(task))
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Goes to a controller, again and again.
pub(crate) fn connect(target: Target, purpose: Purpose, exchange: Exchange) -> Task {
    Task::spawn(async move {
        let mut pause = BACKOFF_FIRST;
        let mut silent = false;
        loop {
            match visit(&target, &purpose, &exchange).await {
                Ok(Ending {
                    was_up: true,
                    reason,
                }) => {
                    tracing::warn!(bridge = &*purpose.bridge, %target, %reason, "controller lost");
                    (pause, silent) = (BACKOFF_FIRST, false);
                }
                // Once for a row of failures: a controller that is away for a night is one line.
                Ok(Ending { reason, .. }) if !silent => {
                    tracing::warn!(bridge = &*purpose.bridge, %target, %reason, "controller said no hello; trying again");
                    silent = true;
                }
                Err(error) if !silent => {
                    tracing::warn!(bridge = &*purpose.bridge, %target, %error, "controller not reached; trying again");
                    silent = true;
                }
                _ => {}
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(BACKOFF_MAX);
        }
    })
}

async fn visit(target: &Target, purpose: &Purpose, exchange: &Exchange) -> io::Result<Ending> {
    let late = |_| io::Error::from(io::ErrorKind::TimedOut);
    match target {
        Target::Tcp { host, port } => {
            let connecting = TcpStream::connect((host.as_str(), *port));
            let stream = tokio::time::timeout(CONNECT_TIMEOUT, connecting)
                .await
                .map_err(late)??;
            stream.set_nodelay(true)?;
            Ok(exchange.serve(stream, purpose.clone()).await)
        }
        Target::Unix(path) => {
            let connecting = UnixStream::connect(path);
            let stream = tokio::time::timeout(CONNECT_TIMEOUT, connecting)
                .await
                .map_err(late)??;
            Ok(exchange.serve(stream, purpose.clone()).await)
        }
    }
}

/// A socket at which peers are waited for.
pub(crate) enum Listener {
    /// By TCP.
    Tcp(TcpListener),
    /// By a Unix socket.
    Unix(UnixListener),
}

/// Waits for peers and serves them.
pub(crate) fn listen(listener: Listener, purpose: Purpose, exchange: Exchange) -> Task {
    Task::spawn(async move {
        let places = Arc::new(Semaphore::new(PEERS_MAX));
        let mut peers = JoinSet::new();
        let mut turned_away = 0_u64;
        loop {
            while peers.try_join_next().is_some() {}
            let accepted = match &listener {
                Listener::Tcp(listener) => {
                    listener.accept().await.map(|(stream, _)| Peer::Tcp(stream))
                }
                Listener::Unix(listener) => listener
                    .accept()
                    .await
                    .map(|(stream, _)| Peer::Unix(stream)),
            };
            let peer = match accepted {
                Ok(peer) => peer,
                Err(error) => {
                    tracing::warn!(bridge = &*purpose.bridge, %error, "a peer could not be let in");
                    tokio::time::sleep(ACCEPT_REST).await;
                    continue;
                }
            };
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                turned_away += 1;
                if turned_away.is_power_of_two() {
                    tracing::warn!(
                        bridge = &*purpose.bridge,
                        turned_away,
                        "more than {PEERS_MAX} peers at one socket"
                    );
                }
                continue;
            };
            let (purpose, exchange) = (purpose.clone(), exchange.clone());
            peers.spawn(async move {
                let reason = peer.serve(&exchange, purpose).await;
                tracing::debug!(%reason, "a peer has left");
                drop(place);
            });
        }
    })
}

enum Peer {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Peer {
    async fn serve(self, exchange: &Exchange, purpose: Purpose) -> Reason {
        match self {
            Self::Tcp(stream) => {
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "a peer will be answered slowly");
                }
                exchange.serve(stream, purpose).await.reason
            }
            Self::Unix(stream) => exchange.serve(stream, purpose).await.reason,
        }
    }
}
