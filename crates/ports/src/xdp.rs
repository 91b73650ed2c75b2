//! Any Linux interface, by AF_XDP sockets: a program of six instructions takes each
//! frame of the interface before the kernel's own protocols see it, and hands it over
//! in memory; what is sent goes the same way back.
//!
//! AF_XDP carries bytes and nothing beside them. What a frame still owes is paid here
//! before it is sent: checksums are finished, segments cut, and both counted. What a
//! sender's device hands over unfinished, as a veth pair does, is recognised by what
//! stands in the checksum's field.
//!
//! The driver's own hook is tried first, then the kernel's generic one; memory that the
//! device reads and writes itself first, then copies. [`Status::way`] tells which it is.
//!
//! Frames are handed on as they lie in that memory, which the sockets of a worker share
//! ([`Memories`]): one that leaves by another such port moves as a descriptor.
//!
//! Nothing of it outlives the process: program, sockets and promiscuous mode belong to
//! file descriptors.

mod memories;
mod options;
mod queue;

use std::io;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;

use packet::MacAddr;
use rustix::event::{Timespec, poll};
use rustix::io::Errno;
use sys::interface::{Ifindex, InterfaceName, Interfaces};
use sys::offload::DeviceOffload;
use sys::packet_socket::{PacketSocket, Reception};
use sys::xdp::{RedirectProgram, XdpMode};
use sys::xsk::{DeviceQueue, UmemLayout, XskSocket};

use crate::af_packet::send_only::SendOnly;
use crate::af_packet::sender::PacketSender;
use crate::error::failed;
use crate::status::equip;
use crate::{OpenError, Port, QUEUES_MAX, Queue, Status};
use options::Way;
use queue::XdpQueue;

pub use memories::Memories;
pub use options::{HookChoice, Options, TransferChoice};

const CAPABILITY: &str = "CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF";

/// Chunks for frames that come by one receive queue of the device: 1.4 ms of a
/// 1 Gbit/s line full of the shortest, as with packet sockets. They are the kernel's whatever
/// becomes of frames that have come.
const COMING: NonZeroU32 = NonZeroU32::new(2048).expect("not zero");

/// Frames that may be under way in the driver: a full window of several fast TCP streams, cut
/// into segments. A port that sends slowly keeps no more chunks from others.
const GOING: NonZeroU32 = NonZeroU32::new(1024).expect("not zero");

/// Chunk sizes that the kernel takes (those of a page at most).
const SHORT: NonZeroU32 = NonZeroU32::new(2048).expect("not zero");
const LONG: NonZeroU32 = NonZeroU32::new(4096).expect("not zero");

/// An Ethernet header and two tags, which an MTU does not count.
const BESIDE_MTU: u32 = 14 + 8;

/// The longest MTU: such a frame has room in a chunk behind what the kernel keeps free.
const MTU_MAX: u32 = 3818;
const _: () = assert!(MTU_MAX == LONG.get() - UmemLayout::HEADROOM - BESIDE_MTU);

/// How long the device is polled at most in one call, and for how many frames: a batch.
const BUSY_POLL_MICROS: i32 = 20;
const BUSY_POLL_BUDGET: i32 = 64;

/// How often, and how long apart, a queue that is in use is tried: a tenth of a second,
/// where the kernel needs some milliseconds.
const BUSY_TRIES: u32 = 20;
const BUSY_PAUSE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 5_000_000,
};

/// Drivers of interfaces that hand over the unfinished checksums of whoever is behind
/// them. The frames have crossed no wire, so nothing is hidden by finishing them.
const UNFINISHED: [&str; 2] = ["veth", "tun"];

/// What keeps the interface ours: it goes with the port and the last of its queues.
struct Hold {
    name: InterfaceName,
    index: Ifindex,
    interfaces: Interfaces,
    _redirect: RedirectProgram,
    _promiscuous: PacketSocket,
}

impl Hold {
    /// The interface's name now.
    fn name(&self) -> io::Result<InterfaceName> {
        self.interfaces.name(self.index)
    }

