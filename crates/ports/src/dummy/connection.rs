//! The connections of a dummy: it accepts any number of peers, or connects to one and reconnects
//! with a backoff.
//!
//! Workers send and receive; the control thread drives the reconnect timer, since it has the clock.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use base::Instant;
use rustix::event::{PollFd, PollFlags, epoll, poll};
use rustix::fs::Timespec;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::net::{accept_with, bind, connect, listen, socket_with, sockopt};

use super::address::{DummyConnection, StreamAddress};
use super::backoff::ReconnectTimer;
use super::stream::{FrameStream, HasRoom};

/// The limit of peers of a passive connection.
const PEERS_MAX: usize = 64;

/// The length of the queue of connections that were not accepted yet.
const BACKLOG: i32 = 64;

/// The interval of checks whether the peer has closed an active connection.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);

const SOCKET_FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

/// The state of the connection of a dummy (`netdev-dummy/conn-state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionState {
    /// An active connection has a peer.
    Connected,
    /// An active connection has no peer.
    Disconnected,
    /// The dummy has no active connection.
    Unknown,
}

/// The connection of a dummy.
#[derive(Default)]
pub(super) struct Connection {
    configured: Option<DummyConnection>,
    kind: ConnectionKind,
    /// The epoll instance of all sockets; none without a connection.
    ready: Option<OwnedFd>,
}

#[derive(Default)]
enum ConnectionKind {
    #[default]
    None,
    Passive(PassiveConnection),
    Active(ActiveConnection),
}

struct PassiveConnection {
    listener: OwnedFd,
    /// The socket's file, if any; removed with the connection.
    path: Option<PathBuf>,
    peers: Vec<StreamPeer>,
}

struct ActiveConnection {
    address: StreamAddress,
    timer: ReconnectTimer,
    /// A TCP connection in progress.
    attempt: Option<OwnedFd>,
    peer: Option<StreamPeer>,
    /// True if the peer has ended and the timer has not been informed.
    was_lost: bool,
}

/// A connected peer.
struct StreamPeer {
    stream: FrameStream,
    /// True if the epoll instance reports that the socket accepts more bytes.
    watches_output: bool,
}

impl Drop for PassiveConnection {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // Another process may have removed it.
            drop(std::fs::remove_file(path));
        }
    }
}

impl Connection {
    /// Replaces the connection if `configured` is another one.
    ///
    /// # Errors
    /// The listener cannot be created; the dummy has no connection then.
    pub(super) fn configure(
        &mut self,
        configured: Option<&DummyConnection>,
        now: Instant,
    ) -> io::Result<()> {
        if self.configured.as_ref() == configured {
            return Ok(());
        }
        *self = Self::default();
        let Some(configured) = configured else {
            return Ok(());
        };
        let ready = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        self.kind = match configured {
            DummyConnection::Passive(address) => {
                let listener = listen_at(address)?;
                watch(&ready, &listener)?;
                let path = match address {
                    StreamAddress::Unix(path) => Some(path.clone()),
                    StreamAddress::Tcp(_) => None,
                };
                ConnectionKind::Passive(PassiveConnection {
                    listener,
                    path,
                    peers: Vec::new(),
                })
            }
            DummyConnection::Active(address) => ConnectionKind::Active(ActiveConnection {
                address: address.clone(),
                timer: ReconnectTimer::new(now),
                attempt: None,
                peer: None,
                was_lost: false,
            }),
        };
        self.ready = Some(ready);
        self.configured = Some(configured.clone());
        self.drive(now);
        Ok(())
    }

    /// Returns the connection as configured.
    pub(super) const fn configured(&self) -> Option<&DummyConnection> {
        self.configured.as_ref()
    }

    /// Returns the descriptor that is readable while a socket has input.
    pub(super) fn readiness(&self) -> Option<BorrowedFd<'_>> {
        self.ready.as_ref().map(AsFd::as_fd)
    }

    /// Returns the state of an active connection.
    pub(super) const fn state(&self) -> ConnectionState {
        match &self.kind {
            ConnectionKind::Active(active) if active.peer.is_some() => ConnectionState::Connected,
            ConnectionKind::Active(_) => ConnectionState::Disconnected,
            ConnectionKind::None | ConnectionKind::Passive(_) => ConnectionState::Unknown,
        }
    }

    /// Connects an active connection if an attempt is due. Returns the time of the next call.
    pub(super) fn drive(&mut self, now: Instant) -> Option<Instant> {
        let (ConnectionKind::Active(active), Some(ready)) = (&mut self.kind, &self.ready) else {
            return None;
        };
        active.drive(ready, now);
        Some(active.timer.due().unwrap_or(now + CHECK_INTERVAL))
    }

    /// Sends a frame to all peers. A peer that reads too slowly loses it.
    pub(super) fn send(&mut self, frame: &[u8]) {
        let Some(ready) = &self.ready else { return };
        let send = |peer: &mut StreamPeer| peer.send(ready, frame).is_ok();
        match &mut self.kind {
            ConnectionKind::None => {}
            ConnectionKind::Passive(passive) => {
                passive.accept(ready);
                passive.peers.retain_mut(send);
            }
            ConnectionKind::Active(active) => active.with_peer(send),
        }
    }

    /// Accepts peers, sends pending frames, and passes received frames to `accept` while there is
    /// room.
    pub(super) fn run(&mut self, mut accept: impl FnMut(&[u8]) -> HasRoom) {
        let Some(ready) = &self.ready else { return };
        let mut run = |peer: &mut StreamPeer| peer.run(ready, &mut accept).is_ok();
        match &mut self.kind {
            ConnectionKind::None => {}
            ConnectionKind::Passive(passive) => {
                passive.accept(ready);
                passive.peers.retain_mut(run);
            }
            ConnectionKind::Active(active) => active.with_peer(&mut run),
        }
    }
}

