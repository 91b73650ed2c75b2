//! A TAP device of our own: an interface for the host, a port for us.
//!
//! It goes with its port and the last of its queues, so a killed process leaves none
//! behind. The user may rename it and move it to another network namespace; the
//! queues do not notice.

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
use crate::status::equip;
use crate::{OpenError, Port, QUEUES_MAX, Queue, Status, vnet};
use queue::{TapIo, TapSender};

const CAPABILITY: &str = "CAP_NET_ADMIN";

/// What a TAP device is to be like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Its Ethernet address; the kernel draws one if none is given.
    pub address: Option<MacAddr>,
    /// How many queues. The kernel shares frames among them by flow.
    pub queues: NonZeroUsize,
}

/// A TAP device, made and opened.
pub struct Tap {
    name: InterfaceName,
    /// One of the queues: it knows where the device is now.
    device: Arc<TapQueue>,
    home: Namespace,
    queues: Vec<Box<dyn Queue>>,
}

/// A network namespace, by what tells it from others, and its interfaces.
struct Namespace {
    id: (u64, u64),
    interfaces: Interfaces,
}

impl Tap {
    /// Makes a TAP device called `name` in the calling thread's network namespace. It
    /// is down at first.
    ///
    /// # Errors
    /// See [`OpenError`]; each says what to do.
    pub fn create(name: &InterfaceName, options: Options) -> Result<Self, OpenError> {
        if options.queues > QUEUES_MAX {
            return Err(OpenError::TooManyQueues {
                name: name.to_string(),
                asked: options.queues,
            });
        }
        let step = |step| failed(name, step, CAPABILITY);
        let devices = devices(name, options.queues)?;
        let interfaces = Interfaces::current().map_err(step("opening a socket"))?;
        if let Some(MacAddr(address)) = options.address {
            let set = interfaces.set_address(name, address);
            set.map_err(step("giving it its address"))?;
        }
        let device = Arc::clone(&devices[0]);
        let home = device.namespace().and_then(|fd| id(fd.as_fd()));
        let queues = devices.into_iter();
        let queues = queues.map(|device| Box::new(TapIo::new(name.clone(), device)) as _);
        Ok(Self {
            home: Namespace {
                id: home.map_err(step("asking where it is"))?,
                interfaces,
            },
            queues: queues.collect(),
            name: name.clone(),
            device,
        })
    }

    /// Does `f` with the device's present name and the interfaces of its present namespace.
    fn locate<T>(
        &self,
        f: impl FnOnce(&Interfaces, &InterfaceName) -> io::Result<T>,
    ) -> io::Result<T> {
        let name = self.device.name()?;
        let namespace = self.device.namespace()?;
        if id(namespace.as_fd())? == self.home.id {
            f(&self.home.interfaces, &name)
        } else {
            f(&Interfaces::in_namespace(namespace.as_fd())?, &name)
        }
    }
}

impl Port for Tap {
    fn status(&self) -> Status {
        let status = self.locate(Status::ask);
        status.unwrap_or_else(|_| Status::gone(&self.name))
    }

    fn take_queues(&mut self) -> Vec<Box<dyn Queue>> {
        std::mem::take(&mut self.queues)
    }

    fn sender(&self) -> io::Result<Box<dyn Queue>> {
        let device = Arc::clone(&self.device);
        Ok(Box::new(TapSender::new(self.name.clone(), device)))
    }

    fn equip(&mut self, address: Option<MacAddr>, mtu: Option<u32>) -> io::Result<()> {
        self.locate(|interfaces, name| equip(interfaces, name, address, mtu))
    }

    fn set_up(&mut self, up: bool) -> io::Result<()> {
        self.locate(|interfaces, name| interfaces.set_up(name, up))
    }
}

/// The device, once for each queue.
fn devices(name: &InterfaceName, queues: NonZeroUsize) -> Result<Vec<Arc<TapQueue>>, OpenError> {
    let attach = (0..queues.get()).map(|queue| match queue {
        0 => Attach::New,
        _ => Attach::Existing,
    });
    attach
        .map(|attach| device(name, attach).map(Arc::new))
        .collect()
}

fn device(name: &InterfaceName, attach: Attach) -> Result<TapQueue, OpenError> {
    let step = |step| failed(name, step, CAPABILITY);
    let device = TapQueue::open().map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::NOENT | Errno::NODEV | Errno::NXIO) => OpenError::NoTapDevices,
        _ => step("opening the kernel's TAP device")(error),
    })?;
    let attached = device.attach(name, attach);
    attached.map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::BUSY) => OpenError::NameTaken {
            name: name.to_string(),
        },
        _ => step("making a TAP device of this name")(error),
    })?;
    let header_len = i32::try_from(vnet::LEN).expect("ten bytes");
    let set = device.set_vnet_header_len(header_len);
    set.map_err(step("setting its header's length"))?;
    let taken = device.set_offloads(Offloads::TCP_AND_UDP);
    taken
        .or_else(|_| device.set_offloads(Offloads::TCP))
        .map_err(step("taking its checksums unfinished"))?;
    Ok(device)
}

/// What tells a namespace from all others (namespaces(7)).
fn id(namespace: BorrowedFd<'_>) -> io::Result<(u64, u64)> {
    let file = fstat(namespace)?;
    Ok((file.st_dev, file.st_ino))
}
