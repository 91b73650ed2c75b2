//! Any Linux interface through AF_XDP sockets: an XDP program redirects received frames to shared
//! memory before the kernel's protocols process them, and sent frames are read from that memory
//! (Documentation/networking/af_xdp.rst).
//!
//! ```text
//!    NIC rx queue q --> XDP program --> RX ring of socket q --+
//!                                                             v
//!    worker: batch of frames, each a chunk of the worker's UMEM ([`UmemPools`])
//!                                                             |
//!    NIC tx queue   <-- driver      <-- TX ring of socket  <--+  one descriptor per frame;
//!                                                                a copy from foreign memory
//! ```
//!
//! | mode | requires | cost per frame |
//! |---|---|---|
//! | native, zero copy | XDP and AF_XDP support in the driver | descriptors only |
//! | native, copy | XDP support in the driver | one copy by the kernel |
//! | generic | any driver | one copy by the kernel, and the allocation of an skb |
//!
//! Native mode is tried before generic mode, and zero copy before copies. [`Status::io_mode`]
//! reports the mode.
//!
//! AF_XDP carries bytes without offload metadata. Pending offloads are completed in software before
//! a frame is sent: checksums are completed, segments are cut, and both are counted. Partial
//! checksums of received frames, as a veth pair delivers them, are detected by the contents of the
//! checksum field.
//!
//! Program, sockets and promiscuous mode belong to file descriptors and end with the process.

mod options;
mod queue;
mod umem_pools;

use std::io;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;

use packet::MacAddr;
use rustix::event::{Timespec, poll};
use rustix::io::Errno;
use sys::interface::{Ifindex, InterfaceName, Interfaces};
use sys::offload::DeviceOffload;
use sys::packet_socket::{PacketSocket, ReceiveFilter};
use sys::xdp::{RedirectProgram, XdpMode};
use sys::xsk::{DeviceQueue, UmemLayout, XskSocket};

use crate::af_packet::send_only::SendOnlyQueue;
use crate::af_packet::sender::PacketSender;
use crate::error::failed;
use crate::status::set_link;
use crate::{OpenError, Port, QUEUES_MAX, Queue, Status};
use options::XdpDataPath;
use queue::XdpQueue;

pub use options::{TransferChoice, XdpModeChoice, XdpOptions};
pub use umem_pools::UmemPools;

const CAPABILITY: &str = "CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF";

/// Chunks for reception by one receive queue of the device: 1.4 ms at 1 Gbit/s with frames of
/// minimum length, as with packet sockets. The kernel owns this number of chunks at any time.
const RX_CHUNKS: NonZeroU32 = NonZeroU32::new(2048).expect("not zero");

/// Maximum number of frames in transmission: a full window of several fast TCP streams, segmented.
/// A slow port withholds no more chunks than this from others.
const TX_CHUNKS: NonZeroU32 = NonZeroU32::new(1024).expect("not zero");

/// Chunk lengths that the kernel accepts (at most a page).
const CHUNK_LEN_SHORT: NonZeroU32 = NonZeroU32::new(2048).expect("not zero");
const CHUNK_LEN_LONG: NonZeroU32 = NonZeroU32::new(4096).expect("not zero");

/// Ethernet header and two VLAN tags, which an MTU does not include, in bytes.
const L2_OVERHEAD: u32 = 14 + 8;

/// Maximum MTU: the frame fits a chunk behind the kernel's headroom.
const MTU_MAX: u32 = 3818;
const _: () = assert!(MTU_MAX == CHUNK_LEN_LONG.get() - UmemLayout::HEADROOM - L2_OVERHEAD);

/// Maximum time and number of frames (a batch) of one busy poll.
const BUSY_POLL_MICROS: i32 = 20;
const BUSY_POLL_BUDGET: i32 = 64;

/// Retries while a queue is in use and their interval: a tenth of a second in total, where the
/// kernel needs some milliseconds.
const BUSY_RETRIES: u32 = 20;
const BUSY_PAUSE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 5_000_000,
};

/// Drivers that deliver the partial checksums of the sender behind them. These frames have not
/// crossed a wire, so completing them hides no corruption.
const PARTIAL_CHECKSUM_DRIVERS: [&str; 2] = ["veth", "tun"];

/// Resources of an open interface, released with the port and the last of its queues.
struct InterfaceHandle {
    name: InterfaceName,
    index: Ifindex,
    interfaces: Interfaces,
    _redirect: RedirectProgram,
    _promiscuous: PacketSocket,
}

