//! Why a port could not be opened, each with what to do about it.

use std::io;
use std::num::NonZeroUsize;

use rustix::io::Errno;

use crate::QUEUES_MAX;

/// A port could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is no such interface.
    #[error("there is no interface {name} here: `ip link` lists those there are")]
    Unknown {
        /// Its name.
        name: String,
    },
    /// The process lacks a capability.
    #[error(
        "{name} cannot be opened without {capability}: run as root, or give the program \
         the capability with `setcap cap_net_admin,cap_net_raw+ep`"
    )]
    Privilege {
        /// The interface's name.
        name: String,
        /// What is missing.
        capability: &'static str,
    },
    /// The interface's frames do not begin with an Ethernet header.
    #[error("{name} is not an Ethernet interface: its frames have no addresses to switch by")]
    NotEthernet {
        /// Its name.
        name: String,
    },
    /// A TAP device was to be made, and the name is in use.
    #[error(
        "an interface {name} exists already: choose another name, or remove it with \
         `ip link delete {name}` if nothing uses it"
    )]
    NameTaken {
        /// The name.
        name: String,
    },
    /// The kernel hands out no TAP devices.
    #[error(
        "there is no {device}: load the module with `modprobe tun`, or hand the device \
         to the container",
        device = sys::tun::DEVICE
    )]
    NoTapDevices,
    /// More queues than a port may have.
    #[error("{name} cannot have {asked} queues: {QUEUES_MAX} are the most")]
    TooManyQueues {
        /// The interface's name.
        name: String,
        /// How many were asked for.
        asked: NonZeroUsize,
    },
    /// The kernel shares the frames of an interface only while it is up.
    #[error(
        "{name} is down, and this kernel can share its frames among queues only when it \
         is up: `ip link set {name} up` first"
    )]
    DownAndShared {
        /// The interface's name.
        name: String,
    },
    /// The kernel has no AF_XDP sockets.
    #[error(
        "{name} cannot be opened by AF_XDP: this kernel has no AF_XDP sockets with wake-ups (5.4 and \
         later, CONFIG_XDP_SOCKETS); without `xdp:` it is opened by packet sockets"
    )]
    NoXdpSockets {
        /// The interface's name.
        name: String,
    },
    /// The kernel loads no programs, or attaches them by no link.
    #[error(
        "{name} cannot be opened by AF_XDP: this kernel has no bpf(2) with links (5.9 and later, \
         CONFIG_BPF_SYSCALL); without `xdp:` it is opened by packet sockets"
    )]
    NoXdpPrograms {
        /// The interface's name.
        name: String,
    },
    /// The process lacks one of the capabilities that AF_XDP takes.
    #[error(
        "{name} cannot be opened by AF_XDP without CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF: run as \
         root, or give the program the capabilities with \
         `setcap cap_net_admin,cap_net_raw,cap_bpf,cap_ipc_lock+ep`"
    )]
    XdpPrivilege {
        /// The interface's name.
        name: String,
    },
    /// The process may not lock the memory that frames are to come to.
    #[error(
        "{name} cannot be opened by AF_XDP: this process may not lock so much memory: run as root, \
         raise `ulimit -l`, or give the program cap_ipc_lock"
    )]
    XdpMemory {
        /// The interface's name.
        name: String,
    },
    /// Somebody else's program is on the interface, or somebody else's socket at its queue.
    #[error(
        "{name} is in use by another XDP program or AF_XDP socket: `ip link show {name}` shows the \
         program's id, and `ip link set {name} xdp off` takes it off"
    )]
    XdpBusy {
        /// The interface's name.
        name: String,
    },
    /// The interface's frames are longer than the memory they would be received in.
    #[error(
        "{name} has an MTU of {mtu}, and AF_XDP takes {most} at most: `ip link set {name} mtu {most}`, \
         or leave `xdp:` away"
    )]
    TooLongForXdp {
        /// The interface's name.
        name: String,
        /// Its MTU.
        mtu: u32,
        /// The longest.
        most: u32,
    },
    /// The device has more receive queues than a port may have.
    #[error(
        "{name} has {has} receive queues, and AF_XDP must serve each: `ethtool -L {name} combined \
         {QUEUES_MAX}` at most"
    )]
    TooManyDeviceQueues {
        /// The interface's name.
        name: String,
        /// How many it has.
        has: u32,
    },
    /// Only the driver's own hook was asked for, and it cannot be had.
    #[error("{name}: its driver takes no XDP program ({source}): leave `native` away")]
    NoNativeXdp {
        /// The interface's name.
        name: String,
        /// How it failed.
        source: io::Error,
    },
    /// The device was to read and write the memory itself, and does not.
    #[error(
        "{name}: its driver does not read and write frames in our memory ({source}): leave \
         `zero-copy` away, and the kernel copies them"
    )]
    NoZeroCopy {
        /// The interface's name.
        name: String,
        /// How it failed.
        source: io::Error,
    },
    /// The device was to be polled, and cannot be.
    #[error("{name} cannot be polled ({source}; Linux 5.11 and later): leave `busy-poll` away")]
    NoBusyPoll {
        /// The interface's name.
        name: String,
        /// How it failed.
        source: io::Error,
    },
    /// The program was built without DPDK.
    #[error(
        "{name}: this program was built without DPDK: install libdpdk-dev, and build it with \
         `cargo build --release --features dpdk`"
    )]
    NoDpdk {
        /// The device's name.
        name: String,
    },
    /// DPDK or one of its drivers refused.
    #[error("{name}: {step}: {problem}")]
    Dpdk {
        /// The device's name.
        name: String,
        /// What was being done.
        step: &'static str,
        /// How it failed, and what the driver said of it.
        problem: String,
    },
    /// The file whose frames were to be received cannot be used.
    #[error("{name}: {file} cannot be replayed: {problem}")]
    NoCapture {
        /// The port's name.
        name: String,
        /// The file.
        file: String,
        /// What is wrong.
        problem: io::Error,
    },
    /// Another call to the kernel failed.
    #[error("{name}: {step}: {source}")]
    Failed {
        /// The interface's name.
        name: String,
        /// What was being done.
        step: &'static str,
        /// How it failed.
        source: io::Error,
    },
}

/// The error of a step that needs `capability`, if it may lack it.
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

/// The error with which a queue says that its device is gone.
pub(crate) fn gone(name: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("interface {name} is gone"))
}
