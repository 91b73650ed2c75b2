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
use crate::device::Device;
use crate::queue::DpdkQueue;

/// An open DPDK device.
pub(crate) struct Dpdk {
    hold: Arc<Hold>,
    workers: usize,
    queues: Vec<Box<dyn Queue>>,
}

/// State that the port and its queues share.
pub(crate) struct Hold {
    /// The device, which is closed with the last reference.
    pub(crate) device: Device,
    /// True if the port is up: not every driver can set the state of the link.
    up: AtomicBool,
    /// The locks of the transmit queues, which several workers may share.
    pub(crate) gates: Vec<Gate>,
    /// The number of transmit-only queues created so far.
    senders: AtomicUsize,
    /// An eventfd that is always readable, so that workers poll the port.
    pub(crate) ready: OwnedFd,
    /// The kernel interface behind the device, if there is one.
    behind: Option<(Interfaces, Ifindex)>,
}

/// The spinlock of a transmit queue, on a cache line of its own.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Gate(pub(crate) AtomicBool);

impl Hold {
    /// Returns whether the port is up.
    #[inline]
    pub(crate) fn is_up(&self) -> bool {
        self.up.load(Ordering::Relaxed)
    }

    /// Returns an error if the device was removed.
    pub(crate) fn check(&self) -> io::Result<()> {
        let behind = self.behind.as_ref();
        let there = behind.is_none_or(|(interfaces, index)| interfaces.name(*index).is_ok());
        match there && !self.device.is_removed() {
            true => Ok(()),
            false => Err(io::Error::new(
                io::ErrorKind::NotFound,
                format!("the device {} is gone", self.device),
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
        let device = Device::open(arguments, wanted)?;
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
        let behind = match device.description.interface {
            Some(index) => {
                let here = Interfaces::current().map_err(failed("opening a socket"))?;
                Some((here, Ifindex(index)))
            }
            None => None,
        };
        let transmit = usize::from(device.queues.transmit);
        let hold = Arc::new(Hold {
            device,
            up: AtomicBool::new(true),
            gates: (0..transmit).map(|_| Gate::default()).collect(),
            senders: AtomicUsize::new(0),
            ready,
            behind,
        });
        let queue = |worker| Box::new(DpdkQueue::new(Arc::clone(&hold), worker)) as _;
        Ok(Self {
            queues: (0..wanted).map(queue).collect(),
            workers: queues.get(),
            hold,
        })
    }

    /// Returns the state of the kernel interface behind the device, which is more reliable.
    fn status_behind(&self) -> Option<Status> {
        let (interfaces, index) = self.hold.behind.as_ref()?;
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
        let up = self.hold.is_up();
        let link = self.hold.device.link().unwrap_or_default();
        Status {
            up,
            carrier: up && link.up != 0,
            speed_mbps: Some(link.mbps).filter(|mbps| *mbps != 0),
            ..Status::default()
        }
    }

    fn io_mode(&self) -> String {
        let device = &self.hold.device;
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
        let device = &self.hold.device;
        let name = device.to_string();
        if self.hold.check().is_err() {
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
        let turn = self.hold.senders.fetch_add(1, Ordering::Relaxed);
        let hold = Arc::clone(&self.hold);
        Ok(Box::new(DpdkQueue::sending(hold, turn)))
    }

    fn advice(&self) -> Vec<String> {
        let device = &self.hold.device;
        let mut advice = Vec::new();
        let receive = usize::from(device.queues.receive);
        if receive < self.workers {
            advice.push(format!(
                "{device} has {receive} receive queues for {} workers, and the others' cores do not \
                 help it: some drivers have an argument for more, as qpairs=N of net_af_packet",
                self.workers
            ));
        }
        if !device.huge_pages {
            advice.push(format!(
                "{device} has its frames in ordinary pages, which costs time: before the start, \
                 `sysctl vm.nr_hugepages=512`"
            ));
        }
        advice
    }

    fn set_up(&mut self, up: bool) -> io::Result<()> {
        self.hold.up.store(up, Ordering::Relaxed);
        match &self.hold.behind {
            Some((interfaces, index)) => interfaces.set_up(&interfaces.name(*index)?, up),
            // If the driver cannot set the link, the queues discard the frames of a port that is
            // down.
            None => match self.hold.device.set_link(up) {
                Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(()),
                other => other,
            },
        }
    }
}
