//! Ends by packet sockets: any Linux interface, stamped by the kernel as frames come in.

use std::io;

use testbed::{Clock, Failure, FrameReceiver, FrameSender, Namespace};

use super::{Arrivals, End, Receive, Stamps, Transmit};

/// What a frame may be longer than those sent: tags and tunnels that a device puts around it.
const HEADROOM: usize = 128;

impl End {
    /// An end at `interface` of `namespace`, for frames of up to `frame_bytes` with their checksums; its
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
            transmit: Box::new(namespace.frame_sender(interface)?),
            receive: Box::new(namespace.frame_receiver(interface, longest, clock)?),
        })
    }
}

impl Transmit for FrameSender {
    fn send(&mut self, frames: &[&[u8]]) -> io::Result<usize> {
        Self::send(self, frames)
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
mod tests;