    /// The longest frame that the interface takes now: by its MTU, and a tag beside it.
    fn frame_max(&self) -> io::Result<usize> {
        let mtu = self.interfaces.mtu(&self.name()?)?;
        Ok(mtu as usize + 14 + 4)
    }
}

/// An interface of the machine, opened by AF_XDP.
pub struct Xdp {
    hold: Arc<Hold>,
    way: Way,
    driver: Option<String>,
    queues: Vec<Box<dyn Queue>>,
}

impl Xdp {
    /// Opens the interface called `name` in the calling thread's network namespace,
    /// promiscuously. It may be down.
    ///
    /// There is a queue for each of `workers`, which go by the numbers that `memories` has
    /// them under. Each of the device's receive queues has a socket, and these are dealt out
    /// to them. A worker for whom none is left sends by packet sockets.
    ///
    /// # Errors
    /// See [`OpenError`]; each says what to do.
    pub fn open(
        name: &InterfaceName,
        workers: &[usize],
        options: Options,
        memories: &mut Memories,
    ) -> Result<Self, OpenError> {
        let queues = NonZeroUsize::new(workers.len()).unwrap_or(NonZeroUsize::MIN);
        if queues > QUEUES_MAX {
            return Err(OpenError::TooManyQueues {
                name: name.to_string(),
                asked: queues,
            });
        }
        let step = |step| failed(name, step, CAPABILITY);
        let interfaces = Interfaces::current().map_err(step("opening a socket"))?;
        let device = Device::look(name, &interfaces)?;
        let promiscuous = promiscuous(device.index);
        let promiscuous = promiscuous.map_err(device.failed("hearing frames to all addresses"))?;
        let (redirect, sockets, way) = device.take(options, workers, memories)?;
        let hold = Arc::new(Hold {
            name: name.clone(),
            index: device.index,
            interfaces,
            _redirect: redirect,
            _promiscuous: promiscuous,
        });
        let queues = deal(sockets, queues).into_iter().map(|sockets| {
            let sender = match sockets.is_empty() {
                true => Some(PacketSender::open(name.clone(), device.index)?),
                false => None,
            };
            let queue = XdpQueue::new(Arc::clone(&hold), sockets, sender, device.habits(options))?;
            Ok(Box::new(queue) as Box<dyn Queue>)
        });
        let queues: io::Result<_> = queues.collect();
        Ok(Self {
            queues: queues.map_err(step("making its queues"))?,
            hold,
            way,
            driver: device.driver,
        })
    }
}

impl Port for Xdp {
    fn status(&self) -> Status {
        let status = self.hold.name();
        let status = status.and_then(|name| Status::ask(&self.hold.interfaces, &name));
        status.map_or_else(
            |_| Status::gone(&self.hold.name),
            |status| Status {
                way: Some(self.way.to_string()),
                ..status
            },
        )
    }

    fn take_queues(&mut self) -> Vec<Box<dyn Queue>> {
        std::mem::take(&mut self.queues)
    }

    fn sender(&self) -> io::Result<Box<dyn Queue>> {
        let sender = PacketSender::open(self.hold.name.clone(), self.hold.index)?;
        Ok(Box::new(SendOnly::new(sender)))
    }

    fn advice(&self) -> Vec<String> {
        let Ok(name) = self.hold.name() else {
            return Vec::new();
        };
        let mut advice = Vec::new();
        let veth = self.driver.as_deref() == Some("veth");
        let generic = self.way.hook == XdpMode::Generic;
        if generic && veth {
            advice.push(format!(
                "what the other end of {name} leaves to be segmented is lost: \
                 `ethtool -K PEER tx off` there"
            ));
        }
        let interfaces = &self.hold.interfaces;
        let merges = interfaces.offload(&name, DeviceOffload::GenericReceive);
        if generic && merges.unwrap_or(false) {
            advice.push(format!(
                "frames that the kernel puts together are lost: `ethtool -K {name} gro off`"
            ));
        }
        if !veth && interfaces.has_rx_vlan_offload(&name).unwrap_or(false) {
            advice.push(format!(
                "{name} takes VLAN tags out of the frames that it receives: \
                 `ethtool -K {name} rxvlan off`"
            ));
        }
        advice
    }

