//! Network namespaces: running code inside, and sysctl settings.
//!
//! Links and addresses are in [`crate::link`], counters and offloads of interfaces in
//! [`crate::interface`].

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

use sys::interface::Interfaces;

use crate::Failure;

/// An anonymous network namespace. It is deleted, with all its links, once this value is dropped,
/// the sockets opened in it are closed and the processes in it have ended.
pub struct Namespace {
    fd: OwnedFd,
    interfaces: Interfaces,
}

impl Namespace {
    /// Creates a namespace with only a loopback interface, which is up, and without IPv6, so that
    /// the kernel sends nothing in it by itself.
    ///
    /// # Errors
    /// The process lacks the privilege (root), or the kernel does not support namespaces.
    pub fn new() -> Result<Self, Failure> {
        let failure = || Failure::to("create a network namespace");
        let fd = sys::namespace::create().map_err(failure())?;
        let namespace = Self::of(fd).map_err(failure())?;
        for scope in ["all", "default"] {
            namespace.set_sysctl(&format!("net/ipv6/conf/{scope}/disable_ipv6"), "1")?;
        }
        // Present only if br_netfilter is loaded; each bridged frame would then pass iptables.
        for family in ["iptables", "ip6tables", "arptables"] {
            namespace.set_sysctl(&format!("net/bridge/bridge-nf-call-{family}"), "0")?;
        }
        namespace.set_up("lo")?;
        Ok(namespace)
    }

    /// The namespace of the calling thread.
    ///
    /// # Errors
    /// The process has no file descriptor left.
    pub fn current() -> Result<Self, Failure> {
        let failure = || Failure::to("find the network namespace of this process");
        Self::of(sys::namespace::current().map_err(failure())?).map_err(failure())
    }

    /// Opens the namespace behind a file: one of `/run/netns`, or `/proc/PID/ns/net`.
    ///
    /// # Errors
    /// The file does not exist or is not a network namespace, or root is required.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let failure = || Failure::to(format!("open the network namespace {}", path.display()));
        let file = File::open(path).map_err(failure())?;
        Self::of(file.into()).map_err(failure())
    }

    /// Another handle of the same namespace.
    ///
    /// # Errors
    /// The process has no file descriptor left.
    pub fn again(&self) -> Result<Self, Failure> {
        let fd = self.fd.try_clone();
        fd.and_then(Self::of)
            .map_err(Failure::to("keep a network namespace"))
    }

    fn of(fd: OwnedFd) -> io::Result<Self> {
        let interfaces = Interfaces::in_namespace(fd.as_fd())?;
        Ok(Self { fd, interfaces })
    }

    /// Runs `body` inside the namespace, in a separate thread, and waits for it. Sockets that it
    /// opens remain in the namespace, also if other threads use them later.
    ///
    /// # Errors
    /// The thread could not be started or moved.
    pub fn run<R: Send>(&self, body: impl FnOnce() -> R + Send) -> Result<R, Failure> {
        sys::namespace::run(self.fd.as_fd(), body).map_err(Failure::to("enter a network namespace"))
    }

    /// Writes a sysctl such as `net/ipv4/ip_forward`. One that this kernel does not have is
    /// ignored: it cannot be on.
    ///
    /// # Errors
    /// It exists and cannot be written.
    pub fn set_sysctl(&self, name: &str, value: &str) -> Result<(), Failure> {
        let path = PathBuf::from("/proc/sys").join(name);
        match self.run(|| fs::write(&path, value))? {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Failure::to(format!("set {name}"))(error))
            }
            _ => Ok(()),
        }
    }

    /// The descriptor that keeps the namespace alive.
    #[must_use]
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// The interfaces of the namespace, for system calls that need no thread inside.
    pub(crate) const fn interfaces(&self) -> &Interfaces {
        &self.interfaces
    }
}

impl fmt::Debug for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Namespace").field("fd", &self.fd).finish()
    }
}
