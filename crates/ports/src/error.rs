//! Reasons why a port cannot be opened, each with its remedy.

use std::io;
use std::num::NonZeroUsize;

use rustix::io::Errno;

use crate::QUEUES_MAX;

/// A port cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// No interface has this name.
    #[error("interface {name} does not exist: `ip link` lists the existing ones")]
    Unknown {
        /// Name of the interface.
        name: String,
    },
    /// The process lacks a capability.
    #[error(
        "cannot open {name} without {capability}: run as root, or give the program \
         the capability with `setcap cap_net_admin,cap_net_raw+ep`"
    )]
    Privilege {
        /// Name of the interface.
        name: String,
        /// The missing capability.
        capability: &'static str,
    },
    /// The interface's frames have no Ethernet header.
    #[error("{name} is not an Ethernet interface: its frames have no MAC addresses")]
    NotEthernet {
        /// Name of the interface.
        name: String,
    },
    /// The name of a new TAP device is in use.
    #[error(
        "cannot create {name}: an interface with this name exists: choose another name, or \
         remove it with `ip link delete {name}` if nothing uses it"
    )]
    NameTaken {
        /// Name of the device.
        name: String,
    },
    /// The kernel has no TAP devices.
    #[error(
        "{device} does not exist: load the module with `modprobe tun`, or pass the device \
         to the container",
        device = sys::tun::DEVICE
    )]
    NoTapDevices,
    /// More queues than a port may have.
    #[error("{name} cannot have {requested} queues: the maximum is {QUEUES_MAX}")]
    TooManyQueues {
        /// Name of the interface.
        name: String,
        /// Requested number of queues.
        requested: NonZeroUsize,
    },
    /// The kernel creates fanout groups only on interfaces that are up.
    #[error(
        "{name} is down, and this kernel can distribute its frames over queues only while it \
         is up: run `ip link set {name} up` first"
    )]
    DownAndShared {
        /// Name of the interface.
        name: String,
    },
    /// The kernel has no AF_XDP sockets.
    #[error(
        "cannot open {name} with AF_XDP: this kernel has no AF_XDP sockets with wake-ups (Linux 5.4 and \
         later, CONFIG_XDP_SOCKETS); omit `xdp:` to use packet sockets"
    )]
    NoXdpSockets {
        /// Name of the interface.
        name: String,
    },
    /// The kernel has no bpf(2), or no XDP links.
    #[error(
        "cannot open {name} with AF_XDP: this kernel has no bpf(2) with XDP links (Linux 5.9 and later, \
         CONFIG_BPF_SYSCALL); omit `xdp:` to use packet sockets"
    )]
    NoXdpPrograms {
        /// Name of the interface.
        name: String,
    },
    /// The process lacks a capability that AF_XDP requires.
    #[error(
        "cannot open {name} with AF_XDP without CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF: run as \
         root, or give the program the capabilities with \
         `setcap cap_net_admin,cap_net_raw,cap_bpf,cap_ipc_lock+ep`"
    )]
    XdpPrivilege {
        /// Name of the interface.
        name: String,
    },
    /// The process may not lock the memory of the UMEM.
    #[error(
        "cannot open {name} with AF_XDP: this process may not lock enough memory: run as root, \
         raise `ulimit -l`, or give the program cap_ipc_lock"
    )]
    XdpMemory {
        /// Name of the interface.
        name: String,
    },
    /// Another XDP program is attached, or another socket is bound to the queue.
    #[error(
        "{name} is in use by another XDP program or AF_XDP socket: `ip link show {name}` shows the \
         program's ID, and `ip link set {name} xdp off` detaches it"
    )]
    XdpBusy {
        /// Name of the interface.
        name: String,
    },
    /// The MTU exceeds a chunk.
    #[error(
        "{name} has an MTU of {mtu}, and the maximum for AF_XDP is {max}: `ip link set {name} mtu {max}`, \
         or omit `xdp:`"
    )]
    TooLongForXdp {
        /// Name of the interface.
        name: String,
        /// MTU of the interface.
        mtu: u32,
        /// Maximum MTU.
        max: u32,
    },
    /// The device has more receive queues than a port may have.
    #[error(
        "{name} has {has} receive queues, and AF_XDP must serve all of them: `ethtool -L {name} combined \
         {QUEUES_MAX}` or fewer"
    )]
    TooManyDeviceQueues {
        /// Name of the interface.
        name: String,
        /// Number of receive queues.
        has: u32,
    },
    /// Native XDP was required and is not available.
    #[error("{name}: its driver does not support native XDP ({source}): omit `native`")]
    NoNativeXdp {
        /// Name of the interface.
        name: String,
        /// Cause.
        source: io::Error,
    },
    /// Zero copy was required and is not available.
    #[error(
        "{name}: its driver does not support AF_XDP zero copy ({source}): omit `zero-copy`, \
         and the kernel copies the frames"
    )]
    NoZeroCopy {
        /// Name of the interface.
        name: String,
        /// Cause.
        source: io::Error,
    },
    /// Busy polling was required and is not available.
    #[error(
        "{name} does not support busy polling ({source}; Linux 5.11 and later): omit `busy-poll`"
    )]
    NoBusyPoll {
        /// Name of the interface.
        name: String,
        /// Cause.
        source: io::Error,
    },
    /// The program was built without DPDK.
    #[error(
        "{name}: this program was built without DPDK: install libdpdk-dev, and build it with \
         `cargo build --release --features dpdk`"
    )]
    NoDpdk {
        /// Name of the device.
        name: String,
    },
    /// DPDK or one of its drivers failed.
    #[error("{name}: {step}: {problem}")]
    Dpdk {
        /// Name of the device.
        name: String,
        /// Failed operation.
        step: &'static str,
        /// Cause, with the driver's message.
        problem: String,
    },
    /// The capture file cannot be replayed.
    #[error("{name}: cannot replay {file}: {problem}")]
    NoCapture {
        /// Name of the port.
        name: String,
        /// The file.
        file: String,
        /// Cause.
        problem: io::Error,
    },
    /// Another system call failed.
    #[error("{name}: cannot {step}: {source}")]
    Failed {
        /// Name of the interface.
        name: String,
        /// Failed operation.
        step: &'static str,
        /// Cause.
        source: io::Error,
    },
}

/// Converts the error of an operation that requires `capability`.
pub(crate) fn failed(
    name: impl ToString,
    step: &'static str,
    capability: &'static str,
) -> impl FnOnce(io::Error) -> OpenError {
    let name = name.to_string();
    move |source| match Errno::from_io_error(&source) {
        Some(Errno::PERM | Errno::ACCESS) => OpenError::Privilege { name, capability },
        Some(Errno::NODEV | Errno::NXIO) => OpenError::Unknown { name },
        _ => OpenError::Failed { name, step, source },
    }
}

/// The error of a queue whose device was removed.
pub(crate) fn removed(name: impl std::fmt::Display) -> io::Error {
    io::Error::new(
        io::ErrorKind::NotFound,
        format!("interface {name} was removed"),
    )
}
