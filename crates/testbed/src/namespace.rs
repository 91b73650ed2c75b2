//! A network namespace as a place: run code there, read and set its switches.
//!
//! What lies in it (links, addresses) is in [`crate::link`], and what its
//! interfaces count and can in [`crate::interface`].

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

use sys::interface::Interfaces;

use crate::Failure;

/// An anonymous network namespace. It vanishes, with all links in it, when this
/// value, the sockets opened in it and the processes that run in it are gone.
pub struct Namespace {
    fd: OwnedFd,
    interfaces: Interfaces,
}

impl Namespace {
    /// Makes a namespace with nothing in it but its loopback interface, which is
    /// up, and with IPv6 off, so that nothing is sent in it unasked.
    ///
    /// # Errors
    /// No right to make one (root is needed), or no such thing in this kernel.
    pub fn new() -> Result<Self, Failure> {
        let failure = || Failure::to("make a network namespace");
        let fd = sys::namespace::create().map_err(failure())?;
        let namespace = Self::of(fd).map_err(failure())?;
        for scope in ["all", "default"] {
            namespace.set_sysctl(&format!("net/ipv6/conf/{scope}/disable_ipv6"), "1")?;
        }
        // Present only where br_netfilter is loaded; then each bridged frame would visit iptables.
        for family in ["iptables", "ip6tables", "arptables"] {
            namespace.set_sysctl(&format!("net/bridge/bridge-nf-call-{family}"), "0")?;
        }
        namespace.set_up("lo")?;
        Ok(namespace)
    }

    /// The namespace that the calling thread is in.
    ///
    /// # Errors
    /// The process has no descriptor left.
    pub fn current() -> Result<Self, Failure> {
        let failure = || Failure::to("find the network namespace of this process");
        Self::of(sys::namespace::current().map_err(failure())?).map_err(failure())
    }

    /// The namespace that a file stands for: one of `/run/netns`, or `/proc/PID/ns/net`.
    ///
    /// # Errors
    /// There is no such file, or it is no network namespace, or root is needed.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let failure = || Failure::to(format!("open the network namespace {}", path.display()));
        let file = File::open(path).map_err(failure())?;
        Self::of(file.into()).map_err(failure())
    }

    /// The same namespace, kept alive once more.
    ///
    /// # Errors
    /// The process has no descriptor left.
    pub fn again(&self) -> Result<Self, Failure> {
        let fd = self.fd.try_clone();
        fd.and_then(Self::of)
            .map_err(Failure::to("keep a network namespace"))
    }

    fn of(fd: OwnedFd) -> io::Result<Self> {
        let interfaces = Interfaces::in_namespace(fd.as_fd())?;
        Ok(Self { fd, interfaces })
    }

    /// Runs `body` inside, on a thread of its own, and waits for it. Sockets that
    /// it opens stay in the namespace, whoever uses them later.
    ///
    /// # Errors
    /// The thread could not be started or moved.
    pub fn run<R: Send>(&self, body: impl FnOnce() -> R + Send) -> Result<R, Failure> {
        sys::namespace::run(self.fd.as_fd(), body).map_err(Failure::to("enter a network namespace"))
    }

    /// Writes a switch such as `net/ipv4/ip_forward`. One that this kernel does
    /// not have is passed over: it cannot be on.
    ///
    /// # Errors
    /// It is there and cannot be written.
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

    /// Its interfaces, by system calls that need no thread inside.
    pub(crate) const fn interfaces(&self) -> &Interfaces {
        &self.interfaces
    }
}

impl fmt::Debug for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Namespace").field("fd", &self.fd).finish()
    }
}
