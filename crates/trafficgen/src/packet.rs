//! Ends at any Linux interface, stamped by the kernel as frames come in.

use std::io;

use testbed::{Clock, Failure, FrameReceiver, FrameSender, Namespace, SwiftSender};

use super::{Arrivals, End, Receive, Stamps, Transmit, Way};

/// What a frame may be longer than those sent: tags and tunnels that a device puts around it.
const HEADROOM: usize = 128;

impl End {
    /// An end at `interface` of `namespace` that receives by a ring of packet sockets, and sends by AF_XDP
    /// where the interface's first queue is free for that and frames are not longer than a page, by packet
    /// sockets else: [`Transmit::way`] tells. It is for frames of up to `frame_bytes` with their checksums; its
    /// times are those of `clock`.
    ///
    /// # Errors
    /// There is no such interface there, or this process may not.
    pub fn packet(
        namespace: &Namespace,
        interface: &str,
        frame_bytes: u16,
        clock: Clock,
    ) -> Result<Self, Failure> {
        let longest = usize::from(frame_bytes) + HEADROOM;
        Ok(Self {
            transmit: sender(namespace, interface, frame_bytes)?,
            receive: Box::new(namespace.frame_receiver(interface, longest, clock)?),
        })
    }

    /// The same end, which only sends: what comes is nobody's.
    ///
    /// # Errors
    /// There is no such interface there, or this process may not.
    pub fn sending(
        namespace: &Namespace,
        interface: &str,
        frame_bytes: u16,
    ) -> Result<Self, Failure> {
        Ok(Self {
            transmit: sender(namespace, interface, frame_bytes)?,
            receive: Box::new(Deaf),
        })
    }
}

/// Sends by AF_XDP, if it can.
fn sender(
    namespace: &Namespace,
    interface: &str,
    frame_bytes: u16,
) -> Result<Box<dyn Transmit>, Failure> {
    let swift = match usize::from(frame_bytes) <= SwiftSender::LONGEST {
        true => namespace.swift_sender(interface).ok(),
        false => None,
    };
    Ok(match swift {
        Some(sender) => Box::new(sender),
        None => Box::new(namespace.frame_sender(interface)?),
    })
}

/// Nothing comes here.
struct Deaf;

impl Receive for Deaf {
    fn receive(&mut self, _: &mut Arrivals) -> io::Result<()> {
        Ok(())
    }

    fn stamps(&self) -> Stamps {
        Stamps::Program
    }
}

impl Transmit for FrameSender {
    fn send(&mut self, frames: &[&[u8]]) -> io::Result<usize> {
        Self::send(self, frames)
    }

    fn way(&self) -> Way {
        Way::Packet
    }
}

impl Transmit for SwiftSender {
    fn send(&mut self, frames: &[&[u8]]) -> io::Result<usize> {
        Self::send(self, frames)
    }

    fn take_drops(&mut self) -> u64 {
        Self::take_drops(self)
    }

    fn way(&self) -> Way {
        Way::Xdp
    }
}

impl Receive for FrameReceiver {
    fn receive(&mut self, arrivals: &mut Arrivals) -> io::Result<()> {
        let room = arrivals.room();
        Self::receive(self, room, |at_ns, parts| arrivals.push(at_ns, parts))?;
        Ok(())
    }

    fn take_drops(&mut self) -> io::Result<u64> {
        Self::take_drops(self)
    }

    fn stamps(&self) -> Stamps {
        Stamps::Kernel {
            step_ns_max: self.step_ns_max(),
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
