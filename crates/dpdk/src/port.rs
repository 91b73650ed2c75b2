//! A DPDK device as a port.
//!
//! No event wakes a worker when a frame arrives: the workers poll the queues of such a device, as
//! is usual with DPDK.

use std::io;
use std::num::NonZeroUsize;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use ports::{Ifindex, OpenError, Port, QUEUES_MAX, Queue, Status};
use rustix::event::{EventfdFlags, eventfd};
use sys::interface::Interfaces;

use crate::arguments::Arguments;
use crate::device::DpdkDevice;
use crate::queue::DpdkQueue;

/// An open DPDK device.
pub(crate) struct Dpdk {
    shared: Arc<SharedPort>,
    workers: usize,
    queues: Vec<Box<dyn Queue>>,
}

/// State that the port and its queues share.
pub(crate) struct SharedPort {
    /// The device, which is closed with the last reference.
    pub(crate) device: DpdkDevice,
    /// True if the port is up: not every driver can set the state of the link.
    up: AtomicBool,
    /// The locks of the transmit queues, which several workers may share.
    pub(crate) tx_locks: Vec<TxLock>,
    /// The number of transmit-only queues created so far.
    senders: AtomicUsize,
    /// An eventfd that is always readable, so that workers poll the port.
    pub(crate) ready: OwnedFd,
    /// The kernel interface behind the device, if there is one.
    kernel_interface: Option<(Interfaces, Ifindex)>,
}

/// The spinlock of a transmit queue, on a cache line of its own.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct TxLock(pub(crate) AtomicBool);

impl SharedPort {
    /// Returns whether the port is up.
    #[inline]
    pub(crate) fn is_up(&self) -> bool {
        self.up.load(Ordering::Relaxed)
    }

    /// Returns an error if the device was removed.
    pub(crate) fn check(&self) -> io::Result<()> {
        let kernel_interface = self.kernel_interface.as_ref();
        let there =
            kernel_interface.is_none_or(|(interfaces, index)| interfaces.name(*index).is_ok());
        match there && !self.device.is_removed() {
            true => Ok(()),
            false => Err(io::Error::new(
                io::ErrorKind::NotFound,
                format!("the device {} was removed", self.device),
            )),
        }
    }
}

impl Dpdk {
    /// Opens the device; see [`crate::open`].
    pub(crate) fn open(arguments: &Arguments, queues: NonZeroUsize) -> Result<Self, OpenError> {
        let name = || arguments.device().to_owned();
        let wanted = match u16::try_from(queues.get()) {
            Ok(wanted) if queues <= QUEUES_MAX => wanted,
            _ => {
                return Err(OpenError::TooManyQueues {
                    name: name(),
                    requested: queues,
                });
            }
        };
        let device = DpdkDevice::open(arguments, wanted)?;
        let failed = |step| {
            move |source| OpenError::Failed {
                name: name(),
                step,
                source,
            }
        };
        // The counter is never read, so it stays nonzero and readable.
        let ready = eventfd(1, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| failed("making an eventfd")(error.into()))?;
        let kernel_interface = match device.description.interface {
            Some(index) => {
                let interfaces = Interfaces::current().map_err(failed("opening a socket"))?;
                Some((interfaces, Ifindex(index)))
            }
            None => None,
        };
        let transmit = usize::from(device.queues.transmit);
        let shared = Arc::new(SharedPort {
            device,
            up: AtomicBool::new(true),
            tx_locks: (0..transmit).map(|_| TxLock::default()).collect(),
            senders: AtomicUsize::new(0),
            ready,
            kernel_interface,
        });
        let queue = |worker| Box::new(DpdkQueue::new(Arc::clone(&shared), worker)) as _;
        Ok(Self {
            queues: (0..wanted).map(queue).collect(),
            workers: queues.get(),
            shared,
        })
    }

    /// Returns the state of the kernel interface behind the device, which is more reliable.
    fn status_behind(&self) -> Option<Status> {
        let (interfaces, index) = self.shared.kernel_interface.as_ref()?;
        let name = interfaces.name(*index).ok()?;
        let flags = interfaces.flags(&name).ok()?;
        Some(Status {
            index: Some(*index),
            up: flags.up,
            carrier: flags.running,
            speed_mbps: interfaces.speed_mbps(&name).ok().flatten(),
            ..Status::default()
        })
    }

    fn status_alone(&self) -> Status {
        let up = self.shared.is_up();
        let link = self.shared.device.link().unwrap_or_default();
        Status {
            up,
            carrier: up && link.up != 0,
            speed_mbps: Some(link.mbps).filter(|mbps| *mbps != 0),
            ..Status::default()
        }
    }

    fn io_mode(&self) -> String {
        let device = &self.shared.device;
        let memory = match device.huge_pages {
            true => "huge pages",
            false => "ordinary pages",
        };
        format!(
            "DPDK, {}, {} of {} queues, {memory}",
            device.description.driver, device.queues.receive, self.workers
        )
    }
}

impl Port for Dpdk {
    fn status(&self) -> Status {
        let device = &self.shared.device;
        let name = device.to_string();
        if self.shared.check().is_err() {
            return Status {
                name,
                ..Status::default()
            };
        }
        let state = self.status_behind();
        Status {
            name,
            address: device.description.address,
            mtu: device.description.mtu.into(),
            driver: Some(device.description.driver.clone()),
            io_mode: Some(self.io_mode()),
            ..state.unwrap_or_else(|| self.status_alone())
        }
    }

    fn take_queues(&mut self) -> Vec<Box<dyn Queue>> {
        std::mem::take(&mut self.queues)
    }

    fn tx_queue(&self) -> io::Result<Box<dyn Queue>> {
        let turn = self.shared.senders.fetch_add(1, Ordering::Relaxed);
        let shared = Arc::clone(&self.shared);
        Ok(Box::new(DpdkQueue::transmit_only(shared, turn)))
    }

    fn advice(&self) -> Vec<String> {
        let device = &self.shared.device;
        let mut advice = Vec::new();
        let receive = usize::from(device.queues.receive);
        if receive < self.workers {
            advice.push(format!(
                "{device} has {receive} receive queues for {} workers, so the others do not \
                 receive from it: some drivers have an argument for more, such as qpairs=N of net_af_packet",
                self.workers
            ));
        }
        if !device.huge_pages {
            advice.push(format!(
                "{device} uses ordinary pages, which is slower than huge pages: before the start, run \
                 `sysctl vm.nr_hugepages=512`"
            ));
        }
        advice
    }

    fn set_up(&mut self, up: bool) -> io::Result<()> {
        self.shared.up.store(up, Ordering::Relaxed);
        match &self.shared.kernel_interface {
            Some((interfaces, index)) => interfaces.set_up(&interfaces.name(*index)?, up),
            // If the driver cannot set the link, the queues discard the frames of a port that is
            // down.
            None => match self.shared.device.set_link(up) {
                Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(()),
                other => other,
            },
        }
    }
}