impl PassiveConnection {
    fn accept(&mut self, ready: &OwnedFd) {
        while let Ok(socket) = accept_with(&self.listener, SOCKET_FLAGS) {
            // A peer beyond the limit is closed.
            if self.peers.len() < PEERS_MAX
                && let Ok(peer) = StreamPeer::new(ready, socket)
            {
                self.peers.push(peer);
            }
        }
    }
}

impl ActiveConnection {
    fn drive(&mut self, ready: &OwnedFd, now: Instant) {
        if std::mem::take(&mut self.was_lost) {
            self.timer.handle_failure(now);
        }
        if let Some(socket) = self.attempt.take() {
            match is_connected(&socket) {
                Ok(true) => self.finish(ready, socket, now),
                Ok(false) => self.attempt = Some(socket),
                Err(_) => self.timer.handle_failure(now),
            }
        }
        let is_due = self.timer.due().is_some_and(|due| due <= now);
        if !is_due || self.attempt.is_some() {
            return;
        }
        match connect_to(&self.address) {
            Ok((socket, true)) => self.finish(ready, socket, now),
            Ok((socket, false)) => self.attempt = Some(socket),
            Err(_) => self.timer.handle_failure(now),
        }
    }

    fn finish(&mut self, ready: &OwnedFd, socket: OwnedFd, now: Instant) {
        match StreamPeer::new(ready, socket) {
            Ok(peer) => {
                self.peer = Some(peer);
                self.timer.handle_connected(now);
            }
            Err(_) => self.timer.handle_failure(now),
        }
    }

    /// Calls `action` with the peer, and closes the connection if it returns false.
    fn with_peer(&mut self, action: impl FnOnce(&mut StreamPeer) -> bool) {
        if let Some(peer) = &mut self.peer
            && !action(peer)
        {
            self.peer = None;
            self.was_lost = true;
        }
    }
}

impl StreamPeer {
    fn new(ready: &OwnedFd, socket: OwnedFd) -> io::Result<Self> {
        watch(ready, &socket)?;
        Ok(Self {
            stream: FrameStream::new(socket),
            watches_output: false,
        })
    }

    fn send(&mut self, ready: &OwnedFd, frame: &[u8]) -> io::Result<()> {
        self.stream.send(frame)?;
        self.watch_output(ready)
    }

    fn run(&mut self, ready: &OwnedFd, accept: impl FnMut(&[u8]) -> HasRoom) -> io::Result<()> {
        self.stream.flush()?;
        self.watch_output(ready)?;
        self.stream.receive(accept)
    }

    /// Watches the socket's output while frames wait for it.
    fn watch_output(&mut self, ready: &OwnedFd) -> io::Result<()> {
        let has_pending = self.stream.has_pending();
        if self.watches_output != has_pending {
            let output = epoll::EventFlags::OUT;
            let flags = match has_pending {
                true => epoll::EventFlags::IN | output,
                false => epoll::EventFlags::IN,
            };
            epoll::modify(
                ready,
                self.stream.socket(),
                epoll::EventData::new_u64(0),
                flags,
            )?;
            self.watches_output = has_pending;
        }
        Ok(())
    }
}

fn watch(ready: &OwnedFd, socket: &OwnedFd) -> io::Result<()> {
    let data = epoll::EventData::new_u64(0);
    Ok(epoll::add(ready, socket, data, epoll::EventFlags::IN)?)
}

fn family(address: &StreamAddress) -> AddressFamily {
    match address {
        StreamAddress::Unix(_) => AddressFamily::UNIX,
        StreamAddress::Tcp(address) if address.is_ipv6() => AddressFamily::INET6,
        StreamAddress::Tcp(_) => AddressFamily::INET,
    }
}