    fn equip(&mut self, address: Option<MacAddr>, mtu: Option<u32>) -> io::Result<()> {
        equip(&self.hold.interfaces, &self.hold.name()?, address, mtu)
    }

    fn set_up(&mut self, up: bool) -> io::Result<()> {
        self.hold.interfaces.set_up(&self.hold.name()?, up)
    }
}

/// What a queue is to do beside moving bytes.
#[derive(Clone, Copy)]
struct Habits {
    /// Recognise unfinished checksums.
    unfinished: bool,
    /// Poll the device when nothing has come.
    busy_poll: bool,
}

/// An interface that is to be opened.
struct Device {
    name: InterfaceName,
    index: Ifindex,
    driver: Option<String>,
    /// How many receive queues it has.
    queues: u32,
    layout: UmemLayout,
}

impl Device {
    fn look(name: &InterfaceName, interfaces: &Interfaces) -> Result<Self, OpenError> {
        let step = |step| failed(name, step, CAPABILITY);
        let index = interfaces.index(name).map_err(step("finding it"))?;
        let hardware = interfaces.hardware(name);
        let hardware = hardware.map_err(step("asking for its address"))?;
        if !hardware.is_ethernet() {
            return Err(OpenError::NotEthernet {
                name: name.to_string(),
            });
        }
        let mtu = interfaces.mtu(name).map_err(step("asking for its MTU"))?;
        let takes = |chunk: NonZeroU32| chunk.get() - UmemLayout::HEADROOM - BESIDE_MTU;
        let fitting = [SHORT, LONG].into_iter().find(|chunk| mtu <= takes(*chunk));
        let chunk_len = fitting.ok_or_else(|| OpenError::TooLongForXdp {
            name: name.to_string(),
            mtu,
            most: MTU_MAX,
        })?;
        // A driver that does not say how many queues it has has one.
        let queues = interfaces.receive_queues(name).unwrap_or(1);
        let most = u32::try_from(QUEUES_MAX.get()).expect("64");
        if queues > most {
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
                rx_chunks: COMING,
                tx_chunks: GOING,
            },
        })
    }

    /// Takes the interface by the best way there is among those that are wanted.
    fn take(
        &self,
        options: Options,
        workers: &[usize],
        memories: &mut Memories,
    ) -> Result<(RedirectProgram, Vec<XskSocket>, Way), OpenError> {
        let (last, first) = options.hooks().split_last().expect("there is one");
        for hook in first {
            match self.take_by(*hook, options, workers, memories) {
                // Nothing else of it would be better in another mode.
                Err(OpenError::Failed { .. }) => {}
                // Taken, or refused for what another hook would not mend.
                taken => return taken,
            }
        }
        let taken = self.take_by(*last, options, workers, memories);
        taken.map_err(|error| match error {
            OpenError::Failed { name, source, .. } if *last == XdpMode::Native => {
                OpenError::NoNativeXdp { name, source }
            }
            other => other,
        })
    }

    fn take_by(
        &self,
        hook: XdpMode,
        options: Options,
        workers: &[usize],
        memories: &mut Memories,
    ) -> Result<(RedirectProgram, Vec<XskSocket>, Way), OpenError> {
        let redirect = patiently(|| RedirectProgram::attach(self.index, self.queues, hook));
        let redirect = redirect.map_err(self.failed("attaching a program"))?;
        let mut sockets = Vec::new();
        let mut way = Way {
            hook,
            zero_copy: true,
            busy_poll: options.busy_poll,
        };
        for (queue, worker) in (0..self.queues).zip(workers.iter().cycle()) {
            let socket = self.socket(queue, hook, options, |layout, at| {
                memories.open(*worker, layout, at)
            })?;
            memories.note_bound(&socket);
            let handed = redirect.redirect_queue(queue, &socket);
            handed.map_err(self.failed("redirecting frames"))?;
            let direct = socket.is_zero_copy();
            way.zero_copy &= direct.map_err(self.failed("asking how frames come"))?;
            sockets.push(socket);
        }
        Ok((redirect, sockets, way))
    }

    /// A socket at a queue of the device, by the best way there is for its frames to move.
    fn socket(
        &self,
        queue: u32,
        hook: XdpMode,
        options: Options,
        mut open: impl FnMut(UmemLayout, DeviceQueue) -> io::Result<XskSocket>,
    ) -> Result<XskSocket, OpenError> {
        let at = DeviceQueue {
            interface: self.index,
            queue,
        };
        let transfers = options.transfers(hook);
        let mut refused = None;
        // What was made for a socket that was refused is there for the next.
        let mut memory = None;
        for transfer in transfers {
            let mut socket = open(self.layout, at).map_err(self.failed("opening a socket"))?;
            let bound = patiently(|| socket.bind(*transfer));
            match bound.map_err(self.failed("binding a socket")) {
                Ok(()) => {
                    self.have_polled(&socket, options)?;
                    return Ok(socket);
                }
                Err(OpenError::Failed { name, source, .. }) => refused = Some((name, source)),
                Err(other) => return Err(other),
            }
            memory.get_or_insert_with(|| Arc::clone(socket.umem()));
        }
        let (name, source) = refused.expect("some way was tried");
        Err(match options.transfer {
            TransferChoice::ZeroCopy => OpenError::NoZeroCopy { name, source },
            TransferChoice::Best | TransferChoice::Copy => OpenError::Failed {
                name,
                step: "binding a socket",
                source,
            },
        })
    }

    /// Has the device polled by whoever asks for frames, if that is wanted.
    fn have_polled(&self, socket: &XskSocket, options: Options) -> Result<(), OpenError> {
        if !options.busy_poll {
            return Ok(());
        }
        let set = socket.set_busy_poll(BUSY_POLL_MICROS, BUSY_POLL_BUDGET);
        set.map_err(|source| match self.failed("")(source) {
            OpenError::Failed { name, source, .. } => OpenError::NoBusyPoll { name, source },
            other => other,
        })
    }

    fn habits(&self, options: Options) -> Habits {
        let driver = self.driver.as_deref();
        Habits {
            unfinished: driver.is_some_and(|driver| UNFINISHED.contains(&driver)),
            busy_poll: options.busy_poll,
        }
    }

    /// The error of a step, told from others by its number.
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