impl InterfaceHandle {
    /// Returns the current name of the interface.
    fn name(&self) -> io::Result<InterfaceName> {
        self.interfaces.name(self.index)
    }

    /// Returns the maximum frame length, by the current MTU and one tag, in bytes.
    fn frame_max(&self) -> io::Result<usize> {
        let mtu = self.interfaces.mtu(&self.name()?)?;
        Ok(mtu as usize + 14 + 4)
    }
}

/// An interface opened through AF_XDP.
pub struct Xdp {
    handle: Arc<InterfaceHandle>,
    data_path: XdpDataPath,
    driver: Option<String>,
    queues: Vec<Box<dyn Queue>>,
}

impl Xdp {
    /// Opens the interface called `name` in the calling thread's network namespace, in promiscuous
    /// mode. It may be down.
    ///
    /// The port has a queue for each of `workers`, which are the workers' numbers in `memories`.
    /// The sockets of the device's receive queues are distributed over them; a worker without a
    /// socket sends through packet sockets.
    ///
    /// # Errors
    /// See [`OpenError`]; each has a remedy.
    pub fn open(
        name: &InterfaceName,
        workers: &[usize],
        options: XdpOptions,
        pools: &mut UmemPools,
    ) -> Result<Self, OpenError> {
        let queues = NonZeroUsize::new(workers.len()).unwrap_or(NonZeroUsize::MIN);
        if queues > QUEUES_MAX {
            return Err(OpenError::TooManyQueues {
                name: name.to_string(),
                requested: queues,
            });
        }
        let step = |step| failed(name, step, CAPABILITY);
        let interfaces = Interfaces::current().map_err(step("open a socket"))?;
        let device = XdpDevice::query(name, &interfaces)?;
        let promiscuous = promiscuous(device.index);
        let promiscuous = promiscuous.map_err(device.failed("enable promiscuous mode"))?;
        let (redirect, sockets, data_path) = device.open(options, workers, pools)?;
        let handle = Arc::new(InterfaceHandle {
            name: name.clone(),
            index: device.index,
            interfaces,
            _redirect: redirect,
            _promiscuous: promiscuous,
        });
        let queues = distribute(sockets, queues).into_iter().map(|sockets| {
            let sender = match sockets.is_empty() {
                true => Some(PacketSender::open(name.clone(), device.index)?),
                false => None,
            };
            let queue = XdpQueue::new(
                Arc::clone(&handle),
                sockets,
                sender,
                device.behaviour(options),
            )?;
            Ok(Box::new(queue) as Box<dyn Queue>)
        });
        let queues: io::Result<_> = queues.collect();
        Ok(Self {
            queues: queues.map_err(step("create its queues"))?,
            handle,
            data_path,
            driver: device.driver,
        })
    }
}

impl Port for Xdp {
    fn status(&self) -> Status {
        let status = self.handle.name();
        let status = status.and_then(|name| Status::query(&self.handle.interfaces, &name));
        status.map_or_else(
            |_| Status::removed(&self.handle.name),
            |status| Status {
                io_mode: Some(self.data_path.to_string()),
                ..status
            },
        )
    }

    fn take_queues(&mut self) -> Vec<Box<dyn Queue>> {
        std::mem::take(&mut self.queues)
    }

    fn tx_queue(&self) -> io::Result<Box<dyn Queue>> {
        let sender = PacketSender::open(self.handle.name.clone(), self.handle.index)?;
        Ok(Box::new(SendOnlyQueue::new(sender)))
    }

    fn advice(&self) -> Vec<String> {
        let Ok(name) = self.handle.name() else {
            return Vec::new();
        };
        let mut advice = Vec::new();
        let veth = self.driver.as_deref() == Some("veth");
        let generic = self.data_path.mode == XdpMode::Generic;
        if generic && veth {
            advice.push(format!(
                "frames that the other end of {name} sends unsegmented are lost: \
                 run `ethtool -K PEER tx off` there"
            ));
        }
        let interfaces = &self.handle.interfaces;
        let merges = interfaces.offload(&name, DeviceOffload::GenericReceive);
        if generic && merges.unwrap_or(false) {
            advice.push(format!(
                "frames that the kernel coalesces are lost: run `ethtool -K {name} gro off`"
            ));
        }
        if !veth && interfaces.has_rx_vlan_offload(&name).unwrap_or(false) {
            advice.push(format!(
                "{name} strips the VLAN tags of received frames: \
                 run `ethtool -K {name} rxvlan off`"
            ));
        }
        advice
    }

