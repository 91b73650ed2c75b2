//! The syslogs of the system and of other machines: `--syslog-method` and `--syslog-target` of
//! ovs-vswitchd(8). Lines that they do not accept at once are lost.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;

/// The system's syslog socket, as in the C library.
const SYSTEM: &str = "/dev/log";

/// The connection to the system's syslog.
#[derive(Debug, Default)]
pub enum Syslog {
    /// Like the C library.
    #[default]
    System,
    /// A Unix socket.
    Unix(PathBuf),
    /// UDP.
    Udp(SyslogTarget),
    /// No syslog.
    Null,
}

impl Syslog {
    /// Parses the argument of `--syslog-method`.
    ///
    /// # Errors
    /// There is no such method.
    pub fn read(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "libc" => Ok(Self::System),
            None if text == "null" => Ok(Self::Null),
            Some(("unix", path)) if !path.is_empty() => Ok(Self::Unix(path.into())),
            Some(("udp", target)) => SyslogTarget::read(target).map(Self::Udp),
            _ => Err(format!(
                "unsupported syslog method '{text}': use libc, unix:FILE, udp:IP:PORT or null"
            )),
        }
    }

    /// Returns the prefix of a line as `vlog/list-pattern` prints it: the C library adds more than
    /// other methods (syslog(3)).
    pub(super) const fn shown_prefix(&self) -> &'static str {
        match self {
            Self::System => "<%B> %D{%h %e %T} %E %A: ",
            Self::Unix(_) | Self::Udp(_) => "<%B>",
            Self::Null => "",
        }
    }

    /// Returns the prefix as it is sent: the system's syslog knows the host.
    pub(super) const fn prefix(&self) -> &'static str {
        match self {
            Self::System => "<%B>%d{%h %e %T} %A: ",
            other => other.shown_prefix(),
        }
    }

    /// Sends a line.
    pub(super) fn send(&self, line: &str) {
        match self {
            Self::System => send_to_file(SYSTEM.into(), line),
            Self::Unix(path) => send_to_file(path.clone(), line),
            Self::Udp(target) => target.send(line),
            Self::Null => {}
        }
    }
}

/// A syslog that receives UDP.
#[derive(Debug)]
pub struct SyslogTarget {
    socket: UdpSocket,
    address: SocketAddr,
}

impl SyslogTarget {
    /// Parses an address with a port.
    ///
    /// # Errors
    /// The address is malformed, or the system has no socket for it.
    pub fn read(text: &str) -> Result<Self, String> {
        let usual = "a syslog target is an address with a port, as in 10.0.0.9:514";
        let address: SocketAddr = text.parse().map_err(|_| format!("'{text}': {usual}"))?;
        let any: IpAddr = match address {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let made = UdpSocket::bind((any, 0)).and_then(|socket| {
            socket.set_nonblocking(true)?;
            Ok(Self { socket, address })
        });
        made.map_err(|error| format!("{text}: {error}"))
    }

    /// Sends a line.
    pub(super) fn send(&self, line: &str) {
        drop(self.socket.send_to(line.as_bytes(), self.address));
    }
}

/// A new socket for each line: the syslog daemon may have been restarted.
fn send_to_file(path: PathBuf, line: &str) {
    let sent = || -> io::Result<usize> {
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        socket.send_to(line.as_bytes(), path)
    };
    drop(sent());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syslog_methods_match_manual() {
        for good in [
            "libc",
            "null",
            "unix:/run/log",
            "udp:127.0.0.1:514",
            "udp:[::1]:514",
        ] {
            assert!(Syslog::read(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "dance",
            "unix:",
            "udp:127.0.0.1",
            "udp:host:514",
            "unix",
        ] {
            assert!(Syslog::read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn syslog_line_reaches_listener() {
        let listener = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let syslog = Syslog::read(&format!("udp:{address}")).expect("an address");
        syslog.send("<28>a line");
        let mut heard = [0; 64];
        let len = listener.recv(&mut heard).expect("it was sent");
        assert_eq!(&heard[..len], b"<28>a line");
    }
}
