//! A test port: sends frames into the device and receives its frames.

use std::io;

use super::Arrivals;

/// The sending half of a test port. It never blocks.
pub trait Transmit: Send {
    /// Sends from the front of `frames` and returns the number accepted: 0 if there is no space
    /// now. Accepted frames are no longer referenced after the return.
    ///
    /// # Errors
    /// The interface has disappeared, is down, or rejects the frame.
    fn send(&mut self, frames: &[&[u8]]) -> io::Result<usize>;

    /// Returns and resets the number of frames that were accepted and could not be sent. Any such
    /// frame makes the measurement void.
    fn take_drops(&mut self) -> u64 {
        0
    }

    /// The send method.
    fn send_method(&self) -> SendMethod;
}

/// The method by which frames are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendMethod {
    /// Packet sockets, with sendmmsg(2).
    Packet,
    /// An AF_XDP socket in copy mode.
    Xdp,
    /// Memory, in a test.
    Memory,
}

impl SendMethod {
    /// The name in records and messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Packet => "by packet sockets (sendmmsg)",
            Self::Xdp => "by AF_XDP (copies)",
            Self::Memory => "by memory",
        }
    }
}

/// The receiving half of a test port. It never blocks.
pub trait Receive: Send {
    /// Adds received frames to `arrivals`, up to its capacity.
    ///
    /// # Errors
    /// The interface has disappeared or is down.
    fn receive(&mut self, arrivals: &mut Arrivals) -> io::Result<()>;

    /// Returns and resets the number of frames that arrived and that the tester lost because it was
    /// too slow. Any such frame makes the measurement void.
    ///
    /// # Errors
    /// The interface has disappeared.
    fn take_drops(&mut self) -> io::Result<u64> {
        Ok(0)
    }

    /// The source of receive timestamps, and their largest error.
    fn stamps(&self) -> Stamps;
}

/// The source of receive timestamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamps {
    /// The kernel, when the frame arrived at the interface. Its clock differs from the tester's and
    /// is aligned with it repeatedly.
    Kernel {
        /// The largest step between two alignments beyond the clocks' drift.
        step_ns_max: u64,
    },
    /// The program, when it polled: late by up to a polling interval.
    Program,
    /// The test's own clock.
    Simulated,
}

impl Stamps {
    /// The name in records and messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kernel { .. } => "stamped by the kernel (software)",
            Self::Program => "stamped by the program",
            Self::Simulated => "stamped by the simulation",
        }
    }
}

/// A test port.
pub struct TestPort {
    /// The sending half.
    pub transmit: Box<dyn Transmit>,
    /// The receiving half.
    pub receive: Box<dyn Receive>,
}
