//! Any Linux interface, by packet sockets: a receive ring that is read without a
//! system call, transmission of up to 64 frames by one, and virtio-net headers both
//! ways, so that frames of 64 KB and unfinished checksums cross whole.
//!
//! Frames go out through the interface's queueing discipline (decision 0043).
//!
//! Nothing of it outlives the process: the promiscuous mode, the ring and the fanout
//! group belong to the sockets. The host's own stack still hears what we receive; to
//! keep it from answering is the business of whoever configures the interface.

mod queue;
mod ring;
pub(crate) mod send_only;
pub(crate) mod sender;

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroUsize;

use base::QueueId;
use packet::MacAddr;
use sys::interface::{Ifindex, InterfaceName, Interfaces};
use sys::packet_ring::PacketRing;
use sys::packet_socket::{FanoutGroup, PacketSocket, Reception};

use crate::error::failed;
use crate::shaping::{self, ClassCounts, Line, Shape, Shaped};
use crate::status::equip;
use crate::{OpenError, Port, QUEUES_MAX, Queue, Status};
use queue::PacketQueue;
pub use ring::RingSize;
use send_only::SendOnly;
use sender::PacketSender;

/// What the kernel may keep for us of frames too long for a slot: some hundred frames
/// of 64 KB, which is a full window of several fast TCP streams.
const RECEIVE_BUFFER: usize = 8 << 20;

const RAW: &str = "CAP_NET_RAW";

/// An interface of the machine, opened.
pub struct AfPacket {
    interfaces: Interfaces,
    index: Ifindex,
    name: InterfaceName,
    queues: Vec<Box<dyn Queue>>,
}

impl AfPacket {
    /// Opens the interface called `name` in the calling thread's network namespace,
    /// promiscuously. It may be down.
    ///
    /// Several queues share its frames by a hash of their flow, the same both ways.
    ///
    /// # Errors
    /// See [`OpenError`]; each says what to do.
    pub fn open(name: &InterfaceName, queues: NonZeroUsize) -> Result<Self, OpenError> {
        Self::open_with(name, queues, RingSize::default())
    }

    /// As [`AfPacket::open`], with receive rings of this size.
    ///
    /// # Errors
    /// See [`OpenError`]; each says what to do.
    pub fn open_with(
        name: &InterfaceName,
        queues: NonZeroUsize,
        size: RingSize,
    ) -> Result<Self, OpenError> {
        if queues > QUEUES_MAX {
            return Err(OpenError::TooManyQueues {
                name: name.to_string(),
                asked: queues,
            });
        }
        let step = |step| failed(name, step, RAW);
        let interfaces = Interfaces::current().map_err(step("opening a socket"))?;
        let index = interfaces.index(name).map_err(step("finding it"))?;
        let hardware = interfaces.hardware(name);
        let hardware = hardware.map_err(step("asking for its address"))?;
        if !hardware.is_ethernet() {
            return Err(OpenError::NotEthernet {
                name: name.to_string(),
            });
        }
        let rings = rings(name, index, queues, size)?;
        let queues = rings.into_iter().map(|ring| {
            let sender = PacketSender::open(name.clone(), index)?;
            let queue = PacketQueue::new(name.clone(), ring, sender);
            Ok(Box::new(queue) as Box<dyn Queue>)
        });
        Ok(Self {
            queues: queues
                .collect::<io::Result<_>>()
                .map_err(step("opening a socket to send by"))?,
            interfaces,
            index,
            name: name.clone(),
        })
    }
}

impl Port for AfPacket {
    fn status(&self) -> Status {
        let now = self.interfaces.name(self.index);
        now.and_then(|name| Status::ask(&self.interfaces, &name))
            .unwrap_or_else(|_| Status::gone(&self.name))
    }

    fn take_queues(&mut self) -> Vec<Box<dyn Queue>> {
        std::mem::take(&mut self.queues)
    }

    fn sender(&self) -> io::Result<Box<dyn Queue>> {
        let sender = PacketSender::open(self.name.clone(), self.index)?;
        Ok(Box::new(SendOnly::new(sender)))
    }

    fn equip(&mut self, address: Option<MacAddr>, mtu: Option<u32>) -> io::Result<()> {
        let name = self.interfaces.name(self.index)?;
        equip(&self.interfaces, &name, address, mtu)
    }

    fn shape(&mut self, shape: Option<&Shape>) -> io::Result<Option<Shaped>> {
        let Some(shape) = shape else {
            return shaping::unmake(self.index).map(|()| None);
        };
        let name = self.interfaces.name(self.index)?;
        let line = Line {
            mtu: self.interfaces.mtu(&name)?,
            speed_mbps: self
                .interfaces
                .link_mode(&name)
                .unwrap_or_default()
                .speed_mbps,
        };
        let shaped = shape.on(line);
        shaped.make(self.index, line)?;
        Ok(Some(shaped))
    }

    fn queue_counts(&self) -> io::Result<BTreeMap<QueueId, ClassCounts>> {
        shaping::counts(self.index)
    }

    fn set_up(&mut self, up: bool) -> io::Result<()> {
        let name = self.interfaces.name(self.index)?;
        self.interfaces.set_up(&name, up)
    }
}

/// One ring for each queue, all hearing the interface.
fn rings(
    name: &InterfaceName,
    index: Ifindex,
    queues: NonZeroUsize,
    size: RingSize,
) -> Result<Vec<PacketRing>, OpenError> {
    let step = |step| failed(name, step, RAW);
    let rings = (0..queues.get()).map(|_| ring(index, size));
    let rings: Vec<_> = rings
        .collect::<io::Result<_>>()
        .map_err(step("laying a receive ring"))?;
    if queues.get() > 1 {
        share(&rings).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput => OpenError::DownAndShared {
                name: name.to_string(),
            },
            _ => step("sharing its frames")(error),
        })?;
    }
    for ring in &rings {
        ring.socket().detach_filter().map_err(step("listening"))?;
    }
    Ok(rings)
}

/// A receive ring on the interface, muted: queues that hear before they share their
/// frames would each hear all of them.
fn ring(index: Ifindex, size: RingSize) -> io::Result<PacketRing> {
    let socket = PacketSocket::open()?;
    socket.attach_drop_filter()?;
    socket.set_vnet_header()?;
    socket.set_ignore_outgoing()?;
    socket.set_copy_oversized()?;
    socket.set_receive_buffer(RECEIVE_BUFFER)?;
    let ring = PacketRing::new(socket, size.layout())?;
    ring.socket().bind(index, Reception::AllProtocols)?;
    ring.socket().set_promiscuous(index)?;
    Ok(ring)
}

/// Joins the rings into one group.
fn share(rings: &[PacketRing]) -> io::Result<()> {
    let mut group: Option<FanoutGroup> = None;
    for ring in rings {
        match group {
            None => group = Some(ring.socket().create_fanout()?),
            Some(group) => ring.socket().join_fanout(group)?,
        }
    }
    Ok(())
}