/// A socket whose only use is that the interface hears all addresses while it is open.
fn promiscuous(index: Ifindex) -> io::Result<PacketSocket> {
    let socket = PacketSocket::open()?;
    socket.bind(index, Reception::None)?;
    socket.set_promiscuous(index)?;
    Ok(socket)
}

/// Something else is there: another program (of another hook: `EEXIST`), another socket.
fn is_busy(error: &io::Error) -> bool {
    let number = Errno::from_io_error(error);
    matches!(number, Some(Errno::BUSY | Errno::EXIST))
}

/// Tries again for a while what is refused because something is in use: the kernel takes
/// the memory of a socket that was closed from its queue when it finds the time, and a
/// program whose descriptor a child of this process had, when that is gone.
fn patiently<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 0..BUSY_TRIES {
        match attempt() {
            Err(error) if is_busy(&error) => {
                // Nothing is waited for but the time.
                let _ = poll(&mut [], Some(&BUSY_PAUSE));
            }
            other => return other,
        }
    }
    attempt()
}

/// Deals the sockets of the device's queues out to as many hands.
fn deal(sockets: Vec<XskSocket>, hands: NonZeroUsize) -> Vec<Vec<XskSocket>> {
    let mut dealt: Vec<_> = (0..hands.get()).map(|_| Vec::new()).collect();
    for (place, socket) in sockets.into_iter().enumerate() {
        dealt[place % hands].push(socket);
    }
    dealt
}
