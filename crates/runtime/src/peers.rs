//! Connection set-up: connects to controllers, with a pause that grows while they do not answer,
//! and accepts peers at sockets.

mod admission;
mod auxiliary;

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use openflow::Version;
use rustix::net::sockopt::{set_ip_tos, set_ipv6_tclass};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsStream;

use super::clock::Clock;
use super::connection::{Ending, serve};
use super::inbox::{Inbox, Input};
use super::purpose::Purpose;
use super::task::Task;
use super::tls::Secrets;
use crate::accept_pause::{AcceptPause, peers_max};
use admission::Admission;
use config::{ControllerOptions, ControllerTarget};
use switch::connection::{ConnectionId, ConnectionKind};

/// The first pause after a failed connection; each further one is twice as long.
const BACKOFF_FIRST: Duration = Duration::from_millis(500);

/// The time limit for the set-up of a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The limit of concurrent peers of one listener; further ones are rejected. A peer costs a socket,
/// a task and a share of the memory of all connections.
const PEERS_MAX: usize = 2048;

/// The dependencies of every connection.
#[derive(Clone)]
pub(crate) struct Exchange {
    inbox: Inbox,
    clock: Clock,
    next_id: Arc<AtomicU64>,
    /// Key and certificates of the switch for TLS.
    pub(crate) secrets: Secrets,
    /// The limits of all peers together.
    pub(crate) admission: Admission,
}

impl Exchange {
    pub(crate) fn new(inbox: Inbox, clock: Clock) -> Self {
        Self {
            inbox,
            clock,
            next_id: Arc::new(AtomicU64::new(1)),
            secrets: Secrets::default(),
            admission: Admission::new(),
        }
    }

    /// Returns the inbox for a connection of this kind.
    fn inbox_of(&self, kind: ConnectionKind) -> Inbox {
        match kind {
            ConnectionKind::Service => self.inbox.for_peer(),
            ConnectionKind::Primary | ConnectionKind::Auxiliary(_) => self.inbox.clone(),
        }
    }

    fn next_id(&self) -> ConnectionId {
        ConnectionId(self.next_id.fetch_add(1, Ordering::Relaxed))
    }
}

/// Connects to a controller, again after each failure, with a main connection and, while that is
/// up, `auxiliaries` auxiliary connections.
pub(crate) fn connect(
    target: ControllerTarget,
    auxiliaries: u8,
    purpose: Purpose,
    exchange: Exchange,
) -> Task {
    Task::spawn(async move {
        let mut reconnector = Reconnector::new(target.to_string(), &purpose, &exchange);
        loop {
            let dscp = purpose.tuning.borrow().dscp;
            let ended = match reach(&target, dscp, &exchange).await {
                Ok(peer) => Ok(auxiliary::serve(peer, auxiliaries, &purpose, &exchange).await),
                Err(error) => Err(error),
            };
            reconnector.rest(ended).await;
        }
    })
}

/// The connection attempts to a controller, and the backoff between them.
struct Reconnector {
    target: String,
    bridge: Arc<str>,
    /// The number of the auxiliary connection; none for the main connection.
    auxiliary: Option<u8>,
    pause: Duration,
    tuning: watch::Receiver<ControllerOptions>,
    inbox: Inbox,
    /// True if the failure is already logged.
    is_logged: bool,
}

impl Reconnector {
    fn new(target: String, purpose: &Purpose, exchange: &Exchange) -> Self {
        let auxiliary = purpose.kind.auxiliary();
        Self {
            target,
            bridge: Arc::clone(&purpose.bridge),
            auxiliary: auxiliary.map(|auxiliary| auxiliary.number),
            pause: BACKOFF_FIRST,
            tuning: purpose.tuning.clone(),
            inbox: exchange.inbox.clone(),
            is_logged: false,
        }
    }

    /// Reports the end of an attempt, and waits until the next.
    async fn rest(&mut self, ended: io::Result<Ending>) {
        self.report_failure(&ended);
        let (bridge, target, auxiliary) = (&*self.bridge, &*self.target, self.auxiliary);
        match ended {
            Ok(Ending {
                was_up: true,
                reason,
            }) => {
                match reason.is_close() {
                    true => {
                        tracing::info!(bridge, %target, auxiliary, %reason, "controller lost");
                    }
                    false => {
                        tracing::warn!(bridge, %target, auxiliary, %reason, "controller lost");
                    }
                }
                (self.pause, self.is_logged) = (BACKOFF_FIRST, false);
            }
            // A series of failures is logged once: a controller that is down for a night is one
            // line.
            Ok(Ending { reason, .. }) if !self.is_logged => {
                tracing::warn!(bridge, %target, auxiliary, %reason, "controller sent no hello; retrying");
                self.is_logged = true;
            }
            Err(error) if !self.is_logged => {
                tracing::info!(bridge, %target, auxiliary, %error, "cannot connect to controller; retrying");
                self.is_logged = true;
            }
            _ => {}
        }
        let pause_max = self.tuning.borrow().max_backoff;
        tokio::time::sleep(self.pause.min(pause_max)).await;
        self.pause = (self.pause * 2).min(pause_max);
    }

