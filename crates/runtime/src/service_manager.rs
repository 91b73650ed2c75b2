//! Messages to the service manager, as sd_notify(3) sends them: a datagram with the state, to the
//! socket that the environment names. Without such a socket, all calls do nothing.

use std::env;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use base::Instant;

/// Variables of the service manager (sd_notify(3), sd_watchdog_enabled(3)).
const SOCKET: &str = "NOTIFY_SOCKET";
const WATCHDOG_USEC: &str = "WATCHDOG_USEC";
const WATCHDOG_PID: &str = "WATCHDOG_PID";

/// The state of the connection to the service manager.
#[derive(Debug, Default)]
pub(crate) struct ServiceManager {
    socket: Option<NotifySocket>,
    /// The interval in which the watchdog must be fed: half of its time limit.
    interval: Option<Duration>,
    fed: Option<Instant>,
}

#[derive(Debug)]
struct NotifySocket {
    socket: UnixDatagram,
    address: SocketAddr,
}

/// Reports to the service manager that the switch is ready.
pub fn notify_ready() {
    ServiceManager::from_environment().send("READY=1\n");
}

impl ServiceManager {
    /// Returns the service manager of this process.
    pub(crate) fn from_environment() -> Self {
        let text = |name| env::var(name).ok();
        let socket = text(SOCKET).and_then(|name| match NotifySocket::open(&name) {
            Ok(socket) => Some(socket),
            Err(error) => {
                tracing::warn!("{SOCKET}={name}: {error}; the service manager is not notified");
                None
            }
        });
        Self {
            socket,
            interval: interval_of(
                text(WATCHDOG_USEC).as_deref(),
                text(WATCHDOG_PID).as_deref(),
                std::process::id(),
            ),
            fed: None,
        }
    }

    /// Feeds the watchdog, if it is enabled and due.
    pub(crate) fn feed_watchdog(&mut self, now: Instant) {
        let Some(interval) = self.interval else {
            return;
        };
        if self.fed.is_none_or(|fed| now - fed >= interval) {
            self.fed = Some(now);
            self.send("WATCHDOG=1\n");
        }
    }

    /// Reports that the switch ends.
    pub(crate) fn announce_stop(&self) {
        self.send("STOPPING=1\n");
    }

    fn send(&self, state: &str) {
        if let Some(NotifySocket { socket, address }) = &self.socket
            && let Err(error) = socket.send_to_addr(state.as_bytes(), address)
        {
            tracing::debug!(%error, "cannot notify the service manager");
        }
    }
}

impl NotifySocket {
    /// Opens the socket with this name: a path, or an abstract name after `@`.
    fn open(name: &str) -> io::Result<Self> {
        let address = match name.strip_prefix('@') {
            Some(name) => SocketAddr::from_abstract_name(name)?,
            None => SocketAddr::from_pathname(name)?,
        };
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, address })
    }
}

/// Returns the interval in which this process must feed the watchdog. The variables may be those of
/// a parent, and are ignored then; malformed ones are, too.
fn interval_of(usec: Option<&str>, pid: Option<&str>, this: u32) -> Option<Duration> {
    if pid.is_some_and(|pid| pid.parse::<u32>().ok() != Some(this)) {
        return None;
    }
    let usec = usec?.parse::<u64>().ok().filter(|usec| *usec > 0)?;
    Some(Duration::from_micros(usec) / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watchdog_interval_is_half_of_the_time_limit_of_this_process() {
        let second = Some(Duration::from_secs(1));
        assert_eq!(interval_of(Some("2000000"), None, 7), second);
        assert_eq!(interval_of(Some("2000000"), Some("7"), 7), second);
        assert_eq!(interval_of(Some("2000000"), Some("8"), 7), None);
        for bad in [None, Some("0"), Some("x"), Some("-1")] {
            assert_eq!(interval_of(bad, None, 7), None);
        }
    }

    #[test]
    fn service_manager_receives_states_at_path_and_abstract_name() {
        let path = env::temp_dir().join(format!("comporta-notify-{}", std::process::id()));
        let name = format!("@comporta-notify-{}", std::process::id());
        let abstract_address = SocketAddr::from_abstract_name(&name[1..]).expect("a short name");
        let listeners = [
            (path.to_str().expect("text"), UnixDatagram::bind(&path)),
            (name.as_str(), UnixDatagram::bind_addr(&abstract_address)),
        ];
        for (name, listener) in listeners {
            let listener = listener.expect("a free name");
            let mut manager = ServiceManager {
                socket: Some(NotifySocket::open(name).expect("a legal name")),
                interval: Some(Duration::from_secs(1)),
                fed: None,
            };
            for millis in [0, 999, 1000] {
                manager.feed_watchdog(Instant::from_millis(millis));
            }
            manager.announce_stop();
            let mut buffer = [0; 64];
            let mut next = || {
                let len = listener.recv(&mut buffer).expect("it was sent");
                String::from_utf8_lossy(&buffer[..len]).into_owned()
            };
            assert_eq!(next(), "WATCHDOG=1\n");
            assert_eq!(next(), "WATCHDOG=1\n");
            assert_eq!(next(), "STOPPING=1\n");
        }
        std::fs::remove_file(path).expect("it exists");
    }

    #[test]
    fn absent_service_manager_is_not_notified() {
        let mut manager = ServiceManager::default();
        manager.feed_watchdog(Instant::START);
        manager.announce_stop();
        assert!(NotifySocket::open(&"x".repeat(200)).is_err());
    }
}
