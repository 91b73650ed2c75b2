//! Auxiliary connections (OF 1.3.5, 6.3; OF 1.5.1, 6.3): further connections to the same
//! controller, with the same source and destination address. They are opened when the main
//! connection is up, are reopened while it lasts, and end with it.

use std::fmt;
use std::future::pending;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use openflow::{ChannelOptions, Version, VersionSet};
use tokio::net::{TcpSocket, UnixStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::{Exchange, Peer, Reconnector, in_time};
use crate::connection::Ending;
use crate::purpose::{ChannelSettings, Purpose};
use switch::connection::{Auxiliary, ConnectionId, ConnectionKind};

/// The addresses of a controller connection, to open another between the same ones.
#[derive(Clone)]
enum PeerAddress {
    Tcp { from: IpAddr, to: SocketAddr },
    Tls { from: IpAddr, to: SocketAddr },
    Unix(PathBuf),
}

/// Serves the main connection until it ends, and meanwhile `count` auxiliary ones.
pub(super) async fn serve(peer: Peer, count: u8, purpose: &Purpose, exchange: &Exchange) -> Ending {
    let id = exchange.next_id();
    let (up, is_up) = oneshot::channel();
    let address = PeerAddress::of(&peer);
    let main = peer.serve(id, purpose.clone(), exchange, Some(up));
    let others = serve_auxiliaries(id, count, address, is_up, purpose, exchange);
    // When one future is ready, the other is dropped: all auxiliary connections end with the main
    // one.
    tokio::select! {
        ending = main => ending,
        never = others => match never {},
    }
}

/// A type without values.
enum Never {}

/// Waits until the main connection is up, then serves the auxiliary ones until it is dropped.
async fn serve_auxiliaries(
    main: ConnectionId,
    count: u8,
    address: io::Result<PeerAddress>,
    up: oneshot::Receiver<Version>,
    purpose: &Purpose,
    exchange: &Exchange,
) -> Never {
    let mut connections = JoinSet::new();
    // Before OpenFlow 1.3 a controller has one connection.
    if let (Ok(address), Ok(version @ (Version::V13 | Version::V14 | Version::V15))) =
        (address, up.await)
    {
        for number in 1..=count {
            let purpose = Purpose {
                kind: ConnectionKind::Auxiliary(Auxiliary { main, number }),
                uri: None,
                peer: Arc::default(),
                channel_settings: ChannelSettings::like(ChannelOptions {
                    versions: VersionSet::only(version),
                    ..purpose.channel_settings.options()
                }),
                bridge: purpose.bridge.clone(),
                tuning: purpose.tuning.clone(),
            };
            let (address, exchange) = (address.clone(), exchange.clone());
            connections.spawn(async move {
                let mut reconnector = Reconnector::new(address.to_string(), &purpose, &exchange);
                loop {
                    let ended = match in_time(address.connect(&exchange)).await {
                        Ok(peer) => {
                            let id = exchange.next_id();
                            Ok(peer.serve(id, purpose.clone(), &exchange, None).await)
                        }
                        Err(error) => Err(error),
                    };
                    reconnector.rest(ended).await;
                }
            });
        }
    }
    pending().await
}

impl PeerAddress {
    /// Returns the addresses of a peer's connection.
    fn of(peer: &Peer) -> io::Result<Self> {
        match peer {
            Peer::Tcp(stream) => Ok(Self::Tcp {
                from: stream.local_addr()?.ip(),
                to: stream.peer_addr()?,
            }),
            Peer::Tls(stream) => {
                let (stream, _) = stream.get_ref();
                Ok(Self::Tls {
                    from: stream.local_addr()?.ip(),
                    to: stream.peer_addr()?,
                })
            }
            Peer::Unix(stream) => {
                let address = stream.peer_addr()?;
                let path = address.as_pathname();
                let path = path.ok_or(io::ErrorKind::AddrNotAvailable)?;
                Ok(Self::Unix(path.to_owned()))
            }
        }
    }

    async fn connect(&self, exchange: &Exchange) -> io::Result<Peer> {
        let tcp = async |from: IpAddr, to: SocketAddr| {
            let socket = match to {
                SocketAddr::V4(_) => TcpSocket::new_v4()?,
                SocketAddr::V6(_) => TcpSocket::new_v6()?,
            };
            socket.bind(SocketAddr::new(from, 0))?;
            socket.connect(to).await
        };
        match self {
            Self::Tcp { from, to } => Ok(Peer::Tcp(tcp(*from, *to).await?)),
            Self::Tls { from, to } => {
                let stream = exchange.secrets.connect(tcp(*from, *to).await?).await?;
                Ok(Peer::Tls(Box::new(stream)))
            }
            Self::Unix(path) => Ok(Peer::Unix(UnixStream::connect(path).await?)),
        }
    }
}

impl fmt::Display for PeerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { to, .. } => write!(f, "tcp:{to}"),
            Self::Tls { to, .. } => write!(f, "ssl:{to}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}