    /// Reports the failure of the main connection to the control thread.
    fn report_failure(&self, ended: &io::Result<Ending>) {
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

/// Sets the DSCP of a connection: the upper six bits of the former type of service (RFC 2474,
/// section 3).
fn set_class(stream: &TcpStream, dscp: u8) -> io::Result<()> {
    match stream.peer_addr()?.is_ipv4() {
        true => set_ip_tos(stream, dscp << 2)?,
        false => set_ipv6_tclass(stream, u32::from(dscp << 2))?,
    }
    Ok(())
}

/// Applies the time limit of the connection set-up.
async fn in_time(connecting: impl Future<Output = io::Result<Peer>>) -> io::Result<Peer> {
    let late = |_| io::Error::from(io::ErrorKind::TimedOut);
    let connected = tokio::time::timeout(CONNECT_TIMEOUT, connecting);
    connected.await.map_err(late)?
}

/// A socket that accepts peers.
pub(crate) enum Listener {
    /// TCP.
    Tcp(TcpListener),
    /// TLS over TCP.
    Ssl(TcpListener),
    /// A Unix socket.
    Unix(UnixListener),
}

/// An accepted connection; with TLS, the handshake is still to be done.
enum IncomingConnection {
    Peer(Peer),
    TlsHandshake(TcpStream),
}

impl Listener {
    async fn accept(&self) -> io::Result<IncomingConnection> {
        Ok(match self {
            Self::Tcp(listener) => IncomingConnection::Peer(Peer::Tcp(listener.accept().await?.0)),
            Self::Ssl(listener) => IncomingConnection::TlsHandshake(listener.accept().await?.0),
            Self::Unix(listener) => {
                IncomingConnection::Peer(Peer::Unix(listener.accept().await?.0))
            }
        })
    }
}

impl IncomingConnection {
    /// Returns the address of the other end; none of a Unix socket.
    fn address(&self) -> Option<IpAddr> {
        let stream = match self {
            Self::Peer(Peer::Tcp(stream)) | Self::TlsHandshake(stream) => stream,
            Self::Peer(Peer::Unix(_) | Peer::Tls(_)) => return None,
        };
        stream.peer_addr().ok().map(|address| address.ip())
    }

    /// Does the TLS handshake, if any.
    async fn handshake(self, exchange: &Exchange) -> io::Result<Peer> {
        match self {
            Self::Peer(peer) => Ok(peer),
            Self::TlsHandshake(stream) => {
                let admission = &exchange.admission;
                let entry = admission.admit_handshake(stream.peer_addr()?.ip());
                let too_many = || io::Error::other("too many TLS handshakes with this address");
                let entry = entry.ok_or_else(too_many)?;
                let peer = in_time(async {
                    let permit = admission.handshakes.acquire().await;
                    let permit = permit.map_err(io::Error::other)?;
                    stream.set_nodelay(true)?;
                    let stream = exchange.secrets.accept(stream).await?;
                    drop(permit);
                    Ok(Peer::Tls(Box::new(stream)))
                })
                .await;
                drop(entry);
                peer
            }
        }
    }
}

/// Accepts peers and serves them.
pub(crate) fn listen(listener: Listener, purpose: Purpose, exchange: Exchange) -> Task {
    Task::spawn(async move {
        let slots = Arc::new(Semaphore::new(peers_max(PEERS_MAX)));
        let mut pause = AcceptPause::new("OpenFlow");
        let mut peers = JoinSet::new();
        let mut turned_away = 0_u64;
        loop {
            while peers.try_join_next().is_some() {}
            let Some(incoming) = pause.check(listener.accept().await).await else {
                continue;
            };
            let slot = match Arc::clone(&slots).try_acquire_owned() {
                Ok(slot) => exchange
                    .admission
                    .admit(incoming.address())
                    .map(|peer| (slot, peer)),
                Err(_) => Err("too many peers at one listener"),
            };
            let slot = match slot {
                Ok(slot) => slot,
                Err(reason) => {
                    turned_away += 1;
                    if turned_away.is_power_of_two() {
                        tracing::warn!(
                            bridge = &*purpose.bridge,
                            turned_away,
                            reason,
                            "peer rejected"
                        );
                    }
                    continue;
                }
            };
            let (purpose, exchange) = (purpose.clone(), exchange.clone());
            peers.spawn(async move {
                match incoming.handshake(&exchange).await {
                    Ok(peer) => {
                        let id = exchange.next_id();
                        let ending = peer.serve(id, purpose, &exchange, None).await;
                        tracing::debug!(reason = %ending.reason, "peer disconnected");
                    }
                    Err(error) => {
                        tracing::warn!(bridge = &*purpose.bridge, %error, "peer rejected");
                    }
                }
                drop(slot);
            });
        }
    })
}

/// A connected peer.
enum Peer {
    Tcp(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    Unix(UnixStream),
}

impl Peer {
    /// Serves the peer under this id until either side ends the connection. The negotiated version
    /// is sent to `up`.
    async fn serve(
        self,
        id: ConnectionId,
        mut purpose: Purpose,
        exchange: &Exchange,
        up: Option<oneshot::Sender<Version>>,
    ) -> Ending {
        let link = (exchange.inbox_of(purpose.kind), exchange.clock);
        let limits = exchange.admission.limits(purpose.kind);
        purpose.peer = match &purpose.uri {
            Some(uri) => Arc::clone(uri),
            None => self.name(id).into(),
        };
        match self {
            Self::Tcp(stream) => {
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "cannot set TCP_NODELAY");
                }
                serve(stream, id, purpose, up, link, limits).await
            }
            Self::Tls(stream) => serve(stream, id, purpose, up, link, limits).await,
            Self::Unix(stream) => serve(stream, id, purpose, up, link, limits).await,
        }
    }

    /// Returns the name of a peer that connected to a listener, as Open vSwitch names it.
    fn name(&self, id: ConnectionId) -> String {
        let (scheme, address) = match self {
            Self::Tcp(stream) => ("tcp", stream.peer_addr()),
            Self::Tls(stream) => ("ssl", stream.get_ref().0.peer_addr()),
            Self::Unix(_) => return format!("unix#{}", id.0),
        };
        address.map_or_else(
            |_| scheme.to_owned(),
            |address| format!("{scheme}:{address}"),
        )
    }
}
