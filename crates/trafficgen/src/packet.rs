//! Test ports at any Linux interface, with receive timestamps from the kernel.

use std::io;

use testbed::{Clock, Failure, FrameReceiver, FrameSender, Namespace, XdpSender};

use super::{Arrivals, Receive, SendMethod, Stamps, TestPort, Transmit};

/// The headroom for tags and encapsulations that a device adds to a frame.
const HEADROOM: usize = 128;

impl TestPort {
    /// A test port at `interface` of `namespace`. It receives with a packet socket ring. It sends
    /// with AF_XDP if the interface's first queue is free and frames fit into a page, otherwise
    /// with packet sockets; [`Transmit::send_method`] reports which. Frames have up to `frame_bytes` with
    /// FCS; timestamps are those of `clock`.
    ///
    /// # Errors
    /// The interface does not exist there, or the process lacks the privilege.
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

    /// A test port like [`TestPort::packet`] that only sends and ignores received frames.
    ///
    /// # Errors
    /// The interface does not exist there, or the process lacks the privilege.
    pub fn sending(
        namespace: &Namespace,
        interface: &str,
        frame_bytes: u16,
    ) -> Result<Self, Failure> {
        Ok(Self {
            transmit: sender(namespace, interface, frame_bytes)?,
            receive: Box::new(NullReceiver),
        })
    }
}

/// Opens a sender with AF_XDP if possible, otherwise with packet sockets.
fn sender(
    namespace: &Namespace,
    interface: &str,
    frame_bytes: u16,
) -> Result<Box<dyn Transmit>, Failure> {
    let xdp = match usize::from(frame_bytes) <= XdpSender::LONGEST {
        true => namespace.xdp_sender(interface).ok(),
        false => None,
    };
    Ok(match xdp {
        Some(sender) => Box::new(sender),
        None => Box::new(namespace.frame_sender(interface)?),
    })
}

/// A receiver that receives nothing.
struct NullReceiver;

impl Receive for NullReceiver {
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

    fn send_method(&self) -> SendMethod {
        SendMethod::Packet
    }
}

impl Transmit for XdpSender {
    fn send(&mut self, frames: &[&[u8]]) -> io::Result<usize> {
        Self::send(self, frames)
    }

    fn take_drops(&mut self) -> u64 {
        Self::take_drops(self)
    }

    fn send_method(&self) -> SendMethod {
        SendMethod::Xdp
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