    fn set_link(&mut self, address: Option<MacAddr>, mtu: Option<u32>) -> io::Result<()> {
        set_link(&self.handle.interfaces, &self.handle.name()?, address, mtu)
    }

    fn set_up(&mut self, up: bool) -> io::Result<()> {
        self.handle.interfaces.set_up(&self.handle.name()?, up)
    }
}

/// Options of a queue.
#[derive(Clone, Copy)]
struct QueueBehaviour {
    /// Detect partial checksums of received frames.
    partial_checksums: bool,
    /// Poll the device if no frame is available.
    busy_poll: bool,
}

/// An interface to be opened.
struct XdpDevice {
    name: InterfaceName,
    index: Ifindex,
    driver: Option<String>,
    /// Number of receive queues.
    queues: u32,
    layout: UmemLayout,
}

impl XdpDevice {
    fn query(name: &InterfaceName, interfaces: &Interfaces) -> Result<Self, OpenError> {
        let step = |step| failed(name, step, CAPABILITY);
        let index = interfaces
            .index(name)
            .map_err(step("look up the interface"))?;
        let hardware = interfaces.hardware(name);
        let hardware = hardware.map_err(step("read its hardware address"))?;
        if !hardware.is_ethernet() {
            return Err(OpenError::NotEthernet {
                name: name.to_string(),
            });
        }
        let mtu = interfaces.mtu(name).map_err(step("read its MTU"))?;
        let mtu_limit = |chunk: NonZeroU32| chunk.get() - UmemLayout::HEADROOM - L2_OVERHEAD;
        let chunk_len = [CHUNK_LEN_SHORT, CHUNK_LEN_LONG]
            .into_iter()
            .find(|chunk| mtu <= mtu_limit(*chunk));
        let chunk_len = chunk_len.ok_or_else(|| OpenError::TooLongForXdp {
            name: name.to_string(),
            mtu,
            max: MTU_MAX,
        })?;
        // A driver that does not report its number of queues has one.
        let queues = interfaces.receive_queues(name).unwrap_or(1);
        let max = u32::try_from(QUEUES_MAX.get()).expect("64 fits");
        if queues > max {
            return Err(OpenError::TooManyDeviceQueues {
                name: name.to_string(),
                has: queues,
            });
        }
        Ok(Self {
            name: name.clone(),
            index,
            driver: interfaces.driver(name).ok(),
            queues,
            layout: UmemLayout {
                chunk_len,
                rx_chunks: RX_CHUNKS,
                tx_chunks: TX_CHUNKS,
            },
        })
    }

    /// Opens the interface in the best available mode among the requested ones.
    fn open(
        &self,
        options: XdpOptions,
        workers: &[usize],
        pools: &mut UmemPools,
    ) -> Result<(RedirectProgram, Vec<XskSocket>, XdpDataPath), OpenError> {
        let (last, first) = options
            .modes()
            .split_last()
            .expect("at least one mode is tried");
        for mode in first {
            match self.open_in_mode(*mode, options, workers, pools) {
                // Another mode may succeed.
                Err(OpenError::Failed { .. }) => {}
                // Success, or an error that does not depend on the mode.
                opened => return opened,
            }
        }
        let opened = self.open_in_mode(*last, options, workers, pools);
        opened.map_err(|error| match error {
            OpenError::Failed { name, source, .. } if *last == XdpMode::Native => {
                OpenError::NoNativeXdp { name, source }
            }
            other => other,
        })
    }

    fn open_in_mode(
        &self,
        mode: XdpMode,
        options: XdpOptions,
        workers: &[usize],
        pools: &mut UmemPools,
    ) -> Result<(RedirectProgram, Vec<XskSocket>, XdpDataPath), OpenError> {
        let redirect = retry_while_busy(|| RedirectProgram::attach(self.index, self.queues, mode));
        let redirect = redirect.map_err(self.failed("attach an XDP program"))?;
        let mut sockets = Vec::new();
        let mut data_path = XdpDataPath {
            mode,
            zero_copy: true,
            busy_poll: options.busy_poll,
        };
        for (queue, worker) in (0..self.queues).zip(workers.iter().cycle()) {
            let socket = self.socket(queue, mode, options, |layout, at| {
                pools.open(*worker, layout, at)
            })?;
            pools.reclaim_in_other_umems(&socket);
            let redirected = redirect.redirect_queue(queue, &socket);
            redirected.map_err(self.failed("redirect a queue"))?;
            let is_zero_copy = socket.is_zero_copy();
            data_path.zero_copy &= is_zero_copy.map_err(self.failed("read the transfer mode"))?;
            sockets.push(socket);
        }
        Ok((redirect, sockets, data_path))
    }

