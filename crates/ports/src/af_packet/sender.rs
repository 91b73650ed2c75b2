//! The way to send by a packet socket: through the interface's queueing discipline, as all that
//! this machine sends, so that `tc` shapes it, packet taps show it and no frame overtakes another.
//!
//! What the kernel's error numbers mean for a frame is decided here.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use base::Priority;
use packet::{Frame, Pool};
use rustix::io::Errno;
use sys::interface::{Ifindex, InterfaceName};
use sys::packet_send::SendVector;
use sys::packet_socket::{PacketSocket, Reception};

use crate::counters::{Counter, QueueCounters};
use crate::{Batch, error, vnet};

/// What may be under way in the queueing discipline and the driver before sending says that
/// there is no room.
const SEND_BUFFER: usize = 8 << 20;

/// Sends by an interface, and hears nothing.
pub(crate) struct PacketSender {
    name: InterfaceName,
    socket: PacketSocket,
    vector: SendVector,
    /// For which class what is sent is, until that is changed.
    priority: Priority,
}

impl PacketSender {
    /// Sends by the interface with this name and index.
    pub(crate) fn open(name: InterfaceName, index: Ifindex) -> io::Result<Self> {
        Ok(Self {
            name,
            socket: socket(index)?,
            vector: SendVector::new(),
            priority: Priority::NONE,
        })
    }

    /// As [`Queue::send`](crate::Queue::send).
    pub(crate) fn send(
        &mut self,
        batch: &mut Batch,
        pool: &mut Pool,
        counters: &QueueCounters,
    ) -> io::Result<()> {
        let mut done = 0;
        let mut outcome = Ok(());
        let first = batch.first().map_or(Priority::NONE, |frame| frame.priority);
        if batch.iter().any(|frame| frame.priority != first) {
            // Those of one class stay in order, and those of two need not.
            batch.sort_by_key(|frame| frame.priority);
        }
        while done < batch.len() {
            match self.send_alike(&mut batch[done..]) {
                Ok(sent) => {
                    counters.sent(&batch[done..done + sent]);
                    done += sent;
                }
                Err(error) => match Refusal::of(&error) {
                    Refusal::Later => break,
                    Refusal::Gone => {
                        outcome = Err(error::gone(&self.name));
                        break;
                    }
                    Refusal::All(reason) => {
                        counters.add(reason, (batch.len() - done) as u64);
                        done = batch.len();
                    }
                    Refusal::One(reason) => {
                        counters.add(reason, 1);
                        done += 1;
                    }
                },
            }
        }
        batch.release(done, pool);
        outcome
    }

    /// Sends frames from the front that are for one class, and returns how many.
    fn send_alike(&mut self, frames: &mut [Frame]) -> io::Result<usize> {
        let priority = frames.first().map_or(self.priority, |frame| frame.priority);
        if priority != self.priority {
            self.socket.set_priority(priority.handle())?;
            self.priority = priority;
        }
        let count = frames.partition_point(|frame| frame.priority == priority);
        self.send_all(&mut frames[..count])
    }

    /// Sends frames from the front, and returns how many.
    fn send_all(&mut self, frames: &mut [Frame]) -> io::Result<usize> {
        let parts = frames.iter_mut().map(|frame| {
            let header = vnet::encode(&frame.offload, frame.len());
            frame.prefixed(header)
        });
        self.vector.send(&self.socket, parts)
    }
}

impl AsFd for PacketSender {
    /// Never readable.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A socket to send by; it hears nothing.
fn socket(index: Ifindex) -> io::Result<PacketSocket> {
    let socket = PacketSocket::open()?;
    socket.set_vnet_header()?;
    socket.set_send_buffer(SEND_BUFFER)?;
    socket.bind(index, Reception::None)?;
    Ok(socket)
}

/// What an error number of sendmmsg(2) means.
enum Refusal {
    /// There is no room now; the frame may go later.
    Later,
    /// The interface is gone.
    Gone,
    /// Neither this frame nor those behind it can go.
    All(Counter),
    /// This frame cannot go; those behind it may.
    One(Counter),
}

impl Refusal {
    fn of(error: &io::Error) -> Self {
        match Errno::from_io_error(error) {
            Some(Errno::AGAIN | Errno::INTR) => Self::Later,
            Some(Errno::NXIO | Errno::NODEV) => Self::Gone,
            Some(Errno::NETDOWN) => Self::All(Counter::TxDown),
            Some(Errno::MSGSIZE) => Self::One(Counter::TxTooLong),
            Some(Errno::NOBUFS | Errno::NOMEM) => Self::One(Counter::TxNoRoom),
            _ => Self::One(Counter::TxErrors),
        }
    }
}
