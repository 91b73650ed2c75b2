//! A socket for connections from devices, by a path or by TCP. Several devices, or several bridges
//! of one device, may connect to it: their datapath ids distinguish them.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base::DatapathId;
use openflow::Version;
use testbed::{Clock, ControlStream, Failure};

use super::{Controller, ControllerError, ControllerSettings};

/// A socket for connections from devices.
#[derive(Debug)]
pub struct Listener {
    socket: Socket,
}

#[derive(Debug)]
enum Socket {
    Unix(UnixListener, PathBuf),
    Tcp(TcpListener),
}

impl Listener {
    /// Listens at `path`, and replaces a socket of an earlier run.
    ///
    /// # Errors
    /// The directory is missing or not writable.
    pub fn bind(path: &Path) -> Result<Self, ControllerError> {
        let failure = || Failure::to(format!("listen at {}", path.display()));
        match fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(failure()(error).into());
            }
            _ => {}
        }
        let socket = UnixListener::bind(path).map_err(failure())?;
        socket.set_nonblocking(true).map_err(failure())?;
        let socket = Socket::Unix(socket, path.to_owned());
        Ok(Self { socket })
    }

    /// Listens on a TCP address of this namespace.
    ///
    /// # Errors
    /// The address is in use, or does not belong to this machine.
    pub fn bind_tcp(address: SocketAddr) -> Result<Self, ControllerError> {
        let failure = || Failure::to(format!("listen at {address}"));
        let socket = TcpListener::bind(address).map_err(failure())?;
        Self::over(socket).map_err(failure()).map_err(Into::into)
    }

    /// Listens on an existing socket, for example of another namespace.
    ///
    /// # Errors
    /// The system refuses to make it non-blocking, or to timestamp received bytes.
    pub fn over(socket: TcpListener) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        testbed::enable_timestamps(&socket)?;
        let socket = Socket::Tcp(socket);
        Ok(Self { socket })
    }

    /// Returns the TCP address for devices, if this is a TCP socket.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        match &self.socket {
            Socket::Unix(..) => None,
            Socket::Tcp(socket) => socket.local_addr().ok(),
        }
    }

    /// Returns the address for devices in words.
    #[must_use]
    pub fn address_text(&self) -> String {
        match &self.socket {
            Socket::Unix(_, path) => path.display().to_string(),
            Socket::Tcp(_) => self
                .address()
                .map_or_else(|| "its TCP port".to_owned(), |address| address.to_string()),
        }
    }

    /// Accepts a device and negotiates OpenFlow 1.0. `alive` reports whether the wait is
    /// worthwhile.
    ///
    /// # Errors
    /// No device connects, the negotiation fails, or `alive` returns an error.
    pub fn accept(
        &self,
        clock: &Clock,
        limit: Duration,
        alive: impl FnMut() -> Result<(), Failure>,
    ) -> Result<Controller, ControllerError> {
        self.accept_as(
            ControllerSettings::silent(Version::V10),
            clock,
            limit,
            alive,
        )
    }

    /// Accepts a device. `alive` reports whether the wait is worthwhile.
    ///
    /// # Errors
    /// No device connects, the negotiation fails, or `alive` returns an error.
    pub fn accept_as(
        &self,
        settings: ControllerSettings,
        clock: &Clock,
        limit: Duration,
        mut alive: impl FnMut() -> Result<(), Failure>,
    ) -> Result<Controller, ControllerError> {
        let stream = clock.wait_for("the device to connect to its controller", limit, || {
            alive()?;
            match self.caller() {
                Ok(stream) => Ok(Some(stream)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
                Err(error) => Err(Failure::to("accept the device's connection")(error)),
            }
        })?;
        Controller::start(stream, settings, clock)
    }

    /// Accepts `count` devices with the same configuration. A device whose negotiation fails is
    /// disconnected and does not count.
    ///
    /// # Errors
    /// Fewer devices connect in time: then the error of the last failed negotiation, if any. Two
    /// devices have the same datapath id. `alive` returns an error.
    pub fn gather(
        &self,
        count: usize,
        settings: &ControllerSettings,
        clock: &Clock,
        limit: Duration,
        mut alive: impl FnMut() -> Result<(), Failure>,
    ) -> Result<BTreeMap<DatapathId, Controller>, ControllerError> {
        let deadline = clock.now() + limit;
        let mut devices = BTreeMap::new();
        let mut failed = None;
        while devices.len() < count {
            let rest = deadline.since(clock.now());
            match self.accept_as(settings.clone(), clock, rest, &mut alive) {
                Ok(device) => {
                    let id = device.datapath_id();
                    if devices.insert(id, device).is_some() {
                        return Err(ControllerError::SameDatapath(id));
                    }
                }
                Err(error @ ControllerError::Failure(Failure::Timeout { .. })) => {
                    return Err(failed.unwrap_or(error));
                }
                Err(error @ ControllerError::Failure(_)) => return Err(error),
                Err(error) => failed = Some(error),
            }
        }
        Ok(devices)
    }

    fn caller(&self) -> io::Result<ControlStream> {
        match &self.socket {
            Socket::Unix(socket, _) => ControlStream::unix(socket.accept()?.0),
            Socket::Tcp(socket) => ControlStream::tcp(socket.accept()?.0),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Socket::Unix(_, path) = &self.socket {
            // The file may have been removed already.
            let _ = fs::remove_file(path);
        }
    }
}