fn listen_at(address: &StreamAddress) -> io::Result<OwnedFd> {
    let socket = socket_with(family(address), SocketType::STREAM, SOCKET_FLAGS, None)?;
    match address {
        StreamAddress::Unix(path) => {
            // The file of a socket that no process has any more.
            drop(std::fs::remove_file(path));
            bind(&socket, &SocketAddrUnix::new(path)?)?;
        }
        StreamAddress::Tcp(address) => {
            sockopt::set_socket_reuseaddr(&socket, true)?;
            bind(&socket, address)?;
        }
    }
    listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// Returns a socket, and true if it is connected already.
fn connect_to(address: &StreamAddress) -> io::Result<(OwnedFd, bool)> {
    let socket = socket_with(family(address), SocketType::STREAM, SOCKET_FLAGS, None)?;
    let connected = match address {
        StreamAddress::Unix(path) => connect(&socket, &SocketAddrUnix::new(path)?),
        StreamAddress::Tcp(address) => connect(&socket, address),
    };
    match connected {
        Ok(()) => Ok((socket, true)),
        Err(Errno::INPROGRESS) => Ok((socket, false)),
        Err(error) => Err(error.into()),
    }
}

/// Returns true if the attempt has succeeded, false if it continues.
fn is_connected(socket: &OwnedFd) -> io::Result<bool> {
    let mut polled = [PollFd::new(socket, PollFlags::OUT)];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    if poll(&mut polled, Some(&now))? == 0 {
        return Ok(false);
    }
    sockopt::socket_error(socket)??;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn open(text: &str, now: Instant) -> Connection {
        let mut connection = Connection::default();
        let configured = text.parse().expect(text);
        connection
            .configure(Some(&configured), now)
            .expect("a socket can be created");
        connection
    }

    fn receive(connection: &mut Connection) -> Vec<Vec<u8>> {
        let mut received = Vec::new();
        connection.run(|frame| {
            received.push(frame.to_vec());
            HasRoom::Yes
        });
        received
    }

    fn socket_file(name: &str) -> String {
        let name = format!("comporta-dummy-{name}-{}.sock", std::process::id());
        std::env::temp_dir().join(name).display().to_string()
    }

    #[test]
    fn frames_pass_in_both_directions() {
        let path = socket_file("both");
        let mut passive = open(&format!("punix:{path}"), at(0));
        let mut active = open(&format!("unix:{path}"), at(0));
        assert_eq!(active.state(), ConnectionState::Connected);
        assert_eq!(passive.state(), ConnectionState::Unknown);
        passive.send(&[1; 60]);
        active.send(&[2; 60]);
        assert_eq!(receive(&mut active), [[1; 60]]);
        assert_eq!(receive(&mut passive), [[2; 60]]);
        drop(passive);
        assert!(!std::path::Path::new(&path).exists());
    }

    #[test]
    fn tcp_connection_is_completed_later() {
        // Port 0 is any free one.
        let address = "127.0.0.1:0".parse().expect("an address");
        let listener = listen_at(&StreamAddress::Tcp(address)).expect("a free port");
        let bound = rustix::net::getsockname(&listener).expect("a bound socket");
        let bound = std::net::SocketAddr::try_from(bound).expect("an IP address");
        let mut active = open(&format!("tcp:{bound}"), at(0));
        active.drive(at(0));
        assert_eq!(active.state(), ConnectionState::Connected);
    }

    #[test]
    fn active_connection_reconnects_after_backoff() {
        let path = socket_file("backoff");
        let mut active = open(&format!("unix:{path}"), at(0));
        assert_eq!(active.state(), ConnectionState::Disconnected);
        let passive = open(&format!("punix:{path}"), at(0));
        assert_eq!(active.drive(at(99)), Some(at(100)));
        assert_eq!(active.state(), ConnectionState::Disconnected);
        active.drive(at(100));
        assert_eq!(active.state(), ConnectionState::Connected);
        drop(passive);
        assert_eq!(receive(&mut active), [[0; 0]; 0]);
        assert_eq!(active.state(), ConnectionState::Disconnected);
        assert_eq!(active.drive(at(5000)), Some(at(5100)));
    }

    #[test]
    fn change_of_configuration_replaces_connection() {
        let (one, two) = (socket_file("one"), socket_file("two"));
        let mut passive = open(&format!("punix:{one}"), at(0));
        let other = format!("punix:{two}").parse().expect("a path");
        passive
            .configure(Some(&other), at(0))
            .expect("a socket can be created");
        assert!(!std::path::Path::new(&one).exists());
        assert!(std::path::Path::new(&two).exists());
        passive.configure(None, at(0)).expect("nothing is created");
        assert!(passive.readiness().is_none());
        assert!(!std::path::Path::new(&two).exists());
    }
}