    /// Opens a socket at a queue of the device, with the best available transfer.
    fn socket(
        &self,
        queue: u32,
        mode: XdpMode,
        options: XdpOptions,
        mut open: impl FnMut(UmemLayout, DeviceQueue) -> io::Result<XskSocket>,
    ) -> Result<XskSocket, OpenError> {
        let at = DeviceQueue {
            interface: self.index,
            queue,
        };
        let transfers = options.transfers(mode);
        let mut failure = None;
        // Keeps the UMEM of a socket that failed to bind for the next attempt.
        let mut umem = None;
        for transfer in transfers {
            let mut socket = open(self.layout, at).map_err(self.failed("open a socket"))?;
            let bound = retry_while_busy(|| socket.bind(*transfer));
            match bound.map_err(self.failed("bind a socket")) {
                Ok(()) => {
                    self.enable_busy_poll(&socket, options)?;
                    return Ok(socket);
                }
                Err(OpenError::Failed { name, source, .. }) => failure = Some((name, source)),
                Err(other) => return Err(other),
            }
            umem.get_or_insert_with(|| Arc::clone(socket.umem()));
        }
        let (name, source) = failure.expect("at least one transfer was tried");
        Err(match options.transfer {
            TransferChoice::ZeroCopy => OpenError::NoZeroCopy { name, source },
            TransferChoice::Best | TransferChoice::Copy => OpenError::Failed {
                name,
                step: "bind a socket",
                source,
            },
        })
    }

    /// Enables busy polling if requested.
    fn enable_busy_poll(&self, socket: &XskSocket, options: XdpOptions) -> Result<(), OpenError> {
        if !options.busy_poll {
            return Ok(());
        }
        let set = socket.set_busy_poll(BUSY_POLL_MICROS, BUSY_POLL_BUDGET);
        set.map_err(|source| match self.failed("")(source) {
            OpenError::Failed { name, source, .. } => OpenError::NoBusyPoll { name, source },
            other => other,
        })
    }

    fn behaviour(&self, options: XdpOptions) -> QueueBehaviour {
        let driver = self.driver.as_deref();
        QueueBehaviour {
            partial_checksums: driver
                .is_some_and(|driver| PARTIAL_CHECKSUM_DRIVERS.contains(&driver)),
            busy_poll: options.busy_poll,
        }
    }

    /// Converts the error of an operation by its number.
    fn failed(&self, step: &'static str) -> impl FnOnce(io::Error) -> OpenError {
        let name = self.name.to_string();
        move |source| match Errno::from_io_error(&source) {
            Some(Errno::AFNOSUPPORT) => OpenError::NoXdpSockets { name },
            Some(Errno::NOSYS) => OpenError::NoXdpPrograms { name },
            Some(Errno::PERM | Errno::ACCESS) => OpenError::XdpPrivilege { name },
            Some(Errno::NOBUFS | Errno::NOMEM) => OpenError::XdpMemory { name },
            _ if is_busy(&source) => OpenError::XdpBusy { name },
            _ => failed(name, step, CAPABILITY)(source),
        }
    }
}

/// Opens a socket that keeps the interface in promiscuous mode while it is open.
fn promiscuous(index: Ifindex) -> io::Result<PacketSocket> {
    let socket = PacketSocket::open()?;
    socket.bind(index, ReceiveFilter::None)?;
    socket.set_promiscuous(index)?;
    Ok(socket)
}

/// True if another program (`EEXIST`: in another mode) or another socket is in the way.
fn is_busy(error: &io::Error) -> bool {
    let number = Errno::from_io_error(error);
    matches!(number, Some(Errno::BUSY | Errno::EXIST))
}

/// Retries an operation for a while if a resource is in use: the kernel releases the memory of a
/// closed socket asynchronously, and a child process may still have the descriptor of a program.
fn retry_while_busy<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 0..BUSY_RETRIES {
        match attempt() {
            Err(error) if is_busy(&error) => {
                // Waits for the interval only.
                let _ = poll(&mut [], Some(&BUSY_PAUSE));
            }
            other => return other,
        }
    }
    attempt()
}

/// Distributes the sockets of the device's queues over the workers.
fn distribute(sockets: Vec<XskSocket>, workers: NonZeroUsize) -> Vec<Vec<XskSocket>> {
    let mut shares: Vec<_> = (0..workers.get()).map(|_| Vec::new()).collect();
    for (place, socket) in sockets.into_iter().enumerate() {
        shares[place % workers].push(socket);
    }
    shares
}
