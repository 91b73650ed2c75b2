//! Transmission through a packet socket and the interface's queueing discipline, like all other
//! traffic of the machine: `tc` shapes it, packet taps see it, and frames are not reordered.
//!
//! Errors of sendmmsg(2) are mapped to counters here.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use base::Priority;
use packet::{Frame, Pool};
use rustix::io::Errno;
use sys::interface::{Ifindex, InterfaceName};
use sys::packet_send::SendVector;
use sys::packet_socket::{PacketSocket, ReceiveFilter};

use crate::counters::{Counter, QueueCounters};
use crate::{Batch, error, vnet};

/// Limit of bytes in the queueing discipline and the driver before sending returns `EAGAIN`.
const SEND_BUFFER: usize = 8 << 20;

/// Sends through an interface and receives nothing.
pub(crate) struct PacketSender {
    name: InterfaceName,
    socket: PacketSocket,
    vector: SendVector,
    /// Class that the socket currently selects.
    priority: Priority,
}

impl PacketSender {
    /// Opens a socket for the interface with this name and index.
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
            // Stable sort: frames of one class stay in order, frames of different classes need not.
            batch.sort_by_key(|frame| frame.priority);
        }
        while done < batch.len() {
            match self.send_same_priority(&mut batch[done..]) {
                Ok(sent) => {
                    counters.count_sent(&batch[done..done + sent]);
                    done += sent;
                }
                Err(error) => match SendFailure::of(&error) {
                    SendFailure::Retry => break,
                    SendFailure::Removed => {
                        outcome = Err(error::removed(&self.name));
                        break;
                    }
                    SendFailure::All(reason) => {
                        counters.add(reason, (batch.len() - done) as u64);
                        done = batch.len();
                    }
                    SendFailure::One(reason) => {
                        counters.add(reason, 1);
                        done += 1;
                    }
                },
            }
        }
        batch.release(done, pool);
        outcome
    }

    /// Sends frames of one class from the front and returns their number.
    fn send_same_priority(&mut self, frames: &mut [Frame]) -> io::Result<usize> {
        let priority = frames.first().map_or(self.priority, |frame| frame.priority);
        if priority != self.priority {
            self.socket.set_priority(priority.handle())?;
            self.priority = priority;
        }
        let count = frames.partition_point(|frame| frame.priority == priority);
        self.send_all(&mut frames[..count])
    }

    /// Sends frames from the front and returns their number.
    fn send_all(&mut self, frames: &mut [Frame]) -> io::Result<usize> {
        let buffers = frames.iter_mut().map(|frame| {
            let header = vnet::encode(&frame.offload, frame.len());
            frame.prefixed(header)
        });
        self.vector.send(&self.socket, buffers)
    }
}

impl AsFd for PacketSender {
    /// Never readable.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Opens a socket that only sends.
fn socket(index: Ifindex) -> io::Result<PacketSocket> {
    let socket = PacketSocket::open()?;
    socket.set_vnet_header()?;
    socket.set_send_buffer(SEND_BUFFER)?;
    socket.bind(index, ReceiveFilter::None)?;
    Ok(socket)
}

/// Meaning of an error of sendmmsg(2).
enum SendFailure {
    /// No space now; the frame can be sent later.
    Retry,
    /// The interface was removed.
    Removed,
    /// This frame and all after it are dropped, for this reason.
    All(Counter),
    /// This frame is dropped, for this reason; the next may be sent.
    One(Counter),
}

impl SendFailure {
    fn of(error: &io::Error) -> Self {
        match Errno::from_io_error(error) {
            Some(Errno::AGAIN | Errno::INTR) => Self::Retry,
            Some(Errno::NXIO | Errno::NODEV) => Self::Removed,
            Some(Errno::NETDOWN) => Self::All(Counter::TxDown),
            Some(Errno::MSGSIZE) => Self::One(Counter::TxTooLong),
            Some(Errno::NOBUFS | Errno::NOMEM) => Self::One(Counter::TxFull),
            _ => Self::One(Counter::TxErrors),
        }
    }
}
