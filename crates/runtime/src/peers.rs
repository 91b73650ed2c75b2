//! How connections come about: going to controllers, with a pause that grows
//! while they do not answer, and waiting for peers at sockets.

mod auxiliary;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use openflow::Version;
use rustix::net::sockopt::{set_ip_tos, set_ipv6_tclass};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsStream;

use super::clock::Clock;
use super::connection::{Ending, Purpose, serve};
use super::inbox::{Inbox, Input};
use super::tls::Secrets;
use config::ControllerTarget;
use switch::connection::ConnectionId;

/// The first pause after a controller did not answer; each further one is twice as long.
const BACKOFF_FIRST: Duration = Duration::from_millis(500);

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
    /// What peers are shown that it speaks TLS with.
    pub(crate) secrets: Secrets,
}

impl Exchange {
    pub(crate) fn new(inbox: Inbox, clock: Clock) -> Self {
        Self {
            inbox,
            clock,
            next_id: Arc::new(AtomicU64::new(1)),
            secrets: Secrets::default(),
        }
    }

    fn next_id(&self) -> ConnectionId {
        ConnectionId(self.next_id.fetch_add(1, Ordering::Relaxed))
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

/// Goes to a controller, again and again, by a main connection and, while that is up, as
/// many auxiliary ones.
pub(crate) fn connect(
    target: ControllerTarget,
    auxiliaries: u8,
    purpose: Purpose,
    exchange: Exchange,
) -> Task {
    Task::spawn(async move {
        let mut visits = Visits::new(target.to_string(), &purpose, &exchange);
        loop {
            let ended = match reach(&target, purpose.tuning.dscp, &exchange).await {
                Ok(peer) => Ok(auxiliary::serve(peer, auxiliaries, &purpose, &exchange).await),
                Err(error) => Err(error),
            };
            visits.rest(ended).await;
        }
    })
}

/// Visits to a controller, and the pauses between them, which grow while nobody is there.
struct Visits {
    target: String,
    bridge: Arc<str>,
    /// Which auxiliary connection it is for, if it is for one.
    auxiliary: Option<u8>,
    pause: Duration,
    pause_max: Duration,
    inbox: Inbox,
    /// Whether it was said that nobody is there.
    silent: bool,
}

impl Visits {
    fn new(target: String, purpose: &Purpose, exchange: &Exchange) -> Self {
        let auxiliary = purpose.kind.auxiliary();
        Self {
            target,
            bridge: Arc::clone(&purpose.bridge),
            auxiliary: auxiliary.map(|auxiliary| auxiliary.number),
            pause: BACKOFF_FIRST,
            pause_max: purpose.tuning.max_backoff,
            inbox: exchange.inbox.clone(),
            silent: false,
        }
    }

    /// Says how a visit ended, and rests until the next.
    async fn rest(&mut self, ended: io::Result<Ending>) {
        self.tell(&ended);
        let (bridge, target, auxiliary) = (&*self.bridge, &*self.target, self.auxiliary);
        match ended {
            Ok(Ending {
                was_up: true,
                reason,
            }) => {
                tracing::warn!(bridge, %target, auxiliary, %reason, "controller lost");
                (self.pause, self.silent) = (BACKOFF_FIRST, false);
            }
            // Once for a row of failures: a controller that is away for a night is one line.
            Ok(Ending { reason, .. }) if !self.silent => {
                tracing::warn!(bridge, %target, auxiliary, %reason, "controller said no hello; trying again");
                self.silent = true;
            }
            Err(error) if !self.silent => {
                tracing::warn!(bridge, %target, auxiliary, %error, "controller not reached; trying again");
                self.silent = true;
            }
            _ => {}
        }
        tokio::time::sleep(self.pause.min(self.pause_max)).await;
        self.pause = (self.pause * 2).min(self.pause_max);
    }

    /// Tells the control thread why it is not there: of the main connection.
    fn tell(&self, ended: &io::Result<Ending>) {
        if self.auxiliary.is_some() {
            return;
        }
        let problem = match ended {
            Ok(ending) => ending.reason.to_string(),
            Err(error) => error.to_string(),
        };
        self.inbox.send(Input::Missed {
            bridge: Arc::clone(&self.bridge),
            uri: self.target.clone(),
            problem,
        });
    }
}

async fn reach(
    target: &ControllerTarget,
    dscp: Option<u8>,
    exchange: &Exchange,
) -> io::Result<Peer> {
    let tcp = async |host: &str, port: u16| {
        let stream = TcpStream::connect((host, port)).await?;
        if let Some(dscp) = dscp {
            set_class(&stream, dscp)?;
        }
        io::Result::Ok(stream)
    };
    in_time(async {
        Ok(match target {
            ControllerTarget::Tcp { host, port } => Peer::Tcp(tcp(host, *port).await?),
            ControllerTarget::Ssl { host, port } => {
                let stream = tcp(host, *port).await?;
                stream.set_nodelay(true)?;
                Peer::Tls(Box::new(exchange.secrets.connect(stream).await?))
            }
            ControllerTarget::Unix(path) => Peer::Unix(UnixStream::connect(path).await?),
        })
    })
    .await
}

/// Has what is sent travel in this class of service: the upper six bits of the old type of
/// service (RFC 2474, 3).
fn set_class(stream: &TcpStream, dscp: u8) -> io::Result<()> {
    match stream.peer_addr()?.is_ipv4() {
        true => set_ip_tos(stream, dscp << 2)?,
        false => set_ipv6_tclass(stream, u32::from(dscp << 2))?,
    }
    Ok(())
}

/// Gives up on a peer that does not let us in.
async fn in_time(connecting: impl Future<Output = io::Result<Peer>>) -> io::Result<Peer> {
    let late = |_| io::Error::from(io::ErrorKind::TimedOut);
    let connected = tokio::time::timeout(CONNECT_TIMEOUT, connecting);
    connected.await.map_err(late)?
}

/// A socket at which peers are waited for.
pub(crate) enum Listener {
    /// By TCP.
    Tcp(TcpListener),
    /// By TLS over TCP.
    Ssl(TcpListener),
    /// By a Unix socket.
    Unix(UnixListener),
}

/// Somebody who has come, and still has to say by TLS who it is or not.
enum Comer {
    Peer(Peer),
    Stranger(TcpStream),
}

impl Listener {
    async fn accept(&self) -> io::Result<Comer> {
        Ok(match self {
            Self::Tcp(listener) => Comer::Peer(Peer::Tcp(listener.accept().await?.0)),
            Self::Ssl(listener) => Comer::Stranger(listener.accept().await?.0),
            Self::Unix(listener) => Comer::Peer(Peer::Unix(listener.accept().await?.0)),
        })
    }
}

impl Comer {
    /// Has it say who it is.
    async fn introduce(self, exchange: &Exchange) -> io::Result<Peer> {
        match self {
            Self::Peer(peer) => Ok(peer),
            Self::Stranger(stream) => {
                in_time(async {
                    stream.set_nodelay(true)?;
                    let stream = exchange.secrets.accept(stream).await?;
                    Ok(Peer::Tls(Box::new(stream)))
                })
                .await
            }
        }
    }
}

/// Waits for peers and serves them.
pub(crate) fn listen(listener: Listener, purpose: Purpose, exchange: Exchange) -> Task {
    Task::spawn(async move {
        let places = Arc::new(Semaphore::new(PEERS_MAX));
        let mut peers = JoinSet::new();
        let mut turned_away = 0_u64;
        loop {
            while peers.try_join_next().is_some() {}
            let comer = match listener.accept().await {
                Ok(comer) => comer,
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
                match comer.introduce(&exchange).await {
                    Ok(peer) => {
                        let id = exchange.next_id();
                        let ending = peer.serve(id, purpose, &exchange, None).await;
                        tracing::debug!(reason = %ending.reason, "a peer has left");
                    }
                    Err(error) => {
                        tracing::warn!(bridge = &*purpose.bridge, %error, "a peer is turned away");
                    }
                }
                drop(place);
            });
        }
    })
}

/// A peer, connected.
enum Peer {
    Tcp(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    Unix(UnixStream),
}

impl Peer {
    /// Speaks with it under this id until either side ends it. In `up` it is said which
    /// version was agreed on.
    async fn serve(
        self,
        id: ConnectionId,
        purpose: Purpose,
        exchange: &Exchange,
        up: Option<oneshot::Sender<Version>>,
    ) -> Ending {
        let (inbox, clock) = (exchange.inbox.clone(), exchange.clock);
        match self {
            Self::Tcp(stream) => {
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "a peer will be answered slowly");
                }
                serve(stream, id, purpose, up, inbox, clock).await
            }
            Self::Tls(stream) => serve(stream, id, purpose, up, inbox, clock).await,
            Self::Unix(stream) => serve(stream, id, purpose, up, inbox, clock).await,
        }
    }
}
