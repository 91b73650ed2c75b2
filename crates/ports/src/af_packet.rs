//! Any Linux interface through packet sockets (packet(7)): a mapped receive ring, transmission of
//! up to 64 frames by one sendmmsg(2), and virtio-net headers in both directions, so that frames of
//! 64 KB and partial checksums pass unchanged.
//!
//! ```text
//!             +--> ring 0 (TPACKET_V2) --> worker 0 --+
//!  interface -+    PACKET_FANOUT_HASH                 +--> sendmmsg --> qdisc --> interface
//!             +--> ring 1              --> worker 1 --+
//! ```
//!
//! Sent frames pass the interface's queueing discipline (decision 0043).
//!
//! Promiscuous mode, ring and fanout group belong to the sockets and end with the process. The
//! host's stack also receives the frames; preventing it from replying is up to the configuration of
//! the interface.

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
use sys::packet_socket::{FanoutGroup, PacketSocket, ReceiveFilter};

use crate::error::failed;
use crate::shaping::{self, ClassCounts, EffectiveQos, LinkProperties, QosConfig};
use crate::status::set_link;
use crate::{OpenError, Port, QUEUES_MAX, Queue, Status};
use queue::PacketQueue;
pub use ring::RingSize;
use send_only::SendOnlyQueue;
use sender::PacketSender;

/// Limit of the kernel's queue for frames that are longer than a slot, in bytes: some hundred
/// frames of 64 KB, a full window of several fast TCP streams.
const RECEIVE_BUFFER: usize = 8 << 20;

const CAPABILITY: &str = "CAP_NET_RAW";

/// An interface opened through packet sockets.
pub struct AfPacket {
    interfaces: Interfaces,
    index: Ifindex,
    name: InterfaceName,
    queues: Vec<Box<dyn Queue>>,
}

impl AfPacket {
    /// Opens the interface called `name` in the calling thread's network namespace, in promiscuous
    /// mode. It may be down.
    ///
    /// Several queues share its frames by a hash of their flow, the same for both directions.
    ///
    /// # Errors
    /// See [`OpenError`]; each has a remedy.
    pub fn open(name: &InterfaceName, queues: NonZeroUsize) -> Result<Self, OpenError> {
        Self::open_with(name, queues, RingSize::default())
    }

    /// As [`AfPacket::open`], with receive rings of this size.
    ///
    /// # Errors
    /// See [`OpenError`]; each has a remedy.
    pub fn open_with(
        name: &InterfaceName,
        queues: NonZeroUsize,
        size: RingSize,
    ) -> Result<Self, OpenError> {
        if queues > QUEUES_MAX {
            return Err(OpenError::TooManyQueues {
                name: name.to_string(),
                requested: queues,
            });
        }
        let step = |step| failed(name, step, CAPABILITY);
        let interfaces = Interfaces::current().map_err(step("open a socket"))?;
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
        let rings = rings(name, index, queues, size)?;
        let queues = rings.into_iter().map(|ring| {
            let sender = PacketSender::open(name.clone(), index)?;
            let queue = PacketQueue::new(name.clone(), ring, sender);
            Ok(Box::new(queue) as Box<dyn Queue>)
        });
        Ok(Self {
            queues: queues
                .collect::<io::Result<_>>()
                .map_err(step("open a socket for sending"))?,
            interfaces,
            index,
            name: name.clone(),
        })
    }
}

impl Port for AfPacket {
    fn status(&self) -> Status {
        let name = self.interfaces.name(self.index);
        name.and_then(|name| Status::query(&self.interfaces, &name))
            .unwrap_or_else(|_| Status::removed(&self.name))
    }

    fn take_queues(&mut self) -> Vec<Box<dyn Queue>> {
        std::mem::take(&mut self.queues)
    }

    fn tx_queue(&self) -> io::Result<Box<dyn Queue>> {
        let sender = PacketSender::open(self.name.clone(), self.index)?;
        Ok(Box::new(SendOnlyQueue::new(sender)))
    }

    fn set_link(&mut self, address: Option<MacAddr>, mtu: Option<u32>) -> io::Result<()> {
        let name = self.interfaces.name(self.index)?;
        set_link(&self.interfaces, &name, address, mtu)
    }

    fn set_qos(&mut self, qos: Option<&QosConfig>) -> io::Result<Option<EffectiveQos>> {
        let Some(qos) = qos else {
            return shaping::clear(self.index).map(|()| None);
        };
        let name = self.interfaces.name(self.index)?;
        let link = LinkProperties {
            mtu: self.interfaces.mtu(&name)?,
            speed_mbps: self
                .interfaces
                .link_mode(&name)
                .unwrap_or_default()
                .speed_mbps,
        };
        let effective = qos.effective(link);
        effective.apply(self.index, link)?;
        Ok(Some(effective))
    }

    fn queue_counts(&self) -> io::Result<BTreeMap<QueueId, ClassCounts>> {
        shaping::counts(self.index)
    }

    fn set_up(&mut self, up: bool) -> io::Result<()> {
        let name = self.interfaces.name(self.index)?;
        self.interfaces.set_up(&name, up)
    }
}

/// Opens one ring per queue, all receiving from the interface.
fn rings(
    name: &InterfaceName,
    index: Ifindex,
    queues: NonZeroUsize,
    size: RingSize,
) -> Result<Vec<PacketRing>, OpenError> {
    let step = |step| failed(name, step, CAPABILITY);
    let rings = (0..queues.get()).map(|_| ring(index, size));
    let rings: Vec<_> = rings
        .collect::<io::Result<_>>()
        .map_err(step("create a receive ring"))?;
    if queues.get() > 1 {
        join_fanout_group(&rings).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput => OpenError::DownAndShared {
                name: name.to_string(),
            },
            _ => step("join a fanout group")(error),
        })?;
    }
    for ring in &rings {
        ring.socket()
            .detach_filter()
            .map_err(step("start reception"))?;
    }
    Ok(rings)
}

/// Opens a receive ring that drops all frames: queues that received before they join the fanout
/// group would each receive every frame.
fn ring(index: Ifindex, size: RingSize) -> io::Result<PacketRing> {
    let socket = PacketSocket::open()?;
    socket.attach_drop_filter()?;
    socket.set_vnet_header()?;
    socket.set_ignore_outgoing()?;
    socket.set_copy_oversized()?;
    socket.set_receive_buffer(RECEIVE_BUFFER)?;
    let ring = PacketRing::new(socket, size.layout())?;
    ring.socket().bind(index, ReceiveFilter::AllProtocols)?;
    ring.socket().set_promiscuous(index)?;
    Ok(ring)
}

/// Joins the sockets of the rings to one fanout group.
fn join_fanout_group(rings: &[PacketRing]) -> io::Result<()> {
    let mut group: Option<FanoutGroup> = None;
    for ring in rings {
        match group {
            None => group = Some(ring.socket().create_fanout()?),
            Some(group) => ring.socket().join_fanout(group)?,
        }
    }
    Ok(())
}
