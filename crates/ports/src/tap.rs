//! A TAP device: an interface for the host, a port for the switch.
//!
//! ```text
//!  host stack                         switch
//!   tap0 <---- queue 0 (fd) <----> worker 0      read(2), write(2): one frame per call,
//!        <---- queue 1 (fd) <----> worker 1      preceded by a virtio_net_hdr
//! ```
//!
//! The device is removed with its port and the last of its queues, so a killed process leaves none
//! behind. The user may rename it and move it to another network namespace; the queues continue to
//! work (Documentation/networking/tuntap.rst).
//!
//! With `TUN_F_*` offloads the host passes frames of up to 64 KB with partial checksums (see
//! [`vnet`]), so one system call transports up to 45 segments of an Ethernet MTU.

mod queue;

use std::io;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use packet::MacAddr;
use rustix::fs::fstat;
use rustix::io::Errno;
use sys::interface::{InterfaceName, Interfaces};
use sys::tun::{Attach, Offloads, TapQueue};

use crate::error::failed;
use crate::status::set_link;
use crate::{OpenError, Port, QUEUES_MAX, Queue, Status, vnet};
use queue::{TapPortQueue, TapTxQueue};

const CAPABILITY: &str = "CAP_NET_ADMIN";

/// Options of a TAP device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TapOptions {
    /// Ethernet address; `None`: the kernel generates one.
    pub address: Option<MacAddr>,
    /// Number of queues. The kernel distributes frames among them by flow.
    pub queues: NonZeroUsize,
}

/// An open TAP device.
pub struct Tap {
    name: InterfaceName,
    /// One of the queues, which reports the current name and namespace of the device.
    device: Arc<TapQueue>,
    home: HomeNamespace,
    queues: Vec<Box<dyn Queue>>,
}

/// A network namespace: its identity and its interfaces.
struct HomeNamespace {
    namespace_id: (u64, u64),
    interfaces: Interfaces,
}

impl Tap {
    /// Creates a TAP device called `name` in the calling thread's network namespace,
    /// administratively down.
    ///
    /// # Errors
    /// See [`OpenError`]; each has a remedy.
    pub fn create(name: &InterfaceName, options: TapOptions) -> Result<Self, OpenError> {
        if options.queues > QUEUES_MAX {
            return Err(OpenError::TooManyQueues {
                name: name.to_string(),
                requested: options.queues,
            });
        }
        let step = |step| failed(name, step, CAPABILITY);
        let devices = devices(name, options.queues)?;
        let interfaces = Interfaces::current().map_err(step("open a socket"))?;
        if let Some(MacAddr(address)) = options.address {
            let set = interfaces.set_address(name, address);
            set.map_err(step("set its address"))?;
        }
        let device = Arc::clone(&devices[0]);
        let home = device.namespace().and_then(|fd| namespace_id(fd.as_fd()));
        let queues = devices.into_iter();
        let queues = queues.map(|device| Box::new(TapPortQueue::new(name.clone(), device)) as _);
        Ok(Self {
            home: HomeNamespace {
                namespace_id: home.map_err(step("read its namespace"))?,
                interfaces,
            },
            queues: queues.collect(),
            name: name.clone(),
            device,
        })
    }

    /// Calls `f` with the current name of the device and the interfaces of its current namespace.
    fn with_interface<T>(
        &self,
        f: impl FnOnce(&Interfaces, &InterfaceName) -> io::Result<T>,
    ) -> io::Result<T> {
        let name = self.device.name()?;
        let namespace = self.device.namespace()?;
        if namespace_id(namespace.as_fd())? == self.home.namespace_id {
            f(&self.home.interfaces, &name)
        } else {
            f(&Interfaces::in_namespace(namespace.as_fd())?, &name)
        }
    }
}

impl Port for Tap {
    fn status(&self) -> Status {
        let status = self.with_interface(Status::query);
        status.unwrap_or_else(|_| Status::removed(&self.name))
    }

    fn take_queues(&mut self) -> Vec<Box<dyn Queue>> {
        std::mem::take(&mut self.queues)
    }

    fn tx_queue(&self) -> io::Result<Box<dyn Queue>> {
        let device = Arc::clone(&self.device);
        Ok(Box::new(TapTxQueue::new(self.name.clone(), device)))
    }

    fn set_link(&mut self, address: Option<MacAddr>, mtu: Option<u32>) -> io::Result<()> {
        self.with_interface(|interfaces, name| set_link(interfaces, name, address, mtu))
    }

    fn set_up(&mut self, up: bool) -> io::Result<()> {
        self.with_interface(|interfaces, name| interfaces.set_up(name, up))
    }
}

/// Opens the device once for each queue; a device that another program left has one.
fn devices(name: &InterfaceName, queues: NonZeroUsize) -> Result<Vec<Arc<TapQueue>>, OpenError> {
    let (first, origin) = device(name, Attach::New)?;
    let mut devices = vec![Arc::new(first)];
    if origin == Attach::New {
        for _ in 1..queues.get() {
            devices.push(Arc::new(device(name, Attach::Existing)?.0));
        }
    }
    Ok(devices)
}

/// Opens one queue. Returns how it was attached: a new device may turn out to be abandoned.
fn device(name: &InterfaceName, attach: Attach) -> Result<(TapQueue, Attach), OpenError> {
    let step = |step| failed(name, step, CAPABILITY);
    let device = TapQueue::open().map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::NOENT | Errno::NODEV | Errno::NXIO) => OpenError::NoTapDevices,
        _ => step("open the TAP device")(error),
    })?;
    let attached = match device.attach(name, attach) {
        // Open vSwitch leaves its devices to the next daemon, with their addresses and routes.
        Err(error) if attach == Attach::New => match adopt(&device, name) {
            Ok(()) => Ok(Attach::Abandoned),
            Err(_) => Err(error),
        },
        attached => attached.map(|()| attach),
    };
    let attach = attached.map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::BUSY) => OpenError::NameTaken {
            name: name.to_string(),
        },
        _ => step("create the TAP device")(error),
    })?;
    let header_len = i32::try_from(vnet::LEN).expect("ten bytes fit");
    let set = device.set_vnet_header_len(header_len);
    set.map_err(step("set the length of its vnet header"))?;
    let offloads = device.set_offloads(Offloads::TCP_AND_UDP);
    offloads
        .or_else(|_| device.set_offloads(Offloads::TCP))
        .map_err(step("enable its offloads"))?;
    Ok((device, attach))
}

/// Attaches a queue to a persistent device that no process has open. It is removed with its last
/// queue then, as all devices here.
fn adopt(device: &TapQueue, name: &InterfaceName) -> io::Result<()> {
    device.attach(name, Attach::Abandoned)?;
    device.set_persistent(false)
}

/// Returns the device and inode number that identify a namespace (namespaces(7)).
fn namespace_id(namespace: BorrowedFd<'_>) -> io::Result<(u64, u64)> {
    let file = fstat(namespace)?;
    Ok((file.st_dev, file.st_ino))
}
